"""Usage of the agents' own files: which row of a request counts, whose it is, and how sure its figures are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from queries_lake import Lake
from queries_native import CODE, EXEC, ROLLOUT, STREAM, answer, begun, call, moved, result, run, running


@pytest.fixture
def lake(tmp_path):
    return lambda *specs: Lake(tmp_path / "lake", specs)


def test_a_request_counts_once_with_its_fullest_row(lake):
    made = lake(
        run(
            CODE, "s", "a",
            answer("m1", 3, ts=10, final=None), answer("m1", 88, ts=12, tokens=11), answer("m1", 88, ts=11, tokens=9),
            answer("m2", None, ts=13, tokens=None),
        )
    )  # fmt: skip
    rows = made.rows("SELECT request_id, input_tokens, output_tokens, ts, is_lower_bound FROM usage ORDER BY 1")
    assert [(r["request_id"], r["input_tokens"], r["output_tokens"], r["ts"].second) for r in rows] == [
        ("m1", 11, 88, 10),
        ("m2", None, None, 13),
    ]
    assert [row["is_lower_bound"] for row in rows] == [True, True], "the run's total, of which both are parts"
    assert made.by_run("run_metrics", "requests", "output_tokens") == {"a": (2, 88)}


def test_a_copied_request_belongs_to_the_oldest_source(lake):
    """The copy begins with a row of its own, and holds the fullest row of the second answer."""
    made = lake(
        run(
            CODE, "copy", "b", answer("m1", 8, ts=10), answer("m2", 70, ts=20), answer("m3", 5, ts=90), first={"ts": 80}
        ),
        run(CODE, "old", "a", answer("m1", 8, ts=10), answer("m2", 7, ts=20), first={"ts": 9}),
        run(CODE, "only a copy", "c", answer("m1", 8, ts=10), answer("m2", 7, ts=20), first={"ts": 95}),
    )
    figures = made.by_run("run_metrics", "requests", "input_tokens", "output_tokens", "tokens_are_lower_bound")
    assert figures == {"a": (2, 20, 78, False), "b": (1, 10, 5, False), "c": (0, 0, 0, False)}
    assert made.by_run("runs", "models") == {"a": ["larch"], "b": ["larch"], "c": None}


@pytest.mark.parametrize("filters", [{"run": "b"}, {"since": datetime(2026, 1, 1, 0, 1, tzinfo=UTC)}])
def test_who_owns_does_not_depend_on_what_one_asks_for(lake, filters):
    """A report of the copy alone shows what the copy adds, as the whole report does."""
    made = lake(
        run(CODE, "old", "a", answer("m1", 8, ts=10), call("c1"), first={"ts": 9}),
        run(
            CODE,
            "copy",
            "b",
            answer("m1", 8, ts=110),
            call("c1"),
            call("c2"),
            answer("m2", 5, ts=120),
            first={"ts": 80},
        ),
    )
    assert made.by_run("run_metrics", "requests", "output_tokens", "tool_calls", **filters) == {"b": (1, 5, 1)}


def test_a_request_whose_figures_may_grow_is_a_lower_bound(lake):
    specs = [
        run(CODE, "1", "not final", answer("m1", 3, final=False), answer("m2", 3)),
        run(CODE, "2", "no figures", answer("m3", None, tokens=None), answer("m4", 2)),
        run(CODE, "3", "damaged", answer("m5", 3), {"refused": "not_json"}, answer("m6", 3)),
        run(CODE, "4", "cut", answer("m7", 3), pending_bytes=20),
        run(CODE, "5", "sure", answer("m8", 3)),
        run(CODE, "6", "unknown type refused", answer("m9", 3), {"refused": "unknown_event"}, answer("m10", 3)),
    ]
    found = lake(*specs).by_run("run_metrics", "tokens_are_lower_bound", "requests_not_final", "completeness")
    assert found == {
        "not final": (True, 1, "undecidable"),
        "no figures": (True, 0, "undecidable"),
        "damaged": (True, 0, "undecidable"),
        "cut": (True, 0, "truncated"),
        "sure": (False, 0, "undecidable"),
        "unknown type refused": (False, 0, "undecidable"),
    }


def test_totals_of_turns_replace_the_rows(lake):
    rows = [begun(), answer("m1", 1), answer("m2", 1), result(100, 40, side=[(7, 2, "helper")])]
    made = lake(
        run(STREAM, "c", "whole", *rows),
        run(STREAM, "o", "goes on", *rows[:1], answer("n1", 1), result(50, 20), begun("2"), answer("n2", 1)),
        run(STREAM, "u", "no usage by model", begun(), answer("k1", 1), result(9, 3, final=False)),
    )
    figures = made.by_run("run_metrics", "requests", "input_tokens", "output_tokens", "tokens_are_lower_bound")
    assert figures == {
        "whole": (2, 107, 42, False),
        "goes on": (2, 50, 20, True),
        "no usage by model": (1, 9, 3, True),
    }
    why = made.rows("SELECT DISTINCT why FROM usage_observations WHERE run_id = 'whole' ORDER BY 1")
    assert [row["why"] for row in why] == ["replaced by the total of the run", "total of the turn"]


def test_a_series_of_runs_counts_the_differences_of_its_total(lake):
    """The second capture counts the first's total too; in the third one part fell: a new count began."""
    specs = [
        run(EXEC, "2", "t", begun(), running("thread", 300, 30, read=200, reasoning=4), session=""),
        run(
            EXEC, "1", "t", begun(), running("thread", 60, 6, read=30), running("thread", 100, 10, read=50), session=""
        ),
        run(EXEC, "3", "t", begun(), running("thread", 500, 5, read=100), session=""),
    ]
    made = lake(*specs)
    columns = ("input_tokens", "cache_read_tokens", "uncached_input_tokens", "output_tokens", "reasoning_tokens")
    assert made.by_run("run_metrics", *columns) == {
        "t": (100, 50, 50, 10, None),
        "t#2": (200, 150, 50, 20, None),
        "t#3": (500, 100, 400, 5, None),
    }
    assert made.rows("SELECT run_id, source_id FROM run_pieces ORDER BY 1")[0] == {"run_id": "t", "source_id": "1"}
    assert {row["usage_source"] for row in made.rows("FROM usage")} == {"cumulative"}


def test_a_failed_turn_makes_the_total_a_lower_bound(lake):
    unknown = {"kind": "usage", "usage_scope": "delta"}
    made = lake(
        run(
            EXEC, "1", "t", begun(), running("thread", 5, 1), begun("2"),
            {"kind": "turn.ended", "turn_id": "2", "status": "failed", "parts": [unknown]},
        )
    )  # fmt: skip
    assert made.by_run("run_metrics", "input_tokens", "tokens_are_lower_bound", "completeness") == {
        "t": (5, True, "closed")
    }
    assert {row["is_lower_bound"] for row in made.rows("FROM usage")} == {True}


def test_five_minutes_is_what_is_left_of_the_hour(lake):
    made = lake(
        run(
            CODE, "f", "s", answer("m1", 5, cache_write_tokens=100, cache_write_1h_tokens=40),
            answer("m2", 5, cache_write_tokens=7),
        )
    )  # fmt: skip
    columns = ("cache_write_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
    assert made.by_run("run_metrics", *columns) == {"s": (107, 60, 40)}
    assert made.by_run("token_usage_by_run", *columns) == {"s": (107, 60, 40)}


def test_sums_by_run_day_and_model_agree(lake):
    made = lake(
        run(CODE, "copy", "b", answer("m1", 8, ts=10), answer("m2", 70, ts=20), answer("m3", 5, ts=90000)),
        run(CODE, "old", "a", answer("m1", 8, ts=10), answer("m2", 7, ts=20), first={"ts": 9}),
        run(CODE, "f", "s", answer("n1", 5, ts=10), answer("n2", 6, ts=20)),
        run(STREAM, "c", "s", begun(), answer("n1", 1), answer("n2", 1), result(40, 30, side=[(1, 1, "helper")])),
        run(ROLLOUT, "r", "t", moved("codex:1", 40, 4, ts=5)),
    )
    assert made.rows("FROM check_sums_agree") == []
    days = made.rows("SELECT day, output_tokens FROM token_usage_by_day ORDER BY 1")
    assert [(str(row["day"]), row["output_tokens"]) for row in days] == [("2026-01-01", 113), ("2026-01-02", 5)]


def test_usage_by_effort_and_speed(lake):
    made = lake(
        run(CODE, "f", "s", answer("m1", 5, effort="high", speed="standard"), answer("m2", 6, effort="high")),
        run(CODE, "g", "u", answer("m3", 7, effort="high", speed="standard"), answer("m4", 1)),
    )
    rows = made.rows("SELECT effort, speed, usage_rows, output_tokens FROM effort ORDER BY 1, 2")
    assert [tuple(row.values()) for row in rows] == [
        ("high", "standard", 2, 12),
        ("high", None, 1, 6),
        (None, None, 1, 1),
    ]


def test_the_context_grows_with_each_request_and_is_cut(lake):
    """Requests of a subagent inside a capture are not of the main chain."""
    gauge = {"context_tokens": 700, "context_window_tokens": 1000}
    made = lake(
        run(
            CODE, "f", "s", answer("m1", 5, ts=10, tokens=10, read=90), answer("m2", 5, ts=20, tokens=10, read=400),
            {"kind": "compaction", "event_key": 3, "ts": 30, "attributes": {"pre_tokens": 415, "post_tokens": 60}},
        ),
        run(
            STREAM, "c", "p", begun(), answer("n1", 5, read=80), answer("n2", 5, read=70, parent_call_id="c1"),
            result(9, 9, context_window_tokens=None),
        ),
        run(
            ROLLOUT, "r", "t", moved("codex:1", 5, 5, ts=5, **gauge),
            {"kind": "system", "ts": 6, "context_tokens": 90},
        ),
    )  # fmt: skip
    rows = made.rows("SELECT run_id, context_tokens, used_percent, is_last FROM context_size ORDER BY run_id, position")
    assert [tuple(row.values()) for row in rows] == [
        ("p", 90, None, True),
        ("s", 100, None, False),
        ("s", 410, None, False),
        ("s", 60, None, True),
        ("t", 700, 70.0, False),
        ("t", 90, None, True),
    ]
    report = made.rows("SELECT run_id, compactions, last_context_tokens FROM report_context_size ORDER BY run_id")
    assert [tuple(row.values()) for row in report] == [("p", 0, 90), ("s", 1, 60), ("t", 0, 90)]


def test_agents_are_linked_to_their_parent_with_their_share(lake):
    made = lake(
        run(
            CODE, "f", "s", answer("m1", 20, ts=10), said={"cwd": "/project", "git_branch": "main", "version": "2.1.9"}
        ),
        run(CODE, "g", "s/x", answer("m3", 50, ts=15), session="", parent="s", agent="x"),
        run(ROLLOUT, "r", "child", moved("codex:1", 5, 5, ts=5), parent="gone", said={"agent_nickname": "Larch"}),
        run(ROLLOUT, "q", "fork", moved("codex:2", 5, 5, ts=5), parent="gone", said={"forked_from": "gone"}),
    )
    rows = made.rows("SELECT parent_run_id, run_id, agent, total_tokens, share_percent FROM subagents ORDER BY run_id")
    assert [tuple(row.values()) for row in rows] == [
        ("gone", "child", "Larch", 10, None),
        ("s", "s/x", "x", 60, pytest.approx(100 * 60 / 90)),
    ]
    assert made.by_run("runs", "working_directory", "git_branch", "agent_version")["s"] == ("/project", "main", "2.1.9")
    spent = made.rows("SELECT directory, total_tokens FROM report_token_usage_by_directory")
    assert [tuple(row.values()) for row in spent] == [(None, 80), ("/project", 30)]


def test_what_a_cache_gave_is_a_share_of_the_input_that_says_so(lake):
    """a: 30 of 40 from the cache; b says nothing of a cache; of c nobody says whether its input holds the cache."""
    split = {"input_tokens": 10, "cache_read_tokens": 30, "cache_write_tokens": 0, "input_includes_cache": False}
    silent = {"input_tokens": 1000, "input_includes_cache": None}
    open_ = {"input_tokens": 7, "cache_read_tokens": 500, "input_includes_cache": None}
    made = lake(
        run(CODE, "s1", "a", answer("m1", 1, ts=10) | split),
        run(CODE, "s2", "b", answer("m2", 1, ts=20) | silent),
        run(CODE, "s3", "c", answer("m3", 1, ts=30) | open_),
    )
    (row,) = made.rows(
        "SELECT input_tokens_with_cache_known AS known, cache_read_percent AS share FROM report_cache_share"
    )
    assert row == {"known": 40, "share": 75}
    (row,) = made.rows("SELECT input_tokens, cache_read_percent AS share FROM report_tokens_by_day")
    assert row == {"input_tokens": 1047, "share": 75}
