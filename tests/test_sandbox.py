"""`runlake sql` reads the lake and nothing else: each row is one way somebody would try."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import events, make_lake, source

from analytics.api import open_lake
from analytics.cli import run
from analytics.errors import RunlakeError, UsageError

READS = [
    "SELECT 1 AS one",
    "FROM events",
    "(SELECT 1)",
    "TABLE events",
    "VALUES (1), (2)",
    "WITH e AS (FROM events) SELECT count(*) FROM e",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) FROM n",
    "FROM events UNION ALL FROM events",
    "DESCRIBE events",
    "DESCRIBE",
    "SHOW TABLES",
    "SHOW events",
    "SUMMARIZE events",
    "EXPLAIN FROM events",
    "explain analyze SELECT 1",
    "EXPLAIN (FORMAT JSON) SELECT 1",
    "EXPLAIN ANALYZE (SELECT 1)",
    "FROM range(3), unnest([1, 2])",
    "PIVOT events ON kind IN ('usage', 'message') USING count(*)",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b",
    "SELECT * FROM duckdb_views()",
    "SELECT table_name FROM information_schema.tables",
    "FROM read_parquet(getvariable('event_files'))",
    "FROM parquet_metadata(getvariable('event_files'))",
    "SELECT 1; -- the end",
    "/* first */ SELECT 'COPY (SELECT 1) TO ''x''' AS text",
    "SELECT 1 AS copy, 2 AS attach",
]

# {lake}: the lake's folder; {file}: one of its Parquet files; {out}: a path outside that must not come to be
WRITES_AND_SETTINGS = [
    "COPY events TO '{out}'",
    "COPY events TO '{lake}/stolen.csv'",
    "COPY (SELECT 1) TO '{file}'",
    "COPY (PIVOT events ON kind USING count(*)) TO '{out}'",
    "WITH x AS (COPY (SELECT 1 AS a) TO '{out}') FROM x",
    "WITH x AS (COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)) FROM x",
    "WITH x AS MATERIALIZED (WITH y AS (COPY (SELECT 1 AS a) TO '{file}') FROM y) FROM x",
    "SELECT (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x)",
    "FROM events WHERE line IN (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x)",
    "FROM query('WITH x AS (COPY (SELECT 1 AS a) TO ''{file}'') FROM x')",
    "FROM query('COPY (SELECT 1) TO ''{file}''')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
    "EXPLAIN ANALYZE WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x",
    "/* */ EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
    "EXPLAIN COPY events TO '{out}'",
    "EXPORT DATABASE '{lake}/copy'",
    "EXPORT DATABASE '{out}'",
    "IMPORT DATABASE '{lake}'",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW events AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "CREATE TEMP TABLE t (a INT)",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "INSERT INTO events VALUES (1)",
    "WITH x AS (INSERT INTO events VALUES (1) RETURNING *) FROM x",
    "WITH x AS (DELETE FROM events RETURNING *) FROM x",
    "WITH x AS (UPDATE events SET line = 1 RETURNING *) FROM x",
    "DELETE FROM events",
    "UPDATE events SET line = 1",
    "MERGE INTO events USING events AS e ON true WHEN MATCHED THEN DELETE",
    "DROP VIEW events",
    "ALTER VIEW events RENAME TO e",
    "COMMENT ON VIEW events IS 'x'",
    "TRUNCATE events",
    "ATTACH ':memory:' AS m",
    "ATTACH '{out}' AS m",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:9/'",
    "LOAD json",
    "LOAD '{lake}/evil.duckdb_extension'",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allowed_directories = ['/']",
    "SET GLOBAL temp_directory = '/'",
    "SET VARIABLE event_files = ['/etc/passwd']",
    "RESET VARIABLE event_files",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})",
    "FROM enable_logging(storage = 'file', storage_config = {{'path': '{out}'}})",
    "FROM enable_profiling(save_location = '{out}')",
    "FROM checkpoint()",
    "CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO '{file}'",
    "SELECT 1 -- \n; ATTACH ':memory:' AS m",
    "",
    "   -- nothing",
]

READS_ELSEWHERE = [
    "FROM read_text('/etc/passwd')",
    "FROM read_text(['/etc/passwd'])",
    "FROM read_blob('/proc/self/environ')",
    "FROM read_csv('/etc/passwd')",
    "FROM read_csv_auto('/etc/passwd')",
    "FROM sniff_csv('/etc/passwd')",
    "FROM read_json('{outside}')",
    "FROM read_json_auto('{outside}')",
    "FROM read_parquet('{outside}')",
    "FROM parquet_scan('{outside}')",
    "FROM PARQUET_SCAN('{outside}')",
    "FROM system.main.read_text('/etc/passwd')",
    "FROM \"read_text\"('/etc/passwd')",
    "FROM parquet_metadata('{outside}')",
    "FROM parquet_schema('{outside}')",
    "FROM parquet_kv_metadata('{outside}')",
    "FROM '/etc/passwd'",
    "FROM '{outside}'",
    'FROM "{outside}"',
    "DESCRIBE FROM '{outside}'",
    "SUMMARIZE '{outside}'",
    "FROM '{lake}/runlake.json'",
    "FROM read_json('{lake}/runlake.json')",
    "FROM read_json('{lake}/_delta_log/00000000000000000000.json')",
    "FROM read_parquet('{lake}/../outside.parquet')",
    "FROM read_parquet('{lake}/record=event/../../../outside.parquet')",
    "FROM read_parquet('{lake}/link.parquet')",
    "FROM read_parquet('{lake}/**/*.parquet')",
    "FROM glob('/etc/*')",
    "FROM glob('{lake}/*')",
    "FROM read_parquet('https://127.0.0.1:9/x.parquet')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM read_csv('http://127.0.0.1:9/x')",
    "FROM query('FROM read_text(''/etc/passwd'')')",
    "FROM query('SELECT 1')",
    "FROM query_table('/etc/passwd')",
    "FROM query_table(['events'])",
    "SELECT getenv('HOME')",
    "FROM which_secret('s3://x', 's3')",
    "FROM duckdb_secrets()",
    "FROM read_duckdb('{outside}')",
    "FROM arrow_scan(1, 2, 3)",
    "FROM arrow_scan_dumb(1, 2, 3)",
    "FROM pandas_scan(1)",
    "FROM python_map_function((SELECT 1), 1)",
    "FROM sqlite_scan('{outside}', 't')",
    "FROM secret_frame",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a lake, a file outside it, and a link inside it that leads out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("sandbox")
    rows = events("r1", {"kind": "run.started"}, {"kind": "usage"}, {"kind": "message"})
    store = make_lake(folder / "lake", event=rows, source=[source({"run_id": "r1", "lines": 3, "digest": "d"})])
    pq.write_table(pa.table({"secret": ["planted"]}), folder / "outside.parquet")
    (store.root / "link.parquet").symlink_to(folder / "outside.parquet")
    return folder


@pytest.fixture(scope="module")
def lake(place):
    """One session for all rows: what an attack had changed, a later row would see."""
    with open_lake(place / "lake", sandboxed=True) as opened:
        yield opened


def filled(place: Path, sql: str) -> str:
    event_file = next((place / "lake").glob("record=event/wire=metaharness/*.parquet"))
    return sql.format(
        lake=place / "lake", file=event_file, out=place / "out", outside=place / "outside.parquet"
    )  # fmt: skip


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*") if path.is_file()
    }  # fmt: skip


@pytest.mark.parametrize("sql", READS)
def test_statements_that_read_pass(lake, sql):
    assert lake.sql(sql).fetchall() is not None


@pytest.mark.parametrize("sql", WRITES_AND_SETTINGS)
def test_nothing_is_written_and_no_setting_changed(place, lake, sql):
    before = everything(place)
    with pytest.raises(UsageError):
        lake.sql(filled(place, sql)).fetchall()
    assert everything(place) == before
    assert lake.sql("SELECT count(*) FROM events").fetchall() == [(3,)]


@pytest.mark.parametrize("sql", READS_ELSEWHERE)
def test_nothing_outside_the_lake_is_read(place, lake, sql):
    secret_frame = __import__("polars").DataFrame({"secret": ["planted"]})
    with pytest.raises(RunlakeError) as caught:
        lake.sql(filled(place, sql)).fetchall()
    assert "planted" not in str(caught.value)
    del secret_frame


@pytest.mark.parametrize(
    "where", ["1=1) ; COPY (SELECT 1) TO '/tmp/x' --", "true) UNION (FROM read_text('/etc/passwd')"]
)
def test_a_where_is_a_condition_and_no_way_out(lake, where):
    with pytest.raises(RunlakeError):
        lake.report("events", where=where).fetchall()


def test_the_refused_statement_is_named(place, capsys):
    assert run(["sql", "ATTACH ':memory:' AS m", "--lake", str(place / "lake")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "ATTACH is not allowed here" in said.err
    assert run(["sql", "WITH x AS (COPY (SELECT 1 AS a) TO 'y') FROM x", "--lake", str(place / "lake")]) == 2
    assert "COPY inside a query is not allowed here" in capsys.readouterr().err


def test_the_python_door_sees_the_callers_frames(place):
    wanted = __import__("polars").DataFrame({"run_id": ["r1"]})
    with open_lake(place / "lake") as lake:
        rows = lake.sql("SELECT count(*) FROM events SEMI JOIN wanted USING (run_id)")
        assert rows.fetchall() == [(3,)]
    del wanted


def test_a_deep_query_is_refused_and_not_a_crash(lake):
    with pytest.raises(RunlakeError):
        lake.sql("SELECT " + "(" * 3000 + "1" + ")" * 3000).fetchall()


def test_a_query_larger_than_memory_spills_outside_the_lake(place, lake):
    sql = "SELECT current_setting('temp_directory'), current_setting('memory_limit')"
    folder, _ = lake.sql(sql).fetchall()[0]
    assert not folder.startswith(str(place / "lake"))
    assert Path(folder).parent.stat().st_mode & 0o777 == 0o700


def test_the_spill_folder_goes_with_the_process(place):
    command = [
        sys.executable,
        "-m",
        "analytics",
        "sql",
        "SELECT current_setting('temp_directory') AS d",
        "--format",
        "csv",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "RUNLAKE_LAKE": str(place / "lake")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    folder = Path(done.stdout.splitlines()[1])
    assert folder.is_absolute()
    assert not folder.parent.exists()
