"""What a command loads and writes before it answers; `benchmarks/startup.py` has the seconds, a thing of machines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import CORPUS, ROOT

from analytics import open_lake
from analytics.ingest import ingest

HEAVY = frozenset({"deltalake", "duckdb", "msgspec", "numpy", "polars", "pyarrow", "rich", "scipy", "altair"})
READERS = frozenset({"analytics.engines.local", "analytics.redact", "analytics.worker", "concurrent.futures"})
SPY = """
import json, sys
from analytics.cli import run
from analytics.withoutpandas import hide_pandas
hide_pandas()  # as the console script does
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""

# command → what of HEAVY it may load
MAY_LOAD = {
    ("--help",): set(),
    ("report", "--help"): set(),
    ("compare", "--help"): set(),
    ("version",): set(),
    ("report",): {"duckdb", "rich"},
    ("report", "token_usage", "--by", "day", "--since", "2026-01-01"): {"duckdb", "rich"},
    ("report", "coverage", "--format", "csv"): {"duckdb"},
    ("runs", "--where", "completeness <> 'closed'"): {"duckdb", "rich"},
    ("ingest", "in"): {"numpy", "pyarrow", "rich"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with streams in `in`, all of them in the lake `lake`."""
    place = tmp_path_factory.mktemp("startup")
    shutil.copytree(CORPUS / "metaharness", place / "in")
    ingest(place / "lake", [place / "in"])
    return place


def loaded(*arguments, cwd):
    environment = {name: value for name, value in os.environ.items() if name != "RUNLAKE_LAKE"}
    done = subprocess.run(
        [sys.executable, "-c", SPY, *arguments], cwd=cwd, env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


@pytest.mark.parametrize("arguments", MAY_LOAD, ids=" ".join)
def test_a_command_loads_only_what_it_needs(folder, arguments):
    modules = loaded(*arguments, cwd=folder)
    assert modules & HEAVY <= MAY_LOAD[arguments]
    assert not modules & READERS


def test_the_api_loads_nothing_until_it_is_used():
    done = subprocess.run(
        [sys.executable, "-c", "import analytics, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert not set(done.stdout.split()) & HEAVY


def state_of(lake):
    """Everything that a write would change; the lock's file says who held it last."""
    return {
        str(path): (info.st_ino, info.st_size, info.st_mtime_ns)
        for path in sorted(lake.rglob("*"))
        if path.name != ".lock"
        for info in [path.stat()]
    }


def test_an_ingest_of_nothing_new_writes_nothing(folder):
    before = state_of(folder / "lake")
    done = ingest(folder / "lake", [folder / "in"])
    assert done.files_unchanged > 0
    assert (done.files_new, done.lines, done.version) == (0, 0, 1)
    assert state_of(folder / "lake") == before


OPENED = """
import sys
from analytics.ingest import ingest
seen = []
sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event == "open" else None)
ingest("lake", ["in"])
assert any("record=source" in path or "_delta_log" in path for path in seen)
print(*[path for path in seen if "/in/" in path or path.startswith("in/")], sep="\\n")
"""


def test_an_ingest_of_nothing_new_opens_no_source(folder):
    done = subprocess.run(
        [sys.executable, "-c", OPENED], cwd=folder, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == []


def test_a_report_asked_again_writes_nothing(folder):
    with open_lake(folder / "lake") as lake:  # what a moved or upgraded lake wants is written by now
        lake.report("coverage").fetchall()  # and what this report builds on is kept
    before = state_of(folder / "lake")
    loaded("report", "coverage", cwd=folder)
    assert state_of(folder / "lake") == before


def test_pandas_is_never_loaded(folder, tmp_path):
    """Where it is installed, pyarrow would load it to look whether Python values are its own."""
    (tmp_path / "pandas.py").write_text("import os\nos.write(2, b'pandas was loaded')\nos._exit(7)\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    asked = subprocess.run(
        [sys.executable, "-c", "import pyarrow; pyarrow.array([1])"], env=environment, capture_output=True, text=True
    )
    assert (asked.returncode, asked.stderr) == (7, "pandas was loaded")  # what is kept from happening below
    for command in (
        ("ingest", folder / "in", "--lake", tmp_path / "one", "--jobs", "1"),
        ("ingest", folder / "in", "--lake", tmp_path / "two", "--jobs", "2"),
        ("status", "--lake", folder / "lake"),
        ("compact", "--lake", tmp_path / "two"),  # the shared lake keeps its version
        ("report", "overview", "--lake", folder / "lake", "--format", "parquet", "-o", tmp_path / "overview.parquet"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "analytics", *command], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
