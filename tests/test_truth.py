"""A generated corpus with the truth beside it: every figure of every run, the totals, the limits, and the sums.

The generator (fixtures/cases) adds the truth up while it writes and reads nothing back; its docstring says what it
decided where the wires leave a choice, and `also_accept` marks those decisions run by run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES

from analytics import open_lake

GENERATOR = FIXTURES / "cases" / "gen_harness_corpus.py"
FIGURES = (
    "input_tokens",
    "uncached_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "tokens_are_lower_bound",
    "requests",
    "tool_calls",
    "denied_calls",
    "denials_are_lower_bound",
    "tool_calls_unfinished",
    "completeness",
    "outcome",
    "refused_lines",
    "cost_usd",
)
REASONS = {
    "not_json": {"not_json"},
    "trailing_text": {"trailing_text"},
    "invalid_utf8": {"invalid_utf8"},
    "nul": {"nul_byte"},
    "wrong_tag": {"unknown_format"},
    "unknown_event": {"unknown_event"},
    "malformed_type": {"malformed", "number_out_of_range"},
}
# small enough for every test run, large enough that all shapes, endings and damages of the generator are in it
CORPORA = {
    "seed 1": ("--runs", "40", "--lines-per-run", "60", "--seed", "1"),
    "seed 2": ("--runs", "40", "--lines-per-run", "60", "--seed", "2"),
    "seed 3": ("--runs", "40", "--lines-per-run", "60", "--seed", "3"),
    "damaged": ("--runs", "60", "--lines-per-run", "60", "--seed", "4", "--bad", "0.02"),
}


class Corpus:
    """A corpus, its truth, and the lake it was read into."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        root = folder / "corpus"
        subprocess.run([sys.executable, str(GENERATOR), str(root), *CORPORA[name]], check=True, capture_output=True)
        self.root = root
        self.asked: dict[str, list[dict[str, Any]]] = {}
        self.truth = json.loads((root / "truth.json").read_text())
        self.runs = [json.loads(line) for line in (root / "truth_runs.jsonl").read_text().splitlines()]
        self.lake = open_lake(folder / "lake", create=True)
        streams = [path for path in root.iterdir() if path.is_dir()]
        self.report = self.lake.ingest(streams)
        self.metrics = {row["run_id"]: row for row in self.rows("FROM run_metrics")}
        self.files = {row["path"]: row for row in self.rows("SELECT * EXCLUDE (resume_state) FROM sources")}
        for run in self.runs:
            if run["run_id"] is None:  # generic stdout names no run; its file is the run
                run["run_id"] = self.files[str(root.resolve() / run["file"])]["runs"][0]["run_id"]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of a query, asked once."""
        if query not in self.asked:
            self.asked[query] = self.lake.sql(query).pl().to_dicts()
        return self.asked[query]


@pytest.fixture(scope="module", params=list(CORPORA))
def corpus(request, tmp_path_factory):
    made = Corpus(tmp_path_factory.mktemp("truth"), request.param)
    yield made
    made.lake.close()


def is_accepted(run: dict[str, Any], figure: str, found: Any) -> bool:
    """The truth, or one of the other values that are as right ("*": any)."""
    right, also = run[figure], run["also_accept"].get(figure, [])
    if also == "*" or found == right or found in also:
        return True
    return figure == "cost_usd" and None not in (found, right) and abs(found - right) < 1e-6


def test_no_run_is_missing_and_none_is_invented(corpus):
    assert Counter(corpus.metrics.keys()) == Counter(run["run_id"] for run in corpus.runs)


@pytest.mark.parametrize("figure", FIGURES)
def test_each_figure_of_each_run(corpus, figure):
    wrong = [
        (run["file"], run["run_id"], run["adapter"], run[figure], found)
        for run in corpus.runs
        if not is_accepted(run, figure, found := corpus.metrics[run["run_id"]][figure])
    ]
    assert wrong == []


def test_lines_of_each_run(corpus):
    """Plain text between generic events, and voice events in a ledger, are lines of data but no events of the run."""
    wrong = []
    for run in corpus.runs:
        row = corpus.metrics[run["run_id"]]
        others = run.get("plain_text_lines", 0) + run.get("voice_lines", 0)
        if (row["events"], row["other_lines"]) != (run["events"], others):
            wrong.append((run["file"], run["run_id"], run["events"], row["events"], others, row["other_lines"]))
    assert wrong == []


def test_refusals_by_reason(corpus):
    """Of a file with one run every refusal is known by run; of all files by reason."""
    found = Counter(row["reason"] for row in corpus.rows("FROM refusals"))
    expected: Counter[str] = Counter()
    for run in corpus.runs:
        expected.update(run["refusals"])
    left = found.copy()
    for kind, count in expected.items():
        assert sum(left.pop(reason, 0) for reason in REASONS[kind]) == count, (kind, found, expected)
    assert left == {}
    by_run: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in corpus.rows("FROM refusals"):
        by_run[row["run_id"]][row["reason"]] += 1
    for run in corpus.runs:
        kinds = {min(REASONS[kind]): count for kind, count in run["refusals"].items()}
        reasons = Counter(
            {reason.replace("number_out_of_range", "malformed"): n for reason, n in by_run[run["run_id"]].items()}
        )
        assert reasons == Counter(kinds), run["file"]


def test_limits_of_each_run(corpus):
    """Samples and peak of each window; a wire that carries no values has none, which is not zero."""
    found = defaultdict(list)
    for row in corpus.rows(
        "SELECT run_id, limit_id, CAST(epoch_us(resets_at) // 1000000 AS BIGINT) AS resets_at, "
        "max(used_percent) AS peak, count(*) AS samples FROM limit_samples GROUP BY ALL"
    ):
        found[row["run_id"]].append(row)
    for run in corpus.runs:
        samples = corpus.metrics[run["run_id"]]["rate_limit_samples"]
        if run["limits"] is None:
            assert (samples, found[run["run_id"]]) == (None, []), run["file"]
            continue
        ours = {(row["limit_id"], row["resets_at"]): (row["samples"], row["peak"]) for row in found[run["run_id"]]}
        right = {(one["limit"], one["resets_at"]): (one["samples"], one["peak_used_percent"]) for one in run["limits"]}
        assert ours.keys() == right.keys(), run["file"]
        assert samples == sum(count for count, _ in right.values())
        for window, (count, peak) in right.items():
            assert ours[window][0] == count
            assert ours[window][1] == (None if peak is None else pytest.approx(peak))


def test_limit_windows_over_all_runs(corpus):
    right: defaultdict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    for run in corpus.runs:
        for one in run["limits"] or ():
            right[one["limit"], one["resets_at"]].append(one)
    rows = corpus.rows("SELECT *, CAST(epoch_us(resets_at) // 1000000 AS BIGINT) AS resets FROM rate_limit_windows")
    assert {(row["limit_id"], row["resets"]) for row in rows} == right.keys()
    for row in rows:
        ones = right[row["limit_id"], row["resets"]]
        peaks = [one["peak_used_percent"] for one in ones if one["peak_used_percent"] is not None]
        assert row["samples"] == sum(one["samples"] for one in ones)
        assert row["runs"] == len(ones)
        assert row["peak_used_percent"] == (pytest.approx(max(peaks)) if peaks else None)


def test_totals(corpus):
    """The generator's own totals are those of its runs, unless a decision of it was decided otherwise here."""
    total = corpus.truth["all"]
    rows = list(corpus.metrics.values())
    assert len(rows) == total["runs"]
    assert sum(row["refused_lines"] for row in rows) == total["refused_lines"]
    assert sum(row["events"] for row in rows) == total["events"]
    assert sum(row["other_lines"] for row in rows) == total["plain_text_lines"] + total["voice_lines"]
    assert Counter(row["completeness"] for row in rows) == Counter(total["completeness"])
    assert Counter(str(row["outcome"]) for row in rows) == Counter(total["outcome"])
    for figure in ("input_tokens", "output_tokens", "tool_calls", "tool_calls_unfinished", "cost_usd"):
        decided_otherwise = sum(
            (corpus.metrics[run["run_id"]][figure] or 0) - (run[figure] or 0)
            for run in corpus.runs
            if figure in run["also_accept"]
        )
        assert sum(row[figure] or 0 for row in rows) - decided_otherwise == pytest.approx(total[figure]), figure
    read = [row for row in corpus.files.values() if row["status"] == "read"]
    assert len(read) == total["files"]
    assert sum(row["bytes_read"] + row["pending_bytes"] for row in read if row["compression"] is None) == sum(
        (corpus.root / path).stat().st_size for path in corpus.files if not path.endswith((".gz", ".zst"))
    )
    assert sum(row["pending_bytes"] > 0 for row in read) == total["torn_tails"]
    assert corpus.report.lines == sum(row["lines"] for row in read)


def test_sums_by_run_day_and_model_agree(corpus):
    figures = (
        "input_tokens",
        "uncached_input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "cost_usd",
    )
    sums = []
    for by in ("run", "day", "model"):
        rows = corpus.rows(f"FROM token_usage_by_{by}")
        sums.append(
            {figure: sum(row[figure] or 0 for row in rows if not row.get("is_side_call")) for figure in figures}
        )
    costs = [one.pop("cost_usd") for one in sums]
    assert sums[0] == sums[1] == sums[2]
    for figure in figures[:-1]:
        assert sums[0][figure] == sum(row[figure] or 0 for row in corpus.metrics.values())
    assert costs[0] == pytest.approx(sum(row["cost_usd"] or 0 for row in corpus.metrics.values()))


def test_checks_find_nothing(corpus):
    if corpus.name not in ("seed 1", "damaged"):
        pytest.skip("two corpora are enough for the checks, which ask for everything once more")
    assert {name: rows for name, found in corpus.lake.check().items() if (rows := found.fetchall())} == {}


def test_a_second_ingest_opens_no_file(corpus, monkeypatch):
    def refuse(path, **_options):
        raise AssertionError(f"{path} was opened")

    monkeypatch.setattr("analytics.reading.open_source", refuse)
    monkeypatch.setattr("analytics.contents.open_source", refuse)
    version = corpus.lake.version
    report = corpus.lake.ingest([path for path in corpus.root.iterdir() if path.is_dir()])
    assert (report.version, corpus.lake.version) == (version, version)
    assert (report.files_unchanged, report.files_new, report.lines, report.bytes_in) == (len(corpus.files), 0, 0, 0)
