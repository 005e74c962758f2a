"""What the worker costs on a corpus without start-up, beside the floor of the job on the same bytes.

usage: worker_vs_floor.py PATH… [--repeat 2]

The floor: the lines alone as one string column to Parquet at zstd-1, and one decode of each line that takes a single
field out of it. Both in this process, one after the other; CPU seconds of the process, the best of the repeats.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.worker import ReadTask, Settings, work

BATCH = 170  # files that one call of the worker gets
BLOCK_BYTES = 64 << 20


class Envelope(msgspec.Struct):
    """One field; the rest is skipped."""

    type: str | None = None


def measured(job: Callable[[Path], None], repeat: int) -> float:
    """CPU seconds of the best run; each gets a new folder."""
    best = float("inf")
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.process_time()
            job(Path(folder))
            best = min(best, time.process_time() - begin)
    return best


def floor(files: list[Path], folder: Path) -> None:
    """Payload written, one field decoded."""
    decoder = msgspec.json.Decoder(Envelope)
    schema = pa.schema([("payload", pa.string())])
    with pq.ParquetWriter(folder / "payload.parquet", schema, compression="zstd", compression_level=1,
                          use_dictionary=False, write_statistics=False) as writer:  # fmt: skip
        held: list[bytes] = []
        for place, path in enumerate(files, 1):
            data = path.read_bytes()
            held.append(data[: data.rfind(b"\n") + 1])
            if sum(map(len, held)) < BLOCK_BYTES and place < len(files):
                continue
            block = b"".join(held)
            held = []
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            offsets = np.zeros(len(ends) + 1, np.int32)
            offsets[1:] = ends - np.arange(len(ends))
            text = pa.StringArray.from_buffers(
                len(ends), pa.py_buffer(offsets), pa.py_buffer(block.replace(b"\n", b""))
            )
            writer.write_table(pa.table([text], schema=schema))
            decoder.decode_lines(block)


def read(files: list[Path], folder: Path) -> None:
    """All files through the worker, as an ingest with one job has them."""
    tasks = [ReadTask(str(path), hashlib.sha256(str(path).encode()).hexdigest()[:16]) for path in files]
    for number, first in enumerate(range(0, len(tasks), BATCH)):
        work(tasks[first : first + BATCH], Settings(str(folder), "bench"), number, lambda _octets, _lines: None)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    for path in args.paths:
        files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files)
        lines = sum(file.read_bytes().count(b"\n") for file in files)
        ours = measured(partial(read, files), args.repeat)
        least = measured(partial(floor, files), args.repeat)
        print(
            f"{path.name}: {size / 1e6:.0f} MB, {size / lines:.0f} bytes a line; worker {ours:.2f} CPU s, "
            f"{size / 1e6 / ours:.0f} MB/s, {ours / lines * 1e6:.1f} µs a line; floor {least:.2f} CPU s, "
            f"{size / 1e6 / least:.0f} MB/s; ratio {ours / least:.1f}"
        )


if __name__ == "__main__":
    main()
