"""The lake's Delta table through the Delta library: making it, committing to it, its history, and any log it reads.

Apart from `analytics.lake`, since the library and Arrow take longer to load than a small lake takes to read.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from analytics import durable, lakefiles, places
from analytics.deltalog import in_order
from analytics.errors import CannotWrite, LakeError, Overtaken, StoreError
from analytics.lakefiles import EMPTY_WIRE, WrittenFile
from analytics.places import Place, is_remote, parquet_file
from analytics.schema import RECORDS, Record, table_schema

_WAIT_SECONDS = 0.05  # before the second try of a commit, doubling up to _LONGEST_SECONDS, and by chance up to that
_LONGEST_SECONDS = 5.0
_COMMITS_TRIED = 200
_WRITERS = "runlake"  # the application whose transactions all writers share: of two commits on one version one fails
_OTHERS = re.compile("concurrent|conflict|already exists", re.IGNORECASE)
_PARTITIONS = ["record", "wire"]
_TABLE_CONFIG = {"delta.enableExpiredLogCleanup": "false"}  # the history of a lake is part of its content
_ROW_NAMES: dict[Record, str] = {"event": "events", "refusal": "refusals", "source": "sources"}


Seen = tuple[int, Mapping[str, int]]  # what a commit builds on: a version, and revisions of sources (0: no ledger row)


def open_table(root: Place, version: int | None = None) -> DeltaTable:
    """The Delta table in a folder, at its newest version or the one asked for."""
    try:
        return DeltaTable(str(root), version=version, storage_options=places.storage_options(root))
    except TableNotFoundError:
        raise LakeError.foreign(root, places.names_in(root)) from None
    except OSError as error:
        raise _refused("read", root, error) from error
    except DeltaError as error:
        if is_remote(root) and isinstance(told := _refused("read", root, error), StoreError):
            raise told from error
        raise LakeError.damaged(root, str(error).splitlines()[0]) from error


def read_table(root: Place, version: int | None) -> tuple[int, tuple[WrittenFile, ...]]:
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
    root: Place, added: list[WrittenFile], removed: set[str], facts: dict[str, Any], *, is_new_data: bool, shared: bool,
    since: Seen,
) -> None:  # fmt: skip
    """One transaction, unless the one of this `ingest_id` and `batch` (in the facts) is there already.

    On an object store others may commit at the same time: then it is tried again on the version they made, as long as
    what it builds on (`since`) still holds there.
    """
    for tried in range(_COMMITS_TRIED if is_remote(root) else 1):
        if tried:
            time.sleep(random.uniform(0, min(_LONGEST_SECONDS, _WAIT_SECONDS * 2**tried)))  # noqa: S311 (no secret)
        if _commit(root, added, removed, facts, since, is_new_data=is_new_data, shared=shared):
            return
    raise LakeError.crowded(root, _COMMITS_TRIED)


def _commit(
    root: Place, added: list[WrittenFile], removed: set[str], facts: dict[str, Any], since: Seen, *, is_new_data: bool,
    shared: bool,
) -> bool:  # fmt: skip
    """One try; False where another writer was first with the same version."""
    table = open_table(root)
    done = table.transaction_version(facts["ingest_id"])
    if done is not None and done >= facts["batch"]:
        return True
    live = {f.relative: f for f in files_of(table)}
    for relative in sorted(removed):
        if relative not in live:
            error = LakeError.conflict(root, relative)
            raise Overtaken(str(error)) if is_remote(root) else error
    if is_remote(root) and table.version() != since[0]:
        own = re.compile(rf".*/{facts['ingest_id']}-\d+\.parquet")  # and not what was compacted in their place
        _check_still_so(root, since, [file for file in live.values() if not own.fullmatch(file.relative)])
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
    keys = [Transaction(facts["ingest_id"], facts["batch"])]
    if is_remote(root):  # the lock sees to it elsewhere
        keys.append(Transaction(_WRITERS, table.version() + 1))
    properties = CommitProperties(custom_metadata={"runlake": facts}, app_transactions=keys)
    try:
        durable.make_durable(root, added, shared=shared)
        table.create_write_transaction(
            actions, "append", Schema.from_arrow(table_schema()), _PARTITIONS, commit_properties=properties
        )
    except (DeltaError, OSError) as error:
        if open_table(root).transaction_version(facts["ingest_id"]) == facts["batch"]:
            return True  # it is committed; what failed is the checkpoint after it, which a later commit writes
        if is_remote(root) and isinstance(error, CommitFailedError) and _OTHERS.search(str(error)):
            return False  # the loop looks whether it still holds
        raise _refused("commit to", root, error) from error
    return True


def _refused(doing: str, root: Place, error: Exception) -> LakeError | CannotWrite:
    """What the Delta library could not do, as a sentence."""
    if is_remote(root):
        from analytics import objects  # noqa: PLC0415 (local lakes need none of it)

        said = objects.delta_words(error)
        if said is not None:
            return StoreError.from_store(doing, root, said)
    if isinstance(error, OSError):
        return CannotWrite.at(doing, root, error)
    return LakeError.not_committed(root, str(error))


def _check_still_so(root: Place, since: Seen, live: list[WrittenFile]) -> None:
    """Raises Overtaken where another writer has committed a newer ledger row of a source that was seen.

    `live`: the newest version's files, but for those of this ingest.
    """
    version, revisions = since
    if not revisions:
        return
    before = {file.relative for file in files_of(open_table(root, version))}
    for file in live:
        if file.record == "source" and file.relative not in before:
            with parquet_file(root / file.relative) as reader:
                rows = reader.read(columns=["source_id", "revision"]).to_pylist()
            for row in rows:
                if row["revision"] > revisions.get(row["source_id"], row["revision"]):
                    raise Overtaken(f"Another writer has read {row['source_id']} into the lake {root} meanwhile.")


def create(root: Place) -> None:
    """A table with a zero-row file per record kind."""
    actions = []
    for record in RECORDS:
        own = f".{lakefiles.new_ingest_id()}" if is_remote(root) else ""  # two may create at once
        relative = f"record={record}/wire={EMPTY_WIRE}/00000000{own}.parquet"
        lakefiles.parquet_writer(root / relative, record).close()
        file = lakefiles.describe(root, relative)
        stats = lakefiles.delta_stats(root, file)
        now = int(time.time() * 1000)
        actions.append(AddAction(relative, file.size_bytes, _parts(file), now, True, stats))  # noqa: FBT003
    try:
        create_table_with_add_actions(
            str(root), Schema.from_arrow(table_schema()), actions, partition_by=_PARTITIONS, name="runlake",
            configuration=_TABLE_CONFIG,
            commit_properties=CommitProperties(
                custom_metadata={"runlake": {"note": "new lake"}},
                max_commit_retries=0,  # who comes second with version 0 would else make it anew as version 1
            ),
            storage_options=places.storage_options(root),
        )  # fmt: skip
    except OSError as error:
        if not is_remote(root):
            raise
        raise _refused("make a lake at", root, error) from error
    except DeltaError as error:
        raise LakeError.not_committed(root, str(error)) from error


def history(root: Place) -> list[dict[str, Any]]:
    """One row per version, newest first: when, why, by which ingest, and what was added and removed."""
    rows = []
    counts = [f"{what}_{did}" for did in ("added", "removed") for what in ("files", "bytes", *_ROW_NAMES.values())]
    for entry in _entries(root):
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


def _entries(root: Place) -> list[dict[str, Any]]:
    """What the Delta library says of each version, newest first.

    It numbers the commits it lists from the version of the opened table down. One that came in between would give each
    the number of the version before it; then all is read once more.
    """
    table = open_table(root)
    while True:
        entries = table.history()
        newest = open_table(root)
        if newest.version() == table.version():
            return entries
        table = newest


def _tally(files: Collection[WrittenFile], did: str) -> dict[str, int]:
    counts = {f"files_{did}": len(files), f"bytes_{did}": sum(f.size_bytes for f in files)}
    for name, word in _ROW_NAMES.items():
        counts[f"{word}_{did}"] = sum(f.rows for f in files if f.record == name)
    return counts


def _parts(file: WrittenFile) -> dict[str, str | None]:
    return {"record": file.record, "wire": file.wire}
