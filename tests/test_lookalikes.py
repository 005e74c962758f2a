"""Transcripts of other agents are refused whole, with their name; none of ours is ever taken for one."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib

import pyarrow as pa
import pytest
from conftest import CORPUS
from helpers import FIXTURES, Lab, Reader, check_conservation

from analytics.reading import HEAD_BYTES, take_sample
from analytics.refusals import NAMES
from analytics.wires import BY_NAME
from analytics.wires.base import Sample
from analytics.wires.lookalikes import AGENTS, RESEMBLED, lookalike

OTHERS = FIXTURES / "lookalikes"
NAMES_OF = {
    "copilot": "Copilot CLI", "cursor": "Cursor", "gemini": "Gemini CLI", "opencode": "OpenCode", "pi": "Pi",
    "qwen": "Qwen Code",
}  # fmt: skip
FILES = sorted(path.name for path in OTHERS.iterdir())
OURS = sorted(
    path
    for folder in (FIXTURES, CORPUS)
    for path in folder.rglob("*")
    if path.is_file() and OTHERS not in path.parents and path.suffix != ".py" and path.stem != "other_agent"
)


def agent_of(name):
    return NAMES_OF[name.partition("-")[0]]


def sample_of(path):
    data = path.read_bytes()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    elif data[:2] == b"\x1f\x8b":
        data = zlib.decompressobj(wbits=31).decompress(data)  # one is cut: what stands before the cut counts
    return take_sample(data[:HEAD_BYTES], 0, len(data[:HEAD_BYTES]), whole=len(data) < HEAD_BYTES)


def test_every_agent_has_a_file_here():
    assert {agent_of(name) for name in FILES} == set(AGENTS) == set(NAMES_OF.values())


@pytest.mark.parametrize("name", FILES)
def test_it_is_told_by_content(name):
    assert lookalike(sample_of(OTHERS / name)) == agent_of(name)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".jsonl")])
def test_it_is_told_without_its_first_row_and_spaced(name):
    rows = [json.loads(line) for line in (OTHERS / name).read_text().splitlines()]
    assert lookalike(Sample(rows[1:], 1)) in (agent_of(name), None)
    data = "".join(json.dumps(dict(reversed(row.items()))) + "\n" for row in rows).encode()
    assert lookalike(take_sample(data, 0, len(data), whole=True)) == agent_of(name)


def test_none_of_ours_is_taken_for_one(tmp_path):
    subprocess.run([sys.executable, FIXTURES / "cases" / "gen_native_traps.py", tmp_path], check=True)
    made = [path for path in tmp_path.rglob("*.jsonl") if path.is_file()]
    assert len(made) > 5
    assert len(OURS) > 100
    assert {path.name: found for path in [*OURS, *made] if (found := lookalike(sample_of(path))) is not None} == {}


@pytest.mark.parametrize(
    "row",
    [
        # a Claude capture whose wrapper stamps rows, one of a gateway without ids, and a session's own rows
        {"type": "assistant", "session_id": "s", "timestamp_ms": 1, "message": {"id": "msg_1", "content": []}},
        {"type": "user", "session_id": "s", "timestamp_ms": 1, "uuid": "u", "message": {"content": "hi"}},
        {"type": "result", "subtype": "success", "session_id": "s", "usage": {"input_tokens": 1}, "num_turns": 1},
        {"type": "system", "subtype": "init", "apiKeySource": "none", "permissionMode": "plan", "tools": []},
        {"type": "user", "sessionId": "s", "uuid": "u", "parentUuid": None, "message": {"content": "parts"}},
        {"type": "assistant", "sessionId": "s", "uuid": "u", "message": {"content": [{"tool_name": "x"}]}},
        {"type": "summary", "leafUuid": "u", "summary": "projectHash and usageMetadata"},
        # Codex
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "x", "timestamp": "t", "cwd": "/", "version": 3}},
        {"type": "thread.started", "thread_id": "t"},
        {"type": "error", "message": "sessionID"},
        # no transcripts at all
        {"type": "session", "version": "3", "id": "x"},
        {"sessionID": "abc", "type": "text"},
        {"type": "tool.finished", "data": {}, "id": "x"},
        {"type": "init"},
        {},
    ],
)  # fmt: skip
def test_what_only_resembles_one_is_none(row):
    assert lookalike(Sample([row], 0)) is None
    assert lookalike(Sample([row], 0, is_document=True)) is None


def test_one_mark_of_claude_outweighs_a_frame_like_cursors():
    frame = {"type": "system", "subtype": "init", "session_id": "s", "apiKeySource": "x", "permissionMode": "default"}
    claudes = {"type": "assistant", "session_id": "s", "message": {"id": "msg_1", "content": []}}
    assert lookalike(Sample([frame], 0)) == "Cursor"
    assert lookalike(Sample([frame, claudes], 0)) is None


def test_an_empty_sample_is_none():
    assert lookalike(Sample([], 3)) is None


def test_a_lookalike_may_pass_for_any_wire_of_an_agent():
    assert {name for name in BY_NAME if name.startswith(("claude-", "codex-"))} <= RESEMBLED


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_refused_whole_with_its_name(tmp_path, name):
    record, got = Reader(tmp_path).read(OTHERS / name)
    check_conservation(got)
    size = (OTHERS / name).stat().st_size
    assert (record.status, record.wire) == ("refused", "unknown")
    assert got.events == []
    [refusal] = got.refusals
    assert (refusal["reason"], refusal["line"], refusal["bytes"]) == ("other_agent", None, size)
    assert agent_of(name) in refusal["detail"]
    assert (record.row["bytes_read"], record.row["refusals"]) == (size, 1)
    assert "other_agent" in NAMES


def test_a_long_document_is_refused_by_the_names_of_its_keys(tmp_path):
    chat = json.loads((OTHERS / "gemini-chat.json").read_text())
    chat["messages"] *= 2_000
    for name, text in (("one.json", json.dumps(chat)), ("many.json", json.dumps(chat, indent=2))):
        (tmp_path / name).write_text(text)
        record, got = Reader(tmp_path / "lake").read(tmp_path / name)
        assert (record.status, got.reasons()) == ("refused", [(None, "other_agent")])
        assert got.refusals[0]["bytes"] == record.row["bytes_read"] == len(text) > HEAD_BYTES


def test_a_wire_named_by_hand_reads_it_nevertheless(tmp_path):
    record, got = Reader(tmp_path, wire="codex-exec").read(OTHERS / "qwen-stream.jsonl")
    assert (record.status, record.wire) == ("read", "codex-exec")
    assert len(got.events) > 0


def test_compressed_and_in_a_lake(tmp_path):
    lab = Lab(tmp_path)
    for name in FILES:
        lab.write(name, (OTHERS / name).read_bytes())
    lab.write("packed.jsonl.gz", gzip.compress((OTHERS / "pi-session.jsonl").read_bytes() + b"\n"))
    lab.write("ours.jsonl", (FIXTURES / "codex-exec" / "every-item.jsonl").read_bytes())
    report = lab.ingest(jobs=1)
    assert report.refusals_by_reason == {"other_agent": len(FILES) + 1}
    assert (report.files_refused, report.events > 0) == (len(FILES) + 1, True)
    assert lab.failed_checks() == {}
    told = lab.sql("SELECT detail, count(*) FROM refusals WHERE reason = 'other_agent' GROUP BY detail ORDER BY ALL")
    assert [detail.removeprefix("a transcript of ") for detail, _ in told] == sorted(set(NAMES_OF.values()))
    again = lab.ingest(jobs=1)
    assert (again.files_unchanged, again.lines) == (len(FILES) + 2, 0)
