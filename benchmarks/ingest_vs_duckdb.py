"""CPU of `runlake ingest` beside DuckDB's one-line COPY, on the same files, measured in one run.

    python benchmarks/ingest_vs_duckdb.py CORPUS [--repeat 3] [--jobs 1] [--out FILE.json]

CORPUS is any folder of streams (the project's large one has 3,000 runs and 1.5 GB). Only `.jsonl` files whose every
line is a whole JSON object are taken: the one-liner dies on a bad line. Each measurement is a process of its own,
whose user and system time (its children's included) and peak memory the kernel reports when it ends; of several
repetitions the one with the least CPU counts. `duckdb` runs with the same number of threads as runlake has jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

ONE_LINER = (
    "COPY (SELECT * FROM read_json('{files}', format = 'newline_delimited', union_by_name = true, "
    "ignore_errors = false)) TO '{out}' (FORMAT parquet, COMPRESSION zstd)"
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one process cost. Peak memory is that of the largest process of its tree."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    output_bytes: int

    def megabytes_per_core_second(self, size: int) -> float:
        """Input read per second of CPU."""
        return size / 1e6 / self.cpu_seconds


def is_clean(data: bytes) -> bool:
    """Whether every line is one JSON object, in valid UTF-8, with its newline."""
    if not data.endswith(b"\n"):
        return False
    lines = data.split(b"\n")[:-1]
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        return False
    try:
        data.decode()
        return len(msgspec.json.Decoder(msgspec.Raw).decode_lines(data)) == len(lines)
    except (UnicodeDecodeError, msgspec.DecodeError):
        return False


def choose(corpus: Path, folder: Path) -> int:
    """Link the clean files into one folder; returns their bytes."""
    size = 0
    for number, file in enumerate(sorted(corpus.rglob("*.jsonl"))):
        if file.name.startswith("truth") or not is_clean(data := file.read_bytes()):
            continue
        size += len(data)
        target = folder / f"{number:06d}.jsonl"
        try:
            os.link(file, target)
        except OSError:  # another file system
            shutil.copyfile(file, target)
    return size


def run(name: str, command: list[str], output: Path) -> Measurement:
    """Run one process to its end and ask the kernel what it cost."""
    began = time.perf_counter()
    pid = os.posix_spawn(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"{name} ended with status {os.waitstatus_to_exitcode(status)}")
    files = [output] if output.is_file() else [file for file in output.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Measurement(name, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size)


def measure(files: Path, work: Path, jobs: int, repeat: int) -> list[Measurement]:
    """Both programs in turn, `repeat` times; the repetition with the least CPU of each."""
    best: dict[str, Measurement] = {}
    sql = f"SET threads = {jobs}; " + ONE_LINER.format(files=files / "*.jsonl", out=work / "copy.parquet")
    plans = {
        "runlake ingest": (
            [
                sys.executable,
                "-m",
                "analytics",
                "ingest",
                str(files),
                "--lake",
                str(work / "lake"),
                "--jobs",
                str(jobs),
            ],
            work / "lake",
        ),
        "duckdb one-liner": ([sys.executable, "-c", f"import duckdb; duckdb.sql({sql!r})"], work / "copy.parquet"),
    }
    for _ in range(repeat):
        for name, (command, output) in plans.items():
            shutil.rmtree(work / "lake", ignore_errors=True)
            (work / "copy.parquet").unlink(missing_ok=True)
            made = run(name, command, output)
            if name not in best or made.cpu_seconds < best[name].cpu_seconds:
                best[name] = made
    return list(best.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runlake-bench-") as scratch:
        files = Path(scratch, "files")
        files.mkdir()
        # in a process of its own: a child's peak memory starts at what its parent once used
        with ProcessPoolExecutor(1) as apart:
            size = apart.submit(choose, given.corpus, files).result()
        count = len(list(files.iterdir()))
        if not count:
            raise SystemExit(f"no clean .jsonl file under {given.corpus}")
        found = measure(files, Path(scratch), given.jobs, given.repeat)
    print(f"{count} files, {size / 1e6:.1f} MB; duckdb {version('duckdb')}, Python {platform.python_version()}")
    print(f"jobs {given.jobs}, best of {given.repeat}\n")
    print("| program | CPU s | wall s | MB/s per core | peak MiB | output MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for made in found:
        rate = made.megabytes_per_core_second(size)
        print(
            f"| {made.name} | {made.cpu_seconds:.2f} | {made.wall_seconds:.2f} | {rate:.0f} "
            f"| {made.peak_mib:.0f} | {made.output_bytes / 1e6:.1f} |"
        )
    ratio = found[0].cpu_seconds / found[1].cpu_seconds
    print(f"\nrunlake uses {ratio:.2f} of the one-liner's CPU")
    if given.out:
        figures = {"bytes": size, "files": count, "jobs": given.jobs, "ratio": ratio}
        given.out.write_text(json.dumps(figures | {"measurements": [asdict(made) for made in found]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
