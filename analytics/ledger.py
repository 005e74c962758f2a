"""What was read before: the `source` records of one version of the lake, where the latest revision of a source holds.

`analytics.planning` compares it with what is found now.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import xxhash

from analytics import places
from analytics.lake import Store
from analytics.lakefiles import WrittenFile
from analytics.places import Place, is_remote
from analytics.schema import arrow_schema

if TYPE_CHECKING:
    from analytics.redact import Redactor

Row = dict[str, Any]  # a ledger row: every column of schema.SOURCE, `wire` included

_HEAVY = ("tail", "blanks", "skeleton", "runs", "resume_state")  # read only for the few sources that need them
# what tells changed sources from unchanged ones, and moved ones from vanished ones; all that an idle ingest reads
_FEW_ROWS = 4_000  # so many are looked at one by one in the time it takes to load what looks at all of them at once
_KEYS = ("source_id", "revision", "host", "path", "status", "copy_of", "size_bytes", "mtime_ns", "inode")
NOTHING_HERE: Mapping[str, Any] = {
    "lines": None, "event_lines": 0, "events": 0, "refused_lines": 0, "refusals": 0, "blank_lines": None,
    "bytes_read": None, "pending_bytes": 0, "redactions": 0, "tail": None, "blanks": None, "skeleton": None,
    "runs": None, "resume_state": None, "has_bom": None, "ends_without_newline": None,
}  # fmt: skip


def source_id(host: str, path: str, salt: str = "") -> str:
    """Identity of a source. A stream has no lasting identity: its salt is the ingest that reads it."""
    of_host = b"" if is_remote(path) else host.encode("utf-8", "surrogateescape")  # an object is the same to all hosts
    name = of_host + b"\0" + os.fsencode(path)
    return xxhash.xxh3_64_hexdigest(name + b"\0" + salt.encode() if salt else name)


def status_before(row: Mapping[str, Any]) -> str:
    """The status of a row; of a vanished source the one it had (kept in status_reason as `was …`)."""
    if row["status"] == "gone":
        return str(row["status_reason"] or "was read").removeprefix("was ")
    return str(row["status"])


def path_on_disk(row: Row, *, must_exist: bool = True) -> str | None:
    """The real path of a ledger row, whose text may have escaped bytes; the source_id proves which reading is right.

    `must_exist=False` gives the path only if nothing is there any more.
    """
    raw = os.fsencode(row["path"])
    unescaped = re.sub(rb"\\x([89a-f][0-9a-f])", lambda m: bytes([int(m[1], 16)]), raw)
    path = next((p for p in map(os.fsdecode, (raw, unescaped)) if source_id(row["host"], p) == row["source_id"]), None)
    return path if path is not None and _is_there(path) is must_exist else None


def _is_there(path: str) -> bool:
    """False only if the operating system says that nothing is there; a folder we may not enter hides what it holds."""
    if is_remote(path):
        from analytics.objectsources import is_there  # noqa: PLC0415 (what stands in folders needs none of it)

        return is_there(path)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class Known(NamedTuple):
    """What the ledger says of a source at a glance, and where its row stands."""

    source_id: str
    revision: int
    host: str | None
    path: str
    status: str
    copy_of: str | None
    size_bytes: int | None
    mtime_ns: int | None
    inode: int | None
    wire: str
    file: int
    place: int


class Ledger:
    """The latest revision of every source of one version of a lake."""

    def __init__(self, store: Store, host: str) -> None:
        self.host = host
        self._root = store.root
        self._files = _source_files(store)
        self.known: dict[str, Known] = {}
        tables = places.tables([self._root / file.relative for file in self._files], _KEYS)
        for number, (file, table) in enumerate(zip(self._files, tables, strict=True)):
            columns = [table.column(name).to_pylist() for name in _KEYS]
            for place, keys in enumerate(zip(*columns, strict=True)):
                before = self.known.get(keys[0])
                if before is None or keys[1] >= before.revision:
                    self.known[keys[0]] = Known._make((*keys, file.wire, number, place))
        self._light = cache(self._read_light)

    @classmethod
    def load(cls, store: Store, *, host: str | None = None) -> Ledger:
        """Reads the key columns of the version's ledger files; the others when somebody asks for a row."""
        return cls(store, host or places.host_name())

    def __len__(self) -> int:
        return len(self.known)

    def row(self, source: str) -> Row | None:
        """The light columns of a source's latest revision, and its wire."""
        known = self.known.get(source)
        if known is None:
            return None
        row: Row = self._light(known.file).slice(known.place, 1).to_pylist()[0]
        return row | {"wire": known.wire}

    def rows(self, sources: Iterable[str] | None = None) -> list[Row]:
        """Such rows of some sources, or of all."""
        found = (self.row(source) for source in (self.known if sources is None else sources))
        return [row for row in found if row is not None]

    def _read_light(self, file: int) -> pa.Table:
        names = [name for name in arrow_schema("source").names if name not in _HEAVY]
        with places.parquet_file(self._root / self._files[file].relative) as reader:
            return reader.read(columns=names).combine_chunks()

    def whole_rows(self, sources: Collection[str]) -> dict[str, Row]:
        """Rows with the heavy columns. Times inside `runs` are microseconds, as the readers count them."""
        places: dict[int, dict[int, str]] = defaultdict(dict)
        for source in sources:
            known = self.known[source]
            places[known.file][known.place] = source
        found: dict[str, Row] = {}
        for number, wanted in places.items():
            file = self._files[number]
            for at, row in zip(sorted(wanted), _take(self._root / file.relative, sorted(wanted)), strict=True):
                found[wanted[at]] = row | {"wire": file.wire}
        return found

    def with_content(self, digest: str, size: int) -> str | None:
        """A source that is read and wholly has this (decompressed) content: for streams, known only after reading."""
        if not size:
            return None
        for known in self.known.values():
            if known.status == "read":
                row: Row = self.row(known.source_id) or {}
                if (row["digest"], row["bytes_read"], row["pending_bytes"]) == (digest, size, 0):
                    return known.source_id
        return None

    def restated(
        self, changes: Mapping[str, Mapping[str, Any]], *, ingest_id: str, now: datetime
    ) -> dict[str, list[Row]]:
        """Per wire, the rows of the next revision for sources whose state changed though they were not read."""
        rows: dict[str, list[Row]] = defaultdict(list)
        for source, row in self.whole_rows(changes).items():
            row |= {"revision": row["revision"] + 1, "ingest_id": ingest_id, "last_seen": now}
            rows[row["wire"]].append(row | dict(changes[source]))
        return rows


def hide_secrets(rows: list[Row], redactor: Redactor) -> None:
    """Ledger rows whose path (or reason, which may quote the source) has a secret in it keep it no longer.

    The source is known again by its id; only whether it is still on disk cannot be asked any more.
    """
    for name in ("path", "status_reason"):
        places: Iterable[int] = (at for at, row in enumerate(rows) if row.get(name) is not None)
        if len(rows) > _FEW_ROWS:
            suspects = redactor.suspects(pa.array([row.get(name) for row in rows], pa.string()))
            places = () if suspects is None else suspects.tolist()
        for at in places:
            rows[at][name] = redactor.json_line(rows[at][name])[0]


def source_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Ledger rows as the table of one source file; `wire` is its partition."""
    schema = arrow_schema("source")
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _source_files(store: Store) -> list[WrittenFile]:
    return [file for file in store.all_files if file.record == "source"]


def _take(path: Place, rows: Sequence[int]) -> list[Row]:
    """Whole rows of a ledger file by their place in it; only their row groups are read."""
    found: list[Row] = []
    with places.parquet_file(path) as reader:
        base, at = 0, 0
        for group in range(reader.num_row_groups):
            end = base + reader.metadata.row_group(group).num_rows
            here = []
            while at < len(rows) and rows[at] < end:
                here.append(rows[at] - base)
                at += 1
            if here:
                table = reader.read_row_group(group).take(pa.array(here, pa.int64()))
                found.extend(_with_micros(row) for row in table.to_pylist())
            base = end
    return found


def _with_micros(row: Row) -> Row:
    for holder, names in ((row, ("began_at",)), *((piece, ("first_ts", "last_ts")) for piece in row["runs"] or ())):
        for name in names:
            if holder.get(name) is not None:
                holder[name] = int(pa.scalar(holder[name], pa.timestamp("us", "UTC")).value)
    return row
