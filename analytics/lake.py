"""The lake: one folder, one Delta table, and readers that only ever see a committed version.

Data files are written into place first; nothing reads them until one Delta transaction names them. So a killed
writer leaves files that no version references, and no reader ever sees half of an ingest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from analytics import lakefiles, places, sqlfiles
from analytics.deltalog import read_log
from analytics.errors import CannotWrite, LakeError, Overtaken, QueryFileError, StoreError
from analytics.lakefiles import EMPTY_WIRE, WrittenFile, private, write_text, writing
from analytics.lakesettings import Settings, read_settings, read_text
from analytics.places import Place, is_remote
from analytics.schema import RECORDS, SCHEMA_VERSION, Record

if TYPE_CHECKING:
    from analytics import compaction, withdrawal

T = TypeVar("T")
_OWN_NAMES = {
    ".lock", "runlake.json", "open.sql", "views.sql", "_delta_log", "_facts", *(f"record={name}" for name in RECORDS),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Store:
    """One version of a lake. A store never changes; `commit` and `latest` give another one."""

    root: Place
    version: int
    all_files: tuple[WrittenFile, ...]
    settings: Settings

    @staticmethod
    def open(
        path: str | os.PathLike[str], *, create: bool = False, version: int | None = None, shared: bool = False
    ) -> Store:
        """The newest version of the lake at `path`, or the one asked for. `create` makes a lake where there is none."""
        root = _checked_path(path)
        with _reached(root):
            if create and not _has_version(root):
                _create(root, shared=shared)
            if not (is_remote(root) or root.is_dir()):
                raise LakeError.missing(root)
            return _load(root, version)

    def files(self, record: Record, wire: str | None = None) -> list[str]:
        """Absolute paths of this version's files of one record kind. Never empty.

        First the one with the most rows, then as the rows came in: DuckDB takes each file of a list to be as large as
        the first. Behind the zero-row file ten million events counted as none, so joins put them into hash tables, and
        what reports build on took twice the CPU and four times the memory.
        """
        files = [file for file in self.all_files if _is_of(file, record, wire)]
        files.insert(0, files.pop(files.index(max(files, key=lambda file: file.rows))))
        return [places.below(self.root, file.relative) for file in files]

    def sizes(self) -> dict[str, int]:
        """Bytes of each file of this version, by its whole path."""
        return {places.below(self.root, file.relative): file.size_bytes for file in self.all_files}

    def extent(self, *records: Record) -> tuple[int, int]:
        """Rows and bytes of this version's files of some record kinds."""
        files = [file for file in self.all_files if file.record in records]
        return sum(file.rows for file in files), sum(file.size_bytes for file in files)

    def latest(self) -> Store:
        """The newest version."""
        with _reached(self.root):
            return _load(self.root, None)

    @contextmanager
    def lock(self, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Only one writer at a time; see `lakefiles.lock`. Take it, then work on `latest()`."""
        with lakefiles.lock(self.root, on_wait=on_wait, shared=self.settings.shared):
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
        is_new_data: bool = True, since: tuple[int, Mapping[str, int]] | None = None,
    ) -> Store:  # fmt: skip
        """Adds and removes files in one Delta transaction, and gives the version that shows it.

        `since`: the version that this commit builds on, and of some sources the revision in its ledger (0: none). On an
        object store, where others write too, `Overtaken` is raised if one of those sources has a newer row by now.

        The pair of ingest_id and batch is the key of the commit: giving it again after a success changes nothing.
        Batches of one ingest are numbered from 1 upwards. `is_new_data=False`: the rows are the same (compaction).
        """
        with self.lock(), self.private():
            if added or removed:
                from analytics import commits  # noqa: PLC0415 (the same)

                facts = {"ingest_id": ingest_id, "batch": batch, "note": note}
                commits.commit(
                    self.root,
                    list(added),
                    set(removed),
                    facts,
                    is_new_data=is_new_data,
                    shared=self.settings.shared,
                    since=since or (self.version, {}),
                )
            store = self.latest()
            store._publish()  # noqa: SLF001 (same class)
        return store

    def refresh(self) -> Store:
        """The newest version, with open.sql and views.sql made to fit: after a move, a kill, or an upgrade.

        Costs two small reads where they fit. Leaves everything as it is where somebody is writing, or we may not, or
        cannot (a full disk): the version can be read all the same.
        """
        if is_remote(self.root):  # just read, by whoever has it
            self._publish()
            return self
        store = self.latest()
        if store._stale_texts() and os.access(self.root, os.W_OK):  # noqa: SLF001
            with (
                suppress(CannotWrite),
                lakefiles.lock(self.root, wait=False, shared=self.settings.shared) as is_ours,
                self.private(),
            ):
                if is_ours:
                    store = self.latest()
                    store._publish()  # noqa: SLF001
        return store

    def _publish(self) -> None:
        """What the DuckDB shell reads. Only for the newest version, under the lock.

        On an object store nothing keeps a slower writer from putting an older text back; the next command mends it.
        A text that cannot be written there is no failure: readers may have no right to write, and runlake needs none.
        """
        with suppress(CannotWrite, OSError) if is_remote(self.root) else nullcontext():
            for name, text in self._stale_texts().items():
                write_text(self.root / name, text)

    def _stale_texts(self) -> dict[str, str]:
        texts = {"open.sql": sqlfiles.open_sql({record: self.files(record) for record in RECORDS}, self.version)}
        if is_remote(self.root) and sqlfiles.version_of(read_text(self.root / "open.sql")) > self.version:
            return {}  # somebody has committed since
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
        from analytics import commits  # noqa: PLC0415 (readers of rows need no Delta library)

        return commits.history(self.root)

    def compact(
        self, target_bytes: int | None = None, *, on_progress: Callable[[str, int], None] | None = None
    ) -> tuple[Store, compaction.Saved]:
        """Few large files out of many small ones, the rows of a source together and in line order; see `compaction`."""
        from analytics import compaction  # noqa: PLC0415 (what only reads does not rewrite)

        with self.lock(), self.writing():
            return self._undisturbed(
                lambda: compaction.compact(self.latest(), target_bytes or compaction.TARGET_BYTES, on_progress)
            )

    def _undisturbed(self, write: Callable[[], T]) -> T:
        """What `write` gives, asked again where another writer replaced the same files meanwhile (object stores)."""
        from analytics.retrying import MOST_TRIES  # noqa: PLC0415 (the same)

        for _ in range(MOST_TRIES - 1):
            with suppress(Overtaken):
                return write()
        return write()

    def replace_sources(
        self, source_ids: Collection[str], ingest_id: str, *, first_number: int = 90_000
    ) -> withdrawal.Replacement:
        """Copies of the files that hold rows of these sources, without those rows; commit them with the new rows.

        Call it under the lock on `latest()`. Numbers of the copies begin at `first_number`.
        """
        from analytics import withdrawal  # noqa: PLC0415 (the same)

        with self.private(), writing(self.root):
            return withdrawal.without_sources(self, frozenset(source_ids), ingest_id, first_number)

    def vacuum_orphans(self) -> list[str]:
        """Deletes the data files that no version references: what killed writers left. Gives their paths."""
        from analytics import vacuum  # noqa: PLC0415 (the same)

        with self.lock(), writing(self.root):
            return vacuum.vacuum_orphans(self if is_remote(self.root) else self.latest())

    def vacuum_replaced(self, retention_hours: float = 168.0) -> list[str]:
        """Deletes the files that left the newest version longer ago; older versions with them become unreadable."""
        from analytics import vacuum  # noqa: PLC0415 (the same)

        with self.lock(), writing(self.root):
            return vacuum.vacuum_replaced(self.latest(), retention_hours)


def _is_of(file: WrittenFile, record: Record, wire: str | None) -> bool:
    """The zero-row files belong to every wire: a list of files is never empty, which DuckDB would refuse."""
    return file.record == record and (wire is None or file.wire in (wire, EMPTY_WIRE))


@contextmanager
def _reached(root: Place) -> Iterator[None]:
    """What an object store refuses is told as a sentence."""
    try:
        yield
    except OSError as error:
        if not is_remote(root):
            raise
        raise StoreError.from_store("reach the lake at", root, error) from error


def _checked_path(path: str | os.PathLike[str]) -> Place:
    root = places.place(path)
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise LakeError.bad_path(root, "its name is not UTF-8") from None
    escape = re.search(r"%[0-9A-Fa-f]{2}", str(root))
    if escape:
        raise LakeError.bad_path(root, f"Delta reads {escape[0]!r} in a path as an escaped character")
    if is_remote(root) and re.search(r"[*?\[]", str(root)):
        raise LakeError.bad_path(root, "fsspec reads `*`, `?` and `[` in a path as a pattern")
    if any(part.startswith(("record=", "wire=")) for part in str(root).split("/")):
        raise LakeError.bad_path(root, "a folder above it is named like one of the lake's partitions")
    return root


def _has_version(root: Place) -> bool:
    """False: no lake, or one that is being made. No version is ever removed from the log."""
    if is_remote(root):
        from analytics import objects  # noqa: PLC0415 (local lakes need none of it)

        return objects.info_of(places.below(root, f"_delta_log/{0:020d}.json")) is not None
    return (root / "_delta_log" / f"{0:020d}.json").exists()


def _are_own(names: Sequence[str]) -> bool:
    return all(name in _OWN_NAMES or (name[0] == "." and name.endswith(".tmp")) for name in names)


def _create(root: Place, *, shared: bool) -> None:
    """A lake with a zero-row file per record kind. Two who create at once make one lake."""
    try:
        seen = places.names_in(root)
        if not _are_own(seen):
            raise LakeError.foreign(root, seen)
        if is_remote(root):
            from analytics import remotelake  # noqa: PLC0415 (the same)

            remotelake.create(root)
            _load(root, None)._publish()  # noqa: SLF001
            return
        with private(shared=shared):
            root.mkdir(parents=True, exist_ok=True)
            with lakefiles.lock(root, shared=shared):
                if _has_version(root):
                    return
                settings = Settings(SCHEMA_VERSION, lakefiles.runlake_version(), shared=shared)
                write_text(root / "runlake.json", settings.text)
                from analytics import commits  # noqa: PLC0415 (the same)

                commits.create(root)
                _load(root, None)._publish()  # noqa: SLF001
    except OSError as error:
        raise CannotWrite.at("make a lake at", root, error) from error


def _load(root: Place, version: int | None) -> Store:
    read = read_log(root, version) if is_remote(root) else None  # that one listing tells whether there is a lake
    if read is None and not _has_version(root):
        seen = places.names_in(root)
        if not seen and is_remote(root):  # a store has no empty folders
            raise LakeError.missing(root)
        raise LakeError.unfinished(root) if seen and _are_own(seen) else LakeError.foreign(root, seen)
    settings = read_settings(root)
    read = read or read_log(root, version)
    if read is None:
        from analytics import commits  # noqa: PLC0415 (a log that needs the Delta library)

        read = commits.read_table(root, version)
    found, files = read
    lost = _lost(root, files)
    if lost and version is not None:
        raise LakeError.vacuumed(root, version, len(lost))
    if lost:
        raise LakeError.files_lost(root, lost)
    return Store(root, found, files, settings)


def _lost(root: Place, files: Sequence[WrittenFile]) -> list[str]:
    """Files of a version that are not there as they were committed."""
    if is_remote(root):
        from analytics import remotelake  # noqa: PLC0415 (the same)

        here = remotelake.data_files(root)
        return [f.relative for f in files if f.relative not in here or here[f.relative].size_bytes != f.size_bytes]
    return [file.relative for file in files if lakefiles.size_of(root / file.relative) != file.size_bytes]
