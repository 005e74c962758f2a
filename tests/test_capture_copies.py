"""A capture and a copy of it that is not the same to the byte are one process (native.md section 2, rule 9)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from native_make import Capture, Exec, Rollout, model_usage, tool, usage

from analytics import open_lake


def capture(session: str = "5e55aaaa-0000-4000-8000-00000000000c") -> Capture:
    """Two results: the totals are 10/50, then 30/120; two answers, one call, two denials listed twice."""
    made = Capture(session).init()
    made.answer("msg_a", usage(10, 5), tool("toolu_a"))
    made.reply("toolu_a").ended(usage(10, 50), {"m": model_usage(10, 50, cost=0.1)}, cost=0.1)
    made.init().answer("msg_b", usage(20, 5))
    made.limit("five_hour", "allowed", 1_780_000_000)
    return made.ended(usage(20, 70), {"m": model_usage(30, 120, cost=0.3)}, cost=0.3)


COPIES: dict[str, Callable[[bytes], bytes]] = {
    "cut in a turn": lambda data: b"".join(data.splitlines(keepends=True)[:3]),
    "cut after a result": lambda data: b"".join(data.splitlines(keepends=True)[:4]),
    "other line endings": lambda data: data.replace(b"\n", b"\r\n"),
    "between other text": lambda data: b"+ run the agent\nwarming up\n" + data + b"exit 0\n",
    "cut in a line": lambda data: data[:-40],
    "a row twice": lambda data: b"".join(data.splitlines(keepends=True)[:1]) + data,
}


@pytest.mark.parametrize("names", [("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")])
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_adds_nothing(tmp_path: Path, how: str, names: tuple[str, str]) -> None:
    data = capture().data
    (tmp_path / names[0]).write_bytes(data)
    (tmp_path / names[1]).write_bytes(COPIES[how](data))
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest([tmp_path / names[1]])
    lake.ingest([tmp_path])
    found = lake.sql(
        "SELECT input_tokens, output_tokens, requests, tool_calls, tool_calls_unfinished, rate_limit_samples, "
        "round(cost_usd, 6), completeness, outcome FROM run_metrics"
    ).fetchall()
    assert found == [(30, 120, 2, 1, 0, 1, 0.3, "closed", "success")]
    assert lake.sql("SELECT sum(input_tokens), sum(output_tokens) FROM token_usage_by_day").fetchall() == [(30, 120)]


def test_two_processes_of_a_session_stay_two(tmp_path: Path) -> None:
    session = "5e55aaaa-0000-4000-8000-00000000000d"
    first, second = Capture(session).init(), Capture(session, process=2).init()
    first.answer("msg_a", usage(10, 5)).ended(usage(10, 50), {"m": model_usage(10, 50)})
    second.answer("msg_b", usage(7, 5)).ended(usage(7, 9), {"m": model_usage(7, 9)})
    (tmp_path / "a.jsonl").write_bytes(first.data)
    (tmp_path / "b.jsonl").write_bytes(second.data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest([tmp_path])
    found = lake.sql("SELECT run_id, input_tokens, output_tokens FROM run_metrics ORDER BY run_id").fetchall()
    assert {row[0] for row in found} == {session, f"{session}#2"}
    assert {row[1:] for row in found} == {(10, 50), (7, 9)}


def test_a_rollout_without_tokens_does_not_hide_those_of_its_capture(tmp_path: Path) -> None:
    thread = "019f0000-0000-7000-8000-00000000000e"
    rollout, printed = Rollout(thread), Exec(thread)
    rollout.turn("019f0000-0000-7000-8000-0000000000aa").event("token_count", info=None, rate_limits=None)
    (tmp_path / "rollout.jsonl").write_bytes(rollout.data)
    (tmp_path / "printed.jsonl").write_bytes(printed.turn().done(250, 150, 30).data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest([tmp_path])
    found = lake.sql("SELECT wire, total_tokens FROM run_metrics WHERE is_counted").fetchall()
    assert found == [("codex-exec", 280)]
