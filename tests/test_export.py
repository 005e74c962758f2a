"""Rows out: a golden file per format (--update writes them anew), and hostile text in each of them."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.arrowrows import fields_of
from analytics.export import Options, sink, write
from analytics.formats import FORMATS, SUFFIXES, format_of
from analytics.render import COMPANIONS, UNKNOWN, duration, table
from analytics.rows import Field

GOLDEN = Path(__file__).parent / "golden" / "export"

SHOWN = """
    FROM (VALUES
        ('run-1', TIMESTAMPTZ '2026-09-01 12:00:00.25Z', 84250, 1234567, true, 3, false, 2, true,
         0.1842::DECIMAL(18, 4), ['big', 'small'], true, 41.5),
        ('run-2', NULL, NULL, NULL, NULL, 0, true, NULL, NULL, NULL, NULL, NULL, NULL),
        ('run-3', TIMESTAMPTZ '2026-09-02 00:00:00Z', 900, 0, false, 1, true, 0, false, 0.00002, [], false, 1e-7)
    ) AS t(run_id, started_at, duration_ms, output_tokens, tokens_are_lower_bound, tool_calls_unfinished,
        unfinished_is_exact, denied_calls, denials_are_lower_bound, cost_usd, models, is_counted, share)
"""

HOSTILE = [
    '=HYPERLINK("http://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a | b", "[x](javascript:alert(1))", "`x`",
    "**b** _i_", "\x1b[31mred\x1b[0m", "\x9b31m", "\x07", "\x7f", "\x00", "a\u202eb", "a\u2028b",
    "https://evil.example/", "www.evil.example", "@someone", "a\\|b", "&lt;",
    "![x](http://evil.example/x.png)", "<!--", "$x$", "~~x~~", "# x", "\udcff",
]  # fmt: skip


def written(rows, format_, formulas="escape"):
    to = io.BytesIO()
    write(rows, Options(format_, formulas), to)
    return to.getvalue()


def hostile_rows():
    texts = [text for text in HOSTILE if text != "\udcff"]
    return pa.table({"tool": texts, "n": list(range(len(texts)))})


@pytest.mark.parametrize("format_", [format_ for format_ in FORMATS if format_ != "parquet"])
def test_each_format_is_as_agreed(format_, update):
    result = written(duckdb.sql(SHOWN), format_)
    file = GOLDEN / f"runs.{format_}"
    if update:
        file.write_bytes(result)
    assert result.decode() == file.read_text(encoding="utf-8")


def test_parquet_keeps_values_and_types():
    relation = duckdb.sql(SHOWN)
    back = pq.read_table(io.BytesIO(written(relation, "parquet")))
    assert back.to_pylist() == relation.to_arrow_table().to_pylist()
    assert back.schema.field("cost_usd").type == pa.decimal128(19, 5)


def test_parquet_holds_what_has_no_parquet_type():
    back = pq.read_table(io.BytesIO(written(duckdb.sql("SELECT INTERVAL 90 MINUTE AS i, NULL AS n"), "parquet")))
    assert back.to_pylist() == [{"i": "PT5400S", "n": None}]


@pytest.mark.parametrize("format_", ["json", "jsonl"])
def test_json_is_exact(format_):
    sql = """SELECT 9223372036854775807 AS big, -9223372036854775808 AS small, 0.1::DECIMAL(38, 20) AS money,
        sum(9223372036854775807) AS total, 1e300 AS float, 'nan'::DOUBLE AS nan, NULL AS nothing, '' AS empty,
        TIMESTAMPTZ '2026-09-01 14:00:00+02' AS zoned, TIMESTAMP '2026-09-01 12:00:00.000001' AS zoneless,
        DATE '2026-09-01' AS day, {'a': [1, NULL]} AS nested, MAP {'k': 1} AS tally, 'ab'::BLOB AS raw, true AS yes,
        'infinity'::TIMESTAMPTZ AS never
        FROM range(2) GROUP BY ALL"""
    text = written(duckdb.sql(sql), format_).decode()
    rows = json.loads(text, parse_float=Decimal) if format_ == "json" else [json.loads(text, parse_float=Decimal)]
    assert rows == [{
        "big": 2**63 - 1, "small": -(2**63), "money": Decimal("0.10000000000000000000"), "total": 2 * (2**63 - 1),
        "float": Decimal("1e300"), "nan": None, "nothing": None, "empty": "", "zoned": "2026-09-01T12:00:00Z",
        "zoneless": "2026-09-01T12:00:00.000001", "day": "2026-09-01", "nested": {"a": [1, None]}, "tally": {"k": 1},
        "raw": "ab", "yes": True, "never": "infinity",
    }]  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("count", [0, 1, 20_000])
def test_any_number_of_rows_streams(format_, count):
    to = io.BytesIO()
    assert write(duckdb.sql(f"SELECT range AS n FROM range({count})"), Options(format_), to) == count
    if format_ == "json":
        assert json.loads(to.getvalue()) == [{"n": n} for n in range(count)]


def test_one_name_twice_loses_no_column():
    assert written(duckdb.sql("SELECT 1 AS a, 2 AS a"), "csv") == b"a,a_1\n1,2\n"
    assert json.loads(written(duckdb.sql("SELECT 1 AS a, 2 AS a"), "json")) == [{"a": 1, "a_1": 2}]


def test_csv_tells_null_from_empty_text():
    assert written(duckdb.sql("SELECT NULL::VARCHAR AS a, '' AS b, 'x,\"y\"' AS c"), "csv") == b'a,b,c\n,"","x,""y"""\n'


def test_csv_disarms_formulas_but_no_numbers():
    text = written(hostile_rows(), "csv").decode()
    cells = [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert not [cell for cell in cells if cell[:1] in set("=+-@\t\r\n＝")]
    assert cells[0] == "'" + HOSTILE[0]
    assert written(duckdb.sql("SELECT -5 AS n, -0.5 AS x, '-5' AS t"), "csv") == b"n,x,t\n-5,-0.5,'-5\n"


def test_csv_raw_leaves_text_alone():
    text = written(hostile_rows(), "csv", "raw").decode()
    assert [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:] == hostile_rows()["tool"].to_pylist()


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "md"])
def test_nothing_a_terminal_acts_on_comes_out(format_):
    text = written(hostile_rows(), format_).decode()
    assert not re.search(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]", text)


def test_a_table_is_one_line_per_row():
    assert len(written(hostile_rows(), "table").decode().splitlines()) == len(hostile_rows()) + 2


def test_markdown_is_inert():
    text = written(hostile_rows(), "md").decode()
    assert len(text.splitlines()) == len(hostile_rows()) + 2
    for line in text.splitlines():
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3
    assert "<" not in text
    assert "://" not in text
    assert not re.search(r"(?<!\\)[`*\[\]]", text)


def test_lone_surrogates_do_not_stop_a_table():
    assert list(table([Field("t", "text")], [("\udcff",)]))[-1] == "\\udcff"


def test_a_terminal_shows_how_far_to_trust_a_figure():
    lines = written(duckdb.sql(SHOWN), "table").decode().splitlines()
    assert "≥ 1,234,567" in lines[2]
    assert "3 open so far" in lines[2]
    assert "≥ 2" in lines[2]
    assert "≥" not in lines[4]
    assert lines[3].count(UNKNOWN) == 8
    assert "lower_bound" not in lines[0]


def test_flags_without_their_figure_stay():
    lines = list(table([Field("is_exact", "truth")], [(False,)]))
    assert lines[0] == "is_exact"
    assert lines[2] == "no"


def test_every_companion_is_a_flag_of_a_relation_or_a_general_one():
    assert len({companion.flag for companion in COMPANIONS}) == len(COMPANIONS)
    for companion in COMPANIONS:
        assert companion.flag.endswith(("lower_bound", "exact"))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_a_table_keeps_to_the_terminal_and_cuts_no_number(width):
    from rich.cells import cell_len

    relation = duckdb.sql(SHOWN).to_arrow_table()
    rows = [tuple(row.values()) for row in relation.to_pylist()]
    rows = [tuple(str(v) if hasattr(v, "year") else v for v in row) for row in rows]
    notes = []
    lines = list(table(fields_of(relation.schema), rows, width=width, note=notes.append))
    assert max(map(cell_len, lines)) <= width
    if width == 20:
        assert "more columns do not fit" in notes[0]
    for line in lines:
        assert not re.search(r"\d…", line)


def test_wide_characters_are_measured():
    lines = list(table([Field("name", "text"), Field("n", "integer")], [("日本", 1), ("ab", 22)]))
    assert lines[2] == "日本   1"
    assert lines[3] == "ab    22"


@pytest.mark.parametrize(("ms", "said"), [
    (0, "0 ms"), (999, "999 ms"), (4_200, "4.2 s"), (59_949, "59.9 s"), (59_950, "1 m 00 s"), (64_000, "1 m 04 s"),
    (3_599_600, "1 h 00 m"), (7_500_000, "2 h 05 m"), (90_000_000, "1 d 01 h"), (-5, "-5 ms"),
])  # fmt: skip
def test_durations_are_said_as_people_do(ms, said):
    assert duration(ms) == said


def test_the_format_comes_from_the_switch_then_from_the_suffix():
    assert format_of("csv", Path("x.json")) == "csv"
    assert format_of(None, Path("x.JSON")) == "json"
    assert format_of(None, None) == "table"
    assert set(SUFFIXES.values()) == set(FORMATS)


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    out = tmp_path / "rows.csv"
    out.write_text("old")

    def broken():
        with sink(out) as to:
            to.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
    assert out.read_text() == "old"
    with sink(out) as to:
        to.write(b"new")
    assert out.read_text() == "new"
