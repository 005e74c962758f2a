"""Homes full of known counting traps: whatever way they are written and read, the numbers are those of truth.json."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from native_homes import REWRITES, found, is_rollout, lines, make, write
from native_make import Rollout, dump
from native_read import Answers

SIZES = {"3x6": (3, 6), "7x5": (7, 5), "12x9": (12, 9)}
# the middle size in every way, the others as they are and in all ways at once
WAYS = [("7x5", way) for way in REWRITES] + [
    (size, way) for size in ("3x6", "12x9") for way in ("as it is", "all of it")
]


def read(folder: Path, size: tuple[int, int], way: str, seed: int) -> tuple[Answers, dict[str, object]]:
    """A home, read in two batches in a random order, and then all of it once more."""
    home, truth = make(folder / "made", *size)
    files = write(folder / "home", home, REWRITES[way], seed)
    half = random.Random(seed).randint(1, len(files) - 1)
    got = Answers.of(folder, files[:half], files[half:])
    before = got.lake.version
    got.lake.ingest(folder / "home")
    assert got.lake.version == before, "a second reading makes no new version"
    return got, truth


@pytest.mark.parametrize(("size", "way"), [pytest.param(*one, id=" ".join(one)) for one in WAYS])
def test_truth(size, way, tmp_path):
    got, truth = read(tmp_path, SIZES[size], way, seed=len(way))
    assert found(got) == truth
    assert got.sums_disagree() == []
    got.lake.close()


def test_a_naive_reader_is_wrong(tmp_path):
    """The traps are real: rows summed give three times the requests, and repeated totals count again."""
    home, truth = make(tmp_path, 3, 6)
    rows = sum(b'"type":"assistant"' in line for data in home.values() for line in lines(data)[0])
    events = sum(b'"total_token_usage"' in line for data in home.values() for line in lines(data)[0])
    assert rows > 2 * truth["claude"]["messages"]
    assert events > truth["codex"]["turns"]


def test_the_first_row_of_a_copied_request_says_its_day_whatever_came_first(tmp_path):
    """The copy read before the original owns nothing afterwards: by day the lakes are equal."""
    home, _ = make(tmp_path / "made", 3, 6)
    files = write(tmp_path / "home", home, (), 1)
    one = Answers.of(tmp_path, *([file] for file in files), name="one")
    other = Answers.of(tmp_path, *([file] for file in reversed(files)), name="other")
    assert one.by_day == other.by_day
    columns = ("run_id", "requests", "output_tokens", "tool_calls", "denied_calls")
    assert [[row[name] for name in columns] for row in one.metrics] == [
        [row[name] for name in columns] for row in other.metrics
    ]


def test_a_rollout_cut_between_an_event_and_its_repetition_counts_it_twice(tmp_path):
    """What cannot hold: no session_meta, no turn id, and the repeated total is the first thing the second file says."""
    home, truth = make(tmp_path / "made", 1, 3)
    path, data = next((path, data) for path, data in home.items() if is_rollout(path))
    whole, _ = lines(data)
    again = max(
        n for n in range(1, len(whole)) if whole[n - 1].split(b'"payload"')[1] == whole[n].split(b'"payload"')[1]
    )
    parts = {
        path: b"".join(line + b"\n" for line in whole[:again]),
        path.with_name("rest.jsonl"): b"".join(line + b"\n" for line in whole[again:]),
    }
    got = Answers.of(tmp_path, write(tmp_path / "home", parts, (), 0))
    assert found(got)["codex"]["output"] == truth["codex"]["output"] + 101, "the second request's output, once more"


def test_a_call_and_its_output_in_two_files(tmp_path):
    """Call ids of an agent are unique in the lake: the rest of a cut file ends the call, though it names no thread."""
    first, second = "call_00000000000000c1", "call_00000000000000c2"
    one = Rollout("t-1").turn("u-1").spend(100, 0, 5).call(first).output(first).call(second)
    cut = len(one.rows)
    one.output(second).spend(200, 0, 6).done("u-1")
    paths = [tmp_path / "rest.jsonl", tmp_path / "begin.jsonl"]
    paths[0].write_bytes(dump(one.rows[cut:]))
    paths[1].write_bytes(dump(one.rows[:cut]))
    got = Answers.of(tmp_path, paths)
    assert [(row["call_id"], row["state"]) for row in got.calls] == [
        (first, "finished"),
        (second, "finished"),
    ]
    assert (got.total("requests"), got.total("output_tokens")) == (2, 11)


@settings(max_examples=5, deadline=None)
@given(
    size=st.tuples(st.integers(1, 5), st.integers(2, 7)),
    way=st.sampled_from(sorted(REWRITES)),
    seed=st.integers(0, 1_000),
)
def test_any_home_in_any_way(size, way, seed):
    with tempfile.TemporaryDirectory() as folder:
        got, truth = read(Path(folder), size, way, seed)
        assert found(got) == truth
        assert got.sums_disagree() == []
        got.lake.close()
