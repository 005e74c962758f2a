"""`runlake export --json`: a golden document, its JSON Schema, and rows that are those counted by hand."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import exports_lake
import jsonschema
import pytest
from exports_lake import BY_HAND, TOUCHED, counted

import analytics
from analytics.reportset import LARGE, all_reports

small, cli = exports_lake.small, exports_lake.cli  # fixtures
GOLDEN = Path(__file__).parent / "golden" / "exports" / "document.json"


@pytest.fixture(scope="module")
def schema():
    made = json.loads((files("analytics") / "_schema" / "export-1.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(made)
    return made


def document(cli, *arguments):
    code, out, err = cli("export", "--json", *arguments)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("name", BY_HAND)
def test_rows_are_those_counted_by_hand(cli, name):
    made = document(cli, name)["reports"][name]
    kinds = {column["name"]: column["kind"] for column in made["columns"]}
    rows = [
        {
            key: datetime.fromisoformat(value) if value and kinds[key] == "moment" else value
            for key, value in row.items()
        }
        for row in made["rows"]
    ]
    assert counted(rows, name) == BY_HAND[name]
    assert all(list(row) == list(kinds) for row in made["rows"])


def test_data_quality_is_that_counted_by_hand(cli):
    rows = document(cli, "data_quality")["reports"]["data_quality"]["rows"]
    assert {row["topic"]: (row["touched"], row["of_all"]) for row in rows if row["touched"]} == TOUCHED
    assert all(row["share"] == pytest.approx(row["touched"] / row["of_all"]) for row in rows)


def test_all_reports_are_there_and_the_document_is_of_its_schema(cli, schema):
    made = document(cli)
    jsonschema.validate(made, schema)
    assert list(made["reports"]) == all_reports()
    assert not LARGE & made["reports"].keys()
    assert made["runlake_version"] == analytics.__version__
    assert (made["schema_version"], made["lake_version"], made["filters"]) == (1, 1, {})


def test_flags_are_named_beside_the_figures_they_belong_to(cli):
    columns = {one["name"]: one for one in document(cli, "overview")["reports"]["overview"]["columns"]}
    assert columns["input_tokens"]["flag"] == {
        "column": "tokens_are_lower_bound", "marks_when": True, "as": "lower_bound",
    }  # fmt: skip
    assert columns["tool_calls_unfinished"]["flag"] == {
        "column": "unfinished_is_exact", "marks_when": False, "as": "open",
    }  # fmt: skip
    assert "flag" not in columns["runs"]


def test_filters_are_said(cli):
    made = document(cli, "overview", "--wire", "codex-rollout", "--since", "2026-05-04")
    assert made["filters"] == {"wire": "codex-rollout", "since": "2026-05-04"}
    assert [row["wire"] for row in made["reports"]["overview"]["rows"]] == ["codex-rollout", "all"]


def test_the_document_is_as_agreed(cli, update):
    _, out, _ = cli("export", "--json", "overview", "token_usage", "denials_by_tool", "orphan_results")
    text = out.decode().replace(f'"runlake_version":"{analytics.__version__}"', '"runlake_version":"0"')
    if update:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("spoil", [
    lambda made: made.pop("schema_version"),
    lambda made: made.update(schema_version=2),
    lambda made: made.update(lake_version="1"),
    lambda made: made["reports"]["overview"].pop("rows"),
    lambda made: made["reports"]["overview"]["columns"][0].update(kind="number"),
    lambda made: made["reports"].update({"Not a name": made["reports"]["overview"]}),
    lambda made: made["reports"]["overview"]["rows"].append([1]),
])  # fmt: skip
def test_the_schema_refuses_what_is_no_such_document(cli, schema, spoil):
    made = document(cli, "overview")
    spoil(made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, schema)


def test_the_schema_is_printed(cli, schema):
    code, out, _ = cli("export", "--json-schema")
    assert (code, json.loads(out)) == (0, schema)


@pytest.mark.parametrize(("arguments", "words"), [
    (("--json", "nosuch"), "There is no report 'nosuch'."),
    (("--json", "--raw", "x"), "--raw and --json are different exports."),
    (("--json", "--format", "csv"), "--json is one document, not csv."),
    (("--json-schema", "overview"), "--json-schema takes -o, nothing else."),
    (("--force",), "--force is for --to DIR"),
    (("--format", "openmetrics", "--to", "x"), "are different exports."),
])  # fmt: skip
def test_what_does_not_go_together_is_said(cli, arguments, words):
    code, out, err = cli("export", *arguments)
    assert (code, out) == (2, b"")
    assert words in err
