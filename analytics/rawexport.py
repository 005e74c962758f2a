"""The original lines again: `runlake export --raw` writes a source, or the lines of a run, from the lake alone.

A source comes back byte for byte. What the lake does not have is told, never passed over: secrets that were replaced
are counted; what a refusal keeps no more of (over-long lines, whole files, pending tails beyond RAW_LIMIT) and what
could not be decompressed or read makes the export incomplete. Where nothing of that applies, the digest of what was
read proves the bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import xxhash

from analytics.errors import LakeError, UsageError
from analytics.rawlines import Kept, Source, find_source, lines_of, refused_whole, source_of
from analytics.reading import BOM, BrokenCompression, RatioExceeded, SourceDefect
from analytics.sqlfiles import quoted
from analytics.tally import RAW_LIMIT

if TYPE_CHECKING:
    from analytics.api import Lake

UNREADABLE = frozenset(defect.reason for defect in (SourceDefect, BrokenCompression, RatioExceeded))


@dataclass(frozen=True, slots=True)
class Lost:
    """Bytes of a source that the lake does not have. line NULL: of the file, or of its pending tail."""

    path: str
    line: int | None
    bytes_lost: int | None  # None: nobody can say how many
    why: str

    def __str__(self) -> str:
        place = self.path if self.line is None else f"line {self.line} of {self.path}"
        many = "what follows" if self.bytes_lost is None else f"{self.bytes_lost:,} bytes"
        return f"{place}: {many} cannot be given back: {self.why}"


@dataclass(slots=True)
class RawExport:
    """What was written, and how it differs from what was read."""

    lines: int = 0
    octets: int = 0
    redactions: int = 0
    lost: list[Lost] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Every byte is there, those in whose place a secret stood aside."""
        return not self.lost


def write_raw(lake: Lake, name: str, to: IO[bytes]) -> RawExport:
    """Writes the lines of a source (path or source_id), else of a run (run_id), as they were read."""
    writer = _Writer(lake, to)
    found = find_source(lake, name)
    if found is not None:
        source, original = found
        if original is not None:
            writer.made.notes.append(f"{source.path} holds the same bytes as {original.path}, which was read for it.")
        writer.source(original or source)
        return writer.made
    pieces = _pieces(lake, name)
    if not pieces:
        raise UsageError(
            f"No source and no run of this lake is called {name!r}. "
            "`runlake status --each` lists the sources, `runlake runs` the runs."
        )
    writer.run(pieces)
    return writer.made


@dataclass(slots=True)
class _Piece:
    """What of a run stands in one source: lines first … last, of these runs as the wire names them."""

    first: int
    last: int
    is_cut: bool = False
    wire_runs: set[str] = field(default_factory=set)
    refused: set[tuple[int, int]] = field(default_factory=set)  # line and offset of refusals that are the run's

    def reach(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)


def _pieces(lake: Lake, run: str) -> dict[str, _Piece]:
    """By source, in the order of the run."""
    called = f"run_id = {quoted(run.encode('utf-8', 'replace').decode())}"
    columns = "source_id, wire_run_id, first_line, last_line, is_cut"
    query = f"SELECT {columns} FROM run_pieces WHERE {called} AND NOT is_copy ORDER BY piece, source_id, first_line"
    pieces: dict[str, _Piece] = {}
    for source_id, wire_run, first, last, is_cut in lake.sql(query).fetchall():
        piece = pieces.setdefault(source_id, _Piece(first, last))
        piece.reach(first, last)
        piece.wire_runs.add(wire_run)
        piece.is_cut |= is_cut
    query = f"SELECT source_id, line, byte_offset FROM refusals WHERE {called} AND line IS NOT NULL"
    for source_id, line, byte_offset in lake.sql(f"{query} ORDER BY path, source_id, line").fetchall():
        piece = pieces.setdefault(source_id, _Piece(line, line))
        piece.reach(line, line)
        piece.refused.add((line, byte_offset))
    return pieces


class _Writer:
    def __init__(self, lake: Lake, to: IO[bytes]) -> None:
        self.lake, self.to = lake, to
        self.made = RawExport()
        self.hasher = xxhash.xxh3_128()

    def put(self, octets: bytes) -> None:
        self.to.write(octets)
        self.hasher.update(octets)
        self.made.octets += len(octets)

    def source(self, source: Source) -> None:
        """All bytes of a source."""
        row = source.row
        self.made.redactions = row["redactions"] or 0
        if row["compression"] is not None:
            self.made.notes.append(f"{source.path} is {row['compression']}: these are its bytes decompressed.")
        if row["has_bom"]:
            self.put(BOM)
        if row["skeleton"] is None:
            self.lines(source)
        else:
            self.document(source)
        for refusal in refused_whole(self.lake, source):
            self.put(refusal["raw"])
            self.refused(source, None, refusal, len(refusal["raw"]))
            if refusal["reason"] in UNREADABLE:
                why = f"it could not be read to its end ({refusal['reason']})"
                self.made.lost.append(Lost(source.path, None, None, why))
        if self.made.is_complete and not self.made.redactions and self.hasher.hexdigest() != row["digest"]:
            raise LakeError.damaged(self.lake.path, f"the lines of {source.path} are not those that were read")
        if row["pending_bytes"]:
            tail = row["tail"]
            self.put(tail)
            self.made.lines += 1
            refusal = {"bytes": row["pending_bytes"], "redactions": self.made.redactions, "reason": "pending tail"}
            self.refused(source, source.whole_lines + 1, refusal, len(tail))

    def refused(self, source: Source, line: int | None, refusal: dict[str, Any], kept: int) -> None:
        """Notes what is not kept of refused bytes. Where secrets were replaced, the limit alone tells."""
        size = refusal["bytes"]
        lost = max(size - RAW_LIMIT, 0) if refusal["redactions"] else size - kept
        if lost:
            why = f"{refusal['reason']}, of which the first {RAW_LIMIT:,} bytes are kept"
            self.made.lost.append(Lost(source.path, line, lost, why))

    def lines(self, source: Source) -> None:
        """The lines of a source with the newlines between them."""
        place = _Place(self.lake, source, 0, self.made.octets)
        blanks = (Kept(b["line"], None, b["text"], len(b["text"]), 0) for b in source.row["blanks"] or ())
        found = heapq.merge(lines_of(self.lake, source, 1, source.whole_lines), blanks, key=lambda kept: kept.line)
        for kept in found:
            if kept.line != place.line and place.line:
                self.put(b"\n")
            place.step(kept, joint=kept.line != place.line and place.line > 0)
            self.one(source, kept)
        has_end = place.line > 0 and not source.row["ends_without_newline"]
        if has_end:
            self.put(b"\n")
        self.made.lines += place.line
        whole = sum(refusal["bytes"] for refusal in refused_whole(self.lake, source))
        place.end(source.row["bytes_read"] - whole, joint=has_end)

    def one(self, source: Source, kept: Kept) -> None:
        self.put(kept.octets)
        if kept.reason is not None:
            refusal = {"bytes": kept.size, "redactions": kept.redactions, "reason": kept.reason}
            self.refused(source, kept.line, refusal, len(kept.octets))

    def document(self, source: Source) -> None:
        """The events of a document with the text of its skeleton around them."""
        between = source.row["skeleton"].encode().split(b"\0")
        count = 0
        for count, kept in enumerate(lines_of(self.lake, source, 1, source.whole_lines), 1):
            if kept.line != count or count == len(between):
                break
            self.put(between[count - 1])
            self.one(source, kept)
        if (count, count + 1) != (source.whole_lines, len(between)):
            what = f"the events of the document {source.path} are not those that the ledger counts"
            raise LakeError.damaged(self.lake.path, what)
        self.put(between[-1])
        self.made.lines = count

    def run(self, pieces: dict[str, _Piece]) -> None:
        """The lines of a run: of each source in the order of the run, each on a line of its own."""
        is_ended = True  # the last line had a newline in its source
        for source_id, piece in pieces.items():
            source = source_of(self.lake, source_id)
            before: Kept | None = None
            for kept in self.of_piece(source, piece):
                is_next = before is None or kept.line != before.line
                if self.made.lines and (is_next or not follows(before, kept)):
                    self.put(b"\n")
                self.made.lines += is_next
                self.one(source, kept)
                self.made.redactions += kept.redactions
                before = kept
            if before is not None:
                is_ended = before.line < source.whole_lines or not source.row["ends_without_newline"]
            self.tell_of_piece(source, piece)
        if self.made.lines and is_ended:
            self.put(b"\n")

    def of_piece(self, source: Source, piece: _Piece) -> Iterator[Kept]:
        for kept in lines_of(self.lake, source, piece.first, piece.last, piece.wire_runs):
            if kept.reason is None or (kept.line, kept.byte_offset) in piece.refused:
                yield kept

    def tell_of_piece(self, source: Source, piece: _Piece) -> None:
        row, notes = source.row, self.made.notes
        if row["skeleton"] is not None:
            notes.append(f"{source.path} is one document: these are the run's events in it, one after the other.")
        if row["compression"] is not None:
            notes.append(f"{source.path} is {row['compression']}: these are bytes of it decompressed.")
        if piece.is_cut:
            many = f"{row['pending_bytes']:,} bytes behind the last line of {source.path}"
            notes.append(f"{many} are not yet a line, and of no run.")
        if any(refusal["reason"] in UNREADABLE for refusal in refused_whole(self.lake, source)):
            self.made.lost.append(Lost(source.path, None, None, "the source could not be read to its end"))


def follows(before: Kept | None, kept: Kept) -> bool:
    """True unless a record of another run is known to stand between two records of one line."""
    if before is None or before.size is None or before.byte_offset is None:
        return True
    return kept.byte_offset == before.byte_offset + before.size


class _Place:
    """Where in a source the export stands: each line must follow the one before it, by number and by offset."""

    def __init__(self, lake: Lake, source: Source, line: int, offset: int) -> None:
        self.lake, self.source = lake, source
        self.line = line
        self.offset: int | None = offset  # None behind a line whose length is not known

    def step(self, kept: Kept, *, joint: bool) -> None:
        """Go on to what is kept next; `joint`: a newline stands before it."""
        if kept.line not in (self.line, self.line + 1) or (kept.line == self.line and kept.byte_offset is None):
            is_gap = kept.line > self.line
            raise self.damaged(self.line + 1 if is_gap else kept.line, "is missing" if is_gap else "stands twice")
        if self.offset is not None:
            self.offset += joint
            if kept.byte_offset not in (None, self.offset):
                raise self.damaged(kept.line, f"begins at byte {kept.byte_offset}, and not at {self.offset}")
        at = self.offset if kept.byte_offset is None else kept.byte_offset
        self.line = kept.line
        self.offset = None if at is None or kept.size is None else at + kept.size

    def end(self, offset: int, *, joint: bool) -> None:
        """The source ends here, behind its last line and at this offset."""
        if self.line != self.source.whole_lines:
            raise self.damaged(self.line + 1, "is missing")
        if self.offset is not None and self.offset + joint != offset:
            raise self.damaged(self.line, f"ends at byte {self.offset + joint}, and not at {offset}")

    def damaged(self, line: int, what: str) -> LakeError:
        """The lake contradicts itself; `runlake check` says where else."""
        return LakeError.damaged(self.lake.path, f"line {line} of {self.source.path} {what} (see `runlake check`)")
