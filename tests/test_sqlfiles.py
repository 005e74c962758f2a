"""queries/ as it is read: where it is, its order, its headers, and the files a lake gets from it."""

import pytest

from analytics import sqlfiles
from analytics.errors import QueryFileError, UsageError

RUNS = """-- Runs
-- row: one run
-- from: run_pieces
-- unknown: NULL = not said;
--   never zero
-- not counted: copies
-- by: wire, day
-- params: since until
-- picture: bar
--   The first note.
--   The second.
CREATE OR REPLACE VIEW runs AS
SELECT 1 AS n -- from: no header
"""


@pytest.fixture
def place(tmp_path):
    for folder in ("facts", "checks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "all.sql").write_text("-- the order\n.read queries/facts/runs.sql\n\n.read queries/facts/calls.sql\n")
    (tmp_path / "facts" / "runs.sql").write_text(RUNS)
    (tmp_path / "facts" / "calls.sql").write_text("-- Calls\nCREATE VIEW calls AS SELECT 'a;b' AS x;\n")
    (tmp_path / "facts" / "also.sql").write_text("SELECT 1;")
    (tmp_path / "checks" / "lines.sql").write_text("-- Lines\n-- row: a broken source\nSELECT 1")
    return tmp_path


def test_files_load_in_the_order_of_all_sql(place):
    assert [file.name for file in sqlfiles.load(place)] == ["runs", "calls"]
    assert [file.name for file in sqlfiles.in_layer("facts", place)] == ["runs", "calls", "also"]


def test_a_header_is_read_whole_and_ends_where_the_statement_begins(place):
    runs = sqlfiles.find("facts", "runs", place)
    assert (runs.title, runs.row, runs.source, runs.not_counted) == ("Runs", "one run", "run_pieces", "copies")
    assert runs.unknown == "NULL = not said; never zero"
    assert (runs.by, runs.params, runs.picture) == (("wire", "day"), ("since", "until"), "bar")
    assert runs.notes == "The first note. The second."
    assert (runs.relation, sqlfiles.find("checks", "lines", place).relation) == ("runs", None)


def test_a_full_line_goes_on_before_the_notes_begin():
    long = "-- not counted: " + "x" * 90
    said = sqlfiles.header(f"-- T\n-- row: r\n{long}\n--   and more.\n--   A note.\nSELECT 1")
    assert said["not counted"].endswith("x and more.")
    assert said["notes"] == "A note."


def test_views_sql_is_every_file_and_each_statement_ends(place):
    text = sqlfiles.views_sql(place)
    assert text.index("VIEW runs") < text.index("VIEW calls")
    assert "no header\n;" in text, "a last comment does not swallow the semicolon"
    assert text.endswith("AS x;\n")


def test_paths_are_quoted_in_open_sql():
    text = sqlfiles.open_sql({"event": ["/it's/a.parquet"], "refusal": ["/b"], "source": ["/c", "/d"]}, 3)
    assert "'/it''s/a.parquet'" in text
    assert "SET VARIABLE source_files = [\n  '/c',\n  '/d'\n];" in text
    assert text.startswith("-- Version 3 ")


def test_an_unknown_name_says_the_nearest(place):
    with pytest.raises(UsageError, match=r"no fact 'run'. Did you mean 'runs'\? Available: also, calls, runs"):
        sqlfiles.find("facts", "run", place)


@pytest.mark.parametrize("line", ["SELECT 1;", ".read queries/facts/none.sql"])
def test_a_wrong_order_file_is_an_error_with_its_name(place, line):
    (place / "all.sql").write_text(line + "\n")
    with pytest.raises(QueryFileError, match="cannot be used"):
        sqlfiles.views_sql(place)


def test_the_folder_of_this_checkout_is_found():
    assert (sqlfiles.folder() / "all.sql").is_file()
    for file in sqlfiles.load():
        assert file.title, file.path
        assert file.row, file.path
