"""Rows fetched from DuckDB itself and rows through Arrow are written as the same bytes, in every format."""

from __future__ import annotations

import io

import duckdb
import pytest

from analytics.api import report_list
from analytics.arrowrows import fields_of
from analytics.export import Options, write
from analytics.rows import rows_of

FORMATS = ("table", "json", "jsonl", "csv", "md")
EDGES = """
    FROM (VALUES
        (1::BIGINT, 'a', 1.5::DOUBLE, true, TIMESTAMPTZ '2026-09-01 12:00:00.000001Z', ['x', NULL, ''], 1::TINYINT),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (9223372036854775807, '', 'nan'::DOUBLE, false, TIMESTAMPTZ 'infinity', [], -128),
        (-9223372036854775808, '=1+1', 'infinity'::DOUBLE, true, TIMESTAMPTZ '-infinity', ['=1', '|'], 127),
        (0, E'\\x1b[31m', -0.0::DOUBLE, true, TIMESTAMPTZ '9999-12-31 23:59:59.999999Z', ['日本'], 0),
        (1, '日本', 1e-320::DOUBLE, true, TIMESTAMPTZ '0001-01-01 00:00:00Z', ['a'], 0),
        (1, 'b', 1e300::DOUBLE, true, TIMESTAMPTZ '10000-01-01 00:00:00Z', ['a'], 0),
        (1, 'b', 1e22::DOUBLE, true, TIMESTAMPTZ '0044-03-15 (BC) 00:00:00Z', ['a'], 0),
        (1, 'b', 0.1::DOUBLE, true, TIMESTAMPTZ '1969-12-31 23:59:59.5Z', ['a'], 0)
    ) AS t(n, s, f, b, seen_at, l, small)
    SELECT
        *, CASE n WHEN 1 THEN DATE '2026-09-01' WHEN 0 THEN DATE '0001-01-01' END AS day,
        n AS n, seen_at AS "a ""quoted"" name", CAST(s AS VARCHAR) AS "#1"
"""


def connect():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def both(relation, format_):
    made = []
    for are_few in (True, False):
        to = io.BytesIO()
        count = write(relation, Options(format_), to, are_few=are_few)
        made.append((count, to.getvalue()))
    return made


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("query", [EDGES, f"{EDGES} WHERE false", "SELECT range AS n FROM range(20000)"])
def test_both_ways_write_the_same(query, format_):
    direct, arrow = both(connect().sql(query), format_)
    assert direct == arrow


def test_times_beyond_the_calendar_are_told_apart():
    """Python's years end with 9999, DuckDB's do not: none may come out as another time, nor as nothing."""
    query = """SELECT unnest([TIMESTAMPTZ 'infinity', '-infinity', '9999-12-31 23:59:59.999999Z', NULL,
        '10000-01-01 00:00:00Z', '0001-01-01 00:00:00Z']) AS at"""
    (column,) = [column for (column,) in rows_of(connect().sql(query), are_few=True).batches]
    assert column == [
        "infinity", "-infinity", "9999-12-31T23:59:59.999999Z", None, "1970-01-01T00:00:00Z+253402300800000000us",
        "0001-01-01T00:00:00Z",
    ]  # fmt: skip


def test_types_that_python_would_round_go_through_arrow():
    """An interval of a month is 30 days to Python, a huge sum may leave 64 bits, a day may be infinite."""
    query = "SELECT INTERVAL 1 MONTH AS i, 1267650600228229401496703205376::HUGEINT AS h,"
    query += " 'a\\xFF'::BLOB AS raw, 0.10::DECIMAL(5, 2) AS d"
    direct, arrow = both(connect().sql(query), "csv")
    assert direct == arrow == (1, b"i,h,raw,d\nP1M,1267650600228229401496703205376,a\\xff,0.10\n")


@pytest.mark.parametrize("name", [report["report"] for report in report_list()])
def test_reports_are_the_same_both_ways(sample_lake, name):
    relation = sample_lake.report(name)
    direct, arrow = both(relation, "csv")
    assert direct == arrow
    assert rows_of(relation, are_few=True).fields == fields_of(relation.to_arrow_table().schema)
