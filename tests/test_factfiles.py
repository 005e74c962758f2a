"""What reports over a large lake build on is kept inside the lake: the same rows, never those of another version."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from conftest import CORPUS
from queries_lake import Lake as HandmadeLake

from analytics import factfiles, kept, open_lake, vacuum
from analytics.api import MAIN_REPORTS
from analytics.ingest import ingest
from analytics.lake import Store
from analytics.sqlrun import Session


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Of a small lake tables are kept in memory as well; of a large one files are all."""
    if request.param == "large":
        monkeypatch.setattr(kept, "FEW_EVENTS", -1)
        monkeypatch.setattr(kept, "HANDFUL_EVENTS", -1)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    lake = tmp_path_factory.mktemp("facts") / "lake"
    ingest(lake, [CORPUS / "metaharness", CORPUS / "platonic-core"])
    return lake


@pytest.fixture
def lake(ingested, tmp_path, size):
    return shutil.copytree(ingested, tmp_path / "lake")


def rows(lake, name, **filters):
    with open_lake(lake) as opened:
        found = opened.table(name, **filters)
        return found.columns, [str(type_) for type_ in found.types], sorted(map(repr, found.fetchall()))


def files(lake):
    return sorted(path.relative_to(lake / "_facts") for path in (lake / "_facts").rglob("*.*"))


@pytest.fixture(scope="module")
def handmade(tmp_path_factory):
    """The runs of tests/fixtures/queries, which hold all that is hard; what is computed of them is kept in memory."""
    specs = json.loads((Path(__file__).parent / "fixtures" / "queries" / "lake.json").read_text(encoding="utf-8"))
    return HandmadeLake(tmp_path_factory.mktemp("handmade"), specs).session


@pytest.mark.parametrize("name", factfiles.KEPT)
def test_a_file_gives_back_names_types_and_rows(handmade, tmp_path, name):
    computed = handmade.relation(f"FROM {name}")
    file = tmp_path / "kept.parquet"
    computed.to_parquet(str(file))
    read = handmade._cursor(None).sql(f"FROM read_parquet('{file}')")
    assert (read.columns, read.types) == (computed.columns, computed.types)
    assert sorted(map(repr, read.fetchall())) == sorted(map(repr, computed.fetchall()))


def test_reports_are_the_same_computed_and_kept(lake):
    with open_lake(lake) as opened:
        session = Session(opened.store, sandboxed=False)
        first = {name: opened.report(name).fetchall() for name in MAIN_REPORTS}
        computed = {name: session.relation(f"FROM report_{name}").fetchall() for name in MAIN_REPORTS}
    assert first == computed
    with open_lake(lake, sandboxed=True) as opened:
        assert {name: opened.report(name).fetchall() for name in MAIN_REPORTS} == computed
    assert {path.stem for path in files(lake)} == set(factfiles.KEPT) - {"runs"}


def test_the_second_time_the_events_are_not_read(lake):
    first = rows(lake, "run_metrics")
    with open_lake(lake) as opened:
        for path in lake.glob("record=event/*/*.parquet"):
            path.unlink()
        assert sorted(map(repr, opened.table("run_metrics").fetchall())) == first[2]


def test_the_sandbox_computes_reads_and_still_walls_in(lake):
    with open_lake(lake, sandboxed=True) as opened:
        runs = opened.sql("SELECT count(*) FROM run_metrics").fetchall()
        assert files(lake)
        beside = next((lake / "_facts").rglob("*.parquet")).with_name("beside.parquet")
        shutil.copy(next((lake / "_facts").rglob("run_pieces.parquet")), beside)
        with pytest.raises(Exception, match="Permission"):
            opened.sql(f"FROM read_parquet('{beside}')").fetchall()
    assert runs == [(len(rows(lake, "run_metrics")[2]),)]


def test_a_new_version_has_files_of_its_own(lake, tmp_path):
    before = rows(lake, "token_usage")
    assert before[2]
    old = {path.parts[0] for path in files(lake)}
    ingest(lake, [CORPUS / "harness-lab"])
    with open_lake(lake) as opened:
        fresh = Session(opened.store, sandboxed=False).relation("FROM token_usage").fetchall()
    assert rows(lake, "token_usage")[2] == sorted(map(repr, fresh)) != before[2]
    assert len({path.parts[0] for path in files(lake)} - old) == 1
    with open_lake(lake, version=1) as opened:
        assert sorted(map(repr, opened.table("token_usage").fetchall())) == before[2]


def test_another_text_of_a_query_has_files_of_its_own(lake, monkeypatch):
    store = Store.open(lake)
    key = factfiles.key_of(store)
    text = factfiles.sqlfiles.views_sql()
    monkeypatch.setattr(factfiles.sqlfiles, "views_sql", lambda: text + "-- changed\n")
    assert factfiles.key_of(store) != key


def test_filters_are_computed(lake):
    whole = rows(lake, "run_metrics")
    one = whole[2][0].split("'")[1]
    assert rows(lake, "run_metrics", run=one)[2] == [whole[2][0]]
    assert len(rows(lake, "run_metrics", wire="platonic-core")[2]) < len(whole[2])


def test_checks_compute_from_the_events(lake):
    rows(lake, "token_usage")
    for path in (lake / "_facts").rglob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.slice(0, 1), path)
    with open_lake(lake) as opened:
        assert {name: found.fetchall() for name, found in opened.check().items() if found.fetchall()} == {}


def test_what_cannot_be_read_is_computed(lake):
    first = rows(lake, "run_metrics")
    for path in (lake / "_facts").rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    assert rows(lake, "run_metrics") == first


def test_who_may_not_write_computes(lake, monkeypatch):
    monkeypatch.setattr(factfiles.os, "access", lambda *_: False)
    assert rows(lake, "run_metrics")[2]
    assert not (lake / "_facts").exists()


def test_a_full_disk_keeps_nothing_and_answers(lake, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(factfiles.os, "fsync", full)
    found = rows(lake, "run_metrics")
    assert found[2]
    assert not files(lake)
    monkeypatch.undo()
    assert (
        sorted(map(repr, Session(Store.open(lake), sandboxed=False).relation("FROM run_metrics").fetchall()))
        == (found[2])
    )


def test_several_readers_compute_at_once(lake):
    found = []
    threads = [threading.Thread(target=lambda: found.append(rows(lake, "run_metrics"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one == found[0] for one in found)
    assert not [path for path in files(lake) if path.suffix == ".tmp"]


def test_who_is_second_leaves_the_file_of_the_first(lake):
    """Of four that computed at once, one met Parquet it could not read: a file that is read must not be replaced."""
    rows(lake, "run_metrics")
    (path,) = (lake / "_facts").rglob("run_metrics.parquet")
    before = path.stat().st_ino, path.read_bytes()
    with open_lake(lake) as opened, duckdb.connect() as engine:
        opened._open()._facts._put("run_metrics", "SELECT 1 AS other", engine)
    assert (path.stat().st_ino, path.read_bytes()) == before
    assert not [path for path in files(lake) if path.suffix == ".tmp"]


def test_a_file_system_without_hard_links_gets_its_files_too(lake, monkeypatch):
    def none(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", none)
    rows(lake, "run_metrics")
    assert "run_metrics.parquet" in {path.name for path in files(lake)}


def test_modes_are_private(lake):
    rows(lake, "token_usage")
    found = [lake / "_facts", *(lake / "_facts").rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in found} == {0}


def test_what_nobody_asks_for_is_deleted(lake):
    rows(lake, "token_usage")
    folder = next((lake / "_facts").iterdir())
    half = folder / ".run_metrics.1.aa.tmp"
    half.write_bytes(b"PAR1")
    store = Store.open(lake)
    store.vacuum_orphans()
    assert half.exists()
    long_ago = time.time() - vacuum.FORGOTTEN_AFTER_S + 600
    os.utime(half, (long_ago, long_ago))
    store.vacuum_orphans()
    assert not half.exists()
    assert folder.exists()
    os.utime(folder, (long_ago, long_ago))
    rows(lake, "token_usage")  # whoever reads them says so
    assert folder.stat().st_mtime > long_ago
    os.utime(folder, (long_ago - 1200, long_ago - 1200))
    store.vacuum_orphans()
    assert not folder.exists()
    assert rows(lake, "token_usage", wire="metaharness")[2]
