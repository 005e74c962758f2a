"""What must not matter: a table of wires and invariants, all of it read into one lake and compared fact by fact.

A variant of a stream (cut anywhere and grown, read again, spaced, doubled, split, joined, in another order) has the
names of its records tagged, so that no variant is another's copy; without the tag its facts must be those of the
stream as it is. Which bytes are cut and which lines are doubled comes from a seed.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clones import clone, corpus
from helpers import FIXTURES, Lab, Reader
from hypothesis import HealthCheck, given, settings, strategies as st

STREAMS = {
    "metaharness": corpus("metaharness/claude/mend-sluice-r1.jsonl"),
    "harness-lab events": corpus("harness-lab/events/claude-skills-mend-sluice.jsonl", "run_82fb5021claude"),
    "harness-lab flattened": corpus("harness-lab/flattened/codex.jsonl.zst", "run_fdb16e5fcodex"),
    "harness-lab stdout": corpus("harness-lab/stdout/agent-two.log"),
    "harness-lab document": corpus("harness-lab/export-harbour-sweep.json"),
    "platonic-core records": corpus("platonic-core/record/runs/run_0001.jsonl"),
    "platonic-core ledger": corpus("platonic-core/v2/runs/run_0005.jsonl"),
    "claude-stream": corpus("claude-stream/printed.jsonl"),
    "codex-exec": corpus("codex-exec/first.jsonl"),
    "codex-exec, first form": (FIXTURES / "codex-exec/before-2025-09-30.jsonl").read_bytes(),
    "codex-rollout": corpus("codex/sessions/2026/11/04/*.jsonl"),
    "codex-rollout, bare": (FIXTURES / "codex-rollout/bare.jsonl").read_bytes(),
    "claude-code": corpus("claude/projects/-project/47d2d30e-f9f1-4bd0-ae21-a14399441b2f.jsonl"),
}
ALL = tuple(STREAMS)
# files that hold many runs, one after the other
SHARED = ("metaharness", "harness-lab events", "harness-lab flattened", "claude-stream", "codex-exec", "claude-code")
# records that say who they are, or that stand in a running total, may stand anywhere and more than once
SESSIONS, ROLLOUTS = ("claude-code",), ("codex-rollout",)

Files = list[bytes]
Change = Callable[[bytes, random.Random], tuple[Files, Files]]  # the files at first, and in the end


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def is_document(data: bytes) -> bool:
    return data.startswith(b"{\n")


def byte_cut(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    return [data[: rng.randrange(len(data))]], [data]


def read_again(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    return [data], [data]


def each_object(data: bytes, write: Callable[[Any], str]) -> bytes:
    if is_document(data):
        return write(json.loads(data)).encode() + b"\n"
    return b"".join(
        write(json.loads(line)).encode() + b"\n" if line.startswith(b"{") and line.endswith(b"}\n") else line
        for line in lines(data)
    )


def spaced(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    made = each_object(data, lambda value: json.dumps(value, separators=(" , ", " : ")))
    return [made], [made]


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


def reordered(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    made = each_object(data, lambda value: json.dumps(turned(value), separators=(",", ":"), ensure_ascii=False))
    return [made], [made]


def lines_twice(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    """Some lines once more, right behind themselves; then all of them once more."""
    some = b"".join(line * rng.choice((1, 2)) for line in lines(data))
    return [some], [b"".join(line * 2 for line in lines(data))]


def history_twice(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    """The beginning of the file once more at its end, as a resumed session writes it."""
    whole = lines(data)
    made = data + b"".join(whole[: rng.randrange(1, len(whole))])
    return [made], [made]


def split(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    whole = lines(data)
    at = rng.choice(places(whole))
    made = [b"".join(whole[:at]), b"".join(whole[at:])]
    return made, made


def rest_first(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    """The second half is read first, the first half later."""
    (first, second), _ = split(data, rng)
    return [b"", second], [first, second]


def places(whole: list[bytes]) -> list[int]:
    """Where a file may be cut in two: of a rollout not between a total and its repetition, which nothing would tell."""
    totals = [n for n, line in enumerate(whole) if b'"total_token_usage"' in line]
    if not totals:
        return list(range(1, len(whole)))
    told = {n: json.dumps(json.loads(whole[n])["payload"]["info"]["total_token_usage"]) for n in totals}
    return [a + 1 for a, b in itertools.pairwise(totals) if told[a] != told[b]]


def joined(data: bytes, rng: random.Random) -> tuple[Files, Files]:
    """Two runs in one file (`both` names them); the second is read later."""
    one, other = clone(data, "a"), clone(data, "b")
    return [one], [one + other]


# invariant: how the stream is changed, how often, for which streams, and whether it holds run by run or over the runs
TABLE: dict[str, tuple[Change, int, tuple[str, ...], str]] = {
    "cut at any byte, then whole": (byte_cut, 3, ALL, "run"),
    "read again": (read_again, 1, ALL, "run"),
    "spaced": (spaced, 1, ALL, "run"),
    "keys in another order": (reordered, 1, ALL, "run"),
    "lines twice": (lines_twice, 2, SESSIONS + ROLLOUTS, "run"),
    "history twice": (history_twice, 2, SESSIONS, "run"),
    "split in two files": (split, 2, SESSIONS, "run"),
    "split in two files, over the runs": (split, 2, ROLLOUTS, "sum"),
    "the second half first": (rest_first, 2, SESSIONS, "run"),
    "the second half first, over the runs": (rest_first, 2, ROLLOUTS, "sum"),
    "joined": (joined, 1, SHARED, "twice"),
}
PLACES = {"source_id", "line", "part", "position", "sources", "place", "is_exact_line"}
COUNTS_OF_LINES = {"events", "event_lines", "event_rows", "other_lines"}
TEXTS_OF_JSON = {"attributes", "end_attributes"}
HASHED = re.compile(r"codex:[0-9a-f]{16}")  # names of requests that are made from tagged names
RELATIONS = ("run_metrics", "runs", "usage", "tool_calls", "decisions", "limit_samples")
SUMS = (
    "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens",
    "reasoning_tokens", "requests", "cost_usd", "tool_calls", "denied_calls", "tool_calls_unfinished",
)  # fmt: skip
SEEDS = [pytest.param(1, id="seed 1"), pytest.param(None, id="new seed", marks=pytest.mark.long)]
Name = tuple[str, str, int]


class Variants:
    """All variants of all streams in one lake, ingested twice: as they are at first, and in the end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.lab, self.seed = Lab(folder), seed
        self.tags: dict[str, Name] = {}
        after: list[tuple[Path, bytes]] = []
        for stream in ALL:
            self.add(after, ("as it is", stream, 0), read_again)
        for invariant, (change, times, streams, _) in TABLE.items():
            for stream in streams:
                for number in range(times):
                    self.add(after, (invariant, stream, number), change)
        self.lab.ingest(jobs=1)
        for path, data in after:
            path.write_bytes(data)
        self.lab.ingest(jobs=1)
        self.names = {
            run_id: self.tags[Path(path).stem[:5]]
            for run_id, path in self.lab.sql("SELECT unnest(runs).run_id, path FROM sources")
        }
        self.facts = {relation: self.by_variant(relation) for relation in RELATIONS}

    def add(self, after: list[tuple[Path, bytes]], name: Name, change: Change) -> None:
        tag = f"x{len(self.tags):04d}"
        self.tags[tag] = name
        before, then = change(clone(STREAMS[name[1]], tag), random.Random(f"{self.seed} {name}"))
        for number, (data, whole) in enumerate(zip(before, then, strict=True)):
            path = self.lab.write(f"{tag}-{number}.jsonl", data)
            after.append((path, whole))

    def by_variant(self, relation: str) -> dict[Name, list[dict[str, Any]]]:
        found: dict[Name, list[dict[str, Any]]] = defaultdict(list)
        for row in self.lab.rows(f"FROM {relation}"):
            found[self.names[row["run_id"]]].append({k: v for k, v in row.items() if k not in PLACES})
        return found


@pytest.fixture(scope="module", params=SEEDS)
def variants(request, tmp_path_factory):
    seed = random.SystemRandom().randrange(1_000_000) if request.param is None else request.param
    print("seed", seed)  # noqa: T201 (pytest shows it beside a failure)
    return Variants(tmp_path_factory.mktemp("variants"), seed)


def untagged(rows: list[dict[str, Any]], tags: dict[str, Name], name: Name, *more: str) -> list[str]:
    """Rows as text without the variant's own names, in an order that is theirs alone."""
    (tag,) = [tag for tag, one in tags.items() if one == name]
    made = []
    for row in rows:
        said = {key: value for key, value in row.items() if key not in COUNTS_OF_LINES}
        for key in said.keys() & TEXTS_OF_JSON:
            said[key] = said[key] and json.dumps(json.loads(said[key]), sort_keys=True)
        text = HASHED.sub("", repr(said))
        source = row["run_id"].rsplit("-", 1)[-1]
        if row["run_id"].endswith(f"-{source}") and len(source) == 16:  # a run that is made from its file
            text = text.replace(source, "file")
        for part in (*more, tag):
            text = text.replace(part, "")
        made.append(text)
    return sorted(made)


CELLS = [(invariant, stream) for invariant, row in TABLE.items() for stream in row[2]]


@pytest.mark.parametrize(("invariant", "stream"), CELLS)
def test_facts_stay_what_they_are(variants, invariant, stream):
    _, times, _, how = TABLE[invariant]
    plain: Name = ("as it is", stream, 0)
    for number in range(times):
        name: Name = (invariant, stream, number)
        for relation, facts in variants.facts.items():
            if how == "run":
                right = untagged(facts[plain], variants.tags, plain)
                assert untagged(facts[name], variants.tags, name) == right, (relation, number)
            elif how == "twice":
                for mine in ("a", "b"):
                    (tag,) = [tag for tag, one in variants.tags.items() if one == name]
                    rows = [row for row in facts[name] if f"{tag}{mine}" in row["run_id"]]
                    right = untagged(facts[plain], variants.tags, plain)
                    assert untagged(rows, variants.tags, name, f"{tag}{mine}") == right, (relation, mine)
        if how == "sum":
            assert sums(variants.facts["run_metrics"][name]) == sums(variants.facts["run_metrics"][plain]), number


def sums(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {column: sum(row[column] or 0 for row in rows if row["is_counted"]) for column in SUMS}


@pytest.mark.parametrize("stream", ALL)
def test_there_is_something_to_compare(variants, stream):
    """Each stream has a run, and calls or usage in it: a table of empty lists would hold whatever happens."""
    plain: Name = ("as it is", stream, 0)
    assert variants.facts["run_metrics"][plain]
    assert variants.facts["tool_calls"][plain] or variants.facts["usage"][plain]


def test_sums_by_run_by_day_and_by_model_agree(variants):
    by_run = dict.fromkeys(SUMS[:6], 0.0) | {"cost_usd": 0.0}
    for row in variants.lab.rows("FROM run_metrics WHERE is_counted"):
        for column in by_run:
            by_run[column] += row[column] or 0
    for view in ("token_usage_by_run WHERE is_counted", "token_usage_by_day", "token_usage_by_model"):
        rows = variants.lab.rows(f"FROM {view}")
        for column, right in by_run.items():
            # side calls stand beside the tokens, and in the cost
            some = [row for row in rows if column == "cost_usd" or not row.get("is_side_call")]
            assert sum(row[column] or 0 for row in some) == pytest.approx(right, abs=1e-6), (view, column)


def test_checks_find_nothing(variants):
    assert variants.lab.failed_checks() == {}


# ---- stored rows, where comparing them is enough and cheap ----------------------------------------------------------

GROWING = [name for name in ALL if not is_document(STREAMS[name])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(GROWING), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3))
def test_a_stream_that_grows_at_any_byte_gives_the_rows_of_the_whole(folder, stream, cuts):
    data, path, reader = STREAMS[stream], folder / "grows", Reader(folder)
    path.write_bytes(data)
    whole = reader.read(path)[1]
    grown = reader.grow(path, data, [int(cut * len(data)) for cut in cuts])
    reader.clear()
    assert grown.comparable() == whole.comparable()
