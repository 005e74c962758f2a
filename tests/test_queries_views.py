"""Several views of one session: which of them counts, and for what; and which run the lines of a file belong to."""

from __future__ import annotations

import pytest
from queries_lake import Lake
from queries_native import (
    CODE,
    EXEC,
    ROLLOUT,
    STREAM,
    answer,
    begun,
    call,
    finish,
    harness,
    moved,
    recorded,
    result,
    run,
    running,
)


@pytest.fixture
def lake(tmp_path):
    return lambda *specs: Lake(tmp_path / "lake", specs)


def views(made):
    return made.by_run("runs", "same_run_as", "is_counted")


def total(made, column):
    return sum(row[column] or 0 for row in made.rows("FROM run_metrics WHERE is_counted"))


SESSION = (answer("m1", 5, ts=10), answer("m2", 6, ts=20))


def test_a_finished_capture_stands_for_the_session_it_shows(lake):
    """Its total knows the helper model; the session's agents go with it."""
    made = lake(
        run(CODE, "f", "s", *SESSION),
        run(CODE, "g", "s/x", answer("m3", 9, ts=15), session="", parent="s", agent="x"),
        run(STREAM, "c", "s", begun(), answer("m1", 1), answer("m2", 1), answer("m3", 1), result(40, 30)),
    )
    assert views(made) == {"s": ("s#2", False), "s#2": ("s", True), "s/x": ("s#2", False)}
    assert made.by_run("run_metrics", "requests", "output_tokens") == {"s": (2, 11), "s#2": (3, 30), "s/x": (1, 9)}
    assert (total(made, "output_tokens"), total(made, "requests")) == (30, 3)
    day = made.rows("SELECT day FROM usage WHERE run_id = 's#2'")[0]["day"]
    assert str(day) == "2026-01-01", "a capture has no times: those of the session"


def test_a_killed_capture_gives_way_to_the_session(lake):
    made = lake(
        run(CODE, "f", "s", *SESSION),
        run(STREAM, "c", "s", begun(), answer("m1", 1, final=False)),
    )
    assert views(made) == {"s": ("s#2", True), "s#2": ("s", False)}
    assert made.by_run("run_metrics", "requests", "output_tokens") == {"s": (2, 11), "s#2": (1, 1)}


def test_a_session_that_goes_on_after_the_capture_keeps_the_rest(lake):
    """Only the first process was captured; the second capture was killed."""
    made = lake(
        run(CODE, "f", "s", *SESSION, answer("m4", 7, ts=30), answer("m5", 8, ts=40)),
        run(STREAM, "c", "s", begun(), answer("m1", 1), answer("m2", 1), result(40, 30)),
        run(STREAM, "d", "s", begun(), answer("m4", 1, final=False), digest="later"),
    )
    counted = {name for name, (_, is_counted) in views(made).items() if is_counted}
    assert len(counted) == 2
    assert "s" in counted
    assert (total(made, "output_tokens"), total(made, "requests")) == (45, 4)
    assert made.by_run("run_metrics", "output_tokens")["s"] == 15


def test_a_capture_that_shows_more_than_the_session_shares_with_it(lake):
    """The session's file lost an answer: both count, each request once."""
    made = lake(
        run(CODE, "f", "s", *SESSION, call("c1", ts=21)),
        run(STREAM, "c", "s", begun(), answer("m2", 60), call("c1"), answer("m9", 4), call("c2"), finish("c1")),
    )
    assert views(made) == {"s": ("s#2", True), "s#2": ("s", True)}
    assert made.by_run("run_metrics", "requests", "output_tokens", "tool_calls") == {"s": (2, 65, 1), "s#2": (1, 4, 1)}
    assert made.by_run("tool_calls", "call_id", "state") == {"s": ("c1", "finished"), "s#2": ("c2", "unfinished")}


def test_two_captures_of_a_session_are_two_processes(lake):
    made = lake(
        run(STREAM, "c", "s", begun(), answer("m1", 1), result(40, 30)),
        run(STREAM, "d", "s", begun(), answer("m2", 1), result(4, 3)),
    )
    assert set(views(made).values()) == {(None, True)}
    assert total(made, "output_tokens") == 33


def test_a_rollout_stands_for_the_captures_of_its_thread(lake):
    made = lake(
        run(EXEC, "e", "t", begun(), running("codex-thread:t", 50, 5)),
        run(ROLLOUT, "r", "t", moved("codex:1", 40, 4, ts=5), moved("codex:2", 10, 1, ts=6)),
    )
    assert views(made) == {"t": ("t#2", True), "t#2": ("t", False)}
    assert made.by_run("run_metrics", "wire", "output_tokens") == {"t": (ROLLOUT, 5), "t#2": (EXEC, 5)}


def test_a_harness_run_stands_for_the_session_it_names(lake):
    """A fork of that session copied its answers, which the harness counts."""
    made = lake(
        harness("h", "night", recorded("x1", 5), recorded("x2", 6), session_id="s"),
        run(CODE, "f", "s", *SESSION, call("c1", ts=21)),
        run(CODE, "g", "s/x", answer("m3", 9, ts=15), session="", parent="s"),
        run(CODE, "k", "fork", *SESSION, call("c1", ts=21), answer("m7", 2, ts=50), call("c2"), first={"ts": 40}),
    )
    assert views(made) == {
        "fork": (None, True), "night": ("s", True), "s": ("night", False), "s/x": ("night", False),
    }  # fmt: skip
    assert made.by_run("run_metrics", "requests", "output_tokens", "tool_calls") == {
        "fork": (1, 2, 1), "night": (2, 11, 0), "s": (2, 11, 1), "s/x": (1, 9, 0),
    }  # fmt: skip


def test_a_harness_run_is_found_by_the_requests_it_recorded(lake):
    made = lake(
        harness("h", "night", recorded("m1", 5), recorded("m2", 6)),
        run(CODE, "f", "s", *SESSION, call("c1", ts=21)),
        run(CODE, "k", "resumed", *SESSION, call("c1", ts=21), answer("m7", 2, ts=50), call("c2"), first={"ts": 40}),
    )
    assert views(made) == {"night": ("resumed", True), "resumed": ("night", True), "s": ("night", False)}
    assert made.by_run("run_metrics", "output_tokens", "tool_calls") == {
        "night": (11, 0), "resumed": (2, 1), "s": (11, 1),
    }  # fmt: skip


def test_a_session_keeps_its_id_beside_its_captures(lake):
    """The capture has times too, and earlier ones."""
    made = lake(
        run(STREAM, "c", "s", begun(), answer("m1", 1, ts=1), result(1, 1)),
        run(CODE, "f", "s", answer("m1", 5, ts=10)),
    )
    assert made.by_run("runs", "wire") == {"s": CODE, "s#2": STREAM}


def test_lines_before_the_first_that_names_a_run_belong_to_it(lake):
    nameless = {"wire": CODE, "source": "f", "run": "claude-code-f", "is_shared": True}
    alone = {"wire": CODE, "source": "g", "run": "claude-code-g", "is_shared": True}
    title = {"kind": "system", "event": "ai-title"}
    made = lake(
        nameless | {"rows": [title, title]},
        run(CODE, "f", "s", *SESSION),
        run(CODE, "f", "second", answer("m9", 1, ts=90)),
        alone | {"rows": [title]},
    )
    assert made.by_run("runs", "event_lines", "sources") == {"s": (5, 1), "second": (2, 1), "claude-code-g": (1, 1)}
    events = made.rows("SELECT run_id, line, position FROM events WHERE source_id = 'f' AND part = 0 ORDER BY position")
    assert [(row["run_id"], row["line"]) for row in events][:3] == [("s", 1), ("s", 2), ("s", 3)]
    assert made.rows("FROM check_pieces_of_runs") == []


def test_a_refused_line_belongs_to_the_only_run_of_its_file(lake):
    """Lines before the first that names a run make no second run."""
    nameless = {"wire": CODE, "source": "f", "run": "claude-code-f", "is_shared": True}
    made = lake(
        nameless | {"rows": [{"kind": "system"}, {"refused": "not_json", "run_id": None}]},
        run(CODE, "f", "s", *SESSION),
    )
    assert [row["run_id"] for row in made.rows("FROM refusals")] == ["s"]
    assert made.by_run("run_metrics", "refused_lines", "tokens_are_lower_bound") == {"s": (1, True)}
