"""Fake homes of coding agents: the traps corpus, its rewritten variants, and the native cases laid out as homes.

A variant changes how the corpus is written or where its files lie, never what it says, so its truth stays the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
GENERATOR = FIXTURES / "cases" / "gen_native_traps.py"
CASES = FIXTURES / "native"
PROJECT = Path(".claude/projects/-home-u-demo")
ROLLOUTS = Path(".codex/sessions/2026/11/20")
# what a home has; the captures of stdout lie nowhere in particular, and no peer looks for them
SESSION_WIRES = ("claude-code", "codex-rollout")


def make_traps(home: Path, sessions: int, calls: int) -> dict[str, dict[str, float]]:
    """Write the traps corpus (in a process of its own: it needs memory that is none of ours) and return its truth."""
    command = [sys.executable, str(GENERATOR), str(home), str(sessions), str(calls)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    truth: dict[str, dict[str, float]] = json.loads((home / "truth.json").read_text())
    return truth


def transcripts(home: Path) -> list[Path]:
    """The files the tools are meant to read."""
    return sorted([*(home / ".claude").rglob("*.jsonl"), *(home / ".codex").rglob("*.jsonl*")])


def _rewrite(home: Path, encode: Callable[[Any], str]) -> None:
    for file in transcripts(home):
        lines = []
        for line in file.read_text().splitlines(keepends=True):
            try:
                lines.append(encode(json.loads(line)) + "\n")
            except ValueError:  # the cut last line stays as it is
                lines.append(line)
        file.write_text("".join(lines))


def _plain(_home: Path) -> None:
    """Nothing to do."""


def _spaced(home: Path) -> None:
    _rewrite(home, json.dumps)


def _sorted_keys(home: Path) -> None:
    _rewrite(home, lambda row: json.dumps(row, separators=(",", ":"), sort_keys=True))


def _renamed(home: Path) -> None:
    for folder in (home / PROJECT, home / ROLLOUTS):
        for number, file in enumerate(sorted(folder.glob("*.jsonl"))):
            file.rename(folder / f"export-{number}.jsonl")


def _copied(home: Path) -> None:
    shutil.copytree(home / PROJECT, home / PROJECT.parent / "-home-u-backup")
    shutil.copytree(home / ROLLOUTS, home / ".codex/archived_sessions")


def _joined(home: Path) -> None:
    files = sorted((home / PROJECT).glob("*.jsonl"))
    texts = [file.read_text() for file in files]
    for file in files[1:]:
        file.unlink()
    files[0].write_text("".join(text if text.endswith("\n") else text + "\n" for text in texts))


def _split(home: Path) -> None:
    for file in sorted((home / PROJECT).glob("*.jsonl")):
        lines = file.read_text().splitlines(keepends=True)
        middle = len(lines) // 2
        file.write_text("".join(lines[:middle]))
        file.with_name(f"{file.stem}-later.jsonl").write_text("".join(lines[middle:]))


def _glued(home: Path) -> None:
    """Every seventh newline between records of a session file is lost."""
    for file in sorted((home / PROJECT).glob("*.jsonl")):
        lines = file.read_text().splitlines(keepends=True)
        text = (
            line.removesuffix("\n") if at % 7 == 3 and at + 2 < len(lines) else line for at, line in enumerate(lines)
        )
        file.write_text("".join(text))


def _compressed(home: Path) -> None:
    for file in sorted((home / ROLLOUTS).glob("*.jsonl")):
        packed = pa.compress(file.read_bytes(), codec="zstd", asbytes=True)
        file.with_name(file.name + ".zst").write_bytes(packed)
        file.unlink()


@dataclass(frozen=True, slots=True)
class Variant:
    """The same records, written otherwise."""

    name: str
    what: str
    change: Callable[[Path], None]


VARIANTS = (
    Variant("plain", "as the generator writes it: compact JSON", _plain),
    Variant("spaced", "JSON with a space after each colon and comma", _spaced),
    Variant("sorted", "keys in alphabetical order", _sorted_keys),
    Variant("renamed", "session files and rollouts under names without an id", _renamed),
    Variant("copied", "every session file and rollout a second time (a backup folder, archived_sessions)", _copied),
    Variant("joined", "all session files in one", _joined),
    Variant("split", "each session file in two", _split),
    Variant("glued", "every seventh newline of the session files lost: two records on one line", _glued),
    Variant("zst", "rollouts compressed with zstd", _compressed),
)


def cases(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """The native cases that a home can hold: name, home, right answer.

    Checkpoint copies lie outside a home in real life; here each goes into a project folder, so that all tools see them.
    """
    answers: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())
    for name, answer in answers.items():
        if answer["format"] not in SESSION_WIRES:
            continue
        root = folder / name
        for file in answer["files"]:
            inside = Path(file).relative_to(name)
            place = Path(".codex" if answer["format"] == "codex-rollout" else ".claude")
            if inside.parts[0] == "checkpoints":
                inside = Path("projects", "-".join(("", *inside.parts[:-1])), inside.name)
            target = root / place / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CASES / file, target)
        for part in (".claude/projects", ".codex/sessions"):
            os.makedirs(root / part, exist_ok=True)
        yield name, root, answer
