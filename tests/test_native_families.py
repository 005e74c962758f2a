"""Random families of copies against the truth kept while writing them: nothing twice, nothing lost, any order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from native_families import Sessions, Threads, Truth
from native_make import File
from native_read import Answers

SEEDS = range(3)  # a lake of twenty families each


def read(folder: Path, files: dict[str, Any], rng: random.Random) -> Answers:
    """The files in a random order, in two batches."""
    written = []
    for name, file in files.items():
        assert isinstance(file, File)
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        written.append(path)
    rng.shuffle(written)
    half = rng.randint(1, len(written) - 1)
    return Answers.of(folder, written[:half], written[half:])


@pytest.mark.parametrize("seed", SEEDS)
def test_threads(seed, tmp_path):
    """Forks of forks, restarts, repeated totals, lost events and lost parents: each run has what it spent itself."""
    rng, truth = random.Random(f"threads {seed}"), Truth()
    files: dict[str, Any] = {}
    for number in range(20):
        files |= Threads(f"f{number:02}", rng).tell(truth)
    got = read(tmp_path, files, rng)
    wrong = []
    for run, figures in truth.runs.items():
        row = got.metric[run]
        found = {name: row[name] or 0 for name in figures}
        if found != figures:
            wrong.append((run, figures, found))
    assert wrong == []
    assert got.sums_disagree() == []
    got.lake.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions(seed, tmp_path):
    """Branches, mirrors with other request ids, checkpoints and lost originals: one row an answer, over all files."""
    rng, truth = random.Random(f"sessions {seed}"), Truth()
    files: dict[str, Any] = {}
    for number in range(20):
        family = Sessions(f"g{number:02}", rng)
        files |= {f"g{number:02}/{name}": file for name, file in family.tell(truth).items()}
    got = read(tmp_path, files, rng)
    found = {name: got.total(name) for name in truth.total if name != "unfinished"}
    found["unfinished"] = len(got.states("unfinished"))
    assert found == dict(truth.total)
    assert got.sums_disagree() == []
    got.lake.close()
