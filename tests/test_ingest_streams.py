"""However a stream comes in, in one piece or in many, its rows are the same, and give its bytes back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import (
    BLOCKED,
    CANCELED,
    CLAUDE,
    CODEX,
    EXPORTED,
    GENERIC,
    LEDGER,
    RECORDED,
    TWO_RUNS,
    Lab,
    Reader,
    check_conservation,
    rebuild,
)
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from analytics import blocks, feeding, reading

BOM = b"\xef\xbb\xbf"
SECRET = b"sk-ant-api03-" + b"Ab3dE5fG7h" * 9 + b"AA"
BARE = b"".join(json.dumps(json.loads(line)["event"]).encode() + b"\n" for line in RECORDED.read_bytes().splitlines())
STREAMS = {
    "claude": CLAUDE.read_bytes(),
    "codex": CODEX.read_bytes(),
    "two runs": TWO_RUNS.read_bytes(),
    "records": RECORDED.read_bytes(),
    "bare events": BARE,
    "ledger": LEDGER.read_bytes(),
    "canceled": CANCELED.read_bytes(),
    "generic": GENERIC.read_bytes(),
    "events": BLOCKED.read_bytes(),
    "exported": EXPORTED.read_bytes(),
}
# what a line of a stream may turn into; each is a refusal (or, in generic stdout, plain text), never the end of reading
JUNK = (
    b"",
    b"   ",
    b"\t\r",
    b"\r",
    b"{}",
    b"[]",
    b"null",
    b"{",
    b"}",
    b'{"a":1}{"b":2}',
    b"\xff\xfe",
    b'{"a":"\xff"}',
    b"\0\0\0",
    b'{"a":NaN}',
    b"plain text",
    "zażółć gęślą\u2028jaźń".encode(),
    b'{"a":"\\ud800"}',
    b'{"a":{"a":' * 40,
    b"[" * 3000,
    b'{"a":123456789012345678901234567890}',
    b"\xef\xbb\xbf",
    b"\x0b",
    b"\x0c",
    b"{'a': 1}",
    b'{"kind":"usage","input_tokens":1e400}',
)


EDITS = ("junk", "blank", "drop", "cr", "tail", "torn", "secret", "glued", "move", "twice")


@st.composite
def streams(draw):
    """A sample stream, damaged here and there, and places to cut it."""
    name = draw(st.sampled_from(sorted(STREAMS)))
    lines = STREAMS[name].split(b"\n")
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        edit = draw(st.sampled_from(EDITS))
        if edit == "junk":
            lines.insert(at, draw(st.sampled_from(JUNK)))
        elif edit == "blank":
            lines.insert(at, draw(st.sampled_from((b"", b" ", b"\t", b"\r"))))
        elif edit == "drop" and len(lines) > 1:
            del lines[at]
        elif edit == "twice":
            lines.insert(at, lines[at])
        elif edit == "move":
            line = lines.pop(at)
            lines.insert(draw(st.integers(0, len(lines))), line)
        elif edit == "cr":
            lines = [line + b"\r" for line in lines]
        elif edit == "tail":
            lines[at] += b" and more"
        elif edit == "torn":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
        elif edit == "secret":
            lines[at] = lines[at].replace(b'":"', b'":"' + SECRET + b" ", 1)
        elif edit == "glued" and at + 1 < len(lines):
            lines[at : at + 2] = [lines[at] + lines[at + 1]]
    data = b"\n".join(lines)
    if draw(st.integers(0, 4)) == 0:
        data = BOM + data
    cuts = draw(st.lists(st.integers(1, max(1, len(data))), max_size=4))
    return data, cuts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hypothesis runs a test many times: one folder serves them all."""
    return tmp_path_factory.mktemp("streams")


EXAMPLES = int(os.environ.get("RUNLAKE_EXAMPLES", "20"))  # per property; a longer search is one variable away
quick = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(streams())
def test_a_stream_that_grows_gives_what_the_whole_gives(folder: Path, made):
    data, cuts = made
    path, reader = folder / "grows", Reader(folder)
    path.write_bytes(data)
    whole = reader.read(path)[1]
    grown = reader.grow(path, data, cuts)
    reader.clear()
    assert grown.comparable() == whole.comparable()


@quick
@given(streams(), st.sampled_from((64, 1000)))
def test_the_size_of_a_block_does_not_show(folder: Path, made, size):
    data, _ = made
    path = folder / "blocks"
    path.write_bytes(data)
    reader = Reader(folder)
    whole = reader.read(path)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeding, "BLOCK_BYTES", size)
        patch.setattr(reading, "HEAD_BYTES", 2048)  # the first block is what was looked at to know the wire
        small = reader.read(path)[1]
        patch.setattr(blocks, "CHUNK_LINES", 1)
        closely = reader.read(path)[1]
    reader.clear()
    assume((small.wire, small.source["shape"]) == (whole.wire, whole.source["shape"]))  # so little may not tell it
    assert small.comparable() == whole.comparable()
    assert closely.comparable() == whole.comparable()


@quick
@given(streams())
def test_every_line_is_counted_and_every_byte_given_back(folder: Path, stream):
    data, _ = stream
    path, reader = folder / "bytes", Reader(folder, redact=False)
    path.write_bytes(data)
    record, made = reader.read(path)
    reader.clear()
    if record.status == "read":
        check_conservation(made)
        assert rebuild(made) == data
    else:
        assert made.events == []


@quick
@given(streams())
def test_spaced_json_says_the_same(folder: Path, made):
    data, _ = made
    spaced = b"\n".join(respaced(line) for line in data.split(b"\n"))
    path, reader = folder / "spaced", Reader(folder)
    said = []
    for text in (data, spaced):
        path.write_bytes(text)
        one = reader.read(path)[1]
        said.append(
            (
                one.wire,
                [without_spelling(row) for row in one.events],
                [(row["line"], row["reason"], row["run_id"], row["seq"]) for row in one.refusals],
            )
        )
    reader.clear()
    assert said[1] == said[0]


def without_spelling(row):
    """An event row without what the spelling of its line decides; a line taken as plain text is as long as it is."""
    spelling = {"payload", "byte_offset", "raw"} | ({"text_chars"} if row["event"] == "plain_text" else set())
    return {name: value for name, value in row.items() if name not in spelling}


def respaced(line: bytes) -> bytes:
    """The same JSON object with spaces where JSON allows them; other lines as they are."""
    if not line.startswith(b"{"):
        return line
    try:
        json.loads(line)
    except ValueError:
        return line
    out, inside, escaped = bytearray(), False, False
    for octet in line.rstrip(b"\r"):
        char = bytes([octet])
        if inside:
            out += char
            inside, escaped = escaped or char != b'"', char == b"\\" and not escaped
        elif char == b'"':
            out += char
            inside = True
        elif char in b":,{[":
            out += char + b" "
        elif char in b"}]":
            out += b" " + char
        else:
            out += char
    return bytes(out)


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_cut_at_each_line_end_and_inside_each_line(folder: Path, name):
    data = STREAMS[name]
    path, reader = folder / "each", Reader(folder)
    path.write_bytes(data)
    whole = reader.read(path)[1]
    ends = [at + 1 for at, octet in enumerate(data) if octet == 10]
    grown = reader.grow(path, data, sorted({cut for end in ends for cut in (end, max(1, end - 7))}))
    reader.clear()
    assert grown.comparable() == whole.comparable()


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("way", ["crlf", "bom", "blank lines"])
def test_line_ends_marks_and_blank_lines_change_no_fact(folder: Path, name, way):
    data = STREAMS[name]
    path, reader = folder / "ways", Reader(folder, redact=False)
    path.write_bytes(data)
    plain = reader.read(path)[1]
    if way == "crlf":
        changed = data.replace(b"\n", b"\r\n")
    elif way == "bom":
        changed = BOM + data
    else:
        changed = data.replace(b"\n", b"\n \n")
    path.write_bytes(changed)
    other = reader.read(path)[1]
    reader.clear()
    hidden = {"line", "byte_offset", "payload", "raw", "text_chars"}
    facts = [[{k: v for k, v in row.items() if k not in hidden} for row in one.events] for one in (plain, other)]
    assert facts[1] == facts[0]
    assert [row["reason"] for row in other.refusals] == [row["reason"] for row in plain.refusals]
    assert rebuild(other) == changed
    check_conservation(other)
    assert other.source["has_bom"] is (way == "bom")


@pytest.mark.parametrize("order", ["a text before the start", "a result before its request", "two results"])
def test_lines_out_of_order_are_read_alike_whatever_the_cut(folder: Path, order):
    stream = CODEX if order.startswith("a text") else CLAUDE
    lines = stream.read_bytes().splitlines(keepends=True)
    if order == "a text before the start":
        text = next(line for line in lines if b'"event":"text"' in line)
        lines = [text, lines[0], text]
    else:
        request = next(line for line in lines if b'"event":"tool.requested"' in line and b"toolu_01" in line)
        result = next(line for line in lines if b'"event":"tool.result"' in line and b"toolu_01" in line)
        lines = (
            [lines[0], result, request]
            if order == "a result before its request"
            else [lines[0], request, result, result]
        )
    data = b"".join(lines)
    path, reader = folder / "order", Reader(folder)
    path.write_bytes(data)
    whole = reader.read(path)[1]
    grown = reader.grow(path, data, [sum(map(len, lines[:n])) for n in range(1, len(lines))])
    reader.clear()
    assert grown.events == whole.events


def test_a_secret_in_a_tail_is_counted_once(folder: Path):
    first, second = CLAUDE.read_bytes().splitlines(keepends=True)[:2]
    data = first + second.replace(b'":"', b'":"' + SECRET + b" ", 1)
    path, reader = folder / "tail", Reader(folder)
    grown = reader.grow(path, data, [len(data) - 1])
    reader.clear()
    assert grown.source["redactions"] == 1


def test_a_stream_of_one_line_is_read(folder: Path):
    """The naive sniffer takes a single object for a document, and a run cut after its first event is lost."""
    reader = Reader(folder)
    kinds = {}
    for name, data in STREAMS.items():
        path = folder / "one"
        line = next(one for one in data.splitlines() if one.startswith(b"{"))
        path.write_bytes(line + b"\n")
        kinds[name] = reader.read(path)[0].wire
    reader.clear()
    assert "unknown" not in kinds.values(), kinds


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_byte_order_mark_may_come_in_pieces(tmp_path, cut):
    data = b"\xef\xbb\xbf" + CLAUDE.read_bytes()
    lab = Lab(tmp_path)
    path = lab.write("a.jsonl", data[:cut])
    lab.ingest(wire="metaharness")
    path.write_bytes(data)
    lab.ingest(wire="metaharness")
    lines = data.count(b"\n")
    assert lab.sql("SELECT has_bom, event_lines, refusals, status FROM sources") == [(True, lines, 0, "read")]
