"""What a Delta log costs as a lake gets more files: opening it, listing its files, one more commit, a checkpoint.

    python benchmarks/metadata_at_scale.py [--files 10000 100000 1000000] [--per-commit 2000]

Only the log is real: its actions are those that runlake writes (the same partitions, the same statistics), but no
Parquet file stands behind them. So this is the cost of the metadata alone, which no engine can go below.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, create_table_with_add_actions

from analytics.lakefiles import data_path
from analytics.schema import table_schema

WIRES = ("metaharness", "harness-lab", "platonic-core", "claude-code", "claude-stream", "codex-rollout", "codex-exec")
FILE_BYTES, FILE_ROWS = 64 << 20, 250_000


def action(number: int) -> AddAction:
    """The entry of one event file, as long as those that `runlake ingest` writes."""
    wire = WIRES[number % len(WIRES)]
    low, high = f"{number:016x}", f"{number + 1:016x}"
    bounds = {"source_id": low, "run_id": f"night-{number:08d}/task/variant/r0", "ts": "2026-11-30T00:00:00.000000Z"}
    stats = {"numRecords": FILE_ROWS, "minValues": bounds, "maxValues": bounds | {"source_id": high}, "nullCount": {}}
    path = data_path("event", wire, "20261130T000000000000Z-aaaaaa", number)
    return AddAction(path, FILE_BYTES, {"record": "event", "wire": wire}, 0, True, json.dumps(stats))  # noqa: FBT003


def timed(work: object) -> tuple[float, object]:
    """Wall seconds and what came out."""
    began = time.perf_counter()
    result = work()  # type: ignore[operator]
    return time.perf_counter() - began, result


def grow(root: Path, start: int, stop: int, per_commit: int) -> None:
    """Commits from `start` to `stop` files; delta-rs writes a checkpoint every hundred commits."""
    schema = Schema.from_arrow(table_schema())
    for first in range(start, stop, per_commit):
        actions = [action(number) for number in range(first, min(first + per_commit, stop))]
        facts = CommitProperties(app_transactions=[Transaction(f"ingest-{first}", 1)])
        if first == 0:
            create_table_with_add_actions(str(root), schema, actions, partition_by=["record", "wire"])
        else:
            DeltaTable(str(root)).create_write_transaction(
                actions, "append", schema, ["record", "wire"], commit_properties=facts
            )


def main() -> None:
    """Grows one log and prints a row per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--per-commit", type=int, default=2_000)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="runlake-log-"))
    try:
        print("| files | log MB | open s | list files s | one more commit s | checkpoint s | peak MiB |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        done = 0
        for files in given.files:
            grow(root, done, files, given.per_commit)
            checkpoint, _ = timed(DeltaTable(str(root)).create_checkpoint)
            opened, table = timed(lambda: DeltaTable(str(root)))
            listed, actions = timed(lambda table=table: pa.table(table.get_add_actions(flatten=True)))  # type: ignore[attr-defined]
            if actions.num_rows != files:  # type: ignore[attr-defined]
                raise SystemExit(f"the log names {actions.num_rows} files, not {files}")  # type: ignore[attr-defined]
            commit, _ = timed(lambda files=files: grow(root, files, files + 1, 1))
            done = files + 1
            size = sum(file.stat().st_size for file in (root / "_delta_log").iterdir()) / 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"| {files:,} | {size:.0f} | {opened:.2f} | {listed:.2f} | {commit:.2f} | {checkpoint:.2f} | {peak} |"
            )
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
