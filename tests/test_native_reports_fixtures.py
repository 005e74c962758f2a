"""Transcripts whose sums were done by hand: fork families, restarts, glued lines, progress rows, results, resumes.

`fixtures/native_reports/answers.json` holds the sums, what they give, and what wrong ways give.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES
from native_read import Answers

FOLDER = FIXTURES / "native_reports"
IDEAS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())


@pytest.fixture(scope="module", params=["at once", "one by one from the last"])
def lake(request, tmp_path_factory):
    """All ideas in one lake: read at once, or a file of each at a time."""
    batches: list[list[Path]] = []
    for idea in IDEAS:
        for place, file in enumerate(sorted((FOLDER / idea).rglob("*.jsonl"), reverse=True)):
            batches += [[]] * (place == len(batches))
            batches[place] = [*batches[place], file]
    together = [file for batch in batches for file in batch]
    got = Answers.of(tmp_path_factory.mktemp("ideas"), *([together] if request.param == "at once" else batches))
    yield got
    got.lake.close()


@pytest.fixture(params=IDEAS)
def read(request, lake):
    """One idea: what is said of it, and the runs of its files."""
    own = {row["run_id"] for row in lake.events if f"/native_reports/{request.param}/" in row["path"]}
    return IDEAS[request.param], lake.only(own.__contains__)


def about(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


def test_each_run(read):
    said, got = read
    for run, figures in said["runs"].items():
        row = got.metric[run] | {"parent_run_id": got.run[run]["parent_run_id"]}
        assert {name: row[name] for name in figures} == {name: about(value) for name, value in figures.items()}, run


def test_all_runs_and_no_naive_value(read):
    said, got = read
    assert {name: got.total(name) for name in said["all"]} == {
        name: about(value) for name, value in said["all"].items()
    }
    for way, figures in said["naive"].items():
        assert {name: got.total(name) for name in figures} != figures, way
        assert all(got.total(name) != value for name, value in figures.items()), way


def test_sums_agree(lake):
    assert lake.sums_disagree() == []


def test_runs_are_those_named(read):
    said, got = read
    processes = sum(len(rows) for rows in said.get("processes", {}).values())
    assert len(got.counted()) == (processes or len(said["runs"]))


def test_processes_of_a_thread(read):
    """Each process is a run; which of its names it bears is not said here."""
    said, got = read
    for thread, rows in said.get("processes", {}).items():
        own = [row for row in got.metrics if row["run_id"].startswith(thread)]
        columns = ("input_tokens", "cache_read_tokens", "output_tokens", "tool_calls")
        assert sorted([row[name] for name in columns] for row in own) == sorted(rows)


def test_models_and_refused_lines(read):
    said, got = read
    if "by_model" in said:
        found: Counter[str] = Counter()
        for row in got.usage:
            found[row["model"]] += row["output_tokens"]
        assert found == said["by_model"]
    refused = {(row["path"].split("/")[-1], row["line"]) for row in got.refusals if row["run_id"] is not None}
    right = {tuple(place) for place in said.get("refused", ())}
    assert right <= refused <= right | {tuple(place) for place in said.get("may_be_refused", ())}


def test_nothing_is_wrong_with_the_lake(lake):
    assert {name: rows for name, found in lake.lake.check().items() if (rows := found.fetchall())} == {}
