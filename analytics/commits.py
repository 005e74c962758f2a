"""The lake's Delta table through the Delta library: making it, committing to it, its history, and any log it reads.

Apart from `analytics.lake`, since the library and Arrow take longer to load than a small lake takes to read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from analytics import lakefiles
from analytics.deltalog import in_order
from analytics.errors import CannotWrite, LakeError
from analytics.lakefiles import EMPTY_WIRE, WrittenFile
from analytics.schema import RECORDS, Record, table_schema

_PARTITIONS = ["record", "wire"]
_TABLE_CONFIG = {"delta.enableExpiredLogCleanup": "false"}  # the history of a lake is part of its content
_ROW_NAMES: dict[Record, str] = {"event": "events", "refusal": "refusals", "source": "sources"}


def open_table(root: Path, version: int | None = None) -> DeltaTable:
    """The Delta table in a folder, at its newest version or the one asked for."""
    try:
        return DeltaTable(str(root), version=version)
    except TableNotFoundError:
        raise LakeError.foreign(root, [entry.name for entry in os.scandir(root)]) from None
    except DeltaError as error:
        raise LakeError.damaged(root, str(error).splitlines()[0]) from error


def read_table(root: Path, version: int | None) -> tuple[int, tuple[WrittenFile, ...]]:
    """The version asked for (None: the newest) and its files."""
    if version is not None:
        newest = open_table(root).version()
        if not 0 <= version <= newest:
            raise LakeError.no_version(root, version, newest)
    table = open_table(root, version)
    return table.version(), files_of(table)


def files_of(table: DeltaTable) -> tuple[WrittenFile, ...]:
    """The files of a version."""
    actions = pa.table(table.get_add_actions(flatten=True)).select(
        ["path", "partition.record", "partition.wire", "num_records", "size_bytes"]
    )
    rows = zip(*(column.to_pylist() for column in actions.columns), strict=True)
    return in_order(WrittenFile(unquote(path), *rest) for path, *rest in rows)


def commit(
    root: Path, added: list[WrittenFile], removed: set[str], facts: dict[str, Any], *, is_new_data: bool, shared: bool
) -> None:
    """One transaction, unless the one of this `ingest_id` and `batch` (in the facts) is there already."""
    table = open_table(root)
    done = table.transaction_version(facts["ingest_id"])
    if done is not None and done >= facts["batch"]:
        return
    live = {f.relative: f for f in files_of(table)}
    for relative in sorted(removed):
        if relative not in live:
            raise LakeError.conflict(root, relative)
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = []
    for file in added:
        if (file.record, file.wire) != lakefiles.partition_of(file.relative) or file.relative in live:
            raise LakeError.misfit(file.relative, "it is in the lake already, or in another partition than it says")
        stats = lakefiles.delta_stats(root, file)
        actions.append(AddAction(file.relative, file.size_bytes, _parts(file), now, is_new_data, stats))
    gone = [live[relative] for relative in sorted(removed)]
    actions += [RemoveAction(f.relative, is_new_data, now, f.size_bytes, _parts(f)) for f in gone]
    facts = facts | {"runlake_version": lakefiles.runlake_version()} | _tally(added, "added") | _tally(gone, "removed")
    key = Transaction(facts["ingest_id"], facts["batch"])
    properties = CommitProperties(custom_metadata={"runlake": facts}, app_transactions=[key])
    try:
        lakefiles.make_durable(root, added, shared=shared)
        table.create_write_transaction(
            actions, "append", Schema.from_arrow(table_schema()), _PARTITIONS, commit_properties=properties
        )
    except (DeltaError, OSError) as error:
        if open_table(root).transaction_version(facts["ingest_id"]) == facts["batch"]:
            return  # it is committed; what failed is the checkpoint after it, which a later commit writes
        if isinstance(error, OSError):
            raise CannotWrite.from_os("commit to", root, error) from error
        raise LakeError.not_committed(root, str(error)) from error


def create(root: Path) -> None:
    """A table with a zero-row file per record kind."""
    actions = []
    for record in RECORDS:
        relative = f"record={record}/wire={EMPTY_WIRE}/00000000.parquet"
        lakefiles.parquet_writer(root / relative, record).close()
        file = lakefiles.describe(root, relative)
        stats = lakefiles.delta_stats(root, file)
        now = int(time.time() * 1000)
        actions.append(AddAction(relative, file.size_bytes, _parts(file), now, True, stats))  # noqa: FBT003
    try:
        create_table_with_add_actions(
            str(root), Schema.from_arrow(table_schema()), actions, partition_by=_PARTITIONS, name="runlake",
            configuration=_TABLE_CONFIG,
            commit_properties=CommitProperties(custom_metadata={"runlake": {"note": "new lake"}}),
        )  # fmt: skip
    except DeltaError as error:
        raise LakeError.not_committed(root, str(error)) from error


def history(root: Path) -> list[dict[str, Any]]:
    """One row per version, newest first: when, why, by which ingest, and what was added and removed."""
    rows = []
    counts = [f"{what}_{did}" for did in ("added", "removed") for what in ("files", "bytes", *_ROW_NAMES.values())]
    for entry in open_table(root).history():
        facts = entry.get("runlake") or {}
        row = {
            "version": entry["version"],
            "committed_at": datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
            "note": facts.get("note", entry.get("operation")),
            "ingest_id": facts.get("ingest_id"),
            "runlake_version": facts.get("runlake_version"),
        }
        rows.append(row | {name: facts.get(name) for name in counts})
    return rows


def _tally(files: Collection[WrittenFile], did: str) -> dict[str, int]:
    counts = {f"files_{did}": len(files), f"bytes_{did}": sum(f.size_bytes for f in files)}
    for name, word in _ROW_NAMES.items():
        counts[f"{word}_{did}"] = sum(f.rows for f in files if f.record == name)
    return counts


def _parts(file: WrittenFile) -> dict[str, str | None]:
    return {"record": file.record, "wire": file.wire}
