"""CPU of `runlake ingest` beside DuckDB's one-line COPY on files of one's own, measured in one run.

    python benchmarks/ingest_vs_duckdb.py CORPUS [--repeat 3] [--jobs 1] [--out FILE.json]

CORPUS is any folder of streams (`benchmarks/run` measures made-up ones). Only `.jsonl` files whose every line is a
whole JSON object are taken: the one-liner dies on a bad line. Each measurement is a process of its own, start-up
included; of several repetitions the least counts. `duckdb` runs with the same number of threads as runlake has jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import msgspec
from measuring import RUNLAKE, Measured, best_of, bytes_below, run_process

RIVALS = Path(__file__).resolve().parent / "rivals.py"


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


def measure(files: Path, work: Path, jobs: int, repeat: int) -> tuple[dict[str, Measured], dict[str, int]]:
    """Both programs in turn, `repeat` times: what each cost, and how many bytes it wrote."""
    lake, copy = work / "lake", work / "copy.parquet"
    written: dict[str, int] = {}

    def ours() -> Measured:
        shutil.rmtree(lake, ignore_errors=True)
        made = run_process([*RUNLAKE, "ingest", files, "--lake", lake, "--jobs", jobs])
        written["runlake ingest"] = bytes_below(lake)
        return made

    def theirs() -> Measured:
        copy.unlink(missing_ok=True)
        made = run_process([sys.executable, RIVALS, "duckdb", files, copy, "--threads", jobs])
        written["duckdb one-liner"] = bytes_below(copy)
        return made

    return best_of(repeat, {"runlake ingest": ours, "duckdb one-liner": theirs}), written


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
        found, written = measure(files, Path(scratch), given.jobs, given.repeat)
    print(f"{count} files, {size / 1e6:.1f} MB; duckdb {version('duckdb')}, Python {platform.python_version()}")
    print(f"jobs {given.jobs}, best of {given.repeat}\n")
    print("| program | CPU s | wall s | MB/s per core | peak MiB | output MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, made in found.items():
        print(
            f"| {name} | {made.cpu_seconds:.2f} | {made.wall_seconds:.2f} | {size / 1e6 / made.cpu_seconds:.0f} "
            f"| {made.peak_mib:.0f} | {written[name] / 1e6:.1f} |"
        )
    ratio = found["runlake ingest"].cpu_seconds / found["duckdb one-liner"].cpu_seconds
    print(f"\nrunlake uses {ratio:.2f} of the one-liner's CPU")
    if given.out:
        measurements = [{"name": name, "output_bytes": written[name]} | asdict(made) for name, made in found.items()]
        figures = {"bytes": size, "files": count, "jobs": given.jobs, "ratio": ratio, "measurements": measurements}
        given.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
