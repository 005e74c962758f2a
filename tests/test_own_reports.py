"""Reports of one's own: the header, parameters that are bound, the sandbox, and errors with file and line."""

from __future__ import annotations

import json

import pytest

from analytics import open_lake
from analytics.catalog import Catalog, built_in
from analytics.cli import run
from analytics.errors import RunlakeError, UsageError

DEAR = """-- Dear runs
-- row: one run that costs much
-- param: min_cost DOUBLE 0.3
-- param: wire_name VARCHAR metaharness
-- picture: bar run_id cost_usd
SELECT run_id, cost_usd FROM run_metrics
WHERE cost_usd >= getvariable('min_cost') AND wire = getvariable('wire_name')
ORDER BY cost_usd DESC, run_id
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dear_runs.sql").write_text(DEAR)
    return tmp_path


@pytest.fixture
def cli(sample_lake, capfd):
    def call(*arguments):
        code = run([*arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    return call


def asked(cli, sample_lake, *arguments):
    code, out, err = cli("report", *arguments, "--lake", str(sample_lake.path), "--format", "json")
    assert code == 0, err
    return json.loads(out)


def dear(sample_lake, least, wire="metaharness"):
    rows = sample_lake.sql("SELECT run_id, cost_usd, wire FROM run_metrics WHERE cost_usd IS NOT NULL").fetchall()
    return {run_id for run_id, cost, of in rows if cost >= least and of == wire}


def test_it_is_listed_and_asked_like_the_built_in_ones(cli, sample_lake, folder):
    code, out, _ = cli("reports", "--reports", str(folder), "--format", "json")
    listed = {row["report"]: row for row in json.loads(out)}
    assert code == 0
    assert listed["dear_runs"]["title"] == "Dear runs"
    assert listed["dear_runs"]["one_row_is"] == "one run that costs much"
    assert "denials" in listed
    rows = asked(cli, sample_lake, "dear_runs", "--reports", str(folder))
    assert {row["run_id"] for row in rows} == dear(sample_lake, 0.3) != set()


def test_the_folder_is_named_before_the_command_or_by_the_environment(cli, sample_lake, folder, monkeypatch):
    lake = ["--lake", str(sample_lake.path)]
    before = cli("--reports", str(folder), "report", "dear_runs", *lake, "--format", "csv")
    assert before[0] == 0
    monkeypatch.setenv("RUNLAKE_REPORTS", str(folder))
    assert cli("report", "dear_runs", *lake, "--format", "csv") == before
    assert open_lake(sample_lake.path).report("dear_runs").fetchall()


def test_parameters_are_values_never_text_of_the_statement(cli, sample_lake, folder):
    own = ["dear_runs", "--reports", str(folder)]
    rows = asked(cli, sample_lake, *own, "--set", "min_cost=0.1")
    assert {row["run_id"] for row in rows} == dear(sample_lake, 0.1)
    assert len(rows) > len(dear(sample_lake, 0.3))
    hostile = "metaharness' OR true --"
    assert asked(cli, sample_lake, *own, "--set", f"wire_name={hostile}", "--set", "min_cost=0") == []
    lake = open_lake(sample_lake.path, reports=folder)
    assert {row[0] for row in lake.report("dear_runs", set={"min_cost": 0.1}).fetchall()} == dear(sample_lake, 0.1)


def test_filters_and_where_narrow_it(cli, sample_lake, folder):
    own = ["dear_runs", "--reports", str(folder), "--set", "min_cost=0"]
    assert asked(cli, sample_lake, *own, "--wire", "harness-lab") == []
    assert {r["run_id"] for r in asked(cli, sample_lake, *own, "--where", "cost_usd < 0.3")} == (
        dear(sample_lake, 0) - dear(sample_lake, 0.3)
    )


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("-- pictur: bar a b", "line 2: 'pictur' is no key of a header. Did you mean 'picture'?"),
        ("-- picture: pie a b", "line 2: There is no kind of picture 'pie'. "),
        ("-- picture: bar a", "line 2: The picture 'bar a' names 1 column. Write `bar category value [colour]`."),
        ("-- param: least", "line 2: a parameter is written `-- param: NAME TYPE [DEFAULT]`."),
        ("-- param: least MONEY 1", "line 2: There is no type of a parameter 'MONEY'."),
        ("-- param: least DOUBLE much", "line 2: The parameter least is a number (DOUBLE), not 'much'."),
        ("-- param: since DATE 2026-01-01", "line 2: the name 'since' is taken."),
        ("-- row: a\n-- param: a DOUBLE 1\n-- param: a DOUBLE 2", "line 4: the name 'a' is taken."),
    ],
)
def test_what_is_wrong_in_a_header_is_told_with_file_and_line(tmp_path, header, said):
    file = tmp_path / "mine.sql"
    file.write_text(f"-- Mine\n{header}\nSELECT 1 AS a, 2 AS b\n")
    with pytest.raises(UsageError) as error:
        Catalog(tmp_path)
    assert str(error.value).startswith(f"{file}, {said}")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("denials.sql", "-- Mine\nSELECT 1", "has the name of a built-in report"),
        ("My report.sql", "-- Mine\nSELECT 1", "cannot name a report"),
        ("mine.sql", "SELECT 1", "line 1: the first line is to be a title"),
        ("mine.sql", "-- Mine\nCREATE VIEW x AS SELECT 1", "it creates nothing"),
    ],
)
def test_a_file_that_is_no_report_is_a_usage_error(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        Catalog(tmp_path)


def test_a_folder_that_is_not_there(tmp_path, cli):
    code, _, err = cli("reports", "--reports", str(tmp_path / "no"))
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be read: no such file" in err


@pytest.mark.parametrize("sandboxed", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT 1; SELECT 2",
        "SET threads = 1",
        "FROM glob('/*')",
    ],
)
def test_it_runs_in_the_sandbox_also_where_sql_does_not(sample_lake, tmp_path, sandboxed, text):
    (tmp_path / "mine.sql").write_text(f"-- Mine\n{text}\n")
    with open_lake(sample_lake.path, sandboxed=sandboxed, reports=tmp_path) as lake, pytest.raises(RunlakeError):
        lake.report("mine").fetchall()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--set", "max_cost=1"], "no parameter 'max_cost'. Did you mean 'min_cost'?"),
        (["--set", "min_cost=dear"], "The parameter min_cost is a number (DOUBLE), not 'dear'."),
        (["--set", "min_cost"], "--set takes NAME=VALUE"),
    ],
)
def test_a_wrong_setting_is_a_usage_error(cli, sample_lake, folder, given, said):
    code, out, err = cli("report", "dear_runs", "--reports", str(folder), *given, "--lake", str(sample_lake.path))
    assert (code, out) == (2, "")
    assert said in err


def test_a_parameter_without_a_default_must_be_given(sample_lake, tmp_path):
    (tmp_path / "mine.sql").write_text("-- Mine\n-- param: day DATE\nSELECT getvariable('day') AS day\n")
    lake = open_lake(sample_lake.path, reports=tmp_path)
    with pytest.raises(UsageError, match=r"The report mine asks for day \(DATE\): give --set day=VALUE"):
        lake.report("mine")
    ((day,),) = lake.report("mine", set={"day": "2026-11-02"}).fetchall()
    assert day.isoformat() == "2026-11-02"


def test_a_grouping_of_one_s_own(sample_lake, tmp_path):
    (tmp_path / "denials_by_wire.sql").write_text(
        "-- Denials by wire\nSELECT wire, sum(denied_calls)::BIGINT AS denied_calls FROM run_metrics GROUP BY wire\n"
    )
    lake = open_lake(sample_lake.path, reports=tmp_path)
    assert "wire" in {row["report"]: row for row in lake.reports()}["denials"]["by"]
    wires = sample_lake.sql("SELECT count(DISTINCT wire) FROM run_metrics").fetchall()[0][0]
    assert len(lake.report("denials", by="wire").fetchall()) == wires


def test_built_in_pictures_can_be_drawn(sample_lake):
    """Each picture of each header names columns that the report has."""
    from analytics.pictures import fits, pictures

    for name, file in built_in().items():
        for picture in pictures(file.picture):
            assert fits(picture, sample_lake.report(name).columns) is None, (name, picture.text)


MISTAKES = {
    "SELECT nope FROM run_metrics": 'column "nope" not found',
    "SELECT CAST(run_id AS BIGINT) AS n FROM run_metrics": "Could not convert string",  # while rows are fetched
    "SELEC 1": 'syntax error at or near "SELEC"',
    "SELECT * FROM nope": "There is no relation 'nope'.",
    "SELECT 1; SELECT 2": "The text holds 2 statements.",
    "": "The query is empty.",
}
COMMANDS = [
    "report mine", "report mine runs --format json", "report mine --html FILE.html", "report mine --format md --top 3",
    "report mine runs --format csv -o FILE", "export mine --json", "export mine -o FILE.xlsx",
    "export mine --to FILE", "export mine --format csv -o FILE",
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "text"),
    [(command, text) for command in COMMANDS for text in [*MISTAKES][: 2 if command != "report mine" else None]],
)
def test_a_mistake_in_its_sql_is_told_with_its_file(cli, sample_lake, tmp_path, command, text):
    file = tmp_path / "mine.sql"
    file.write_text(f"-- Mine\n{text}\n")
    words = command.replace("FILE", str(tmp_path / "out")).split()
    code, _, err = cli(*words, "--lake", str(sample_lake.path), "--reports", str(tmp_path))
    assert code in (1, 2)
    assert f"Error: {file}: " in err
    assert MISTAKES[text] in err
    assert err.count(str(file)) == 1


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b""], ids=["byte order mark", "none"])
def test_a_file_of_another_editor(cli, sample_lake, tmp_path, start):
    text = "-- Mine\r\n-- row: one\r\n-- param: n BIGINT 2\r\nSELECT getvariable('n') AS n\r\n"
    (tmp_path / "mine.sql").write_bytes(start + text.encode())
    assert asked(cli, sample_lake, "mine", "--reports", str(tmp_path)) == [{"n": 2}]


def test_a_file_that_cannot_be_read(cli, sample_lake, tmp_path):
    file = tmp_path / "mine.sql"
    file.write_bytes(b"-- Mine\n-- row: one caf\xe9\nSELECT 1 AS n\n")
    code, _, err = cli("reports", "--reports", str(tmp_path))
    assert (code, err) == (2, f"Error: {file}, line 2: the byte 0xe9 is not UTF-8. Re-encode the file.\n")
    file.unlink()
    file.mkdir()
    code, _, err = cli("reports", "--reports", str(tmp_path))
    assert (code, err) == (2, f"Error: {file} cannot be read: is a directory.\n")


@pytest.mark.parametrize("name", ["denials", "run_metrics", "report_denials", "denials_by_tool"])
def test_what_has_a_name_already_keeps_it(tmp_path, name):
    (tmp_path / f"{name}.sql").write_text("-- Mine\nSELECT 1 AS n\n")
    with pytest.raises(UsageError, match=f"{name}.sql has the name of a built-in report or relation"):
        Catalog(tmp_path)


def test_it_is_summed_up_in_markdown(cli, sample_lake, folder):
    lake = ["--lake", str(sample_lake.path), "--reports", str(folder)]
    code, out, err = cli("report", "dear_runs", *lake, "--format", "md", "--top", "1")
    assert code == 0, err
    assert "## Dear runs\n\n| run_id | cost_usd |" in out
    assert f"{len(dear(sample_lake, 0.3)) - 1} more" in out


def test_it_goes_into_every_export(cli, sample_lake, folder):
    import duckdb
    import jsonschema
    import openpyxl

    from analytics.document import json_schema

    lake = ["--lake", str(sample_lake.path), "--reports", str(folder), "--set", "min_cost=0.2"]
    wanted = {(run_id, cost) for run_id, cost in sample_lake.sql(
        "SELECT run_id, cost_usd FROM run_metrics WHERE wire = 'metaharness' AND cost_usd >= 0.2"
    ).fetchall()}  # fmt: skip
    assert len(wanted) > len(dear(sample_lake, 0.3))
    code, out, err = cli("export", "--json", "dear_runs", *lake)
    assert code == 0, err
    made = json.loads(out)
    jsonschema.validate(made, json.loads(json_schema()))
    assert made["parameters"] == {"min_cost": "0.2"}
    assert made["reports"]["dear_runs"]["one_row_is"] == "one run that costs much"
    assert {(row["run_id"], row["cost_usd"]) for row in made["reports"]["dear_runs"]["rows"]} == wanted
    book, files, plain = folder / "all.xlsx", folder / "to", folder / "plain"
    assert cli("export", "-o", str(book), *lake)[0] == 0
    sheet = openpyxl.load_workbook(book)["dear_runs"]
    assert {row[:2] for row in sheet.iter_rows(min_row=2, values_only=True)} == wanted
    assert cli("export", "dear_runs", "runs", "--to", str(files), *lake)[0] == 0
    assert set(duckdb.sql(f"SELECT run_id, cost_usd FROM '{files}/dear_runs.parquet'").fetchall()) == wanted
    assert json.loads((files / "manifest.json").read_text())["files"][0]["relation"] == "dear_runs"
    assert cli("export", "dear_runs", "--format", "csv", "-o", str(plain), *lake)[0] == 0
    assert set(duckdb.sql(f"SELECT run_id, cost_usd FROM '{plain}/dear_runs.csv'").fetchall()) == wanted


@pytest.mark.parametrize("arguments", [["--json", "runs"], ["--to", "FOLDER"], ["--format", "openmetrics"]])
def test_a_parameter_that_nothing_exported_asks_for(cli, sample_lake, folder, arguments):
    lake = ["--lake", str(sample_lake.path), "--reports", str(folder), "--set", "min_cost=0.2"]
    code, _, err = cli("export", *[word.replace("FOLDER", str(folder / "out")) for word in arguments], *lake)
    assert code == 2
    assert "--set" in err or "There is no parameter 'min_cost'. Available: none." in err
    assert not (folder / "out").exists()
