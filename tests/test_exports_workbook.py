"""`runlake export --format xlsx`: typed cells, read back by openpyxl, equal to what was counted by hand."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import exports_lake
import native_make as make
import openpyxl
import pytest
from exports_lake import BY_HAND, counted

from analytics import open_lake
from analytics.reportset import Report, all_reports
from analytics.rows import rows_of
from analytics.workbook import LONGEST_TEXT, NOTES, sheet_name, write_workbook

small, cli = exports_lake.small, exports_lake.cli  # fixtures
GOLDEN = Path(__file__).parent / "golden" / "exports" / "workbook.json"
NAMED = ["overview", "token_usage", "denials_by_tool", "unfinished_by_tool", "rate_limits", "orphan_results"]
WHEN = datetime(2026, 5, 4, 10, tzinfo=UTC)


def rows_in(sheet):
    """The rows of a sheet as dictionaries. A workbook knows no zone: its times are UTC."""
    head, *rest = sheet.iter_rows(values_only=True)
    values = ([value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in row] for row in rest)
    return [dict(zip(head, row, strict=True)) for row in values]


def made_of(**queries):
    """A workbook of the answers to some queries."""
    to = io.BytesIO()
    reports = [Report(name, name, "one row", rows_of(duckdb.connect().sql(query))) for name, query in queries.items()]
    write_workbook(reports, {"runlake": "0"}, WHEN, to)
    return openpyxl.load_workbook(to)


@pytest.fixture
def book(cli, tmp_path):
    file = tmp_path / "named.xlsx"
    code, out, err = cli("export", *NAMED, "-o", file)
    assert (code, out, err) == (0, b"", "")
    return openpyxl.load_workbook(file)


def test_each_report_is_a_sheet_with_the_rows_counted_by_hand(book):
    assert book.sheetnames == [*NAMED, NOTES]
    for name in NAMED:
        assert counted(rows_in(book[name]), name) == BY_HAND[name], name


def test_pandas_reads_the_same(cli, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed; openpyxl has read the same")
    cli("export", *NAMED, "-o", tmp_path / "named.xlsx")
    frame = pd.read_excel(tmp_path / "named.xlsx", sheet_name="overview")
    assert frame["input_tokens"].tolist() == [2000, 1000, 1000, 4000]
    assert str(frame["first_at"].dtype).startswith("datetime64")
    assert frame["cost_usd"].isna().tolist() == [True, False, True, False]


def test_the_notes_name_the_flags_and_how_many_rows_they_mark(book):
    notes = [tuple(row) for row in book[NOTES].iter_rows(values_only=True)]
    said = {(sheet, about): note for sheet, about, note in notes}
    assert said["overview", "tokens_are_lower_bound"] == "Where true, the figure may be higher. Marks 2 of 4."
    assert said["token_usage", "cost_is_lower_bound"] == "Where true, the figure may be higher. Marks 2 of 2."
    assert said["overview", "unfinished_is_exact"].endswith("may yet finish. Marks 3 of 4.")
    assert said["orphan_results", book_title("orphan_results")].endswith("0 rows.")
    assert ("lake version", "1", None) in notes


def book_title(name):
    from analytics.sqlfiles import find

    return find("reports", name).title


def test_the_cells_are_as_agreed(book, update):
    cells = {
        sheet.title: [[[cell.data_type, str(cell.value), cell.number_format] for cell in row] for row in sheet.rows]
        for sheet in book
        if sheet.title in ("overview", "rate_limits", "denials_by_tool")
    }
    text = json.dumps(cells, indent=1, ensure_ascii=False) + "\n"
    if update:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_all_reports_are_there_unless_some_are_named(cli, tmp_path):
    assert cli("export", "--format", "xlsx", "-o", tmp_path / "all.xlsx")[0] == 0
    book = openpyxl.load_workbook(tmp_path / "all.xlsx", read_only=True)
    assert book.sheetnames == [*all_reports(), NOTES]
    assert max(map(len, book.sheetnames)) <= 31


def test_the_same_lake_gives_the_same_bytes(cli, tmp_path):
    for name in ("a.xlsx", "b.xlsx"):
        cli("export", *NAMED, "-o", tmp_path / name)
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_values_keep_their_types():
    book = made_of(types="""
        SELECT 7 AS whole, 9007199254740993 AS wide, 0.5 AS half, 0.1842::DECIMAL(18, 4) AS cost_usd, true AS yes,
            TIMESTAMPTZ '2026-09-01 14:00:00.25+02' AS moment, DATE '2026-09-01' AS day, '0012' AS run_id,
            ['a', 'b'] AS words, NULL::BIGINT AS nothing, 'nan'::DOUBLE AS nan, 'infinity'::TIMESTAMPTZ AS never,
            TIMESTAMPTZ '1600-01-01 00:00:00Z' AS early, 12 AS line
    """)  # fmt: skip
    (row,) = rows_in(book["types"])
    assert row == {
        "whole": 7, "wide": "9007199254740993", "half": 0.5, "cost_usd": 0.1842, "yes": True,
        "moment": datetime(2026, 9, 1, 12, 0, 0, 250_000, UTC), "day": datetime(2026, 9, 1, tzinfo=UTC),
        "run_id": "0012", "words": '["a","b"]', "nothing": None, "nan": "nan", "never": "infinity",
        "early": "1600-01-01T00:00:00Z", "line": 12,
    }  # fmt: skip
    formats = {head.value: cell.number_format for head, cell in zip(*book["types"].iter_rows(), strict=True)}
    assert (formats["line"], formats["whole"], formats["day"]) == ("0", "#,##0", "yyyy-mm-dd")


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://evil.example")', "http://evil.example/", "＝1",
           "\x1b[31m", "a\x00b", "<b>&amp;", "_x0041_", "123", "1e5", "TRUE", "a\u202eb", "'x", "\t=1"]  # fmt: skip


def test_no_text_is_computed_linked_or_taken_for_a_number(tmp_path):
    session = make.Session("hostile").user()
    for number, name in enumerate(HOSTILE):
        session.answer(f"msg_{number}", make.usage(1, 1), make.tool(f"c{number}", name), stop="tool_use")
        session.result(f"c{number}", make.RULED_OUT, is_error=True)
    (tmp_path / "hostile.jsonl").write_bytes(session.data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "hostile.jsonl")
    file = tmp_path / "hostile.xlsx"
    with file.open("wb") as to:
        write_workbook([Report("d", "d", "d", rows_of(lake.report("denials_by_tool")))], {}, WHEN, to)
    cells = [row[0] for row in openpyxl.load_workbook(file)["d"].iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} == {"s"}
    # how a workbook writes _x0041_ for it not to be an A; openpyxl does not take that back, Excel does
    assert {cell.value.replace("_x005F_", "_") for cell in cells} == {
        {"\x1b[31m": "\\x1b[31m", "a\x00b": "a\\x00b", "a\u202eb": "a\\u202eb"}.get(text, text) for text in HOSTILE
    }
    assert {cell.value for cell in cells if cell.quotePrefix} == {
        text for text in HOSTILE if text.startswith(("=", "+", "-", "@", "＝", "\t"))
    }
    with zipfile.ZipFile(file) as parts:
        assert not [name for name in parts.namelist() if "rels" in name and b"evil" in parts.read(name)]
        assert b"<f>" not in b"".join(parts.read(name) for name in parts.namelist() if "sheet" in name)


def test_what_does_not_fit_is_cut_and_said(monkeypatch):
    monkeypatch.setattr("analytics.workbook.LAST_ROW", 3)
    book = made_of(rows="SELECT range AS n FROM range(5)", texts=f"SELECT repeat('x', {LONGEST_TEXT + 1}) AS t")
    assert [row["n"] for row in rows_in(book["rows"])] == [0, 1, 2]
    assert rows_in(book["texts"])[0]["t"].endswith("x…")
    notes = [row[2] for row in book[NOTES].iter_rows(values_only=True)]
    assert "2 more rows do not fit into a sheet." in notes
    assert "1 texts are longer than a cell holds." in notes


@pytest.mark.parametrize(("name", "taken", "made"), [
    ("runs", [], "runs"), ("runs", ["RUNS"], "runs_2"), ("a[b]:c*d?e/f\\g", [], "a_b__c_d_e_f_g"),
    ("x" * 40, [], "x" * 31), ("x" * 40, ["x" * 31], "x" * 29 + "_2"), ("History", [], "History_2"),
    ("'quoted'", [], "quoted"), ("", [], "sheet"),
])  # fmt: skip
def test_a_sheet_has_a_name_that_excel_takes(name, taken, made):
    assert sheet_name(name, taken) == made


def test_money_is_the_nearest_double():
    book = made_of(money="SELECT 0.000000000001::DECIMAL(38, 12) AS a_usd, 123456.789::DECIMAL(38, 12) AS b_usd")
    (row,) = rows_in(book["money"])
    assert row == {"a_usd": float(Decimal("1e-12")), "b_usd": 123456.789}


def test_without_the_extra_the_error_names_it(cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    code, _, err = cli("export", "overview", "-o", tmp_path / "x.xlsx")
    assert code == 2
    assert "pip install 'runlake[report]'" in err
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_stays_out_of_a_lake(cli, small):
    code, _, err = cli("export", "overview", "-o", small.path / "x.xlsx")
    assert (code, "is inside the lake" in err) == (2, True)
