"""docs/spark.md: its commands run, and print what other pages print of the same lake.

Needs Java 17 and pyspark; not in the default run: `pytest -m spark -n 0`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
# ruff: noqa: E402 (what follows needs it)
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
OTHER = (ROOT / "docs" / "other-tools.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_its_commands_run_in_order(tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    environ = os.environ | {"PYTHONPATH": str(ROOT)}

    def said(*arguments):
        ended = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout

    lines = [shlex.split(line) for line in "".join(blocks("sh")).splitlines()]
    told = [said("-m", "analytics", *words[1:]) for words in lines if words[0] == "runlake"]
    assert len(told) == 3
    registered, plain = (said("-c", code) for code in blocks("python"))
    runs = [line.rsplit(",", 1)[0].replace(",", " ") for line in OTHER.split("wire,runs,calls\n")[1].splitlines()[:7]]
    assert registered.splitlines() == runs
    events = re.search(r"'event': (\d+)", OTHER)[1]
    assert plain == f"{events} events\n"
