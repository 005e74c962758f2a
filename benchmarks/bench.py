"""One run of measurements: how large it is, where it works, and what every part of it uses."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import RUNLAKE, Measured, best_of, run_process
from results import Row

HERE = Path(__file__).resolve().parent
RIVALS = ("duckdb", "polars", "floor")
WIRES = (
    "metaharness", "harness-lab", "platonic-core", "claude-code", "claude-stream", "codex-rollout", "codex-exec",
)  # fmt: skip
MIXED = "all wires mixed"


@dataclass(slots=True)
class Sizes:
    """How much is made and measured."""

    wire_mb: float = 100
    line_bytes: int = 1_000
    repeat: int = 3
    bad_mb: float = 350
    small_files: int = 50_000
    small_file_kb: float = 20
    long_lines_mb: float = 300
    unchanged_files: int = 5_000
    listed_files: int = 100_000
    report_repeat: int = 7
    big_gb: float = 5
    scale_events: tuple[int, ...] = (1_000_000, 3_000_000, 10_000_000)
    scale_slice_mb: float = 500


QUICK = Sizes(
    wire_mb=0.3, repeat=1, bad_mb=0.6, small_files=40, long_lines_mb=2, unchanged_files=40, listed_files=200,
    report_repeat=1, big_gb=0.002, scale_events=(500, 1_000), scale_slice_mb=0.6,
)  # fmt: skip


@dataclass(slots=True)
class Bench:
    """One run of measurements: where it works, and what it found."""

    work: Path
    sizes: Sizes
    wires: tuple[str, ...] = WIRES
    keep: Path | None = None  # where the lake of the part scale is to stay
    ingest: list[Row] = field(default_factory=list)
    measures: dict[str, Row] = field(default_factory=dict)
    scale: list[Row] = field(default_factory=list)
    _startup: dict[str, float] = field(default_factory=dict)

    def tell(self, name: str, value: float, how: str) -> None:
        """A measure by the name it has in the table of what must hold."""
        self.measures[name] = {"value": value, "how": how}

    def corpus(self, name: str, *options: Any) -> tuple[Path, list[Row]]:
        """A corpus made by corpora.py, and what it says of each wire."""
        folder = self.work / name
        command = [sys.executable, HERE / "corpora.py", folder, "--line-bytes", self.sizes.line_bytes, *options]
        if "--wire" not in options:
            command += [part for wire in self.wires for part in ("--wire", wire)]
        made = run_process([*command, "--jobs", 2])
        return folder, [json.loads(line) for line in made.stdout.splitlines()]

    def runlake(self, folder: Path, lake: Path, *, jobs: int = 1, new: bool = True) -> Measured:
        """An ingest, into a new lake unless told."""
        if new:
            shutil.rmtree(lake, ignore_errors=True)
        return run_process([*RUNLAKE, "ingest", folder, "--lake", lake, "--jobs", jobs, "--format", "json"])

    def rival(self, program: str, folder: Path, wire: str | None, *, may_fail: bool = False) -> Measured:
        """One of rivals.py; its output stays at `rival_output` until the next one."""
        self.rival_output.unlink(missing_ok=True)
        options = ["--wire", wire] if wire else []
        return run_process(
            [sys.executable, HERE / "rivals.py", program, folder, self.rival_output, *options],
            environment={"POLARS_MAX_THREADS": "1"}, may_fail=may_fail,
        )  # fmt: skip

    @property
    def rival_output(self) -> Path:
        """What the last rival wrote."""
        return self.work / "rival.parquet"

    def startup(self, program: str) -> float:
        """CPU seconds of the same command over one file of a few lines."""
        if not self._startup:
            wire = self.wires[0]
            folder, _ = self.corpus("tiny", "--wire", wire, "--megabytes", 0.002, "--files", 1)
            programs: dict[str, Callable[[], Measured]] = {
                name: lambda name=name: self.rival(name, folder, wire)  # type: ignore[misc]
                for name in RIVALS
            }
            programs["runlake"] = lambda: self.runlake(folder, self.work / "tiny-lake")
            programs["runlake, 2 workers"] = lambda: self.runlake(folder, self.work / "tiny-lake", jobs=2)
            found = best_of(max(self.sizes.repeat, 1), programs)
            self._startup = {name: made.cpu_seconds for name, made in found.items()}
        return self._startup[program]

    def row(self, corpus: str, program: str, made: Measured, wires: list[Row], out_bytes: int, events: int) -> Row:
        """A row of the table of ingests."""
        return {
            "corpus": corpus, "program": program, "wall": made.wall_seconds, "cpu": made.cpu_seconds,
            "net_cpu": made.cpu_seconds - self.startup(program), "peak_mib": made.peak_mib,
            "bytes": sum(wire["bytes"] for wire in wires), "lines": sum(wire["lines"] for wire in wires),
            "events": events, "out_bytes": out_bytes,
        }  # fmt: skip


def status(lake: Path) -> Row:
    """What `runlake status` says of a lake: files and bytes are those of its last version."""
    (told,) = json.loads(run_process([*RUNLAKE, "status", "--lake", lake, "--format", "json"]).stdout)
    return dict(told)


def events_of(made: Measured) -> int:
    """How many events an ingest says it wrote; no line of a clean corpus may be refused."""
    (told,) = json.loads(made.stdout)
    if told["refusals"]:
        raise SystemExit(f"a clean corpus had lines refused: {told['refusals_by_reason']}")
    return int(told["events"])
