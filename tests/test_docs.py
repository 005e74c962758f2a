"""README says what the product does: its tables are generated, its commands run, CI runs what it promises."""

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

README = ROOT / "README.md"
BIN = str(Path(sys.executable).parent)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def commands(block):
    """The commands of a block, joined lines put together; those that install or test are CI's to run."""
    lines = block.replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.split("&&") if part.strip() and not line.startswith("#")]
    skipped = re.compile(r"^(python3 -m venv|git clone|cd |\S*pip install|\S*pytest\b|\. )")
    return [part.replace(".venv/bin/", "") for part in parts if not skipped.match(part)]


@pytest.fixture
def copy(tmp_path):
    """A folder like a fresh clone, as far as README's commands look."""
    for name in ("data", "queries", "notebooks", "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def run(command, folder):
    environment = {name: value for name, value in os.environ.items() if name not in ("RUNLAKE_LAKE", "COLUMNS")}
    environment |= {"PATH": BIN + os.pathsep + os.environ["PATH"], "COLUMNS": "120"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_command_runs(copy):
    """But for the session's, which run by themselves to print what README shows: `session` below."""
    ran = [command for block in blocks("sh") if block != session_block() for command in commands(block)]
    assert len(ran) > 6
    for command in ran:
        run(command, copy)


@pytest.mark.slow
def test_every_python_example_runs(copy):
    run("runlake ingest data", copy)
    for block in blocks("python"):
        run(f"{shlex.quote(sys.executable)} -c {shlex.quote(block)}", copy)


def test_ci_runs_the_second_command():
    promised = blocks("sh")[1].replace("\\\n", " ")
    (install,) = re.findall(r"pip install [^&\n]*", promised)
    ci = (ROOT / ".ci" / "run").read_text()
    assert install.strip() in ci.splitlines()
    assert re.search(r"\bpytest\s*$", promised)
    assert "pytest" in ci.splitlines()


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def wires(_):
    from analytics.wires import WIRES, wire

    return table(["wire", "reads"], [[f"`{row.name}`", wire(row.name).summary] for row in WIRES])


def refusals(_):
    from analytics.refusals import REASONS

    return table(["reason", "what was seen", "what to do"], [[f"`{r.name}`", r.seen, r.remedy] for r in REASONS])


def every_command(_):
    from typer.main import get_command

    from analytics.cli import app

    listed = get_command(app).commands
    return table(
        ["command", "what it does"],
        [[f"`runlake {name}`", command.get_short_help_str(limit=300)] for name, command in listed.items()],
    )


def session_block():
    (block,) = re.findall(r"<!-- session -->\n+```sh\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert block in blocks("sh")
    return block


def session(copy):
    outputs = [run(command, copy) for command in commands(session_block())]
    return f"```text\n{outputs[-1].rstrip()}\n```\n"


@pytest.mark.parametrize("region", [wires, refusals, every_command, session], ids=lambda region: region.__name__)
def test_generated_parts_are_fresh(region, copy, update):
    name = region.__name__.replace("_", " ")
    text = README.read_text()
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
    head, _, rest = text.partition(begin)
    stored, _, tail = rest.partition(end)
    assert tail, f"README has no part {begin!r}"
    made = "\n" + region(copy) + "\n"
    if update:
        README.write_text(head + begin + made + end + tail)
        return
    assert stored == made, "run pytest tests/test_docs.py --update"


def test_each_promise_names_a_test_that_exists() -> None:
    table = README.read_text().split("## What runlake promises", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"`(tests/\w+\.py)(?:::(\w+))?`", table)
    assert len(named) > 20
    for file, test in named:
        text = (ROOT / file).read_text()
        assert not test or re.search(rf"def {test}\(", text), f"{file} has no {test}"
