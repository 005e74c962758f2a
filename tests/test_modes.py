"""A lake is private: files 0600 and folders 0700, whatever the umask and whoever wrote them, unless it is --shared."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import events, make_lake, source
from helpers import CANCELED, CLAUDE, EXPORTED, GENERIC, Lab

from analytics import batching, commits, durable
from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id

ROOT = Path(__file__).parents[1]


def modes(lake: Path) -> dict[str, str]:
    """The mode of the lake's folder and of everything in it, as octal text, by its path."""
    paths = [lake, *sorted(lake.rglob("*"))]
    return {str(path.relative_to(lake.parent)): oct(stat.S_IMODE(path.lstat().st_mode)) for path in paths}


def folders_and_files(lake: Path) -> tuple[set[str], set[str]]:
    found = modes(lake)
    folders = {mode for name, mode in found.items() if (lake.parent / name).is_dir()}
    return folders, {mode for name, mode in found.items() if not (lake.parent / name).is_dir()}


def filled(lab: Lab) -> None:
    for sample in (CLAUDE, CANCELED, EXPORTED, GENERIC):
        lab.write(sample.name, sample.read_bytes())
    lab.write("refused.json", b'{"schema_version":"2","experiment":{},"runs":1}')


@pytest.fixture
def umask():
    """Sets the umask for a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077, 0o177])
def test_everything_of_a_lake_is_private_whatever_the_umask(tmp_path, umask, mask):
    lab = Lab(tmp_path)
    filled(lab)
    umask(mask)
    lab.ingest()
    assert folders_and_files(lab.path) == ({"0o700"}, {"0o600"})
    assert modes(lab.path).keys() >= {f"lake/{name}" for name in (".lock", "runlake.json", "open.sql", "_delta_log")}
    assert os.umask(mask) == mask, "the process has its umask back"


def test_it_stays_so_when_it_grows_is_compacted_and_vacuumed(tmp_path, umask):
    lab = Lab(tmp_path)
    filled(lab)
    umask(0)
    lab.ingest()
    for number in range(3):
        (lab.sources / CLAUDE.name).write_bytes(CLAUDE.read_bytes() + b"\n" * number)
        lab.write(f"more-{number}.log", GENERIC.read_bytes() + b"more\n")
        lab.ingest()
    store, _ = Store.open(lab.path).compact()
    store.vacuum_orphans()
    assert store.vacuum_replaced(retention_hours=0)
    lab.ingest(redact=False)  # rewrites runlake.json
    lab.write("last.log", GENERIC.read_bytes() + b"last\n")
    lab.ingest(redact=False)
    assert folders_and_files(lab.path) == ({"0o700"}, {"0o600"})


def test_checkpoints_of_the_log_are_private(tmp_path, umask, monkeypatch):
    """The Delta library writes one on its own after so many commits: a hundred, or as many as the table says."""
    monkeypatch.setitem(commits._TABLE_CONFIG, "delta.checkpointInterval", "10")
    umask(0)
    store = make_lake(tmp_path / "lake", event=events("r1", {"kind": "usage"}), source=[source()])
    first, _ = store.files("event", "metaharness")
    relative = Path(first).relative_to(store.root)
    for number in range(12):
        ingest_id = new_ingest_id()
        path = data_path("event", "metaharness", ingest_id, number)
        with store.private():
            shutil.copyfile(store.root / relative, store.root / path)
        store = store.commit([describe(store.root, path)], [], ingest_id=ingest_id, note="one more")
    assert len(list(store.root.glob("_delta_log/*.checkpoint.parquet"))) == 1
    assert folders_and_files(store.root) == ({"0o700"}, {"0o600"})


@pytest.mark.parametrize("name", [".lock", "open.sql", "views.sql"])
def test_what_is_made_again_is_private_too(tmp_path, umask, name):
    """A lake that was copied without it: the next command makes it anew, under any umask."""
    lab = Lab(tmp_path)
    filled(lab)
    lab.ingest()
    (lab.path / name).unlink()
    umask(0)
    lab.write("more.log", GENERIC.read_bytes() + b"more\n")
    lab.ingest()
    assert (lab.path / name).exists()
    assert folders_and_files(lab.path) == ({"0o700"}, {"0o600"})


@pytest.mark.parametrize("is_new", [True, False])
def test_a_pool_of_processes_writes_private_files(tmp_path, umask, monkeypatch, is_new):
    lab = Lab(tmp_path)
    filled(lab)
    umask(0)
    if not is_new:
        lab.ingest(jobs=1)
        lab.write("more.jsonl", CLAUDE.read_bytes() * 2)
        lab.write("most.jsonl", CLAUDE.read_bytes() * 3)
    monkeypatch.setattr(batching, "SMALL_BYTES", 0)
    monkeypatch.setattr(durable, "make_durable", lambda *_, **__: None)  # which would mend it before the commit
    lab.ingest(jobs=2)
    assert folders_and_files(lab.path) == ({"0o700"}, {"0o600"})


@pytest.mark.parametrize(("mask", "folders", "files"), [
    (0o000, "0o777", "0o666"), (0o002, "0o775", "0o664"), (0o022, "0o755", "0o644"), (0o077, "0o700", "0o600"),
])  # fmt: skip
def test_a_shared_lake_has_the_modes_of_the_umask_and_keeps_them(tmp_path, umask, mask, folders, files):
    lab = Lab(tmp_path)
    filled(lab)
    umask(mask)
    lab.ingest(shared=True)
    lab.write("more.log", GENERIC.read_bytes() + b"more\n")
    lab.ingest()
    Store.open(lab.path).compact()
    assert folders_and_files(lab.path) == ({folders}, {files})


def test_shared_on_the_command_line(tmp_path, umask):
    lab = Lab(tmp_path)
    filled(lab)
    command = [sys.executable, "-m", "analytics", "ingest", str(lab.sources), "--shared", "--lake", str(lab.path)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, umask=0o022)
    assert folders_and_files(lab.path) == ({"0o755"}, {"0o644"})


def test_an_exported_file_is_the_users_own(tmp_path, umask):
    """What a person writes with -o has the modes of a redirected stdout: those of the umask."""
    lab = Lab(tmp_path)
    filled(lab)
    lab.ingest()
    from analytics.cli import run

    umask(0o022)
    assert run(["export", "runs", "-o", str(tmp_path / "out"), "--format", "csv", "--lake", str(lab.path)]) == 0
    assert folders_and_files(tmp_path / "out") == ({"0o755"}, {"0o644"})
