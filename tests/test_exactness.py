"""Nothing guessed: what a cut stream, or a record with a number left out, may still claim.

The whole stream is the truth about its beginnings: wherever a beginning says that a figure is exact, the figure must
be that of the whole. And a number that is not there is unknown: a total that would need it is NULL or a lower bound.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clones import clone, corpus, leaves
from helpers import Lab

TOKENS = (
    "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens",
    "output_tokens", "reasoning_tokens", "total_tokens",
)  # fmt: skip
# the flag, the value that claims exactness, and what it claims it of
CLAIMS = (
    ("tokens_are_lower_bound", False, TOKENS),
    ("denials_are_lower_bound", False, ("denied_calls",)),
    ("unfinished_is_exact", True, ("tool_calls_unfinished",)),
)
CLOSED = {
    "metaharness claude": corpus("metaharness/claude/mend-sluice-r1.jsonl"),
    "metaharness codex": corpus("metaharness/codex/mend-sluice-r0.jsonl"),
    "metaharness b10x": corpus("metaharness/b10x/together.jsonl", "night-5/sort-ledger/b10x-plain/r1"),
    "harness-lab claude": corpus("harness-lab/events/claude-skills-mend-sluice.jsonl", "run_82fb5021claude"),
    "harness-lab codex": corpus("harness-lab/flattened/codex.jsonl.zst", "run_fdb16e5fcodex"),
    "platonic-core records": corpus("platonic-core/record/runs/run_0001.jsonl"),
    "platonic-core ledger 1": corpus("platonic-core/v1/runs/run_0003.jsonl"),
    "platonic-core ledger 2": corpus("platonic-core/v2/runs/run_0010.jsonl"),
    "claude-stream partials": corpus("claude-stream/printed.jsonl"),
    "claude-stream": corpus("claude-stream/captured.jsonl"),
    "codex-rollout": corpus("codex/sessions/2026/11/04/*.jsonl"),
    "codex-exec": corpus("codex-exec/first.jsonl"),
}
# these wires have no end marker, but numbers that may be missing
OTHERS = {
    "claude-code": corpus("claude/projects/-project/47d2d30e-f9f1-4bd0-ae21-a14399441b2f.jsonl"),
    "harness-lab stdout": corpus("harness-lab/stdout/agent-one.log"),
    "harness-lab document": corpus("harness-lab/export-harbour-sweep.json"),
}
# here a record before the marker states the total of the run, and what follows adds nothing to it
STATED_BEFORE_THE_END = {"metaharness claude", "metaharness codex", "harness-lab claude"}
# a running meter: what it counted so far is exact, and completeness says that the thread goes on
METERED = {"codex-rollout"}
NEAR, FAR = 4, 3  # cuts: each of the last lines, and some anywhere
TURN_STARTS, TURN_ENDS = {"task_started", "turn.started"}, {"task_complete", "turn_aborted", "turn.completed"}


def open_turns(lines: list[bytes]) -> int:
    """Of a wire whose turns are its only end: begun less ended. Cut between two turns, it is whole, but shorter."""
    count = 0
    for line in lines:
        row = json.loads(line) if line.startswith(b"{") else {}
        payload = row.get("payload")
        kind = payload.get("type") if isinstance(payload, dict) else row.get("type")
        count += (kind in TURN_STARTS) - (kind in TURN_ENDS)
    return count


def cuts(name: str) -> list[int]:
    lines = CLOSED[name].splitlines(keepends=True)
    far = random.Random(name).sample(range(1, len(lines) - NEAR), min(FAR, len(lines) - NEAR - 1))
    places = sorted({*far, *range(len(lines) - NEAR, len(lines))})
    if name.startswith("codex-"):
        places = [n for n in places if open_turns(lines[:n]) > 0]
    return places


class Variants:
    """Variants of many streams in one lake, and the metrics of each by its name."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab(folder)
        self.names: dict[str, tuple[Any, ...]] = {}

    def add(self, data: bytes, *name: Any) -> None:
        tag = f"x{len(self.names):04d}"
        path = self.lab.write(f"{tag}.jsonl", clone(data, tag))
        self.names[str(path.resolve())] = name

    def metrics(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        runs = {row[0]: self.names[row[1]] for row in self.lab.sql(
            "SELECT unnest(runs).run_id, path FROM sources"
        )}  # fmt: skip
        made: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self.lab.metrics():
            name = runs[row["run_id"]]
            place = sum(other[: len(name)] == name for other in made)
            made[*name, place] = row
        return made


def untagged(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its own tag."""
    tag = row["run_id"][-5:]
    return {key: value.replace(tag, "") if isinstance(value, str) else value for key, value in row.items()}


def meter(data: bytes, cut: int) -> list[int | None]:
    """Input and output by the last running total in the first lines."""
    rows = [json.loads(line)["payload"] for line in data.splitlines()[:cut]]
    totals = [info["total_token_usage"] for row in rows if (info := row.get("info"))]
    return [totals[-1][name] if totals else None for name in ("input_tokens", "output_tokens")]


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory):
    """The closed streams, whole and cut; then the metrics before and after each got the rest of its lines."""
    made = Variants(tmp_path_factory.mktemp("beginnings"))
    for name, data in CLOSED.items():
        lines = data.splitlines(keepends=True)
        made.add(data, name, len(lines))
        for cut in cuts(name):
            made.add(b"".join(lines[:cut]), name, cut)
    made.lab.ingest(jobs=1)
    before = made.metrics()
    calls = Counter(made.lab.sql("SELECT run_id, state FROM tool_calls WHERE is_exact"))
    usage = made.lab.rows("FROM token_usage_by_run WHERE NOT is_lower_bound")
    for path, (name, cut) in made.names.items():
        if cut < len(CLOSED[name].splitlines()):
            Path(path).write_bytes(clone(CLOSED[name], Path(path).stem))
    made.lab.ingest(jobs=1)
    return before, made.metrics(), calls, usage


@pytest.mark.parametrize("name", CLOSED)
def test_a_whole_stream_claims_to_be_exact_and_a_cut_one_does_not(beginnings, name):
    before, *_ = beginnings
    whole = len(CLOSED[name].splitlines())
    for (stream, cut, _), row in before.items():
        if stream != name:
            continue
        claims = tuple(row[flag] is value for flag, value, _ in CLAIMS)
        if cut == whole:
            assert claims == (True, True, True)
            assert row["completeness"] == "closed"
        else:
            assert claims[1:] == (False, False), cut
            assert row["completeness"] != "closed", cut
            assert not claims[0] or name in STATED_BEFORE_THE_END | METERED, cut


@pytest.mark.parametrize("name", CLOSED)
def test_what_a_cut_stream_claims_to_be_exact_is_that_of_the_whole(beginnings, name):
    before, _, calls, usage = beginnings
    whole = before[name, len(CLOSED[name].splitlines()), 0]
    by_run = {row["run_id"]: row for row in usage}
    for (stream, cut, _), row in before.items():
        if stream != name:
            continue
        for flag, value, columns in CLAIMS:
            if name in METERED and columns == TOKENS:
                assert row["completeness"] == "open" or row is whole
                assert meter(CLOSED[name], cut) == [row[column] for column in ("input_tokens", "output_tokens")], cut
            elif row[flag] is value:
                assert [row[column] for column in columns] == [whole[column] for column in columns], (cut, flag)
        if row["run_id"] in by_run and name not in METERED:
            said = by_run[row["run_id"]]
            assert [said[column] for column in TOKENS] == [whole[column] for column in TOKENS], cut
        exact = {state: count for (run, state), count in calls.items() if run == row["run_id"]}
        if exact:
            assert exact == {state: count for (run, state), count in calls.items() if run == whole["run_id"]}, cut


@pytest.mark.parametrize("name", CLOSED)
def test_with_the_rest_of_its_lines_a_stream_says_what_the_whole_says(beginnings, name):
    _, after, *_ = beginnings
    whole = untagged(after[name, len(CLOSED[name].splitlines()), 0])
    for (stream, cut, _), row in after.items():
        if stream == name:
            assert untagged(row) == whole, cut


# ---- numbers that are not there -------------------------------------------------------------------------------------

COUNTS = {
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens",
    "cached_input_tokens", "cache_write_tokens", "reasoning_output_tokens", "ephemeral_1h_input_tokens",
    "ephemeral_5m_input_tokens", "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
}  # fmt: skip
COSTS = {"total_cost_usd", "cost_usd", "costUSD"}
LIMITS = {"utilization", "used_percent"}
NUMBERS = COUNTS | COSTS | LIMITS
MOST = 12  # places per stream, each once null and once left out


def numbers(data: bytes) -> dict[tuple[str, str, int], list[tuple[int, int]]]:
    """Line and which leaf of it, of each optional number; by record type, key, and which of the line's it is."""
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for n, line in enumerate(lines_of(data)):
        value = json.loads(line) if line.startswith(b"{") else {}
        kind, seen = json.dumps([value.get(key) for key in ("event", "type", "kind", "name")])[:60], Counter()
        for place, (holder, key) in enumerate(leaves(value)):
            if key in NUMBERS and isinstance(holder[key], int | float):
                found.setdefault((kind, key, seen[key]), []).append((n, place))
                seen[key] += 1
    return found


def lines_of(data: bytes) -> list[bytes]:
    return [data] if data.startswith(b"{\n") else data.splitlines(keepends=True)


def without(data: bytes, where: tuple[int, int], how: str) -> bytes:
    """The stream with one number null, or without its key."""
    lines = lines_of(data)
    value = json.loads(lines[where[0]])
    holder, key = list(leaves(value))[where[1]]
    if how == "null":
        holder[key] = None
    else:
        del holder[key]
    lines[where[0]] = json.dumps(value, indent=1 if len(lines) == 1 else None).encode() + b"\n"
    return b"".join(lines)


STREAMS = CLOSED | OTHERS


@pytest.fixture(scope="module")
def unknowns(tmp_path_factory):
    made = Variants(tmp_path_factory.mktemp("unknowns"))
    for name, data in STREAMS.items():
        made.add(data, name, None, "whole")
        rng = random.Random(name)
        places = sorted({rng.choice(some) for some in numbers(data).values()})
        for where in places if len(places) <= MOST else rng.sample(places, MOST):
            for how in ("null", "left out"):
                made.add(without(data, where, how), name, where, how)
    made.lab.ingest(jobs=1)
    return made.metrics(), made.lab.rows("FROM coverage"), made.lab.failed_checks()


@pytest.mark.parametrize("name", STREAMS)
def test_no_total_takes_a_number_that_is_not_there_for_zero(unknowns, name):
    metrics, *_ = unknowns
    changed = 0
    for (stream, where, how, place), row in metrics.items():
        if stream != name:
            continue
        whole = metrics[name, None, "whole", place]
        assert row["rate_limit_peak_percent"] != 0, "a peak is that of the samples that have a value"
        for column in (*TOKENS, "cost_usd"):
            if row[column] == whole[column]:
                continue
            changed += 1
            is_flagged = column in TOKENS and row["tokens_are_lower_bound"] is True
            assert row[column] is None or is_flagged, (column, where, how, whole[column], row[column])
    assert changed, "no number of the sample counts: the test would say nothing"


def test_coverage_counts_what_is_not_known(unknowns):
    """Its rows are counts over the runs; here they are counted once more, run by run."""
    metrics, coverage, _ = unknowns
    columns = {"tokens": "input_tokens", "cached tokens": "cache_read_tokens", "reasoning tokens": "reasoning_tokens"}
    columns |= {"cost": "cost_usd", "denied calls": "denied_calls", "unfinished calls": "tool_calls_unfinished"}
    for row in coverage:
        if row["question"] not in columns:
            continue
        runs = [run for run in metrics.values() if run["wire"] == row["wire"] and run["is_counted"]]
        known = [run for run in runs if run[columns[row["question"]]] is not None]
        assert (row["runs"], row["answered"]) == (len(runs), len(known)), row
        if "tokens" in row["question"]:
            assert row["exact"] == sum(run["tokens_are_lower_bound"] is False for run in known), row
    unknown = {row["question"] for row in coverage if row["answered"] + row["silent"] < row["runs"]}
    assert {"tokens", "cost"} <= unknown, "some run's only total was left out"


def test_checks_find_nothing_in_what_is_not_known(unknowns):
    assert unknowns[2] == {}
