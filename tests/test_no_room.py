"""No room: a full disk, or a file-size limit, wherever it strikes. One sentence, the old version, and a retry works."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import BLOCKED, CANCELED, CLAUDE, CODEX, EXPORTED, RECORDED, TWO_RUNS, Lab
from killing import Forge

from analytics.lake import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def forge():
    with Forge() as made:
        yield made


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A lake, and sources of which one grew, one was rewritten and some are new. Tests copy it."""
    lab = Lab(tmp_path_factory.mktemp("before"))
    grows = lab.write("grows.jsonl", CLAUDE.read_bytes()[:5000])
    rewritten = lab.write("rewritten.jsonl", CODEX.read_bytes())
    lab.write("beside.jsonl", RECORDED.read_bytes())
    lab.ingest()
    grows.write_bytes(CLAUDE.read_bytes())
    rewritten.write_bytes(TWO_RUNS.read_bytes())
    for stream in (BLOCKED, CANCELED, EXPORTED):
        lab.write(stream.name, stream.read_bytes())
    after = Lab(lab.folder, "after")
    shutil.copytree(lab.path, after.path)
    after.ingest()
    lab.after = after.content()
    return lab


def copied(lab: Lab, folder: Path) -> Lab:
    """Another lake like it, over the same sources."""
    other = Lab(lab.folder)
    other.path = folder / "lake"
    shutil.copytree(lab.path, other.path)
    return other


def parquets(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.glob("record=*/*/*.parquet")}


# where the limit begins to hold, and how many bytes it leaves: the first files, those of rewritten sources, the
# ledger's, the log's, the first of the two files for the shell
PLACES = {
    "an event file": [2000, None],
    "a file without the rewritten source": [2000, "analytics.withdrawal.without_sources"],
    "a ledger file": [2000, "analytics.ingest._Run.source_files"],
    "the log": [500, "deltalake.DeltaTable.create_write_transaction"],
}
LIMITED = "file too large. Raise the file-size limit (ulimit -f) and run the same command again."


@pytest.mark.parametrize("place", PLACES)
def test_a_file_size_limit_in_an_ingest(before, forge, tmp_path, place):
    lab = copied(before, tmp_path)
    was, files, said = lab.content(), parquets(lab.path), lab.metrics() if place == "the log" else []
    command = ["ingest", lab.sources, "--lake", lab.path]
    done = forge.run(*command, limit=PLACES[place])
    assert done["code"] == 1
    assert done["err"].startswith("Error: Could not ")
    assert LIMITED in done["err"]
    assert str(lab.path) in done["err"]
    assert (done["out"], done["err"].count("\n")) == ("", 1)
    assert lab.content() == was
    assert said == (lab.metrics() if place == "the log" else []), "reports say what they said"
    assert parquets(lab.path) == files, "what the failed one wrote takes no room"
    assert forge.run(*command)["code"] == 0
    assert lab.content() == before.after


def test_a_file_size_limit_in_the_files_for_the_shell(before, forge, tmp_path):
    """The commit stands, and can be read, also by commands that would write those files and cannot."""
    lab = copied(before, tmp_path)
    command = ["ingest", lab.sources, "--lake", lab.path]
    done = forge.run(*command, limit=[100, "analytics.lake.Store._publish"])
    assert (done["code"], done["err"]) == (1, f"Error: Could not write {lab.path}/open.sql: {LIMITED}\n")
    version = Store.open(lab.path).version
    assert f"lake_version = {version};" not in (lab.path / "open.sql").read_text()
    asked = forge.run(
        "sql", "SELECT count(*) AS n FROM sources", "--format", "csv", "--lake", lab.path, limit=[100, None]
    )
    assert (asked["code"], asked["out"], asked["err"]) == (0, "n\n6\n", "")
    assert forge.run(*command)["code"] == 0
    assert f"lake_version = {version};" in (lab.path / "open.sql").read_text(), "an ingest of nothing mends it"
    assert lab.content() == before.after


@pytest.mark.parametrize("place", [[2000, None], [500, "deltalake.DeltaTable.create_write_transaction"]])
def test_a_file_size_limit_in_compact(before, forge, tmp_path, place):
    lab = copied(before, tmp_path)
    lab.ingest()
    was, files = lab.content(), parquets(lab.path)
    done = forge.run("compact", "--lake", lab.path, limit=place)
    assert done["code"] == 1
    assert LIMITED in done["err"]
    assert str(lab.path) in done["err"]
    assert lab.content() == was
    assert parquets(lab.path) == files
    assert forge.run("compact", "--lake", lab.path)["code"] == 0
    assert lab.content() == was


@pytest.mark.parametrize("place", [[100, None], [3000, None], [500, "analytics.commits.create_table_with_add_actions"]])
def test_a_file_size_limit_in_the_making_of_a_lake(before, forge, tmp_path, place):
    lab = Lab(before.folder)
    lab.path = tmp_path / "new"
    command = ["ingest", lab.sources, "--lake", lab.path]
    done = forge.run(*command, limit=place)
    assert done["code"] == 1
    assert LIMITED in done["err"]
    assert forge.run(*command)["code"] == 0
    assert {name: len(rows) for name, rows in lab.content().items()} == {
        name: len(rows) for name, rows in before.after.items()
    }


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, small enough to be filled."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


STEPS = pytest.mark.parametrize("step_kib", [60, pytest.param(28, marks=pytest.mark.long)])


@STEPS
@pytest.mark.parametrize("command", ["ingest", "compact"])
def test_a_full_disk(before, forge, small_disk, command, step_kib):
    """With no room at all, then with more and more: at each amount it fails with one sentence or is done."""
    lab = copied(before, small_disk)
    arguments = ["ingest", lab.sources, "--lake", lab.path]
    if command == "compact":
        lab.ingest()
        arguments = ["compact", "--lake", lab.path]
    was, files = lab.content(), parquets(lab.path)
    ballast = small_disk / "ballast"
    failed = []
    for free in range(0, 4 << 20, step_kib << 10):
        with ballast.open("wb") as file:
            room = shutil.disk_usage(small_disk).free
            file.write(b"\0" * max(0, room - free))
        done = forge.run(*arguments)
        if done["code"] == 0:
            break
        failed.append(done["err"])
        assert done["code"] == 1
        assert (done["out"], done["err"].count("\n")) == ("", 1)
        assert str(lab.path) in done["err"]
        assert "no space left on device. Free some space and run the same command again;" in done["err"]
        if "open.sql" in done["err"] or "views.sql" in done["err"]:  # the commit stands, see above
            assert lab.content() == before.after
        else:
            assert lab.content() == was
            assert parquets(lab.path) == files
        ballast.unlink()
    assert len(failed) >= 2, "it struck in several places"
    assert lab.content() == before.after
    ballast.unlink()
    asked = forge.run("check", "--lake", lab.path)
    assert asked["code"] == 0, asked
