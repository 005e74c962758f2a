"""What the worker costs on a corpus without start-up, beside the floor of the job on the same bytes.

usage: worker_vs_floor.py PATH… [--repeat 2]

The floor: the lines alone as one string column to Parquet at zstd-1, and one decode of each line into its
wire's envelope. Both in this process, in turn; CPU seconds of the process, the best of the repeats.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from inprocess import cpu_of, files_at, through_worker, wire_at
from rivals import floor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    for path in args.paths:
        files = files_at([path])
        size = sum(file.stat().st_size for file in files)
        lines = sum(file.read_bytes().count(b"\n") for file in files)
        ours = least = float("inf")
        for _ in range(args.repeat):
            ours = min(ours, cpu_of(lambda folder: through_worker(files, folder)))  # noqa: B023 - called at once
            least = min(least, cpu_of(lambda folder: floor(files, folder / "floor.parquet", wire_at)))  # noqa: B023
        print(
            f"{path.name}: {size / 1e6:.0f} MB, {size / lines:.0f} bytes a line; worker {ours:.2f} CPU s, "
            f"{size / 1e6 / ours:.0f} MB/s, {ours / lines * 1e6:.1f} µs a line; floor {least:.2f} CPU s, "
            f"{size / 1e6 / least:.0f} MB/s; ratio {ours / least:.1f}"
        )


if __name__ == "__main__":
    main()
