"""Files of Harness Lab runs with known figures: what `runlake compare` is tested on."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def lab_run(
    variant, task, repetition=0, *, usd=None, tokens=100, outcome="pass", seconds=60, model="larch-5", calls=0,
    is_cut=False, day=0,
):  # fmt: skip
    """The lines of one run. A cut run has neither its final usage nor an end, so that its tokens are a lower bound."""
    name = hashlib.sha256(f"{variant}\0{task}\0{repetition}".encode()).hexdigest()[:12]
    start = {"variant": variant, "task": task, "runner": "claude", "model": model, "repetition": repetition}
    used = {
        "input_tokens": tokens, "cached_input_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0,
        "reasoning_output_tokens": 0,
    }  # fmt: skip
    events = [("run_started", None, None, {key: value for key, value in start.items() if value is not None}, None)]
    for number in range(calls):
        call = f"tu_{name}{number}"
        events.append(("tool_started", "Read", call, {"tool": "Read", "input": {}}, None))
        events.append(("tool_finished", "Read", call, {"tool": "Read", "status": "completed", "output": ""}, 5))
    if is_cut:
        events.append(("usage", "message_usage", None, used | {"message_id": f"msg_{name}"}, None))
    else:
        final = used | {"final": True, "models": [model]} | ({} if usd is None else {"total_cost_usd": usd})
        end = {"status": "completed", "outcome": outcome, "error": None, "exit_code": 0}
        events += [
            ("usage", "result_usage", None, final, None),
            ("run_finished", None, None, end, seconds * 1000),
        ]
    lines = []
    for sequence, (kind, event, call, payload, took) in enumerate(events):
        at = BEGIN + timedelta(days=day, seconds=sequence)
        lines.append(json.dumps({
            "event_id": f"evt_{name}{sequence:04}", "run_id": f"run_{name}", "sequence": sequence,
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "kind": kind,
            "source": "runner" if kind.startswith("run_") else "claude", "name": event, "duration_ms": took,
            "payload": payload, "call_id": call, "parent_call_id": None, "raw_metadata": None,
        }))  # fmt: skip
    return "".join(f"{line}\n" for line in lines).encode()


def write_runs(folder: Path, *runs: bytes) -> Path:
    """One file per run."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate(runs):
        (folder / f"{number:03}.jsonl").write_bytes(lines)
    return folder


# dollars by variant and task, a number per repetition. base - lean within a task: 1, 2, 1, 1, 1, 1
USD = {
    "base": {"t1": [1.0, 3.0], "t2": [4.0], "t3": [2.0], "t4": [2.0], "t5": [2.0], "t6": [2.0]},
    "lean": {"t1": [1.0] * 5, "t2": [2.0], "t3": [1.0], "t4": [1.0], "t5": [1.0], "t6": [1.0]},
}


def six_tasks(**tokens):
    """The runs of USD; tokens are 100 a dollar, or what is said for a variant."""
    return [
        lab_run(
            variant, task, n, usd=usd, tokens=tokens.get(variant, int(100 * usd)), calls=2 if variant == "base" else 3
        )
        for variant, tasks in USD.items()
        for task, repetitions in tasks.items()
        for n, usd in enumerate(repetitions)
    ]
