"""The quick reader of the Delta log gives what the Delta library gives, or leaves the log to it."""

from __future__ import annotations

import json
import shutil

import pytest
from conftest import CORPUS
from deltalake import DeltaTable
from helpers import CLAUDE, CODEX, Lab

from analytics.commits import files_of
from analytics.deltalog import read_log
from analytics.lake import Store


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A lake whose versions add, replace and compact: a source is rewritten, another grows."""
    lab = Lab(tmp_path_factory.mktemp("log"), name="a lake, 100 % full")
    lab.write("one.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    lab.write("two.jsonl", CODEX.read_bytes())
    lab.ingest()
    lab.write("one.jsonl", CODEX.read_bytes().replace(b'"run":"', b'"run":"other-'))
    lab.ingest()
    lab.ingest(CORPUS / "claude")
    Store.open(lab.path).compact()
    return lab


def library(root, version=None):
    table = DeltaTable(str(root), version=version)
    return table.version(), files_of(table)


def test_every_version_is_as_the_library_reads_it(lab):
    newest, _ = library(lab.path)
    assert newest >= 5
    for version in [None, *range(newest + 1)]:
        assert read_log(lab.path, version) == library(lab.path, version), version
    assert any('"remove"' in path.read_text() for path in (lab.path / "_delta_log").glob("*.json"))


@pytest.fixture
def copy(lab, tmp_path):
    shutil.copytree(lab.path, tmp_path / "lake")
    return tmp_path / "lake"


def test_a_log_with_a_checkpoint_is_the_librarys(copy):
    before = Store.open(copy)
    DeltaTable(str(copy)).create_checkpoint()
    assert read_log(copy, None) is None
    assert Store.open(copy) == before


def edited(copy, number, change):
    path = copy / "_delta_log" / f"{number:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    change(actions)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_a_log_that_asks_more_of_its_readers_is_the_librarys(copy):
    def change(actions):
        (protocol,) = [action["protocol"] for action in actions if "protocol" in action]
        protocol |= {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
        protocol["writerFeatures"] = ["deletionVectors"]

    edited(copy, 0, change)
    assert read_log(copy, None) is None


@pytest.mark.parametrize("damage", ["a hole", "no first version", "torn", "no statistics", "not JSON"])
def test_a_log_that_is_not_whole_is_the_librarys(copy, damage):
    log = copy / "_delta_log"
    if damage == "a hole":
        (log / f"{2:020d}.json").unlink()
    elif damage == "no first version":
        (log / f"{0:020d}.json").unlink()
    elif damage == "torn":
        path = log / f"{1:020d}.json"
        path.write_text(path.read_text()[:-40])
    elif damage == "not JSON":
        (log / f"{1:020d}.json").write_text("<html>\n")
    else:
        edited(copy, 1, lambda actions: [action["add"].pop("stats") for action in actions if "add" in action])
    assert read_log(copy, None) is None


def test_a_version_that_is_not_there_is_left_to_the_library(lab):
    assert read_log(lab.path, 1000) is None
    assert read_log(lab.path, -1) is None


def test_what_a_killed_writer_left_is_no_version(copy):
    before = read_log(copy, None)
    (copy / "_delta_log" / "00000000000000000099.json.tmp").write_text('{"add": {}}')
    (copy / "_delta_log" / "_commit_0c1d.json.tmp").write_text("{")
    assert read_log(copy, None) == before
