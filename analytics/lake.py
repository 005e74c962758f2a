"""The lake: one folder, one Delta table, and readers that only ever see a committed version.

Data files are written into place first; nothing reads them until one Delta transaction names them. So a killed
writer leaves files that no version references, and no reader ever sees half of an ingest.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from analytics import compaction, lakefiles, sqlfiles, vacuum
from analytics.errors import CannotWrite, LakeError, QueryFileError
from analytics.lakefiles import EMPTY_WIRE, WrittenFile, private, write_text, writing
from analytics.lakesettings import Settings, read_settings, read_text
from analytics.schema import RECORDS, SCHEMA_VERSION, Record, table_schema

_PARTITIONS = ["record", "wire"]
_TABLE_CONFIG = {"delta.enableExpiredLogCleanup": "false"}  # the history of a lake is part of its content
_OWN_NAMES = {".lock", "runlake.json", "open.sql", "views.sql", "_delta_log", *(f"record={name}" for name in RECORDS)}


@dataclass(frozen=True, slots=True)
class Store:
    """One version of a lake. A store never changes; `commit` and `latest` give another one."""

    root: Path
    version: int
    all_files: tuple[WrittenFile, ...]
    settings: Settings

    @staticmethod
    def open(
        path: str | os.PathLike[str], *, create: bool = False, version: int | None = None, shared: bool = False
    ) -> Store:
        """The newest version of the lake at `path`, or the one asked for. `create` makes a lake where there is none."""
        root = _checked_path(path)
        if create and not _has_version(root):
            _create(root, shared=shared)
        if not root.is_dir():
            raise LakeError.missing(root)
        return _load(root, version)

    def files(self, record: Record, wire: str | None = None) -> list[str]:
        """Absolute paths of this version's files of one record kind, in the order the rows came in. Never empty."""
        return [str(self.root / f.relative) for f in self.all_files if _is_of(f, record, wire)]

    def latest(self) -> Store:
        """The newest version."""
        return _load(self.root, None)

    @contextmanager
    def lock(self, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Only one writer at a time; see `lakefiles.lock`. Take it, then work on `latest()`."""
        with lakefiles.lock(self.root, on_wait=on_wait):
            yield

    @contextmanager
    def private(self) -> Iterator[None]:
        """Files made inside get the lake's modes; workers that write data files need it too."""
        with private(shared=self.settings.shared):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Under the lock: data files are written and committed inside.

        What the operating system refuses is told as a sentence, and what was written in vain is deleted at once: a full
        disk has no room for it.
        """
        try:
            with self.private(), writing(self.root):
                yield
        except Exception:
            with suppress(CannotWrite):  # else the next writer does it
                self.vacuum_orphans()
            raise

    def commit(
        self, added: Collection[WrittenFile], removed: Collection[str], *, ingest_id: str, note: str, batch: int = 1,
        is_new_data: bool = True,
    ) -> Store:  # fmt: skip
        """Adds and removes files in one Delta transaction, and gives the version that shows it.

        The pair of ingest_id and batch is the key of the commit: giving it again after a success changes nothing.
        Batches of one ingest are numbered from 1 upwards. `is_new_data=False`: the rows are the same (compaction).
        """
        with self.lock(), self.private():
            table = _table(self.root)
            done = table.transaction_version(ingest_id)
            if (added or removed) and (done is None or done < batch):
                facts = {"ingest_id": ingest_id, "batch": batch, "note": note}
                self._transact(table, list(added), set(removed), facts, is_new_data=is_new_data)
            store = self.latest()
            store._publish()  # noqa: SLF001 (same class)
        return store

    def _transact(
        self, table: DeltaTable, added: list[WrittenFile], removed: set[str], facts: dict[str, Any], *,
        is_new_data: bool,
    ) -> None:  # fmt: skip
        live = {f.relative: f for f in _files_of(table)}
        for relative in sorted(removed):
            if relative not in live:
                raise LakeError.conflict(self.root, relative)
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = []
        for file in added:
            if (file.record, file.wire) != lakefiles.partition_of(file.relative) or file.relative in live:
                raise LakeError.misfit(file.relative, "it is in the lake already, or in another partition than it says")
            stats = lakefiles.delta_stats(self.root, file)
            actions.append(AddAction(file.relative, file.size_bytes, _parts(file), now, is_new_data, stats))
        gone = [live[relative] for relative in sorted(removed)]
        actions += [RemoveAction(f.relative, is_new_data, now, f.size_bytes, _parts(f)) for f in gone]
        facts |= {"runlake_version": lakefiles.runlake_version()} | _tally(added, "added") | _tally(gone, "removed")
        key = Transaction(facts["ingest_id"], facts["batch"])
        properties = CommitProperties(custom_metadata={"runlake": facts}, app_transactions=[key])
        try:
            lakefiles.make_durable(self.root, added, shared=self.settings.shared)
            table.create_write_transaction(
                actions, "append", Schema.from_arrow(table_schema()), _PARTITIONS, commit_properties=properties
            )
        except (DeltaError, OSError) as error:
            if _table(self.root).transaction_version(facts["ingest_id"]) == facts["batch"]:
                return  # it is committed; what failed is the checkpoint after it, which a later commit writes
            if isinstance(error, OSError):
                raise CannotWrite.from_os("commit to", self.root, error) from error
            raise LakeError.not_committed(self.root, str(error)) from error

    def refresh(self) -> Store:
        """The newest version, with open.sql and views.sql made to fit: after a move, a kill, or an upgrade.

        Costs two small reads where they fit. Leaves everything as it is where somebody is writing, or we may not, or
        cannot (a full disk): the version can be read all the same.
        """
        store = self.latest()
        if store._stale_texts() and os.access(self.root, os.W_OK):  # noqa: SLF001
            with suppress(CannotWrite), lakefiles.lock(self.root, wait=False) as is_ours, self.private():
                if is_ours:
                    store = self.latest()
                    store._publish()  # noqa: SLF001
        return store

    def _publish(self) -> None:
        """What the DuckDB shell reads. Only for the newest version, under the lock."""
        for name, text in self._stale_texts().items():
            write_text(self.root / name, text)

    def _stale_texts(self) -> dict[str, str]:
        texts = {"open.sql": sqlfiles.open_sql({record: self.files(record) for record in RECORDS}, self.version)}
        try:
            texts["views.sql"] = sqlfiles.views_sql()
        except QueryFileError:
            if (self.root / "views.sql").exists():
                raise
        return {name: text for name, text in texts.items() if read_text(self.root / name) != text}

    def mark_unredacted(self) -> Store:
        """Says in the lake that something in it was read with --no-redact. Before the commit, under the lock."""
        if self.settings.unredacted:
            return self
        changed = replace(self.settings, unredacted=True)
        with self.lock(), self.private():
            write_text(self.root / "runlake.json", changed.text)
        return replace(self, settings=changed)

    def history(self) -> list[dict[str, Any]]:
        """One row per version, newest first: when, why, by which ingest, and what was added and removed."""
        rows = []
        counts = [f"{what}_{did}" for did in ("added", "removed") for what in ("files", "bytes", *_ROW_NAMES.values())]
        for entry in _table(self.root).history():
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

    def compact(
        self, target_bytes: int = compaction.TARGET_BYTES, *, on_progress: Callable[[str, int], None] | None = None
    ) -> tuple[Store, compaction.Saved]:
        """Few large files out of many small ones, the rows of a source together and in line order; see `compaction`."""
        with self.lock(), self.writing():
            return compaction.compact(self.latest(), target_bytes, on_progress)

    def replace_sources(
        self, source_ids: Collection[str], ingest_id: str, *, first_number: int = 90_000
    ) -> compaction.Replacement:
        """Copies of the files that hold rows of these sources, without those rows; commit them with the new rows.

        Call it under the lock on `latest()`. Numbers of the copies begin at `first_number`.
        """
        with self.private(), writing(self.root):
            return compaction.without_sources(self, frozenset(source_ids), ingest_id, first_number)

    def vacuum_orphans(self) -> list[str]:
        """Deletes the data files that no version references: what killed writers left. Gives their paths."""
        with self.lock(), writing(self.root):
            return vacuum.vacuum_orphans(self.latest())

    def vacuum_replaced(self, retention_hours: float = 168.0) -> list[str]:
        """Deletes the files that left the newest version longer ago; older versions with them become unreadable."""
        with self.lock(), writing(self.root):
            return vacuum.vacuum_replaced(self.latest(), retention_hours)


_ROW_NAMES: dict[Record, str] = {"event": "events", "refusal": "refusals", "source": "sources"}


def _tally(files: Collection[WrittenFile], did: str) -> dict[str, int]:
    counts = {f"files_{did}": len(files), f"bytes_{did}": sum(f.size_bytes for f in files)}
    for name, word in _ROW_NAMES.items():
        counts[f"{word}_{did}"] = sum(f.rows for f in files if f.record == name)
    return counts


def _parts(file: WrittenFile) -> dict[str, str | None]:
    return {"record": file.record, "wire": file.wire}


def _is_of(file: WrittenFile, record: Record, wire: str | None) -> bool:
    """The zero-row files belong to every wire: a list of files is never empty, which DuckDB would refuse."""
    return file.record == record and (wire is None or file.wire in (wire, EMPTY_WIRE))


def _checked_path(path: str | os.PathLike[str]) -> Path:
    root = Path(os.path.realpath(path))
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise LakeError.bad_path(root, "its name is not UTF-8") from None
    escape = re.search(r"%[0-9A-Fa-f]{2}", str(root))
    if escape:
        raise LakeError.bad_path(root, f"Delta reads {escape[0]!r} in a path as an escaped character")
    if any(part.startswith(("record=", "wire=")) for part in root.parts):
        raise LakeError.bad_path(root, "a folder above it is named like one of the lake's partitions")
    return root


def _has_version(root: Path) -> bool:
    """False: no lake, or one that is being made. No version is ever removed from the log."""
    return (root / "_delta_log" / f"{0:020d}.json").exists()


def _are_own(names: Sequence[str]) -> bool:
    return all(name in _OWN_NAMES or (name[0] == "." and name.endswith(".tmp")) for name in names)


def _create(root: Path, *, shared: bool) -> None:
    """A lake with a zero-row file per record kind. Two who create at once make one lake."""
    try:
        seen = [entry.name for entry in os.scandir(root)] if root.is_dir() else []
        if not _are_own(seen):
            raise LakeError.foreign(root, seen)
        with private(shared=shared):
            root.mkdir(parents=True, exist_ok=True)
            with lakefiles.lock(root):
                if _has_version(root):
                    return
                settings = Settings(SCHEMA_VERSION, lakefiles.runlake_version(), shared=shared)
                write_text(root / "runlake.json", settings.text)
                _create_table(root)
                _load(root, None)._publish()  # noqa: SLF001
    except OSError as error:
        raise CannotWrite.from_os("make a lake at", root, error) from error


def _create_table(root: Path) -> None:
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


def _table(root: Path, version: int | None = None) -> DeltaTable:
    try:
        return DeltaTable(str(root), version=version)
    except TableNotFoundError:
        raise LakeError.foreign(root, [entry.name for entry in os.scandir(root)]) from None
    except DeltaError as error:
        raise LakeError.damaged(root, str(error).splitlines()[0]) from error


def _load(root: Path, version: int | None) -> Store:
    if not _has_version(root):
        seen = [entry.name for entry in os.scandir(root)] if root.is_dir() else []
        raise LakeError.unfinished(root) if seen and _are_own(seen) else LakeError.foreign(root, seen)
    settings = read_settings(root)
    if version is not None:
        newest = _table(root).version()
        if not 0 <= version <= newest:
            raise LakeError.no_version(root, version, newest)
    table = _table(root, version)
    files = _files_of(table)
    lost = [file.relative for file in files if lakefiles.size_of(root / file.relative) != file.size_bytes]
    if lost and version is not None:
        raise LakeError.vacuumed(root, version, len(lost))
    if lost:
        raise LakeError.files_lost(root, lost)
    return Store(root, table.version(), files, settings)


def _files_of(table: DeltaTable) -> tuple[WrittenFile, ...]:
    actions = pa.table(table.get_add_actions(flatten=True)).select(
        ["path", "partition.record", "partition.wire", "num_records", "size_bytes"]
    )
    rows = zip(*(column.to_pylist() for column in actions.columns), strict=True)
    files = [WrittenFile(unquote(path), *rest) for path, *rest in rows]
    return tuple(sorted(files, key=lambda f: (f.order_key, f.relative)))
