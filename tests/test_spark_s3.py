"""Spark and object stores: executors read objects and write a lake in a bucket; questions to it are DuckDB's.

Needs Java 17, pyspark and runlake[s3]; not in the default run: `pytest -m spark -n 0`.
"""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
# ruff: noqa: E402 (what follows needs it)
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

from analytics import open_lake
from tests.conftest import CORPUS

SPARK = ("--engine", "spark", "--master", "local[2]")
EVENTS = "SELECT run_id, line, part, event, payload FROM stored_events ORDER BY ALL"


def test_executors_fill_a_lake_in_a_bucket(bucket, tmp_path):
    bucket.upload(CORPUS / "codex-exec", "in")
    lake = bucket.url("lake")
    begun = bucket.start("ingest", bucket.url("in"), "--lake", lake, *SPARK)
    _, said = begun.communicate(timeout=300)
    assert begun.returncode == 0, said
    local = open_lake(tmp_path / "lake", create=True)
    local.ingest(CORPUS / "codex-exec")
    made = open_lake(lake)
    assert made.version == 1  # one commit
    assert made.sql(EVENTS).fetchall() == local.sql(EVENTS).fetchall()
    assert {path[:5] for (path,) in made.sql("SELECT path FROM sources").fetchall()} == {"s3://"}
    asked = bucket.start("report", "--lake", lake, *SPARK)
    out, said = asked.communicate(timeout=120)
    assert (asked.returncode, out) == (2, "")
    assert f"this one is {lake}. Ask without --engine spark" in said
    assert "Traceback" not in said
