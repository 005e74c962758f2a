"""Calls, records, limits and turns that stand in several files or runs."""

from __future__ import annotations

import pytest
from queries_lake import Lake
from queries_native import CODE, EXEC, ROLLOUT, STREAM, answer, begun, call, finish, harness, run, sample


@pytest.fixture
def lake(tmp_path):
    return lambda *specs: Lake(tmp_path / "lake", specs)


def test_a_call_belongs_to_the_run_that_opens_it_first(lake):
    """A fork repeats a call and has its result; a result alone is no call; the vendor's list gives way to the text."""
    deny = {"decision": "deny", "evidence": "result_text", "reason": "rule-denied", "decided_by": "policy"}
    listed = {"decision": "deny", "evidence": "permission_denials", "reason": "listed"}
    made = lake(
        run(CODE, "f", "s", call("c1", ts=10), call("c2", ts=11), call("c3", ts=12), finish("c3", ts=13, **deny)),
        run(
            CODE, "k", "fork", call("c1", ts=10), finish("c1", ts=70), finish("gone", ts=71), call("c3", ts=12),
            finish("c3", ts=72, **deny), {"kind": "tool.decided", "call_id": "c3", "call_scope": "claude", **listed},
            first={"ts": 60},
        ),
        run(EXEC, "e", "t", call("item_0", scope=None), finish("item_0", scope=None)),
        run(EXEC, "e2", "t", call("item_0", scope=None), digest="other"),
    )  # fmt: skip
    calls = made.rows("SELECT run_id, call_id, state, decision_reason FROM tool_calls ORDER BY 1, 2")
    assert [tuple(row.values()) for row in calls] == [
        ("s", "c1", "finished", None),
        ("s", "c2", "unfinished", None),
        ("s", "c3", "denied", "rule-denied"),
        ("t", "item_0", "finished", None),
        ("t#2", "item_0", "unfinished", None),
    ]
    decided = made.rows("SELECT run_id, tool, evidence, reason FROM decisions ORDER BY 3")
    assert [tuple(row.values()) for row in decided] == [
        ("s", "Bash", "permission_denials", "listed"),
        ("s", "Bash", "result_text", "rule-denied"),
    ]
    assert made.by_run("run_metrics", "tool_calls", "denied_calls")["s"] == (3, 1)
    assert made.by_run("run_metrics", "tool_calls", "denied_calls")["fork"] == (0, 0)
    assert [row["call_id"] for row in made.rows("FROM orphan_results")] == ["gone"]


def test_a_copied_record_counts_once_for_the_oldest_source(lake):
    error = {"kind": "error", "status": "529", "message": "overloaded", "event_key": 11}
    retry = {"kind": "retry", "status": "529", "event_key": 12, "attributes": {"attempt": 2}}
    cut = {
        "kind": "compaction",
        "event_key": 13,
        "attributes": {"trigger": "auto", "pre_tokens": 900, "post_tokens": 90},
    }
    limit = {
        "kind": "rate_limit", "event_key": 14, "limit_id": "codex", "limit_window_minutes": 300, "limit_used": 9.0,
        "limit_unit": "percent", "limit_resets_at": 5000,
    }  # fmt: skip
    rows = [error | {"ts": 10}, retry | {"ts": 11}, cut | {"ts": 12}, limit | {"ts": 13}]
    made = lake(
        run(ROLLOUT, "f", "s", *rows, first={"speaks": "limits", "ts": 9}),
        run(ROLLOUT, "g", "s", *rows, error | {"ts": 14, "event_key": 15}, first={"ts": 9}),
        run(ROLLOUT, "k", "fork", *rows, error | {"ts": 70, "event_key": 16}, first={"ts": 60, "speaks": "limits"}),
    )
    columns = ("errors", "retries", "compactions", "rate_limit_samples")
    assert made.by_run("run_metrics", *columns) == {"s": (2, 1, 1, 1), "fork": (1, 0, 0, 0)}
    assert [row["samples"] for row in made.rows("FROM rate_limit_windows")] == [1]
    assert [(r["records"], r["highest_attempt"]) for r in made.rows("FROM api_errors ORDER BY kind")] == [
        (3, None),
        (1, 2),
    ]
    assert [(r["run_id"], r["trigger"], r["tokens_cut"]) for r in made.rows("FROM compactions")] == [("s", "auto", 810)]
    assert len(made.rows("FROM warnings")) == 3


def test_a_window_is_known_by_its_reset_give_or_take(lake):
    """Jitter and a sliding reset are one window; unknown resets are one; the peak stays after a correction."""
    made = lake(
        run(
            ROLLOUT, "a", "a", sample(9000, 40.0, ts=10), sample(9300, 44.0, ts=20), sample(9003, 41.0, ts=30),
            sample(9900, 42.0, ts=40, status="allowed"), sample(10501, 1.0, ts=50), sample(None, 3.0, ts=60),
            sample(None, 2.0, ts=70), first={"speaks": "limits"},
        )
    )  # fmt: skip
    rows = made.rows("FROM rate_limit_windows ORDER BY resets_at NULLS LAST")
    found = [
        (row["resets_at"] and int(row["resets_at"].timestamp()) % 86400, row["resets_at_spread_s"], row["samples"],
         row["peak_used_percent"], row["last_used_percent"], row["last_status"])
        for row in rows
    ]  # fmt: skip
    assert found == [
        (9900, 900, 4, 44.0, 42.0, "allowed"),
        (10501, 0, 1, 1.0, 1.0, None),
        (None, None, 2, 3.0, 2.0, None),
    ]


@pytest.mark.parametrize("speaks", ["tokens", "tokens limits"])
def test_samples_of_a_view_count_where_the_other_cannot_speak_of_limits(lake, speaks):
    made = lake(
        run(CODE, "f", "s", answer("m1", 5, ts=10), first={"speaks": speaks}),
        run(STREAM, "c", "s", begun(), answer("m1", 1), sample(9000, 40.0), first={"speaks": "tokens limits"}),
    )
    assert made.by_run("runs", "same_run_as", "is_counted")["s#2"] == ("s", False)
    assert len(made.rows("FROM rate_limit_windows")) == (1 if speaks == "tokens" else 0)


TURNS = {
    "every turn ended": ([("turn.started", "1"), ("turn.ended", "1")], "closed"),
    "the second is open": ([("turn.started", "1"), ("turn.ended", "1"), ("turn.started", "2")], "open"),
    "no turn is marked": ([], "undecidable"),
    "turns without names": ([("turn.started", None), ("turn.ended", None), ("turn.started", None)], "open"),
}


@pytest.mark.parametrize(("marks", "expected"), TURNS.values(), ids=TURNS)
def test_a_run_is_as_open_as_its_turns(lake, marks, expected):
    rows = [{"kind": kind, "turn_id": turn} for kind, turn in marks]
    made = lake(run(ROLLOUT, "a", "a", *rows))
    assert made.by_run("runs", "completeness") == {"a": expected}


def test_a_turn_may_end_in_another_copy_of_the_file(lake):
    started, ended = {"kind": "turn.started", "turn_id": "x", "ts": 5}, {"kind": "turn.ended", "turn_id": "x", "ts": 6}
    made = lake(run(ROLLOUT, "a", "t", started), run(ROLLOUT, "b", "t", started, ended))
    assert made.by_run("runs", "completeness", "sources") == {"t": ("closed", 2)}


def test_a_run_is_cut_where_its_youngest_source_ends_inside_a_record(lake):
    row = {"kind": "message", "ts": 50}
    made = lake(
        run(CODE, "1", "cut", row, pending_bytes=9),
        run(CODE, "2", "cut before the other", {"kind": "message", "ts": 20}, pending_bytes=9),
        run(CODE, "2", "last in it", {"kind": "message", "ts": 30}),
        run(CODE, "4", "copied on", {"kind": "message", "ts": 20}, pending_bytes=9),
        run(CODE, "5", "copied on", {"kind": "message", "ts": 20}, row),
        run(EXEC, "6", "closed and cut", begun(), {"kind": "turn.ended", "turn_id": "1"}, pending_bytes=9),
    )
    reason = "the source ends inside a record"
    found = made.by_run("runs", "completeness", "completeness_reason")
    assert {name for name, (state, why) in found.items() if (state, why) == ("truncated", reason)} == {
        "cut", "last in it", "closed and cut",
    }  # fmt: skip


def test_unknown_types_are_counted_by_version_and_fields_by_type(lake):
    payload = '{"type":"quasar","message":{"id":"x","content":[]},"note":null}'
    opaque = {"kind": "opaque", "event": "quasar", "payload": payload}
    made = lake(
        run(CODE, "f", "s", opaque, opaque, answer("m1", 5, parts=[{"kind": "opaque", "event": "assistant/hologram"}])),
        run(CODE, "g", "u", opaque, said={"version": "2.1.9"}),
        harness("h", "night", {"refused": "unknown_event"}),
    )
    rows = made.rows("SELECT wire, version, event, kind, records, runs FROM report_coverage_by_type")
    assert {tuple(row.values()) for row in rows} == {
        (CODE, None, "quasar", "opaque", 2, 1),
        (CODE, "2.1.9", "quasar", "opaque", 1, 1),
        (CODE, None, "assistant/hologram", "opaque", 1, 1),
        ("harness-lab", None, None, "refused", 1, 1),
    }
    fields = made.rows("SELECT version, field, records FROM record_fields WHERE event = 'quasar'")
    assert {tuple(row.values()) for row in fields} == {
        (version, field, records)
        for version, records in ((None, 2), ("2.1.9", 1))
        for field in ("type", "message", "note", "message.id", "message.content")
    }
