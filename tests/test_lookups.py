"""What compaction does for who looks for one run, source, call or request: readers pass over row groups without it."""

import hashlib
import json

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from analytics.compaction import LOOKED_UP, bloom_filters
from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id, parquet_writer
from analytics.schema import arrow_schema

GROUPS, SOURCES, LINES = 20, 5, 20  # a source has 20 lines, a row group holds 5 sources
ROWS = SOURCES * LINES


def name(*of):
    """An id as services make them: nothing in it rises, so its extremes in a row group tell nothing."""
    return hashlib.sha256("/".join(map(str, of)).encode()).hexdigest()[:24]


def row(source, line):
    return {
        "source_id": name("source", source), "line": line, "part": 0, "run_id": name("run", source),
        "kind": ("message", "usage", "tool.requested", "tool.finished")[line % 4], "payload": f'{{"line":{line}}}',
        "call_id": name("call", source, line // 4) if line % 4 >= 2 else None,
        "request_id": name("request", source, line) if line % 4 < 2 else None,
        "usage_key": name("usage", source, line) if line % 4 == 1 else None,
    }  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A compacted lake of 2,000 events in 20 row groups."""
    store = Store.open(tmp_path_factory.mktemp("lookups") / "lake", create=True)
    ingest_id = new_ingest_id()
    relative = data_path("event", "metaharness", ingest_id, 0)
    rows = [row(source, line) for source in range(GROUPS * SOURCES) for line in range(LINES)]
    with parquet_writer(store.root / relative, "event", level=1) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=arrow_schema("event")), row_group_size=ROWS)
    with store.writing():
        store = store.commit([describe(store.root, relative)], [], ingest_id=ingest_id, note="ingest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analytics.compaction.ROW_GROUP_ROWS", ROWS)
        return store.compact()[0]


@pytest.fixture(scope="module")
def path(store):
    (path,) = (store.root / file.relative for file in store.all_files if file.rows)
    assert pq.read_metadata(path).num_row_groups == GROUPS
    return path


@pytest.fixture(scope="module")
def values(path):
    """Of each column five values, and five that are nowhere."""
    table = pq.read_table(path, columns=list(LOOKED_UP))
    there = {column: sorted(set(table[column].to_pylist()) - {None})[::7][:5] for column in LOOKED_UP}
    return there, [name("nowhere", number) for number in range(5)]


def row_groups_read(path, column, value):
    with duckdb.connect() as con:
        con.execute("PRAGMA enable_profiling = 'no_output'")
        found = con.sql(f"SELECT source_id, line FROM '{path}' WHERE {column} = '{value}'").fetchall()
        told = json.loads(con.get_profiling_information("json"))["query"]
    assert told["total_row_groups_to_scan"] == GROUPS
    return found, told["total_row_groups_scanned"]


def test_each_row_group_has_a_filter_for_what_is_looked_up_and_for_nothing_else(path):
    query = "SELECT DISTINCT row_group_id, path_in_schema FROM parquet_metadata(?) WHERE bloom_filter_length > 0"
    with duckdb.connect() as con:
        filters = con.execute(query, [str(path)]).fetchall()
    assert sorted(filters) == sorted((group, column) for group in range(GROUPS) for column in LOOKED_UP)


@pytest.mark.parametrize("column", LOOKED_UP)
def test_a_look_up_reads_the_row_group_that_holds_the_value_and_hardly_another(path, values, column, tmp_path):
    there, nowhere = values
    read = 0
    for value in there[column]:
        found, groups = row_groups_read(path, column, value)
        assert found
        assert groups >= 1
        read += groups - 1
    read += sum(row_groups_read(path, column, value)[1] for value in nowhere)
    # a twentieth of 195 row groups without the value may be read in vain: 10; by chance no more than twice as many
    assert read <= 20
    bare = tmp_path / "bare.parquet"
    with pq.ParquetFile(path) as reader, parquet_writer(bare, "event") as writer:
        for group in range(GROUPS):
            writer.write_table(reader.read_row_group(group))
    assert sum(row_groups_read(bare, column, value)[1] for value in nowhere) > 50, "extremes alone would do"


def test_every_reader_finds_every_value_and_none_that_is_nowhere(store, path, values):
    there, nowhere = values
    table = pq.read_table(path)
    delta = QueryBuilder().register("lake", DeltaTable(str(store.root)))
    for column, known in there.items():
        wanted = {value: pc.sum(pc.equal(table[column], value)).as_py() for value in [*known[:2], nowhere[0]]}
        assert {bool(rows) for rows in wanted.values()} == {True, False}
        for value, rows in wanted.items():
            assert len(row_groups_read(path, column, value)[0]) == rows
            assert pl.scan_parquet(path).filter(pl.col(column) == value).collect().height == rows
            assert pq.read_table(path, filters=[(column, "=", value)], partitioning=None).num_rows == rows
            (counted,) = pa.table(
                delta.execute(f"SELECT count(*) AS n FROM lake WHERE {column} = '{value}'").read_all()
            )["n"].to_pylist()
            assert counted == rows


def test_a_filter_is_as_large_as_its_values_need_and_a_column_without_values_has_none():
    table = pa.table({"a": [None, "x", "y", "y"], "b": pa.nulls(4, pa.string()), "c": list("stuv")})
    assert bloom_filters(table, ["a", "b"], 0.05) == {"a": {"ndv": 2, "fpp": 0.05}}
