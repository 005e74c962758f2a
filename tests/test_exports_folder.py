"""`runlake export --to DIR`: all facts and metrics, there whole or not at all, with a manifest; read back by DuckDB."""

from __future__ import annotations

import json
from hashlib import sha256

import duckdb
import exports_lake
import pytest
from exports_lake import BY_HAND, counted

import analytics
from analytics.cli import run

small, cli = exports_lake.small, exports_lake.cli  # fixtures


@pytest.fixture(scope="module", params=["parquet", "csv"])
def written(request, small, tmp_path_factory):
    """A folder in either format: (format, folder)."""
    folder = tmp_path_factory.mktemp("written") / "out"
    assert run(["--lake", str(small.path), "export", "--to", str(folder), "--format", request.param]) == 0
    return request.param, folder


def test_all_facts_and_metrics_are_there_as_the_manifest_says(written, small):
    kind, folder = written
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert (manifest["manifest_version"], manifest["lake_version"], manifest["format"]) == (1, 1, kind)
    assert (manifest["runlake_version"], manifest["filters"]) == (analytics.__version__, {})
    assert [file["relation"] for file in manifest["files"]] == small.exported
    assert {file.name for file in folder.iterdir()} == {"manifest.json", *(one["file"] for one in manifest["files"])}
    for one in manifest["files"]:
        data = (folder / one["file"]).read_bytes()
        assert (len(data), sha256(data).hexdigest()) == (one["bytes"], one["sha256"])
        ((rows,),) = duckdb.sql(f"SELECT count(*) FROM '{folder / one['file']}'").fetchall()
        ((asked,),) = small.sql(f"SELECT count(*) FROM {one['relation']}").fetchall()
        assert rows == one["rows"] == asked, one["relation"]
        assert [column["name"] for column in one["columns"]] == small.table(one["relation"]).columns
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_duckdb_reads_what_was_counted_by_hand(written):
    kind, folder = written
    rows = duckdb.sql(f"FROM '{folder}/token_usage_by_model.{kind}' ORDER BY total_tokens DESC").pl().to_dicts()
    assert counted(rows, "token_usage") == BY_HAND["token_usage"]
    runs = duckdb.sql(f"SELECT run_id, tool_calls, denied_calls, cost_usd FROM '{folder}/run_metrics.{kind}'")
    assert sorted(row[1:] for row in runs.fetchall()) == sorted(
        [(0, 0, 0.25), (1, 0, None), (1, 1, None)], key=lambda row: row[:2]
    )


def test_pandas_reads_it(written):
    pd = pytest.importorskip("pandas", reason="pandas is not installed; DuckDB has read the same")
    kind, folder = written
    read = pd.read_parquet if kind == "parquet" else pd.read_csv
    assert read(folder / f"tool_calls.{kind}")["tool"].tolist() == ["Bash", "exec_command"]


def test_named_relations_and_filters(cli, tmp_path):
    code, _, err = cli("export", "runs", "usage", "runs", "--to", tmp_path / "out", "--wire", "claude-stream")
    assert code == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert [(one["relation"], one["rows"]) for one in manifest["files"]] == [("runs", 1), ("usage", 1)]
    assert manifest["filters"] == {"wire": "claude-stream"}
    assert f"{tmp_path}/out/runs.parquet: 1 rows" in err


def test_what_is_there_is_replaced_only_by_force(cli, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    assert cli("export", "runs", "--to", out)[0] == 0  # an empty folder will do
    code, _, err = cli("export", "usage", "--to", out)
    assert (code, f"{out} is not empty." in err) == (2, True)
    assert {file.name for file in out.iterdir()} == {"manifest.json", "runs.parquet"}
    assert cli("export", "usage", "--to", out, "--force")[0] == 0
    assert {file.name for file in out.iterdir()} == {"manifest.json", "usage.parquet"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_what_was_there_and_nothing_beside_it(cli, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert cli("export", "runs", "--to", out)[0] == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("analytics.exportfolder._digest", full)
    code, _, err = cli("export", "usage", "--to", out, "--force")
    assert (code, "no space left on device" in err) == (1, True)
    code, _, err = cli("export", "usage", "--to", tmp_path / "new")
    assert code == 1
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_rename_that_fails_puts_the_old_folder_back(cli, tmp_path, monkeypatch):
    from pathlib import Path

    out = tmp_path / "out"
    assert cli("export", "runs", "--to", out)[0] == 0
    real = Path.rename

    def rename(path, to):
        if path.name.endswith(".partial"):
            raise PermissionError(13, "Permission denied")
        return real(path, to)

    monkeypatch.setattr(Path, "rename", rename)
    assert cli("export", "usage", "--to", out, "--force")[0] == 1
    assert {file.name for file in out.iterdir()} == {"manifest.json", "runs.parquet"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_lake_and_what_holds_one_are_never_replaced(cli, small, tmp_path, monkeypatch, force):
    code, _, err = cli("export", "runs", "--to", small.path, *force)
    assert (code, "is a lake" in err) == (2, True)
    code, _, err = cli("export", "runs", "--to", small.path / "out", *force)
    assert (code, "is inside the lake" in err) == (2, True)
    assert cli("export", "runs", "--to", small.path.parent, *force)[0] == 2
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file").write_text("mine")
    monkeypatch.chdir(tmp_path / "work")
    assert cli("export", "runs", "--to", tmp_path / "work", *force)[0] == 2
    assert cli("export", "runs", "--to", tmp_path, *force)[0] == 2
    assert cli("export", "runs", "--to", tmp_path / "work" / "file", *force)[0] == 2
    assert (tmp_path / "work" / "file").read_text() == "mine"


@pytest.mark.parametrize(("arguments", "words"), [
    (("--format", "json"), "--to writes a folder of parquet or csv, not of json."),
    (("-o", "x"), "--to names the folder, -o another place."),
    (("nosuch",), "There is no relation 'nosuch'."),
])  # fmt: skip
def test_what_does_not_go_together_is_said(cli, tmp_path, arguments, words):
    code, _, err = cli("export", "--to", tmp_path / "out", *arguments)
    assert (code, words in err) == (2, True), err
    assert list(tmp_path.iterdir()) == []
