"""What the lake kept of a source, in the order of its bytes: the lines, and where each began."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.discover import display
from analytics.errors import RunlakeError, UsageError
from analytics.places import absolute
from analytics.sqlfiles import quoted

if TYPE_CHECKING:
    from analytics.api import Lake

WINDOW_BYTES = 32 << 20  # of a source at once, so that a large one needs no more memory than a small one
WINDOW_LINES = 100_000
NAMED = 5  # source ids in the sentence that asks for one of them
_COLUMNS = (
    "source_id, path, status, status_reason, copy_of, compression, bytes_read, digest, lines, pending_bytes, tail, "
    "redactions, has_bom, ends_without_newline, blanks, skeleton"
)


@dataclass(frozen=True, slots=True)
class Source:
    """The ledger row of a source whose bytes are in the lake."""

    row: dict[str, Any]

    @property
    def id(self) -> str:
        """Its source_id."""
        return str(self.row["source_id"])

    @property
    def path(self) -> str:
        """Its path when it was read."""
        return str(self.row["path"])

    @property
    def whole_lines(self) -> int:
        """Its lines without the pending one."""
        return int(self.row["lines"]) - int(self.row["pending_bytes"] > 0)

    @property
    def window(self) -> int:
        """How many lines to fetch at once."""
        mean = int(self.row["bytes_read"]) // max(self.whole_lines, 1)
        return max(1, min(WINDOW_LINES, WINDOW_BYTES // max(mean, 1)))


@dataclass(frozen=True, slots=True)
class Kept:
    """A line, or the part of one that is a record of its own.

    size: its bytes in the source; None: secrets were replaced in it, so nothing but the next offset tells.
    reason: why it was refused; None: it is an event, or blank.
    """

    line: int
    byte_offset: int | None
    octets: bytes
    size: int | None
    redactions: int
    reason: str | None = None


def sources_called(lake: Lake, name: str) -> list[dict[str, Any]]:
    """The ledger rows of this path or source_id."""
    paths = {display(one) for one in (name, absolute(name), os.path.realpath(name))}
    listed = ", ".join(map(quoted, sorted(paths)))
    return _rows(lake, f"SELECT {_COLUMNS} FROM sources WHERE path IN ({listed}) OR source_id IN ({listed})")


def find_source(lake: Lake, name: str) -> tuple[Source, Source | None] | None:
    """The source of this path or id, and that which it is a copy of; None: there is none of this name."""
    rows = sources_called(lake, name)
    if not rows:
        return None
    if len(rows) > 1:
        ids = ", ".join(sorted(row["source_id"] for row in rows)[:NAMED])
        more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
        raise UsageError(f"{len(rows):,} sources are called {name!r}. Name one by its source_id: {ids}{more}.")
    source = Source(rows[0])
    if source.row["copy_of"] is not None:
        original = source_of(lake, source.row["copy_of"])
        digests = {source.row["digest"], original.row["digest"]} - {None}
        if len(digests) > 1:
            raise RunlakeError(
                f"{source.path} is no more: it went on growing as {original.path}, and its lines are the first of that "
                f"file. Export {original.path}."
            )
        return source, original
    if source.row["bytes_read"] is None:
        why = source.row["status_reason"]
        raise RunlakeError(
            f"{source.path} was {source.row['status']} ({why}), so none of its bytes are in the lake. "
            "Ingest it, perhaps with --wire NAME."
        )
    return source, None


def source_of(lake: Lake, source_id: str) -> Source:
    """The source of an id that stands in the lake."""
    (row,) = _rows(lake, f"SELECT {_COLUMNS} FROM sources WHERE source_id = {quoted(source_id)}")
    return Source(row)


def refused_whole(lake: Lake, source: Source) -> list[dict[str, Any]]:
    """The refusals that are of no line: of the file, or of what follows its last line."""
    query = f"SELECT raw, bytes, reason, redactions FROM stored_refusals WHERE source_id = {quoted(source.id)}"
    return _rows(lake, f"{query} AND line IS NULL ORDER BY byte_offset")


def lines_of(
    lake: Lake, source: Source, first: int, last: int, wire_runs: Collection[str] | None = None
) -> Iterator[Kept]:
    """What is kept of lines first … last, in order; blank lines are not among it.

    wire_runs: only records that an event of one of these runs comes from, and every refusal.
    """
    for start in range(first, last + 1, source.window):
        within = f"source_id = {quoted(source.id)} AND line BETWEEN {start} AND {min(last, start + source.window - 1)}"
        only = ""
        if wire_runs is not None:
            named = ", ".join(map(quoted, sorted(wire_runs))) or "NULL"
            only = f"""AND (line, byte_offset) IN (
                SELECT (line, byte_offset) FROM stored_events WHERE {within} AND run_id IN ({named})
            )"""
        query = f"""
            SELECT
                line, byte_offset, CASE WHEN payload IS NULL THEN raw ELSE encode(payload) END AS octets,
                NULL AS size, redactions, NULL AS reason
            FROM stored_events
            WHERE {within} AND (payload IS NOT NULL OR raw IS NOT NULL) {only}
            UNION ALL
            SELECT line, byte_offset, raw, bytes, redactions, reason FROM stored_refusals WHERE {within}
            ORDER BY line, byte_offset, reason NULLS FIRST
        """
        for batch in lake.sql(query).to_arrow_reader(8192):
            for line, byte_offset, octets, size, redactions, reason in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                known = len(octets) if reason is None and not redactions else size
                yield Kept(line, byte_offset, octets, known, redactions, reason)


def _rows(lake: Lake, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.sql(query).to_arrow_table().to_pylist()
    return found
