"""The SQL of queries/: each file alone on an empty lake, and all answers on a small lake written by hand.

`fixtures/queries/lake.json` holds the runs, `expected.json` what was reasoned out for them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from queries_lake import Lake, opening, write_lake

from analytics.schema import EVENT

ROOT = Path(__file__).parents[1]
QUERIES = ROOT / "queries"
FIXTURES = Path(__file__).parent / "fixtures" / "queries"
LOADED = re.findall(r"^\.read (queries/\S+\.sql)$", (QUERIES / "all.sql").read_text(encoding="utf-8"), re.MULTILINE)
HEADER = ["row", "from", "unknown", "not counted"]
REPORT_HEADER = [*HEADER, "by", "params", "picture"]
EXPECTED = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
# constructs that mean something else, or nothing, on another engine (design: portable subset)
FORBIDDEN = {
    r"\blen\s*\(": "length or array_length",
    r"\bepoch_ms\b": "epoch_us",
    r"\bepoch\s*\(": "epoch_us",
    r"\bread_json": "the lake",
    r"\{\{|\{%": "plain SQL",
    r"\bpercentile_cont\b|\bquantile_disc\b": "quantile_cont or median",
    r"\bdate_diff\b|\bdatediff\b": "differences of epoch_us",
    r"(?<![\w.(])(?:\w+\.)?\w+->>": "parentheses around ->>, which binds weaker than IS and =",
    r"TRY_CAST\([^()]*(?:\([^()]*\))?[^()]*AS (?!DOUBLE|DECIMAL)": "TRY_CAST to DOUBLE or DECIMAL",
}


def relation_of(path: str) -> str:
    name = Path(path).stem
    prefix = {"reports": "report_", "checks": "check_"}.get(Path(path).parent.name, "")
    return prefix + name


def connect(files, last: str = "check") -> duckdb.DuckDBPyConnection:
    """A lake with all relations, or with those up to the file named `last`."""
    connection = duckdb.connect()
    for statement in opening(files):
        connection.execute(statement)
    for path in LOADED:
        connection.execute((ROOT / path).read_text(encoding="utf-8"))
        if Path(path).stem == last:
            break
    return connection


def records(connection, sql):
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.fixture(scope="module")
def specs():
    return json.loads((FIXTURES / "lake.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def files(specs, tmp_path_factory):
    return write_lake(tmp_path_factory.mktemp("lake"), specs)


@pytest.fixture(scope="module")
def lake(specs, tmp_path_factory):
    """The relations as the product puts them before a query; the shell's test reads them as views."""
    return Lake(tmp_path_factory.mktemp("lake"), specs)


@pytest.fixture(scope="module")
def views(files):
    return connect(files, "run_metrics")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("empty"), [])


def test_all_sql_names_every_file_once():
    found = sorted(str(path.relative_to(ROOT)) for path in QUERIES.rglob("*.sql") if path.name != "all.sql")
    assert sorted(LOADED) == found


def test_a_file_stands_after_those_it_reads():
    made = set()
    names = {relation_of(path) for path in LOADED}
    for path in LOADED:
        text = re.sub(r"--.*", "", (ROOT / path).read_text(encoding="utf-8"))
        read = set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", text)) & names - {relation_of(path)}
        local = set(re.findall(r"(?:WITH|,)\s+(\w+) AS \(", text))
        assert read - local <= made, path
        made.add(relation_of(path))


def test_the_readme_lists_every_relation(update):
    path = QUERIES / "README.md"
    text = path.read_text(encoding="utf-8")
    begin, end = "<!-- relations -->\n", "<!-- end of relations -->\n"
    lines = ["", "| relation | a row is |", "| --- | --- |"]
    for file in LOADED:
        row = re.search(r"^-- row: (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)[1]
        lines.append(f"| [`{relation_of(file)}`]({file.removeprefix('queries/')}) | {row} |")
    before, after = text.split(begin)[0], text.split(end)[1]
    wanted = before + begin + "\n".join([*lines, "", ""]) + end + after
    if update:
        path.write_text(wanted, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == wanted, "run pytest --update"


def test_reports_by_something_are_named_in_their_headers():
    families = {}
    for file in LOADED:
        if "/reports/" in file:
            name, _, by = Path(file).stem.partition("_by_")
            families.setdefault(name, set()).add(by)
            said = re.search(r"^-- by: (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)[1]
            families.setdefault(f"{name} says", set()).update(set(said.split(", ")) - {"none"})
    for name in [name for name in families if not name.endswith(" says")]:
        assert families[name] - {""} == families[f"{name} says"], name
        assert "" in families[name], f"{name} has no plain report"


@pytest.mark.parametrize("path", LOADED)
def test_a_file_has_its_header_and_makes_one_relation(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert re.match(r"-- [A-Z][^:]+$", lines[0]), lines[0]
    comments = [line for line in lines if line.startswith("--")]
    assert lines[: len(comments)] == comments, "the header is the only comment block at the top"
    keys = [found[1] for line in comments[1:] if (found := re.match(r"-- ([a-z][a-z ]*): \S", line))]
    assert keys == (REPORT_HEADER if "/reports/" in path else HEADER)
    assert re.findall(r"^CREATE OR REPLACE VIEW (\w+) AS$", text, re.MULTILINE) == [relation_of(path)]
    assert re.sub(r"--.*", "", text).count(";") == 1
    assert text.endswith(";\n")
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("path", LOADED)
def test_a_file_stays_inside_the_portable_subset(path):
    text = re.sub(r"--.*", "", (ROOT / path).read_text(encoding="utf-8"))
    for pattern, instead in FORBIDDEN.items():
        assert not re.search(pattern, text), f"{pattern}: use {instead}"


@pytest.mark.parametrize("path", LOADED)
def test_a_relation_runs_on_an_empty_lake(empty, path):
    relation = relation_of(path)
    rows = empty.rows(f"FROM {relation}")
    allowed = {"check_sums_agree": 0}
    assert len(rows) == allowed.get(relation, 0)


def test_no_column_is_wider_than_64_bits(files):
    """One test for all: to bind every view takes seconds, on each worker that is asked for one of them."""
    views = connect(files)
    found = {name: records(views, f"DESCRIBE {name}") for name in map(relation_of, LOADED)}
    assert all(found.values())
    wide = [(name, t["column_name"]) for name, types in found.items() for t in types if "HUGEINT" in t["column_type"]]
    assert wide == []


def test_events_have_every_column_of_the_schema(views):
    names = [row["column_name"] for row in records(views, "DESCRIBE events")]
    assert names == [*(column.name for column in EVENT), "position"]


@pytest.mark.parametrize("relation", ["events", "run_metrics", "tool_calls", "token_usage", "runs"])
def test_the_payload_is_read_only_where_it_is_asked_for(views, relation):
    """One shared WITH that is kept apart in memory once made every count of events read all payloads."""
    plan = views.execute(f"EXPLAIN SELECT count(*), count(run_id) FROM {relation}").fetchall()[0][1]
    assert "run_id" in plan
    assert "payload" not in plan


@pytest.mark.parametrize("run_id", EXPECTED["runs"])
def test_figures_of_a_run(lake, run_id):
    row = lake.rows(f"FROM run_metrics WHERE run_id = '{run_id}'")[0]
    expected = EXPECTED["runs"][run_id]
    assert {key: row[key] for key in expected} == expected


def test_there_are_no_other_runs(lake):
    assert {row["run_id"] for row in lake.rows("FROM run_metrics")} == EXPECTED["runs"].keys()


@pytest.mark.parametrize("answer", EXPECTED["answers"], ids=lambda answer: answer["about"])
def test_answer(lake, answer):
    assert [list(row.values()) for row in lake.rows(answer["sql"])] == answer["rows"]


@pytest.mark.parametrize("path", [path for path in LOADED if "/checks/" in path])
def test_checks_find_nothing(lake, path):
    assert lake.rows(f"FROM {relation_of(path)}") == []


MARKERS = {
    "the marker is last and right": ([2], "closed"),
    "it declares one line less": ([1], "inconsistent"),
    "two markers": ([2, 3], "inconsistent"),
    "none": ([], "truncated"),
}


@pytest.mark.parametrize(("declared", "expected"), MARKERS.values(), ids=MARKERS)
def test_an_end_marker_is_checked_not_believed(tmp_path, declared, expected):
    rows = [{"kind": "run.started", "end_rule": "counted", "speaks": "tokens"}, {"kind": "message"}]
    rows += [{"kind": "stream.closed", "declared_events": n} for n in declared]
    spec = {"wire": "metaharness", "source": "s", "run": "r", "seq": 1, "rows": rows}
    lake = connect(write_lake(tmp_path, [spec]), "runs")
    assert lake.execute("SELECT completeness FROM runs").fetchall() == [(expected,)]


def test_a_line_after_the_marker_contradicts_it_even_if_refused(tmp_path):
    rows = [
        {"kind": "run.started", "end_rule": "counted"},
        {"kind": "stream.closed", "declared_events": 1},
        {"refused": "not_json"},
    ]
    spec = {"wire": "metaharness", "source": "s", "run": "r", "seq": 1, "rows": rows}
    lake = connect(write_lake(tmp_path, [spec]), "runs")
    row = records(lake, "FROM runs")[0]
    assert (row["completeness"], row["completeness_reason"]) == ("inconsistent", "lines stand after the end marker")


FILTERS = {
    "wire": ("platonic-core", {"p", "q", "q#2"}),
    "run": ("q#2", {"q#2"}),
    "the first of two runs of an id": ("q", {"q"}),
    "since": (datetime(2026, 1, 1, 0, 5, tzinfo=UTC), {"q", "q#2", "h", "i", "b"}),
    "until": (datetime(2026, 1, 1, 0, 2, tzinfo=UTC), {"a", "c", "native-a", "native-b"}),
}


@pytest.mark.parametrize(("name", "value", "runs"), [(name, *said) for name, said in FILTERS.items()], ids=FILTERS)
def test_filters_apply_once_and_everywhere(lake, name, value, runs):
    filters = {name if name in ("wire", "since", "until") else "run": value}
    for relation in ("runs", "run_metrics", "events", "run_states"):
        found = {row["run_id"] for row in lake.rows(f"SELECT DISTINCT run_id FROM {relation}", **filters)}
        assert found == runs, relation
    assert {row["run_id"] for row in lake.rows("FROM refusals", **filters)} <= runs


def test_pieces_of_one_id(tmp_path):
    """Two runs that both stand in two files and took the same id: the pieces are told apart by time."""

    def piece(source, seq, second):
        row = {"kind": "message", "end_rule": "none", "ts": second, "text_chars": second}
        return {"wire": "metaharness", "source": source, "run": "r", "seq": seq, "rows": [row, row]}

    specs = [piece("late-2", 2, 60), piece("early-1", 0, 10), piece("late-1", 0, 50), piece("early-2", 2, 20)]
    lake = connect(write_lake(tmp_path, specs), "run_pieces")
    rows = lake.execute("SELECT run_id, source_id, piece FROM run_pieces ORDER BY 1, 3").fetchall()
    assert rows == [("r", "early-1", 0), ("r", "early-2", 1), ("r#2", "late-1", 0), ("r#2", "late-2", 1)]


@pytest.mark.parametrize("path", LOADED)
def test_the_duckdb_shell_gives_the_same_rows(shell, lake, path):
    relation = relation_of(path)
    assert shell[relation] == lake.rows(f"SELECT count(*) AS n FROM {relation}")[0]["n"]


# each stands on many others, down to the events
NESTED = ["run_metrics", "report_overview", "report_subagents", "transcript", "check_lines_of_sources"]
EACH = [pytest.param([relation_of(path) for path in LOADED], id="all", marks=pytest.mark.long)]


@pytest.mark.parametrize("names", [pytest.param(NESTED, id="some"), *EACH])
def test_the_duckdb_shell_unfolds_views_of_views(ask_shell, files, lake, names):
    """As a user reads them: the files as they are, each a view of views. All of them take a minute to bind."""
    found = ask_shell([*opening(files), *(f".read '{ROOT / path}'" for path in LOADED)], names)
    assert found == {name: lake.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in names}


@pytest.fixture(scope="module")
def shell(ask_shell, files):
    """Row counts of all relations. Each is computed whole, once: what reads it reads the rows that came of it."""
    made = opening(files)
    for path in LOADED:
        name = relation_of(path)
        made += [f".read '{ROOT / path}'", f"CREATE TEMP TABLE {name} AS FROM memory.main.{name}"]
    return ask_shell(made, [relation_of(path) for path in LOADED])


@pytest.fixture(scope="module")
def ask_shell(tmp_path_factory):
    """Row counts from the shell on PyPI, which is an older DuckDB, in a folder that is not ours."""
    binary = shutil.which("duckdb", path=str(Path(sys.executable).parent))
    if binary is None:
        pytest.skip("the DuckDB shell is not installed; it is in the test extra (duckdb-cli)")

    def ask(before, names):
        lines = [line if line.startswith(".") else f"{line};" for line in before]
        counts = [f"SELECT '{name}', count(*) FROM {name};" for name in names]
        script = "\n".join([*lines, ".mode csv", ".headers off", *counts])
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        done = subprocess.run(
            [binary, "-bail"], input=script, capture_output=True, text=True, cwd=elsewhere, timeout=300
        )
        assert done.stderr == ""
        return {name: int(n) for name, n in (line.split(",") for line in done.stdout.splitlines())}

    return ask
