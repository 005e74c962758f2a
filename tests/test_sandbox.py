"""`runlake sql` reads the lake and nothing else: each row is one way somebody would try."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from handmade import events, make_lake, source

from analytics import sqlfiles
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
    "SELECT 1;;",
    ";SELECT 1",
    "SELECT $$; COPY x TO 'y'$$ AS text",
    "SELECT 1 -- ; ATTACH ':memory:' AS m",
    "FROM (SHOW TABLES)",
    "FROM (DESCRIBE events)",
    "FROM (SUMMARIZE events)",
    "FROM (PIVOT events ON kind IN ('usage') USING count(*))",
    "SHOW ALL TABLES",
    "FROM duckdb_variables()",
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
    "SELECT 1 /* ; */; /* */ COPY (SELECT 1) TO '{file}'",
    "SELECT 1 --\r; COPY (SELECT 1) TO '{file}'",
    "/* /* */ WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x",
    "/* a */ -- b\n WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x",
    "SELECT 1 UNION ALL (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x)",
    "SELECT list_transform([1], i -> (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x))",
    "PIVOT (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x) ON a IN (1)",
    "DESCRIBE COPY (SELECT 1) TO '{file}'",
    "SUMMARIZE (WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x)",
    "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{file}'",
    "EXPLAIN EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
    "COPY events FROM '{outside}'",
    "COPY FROM DATABASE memory TO memory",
    "EXPORT DATABASE '{lake}/copy' (FORMAT parquet)",
    "IMPORT DATABASE '/etc'",
    "CREATE VIEW v AS FROM read_text('/etc/passwd')",
    "CREATE OR REPLACE TEMP VIEW events AS SELECT 1",
    "CREATE OR REPLACE TEMP MACRO f() AS TABLE FROM read_text('/etc/passwd')",
    "CREATE FUNCTION f() AS 1",
    "CREATE SCHEMA s",
    "CREATE SEQUENCE s",
    "CREATE TYPE t AS ENUM ('a')",
    "CREATE INDEX i ON events (line)",
    "DROP SECRET s",
    "INSERT INTO events SELECT * FROM events",
    "INSERT OR REPLACE INTO events VALUES (1)",
    "ATTACH OR REPLACE ':memory:' AS m",
    "ATTACH IF NOT EXISTS '{out}' (TYPE sqlite)",
    "ATTACH 'http://127.0.0.1:9/x.db' AS m",
    "DETACH DATABASE IF EXISTS m",
    "USE memory.main",
    "INSTALL '/etc/passwd'",
    "LOAD httpfs",
    "UPDATE EXTENSIONS",
    "SET SESSION enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET threads = 1",
    "SET VARIABLE x = 1",
    "SET file_search_path = '/etc'",
    "RESET memory_limit",
    "RESET ALL",
    "PRAGMA memory_limit = '1GB'",
    "PRAGMA version",
    "PRAGMA add_parquet_key('a', '0123456789112345')",
    "PRAGMA json_execute_serialized_sql('x')",
    "CALL query('SELECT 1')",
    "CALL force_checkpoint()",
    "FROM force_checkpoint()",
    "FROM create_external_resource('x', 'y')",
    "FROM add_grammar_extension('x')",
    "ROLLBACK",
    "COMMIT",
    "DEALLOCATE p",
    "EXPLAIN PREPARE p AS SELECT 1",
    "",
    "   -- nothing",
    ";",
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
    "FROM 'secret_frame'",
    "FROM query_table('secret_frame')",
    "FROM 'file:///etc/passwd'",
    "FROM read_parquet('file:///etc/passwd')",
    "FROM read_parquet('file://localhost{outside}')",
    "FROM read_parquet(['{file}', '{outside}'])",
    "FROM read_parquet('{lake}/./../outside.parquet')",
    "FROM read_parquet('/proc/self/cwd/../../../../../..{outside}')",
    "FROM read_parquet('~/x.parquet')",
    "FROM read_parquet('/tmp/*')",
    "FROM read_parquet('{file}/../../../../outside.parquet')",
    "FROM read_parquet('https://user:password1@127.0.0.1:9/x.parquet')",
    "FROM read_parquet('hf://datasets/a/b.parquet')",
    "FROM parquet_file_metadata('{outside}')",
    "FROM parquet_full_metadata('{outside}')",
    "FROM parquet_bloom_probe('{outside}', 'secret', 'x')",
    "FROM read_ndjson('/etc/passwd')",
    "FROM read_ndjson_objects('/etc/passwd')",
    "FROM read_json_objects('/etc/passwd')",
    "FROM read_csv('file:///etc/passwd')",
    "FROM read_blob('{lake}/.lock')",
    "FROM read_text('{lake}/open.sql')",
    "FROM '{lake}/views.sql'",
    "FROM 'http://127.0.0.1:9/x.csv'",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT 1 WHERE 1 IN (SELECT size FROM read_text('/etc/passwd'))",
    "WITH a AS (FROM read_blob('/etc/passwd')) FROM a",
    "FROM events, LATERAL (FROM read_text('/etc/passwd'))",
    "SELECT list_transform([1], i -> (SELECT content FROM read_text('/etc/passwd')))",
    "VALUES (getenv('HOME'))",
    "SELECT 'HOME'.getenv()",
    "SELECT system.main.getenv('HOME')",
    "FROM events ORDER BY (SELECT getenv('HOME'))",
    "EXPLAIN ANALYZE FROM read_text('/etc/passwd')",
    "SHOW '{outside}'",
    "FROM duckdb_logs()",
    "FROM duckdb_extensions()",
    "FROM duckdb_temporary_files()",
    "FROM duckdb_external_file_cache()",
    "FROM duckdb_prepared_statements()",
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


@pytest.mark.parametrize("sql", [*WRITES_AND_SETTINGS[:-3], *READS_ELSEWHERE])
def test_the_command_refuses_it_too(place, capfd, sql):
    """`runlake sql` says why on stderr, prints nothing, and leaves every file as it was."""
    before = everything(place)
    assert run(["sql", filled(place, sql), "--lake", str(place / "lake")]) in (1, 2)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert "planted" not in said.err
    assert "root:" not in said.err
    assert "Traceback" not in said.err
    assert everything(place) == before


def test_a_comment_hides_no_statement(place, lake):
    """Whether block comments nest or not, what is checked is what runs."""
    before = everything(place)
    for sql in (
        "/* /* */ WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x -- */ FROM events",
        "/* /* */ WITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x /* */ */ FROM events",
        "-- a\rFROM events -- b\nWITH x AS (COPY (SELECT 1 AS a) TO '{file}') FROM x",
    ):
        with suppress(RunlakeError):
            assert lake.sql(filled(place, sql)).fetchall()
        assert everything(place) == before
    assert not [file for file in sqlfiles.load() if "*/" in file.text], (
        "a query in front of a user's would end a comment"
    )


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
