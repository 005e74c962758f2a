"""Writes the sample corpus of this folder: a few dozen runs over all wires, and the truth about them.

    python data/generate.py [OUT]        (default: the folder corpus beside this file)

Everything is invented. Each run draws from its own seed, so that adding one changes no other. The truth is added up
while the lines are written, by the rules of each wire and without the product; `tests/test_sample_corpus.py` compares
it with the ingested lake, and this folder with a fresh run of this script.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from makers import (
    claude_code,
    claude_stream,
    codex_exec,
    codex_rollout,
    harness_lab,
    metaharness_adapters,
    platonic_core,
)  # fmt: skip
from makers.common import TASKS, Made
from makers.harness_lab import Plan as Lab
from makers.metaharness import Plan as Meta
from makers.platonic_core import Plan as Core

SLUICE, LEDGER, HARBOUR = TASKS

METAHARNESS: dict[str, list[Meta]] = {
    "claude/mend-sluice-r0.jsonl": [
        Meta("claude", SLUICE, "claude-plain", 0, 0, 22, "completed", ("limits", "steps", "secret"))
    ],
    "claude/mend-sluice-r1.jsonl": [
        Meta("claude", SLUICE, "claude-plain", 1, 1, 16, "completed", ("limits", "retries", "opaque", "represented"))
    ],
    "claude/sort-ledger.jsonl": [
        Meta("claude", LEDGER, "claude-plain", 0, 1, 18, "max-turns", ("limits", "mutated", "bad:unknown_event")),
        Meta("claude", LEDGER, "claude-plain", 1, 2, 12, "cut-after-end", ("limits", "bad:unknown_format")),
    ],
    "claude/trim-harbour-r0.jsonl": [
        Meta("claude", HARBOUR, "claude-strict", 0, 3, 15, "cut", ("limits", "auth", "injection", "bad:trailing_text"))
    ],
    "claude/trim-harbour-r1.jsonl.gz": [
        Meta("claude", HARBOUR, "claude-strict", 1, 4, 14, "halt", ("limits", "command"))
    ],
    "claude/trim-harbour-r2.jsonl": [Meta("claude", HARBOUR, "claude-strict", 2, 5, 9, "marker-not-last", ("steps",))],
    "codex/mend-sluice-r0.jsonl": [Meta("codex", SLUICE, "codex-plain", 0, 0, 9, "completed", ("limits",))],
    "codex/mend-sluice-r1.jsonl": [Meta("codex", SLUICE, "codex-plain", 1, 2, 8, "bare", ("limits", "bad:malformed"))],
    "codex/sort-ledger-r0.jsonl": [
        Meta("codex", LEDGER, "codex-plain", 0, 4, 10, "error", ("limits", "bad:unknown_event"))
    ],
    "codex/sort-ledger-r1.jsonl": [Meta("codex", LEDGER, "codex-plain", 1, 6, 7, "cut", ("limits",))],
    "codex/trim-harbour.jsonl": [Meta("codex", HARBOUR, "codex-plain", 0, 7, 6, "halt", ("limits", "opaque"))],
    "b10x/together.jsonl": [
        Meta("b10x", SLUICE, "b10x-plain", 0, 3, 12, "completed"),
        Meta("b10x", LEDGER, "b10x-plain", 1, 5, 10, "budget"),
    ],
    "b10x/trim-harbour-r0.jsonl": [Meta("b10x", HARBOUR, "b10x-plain", 0, 8, 9, "cut")],
    "b10x/trim-harbour-r1.jsonl": [Meta("b10x", HARBOUR, "b10x-plain", 1, 9, 8, "completed", ("bad:not_json",))],
}
TRANSCRIBED = "metaharness/codex/trim-harbour.jsonl"  # its agent's own file is there, too

LATE = ("ok", "ok", "timeout")
HARNESS_LAB: dict[str, list[Lab]] = {
    f"events/{variant}-{task}.jsonl": [
        Lab("A", "claude", task, variant, repetition, 2 * repetition + at, rounds + 2 * repetition)
        for repetition in (0, 1)
    ]
    for variant, rounds in (("claude-plain", 12), ("claude-skills", 8))
    for at, task in enumerate(TASKS)
} | {
    "events/blocked.jsonl": [Lab("A", "claude", SLUICE, "claude-strict", 0, 6, 10, "blocked", ("bad:malformed",))],
    "events/timeout-and-cut.jsonl": [
        Lab("A", "claude", LEDGER, "claude-strict", 0, 7, 9, "timeout"),
        Lab("A", "claude", HARBOUR, "claude-strict", 0, 7, 8, "cut", ("bad:unknown_event",)),
    ],
    "flattened/codex.jsonl.zst": [
        Lab("B", "codex", task, "codex-plain", repetition, 3 * repetition + at, 9, LATE[at * repetition])
        for at, task in enumerate(TASKS)
        for repetition in (0, 1)
    ],
    "stdout/agent-one.log": [Lab("C", "generic", SLUICE, "generic-plain", 0, 8, 14)],
    "stdout/agent-two.log": [Lab("C", "generic", LEDGER, "generic-plain", 1, 9, 9, "cut", ("bad:malformed",))],
}  # fmt: skip
EXPORT = "export-harbour-sweep.json"
EXPORTED = [
    Lab("B", "generic", task, variant, 0, at + 4, 7)
    for at, task in enumerate(TASKS[:2])
    for variant in ("generic-plain", "generic-frame")
]

PLATONIC_CORE = [
    Core("record", 1, 0, 9, "finished", ("retries", "compaction", "rejected")),
    Core("record", 2, 1, 6, "failed", ("unknown usage",)),
    Core("v1", 3, 2, 8, "finished", ("compaction",)),
    Core("v1", 4, 3, 5, "canceled"),
    Core("v2", 5, 4, 10, "finished", ("voice", "retries", "bad:unknown_event")),
    Core("v2", 6, 5, 7, "finished", ("bad:unknown_field", "bad:illegal_transition", "bad:sequence_mismatch")),
    Core("v2", 7, 6, 6, "running", ("rejected",)),
    Core("v2", 8, 7, 4, "pending"),
    Core("v2", 9, 8, 8, "orphan", ("bad:unknown_format",)),
    Core("v2", 10, 9, 11, "finished", ("compaction", "retries", "rejected")),
]


def agents(harness: tuple[str, Made]) -> dict[str, list[Made]]:
    """The agents' own files: their homes, and what they printed. Some of it is the same work seen twice, and one
    rollout is of a run that a harness's stream (its file, and the run) shows, too.
    """
    session, its_capture = claude_stream.of_a_session()
    rollout, its_exec = codex_exec.of_a_rollout()
    file, run = harness
    own = codex_rollout.of_a_harness(json.loads(run.lines[0])["session_id"], 7)
    own.truth.is_counted, own.truth.same_run_as = False, file
    run.truth.same_run_as = f"codex/{codex_rollout.path(own)}"
    kept = {codex_rollout.path(own): [own.made("closed", is_lower_bound=False)]}
    sessions = claude_code.long_session() | claude_code.resumed() | claude_code.old() | claude_code.torn() | session
    folders = {
        "claude": sessions,
        "claude-stream": claude_stream.whole() | claude_stream.cut() | its_capture,
        "codex": codex_rollout.family() | codex_rollout.packed() | rollout | kept,
        "codex-exec": codex_exec.resumed() | codex_exec.failed() | its_exec,
    }
    return {f"{folder}/{name}": made for folder, files in folders.items() for name, made in files.items()}


class Corpus:
    """Writes the files and keeps the truth of runs, files and limit windows."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.runs: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.windows: dict[tuple[str, int | None], dict[str, Any]] = {}

    def save(self, name: str, made: list[Made], text: str | None = None) -> None:
        """One file of one or more runs. A tail is only written where it ends the file, as a cut does."""
        if text is None:
            text = "".join(line + "\n" for run in made for line in run.lines) + made[-1].tail
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(data, mtime=0))
        elif name.endswith(".zst"):
            path.write_bytes(pa.Codec("zstd", 9).compress(data, asbytes=True))
        else:
            path.write_bytes(data)
        lines = sum(len(run.lines) for run in made)
        refused = sum(run.truth.refused_lines - run.glued for run in made)
        self.files.append(
            {"file": name, "lines": lines, "refused_lines": refused, "pending_bytes": len(made[-1].tail.encode())}
        )
        for run in made:
            run.truth.file = name
            self.runs.append(run.truth.row())
            for limit, resets_at, percent, *minutes in run.limits:
                unseen: dict[str, Any] = {"limit_id": limit, "resets_at": resets_at}
                unseen |= {"samples": 0, "peak_used_percent": None, "runs": []}
                if minutes:
                    unseen["window_minutes"] = minutes[0]
                window = self.windows.setdefault((limit, resets_at), unseen)
                window["samples"] += 1
                peaks = [peak for peak in (window["peak_used_percent"], percent) if peak is not None]
                window["peak_used_percent"] = max(peaks, default=None)
                window["runs"] = sorted({*window["runs"], str(run.truth.run_id)})

    def truth(self) -> dict[str, Any]:
        """Totals by wire and over all of the runs that count; a None counts in `unknown`, never as zero."""
        totals = {
            wire: total([run for run in self.runs if run["wire"] == wire])
            for wire in sorted({r["wire"] for r in self.runs})
        }
        windows = [w | {"runs": len(w["runs"])} for w in self.windows.values()]
        return {
            "all": total(self.runs), "by_wire": totals, "limit_windows": windows, "secrets": 1,
            "files": self.files, "runs": self.runs,
        }  # fmt: skip


def total(runs: list[dict[str, Any]]) -> dict[str, Any]:
    counted = [
        "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens",
        "reasoning_tokens", "cache_write_1h_tokens", "requests", "cost_usd", "tool_calls", "denied_calls",
        "tool_calls_unfinished", "refused_lines",
    ]  # fmt: skip
    once = [run for run in runs if run.get("is_counted", True)]
    sums = {name: sum(run[name] for run in once if run.get(name) is not None) for name in counted}
    sums["cost_usd"] = round(sums["cost_usd"], 6)
    unknown = {name: sum(run.get(name) is None for run in once) for name in counted}
    refusals: Counter[str] = Counter()
    for run in runs:
        refusals.update(run["refusals"])
    return {
        "runs": len(runs), "counted_runs": len(once), **sums,
        "unknown": {name: count for name, count in unknown.items() if count},
        "refusals": dict(sorted(refusals.items())),
        "completeness": dict(sorted(Counter(run["completeness"] for run in runs).items())),
        "outcome": dict(sorted(Counter(str(run["outcome"]) for run in runs).items())),
    }  # fmt: skip


def write(out: Path) -> dict[str, Any]:
    corpus = Corpus(out)
    harness = {
        f"metaharness/{name}": [metaharness_adapters.make(plan) for plan in metas]
        for name, metas in METAHARNESS.items()
    }
    own = agents((TRANSCRIBED, harness[TRANSCRIBED][0]))
    for name, runs in harness.items():
        corpus.save(name, runs)
    for name, labs in HARNESS_LAB.items():
        corpus.save(f"harness-lab/{name}", [harness_lab.make(plan) for plan in labs])
    exported = [harness_lab.make(plan) for plan in EXPORTED]
    corpus.save(f"harness-lab/{EXPORT}", exported, harness_lab.document(list(zip(EXPORTED, exported, strict=True))))
    for plan in PLATONIC_CORE:
        made = platonic_core.make(plan)
        corpus.save(f"platonic-core/{plan.form}/runs/{made.truth.run_id}.jsonl", [made])
    for name, runs in own.items():
        corpus.save(name, runs)
    truth = corpus.truth()
    (out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return truth


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus"
    everything = write(folder)["all"]
    print(f"{everything['runs']} runs, {everything['refused_lines']} refused lines: {folder}")
