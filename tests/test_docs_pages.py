"""The pages of docs/: every command and example in them runs, and prints what the page says it prints.

A page's blocks run in order, in a folder like a clone in which `runlake ingest data/corpus` has been run. Commands of
runlake run in this process where the block is a list of commands; a script runs in bash. After `<!-- shows -->` stands
what a block prints.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from analytics.cli import run

DOCS = ROOT / "docs"
# one runs against a store of its own (tests/test_s3_docs.py), one on Spark (tests/test_spark_docs.py)
ELSEWHERE = {"object-storage.md", "spark.md"}
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in ELSEWHERE)
BLOCK = re.compile(
    r"^```(?P<language>sh|python)\n(?P<code>.*?)^```\n(?P<said>\n<!-- shows -->\n\n```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
SCRIPT = re.compile(r"<<|&$|^\w+=", re.MULTILINE)  # lines that lean on each other
IN_SHELL = re.compile(r"[|&;<>$`*]")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder with data/ and the sample lake, and a copy of the lake to begin each page with."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "there").mkdir()
    shutil.copytree(ROOT / "data", folder / "there" / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "there")
        patch.delenv("RUNLAKE_LAKE", raising=False)
        assert run(["ingest", "data/corpus", "-o", "ingest.json"]) == 0
    shutil.copytree(folder / "there" / "lake", folder / "lake")
    return folder


@pytest.fixture
def here(clone, monkeypatch):
    """The clone as it was before any page."""
    folder = clone / "there"
    for path in folder.iterdir():
        if path.is_dir() and path.name != "data":
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    shutil.copytree(clone / "lake", folder / "lake")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RUNLAKE_LAKE", raising=False)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    return folder


def without_comments(code):
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def is_plain(line):
    return line.startswith("runlake ") and not IN_SHELL.search(re.sub(r'"[^"$`]*"', "", line))


def in_bash(code):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_block(found, capfd, names):
    """What a block prints; it must succeed."""

    def in_process(line):
        capfd.readouterr()
        status = run(shlex.split(line)[1:])
        said = capfd.readouterr()
        assert status == 0, f"{line}\n{said.out}\n{said.err}"
        return said.out

    code = found["code"]
    if found["language"] == "python":
        capfd.readouterr()
        exec(compile(code, "<page>", "exec", dont_inherit=True), names)  # the page's own example
        return capfd.readouterr().out
    if SCRIPT.search(code):
        return in_bash(code)
    return "".join(in_process(line) if is_plain(line) else in_bash(line) for line in without_comments(code))


def trimmed(text):
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_runs_and_prints_what_the_page_says(path, here, capfd, update):
    text = path.read_text(encoding="utf-8")
    names = {"__name__": "__main__"}
    made, end = [], 0
    for found in BLOCK.finditer(text):
        printed = trimmed(run_block(found, capfd, names))
        if found["said"] is None:
            continue
        begin, stop = found.span("shown")
        made += [text[end:begin], printed]
        end = stop
        if not update:
            assert trimmed(found["shown"]) == printed, f"{found['code']}\nrun pytest tests/test_docs_pages.py --update"
    if update:
        path.write_text("".join([*made, text[end:]]), encoding="utf-8")


def test_every_promise_to_show_something_stands_behind_a_block_that_runs():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        shown = [found for found in BLOCK.finditer(text) if found["said"] is not None]
        assert text.count("<!-- shows -->") == len(shown), path.name


def test_blocks_are_of_languages_with_a_meaning():
    """sh and python run; the others are files, lines of a table, or what is printed."""
    languages = {name for path in PAGES for name in re.findall(r"^```(\w+)$", path.read_text(), re.MULTILINE)}
    assert languages <= {"sh", "python", "text", "sql", "yaml", "ini", "nginx"}


def test_every_link_leads_somewhere():
    for path in sorted(DOCS.rglob("*.md")):
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_every_page_stands_in_the_list():
    listed = set(re.findall(r"\]\((\S+?\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"README.md"}
    assert listed == there
