"""No column of any record kind keeps a secret, wherever in a source it stood; a cut inside a long line loses no row."""

from __future__ import annotations

import gzip
import json

import pyarrow.parquet as pq
import pytest
from helpers import Lab

from analytics import feeding, reading

SECRET = "gh" + "p_" + "Zq81Lm" * 6


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def everything(lab: Lab) -> str:
    """All values of all files of the lake, decompressed."""
    files = sorted(lab.path.glob("record=*/wire=*/*.parquet"))
    assert files
    return "".join(repr(pq.ParquetFile(file).read().to_pylist()) for file in files)


def test_a_line_that_is_not_utf8_keeps_no_secret_in_its_columns(lab):
    """Such a line has no payload to scan, but its message, tool and path are columns all the same."""
    line = b'{"kind":"error","name":"agent","payload":{"message":"login %s failed \xff"}}\n' % SECRET.encode()
    lab.write("a.log", b'{"kind":"assistant_message","payload":{"text":"hello"}}\n' + line)
    report = lab.ingest()
    assert report.redactions == 1
    assert lab.sql("SELECT count(*) FROM events WHERE event = 'error' AND message LIKE '%REDACTED%'") == [(1,)]
    assert SECRET not in everything(lab)


def test_a_run_id_of_a_document_is_redacted_like_any_other(lab):
    event = {"sequence": 0, "timestamp": "2026-10-15T06:00:00", "kind": "system", "source": "runner", "payload": {}}
    document = {"schema_version": "2", "experiment": {"id": "e"}, "runs": [{"id": SECRET, "events": [event]}]}
    lab.write("a.json", json.dumps(document, indent=1).encode())
    lab.ingest()
    assert lab.sql("SELECT count(*) FROM events") == [(1,)]
    assert SECRET not in everything(lab)


def test_compressed_data_cut_inside_a_line_that_is_too_long(lab, monkeypatch):
    """What precedes the line is events, the line and the cut are refusals, and the ledger knows all of it."""
    monkeypatch.setattr(feeding, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(reading, "HEAD_BYTES", 1024)
    good = b'{"kind":"assistant_message","payload":{"text":"hello"}}\n' * 40
    noise = "".join(f"{number * 7919:x}" for number in range(60_000)).encode()
    packed = gzip.compress(good + b'{"kind":"assistant_message","payload":{"text":"' + noise + b'"}}\n', mtime=0)
    lab.write("a.log.gz", packed[: len(packed) // 2])
    report = lab.ingest(max_line_bytes=8192)
    assert report.refusals_by_reason == {"line_too_long": 1, "compressed_data_broken": 1}
    assert lab.sql("SELECT status, event_lines, refused_lines FROM sources") == [("read", 40, 1)]
    assert lab.failed_checks() == {}
