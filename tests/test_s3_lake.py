"""A lake in an object store answers as one in a folder does, through every command."""

from __future__ import annotations

import json

import pytest
from conftest import CORPUS
from objectstore import Fault

from analytics import open_lake
from analytics.api import report_list
from analytics.cli import run
from analytics.errors import LakeError, RunlakeError, StoreError, UsageError
from analytics.keeping import keep_facts
from analytics.lake import Store
from analytics.lakefiles import runlake_version


@pytest.fixture
def cli(capsys):
    """A command of the command line: its exit code, stdout and stderr."""

    def call(*arguments):
        code = run([str(one) for one in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def row(text):
    (one,) = json.loads(text)
    return one


def without_clock(relation):
    """The rows, but for when they were read. Fractions are added up in any order: their last digits may differ."""
    columns = [f'"{name}"' for name in relation.columns if name not in ("first_seen", "last_seen")]
    rows = relation.project(", ".join(columns)).fetchall()
    return [tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row) for row in rows]


def test_every_report_gives_the_rows_that_a_local_lake_gives(bucket, sample_lake):
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(CORPUS)
    there, here = lake.store.all_files, sample_lake.store.all_files
    assert [(f.record, f.wire, f.rows) for f in there] == [(f.record, f.wire, f.rows) for f in here]
    compared = 0
    for report in report_list():
        for by in (None, *report["by"]):
            expected, rows = (without_clock(one.report(report["report"], by)) for one in (sample_lake, lake))
            assert rows == expected, (report["report"], by)
            compared += len(expected)
    assert compared > 300  # of a corpus with seven wires, 70 runs and 616 calls
    assert [name for name, rows in lake.check().items() if rows.fetchall()] == []


def test_all_commands_work_on_a_lake_in_a_store(bucket, cli, monkeypatch, tmp_path):
    lake = bucket.url("deep/lake")
    data = CORPUS / "codex"
    code, out, _ = cli("--lake", lake, "ingest", data, "--format", "json")
    first = row(out)
    assert (code, first["version"]) == (0, 1)
    monkeypatch.setenv("RUNLAKE_LAKE", lake)
    assert row(cli("ingest", data, "--format", "json")[1])["files_unchanged"] == first["files_new"]
    code, out, _ = cli("sql", "SELECT count(*) AS n FROM events", "--format", "json")
    assert (code, row(out)["n"]) == (0, first["events"])
    code, out, _ = cli("runs", "--format", "json")
    run_id = json.loads(out)[0]["run_id"]
    assert cli("show", run_id)[0] == 0
    assert cli("report")[0] == 0
    assert cli("check")[0] == 0
    assert cli("refused")[0] == 0
    status = row(cli("status", "--format", "json")[1])
    assert (status["lake"], status["sources_unchanged"]) == (lake, first["files_new"])
    assert cli("export", "runs", "-o", tmp_path / "out", "--format", "csv")[0] == 0
    assert (tmp_path / "out" / "runs.csv").read_text().count("\n") > 1
    versions = json.loads(cli("history", "--format", "json")[1])
    assert [one["version"] for one in versions] == [1, 0]
    assert cli("sql", "SELECT 1", "--at", "0")[0] == 0


def test_raw_lines_come_back_from_a_lake_in_a_store(bucket):
    import io

    data = b'{"type":"session.started"}\nno line of any wire\n'
    path = bucket.put("raw/one.jsonl", data)
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(path, wire="metaharness")
    to = io.BytesIO()
    assert lake.write_raw(path, to).is_complete
    assert to.getvalue() == data


def test_compacting_keeps_every_row_and_leaves_older_versions(bucket):
    lake = open_lake(bucket.url("lake"), create=True)
    for number, path in enumerate(sorted((CORPUS / "metaharness").rglob("*.jsonl"))[:3]):
        bucket.put(f"in/{number}.jsonl", path.read_bytes())
        lake.ingest(bucket.url("in"))
    before = lake.sql("FROM events ORDER BY ALL").fetchall()
    many = len(lake.store.all_files)
    store, saved = lake.store.compact()
    assert saved.files_before > saved.files_after > 0
    assert len(store.all_files) < many
    assert keep_facts(store) is None
    assert not [name for name in bucket.listing("lake") if "_facts" in name], "of a lake in a store nothing is kept"
    now = lake.latest()
    assert now.sql("FROM events ORDER BY ALL").fetchall() == before
    assert lake.snapshot(3).sql("FROM events ORDER BY ALL").fetchall() == before
    assert [one["note"] for one in lake.history()][:2] == [
        f"compact {saved.files_before} files into {saved.files_after}",
        "ingest of 1 sources",
    ]
    assert lake.history()[0]["runlake_version"] == runlake_version()


def test_orphans_are_deleted_only_when_they_are_old(bucket, monkeypatch):
    from analytics import remotelake

    lake = open_lake(bucket.url("lake"), create=True)
    left = "record=event/wire=codex-exec/20260101T000000000000Z-abcdef-00001.parquet"
    bucket.put(f"lake/{left}", b"left by a writer that was killed")
    assert lake.store.vacuum_orphans() == []  # it may be at work on another host
    assert f"lake/{left}" in bucket.listing("lake")
    monkeypatch.setattr(remotelake, "ORPHAN_SECONDS", -5.0)
    assert lake.store.vacuum_orphans() == [left]
    assert f"lake/{left}" not in bucket.listing("lake")
    Store.open(bucket.url("lake"))  # all that is committed is still there


def test_replaced_files_are_deleted_after_their_retention(bucket):
    lake = open_lake(bucket.url("lake"), create=True)
    for number, path in enumerate(sorted((CORPUS / "metaharness").rglob("*.jsonl"))[:2]):
        lake.ingest(bucket.put(f"in/{number}.jsonl", path.read_bytes()))
    store, saved = lake.store.compact()
    assert store.vacuum_replaced() == []
    assert len(store.vacuum_replaced(retention_hours=-1.0)) == saved.files_before
    assert lake.latest().sql("SELECT count(*) FROM events").fetchall()[0][0] > 0
    with pytest.raises(LakeError, match=r"Version 1 of the lake s3://\S+ can no longer be read"):
        lake.snapshot(1)


def test_the_sandbox_holds_over_a_store(bucket, tmp_path):
    lake = open_lake(bucket.url("lake"), create=True)
    secret = bucket.put("other/secret.parquet", b"PAR1")
    lake = open_lake(bucket.url("lake"), sandboxed=True)
    own = lake.store.files("source")[0]
    assert lake.sql(f"SELECT count(*) FROM read_parquet('{own}')").fetchall() == [(0,)]
    older = f"{bucket.url('lake')}/_delta_log/00000000000000000000.json"
    for path in (secret, older, f"{bucket.url('lake')}/**/*.parquet", "/etc/passwd", str(tmp_path)):
        with pytest.raises(RunlakeError, match=r"Cannot access file|not allowed"):
            lake.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()
    with pytest.raises(UsageError, match="not allowed here"):
        lake.sql(f"COPY (SELECT 1) TO '{own}'")
    with pytest.raises(UsageError, match="not allowed here"):
        lake.sql("SET enable_external_access = true")
    assert bucket.store.asked("GET .*secret") == 0


def test_duckdb_sees_only_the_pinned_files_even_outside_the_sandbox(bucket):
    lake = open_lake(bucket.url("lake"), create=True)
    secret = bucket.put("other/secret.parquet", b"PAR1")
    own = lake.store.files("source")[0]
    before = bucket.get(own.removeprefix(f"s3://{bucket.name}/"))
    with pytest.raises(RunlakeError, match=r"No files found|no file of this version"):
        lake.sql(f"SELECT * FROM read_parquet('{secret}')").fetchall()
    with pytest.raises(RunlakeError, match="only read"):
        lake.sql(f"COPY (SELECT 1 AS x) TO '{own}' (FORMAT parquet)")
    assert bucket.get(own.removeprefix(f"s3://{bucket.name}/")) == before


def test_what_was_read_once_is_not_asked_for_again(bucket):
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(CORPUS / "metaharness")
    lake = open_lake(bucket.url("lake"))
    lake.report("overview").fetchall()
    bucket.store.forget()
    lake.sql("SELECT sum(length(payload)) FROM events").fetchall()
    lake.report("token_usage").fetchall()
    assert bucket.store.asked("GET .*parquet") == 0  # all of it fits in the bound of what is kept
    assert bucket.store.asked("HEAD .*parquet") == 0  # sizes are the log's


def test_the_shell_files_are_written_and_mended(bucket):
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(CORPUS / "metaharness")
    text = bucket.get("lake/open.sql").decode()
    assert "SET VARIABLE lake_version = 1;" in text
    assert f"'{lake.store.files('event')[-1]}'" in text
    assert bucket.get("lake/views.sql").startswith(b"-- All of runlake's queries")
    bucket.put("lake/open.sql", text.replace("lake_version = 1;", "lake_version = 0;"))
    open_lake(bucket.url("lake"))
    assert bucket.get("lake/open.sql").decode() == text
    later = text.replace("lake_version = 1;", "lake_version = 7;")  # by one who has committed since we looked
    bucket.put("lake/open.sql", later)
    lake.store._publish()
    assert bucket.get("lake/open.sql").decode() == later


def test_polars_reads_the_lake_without_our_code(bucket):
    import polars as pl

    from analytics.places import storage_options

    lake = open_lake(bucket.url("lake"), create=True)
    report = lake.ingest(CORPUS / "metaharness")
    frame = pl.scan_delta(bucket.url("lake"), storage_options=storage_options(lake.store.root))
    assert frame.filter(pl.col("record") == "event").select(pl.len()).collect().item() == report.events


def test_a_place_that_holds_something_else_is_no_lake(bucket):
    bucket.put("notes/readme.txt", b"hello")
    with pytest.raises(LakeError, match=r"s3://\S+/notes is no lake \(it holds readme.txt\)"):
        open_lake(bucket.url("notes"), create=True)
    with pytest.raises(LakeError, match=r"There is no lake at s3://\S+/nothing"):
        open_lake(bucket.url("nothing"))
    with pytest.raises(UsageError, match="There is no kind of place 'http://'"):
        open_lake("http://127.0.0.1/lake")
    with pytest.raises(UsageError, match="names no bucket"):
        open_lake("s3:///lake")


def test_a_whole_bucket_may_be_a_lake(bucket):
    lake = open_lake(bucket.url(), create=True)
    lake.ingest(CORPUS / "claude-stream")
    assert {key.split("/")[0] for key in bucket.listing()} == {
        "_delta_log", "open.sql", "record=event", "record=refusal", "record=source", "runlake.json", "views.sql",
    }  # fmt: skip
    assert [name for name, rows in open_lake(bucket.url()).check().items() if rows.fetchall()] == []
    assert lake.store.vacuum_orphans() == []
    with pytest.raises(LakeError, match="as a pattern"):
        open_lake(bucket.url("la*ke"))


@pytest.mark.long
def test_a_pool_reads_objects_and_writes_objects(bucket, monkeypatch):
    monkeypatch.setattr("analytics.batching.SMALL_BYTES", 0)
    monkeypatch.setattr("analytics.batching.TASK_FILES", 4)
    bucket.upload(CORPUS / "metaharness", "in")
    lake = open_lake(bucket.url("lake"), create=True)
    report = lake.ingest(bucket.url("in"), jobs=2)
    alone = open_lake(bucket.url("alone"), create=True)
    assert report.events == alone.ingest(bucket.url("in"), jobs=1).events > 0
    columns = "SELECT * EXCLUDE (position) FROM events ORDER BY ALL"
    assert lake.sql(columns).fetchall() == alone.sql(columns).fetchall()
    bucket.put("in/more.jsonl", (CORPUS / "truth.json").read_bytes())
    bucket.upload(CORPUS / "codex-exec", "in")
    bucket.store.fail(Fault(r"PUT .*record=event", status="403 Forbidden", code="AccessDenied"))
    with pytest.raises(StoreError, match=r"Could not write to s3://\S+: access is denied \(made to fail\)"):
        lake.ingest(bucket.url("in"), jobs=2)
