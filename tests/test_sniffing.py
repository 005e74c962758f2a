"""A source is recognised however long its first line is, and whatever stands before its first record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import Reader, Reading

from analytics.reading import begun_object
from analytics.tasks import FileRecord

LONG = "rope " * 80_000  # 400 kB: longer than what is looked at first
WHO = {"sessionId": "5e55-1", "timestamp": "2026-05-04T10:00:00.000Z", "version": "2.1.120", "uuid": "u-1"}
USED = {"input_tokens": 3, "output_tokens": 5}


def lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def claude(words: str) -> dict[str, Any]:
    return WHO | {"type": "user", "message": {"role": "user", "content": words}}


def answer(**more: Any) -> dict[str, Any]:
    message = {
        "id": "msg_1",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": USED,
        "stop_reason": "end_turn",
    }
    return {"type": "assistant", "message": message, **more}


def read(folder: Path, data: bytes) -> tuple[FileRecord, Reading]:
    path = folder / "input.log"
    path.write_bytes(data)
    return Reader(folder).read(path)


META = {"timestamp": WHO["timestamp"], "type": "session_meta", "payload": {"id": "7e-1", "instructions": "short"}}
HOOK = {"type": "system", "subtype": "hook_response", "session_id": "s-1", "uuid": "u-0", "output": LONG}
CAPTURED = answer(session_id="s-1", uuid="u-1", parent_tool_use_id=None)
NOISE = [{"level": 30, "msg": f"step {n}"} for n in range(40)]
UNHEARD = [{"type": "tide", "sessionId": "5e55-1", "uuid": f"t-{n}"} for n in range(40)]


@pytest.mark.parametrize(
    ("data", "wire", "rows"),
    [
        (lines(claude(LONG), WHO | answer()), "claude-code", 2),
        (lines(META | {"payload": {"id": "7e-1", "base_instructions": LONG}}, META), "codex-rollout", 2),
        (lines(HOOK, CAPTURED), "claude-stream", 2),
        (b"npm notice\n" * 40_000 + lines(CAPTURED), "claude-stream", 40_001),
        (lines(*NOISE, CAPTURED), "claude-stream", 41),
        (lines(*NOISE, {"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"}), "codex-exec", 42),
        (lines(*UNHEARD, WHO | answer()), "claude-code", 41),
    ],
)  # fmt: skip
def test_recognised(tmp_path: Path, data: bytes, wire: str, rows: int) -> None:
    record, reading = read(tmp_path, data)
    assert (record.wire, record.row["event_lines"], reading.refusals) == (wire, rows, [])


def test_foreign_lines_in_a_log_do_not_name_it(tmp_path: Path) -> None:
    gemini = {"type": "result", "status": "success", "stats": {"total_tokens": 5}}
    record, _ = read(tmp_path, lines(gemini, CAPTURED, CAPTURED, CAPTURED))
    assert (record.wire, record.status) == ("claude-stream", "read")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a":1,"b":{"c":[1,2],"d":"cut', {"a": 1, "b": {"c": [1, 2]}}),
        (b' { "a" : null , "b', {"a": None}),
        (b'{"a":"cu', {}),
        (b"plain", {}),
        (b'{"a":[{"b":1},{', {}),
    ],
)
def test_what_a_cut_object_says(text: bytes, said: dict[str, Any]) -> None:
    assert begun_object(text) == said
