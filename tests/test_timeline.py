"""A run step by step: what is shown first and last, silences, turns, what became of calls."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from helpers import CLAUDE, Lab

from analytics.cli import run
from analytics.timeline import Step, Story, facts, told

BEGIN = datetime(2026, 9, 1, 12, tzinfo=UTC)


def row(seconds=None, turn=None, **figures):
    made = defaultdict(lambda: None, kind="message", turn_id=turn, **figures)
    made["ts"] = None if seconds is None else BEGIN + timedelta(seconds=seconds)
    return made


def heard(rows, limit=0):
    *first, story = told(rows, limit)
    assert all(isinstance(step, Step) for step in first)
    assert isinstance(story, Story)
    return first, story


@pytest.mark.parametrize(
    ("count", "limit", "early", "late", "left_out"),
    [
        (5, 0, 5, 0, 0),
        (5, 5, 4, 1, 0),
        (6, 6, 4, 2, 0),
        (100, 6, 4, 2, 94),
        (3, 1, 1, 0, 2),
        (100_000, 9, 6, 3, 99_991),
    ],
)
def test_the_first_two_thirds_and_the_last_third_are_shown(count, limit, early, late, left_out):
    first, story = heard((row(n, position=n) for n in range(count)), limit)
    assert (len(first), len(story.last), story.left_out) == (early, late, left_out)
    shown = [step.row["position"] for step in (*first, *story.last)]
    assert shown == [*range(early), *range(count - late, count)]


def test_a_minute_without_a_record_is_a_silence():
    first, story = heard([row(0), row(59.9), row(None), row(119.9), row(119.9 + 3600)])
    assert [step.silence_ms for step in first] == [None, None, None, 60_000, 3_600_000]
    assert (story.silences, story.longest_silence_ms) == (2, 3_600_000)
    assert [step.ms for step in first] == [0, 59_900, None, 119_900, 3_719_900]


def test_a_turn_begins_where_its_name_changes():
    first, story = heard([row(turn=None), row(turn="a"), row(turn=None), row(turn="a"), row(turn="b"), row(turn="a")])
    assert [step.turn for step in first] == [None, "a", None, None, "b", "a"]
    assert story.turns == 3


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"call_state": "finished", "call_ms": 1200, "call_error": False}, "→ finished, 1.2 s"),
        ({"call_state": "finished", "call_error": True, "call_exit_code": 1, "call_decision": "allow"},
         "→ allow, finished, failed, exit 1"),
        ({"call_state": "denied", "call_decision": "deny", "call_ms": 5}, "→ denied"),
        ({"call_state": "unfinished"}, "→ no result"),
        ({"call_state": "undecidable"}, "→ result not known"),
        ({"limit_id": "five_hour", "limit_used": 0.5, "limit_unit": "fraction"}, "five_hour  50 %"),
        ({"input_tokens": 1200, "output_tokens": 0}, "in 1,200  out 0"),
    ],
)  # fmt: skip
def test_what_a_step_says(figures, said):
    assert facts(row(**figures)) == said


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """One run: its start, 3,000 messages, its end."""
    lab = Lab(tmp_path_factory.mktemp("long"))
    lines = [json.loads(line) for line in CLAUDE.read_bytes().splitlines()]
    first, last = lines[0], lines[-1]
    texts = [line for line in lines if "text" in line]
    assert texts
    made = [first, *(texts[0] | {"text": f"word {n}"} for n in range(3000)), last]
    for seq, line in enumerate(made):
        line["seq"] = seq + first["seq"]
    lab.write("long.jsonl", "".join(json.dumps(line) + "\n" for line in made).encode())
    lab.ingest()
    return lab


def test_show_says_how_many_steps_it_left_out(long_run, capfd):
    ((run_id,),) = long_run.sql("SELECT run_id FROM runs")
    assert run(["show", run_id, "--limit", "9", "--lake", str(long_run.path)]) == 0
    lines = capfd.readouterr().out.splitlines()
    (note,) = [line for line in lines if "left out" in line]
    steps = long_run.sql("SELECT count(DISTINCT position) FROM transcript")[0][0]
    assert note.strip() == f"… {steps - 9:,} steps left out; --limit 0 shows all …"
    assert lines.index(note) < len(lines) - 4
    assert run(["show", run_id, "--limit", "0", "--lake", str(long_run.path)]) == 0
    assert "word 2999" in capfd.readouterr().out


def test_by_default_a_long_run_is_bounded(long_run, capfd):
    ((run_id,),) = long_run.sql("SELECT run_id FROM runs")
    assert run(["show", run_id, "--lake", str(long_run.path)]) == 0
    assert 1000 < len(capfd.readouterr().out.splitlines()) < 1020
