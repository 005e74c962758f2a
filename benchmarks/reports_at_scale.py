"""What reports cost over a large lake, and what compaction makes of it: whole processes, warm page cache.

    python benchmarks/reports_at_scale.py LAKE [--copies 1 7 20] [--keep FOLDER] [--compact]

LAKE is any lake (an ingest of a corpus of ../shared's shape, or your own). For each of the COPIES a lake is made that
holds its rows that many times: sources and runs get other names, times move by two days per copy, and payloads are cut
to 60 bytes, since no report of the table reads them. So sizes on disk are those of LAKE alone, the first table. Each
report then runs three times: over a version nobody has asked yet (it computes, and keeps what reports build on),
over one that somebody has, and once more for the least of the two. CPU tells more than wall does on a busy machine.
`--compact` does the same over the lakes after `runlake compact --no-facts`, and over those after `runlake compact`,
whose first reports read what it kept; the commands stand in the table, too. KEEP is where the lakes are made and stay.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analytics import lakefiles  # noqa: E402 (this checkout, whatever is installed)
from analytics.lake import Store  # noqa: E402
from analytics.schema import Record, arrow_schema  # noqa: E402
from analytics.vacuum import FACTS_FOLDER  # noqa: E402

REPORTS = ("overview", "token_usage", "denials", "unfinished", "rate_limits", "coverage", "runs")
NAMES = frozenset({"source_id", "run_id", "parent_run_id", "copy_of", "digest", "path"})
STEP = pa.scalar(2 * 86_400_000_000, pa.duration("us"))
PAYLOAD_BYTES = 60


def changed(field: pa.Field, column: pa.Array, copy: int, record: Record) -> pa.Array:
    """A column of a copy: its names and times are its own."""
    if field.name in NAMES and (field.name != "path" or record == "source"):
        return pc.binary_join_element_wise(column, str(copy), "~")
    if pa.types.is_timestamp(field.type):
        return pc.add(column, pa.scalar(STEP.value * copy, STEP.type))
    if field.name == "payload":
        return pc.binary_slice(column.cast(pa.binary()), 0, PAYLOAD_BYTES)
    if field.name == "runs":
        parts = [changed(part, column.values.field(i), copy, record) for i, part in enumerate(column.values.type)]
        return pa.ListArray.from_arrays(
            column.offsets, pa.StructArray.from_arrays(parts, fields=list(column.values.type))
        )
    return column


def write_copy(source: str, target: str, record: Record, copy: int) -> None:
    """One file of the lake as one file of the copy, in the same row groups."""
    schema = arrow_schema(record)
    with pq.ParquetFile(source) as reader, lakefiles.parquet_writer(Path(target), record, level=1) as writer:
        for group in range(reader.num_row_groups):
            table = reader.read_row_group(group)
            columns = [changed(f, pa.concat_arrays(table[f.name].chunks), copy, record) for f in schema]
            made = [pa.array(c).cast(f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_table(pa.table(made, schema=schema), row_group_size=1 << 30)


def grow(lake: Path, target: Path, copies: int) -> Store:
    """A lake that holds the rows of another so many times."""
    old, new = Store.open(lake), Store.open(target, create=True)
    files = [file for file in old.all_files if file.wire != lakefiles.EMPTY_WIRE]
    ingest_id = lakefiles.new_ingest_id()
    made = []
    with new.writing(), ProcessPoolExecutor(2) as pool:
        waiting = []
        for copy in range(copies):
            for file in files:
                made.append(lakefiles.data_path(file.record, file.wire, ingest_id, len(made)))
                names = (str(old.root / file.relative), str(new.root / made[-1]))
                waiting.append(pool.submit(write_copy, *names, file.record, copy))
        for one in waiting:
            one.result()
    described = [lakefiles.describe(new.root, relative) for relative in made]
    return new.commit(described, [], ingest_id=ingest_id, note=f"{copies} copies")


def run(*arguments: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of one command."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    began = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-m", "analytics", *arguments], environment, file_actions=null
    )
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with status {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(lake: Path, told: str, *, is_kept: bool = False) -> None:
    """The rows of the table for one lake. `is_kept`: what reports build on is there before the first of them."""
    for report in REPORTS:
        if not is_kept:
            shutil.rmtree(lake / FACTS_FOLDER, ignore_errors=True)
        first, *later = [run("report", report, "--lake", str(lake)) for _ in range(3)]
        tell(lake, told, report, first, tuple(min(figures) for figures in zip(*later, strict=True)))


def tell(lake: Path, told: str, what: str, *figures: tuple[float, ...]) -> None:
    """One row of the table."""
    events, _ = Store.open(lake).extent("event")
    cells = [f"{wall:.2f} | {cpu:.2f} | {size:.0f}" for wall, cpu, size in figures]
    print(f"| {told} | {events:,} | {what} | {' | '.join(cells + ['– | – | –'] * (2 - len(cells)))} |", flush=True)


def measure_compacted(lake: Path, folder: Path) -> None:
    """The same after the command, once without and once with what reports build on kept by it."""
    for told, switches in (("compacted", ["--no-facts"]), ("compacted, facts kept", [])):
        compacted = folder / "compacted"
        shutil.copytree(lake, compacted, ignore=shutil.ignore_patterns(FACTS_FOLDER))
        tell(compacted, told, " ".join(["`compact`", *switches]), run("compact", "--lake", str(compacted), *switches))
        measure(compacted, told, is_kept=not switches)
        shutil.rmtree(compacted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 7])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--compact", action="store_true")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="runlake-scale-"))
    print(f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}\n")
    try:
        compacted = folder / "compacted"
        shutil.copytree(options.lake, compacted, dirs_exist_ok=True)
        store, saved = Store.open(compacted).compact()
        print(f"compaction of {options.lake.name}: {saved.files_before} files in {saved.bytes_before:,} bytes")
        print(f"become {saved.files_after} in {saved.bytes_after:,} (version {store.version})\n")
        shutil.rmtree(compacted)
        heads = ("lake", "events", "report", "first: wall s", "CPU s", "MiB", "later: wall s", "CPU s", "MiB")
        print(f"| {' | '.join(heads)} |\n| --- | ---: | --- |{' ---: |' * 6}")
        for copies in options.copies:
            lake = folder / f"copies-{copies}"
            if not lake.exists():
                grow(options.lake, lake, copies)
            measure(lake, "as ingested")
            if options.compact:
                measure_compacted(lake, folder)
    finally:
        if options.keep is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
