"""Spark as an engine where something that it needs is missing: a sentence that says what to install."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from analytics import open_lake
from analytics.engines.spark.connecting import connect
from analytics.errors import UsageError
from tests.conftest import ROOT


@pytest.mark.parametrize("hidden", ["PATH", "JAVA_HOME"])
def test_without_java_a_sentence_says_so(hidden, tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
    open_lake(tmp_path / "lake", create=True)
    environ = {name: text for name, text in os.environ.items() if name not in ("JAVA_HOME", "SPARK_REMOTE")}
    environ |= {hidden: str(tmp_path)}
    command = [sys.executable, "-m", "analytics", "sql", "SELECT 1 AS a", "--engine", "spark", "--lake", "lake"]
    ended = subprocess.run(
        command, env=environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "needs Java 17 on this machine: " in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["pyspark.sql", "sqlglot"])
def test_without_the_extra_it_is_named(module, tmp_path):
    open_lake(tmp_path / "lake", create=True)
    hidden = f"import sys; sys.modules[{module!r}] = None; from analytics.cli import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", hidden, "sql", "SELECT 1 AS a", "--engine", "spark", "--lake", "lake"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
    said = "Error: Spark is not installed here. Install it: pip install 'runlake[spark]'.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


def test_without_grpc_connect_names_the_extra(monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(UsageError, match=r"Connect lacks a package: .*grpc.*pip install 'runlake\[spark\]'"):
        connect("sc://127.0.0.1")
