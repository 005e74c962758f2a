"""Each notebook runs from top to bottom and shows its pictures, without a network."""

from __future__ import annotations

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


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_shows_its_pictures(path):
    notebook = nbformat.read(path, as_version=4)
    committed = len(pictures(notebook))
    nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": path.parent}}).execute()
    assert len(pictures(notebook)) == committed > 0


def test_first_look_answers_five_questions():
    notebook = nbformat.read(ROOT / "notebooks" / "01_first_look.ipynb", as_version=4)
    questions = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "?" in cell.source.split("\n")[0]]
    assert len(questions) == len(pictures(notebook)) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_names_a_folder_of_the_machine(path):
    text = path.read_text()
    assert [name for name in ("/home/", "/tmp/", "/Users/", str(ROOT)) if name in text] == []
