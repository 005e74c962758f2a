"""Spark Connect: a server of its own on 127.0.0.1, asked by the command line and from Python.

Needs Java 17 and pyspark with what Connect needs; not in the default run: `pytest -m spark -n 0`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
pytest.importorskip("grpc", reason="grpcio is not installed (runlake[spark])")
# ruff: noqa: E402 (what follows needs it)
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

from analytics import open_lake
from tests.conftest import CORPUS, ROOT
from tests.helpers import FIXTURES

HOME = Path(pyspark.__file__).parent
SETTINGS = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false", "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN"}  # fmt: skip
ENVIRON = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Connect server; its address."""
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    settings = [
        f"--conf={name}={text}" for name, text in (SETTINGS | {"spark.connect.grpc.binding.port": port}).items()
    ]
    said = (folder / "said").open("wb")
    started = subprocess.Popen(
        [HOME / "sbin/start-connect-server.sh", "--master", "local[2]", *settings], cwd=folder, stdout=said,
        stderr=said, start_new_session=True,
        env=ENVIRON | {"SPARK_HOME": str(HOME), "SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": str(folder)},
    )  # fmt: skip
    try:
        for _ in range(1200):
            assert started.poll() is None, (folder / "said").read_text()
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def runlake(*arguments, **environ):
    ended = subprocess.run(
        [sys.executable, "-m", "analytics", *map(str, arguments)], capture_output=True, text=True, env=ENVIRON | environ
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def test_ingest_and_relations_over_connect(server, tmp_path, capsys):
    sources = [CORPUS / "metaharness", CORPUS / "codex-exec", FIXTURES / "samples"]
    client = [sys.executable, ROOT / "tests/spark_connect_client.py", server, tmp_path, *sources]
    ended = subprocess.run(client, capture_output=True, text=True, env=ENVIRON)
    assert ended.returncode == 0, ended.stderr[-3000:]
    said = json.loads(ended.stdout)
    with capsys.disabled():
        print(f"\nover Spark Connect: {said['rows']} rows equal")  # noqa: T201
    assert said["version"] == 1  # one commit
    assert said["rows"]["runs"] > 20
    assert said["rows"]["tool_calls"] > 20
    assert said["bytes_done"] > 0


def test_the_command_line_over_connect(server, tmp_path):
    lake = tmp_path / "lake"
    done = runlake("ingest", CORPUS / "codex-exec", "--lake", lake, "--engine", "spark", "--master", server)
    assert done.returncode == 0, done.stderr
    query = "SELECT wire, count(line) AS events FROM stored_events GROUP BY wire ORDER BY wire"
    asked = runlake("sql", query, "--lake", lake, "--engine", "spark", SPARK_REMOTE=server)
    assert (asked.returncode, asked.stdout) == (0, runlake("sql", query, "--lake", lake).stdout)
    plan = runlake("sql", f"EXPLAIN {query}", "--lake", lake, "--engine", "spark", "--master", server)
    assert "Physical Plan" in plan.stdout
    wrong = runlake("sql", "SELECT nope FROM stored_events", "--lake", lake, "--engine", "spark", "--master", server)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("Error: The query failed in Spark. [UNRESOLVED_COLUMN")
    assert wrong.stderr.count("\n") == 1


def test_a_server_that_does_not_answer_is_a_sentence(tmp_path):
    open_lake(tmp_path / "lake", create=True)
    for master, code, words in (
        (f"sc://127.0.0.1:{free_port()}", 1, "does not answer within"),
        ("sc://", 2, "'sc://' is no address of Spark Connect"),
    ):
        ended = runlake("sql", "SELECT 1 AS a", "--lake", tmp_path / "lake", "--engine", "spark", "--master", master)
        assert (ended.returncode, words in ended.stderr) == (code, True), ended.stderr
