"""A report that needs more memory than it may take finishes by way of the disk, and leaves nothing there."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from conftest import CORPUS

from analytics import kept, open_lake, sqlrun
from analytics.ingest import ingest

LIMIT_BYTES = 128 << 20
# a million rows of 330 bytes sorted, beside a relation of the lake: some three times the limit
LARGE = """
    SELECT count(*) AS rows, sum(place) AS places
    FROM (
        SELECT row_number() OVER (ORDER BY key) AS place
        FROM (
            SELECT repeat('x', 300) || CAST((i * 7919) % 1000003 AS VARCHAR) || min(r.run_id) OVER () AS key
            FROM range(1000000) AS t(i) CROSS JOIN (SELECT min(run_id) AS run_id FROM run_metrics) AS r
        )
    )
"""


@pytest.fixture
def lake(tmp_path, monkeypatch):
    (tmp_path / "spill").mkdir()
    ingest(tmp_path / "lake", [next((CORPUS / "metaharness").rglob("*.jsonl"))])
    monkeypatch.setattr(sqlrun, "_memory_bytes", lambda: 2 * LIMIT_BYTES)
    monkeypatch.setattr(sqlrun, "_spill_folder", lambda: str(tmp_path / "spill"))
    monkeypatch.setattr(kept, "FEW_EVENTS", -1)
    monkeypatch.setattr(kept, "HANDFUL_EVENTS", -1)
    with open_lake(tmp_path / "lake", sandboxed=True) as opened:
        yield opened


def test_what_is_larger_than_memory_is_spilled_and_the_spill_is_deleted(lake, tmp_path):
    sizes, done = [0], threading.Event()

    def watch():
        while not done.wait(0.02):
            with suppress(OSError):  # a file that was just deleted
                sizes.append(sum(path.stat().st_size for path in (tmp_path / "spill").rglob("*") if path.is_file()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        rows = lake.sql(LARGE).fetchall()
    finally:
        done.set()
        watcher.join()
    assert rows == [(1_000_000, 500_000_500_000)]
    assert max(sizes) > LIMIT_BYTES // 2
    assert lake.sql("SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'").fetchall() == [("128.0 MiB",)]
    lake.close()
    assert [path for path in (tmp_path / "spill").rglob("*") if path.is_file()] == []
