"""Each notebook runs from top to bottom and shows its pictures, without a network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from conftest import ROOT

nbformat = pytest.importorskip(
    "nbformat", reason="the notebook extra is not installed: pip install 'runlake[notebook]'"
)
nbclient = pytest.importorskip(
    "nbclient", reason="the notebook extra is not installed: pip install 'runlake[notebook]'"
)
pytest.importorskip("ipykernel", reason="the notebook extra is not installed: pip install 'runlake[notebook]'")
pytest.importorskip("matplotlib", reason="the notebook extra is not installed: pip install 'runlake[notebook]'")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def pictures(notebook):
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output for output in outputs if "image/png" in output.get("data", {})]


def tables(notebook):
    """What the cells print, and the tables they end with; pictures are named, not compared."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    said = [output.get("text") or output.get("data", {}) for output in outputs if output.get("name") != "stderr"]
    return [
        text if isinstance(text, str) else "picture" if "image/png" in text else text["text/plain"] for text in said
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_says_what_it_says(path, update):
    notebook = nbformat.read(path, as_version=4)
    committed, metadata = tables(notebook), notebook.metadata.copy()
    client = nbclient.NotebookClient(
        notebook, timeout=180, record_timing=False, resources={"metadata": {"path": path.parent}}
    )
    client.execute()
    if update:
        notebook.metadata = metadata
        nbformat.write(notebook, path)
        return
    assert len(pictures(notebook)) > 0
    assert tables(notebook) == committed, "run pytest tests/test_notebooks.py --update, and look at the pictures"


def test_first_look_answers_five_questions():
    notebook = nbformat.read(ROOT / "notebooks" / "01_first_look.ipynb", as_version=4)
    questions = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "?" in cell.source.split("\n")[0]]
    assert len(questions) == len(pictures(notebook)) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_names_a_folder_of_the_machine(path):
    text = path.read_text()
    assert [name for name in ("/home/", "/tmp/", "/Users/", str(ROOT)) if name in text] == []


def test_every_notebook_is_one_of_three_with_its_pictures():
    shown = {path.stem: len(pictures(nbformat.read(path, as_version=4))) for path in NOTEBOOKS}
    assert shown == {"01_first_look": 5, "02_compare_variants": 2, "03_rate_limits": 3}


EXPLORE = ROOT / "notebooks" / "explore.py"


@pytest.fixture
def explore(monkeypatch, sample_lake):
    """The app's outputs and what its cells define, run without a browser over the sample lake."""
    pytest.importorskip("marimo", reason="the notebook extra is not installed: pip install 'runlake[notebook]'")
    monkeypatch.setenv("RUNLAKE_LAKE", str(sample_lake.path))
    monkeypatch.setattr(sys, "argv", [str(EXPLORE)])
    spec = importlib.util.spec_from_file_location("explore", EXPLORE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda **defs: module.app.run(defs=defs or None)[1]


def test_explore_shows_the_lake_it_is_given(explore, sample_lake):
    made = explore()
    runs = sample_lake.sql("SELECT run_id FROM runs").pl()["run_id"]
    assert set(made["runs"]["run_id"]) == set(runs)
    assert set(made["run"].options) == set(runs)
    assert len(made["timeline"]) == len(sample_lake.show(made["run"].value).pl()) > 0
    assert made["answer"].sort("tool").to_dicts() == sample_lake.sql(made["query"].value).pl().sort("tool").to_dicts()
    totals = sample_lake.sql(
        "SELECT wire, sum(total_tokens) FROM run_metrics WHERE is_counted GROUP BY wire"
    ).fetchall()
    assert {wire: round(float(total) / 1e6, 9) for wire, total in totals if total} == {
        wire: round(total, 9) for wire, total in made["by_wire"].select("wire", "total_tokens").iter_rows() if total
    }


def test_explore_tells_what_is_wrong_with_a_query_and_opens_nothing_else(explore):
    class Query:
        value = f"FROM read_text('{EXPLORE}')"

    assert explore(query=Query)["answer"] is None


@pytest.mark.slow
def test_explore_runs_as_a_script(sample_lake):
    pytest.importorskip("marimo", reason="the notebook extra is not installed: pip install 'runlake[notebook]'")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, EXPLORE, "--lake", sample_lake.path], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    runs = len(sample_lake.runs().fetchall())
    assert done.stdout.startswith(f"{runs} runs\n")
