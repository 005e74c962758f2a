"""What a command costs before and beside its work: whole processes, over a small lake and over one of many small files.

    python benchmarks/startup.py [--files 5000] [--listing 0] [--repeat 7]

The small lake is that of data/corpus. The other one has FILES files of a few lines, each a run of its own, which are
then ingested once more: unchanged, and with a line appended to one of them. `--listing N` adds a folder of N files that
are no streams, for what it costs to list them. Floors stand first: what Python and the libraries take to load. Wall and
CPU are of the whole process tree, the least and the median of REPEAT runs; ratios tell more than seconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "data" / "corpus"
FLOORS = ("", "import typer", "import duckdb", "import pyarrow.parquet", "import polars", "import deltalake")
LINES = 12


def run(command: list[str], *, where: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one process and its children."""
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    null = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    before = Path.cwd()
    os.chdir(where)
    try:
        pid = os.posix_spawn(command[0], command, environment, file_actions=null)
    finally:
        os.chdir(before)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def write_streams(folder: Path, files: int) -> list[Path]:
    """Files of a few lines each; each tells of a run of its own."""
    samples = sorted((CORPUS / "metaharness").rglob("*.jsonl"), key=lambda path: (path.stat().st_size, path.name))
    texts = [b"".join(path.read_bytes().splitlines(keepends=True)[:LINES]) for path in samples[:LINES]]
    made = []
    for number in range(files):
        text = texts[number % len(texts)]
        name = json.dumps(json.loads(text.splitlines()[0])["run"]).encode()
        path = folder / f"{number // 100:04d}" / f"{number:06d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.replace(name, name[:-1] + b"/%d" % number + b'"'))
        made.append(path)
    return made


def measure(
    name: str, command: list[str], *, where: Path, repeat: int, before: Callable[[], object] | None = None
) -> None:
    """One row of the table. `before` runs before each repetition, outside of what is measured."""
    walls, cpus = [], []
    for _ in range(repeat):
        if before is not None:
            before()
        wall, cpu = run(command, where=where)
        walls.append(wall)
        cpus.append(cpu)
    print(f"| {name} | {min(walls):.3f} | {statistics.median(walls):.3f} | {min(cpus):.3f} |", flush=True)


def measure_lake(lake: str, sources: list[str], *, where: Path, repeat: int, runlake: list[str]) -> None:
    """The commands that read a lake, and an ingest that finds nothing new."""
    commands = (
        ["report", "token_usage"], ["report"], ["runs"], ["status"], ["report", "overview", "--format", "json"],
        ["sql", "SELECT count(*) FROM events"], ["check"],
    )  # fmt: skip
    for command in commands:
        told = " ".join(command)
        measure(f"runlake {told} ({lake})", [*runlake, *command, "--lake", lake], where=where, repeat=repeat)
    ingest = [*runlake, "ingest", *sources, "--lake", lake]
    measure(f"runlake ingest, nothing new ({lake})", ingest, where=where, repeat=repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--listing", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    repeat, python = options.repeat, sys.executable
    runlake = [python, "-m", "analytics"]
    print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}\n")
    print("| process | wall s, least | wall s, median | CPU s |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        for floor in FLOORS:
            measure(f"python -c '{floor}'", [python, "-c", floor], where=where, repeat=repeat)
        for command in ("--help", "version", "reports"):
            measure(f"runlake {command}", [*runlake, command], where=where, repeat=repeat)
        run([*runlake, "ingest", str(CORPUS), "--lake", "corpus"], where=where)
        measure_lake("corpus", [str(CORPUS)], where=where, repeat=repeat, runlake=runlake)

        streams = write_streams(where / "many", options.files)
        lake = f"{options.files} files"
        run([*runlake, "ingest", "many", "--lake", lake], where=where)
        measure_lake(lake, ["many"], where=where, repeat=repeat, runlake=runlake)
        measure(
            f"runlake ingest, one line more ({lake})", [*runlake, "ingest", "many", "--lake", lake], where=where,
            repeat=repeat, before=lambda: _append(streams[0]),
        )  # fmt: skip
        if options.listing:
            for number in range(options.listing):
                path = where / "listing" / f"{number // 1000:04d}" / f"{number:06d}.bin"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            command = [*runlake, "ingest", "many", "listing", "--lake", lake]
            measure(f"the same, nothing new, and {options.listing} files listed", command, where=where, repeat=repeat)


def _append(path: Path) -> None:
    """One more event of the run in the file."""
    last = json.loads(path.read_bytes().splitlines()[-1])
    last["seq"] += 1
    with path.open("ab") as file:
        file.write(json.dumps(last, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
