"""What an ingest has to do: each file found now, compared with the ledger.

An unchanged file costs the `stat` that found it. Contents are read again only to prove that a changed file still
begins with the bytes that were read, or that two files of one size are the same. Whatever a rewritten source takes
out of the lake must not be the only place of what a copy of it still holds; such a copy is then read itself.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from analytics import wires
from analytics.discover import Discovery, Found, display, found_at
from analytics.ledger import NOTHING_HERE, Ledger, Row, path_on_disk, source_id, status_before
from analytics.places import is_remote


@dataclass(frozen=True, slots=True)
class Task:
    """One source to read. `prior`: its ledger row, whole where it is read on (`grown`).

    `replaces`: sources whose rows leave the lake in the commit that brings the new ones.
    """

    kind: Literal["new", "grown", "rewritten"]
    found: Found
    source_id: str
    prior: Row | None = None
    replaces: tuple[str, ...] = ()

    @property
    def revision(self) -> int:
        """The number of the ledger row to write."""
        return self.prior["revision"] + 1 if self.prior else 1


@dataclass(frozen=True, slots=True)
class Copy:
    """A file with the content of another source: remembered, not read. `prior`: its own ledger row."""

    found: Found
    source_id: str
    copy_of: str
    prior: Row | None = None

    def row(self, *, host: str, wire: str, shape: str | None, digest: str | None) -> Row:
        """The ledger row to write, but for what the ingest says of itself. Its wire is that of the original."""
        return {
            "wire": wire, "source_id": self.source_id, "revision": self.prior["revision"] + 1 if self.prior else 1,
            "host": host, "path": self.found.display, "shape": shape, "status": "copy", "copy_of": self.copy_of,
            "size_bytes": self.found.size, "mtime_ns": self.found.mtime_ns, "inode": self.found.inode,
            "digest": digest, "first_seen": self.prior["first_seen"] if self.prior else None,
        } | dict(NOTHING_HERE)  # fmt: skip


@dataclass(slots=True)
class Plan:
    """The whole comparison. `changes`: what the next ledger row says of a source that is not read but changed.

    `read` has the tasks that replace rows last. They, the copies and the changes belong into one commit: before it the
    old rows stand, and after it what they held is read elsewhere.
    """

    read: list[Task] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    unchanged: list[Found] = field(default_factory=list)
    touched: list[Found] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def replaced(self) -> frozenset[str]:
        """Sources whose rows leave the lake."""
        return frozenset(chain.from_iterable(task.replaces for task in self.read))

    @property
    def is_empty(self) -> bool:
        """Nothing to commit."""
        return not (self.read or self.copies or self.changes)


def plan(ledger: Ledger, discovery: Discovery, *, ingest_id: str, wire: str | None = None, again: bool = False) -> Plan:
    """Compares what was found with the ledger.

    `wire`: the wire the user insists on; sources that were not read as it are read again. `again`: read everything
    again, whatever the ledger says.
    """
    return _Planner(ledger, ingest_id, wire, again).run(discovery)


class _Planner:
    def __init__(self, ledger: Ledger, ingest_id: str, wire: str | None, again: bool) -> None:  # noqa: FBT001
        self.ledger, self.ingest_id, self.wire, self.again = ledger, ingest_id, wire, again
        self.plan = Plan()
        self.fresh: list[tuple[Found, str, Row | None]] = []
        self.rewritten: set[str] = set()  # sources whose content in the lake is no longer that of their file
        self.here: dict[str, Found] = {}

    def run(self, discovery: Discovery) -> Plan:
        changed: list[tuple[Found, str]] = []
        unchanged: dict[str, Found] = {}
        host = self.ledger.host
        for found in discovery.found:
            if found.kind == "stream":
                self.plan.read.append(Task("new", found, source_id(host, found.path, self.ingest_id)))
                continue
            source = source_id(host, found.path)
            self.here[source] = found
            known = self.ledger.known.get(source)
            if known is None:
                self.fresh.append((found, source, None))
            elif (known.size_bytes, known.mtime_ns, known.inode) != (found.size, found.mtime_ns, found.inode):
                changed.append((found, source))
            elif known.status == "gone":
                self._reappeared(found, source)
            elif self._insists(known.status, known.wire):
                self._read_again(found, source)
            else:
                unchanged[source] = found
        whole = self.ledger.whole_rows([source for _, source in changed])
        for found, source in changed:
            self._changed(found, whole[source])
        self._rescue_copies(unchanged)
        self._moved_on()
        self._gone(discovery)
        self._fresh()
        self.plan.unchanged = list(unchanged.values())
        self.plan.read.sort(key=lambda task: (bool(task.replaces), os.fsencode(task.found.path)))
        self.plan.copies.sort(key=lambda copy: os.fsencode(copy.found.path))
        return self.plan

    def _insists(self, status: str, wire: str) -> bool:
        """True: an unchanged source is read again all the same."""
        if self.again:
            return status != "copy"
        return self.wire is not None and (status in ("refused", "skipped") or (status == "read" and wire != self.wire))

    def _reappeared(self, found: Found, source: str) -> None:
        """A vanished file is back as it was."""
        row = self.ledger.row(source)
        before = status_before(row or {})
        if before in ("read", "copy"):
            self.plan.touched.append(found)
            self.plan.changes[source] = _stat_of(found) | {"status": before, "status_reason": None}
        else:
            self._read_again(found, source)

    def _read_again(self, found: Found, source: str) -> None:
        """The content is the same (or never counted), but is to be read once more."""
        row = self.ledger.row(source)
        if row is not None and _has_rows(row):
            self.plan.read.append(Task("rewritten", found, source, row, (source,)))
        else:
            self.plan.read.append(Task("new", found, source, row))

    def _changed(self, found: Found, row: Row) -> None:
        from analytics.contents import is_same  # noqa: PLC0415 (what did not change is not opened)

        source, before = row["source_id"], status_before(row)
        if before == "skipped":
            self.fresh.append((found, source, row))
        elif before == "copy":
            original = self.ledger.row(row["copy_of"]) or row
            if is_same(found.path, *_content(row, original)):
                self._touch(found, row, before)
            else:
                self.fresh.append((found, source, row))
        elif before == "refused":
            self._rewrite(found, row)
        elif found.size == row["size_bytes"] and not row["pending_bytes"] and _is_unchanged(found, row):
            self._touch(found, row, before)
        elif _can_grow(row) and found.size >= row["bytes_read"] and _begins_with(found, row):
            self.plan.read.append(Task("grown", found, source, row))
        else:
            self._rewrite(found, row)

    def _touch(self, found: Found, row: Row, status: str) -> None:
        self.plan.touched.append(found)
        reason = None if row["status"] == "gone" else row["status_reason"]
        self.plan.changes[row["source_id"]] = _stat_of(found) | {"status": status, "status_reason": reason}

    def _rewrite(self, found: Found, row: Row) -> None:
        source = row["source_id"]
        self.rewritten.add(source)
        if _has_rows(row):
            self.plan.read.append(Task("rewritten", found, source, row, (source,)))
        else:
            self.fresh.append((found, source, row))

    def _rescue_copies(self, unchanged: dict[str, Found]) -> None:
        """Copies of a rewritten source hold what leaves the lake; those still on disk are read themselves."""
        if not self.rewritten:
            return
        copies = [known.source_id for known in self.ledger.known.values() if known.copy_of in self.rewritten]
        for row in self.ledger.rows(copies):
            source = row["source_id"]
            if status_before(row) != "copy":
                continue
            if source in unchanged:
                self.fresh.append((unchanged.pop(source), source, row))
            elif source in self.plan.changes:
                del self.plan.changes[source]
                self.plan.touched.remove(self.here[source])
                self.fresh.append((self.here[source], source, row))
            elif source not in self.here:
                path = path_on_disk(row)
                found = found_at(path) if path is not None else None
                if found is not None and found.size == row["size_bytes"]:
                    self.fresh.append((found, source, row))

    def _moved_on(self) -> None:
        """A file that was renamed and then grew: its old name's rows go, since the new name's hold them all."""
        if not self.fresh:
            return
        inodes = {found.inode for found, _, _ in self.fresh}
        origins = {row["copy_of"] for _, _, row in self.fresh if row is not None and status_before(row) == "copy"}
        asked = [k.source_id for k in self.ledger.known.values() if k.inode in inodes or k.source_id in origins]
        candidates = [row for row in self.ledger.rows(asked) if _may_have_moved(row, self.here, self.ledger.host)]
        rest = []
        for found, source, prior in self.fresh:
            origin = next((row for row in candidates if _is_continued_by(row, found, prior)), None)
            if origin is None:
                rest.append((found, source, prior))
                continue
            candidates.remove(origin)
            self.plan.read.append(Task("new", found, source, prior, (origin["source_id"],)))
            moved = {"status": "gone", "status_reason": "was copy", "copy_of": source}
            self.plan.changes[origin["source_id"]] = moved | dict(NOTHING_HERE)
            self._point_copies(origin["source_id"], source)
        self.fresh = rest

    def _point_copies(self, before: str, now: str) -> None:
        """Copies of a source that moved are copies of what it became."""
        asked = {source for _, source, _ in self.fresh}
        for row in self.ledger.rows([k.source_id for k in self.ledger.known.values() if k.copy_of == before]):
            source = row["source_id"]
            if status_before(row) == "copy" and source not in asked:
                self.plan.changes[source] = self.plan.changes.get(source, {}) | {"copy_of": now}

    def _gone(self, discovery: Discovery) -> None:
        """Sources under a listed folder, or named themselves, that are not on disk any more. Their rows stay."""
        roots = tuple(display(root).rstrip("/") + "/" for root in discovery.listed)
        missing = {display(path) for path in discovery.missing}
        for source, known in self.ledger.known.items():
            is_elsewhere = known.host != self.ledger.host and not is_remote(known.path)
            if source in self.here or is_elsewhere or known.status == "gone":
                continue
            change = self.plan.changes.get(source, {})
            is_below = known.path in missing or known.path.startswith(roots)
            if not is_below or "status" in change or path_on_disk(known._asdict(), must_exist=False) is None:
                continue
            self.plan.gone.append(known.path)
            self.plan.changes[source] = change | {"status": "gone", "status_reason": f"was {known.status}"}

    def _fresh(self) -> None:
        """New contents: each is a copy of what is known, a copy of another new one, or to be read."""
        if not self.fresh:
            return
        from analytics.contents import originals_of  # noqa: PLC0415 (what did not change is not opened)

        known = self._known_of_size({found.size for found, _, _ in self.fresh})
        by_size: dict[int, list[tuple[Found, str, Row | None]]] = defaultdict(list)
        for one in self.fresh:
            by_size[one[0].size].append(one)
        for size, group in by_size.items():
            if size == 0 or (len(group) == 1 and size not in known):
                originals: Iterable[str | None] = [None] * len(group)
            else:
                held = [(row["source_id"], row["bytes_read"], row["digest"]) for row in known.get(size, [])]
                originals = originals_of([(found.path, source) for found, source, _ in group], size, held)
            for (found, source, prior), original in zip(group, originals, strict=True):
                if original is None or original == source:
                    self.plan.read.append(Task("new", found, source, prior))
                else:
                    self.plan.copies.append(Copy(found, source, original, prior))

    def _known_of_size(self, sizes: set[int]) -> Mapping[int, list[Row]]:
        by_size: dict[int, list[Row]] = defaultdict(list)
        if not self.fresh or self.again:
            return by_size
        leaving = self.rewritten | self.plan.replaced
        same = [known.source_id for known in self.ledger.known.values() if known.size_bytes in sizes]
        for row in self.ledger.rows(same):
            if row["digest"] is None or row["pending_bytes"] != 0:
                continue
            if status_before(row) == "read" and row["source_id"] not in leaving:
                by_size[row["size_bytes"]].append(row)
        return by_size


def _has_rows(row: Row) -> bool:
    return bool(row["events"] or row["refusals"])


def _stat_of(found: Found) -> dict[str, Any]:
    return {"size_bytes": found.size, "mtime_ns": found.mtime_ns, "inode": found.inode}


def _content(copy: Row, original: Row) -> tuple[int, str]:
    """Decompressed size and digest of what a copy holds."""
    same = original["digest"] == copy["digest"] and original["bytes_read"] is not None
    return (original["bytes_read"] if same else copy["size_bytes"]), copy["digest"]


def _is_unchanged(found: Found, row: Row) -> bool:
    from analytics.contents import is_same  # noqa: PLC0415 (the same)

    return row["digest"] is not None and is_same(found.path, row["bytes_read"], row["digest"])


def _can_grow(row: Row) -> bool:
    """More may follow what was read: not in compressed files and documents, nor behind a line taken without its end."""
    is_document = row["wire"] in wires.BY_NAME and row["shape"] in wires.BY_NAME[row["wire"]].documents
    closed = is_document or row["compression"] is not None or row["ends_without_newline"] or row["resume_state"] is None
    return not closed and row["digest"] is not None


def _begins_with(found: Found, row: Row) -> bool:
    from analytics.contents import prefix_digest  # noqa: PLC0415 (the same)

    try:
        digest, size, _ = prefix_digest(found.path, row["bytes_read"])
    except OSError:
        return False
    return (digest, size) == (row["digest"], row["bytes_read"])


def _may_have_moved(row: Row, here: Mapping[str, Found], host: str) -> bool:
    plain = row["compression"] is None and row["digest"] is not None and bool(row["bytes_read"])
    is_elsewhere = row["host"] != host and not is_remote(row["path"])
    if not plain or is_elsewhere or status_before(row) != "read" or row["source_id"] in here:
        return False
    return path_on_disk(row, must_exist=False) is not None


def _is_continued_by(row: Row, found: Found, prior: Row | None) -> bool:
    is_known = prior is not None and prior["copy_of"] == row["source_id"]
    return (is_known or row["inode"] == found.inode) and found.size > row["size_bytes"] and _begins_with(found, row)
