"""The sample corpus is what its generator writes, and the lake says of it what the generator counted."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from conftest import CORPUS, ROOT

TRUTH = json.loads((CORPUS / "truth.json").read_text())
EXACT = (
    "wire", "completeness", "outcome", "input_tokens", "uncached_input_tokens", "cache_read_tokens",
    "cache_write_tokens", "output_tokens", "reasoning_tokens", "tokens_are_lower_bound", "requests", "tool_calls",
    "denied_calls", "denials_are_lower_bound", "tool_calls_unfinished", "unfinished_is_exact", "refused_lines",
)  # fmt: skip


def rows(lake, query):
    return lake.sql(query).pl().to_dicts()


def file_of(path):
    """Where a source stands in the corpus."""
    return path.partition("/corpus/")[2]


def content(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return pa.input_stream(pa.BufferReader(data), compression="zstd").read()
    return data


def test_generator_writes_the_committed_corpus(tmp_path):
    subprocess.run([sys.executable, ROOT / "data" / "generate.py", tmp_path], check=True, capture_output=True)
    committed = {p.relative_to(CORPUS): content(p) for p in CORPUS.rglob("*") if p.is_file()}
    written = {p.relative_to(tmp_path): content(p) for p in tmp_path.rglob("*") if p.is_file()}
    assert written.keys() == committed.keys()
    assert [name for name in written if written[name] != committed[name]] == []


def test_every_figure_of_every_run(sample_lake):
    by_id = {row["run_id"]: row for row in rows(sample_lake, "FROM run_metrics")}
    # generic stdout names no run: the lake makes one from the file
    pieces = "SELECT path, unnest(runs) AS piece FROM sources WHERE wire = 'harness-lab'"
    pieces = rows(sample_lake, f"SELECT path, piece.run_id AS run_id FROM ({pieces})")
    made = {file_of(piece["path"]): piece["run_id"] for piece in pieces}
    expected, found = {}, {}
    for truth in TRUTH["runs"]:
        run_id = truth["run_id"] or made[truth["file"]]
        expected[run_id] = {name: truth[name] for name in EXACT}
        found[run_id] = {name: by_id[run_id][name] for name in EXACT} if run_id in by_id else None
    differing = {run: (want, found[run]) for run, want in expected.items() if want != found[run]}
    assert differing == {}
    assert by_id.keys() == expected.keys()


def test_costs(sample_lake):
    costs = {row["run_id"]: row["cost_usd"] for row in rows(sample_lake, "SELECT run_id, cost_usd FROM run_metrics")}
    expected = {run["run_id"]: run["cost_usd"] for run in TRUTH["runs"] if run["run_id"]}
    known = {run: cost for run, cost in expected.items() if cost is not None}
    assert {run: costs[run] for run in known} == pytest.approx(known)
    assert [costs[run] for run, cost in expected.items() if cost is None] == [None] * (len(expected) - len(known))


def test_every_line_of_every_file(sample_lake):
    query = "SELECT path, lines, refused_lines, pending_bytes FROM sources WHERE status = 'read'"
    found = {file_of(row["path"]): row for row in rows(sample_lake, query)}
    for truth in TRUTH["files"]:
        row = found.pop(truth["file"])
        pending = truth["pending_bytes"]
        assert (row["pending_bytes"], row["refused_lines"]) == (pending, truth["refused_lines"]), truth["file"]
        assert row["lines"] == truth["lines"] + bool(pending), truth["file"]
    assert found == {}


def test_refusals_by_reason(sample_lake):
    expected = Counter(TRUTH["all"]["refusals"])
    assert Counter(row["reason"] for row in rows(sample_lake, "SELECT reason FROM refusals")) == expected


def test_limit_windows(sample_lake):
    columns = "limit_id, epoch_us(resets_at) // 1000000 AS resets_at, samples, peak_used_percent, runs"
    query = f"SELECT {columns} FROM rate_limit_windows"
    found = {(row["limit_id"], row["resets_at"]): row for row in rows(sample_lake, query)}
    for truth in TRUTH["limit_windows"]:
        row = found.pop((truth["limit_id"], truth["resets_at"]))
        assert (row["samples"], row["runs"]) == (truth["samples"], truth["runs"])
        assert row["peak_used_percent"] == (
            None if truth["peak_used_percent"] is None else pytest.approx(truth["peak_used_percent"])
        )
    assert found == {}


def test_the_planted_secret_is_counted_and_gone(sample_lake):
    from sys import path as search_path

    search_path.insert(0, str(ROOT / "data"))
    try:
        from makers.metaharness import PLANTED_SECRET
    finally:
        search_path.remove(str(ROOT / "data"))
    planted = [file for file in CORPUS.rglob("*.jsonl") if PLANTED_SECRET.encode() in file.read_bytes()]
    assert len(planted) == TRUTH["secrets"] == 1
    leaked = f"count(*) FILTER (WHERE contains(payload, '{PLANTED_SECRET}')) AS leaked"
    found = rows(sample_lake, f"SELECT sum(redactions)::BIGINT AS redactions, {leaked} FROM events")
    assert found == [{"redactions": TRUTH["secrets"], "leaked": 0}]


def test_the_corpus_shows_what_reports_are_for():
    assert set(TRUTH["all"]["completeness"]) == {"closed", "open", "truncated", "inconsistent", "undecidable"}
    assert 36 <= TRUTH["all"]["runs"] <= 60
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1_500_000
    for wire in TRUTH["by_wire"].values():
        assert min(wire["denied_calls"], wire["tool_calls_unfinished"], wire["refused_lines"]) > 0
