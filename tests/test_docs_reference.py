"""docs/reference/ says what the code says; nothing in the code is missing there."""

from __future__ import annotations

import re

import pytest
import reference
from conftest import ROOT

FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def made(sample_lake):
    return {name: make(sample_lake) for name, make in reference.PAGES.items()}


@pytest.mark.parametrize("name", reference.PAGES)
def test_page_is_fresh(name, made, update):
    path = FOLDER / f"{name}.md"
    if update:
        path.write_text(made[name], encoding="utf-8")
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    assert stored == made[name], "run pytest tests/test_docs_reference.py --update"


def stored(name):
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_no_page_is_left_over():
    assert {path.stem for path in FOLDER.iterdir()} == set(reference.PAGES)


def test_every_option_of_every_command_stands_there():
    from typer.main import get_command

    from analytics.cli import app

    text = stored("cli")
    sections = dict(re.findall(r"^## runlake (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    commands = get_command(app).commands
    assert list(sections) == list(commands)
    for name, command in commands.items():
        options = [
            opt
            for param in command.params
            if param.param_type_name == "option"
            for opt in param.opts
            if opt != "--help"
        ]
        assert [opt for opt in options if not re.search(rf"{opt}\b", sections[name])] == [], name


def test_every_column_stands_there():
    from analytics.schema import PIECE, RECORDS

    sections = dict(re.findall(r"^## (\w+).*?\n(.*?)(?=^## |\Z)", stored("schema"), re.MULTILINE | re.DOTALL))
    for name, columns in [*RECORDS.items(), ("piece", PIECE)]:
        assert re.findall(r"^\| `(\w+)` \|", sections[name], re.MULTILINE) == [column.name for column in columns]


def test_every_reason_stands_there():
    from analytics.refusals import NAMES

    assert set(re.findall(r"^\| `(\w+)` \|", stored("refusals"), re.MULTILINE)) == NAMES


def test_every_file_of_queries_stands_there_and_its_link_leads_to_it():
    text = stored("views")
    linked = re.findall(r"\[SQL\]\((\S+)\)", text)
    assert {(FOLDER / link).resolve() for link in linked} == set((ROOT / "queries").glob("*/*.sql"))
    assert text.count("\n* a row is: ") == text.count("\n* columns: ") == len(linked)
