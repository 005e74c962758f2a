"""`runlake compact` leaves what reports build on: the first report over its version reads it and computes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CORPUS

from analytics import factfiles, keeping, kept, open_lake
from analytics.api import MAIN_REPORTS
from analytics.cli import run
from analytics.ingest import ingest
from analytics.lake import Store
from analytics.sqlrun import Session

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """A lake of two small commits, which a compaction brings together."""
    lake = tmp_path_factory.mktemp("keeping") / "lake"
    ingest(lake, sorted((CORPUS / "metaharness").rglob("*.jsonl"))[::2])
    ingest(lake, [CORPUS / "metaharness", CORPUS / "platonic-core"])
    return lake


@pytest.fixture
def lake(ingested, tmp_path):
    return shutil.copytree(ingested, tmp_path / "lake")


@pytest.fixture(scope="module")
def computed(ingested):
    """What the main reports say of these events, from the events themselves."""
    session = Session(Store.open(ingested), sandboxed=False)
    return {name: session.relation(f"FROM report_{name}").fetchall() for name in MAIN_REPORTS}


@pytest.fixture
def compact(lake, capfd):
    """Runs the command over the lake; its exit code, the facts on stdout, and stderr."""

    def call(*switches):
        code = run(["compact", "--lake", str(lake), "--format", "json", *switches])
        out, err = capfd.readouterr()
        return code, json.loads(out)[0], err

    return call


def files(lake: Path, store: Store | None = None) -> dict[str, tuple[int, int]]:
    """What is kept for a version, else for the newest, and half-written: inode and time of change by name."""
    folder = lake / "_facts" / factfiles.key_of(store or Store.open(lake))
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("*")}


ALL = {f"{name}.parquet" for name in factfiles.KEPT}


def reported(lake: Path) -> dict[str, list[tuple]]:
    with open_lake(lake) as opened:
        return {name: opened.report(name).fetchall() for name in MAIN_REPORTS}


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_first_report_afterwards_computes_nothing(lake, compact, computed, monkeypatch, size):
    if size == "large":
        monkeypatch.setattr(kept, "FEW_EVENTS", -1)
        monkeypatch.setattr(kept, "HANDFUL_EVENTS", -1)
    code, said, err = compact()
    assert (code, said["version"], err) == (0, 3, "")
    before = files(lake)
    assert before.keys() == ALL
    monkeypatch.setattr(factfiles.FactFiles, "_put", lambda *_: pytest.fail("it computes"))
    with open_lake(lake) as opened:
        for path in lake.glob("record=event/*/*.parquet"):
            path.unlink()  # who asked for an event would fail
        assert {name: opened.report(name).fetchall() for name in MAIN_REPORTS} == computed
        assert files(lake, opened.store) == before


def test_with_nothing_to_compact_it_keeps_what_is_missing(lake, compact):
    assert compact("--no-facts")[1]["files_before"] > 0
    assert files(lake) == {}
    code, said, _ = compact()
    assert (code, said["version"], said["files_before"]) == (0, 3, 0)
    before = files(lake)
    assert before.keys() == ALL
    (lake / "_facts").joinpath(factfiles.key_of(Store.open(lake)), "run_metrics.parquet").unlink()
    assert compact()[0] == 0
    after = files(lake)
    assert {name for name in ALL if after[name] != before[name]} == {"run_metrics.parquet"}


def test_of_a_long_keeping_one_sentence_tells(lake, compact, monkeypatch):
    monkeypatch.setattr(keeping, "LONG_S", 0)
    code, _, err = compact()
    assert code == 0
    assert re.fullmatch(r"Version 3 is committed\. Now computing .*: 0 of 11 relations are kept\.\n", err)


def test_what_stands_in_the_way_is_told_and_no_failure(lake, compact, computed):
    (lake / "_facts").write_text("not a folder")
    code, said, err = compact()
    assert (code, said["version"]) == (0, 3)
    assert re.fullmatch(
        r"Version 3 is committed, but .* could not be kept: .*_facts.*The first report computes it\.\n", err
    )
    assert reported(lake) == computed


def test_python_compacts_keeps_and_moves_on(lake, computed):
    with open_lake(lake) as opened:
        saved = opened.compact()
        assert (opened.version, saved.files_after < saved.files_before) == (3, True)
        assert files(lake).keys() == ALL
        assert {name: opened.report(name).fetchall() for name in MAIN_REPORTS} == computed


def test_python_is_warned_of_what_could_not_be_kept(lake):
    (lake / "_facts").write_text("not a folder")
    with open_lake(lake) as opened:
        with pytest.warns(UserWarning, match="could not be kept"):
            opened.compact()
        assert opened.version == 3
        opened.compact(facts=False)


ACCIDENT = """
import os, resource, signal, sys
from analytics import cli, factfiles

def kill(real, beside, path):
    if path.name == "run_states.parquet":
        os.kill(os.getpid(), signal.SIGKILL)
    return real(beside, path)

def confine(real, *arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    return real(*arguments)

deed, *arguments = sys.argv[1:]
owner, name = {"kill": (factfiles, "_place"), "confine": (factfiles.FactFiles, "provide")}[deed]
real = getattr(owner, name)
setattr(owner, name, lambda *given: globals()[deed](real, *given))
sys.exit(cli.run(arguments))
"""


def struck(lake: Path, deed: str) -> subprocess.CompletedProcess:
    """The command in a process of its own, to which something happens while it keeps."""
    return subprocess.run(
        [sys.executable, "-c", ACCIDENT, deed, "compact", "--lake", str(lake)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_limit_of_the_operating_system_is_told_and_no_failure(lake, computed):
    done = struck(lake, "confine")
    assert done.returncode == 0, done.stderr
    assert "Version 3 is committed, but what its reports build on could not be kept" in done.stderr
    assert "File too large" in done.stderr
    assert files(lake) == {}
    assert reported(lake) == computed


def test_killed_while_it_keeps_it_leaves_a_good_lake(lake, computed, compact):
    assert struck(lake, "kill").returncode == -signal.SIGKILL
    assert Store.open(lake).version == 3
    left = files(lake)
    assert left.keys() > {"run_pieces.parquet", "piece_links.parquet"}
    assert [name for name in left if name.endswith(".tmp")], "it died with a file half in place"
    assert reported(lake) == computed
    with open_lake(lake) as opened:
        assert {name: rows for name, found in opened.check().items() if (rows := found.fetchall())} == {}
    assert compact()[0] == 0
    assert files(lake).keys() >= ALL
