"""The lake: what is committed is seen whole, what is not is never seen, and the shell reads it without Python."""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from analytics import commits, lakefiles, sqlfiles
from analytics.errors import LakeError, RunlakeError
from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id, parquet_writer
from analytics.schema import RECORDS, SCHEMA_VERSION, arrow_schema

SHELL = Path(sys.executable).parent / "duckdb"
WIRE = "metaharness"


@pytest.fixture
def queries(tmp_path, monkeypatch):
    """A queries/ of one relation, in place of the real one."""
    place = tmp_path / "fake queries"
    (place / "lake").mkdir(parents=True)
    (place / "all.sql").write_text(".read queries/lake/events.sql\n")
    (place / "lake" / "events.sql").write_text(
        "-- Events\n-- row: an event\n-- from: the event files\n-- unknown: NULL\n-- not counted: nothing\n"
        "CREATE OR REPLACE VIEW events AS\nSELECT source_id, line, payload, wire FROM\n"
        "read_parquet(getvariable('event_files'), hive_partitioning = true);\n"
    )
    monkeypatch.setattr(sqlfiles, "folder", lambda: place)
    return place


@pytest.fixture
def store(tmp_path, queries):
    return Store.open(tmp_path / "lake", create=True)


def event(source, line, payload="{}", **more):
    return {"source_id": source, "line": line, "part": 0, "run_id": f"run of {source}", "payload": payload, **more}


def write(store, record, rows, ingest_id, number=0, wire=WIRE):
    relative = data_path(record, wire, ingest_id, number)
    with parquet_writer(store.root / relative, record) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(record)))
    return describe(store.root, relative)


def ingest(store, rows, note="ingest", removed=(), **kinds):
    ingest_id = new_ingest_id()
    files = [write(store, "event", rows, ingest_id)] if rows else []
    files += [write(store, record, more, ingest_id, 1) for record, more in kinds.items()]
    return store.commit(files, removed, ingest_id=ingest_id, note=note)


def rows_of(store, record="event", columns="source_id, line, payload"):
    with duckdb.connect() as con:
        query = f"SELECT {columns} FROM read_parquet(?, hive_partitioning = true)"
        return con.execute(query, [store.files(record)]).fetchall()


def shell(store, query, folder):
    done = subprocess.run(
        [SHELL, "-json", "-c", f".read '{store.root}/open.sql'", "-c", f".read '{store.root}/views.sql'", "-c", query],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_new_lake_has_an_empty_file_of_every_kind_and_can_be_asked(store, tmp_path):
    assert store.version == 0
    assert {record: len(store.files(record)) for record in RECORDS} == {"event": 1, "refusal": 1, "source": 1}
    assert rows_of(store) == []
    assert shell(store, "SELECT count(*) AS n FROM events", tmp_path) == [{"n": 0}]


def test_a_commit_is_seen_whole_and_an_older_store_does_not_move(store):
    later = ingest(store, [event("a", 1), event("a", 2)], source=[{"source_id": "a", "revision": 1}])
    assert (store.version, later.version) == (0, 1)
    assert rows_of(store) == []
    assert len(rows_of(later)) == 2
    assert rows_of(later, "source", "source_id") == [("a",)]
    assert later.files("event", WIRE) == later.files("event")
    assert len(later.files("event", "codex-exec")) == 1, "the zero-row file keeps the list from being empty"


def test_files_that_are_not_committed_are_not_seen(store):
    write(store, "event", [event("a", 1)], new_ingest_id())
    assert rows_of(store.latest()) == []


def test_replacing_is_one_version(store):
    first = ingest(store, [event("a", 1, "old"), event("b", 1, "kept")])
    with first.lock():
        ingest_id = new_ingest_id()
        out = first.replace_sources(["a"], ingest_id)
        new = write(first, "event", [event("a", 1, "new")], ingest_id)
        second = first.commit([*out.added, new], out.removed, ingest_id=ingest_id, note="rewritten")
    assert second.version == first.version + 1
    assert out.rows == 1
    assert sorted(rows_of(second)) == [("a", 1, "new"), ("b", 1, "kept")]
    assert sorted(rows_of(Store.open(store.root, version=first.version))) == [("a", 1, "old"), ("b", 1, "kept")]


def test_replacing_the_only_source_of_a_file_leaves_no_file(store):
    first = ingest(store, [event("a", 1)])
    assert first.replace_sources(["a"], new_ingest_id()).added == []
    assert first.replace_sources(["nobody"], new_ingest_id()).removed == []
    assert first.replace_sources([], new_ingest_id()).removed == []


def test_a_repeated_commit_changes_nothing(store):
    ingest_id = new_ingest_id()
    files = [write(store, "event", [event("a", 1)], ingest_id)]
    once = store.commit(files, [], ingest_id=ingest_id, note="ingest")
    twice = store.commit(files, [], ingest_id=ingest_id, note="ingest")
    assert once.version == twice.version == 1
    more = [write(store, "event", [event("a", 2)], ingest_id, 7)]
    assert store.commit(more, [], ingest_id=ingest_id, note="ingest", batch=2).version == 2
    assert store.commit(more, [], ingest_id=ingest_id, note="ingest", batch=2).version == 2


def test_a_commit_of_nothing_is_no_version(store):
    assert store.commit([], [], ingest_id=new_ingest_id(), note="nothing").version == 0


def test_a_file_that_is_not_what_it_is_said_to_be_is_not_committed(store):
    ingest_id = new_ingest_id()
    file = write(store, "event", [event("a", 1)], ingest_id)
    (store.root / file.relative).write_bytes((store.root / file.relative).read_bytes()[:-20])
    with pytest.raises(LakeError, match="cannot be committed"):
        store.commit([file], [], ingest_id=ingest_id, note="torn")
    assert store.latest().version == 0


def test_removing_what_another_writer_removed_is_a_conflict(store):
    first = ingest(store, [event("a", 1)])
    target = next(f.relative for f in first.all_files if f.rows)
    ingest(first, [], removed=[target])
    with pytest.raises(LakeError, match="Another writer has already replaced"):
        ingest(first, [event("a", 1)], removed=[target])


def _commit_many(root, name):
    store = Store.open(root)
    for number in range(8):
        store = ingest(store, [event(f"{name}{number}", 1)])


def test_two_writers_at_once_both_land(store):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_commit_many, args=(str(store.root), name)) for name in "xy"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    latest = store.latest()
    assert latest.version == 16
    assert len(set(rows_of(latest))) == 16
    assert "SET VARIABLE lake_version = 16;" in (store.root / "open.sql").read_text()


def _hold(root, ready, mode):
    store = Store.open(root)
    with store.lock():
        write(store, "event", [event("killed", 1)], new_ingest_id())
        if mode == "fork" and os.fork() == 0:
            time.sleep(60)  # a worker that outlives its parent
            os._exit(0)
        ready.set()
        time.sleep(60)


@pytest.mark.parametrize("mode", ["alone", "fork"])
def test_a_killed_writer_frees_the_lock_and_its_files_are_cleared_away(store, mode):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(store.root), ready, mode))
    holder.start()
    assert ready.wait(30)
    heard = []
    os.kill(holder.pid, signal.SIGKILL)
    began = time.monotonic()
    with store.lock(heard.append):
        assert len(store.vacuum_orphans()) == 1
    assert time.monotonic() - began < 20
    assert rows_of(store.latest()) == []
    assert store.vacuum_orphans() == []
    holder.join()


def test_who_waits_is_told_for_whom(store):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(store.root), ready, "alone"))
    holder.start()
    assert ready.wait(30)

    def heard(sentence):
        said.append(sentence)
        os.kill(holder.pid, signal.SIGKILL)

    said = []
    with store.lock(heard):
        pass
    holder.join()
    assert said == [f"Waiting for process {holder.pid} on {os.uname().nodename}, which is writing to {store.root}."]


def test_a_reader_never_waits_for_a_writer(store):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(store.root), ready, "alone"))
    holder.start()
    assert ready.wait(30)
    (store.root / "open.sql").write_text("stale")
    began = time.monotonic()
    assert store.refresh().version == 0
    assert time.monotonic() - began < 10
    assert (store.root / "open.sql").read_text() == "stale"
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    store.refresh()
    assert (store.root / "open.sql").read_text() != "stale"


def test_orphans_are_only_what_no_version_names(store):
    first = ingest(store, [event("a", 1)])
    target = next(f.relative for f in first.all_files if f.rows)
    second = ingest(first, [event("b", 1)], removed=[target])
    write(store, "refusal", [{"source_id": "x"}], new_ingest_id())
    assert len(second.vacuum_orphans()) == 1
    assert rows_of(Store.open(store.root, version=1)) == [("a", 1, "{}")]


def test_replaced_files_go_after_their_retention_and_their_versions_say_so(store):
    first = ingest(store, [event("a", 1)])
    target = next(f.relative for f in first.all_files if f.rows)
    second = ingest(first, [event("b", 1)], removed=[target])
    assert second.vacuum_replaced() == []
    assert second.vacuum_replaced(retention_hours=0) == [target]
    with pytest.raises(LakeError, match=r"Version 1 .* can no longer be read: 1 of its files"):
        Store.open(store.root, version=1)
    assert rows_of(store.latest()) == [("b", 1, "{}")]


def grown(store, ingests=12, sources=5):
    """A lake of sources that grew at every ingest: their rows stand apart."""
    for number in range(ingests):
        rows = [
            event(f"s{s}", number * 3 + k + 1, f"{s}/{number}/{k}", ts=1_700_000_000_000_000 + number)
            for s in range(sources)
            for k in range(3)
        ]
        ledger = [{"source_id": f"s{s}", "revision": number + 1, "runs": [{"run_id": "r"}]} for s in range(sources)]
        refused = [{"source_id": "s1", "line": number, "raw": b"\xff"}]
        store = ingest(store, rows, source=ledger, refusal=refused)
    return store


def test_compaction_keeps_every_row_and_brings_a_source_together(store):
    before = grown(store)
    after, saved = before.compact()
    assert (saved.files_before, saved.files_after) == (36, 3)
    assert saved.bytes_after < saved.bytes_before
    kept = rows_of(after)
    assert sorted(kept) == sorted(rows_of(before))
    assert kept == sorted(kept, key=lambda row: (row[0], row[1]))
    assert rows_of(after, "source", "source_id, revision") == [(f"s{s}", 12) for s in range(5)]
    assert len(rows_of(after, "refusal", "line")) == 12
    for record in RECORDS:
        for path in after.files(record):
            assert pq.read_schema(path).names == arrow_schema(record).names, "no union of all kinds' columns"
    assert after.compact()[1].files_before == 0, "nothing is left to do"


def test_duckdb_plans_with_no_fewer_rows_than_there_are(store):
    """It takes each file to be as large as the first of the list, and a new lake begins with one of no rows."""
    for rows in (1, 3000, 2):
        store = ingest(store, [event("s", line) for line in range(rows)])
    with duckdb.connect() as con:
        ((_, plan),) = con.execute("EXPLAIN (FORMAT json) FROM read_parquet(?)", [store.files("event")]).fetchall()
    assert int(json.loads(plan)[0]["extra_info"]["Estimated Cardinality"]) >= 3003
    assert len(rows_of(store)) == 3003


def test_readers_with_an_older_version_go_on_while_it_is_compacted(store):
    before = grown(store, ingests=3)
    pinned = rows_of(before)
    after, _ = before.compact()
    assert rows_of(before) == pinned
    assert after.vacuum_orphans() == []
    assert rows_of(Store.open(store.root, version=before.version)) == pinned


def test_compaction_makes_files_of_the_target_size_and_keeps_large_ones(store, monkeypatch):
    monkeypatch.setattr("analytics.compaction._CHUNK_BYTES", 40_000)
    for number in range(6):
        noise = [os.urandom(900).hex() for _ in range(60)]
        store = ingest(store, [event(f"s{number}-{k // 20}", k, text) for k, text in enumerate(noise)])
    after, saved = store.compact(target_bytes=150_000)
    assert 1 < saved.files_after < 6
    assert sorted(rows_of(after)) == sorted(rows_of(store))
    places = [row[0] for row in rows_of(after)]
    assert places == [row[0] for row in rows_of(store)], "sources keep the order in which they came in"
    assert {f.order_key for f in after.all_files if f.rows} <= {f.order_key for f in store.all_files}


def test_compaction_opens_few_files_at_a_time(store):
    ingest_id = new_ingest_id()
    files = [write(store, "event", [event("a", number)], ingest_id, number) for number in range(150)]
    store = store.commit(files, [], ingest_id=ingest_id, note="many")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, before[1]))
    try:
        after, saved = store.compact()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (saved.files_before, saved.files_after) == (150, 1)
    assert [row[1] for row in rows_of(after)] == list(range(150))


def test_compaction_survives_a_source_larger_than_memory_chunks(store, monkeypatch):
    monkeypatch.setattr("analytics.compaction._CHUNK_BYTES", 4_000)
    store = ingest(store, [event("big", k, "x" * 50) for k in range(300)])
    store = ingest(store, [event("small", 1), *(event("big", k, "y" * 50) for k in range(300, 600))])
    after, _ = store.compact()
    assert [row[1] for row in rows_of(after) if row[0] == "big"] == list(range(600))
    assert sorted(rows_of(after)) == sorted(rows_of(store))


def test_a_ledger_row_that_changed_its_wire_is_kept_once(store):
    first = new_ingest_id()
    unknown = write(store, "source", [{"source_id": "a", "revision": 1}], first, wire="unknown")
    store = store.commit([unknown], [], ingest_id=first, note="skipped")
    store = ingest(store, [], source=[{"source_id": "a", "revision": 2}])
    after, _ = store.compact()
    assert rows_of(after, "source", "source_id, revision, wire") == [("a", 2, WIRE)]


def test_history_says_what_each_version_brought(store):
    first = ingest(store, [event("a", 1), event("a", 2)], source=[{"source_id": "a"}], note="ingest of one file")
    ingest(first, [], removed=[next(f.relative for f in first.all_files if f.record == "event" and f.rows)], note="out")
    newest, middle, oldest = store.history()
    assert (oldest["version"], oldest["note"]) == (0, "new lake")
    assert (middle["events_added"], middle["sources_added"], middle["files_added"]) == (2, 1, 2)
    assert middle["note"] == "ingest of one file"
    assert (newest["events_removed"], newest["files_removed"], newest["files_added"]) == (2, 1, 0)
    assert newest["committed_at"] >= middle["committed_at"]


def test_the_shell_reads_a_lake_with_a_quote_in_its_path_from_any_folder(tmp_path, queries):
    store = Store.open(tmp_path / "it's [a] lake?", create=True)
    ingest(store, [event("a", 1, '{"x": "É"}')])
    done = subprocess.run(
        [SHELL, "-json", "-c", ".read open.sql", "-c", ".read views.sql", "-c", "FROM events"],
        cwd=store.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [{"source_id": "a", "line": 1, "payload": '{"x": "É"}', "wire": WIRE}]


def test_a_moved_lake_is_made_readable_by_the_next_command(store, tmp_path):
    ingest(store, [event("a", 1)])
    moved = tmp_path / "elsewhere"
    shutil.move(store.root, moved)
    there = Store.open(moved)
    assert len(rows_of(there)) == 1
    assert str(store.root) in (moved / "open.sql").read_text()
    there.refresh()
    assert shell(there, "SELECT count(*) AS n FROM events", tmp_path) == [{"n": 1}]
    assert str(store.root) + "/" not in (moved / "open.sql").read_text()


def test_refresh_repairs_what_a_kill_between_commit_and_open_sql_left(store):
    (store.root / "views.sql").unlink()
    (store.root / "open.sql").write_text("old")
    store.refresh()
    assert "lake_version = 0" in (store.root / "open.sql").read_text()
    assert "CREATE OR REPLACE VIEW events" in (store.root / "views.sql").read_text()
    before = (store.root / "open.sql").stat().st_mtime_ns
    store.refresh()
    assert (store.root / "open.sql").stat().st_mtime_ns == before


def test_files_are_private_unless_the_lake_is_shared(tmp_path, queries):
    before = os.umask(0o022)
    try:
        for shared in (False, True):
            store = Store.open(tmp_path / f"lake {shared}", create=True, shared=shared)
            store = ingest(store, [event("a", 1)])
            store, _ = ingest(store, [event("b", 1)]).compact()
            assert store.settings.shared is shared
            for path in [store.root, *store.root.rglob("*")]:
                mode = path.stat().st_mode & 0o777
                wanted = (0o755 if path.is_dir() else 0o644) if shared else (0o700 if path.is_dir() else 0o600)
                assert oct(mode) == oct(wanted), path
    finally:
        os.umask(before)


@pytest.mark.parametrize("content", [None, {}, {"notes.txt": "x"}])
def test_a_folder_that_is_no_lake_is_an_error_with_a_remedy(tmp_path, content):
    place = tmp_path / "folder"
    if content is not None:
        place.mkdir()
        for name, text in content.items():
            (place / name).write_text(text)
    with pytest.raises(LakeError, match=r"no lake.*(Make one|new folder)"):
        Store.open(place)


def test_a_lake_is_not_made_among_other_files(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LakeError, match=r"no lake \(it holds notes.txt\)"):
        Store.open(tmp_path, create=True)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_killed_creation_is_taken_up_again(tmp_path, queries):
    place = tmp_path / "lake"
    (place / "record=event" / "wire=none").mkdir(parents=True)
    (place / "record=event" / "wire=none" / "00000000.parquet").write_bytes(b"PAR1")
    (place / ".lock").touch()
    (place / ".runlake.json.12.ab.tmp").touch()
    assert Store.open(place, create=True).version == 0


@pytest.mark.parametrize("name", ["with%20escape", "wire=x/lake"])
def test_a_path_that_other_readers_would_misread_is_refused(tmp_path, name):
    with pytest.raises(LakeError, match="A lake cannot stand at"):
        Store.open(tmp_path / name, create=True)


@pytest.mark.parametrize(("change", "remedy"), [(-1, "Ingest the sources"), (1, "Upgrade runlake")])
def test_another_schema_version_is_named(store, change, remedy):
    settings = json.loads((store.root / "runlake.json").read_text())
    settings |= {"schema_version": SCHEMA_VERSION + change, "a_later_key": 1}
    (store.root / "runlake.json").write_text(json.dumps(settings))
    with pytest.raises(LakeError, match=remedy):
        Store.open(store.root)


def test_a_version_that_never_was_is_named(store):
    with pytest.raises(LakeError, match="no version 7; its versions run from 0 to 0"):
        Store.open(store.root, version=7)


def test_unredacted_ingests_are_said_in_the_lake(store):
    assert not store.settings.unredacted
    store.mark_unredacted()
    assert Store.open(store.root).settings.unredacted


def _commit_under_limit(root, report):
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = Store.open(root)
    relative = data_path("event", WIRE, "fixed", 0)
    try:
        store.commit([describe(store.root, relative)], [], ingest_id="fixed", note="limited")
    except RunlakeError as error:
        report.put(str(error))


def test_a_file_size_limit_in_the_commit_leaves_the_old_version_and_a_retry_works(store):
    write(store, "event", [event("a", 1)], "fixed")
    context = multiprocessing.get_context("spawn")
    report = context.Queue()
    child = context.Process(target=_commit_under_limit, args=(str(store.root), report))
    child.start()
    said = report.get(timeout=30)
    child.join()
    assert "run the same command again" in said
    assert store.latest().version == 0
    assert "file too large" in said
    assert store.vacuum_orphans() == [data_path("event", WIRE, "fixed", 0)]
    assert list((store.root / "_delta_log").iterdir()) == [store.root / "_delta_log" / f"{0:020d}.json"]
    file = write(store, "event", [event("a", 1)], "fixed")
    assert store.commit([file], [], ingest_id="fixed", note="retry").version == 1


def _commit_without_checkpoint(root, replaced, report):
    store = Store.open(root)
    real = DeltaTable.create_write_transaction

    def confined(*arguments, **options):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, before[1]))
        try:
            return real(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    DeltaTable.create_write_transaction = confined
    report.put(ingest(store, [event("a", 10)], removed=[replaced]).version)


@pytest.mark.slow
def test_a_commit_whose_checkpoint_finds_no_room_stands(tmp_path, queries, monkeypatch):
    """Each hundredth commit (here: tenth) also writes a checkpoint of the log; later ones make up for a failed one."""
    monkeypatch.setitem(commits._TABLE_CONFIG, "delta.checkpointInterval", "10")
    store = Store.open(tmp_path / "lake", create=True)
    replaced = None
    for number in range(8):
        store = ingest(store, [event("a", number)], removed=[replaced] if replaced else [])
        replaced = next(f.relative for f in store.all_files if f.rows)
    context = multiprocessing.get_context("spawn")
    report = context.Queue()
    child = context.Process(target=_commit_without_checkpoint, args=(str(store.root), replaced, report))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert report.get(timeout=30) == 9
    assert list((store.root / "_delta_log").glob("*.checkpoint.parquet")) == []
    assert rows_of(store.latest()) == [("a", 10, "{}")]


def test_a_commit_that_comes_while_the_history_is_read_moves_no_version(store, monkeypatch):
    """Found by a reader beside an ingest: the Delta library gave each commit the number of the one before it."""
    store = ingest(store, [event("a", 1)])
    real, late = DeltaTable.history, []

    def overtaken(table, *arguments):
        if not late:
            late.append(ingest(store, [event("b", 1), event("b", 2)]))
        return real(table, *arguments)

    monkeypatch.setattr(DeltaTable, "history", overtaken)
    assert [(row["version"], row["events_added"]) for row in store.history()] == [(2, 2), (1, 1), (0, None)]


def test_other_readers_see_the_same_table(store):
    latest = ingest(store, [event("a", 1, ts=1_700_000_000_000_000), event("b", 2, ts=1_700_000_001_000_000)])
    table = DeltaTable(str(store.root))
    assert table.version() == latest.version
    stats = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ours = next(row for row in stats if row["num_records"] == 2)
    assert (ours["min.source_id"], ours["max.source_id"]) == ("a", "b")
    assert ours["max.ts"].isoformat() == "2023-11-14T22:13:21+00:00"


@pytest.mark.slow
def test_a_long_history_is_opened_through_checkpoints_and_loses_nothing(store):
    replaced = None
    for number in range(105):
        store = ingest(store, [event("a", number)], removed=[replaced] if replaced else [])
        replaced = next(f.relative for f in store.all_files if f.rows)
    assert list((store.root / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(store.history()) == 106
    assert store.vacuum_orphans() == []
    assert rows_of(Store.open(store.root, version=3)) == [("a", 2, "{}")]
    assert len(store.vacuum_replaced(retention_hours=0)) == 104
    assert rows_of(store.latest()) == [("a", 104, "{}")]


def test_a_thread_may_take_its_lock_again_and_others_wait(store):
    with store.lock(), store.lock():
        pass
    assert not lakefiles._held
    with store.lock():
        assert ingest(store, [event("a", 1)]).version == 1


def test_compaction_puts_the_kinds_of_a_row_group_together(store, monkeypatch):
    """And does so again with files that are in that order, whatever their row groups were."""
    monkeypatch.setattr("analytics.compaction.ROW_GROUP_ROWS", 10)
    monkeypatch.setattr("analytics.compaction._CHUNK_BYTES", 1 << 30)
    kinds = ["usage", "message", None]
    for number in range(4):
        store = ingest(store, [event("a", number * 6 + k, kind=kinds[k % 3]) for k in range(6)])
    once, _ = store.compact()
    order = [{"message": 0, "usage": 1, None: 2}[kind] for (kind,) in rows_of(once, columns="kind")]
    expected = {
        0: sorted([(1, k) if k % 3 == 0 else (0, k) if k % 3 == 1 else (2, k) for k in range(12)]),
        1: sorted([(1, k) if k % 3 == 0 else (0, k) if k % 3 == 1 else (2, k) for k in range(12, 24)]),
    }
    lines = [line for (line,) in rows_of(once, columns="line")]
    assert list(zip(order, lines, strict=True)) == expected[0] + expected[1]
    monkeypatch.setattr("analytics.compaction.ROW_GROUP_ROWS", 100)
    again = ingest(once, [event("b", 1, kind="message"), event("b", 2, kind="usage")])
    twice, _ = again.compact()
    found = rows_of(twice, columns="coalesce(kind, 'none') AS kind, source_id, line")
    ranks = {"message": 0, "usage": 1, "none": 2}
    assert found == sorted(found, key=lambda row: (ranks[row[0]], row[1], row[2]))
    assert sorted(rows_of(twice)) == sorted(rows_of(again))


def test_compaction_compresses_what_an_ingest_wrote_in_haste_once(store):
    store = ingest(store, [event("a", number, f"{number % 7} " * 40) for number in range(50)])
    once, saved = store.compact()
    assert (saved.files_before, saved.files_after) == (1, 1)
    assert rows_of(once) == rows_of(store)
    assert once.compact()[1].files_before == 0
