"""Homes of the traps generator (fixtures/cases), and the same rows written in other ways that must change nothing."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from helpers import FIXTURES
from native_read import Answers

GENERATOR = FIXTURES / "cases" / "gen_native_traps.py"
Rewrite = Callable[[dict[Path, bytes]], dict[Path, bytes]]


def make(folder: Path, sessions: int, calls: int) -> tuple[dict[Path, bytes], dict[str, Any]]:
    """The files of a home by their path in it, and the truth."""
    command = [sys.executable, str(GENERATOR), str(folder), str(sessions), str(calls)]
    subprocess.run(command, check=True, capture_output=True)
    files = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.jsonl")) if path.is_file()}
    return files, json.loads((folder / "truth.json").read_text())


def is_rollout(path: Path) -> bool:
    return ".codex" in path.parts


def lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and the cut end without a newline."""
    *whole, end = data.split(b"\n")
    return whole, end


def each_row(files: dict[Path, bytes], rewrite: Callable[[dict[str, Any]], bytes]) -> dict[Path, bytes]:
    made = {}
    for path, data in files.items():
        whole, end = lines(data)
        made[path] = b"".join(rewrite(json.loads(line)) + b"\n" for line in whole) + end
    return made


def spaced(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Blanks after colons and commas: what looks for bytes finds nothing."""
    return each_row(files, lambda row: json.dumps(row).encode())


def reordered(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Every object's keys in another order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    return each_row(files, lambda row: json.dumps(turned(row), separators=(",", ":")).encode())


def renamed(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Names and folders that say nothing."""
    return {Path("export", f"{number % 3}", f"log-{number}.jsonl"): data for number, data in enumerate(files.values())}


def sessions_split(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Each session file cut in two at a line."""
    made = {}
    for path, data in files.items():
        whole, end = lines(data)
        half = len(whole) // 2
        if is_rollout(path) or half == 0:
            made[path] = data
            continue
        made[path.with_name(f"{path.stem}.1.jsonl")] = b"".join(line + b"\n" for line in whole[:half])
        made[path.with_name(f"{path.stem}.2.jsonl")] = b"".join(line + b"\n" for line in whole[half:]) + end
    return made


def rollouts_split(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Each rollout cut in two, its second file without a session_meta, so without the thread's name.

    Sums hold only if the cut does not part an event from its repetition: nothing then says that the second file's
    first total is old. So the cut stands behind a moving event that none repeats.
    """
    made = {}
    for path, data in files.items():
        if not is_rollout(path):
            made[path] = data
            continue
        whole, end = lines(data)
        totals = {n: json.dumps(info) for n, line in enumerate(whole) if (info := total_of(line))}
        places = list(totals)
        alone = [n for n, after in itertools.pairwise(places) if totals[n] != totals[after]]
        cut = alone[len(alone) // 2] + 1
        made[path] = b"".join(line + b"\n" for line in whole[:cut])
        made[path.with_name(f"{path.stem}_rest.jsonl")] = b"".join(line + b"\n" for line in whole[cut:]) + end
    return made


def total_of(line: bytes) -> Any:
    """The running total a token_count tells."""
    payload = json.loads(line)["payload"]
    return (payload.get("info") or {}).get("total_token_usage") if payload.get("type") == "token_count" else None


def pairs(paths: Iterable[Path]) -> list[list[Path]]:
    kept = list(paths)
    return [kept[n : n + 2] for n in range(0, len(kept), 2)]


def sessions_joined(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Session files two by two; a cut end stays at the end."""
    return joined(files, is_rollout=False)


def rollouts_joined(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Rollouts two by two: the second thread's counter starts again, as after a restart."""
    return joined(files, is_rollout=True)


def joined(files: dict[Path, bytes], *, is_rollout: bool) -> dict[Path, bytes]:
    chosen = [path for path in files if (".codex" in path.parts) == is_rollout]
    made = {path: data for path, data in files.items() if path not in chosen}
    for pair in pairs(chosen):
        parts = sorted((files[path] for path in pair), key=lambda data: not data.endswith(b"\n"))
        made[pair[0]] = b"".join(parts)
    return made


REWRITES: dict[str, tuple[Rewrite, ...]] = {
    "as it is": (),
    "spaced": (spaced,),
    "keys reordered": (reordered,),
    "renamed": (renamed,),
    "sessions split": (sessions_split,),
    "sessions joined": (sessions_joined,),
    "rollouts split": (rollouts_split,),
    "rollouts joined": (rollouts_joined,),
    "all of it": (sessions_split, rollouts_joined, reordered, spaced, renamed),
}


def write(folder: Path, files: dict[Path, bytes], rewrites: tuple[Rewrite, ...], seed: int) -> list[Path]:
    """The rewritten files, in a random order."""
    for rewrite in rewrites:
        files = rewrite(files)
    written = []
    for path, data in files.items():
        whole = folder / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(data)
        written.append(whole)
    random.Random(seed).shuffle(written)
    return written


def found(got: Answers) -> dict[str, dict[str, Any]]:
    """The figures of truth.json as a lake gives them."""

    def of(wire: str, column: str) -> Any:
        return sum(row[column] or 0 for row in got.counted() if row["wire"] == wire)

    def calls(wire: str, *states: str) -> int:
        return sum(row["wire"] == wire and row["state"] in states for row in got.calls)

    session, rollout = "claude-code", "codex-rollout"
    windows = [row for row in got.windows if row["wire"] == rollout]
    primary = [row["peak_used_percent"] for row in windows if row["window_minutes"] == 300]
    return {
        "claude": {
            "input": of(session, "uncached_input_tokens"),
            "output": of(session, "output_tokens"),
            "cache_create": of(session, "cache_write_tokens"),
            "cache_read": of(session, "cache_read_tokens"),
            "messages": of(session, "requests"),
            "tool_uses": of(session, "tool_calls"),
            "unfinished": calls(session, "unfinished"),
            "denied": of(session, "denied_calls"),
        },
        "codex": {
            "input": of(rollout, "input_tokens"),
            "cached": of(rollout, "cache_read_tokens"),
            "output": of(rollout, "output_tokens"),
            "reasoning": of(rollout, "reasoning_tokens"),
            "turns": of(rollout, "requests"),
            "tool_calls": of(rollout, "tool_calls"),
            "unfinished": calls(rollout, "unfinished"),
            "limit_windows": len(windows),
            "primary_peak_percent": max(primary, default=None),
        },
    }
