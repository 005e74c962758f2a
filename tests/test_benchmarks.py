"""The benchmarks work and measure what they say; how fast anything is, `benchmarks/run` tells, no test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from analytics import open_lake
from analytics.lake import Store
from tests.conftest import CORPUS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WIRES = (
    "metaharness", "harness-lab", "platonic-core", "claude-code", "claude-stream", "codex-rollout", "codex-exec",
)  # fmt: skip
BAD_LINES_OF = {"torn_record", "trailing_text", "not_json", "invalid_utf8", "nul_byte"}


def make(out, *options):
    """What corpora.py says it wrote, by wire."""
    command = [sys.executable, BENCHMARKS / "corpora.py", out, *map(str, options)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {row["wire"]: row for row in map(json.loads, told.splitlines())}


def bytes_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The same corpus of all wires twice, another one by its seed, and one with bad lines."""
    root = tmp_path_factory.mktemp("corpora")
    size = ("--megabytes", 2.1, "--files", 14)
    return {
        "first": (root / "first", make(root / "first", *size)),
        "again": (root / "again", make(root / "again", *size, "--jobs", 2)),
        "other": (root / "other", make(root / "other", *size, "--seed", 2)),
        "bad": (root / "bad", make(root / "bad", *size, "--bad", 0.02)),
    }


def test_a_corpus_is_decided_by_its_arguments(corpora):
    first, again, other = (bytes_of(corpora[name][0]) for name in ("first", "again", "other"))
    assert first == again
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)


def test_a_corpus_is_what_was_asked_for(corpora):
    folder, told = corpora["first"]
    assert tuple(told) == WIRES
    for wire, row in told.items():
        files = bytes_of(folder / wire)
        lines = [line for data in files.values() for line in data.splitlines(keepends=True)]
        assert row == {
            "wire": wire, "files": 2, "bytes": sum(map(len, files.values())), "lines": len(lines), "bad_lines": 0,
        }  # fmt: skip
        assert 300_000 <= row["bytes"] < 700_000  # 2.1 MB over seven wires; a file ends with a whole round
        assert max(map(len, lines)) < 210_000
        assert 400 < row["bytes"] / row["lines"] < 2_500  # 1,000 in the long run: the tail of sizes is heavy


def test_lines_have_the_mean_that_was_asked_for(tmp_path):
    for wire, row in make(tmp_path, "--megabytes", 28, "--line-bytes", 2_000).items():
        assert row["bytes"] / row["lines"] == pytest.approx(2_000, rel=0.15), wire


def test_lines_too_short_for_a_wire_are_told(tmp_path):
    command = [sys.executable, BENCHMARKS / "corpora.py", tmp_path, "--line-bytes", "100", "--wire", "claude-code"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "claude-code: lines have" in done.stderr


def test_every_line_of_a_clean_corpus_is_read(corpora, tmp_path):
    folder, told = corpora["first"]
    lake = open_lake(tmp_path / "lake", create=True)
    assert not lake.ingest(folder, jobs=1).refusals_by_reason
    sources = lake.sql("SELECT wire, sum(event_lines), sum(refused_lines) FROM sources GROUP BY ALL").fetchall()
    assert {wire: (events, refused) for wire, events, refused in sources} == {
        wire: (row["lines"], 0) for wire, row in told.items()
    }
    # every run ends with its wire's mark; session files of Claude Code have none
    ends = lake.sql("SELECT wire, list(DISTINCT completeness) FROM runs GROUP BY ALL").fetchall()
    assert dict(ends) == {wire: ["undecidable" if wire == "claude-code" else "closed"] for wire in WIRES}
    assert all(not rows.fetchall() for rows in lake.check().values())


def test_every_bad_line_is_refused_and_no_other(corpora, tmp_path):
    folder, told = corpora["bad"]
    assert all(row["bad_lines"] == pytest.approx(row["lines"] / 50, abs=1) for row in told.values())
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(folder, jobs=1)
    refused = lake.sql("SELECT wire, reason FROM refusals").fetchall()
    assert Counter(wire for wire, _ in refused) == {wire: row["bad_lines"] for wire, row in told.items()}
    assert {reason for _, reason in refused} <= BAD_LINES_OF


def test_bad_lines_are_evenly_spread(corpora):
    folder, told = corpora["bad"]
    for wire in WIRES:
        lines = [line for data in bytes_of(folder / wire).values() for line in data.splitlines()]
        bad = [place for place, line in enumerate(lines) if not _is_json(line)]
        assert len(bad) == told[wire]["bad_lines"]
        assert all(40 <= right - left <= 60 for left, right in pairwise(bad)), wire


@pytest.mark.parametrize("line", ['{"type":"turn.started"}', '{"a":"' + "b" * 100 + '"}'])
def test_a_damaged_line_is_no_json(line, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import corpora

    for damage in corpora.WIRES["codex-exec"].damages:
        assert not _is_json(damage(line).encode("latin-1")), damage


def _is_json(line):
    try:
        json.loads(line.decode(), strict=True)
    except ValueError:  # a UnicodeDecodeError is one, too
        return False
    return True


PARTS = ("ingest", "bad", "memory", "unchanged", "listing", "bytes", "report", "big", "scale")


def run(out, *options):
    command = [sys.executable, BENCHMARKS / "run", "--quick", "--out", out, *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_the_quick_run_prints_tables_and_keeps_what_was_measured_before(tmp_path):
    out = tmp_path / "RESULTS.md"
    first = run(out, "--only", "ingest", "--wire", "codex-exec")
    for program in ("runlake", "duckdb's one-liner", "polars, envelope schema", "polars, inferring", "floor"):
        assert f"| codex-exec | {program} |" in first
    assert "| all wires mixed | runlake, 2 workers |" in first
    (inferred,) = (line for line in first.splitlines() if "| polars, inferring |" in line)
    assert "| dies: " in inferred or "| keeps " in inferred
    second = run(out, "--only", "report")
    assert "| codex-exec | runlake |" in second
    assert "| runlake report on the sample lake, whole process | data/corpus" in second
    assert "not measured | `--only scale`" in second
    for table in second.split("## ")[1:]:
        title, _, body = table.partition("\n")
        assert f"<!-- generated: {title} -->\n{body.rstrip()}" in out.read_text(encoding="utf-8"), title


@pytest.mark.slow
def test_layouts_are_measured_beside_the_base(tmp_path):
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(CORPUS, jobs=1)
    store, _ = Store.open(Path(lake.path)).compact()
    command = [sys.executable, BENCHMARKS / "layout.py", lake.path, "--repeat", "1", "--only", "5 %", "apart"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines()]
    assert [row[0] for row in rows] == ["base", "bloom: all five, 5 % false", "payload apart"]
    assert all(float(ratio) > 0 for row in rows[1:] for ratio in row[1:])
    base, bloom, apart = (dict(zip(heads, row, strict=True)) for row in rows)
    events = sum(file.size_bytes for file in store.all_files if file.record == "event" and file.rows)
    assert float(base["MB"]) == pytest.approx(events / 1e6, abs=0.006)
    assert 1 < float(bloom["MB"]) < 1.02
    assert float(bloom["source MB"]) < 0.8, "row groups of other wires are passed over"
    assert float(apart["run MB"]) > 1, "payloads of all runs are read"


@pytest.mark.long
def test_the_quick_run_measures_everything(tmp_path):
    printed = run(tmp_path / "RESULTS.md")
    assert "not measured" not in printed
    assert "Not measured" not in printed
    measures = json.loads((tmp_path / "RESULTS.json").read_text(encoding="utf-8"))["measures"]
    assert len(measures) == printed.split("## ingest")[0].count("\n| ") - 2
    for wire in WIRES:
        assert printed.count(f"| {wire} | ") == 5
