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
    "cache_write_tokens", "cache_write_1h_tokens", "output_tokens", "reasoning_tokens", "tokens_are_lower_bound",
    "requests", "tool_calls", "denied_calls", "denials_are_lower_bound", "tool_calls_unfinished",
    "unfinished_is_exact", "refused_lines", "parent_run_id", "is_counted",
)  # fmt: skip
SUMMED = (
    "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "output_tokens", "reasoning_tokens", "requests", "tool_calls", "denied_calls", "tool_calls_unfinished",
    "refused_lines",
)  # fmt: skip
# the truth writes these fields only where they say something else
USUAL = {"cache_write_1h_tokens": None, "parent_run_id": None, "same_run_as": None, "is_counted": True, "also": {}}
RUNS = [USUAL | run for run in TRUTH["runs"]]


def rows(lake, query):
    return lake.sql(query).pl().to_dicts()


def file_of(path):
    """Where a source stands in the corpus."""
    return path.partition("/corpus/")[2]


@pytest.fixture(scope="module")
def lake_ids(sample_lake):
    """The lake's run id by file and the id the truth has. Several views of one session have one id, told apart by
    their files; generic stdout names no run at all, so the lake makes one from the file.
    """
    query = "SELECT s.path, p.wire_run_id, p.run_id FROM run_pieces AS p JOIN sources AS s USING (source_id)"
    found = {(file_of(row["path"]), row["wire_run_id"]): row["run_id"] for row in rows(sample_lake, query)}
    only = {file: run_id for (file, _), run_id in found.items()}
    return {
        (run["file"], run["run_id"]): found.get((run["file"], run["run_id"]), only[run["file"]])
        if run["run_id"]
        else only[run["file"]]
        for run in RUNS
    }


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


def test_every_figure_of_every_run(sample_lake, lake_ids):
    by_id = {row["run_id"]: row for row in rows(sample_lake, "FROM run_metrics")}
    expected, found = {}, {}
    for truth in RUNS:
        run_id = lake_ids[truth["file"], truth["run_id"]]
        expected[run_id] = {name: truth[name] for name in EXACT} | truth["also"]
        found[run_id] = {name: by_id.get(run_id, {}).get(name) for name in expected[run_id]}
    differing = {
        run: {name: (value, found[run][name]) for name, value in want.items() if value != found[run][name]}
        for run, want in expected.items()
    }
    assert {run: differences for run, differences in differing.items() if differences} == {}
    assert by_id.keys() == expected.keys()


def test_views_of_the_same_work_are_linked_and_counted_once(sample_lake, lake_ids):
    """A session and its capture, a rollout and its capture, a harness run and its agent's own file."""
    found = {row["run_id"]: row for row in rows(sample_lake, "FROM runs")}
    other = {run["file"]: lake_ids[run["file"], run["run_id"]] for run in RUNS}
    assert Counter(run["is_counted"] for run in RUNS if run["same_run_as"]) == {True: 3, False: 4}  # one is a subagent
    expected = {
        lake_ids[run["file"], run["run_id"]]: (run["same_run_as"] and other[run["same_run_as"]], run["is_counted"])
        for run in RUNS
    }
    assert {run_id: (row["same_run_as"], row["is_counted"]) for run_id, row in found.items()} == expected


def test_totals_over_the_runs_that_count(sample_lake):
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in SUMMED)
    query = f"SELECT wire, count(*) AS counted_runs, {sums} FROM run_metrics WHERE is_counted GROUP BY wire"
    found = {row.pop("wire"): row for row in rows(sample_lake, query)}
    expected = {
        wire: {"counted_runs": truth["counted_runs"]}
        | {name: None if truth["unknown"].get(name) == truth["counted_runs"] else truth[name] for name in SUMMED}
        for wire, truth in TRUTH["by_wire"].items()
    }
    assert found == expected
    assert all(TRUTH["all"][name] == sum(truth[name] for truth in TRUTH["by_wire"].values()) for name in SUMMED)


def test_usage_adds_up_to_the_same(sample_lake):
    tokens = [name for name in SUMMED if name.endswith("_tokens")]
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in tokens)
    for relation in (
        "usage WHERE is_counted AND NOT is_side_call",
        "token_usage WHERE is_counted AND NOT is_side_call",
        "token_usage_by_run WHERE is_counted",
        "token_usage_by_model WHERE NOT is_side_call",
        "token_usage_by_day",
    ):
        (found,) = rows(sample_lake, f"SELECT {sums} FROM {relation}")
        assert found == {name: TRUTH["all"][name] for name in tokens}, relation


def test_costs(sample_lake, lake_ids):
    costs = {row["run_id"]: row["cost_usd"] for row in rows(sample_lake, "SELECT run_id, cost_usd FROM run_metrics")}
    expected = {lake_ids[run["file"], run["run_id"]]: run["cost_usd"] for run in RUNS}
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
    columns = "limit_id, epoch_us(resets_at) // 1000000 AS resets_at, window_minutes, samples, peak_used_percent, runs"
    query = f"SELECT {columns} FROM rate_limit_windows"
    found = {(row["limit_id"], row["resets_at"]): row for row in rows(sample_lake, query)}
    for truth in TRUTH["limit_windows"]:
        row = found.pop((truth["limit_id"], truth["resets_at"]))
        assert (row["samples"], row["runs"]) == (truth["samples"], truth["runs"])
        assert row["window_minutes"] == truth.get("window_minutes", row["window_minutes"])
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
    assert 36 <= TRUTH["all"]["runs"] <= 80
    assert len(TRUTH["by_wire"]) == 7
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1_500_000
    for wire in TRUTH["by_wire"].values():
        assert min(wire["denied_calls"], wire["tool_calls_unfinished"], wire["refused_lines"]) > 0
