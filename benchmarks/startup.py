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
from collections.abc import Callable, Sequence
from pathlib import Path

from measuring import ROOT, RUNLAKE, run_process

CORPUS = ROOT / "data" / "corpus"
FLOORS = ("", "import typer", "import duckdb", "import pyarrow.parquet", "import polars", "import deltalake")
LINES = 12


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
    name: str, command: Sequence[str | Path], *, repeat: int, before: Callable[[], object] | None = None
) -> None:
    """One row of the table. `before` runs before each repetition, outside of what is measured."""
    made = []
    for _ in range(repeat):
        if before is not None:
            before()
        made.append(run_process(command))
    walls, cpus = [one.wall_seconds for one in made], [one.cpu_seconds for one in made]
    print(f"| {name} | {min(walls):.3f} | {statistics.median(walls):.3f} | {min(cpus):.3f} |", flush=True)


def measure_lake(lake: Path, source: Path, *, repeat: int) -> None:
    """The commands that read a lake, and an ingest that finds nothing new."""
    commands = (
        ["report", "token_usage"], ["report"], ["runs"], ["status"], ["report", "overview", "--format", "json"],
        ["sql", "SELECT count(*) FROM events"], ["check"],
    )  # fmt: skip
    for command in commands:
        told = " ".join(command)
        measure(f"runlake {told} ({lake.name})", [*RUNLAKE, *command, "--lake", lake], repeat=repeat)
    ingest = [*RUNLAKE, "ingest", source, "--lake", lake]
    measure(f"runlake ingest, nothing new ({lake.name})", ingest, repeat=repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--listing", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    repeat = options.repeat
    print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}\n")
    print("| process | wall s, least | wall s, median | CPU s |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        for floor in FLOORS:
            measure(f"python -c '{floor}'", [sys.executable, "-c", floor], repeat=repeat)
        for command in ("--help", "version", "reports"):
            measure(f"runlake {command}", [*RUNLAKE, command], repeat=repeat)
        small = where / "corpus"
        run_process([*RUNLAKE, "ingest", CORPUS, "--lake", small])
        measure_lake(small, CORPUS, repeat=repeat)

        many, lake = where / "many", where / f"{options.files} files"
        streams = write_streams(many, options.files)
        ingest = [*RUNLAKE, "ingest", many, "--lake", lake]
        run_process(ingest)
        measure_lake(lake, many, repeat=repeat)
        measure(
            f"runlake ingest, one line more ({lake.name})", ingest, repeat=repeat, before=lambda: _append(streams[0])
        )
        if options.listing:
            for number in range(options.listing):
                path = where / "listing" / f"{number // 1000:04d}" / f"{number:06d}.bin"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            name = f"the same, nothing new, and {options.listing} files listed"
            measure(name, [*ingest, where / "listing"], repeat=repeat)


def _append(path: Path) -> None:
    """One more event of the run in the file."""
    last = json.loads(path.read_bytes().splitlines()[-1])
    last["seq"] += 1
    with path.open("ab") as file:
        file.write(json.dumps(last, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
