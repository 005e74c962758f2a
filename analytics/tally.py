"""What is counted while one source is read: the numbers, runs and refusals that become its row in the ledger."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from analytics.blocks import Refused, sha256
from analytics.lines import Ints, Lines
from analytics.redact import Redactor
from analytics.wires.base import Context, Rows

RAW_LIMIT = 1 << 20
MASK = 2**64 - 1


class Piece(msgspec.Struct):
    """What of one run stands in this source; the struct behind sources.runs."""

    run_id: str
    first_line: int
    last_line: int
    lines: int = 0
    events: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    seq_breaks: int = 0
    first_ts: int | None = None
    last_ts: int | None = None
    first_key: int | None = None
    running_total: int | None = None
    digest: str = "0" * 16
    is_shared: bool = False
    newest_seq: int | None = None  # the last one read, to see the next break; not a column


@dataclass(slots=True)
class Tally:
    """One source while it is read. Numbers go on from `prior` when a grown file is read on."""

    source_id: str
    path: str
    wire: str
    shape: str
    ctx: Context
    line: int = 0  # lines consumed so far
    offset: int = 0  # bytes consumed so far
    event_lines: int = 0
    events: int = 0
    refused_lines: int = 0
    blank_lines: int = 0
    redactions: int = 0
    began_at: int | None = None  # the first time that stands in it, in row order
    pieces: dict[str, Piece] = field(default_factory=dict)
    blanks: list[tuple[int, bytes]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    refusal_count: int = 0
    has_bom: bool = False
    ends_without_newline: bool = False
    pending_bytes: int = 0
    tail: bytes | None = None
    tail_redactions: int = 0  # counted again when the tail becomes a line, so kept apart
    skeleton: str | None = None
    hasher: Any = field(default_factory=xxhash.xxh3_128)

    def refuse(self, reason: str, detail: str | None, *, line: int | None, offset: int, data: bytes,
               size: int | None = None, digest: str | None = None, run_id: str | None = None,
               seq: int | None = None, redactor: Redactor | None = None, part: int = 0) -> None:  # fmt: skip
        """Note a refusal row; `data` is what is kept of the refused bytes."""
        raw, count = redactor.text(data[:RAW_LIMIT]) if redactor else (data[:RAW_LIMIT], 0)
        if redactor and detail:
            detail = redactor.text(detail.encode())[0].decode("utf-8", "replace")
        if redactor and run_id:
            run_id = redactor.text(run_id.encode())[0].decode("utf-8", "replace")
        self.redactions += count
        self.refusal_count += 1
        self.refusals.append({
            "source_id": self.source_id, "path": self.path, "line": line, "part": part, "byte_offset": offset,
            "bytes": len(data) if size is None else size, "reason": reason, "detail": detail, "run_id": run_id,
            "seq": seq, "raw_sha256": digest or sha256(data), "raw": raw, "redactions": count,
        })  # fmt: skip

    def refuse_line(self, refused: Refused, line: int, offset: int, redactor: Redactor | None, *, part: int = 0,
                    is_alone: bool = True) -> None:  # fmt: skip
        """Note a refused line, or a part of one; `is_alone`: nothing else of the line was noted or gave an event."""
        why = refused.refusal
        self.refused_lines += is_alone
        self.refuse(why.reason, why.detail, line=line, offset=offset, data=refused.line, run_id=why.run_id,
                    seq=why.seq, redactor=redactor, part=part)  # fmt: skip

    def blank(self, line: int, text: bytes) -> None:
        """Note a line of white space."""
        self.blank_lines += 1
        self.blanks.append((line, text))

    def count(self, rows: Rows, first: int, line: Ints, hashes: list[int], redactions: dict[int, int]) -> None:
        """Add the good rows of a span to the counters and to the pieces of their runs.

        `first` is the span's first row among those that `line`, `hashes` and the keys of `redactions` number.
        """
        kept = [i for i in range(rows.n) if i not in rows.refused] if rows.refused else range(rows.n)
        if not kept:
            return
        self.event_lines += distinct(line, first, kept)
        self.events += len(kept) + len(rows.parts)
        if redactions:
            self.redactions += sum(redactions.get(first + i, 0) for i in kept)
        run_ids = rows.columns.get("run_id")
        groups: dict[str, list[int] | range] = {}
        if run_ids is None:
            groups[rows.constants["run_id"]] = kept
        elif len(names := set(run_ids)) == 1:
            groups[names.pop()] = kept
        else:
            split: dict[str, list[int]] = {}
            for i in kept:
                split.setdefault(run_ids[i], []).append(i)
            groups.update(split)
        extra: dict[str, int] = {}
        totals: dict[str, int] = {}
        for i, values in rows.parts:
            name = values.get("run_id") or (run_ids[i] if run_ids is not None else rows.constants["run_id"])
            extra[name] = extra.get(name, 0) + 1
            if values.get("usage_scope") == "cumulative" and values.get("usage_key") is not None:
                known = [values[key] for key in ("input_tokens", "output_tokens") if values.get(key) is not None]
                if known:
                    totals[name] = max(totals.get(name, 0), sum(known))
        for name, members in groups.items():
            piece = self._piece(name, members, rows, first, line, hashes)
            piece.events += extra.get(name, 0)
            if name in totals:
                piece.running_total = max(piece.running_total or 0, totals[name])

    def _piece(
        self, name: str, members: list[int] | range, rows: Rows, first: int, line: Ints, hashes: list[int]
    ) -> Piece:
        first_line, last_line = int(line[first + members[0]]), int(line[first + members[-1]])
        piece = self.pieces.get(name)
        if piece is None:
            piece = self.pieces[name] = Piece(name, first_line, last_line)
        piece.last_line = last_line
        piece.lines += distinct(line, first, members)
        piece.events += len(members)
        is_all = len(members) == rows.n
        total = sum(hashes[first : first + rows.n]) if is_all else sum([hashes[first + i] for i in members])
        piece.digest = f"{(int(piece.digest, 16) + total) & MASK:016x}"
        seqs = rows.columns.get("seq")
        if seqs is not None:
            self._sequence(piece, seqs if is_all else [seqs[i] for i in members])
        stamps = rows.columns.get("ts")
        if stamps is not None:
            if self.began_at is None:
                self.began_at = _first(stamps, members)
            low, high = _bounds(stamps, None if is_all else members)
            if low is not None and high is not None:
                piece.first_ts = low if piece.first_ts is None else min(piece.first_ts, low)
                piece.last_ts = high if piece.last_ts is None else max(piece.last_ts, high)
        if piece.first_key is None and (keys := rows.columns.get("event_key")) is not None:
            piece.first_key = next((keys[i] for i in members if keys[i] is not None), None)
        shared = rows.constants.get("is_shared_run")
        piece.is_shared = piece.is_shared or bool(shared)
        return piece

    @staticmethod
    def _sequence(piece: Piece, seqs: Sequence[int | None]) -> None:
        known = [seq for seq in seqs if seq is not None]
        if not known:
            return
        begin = known[0]
        if piece.newest_seq is not None and begin != piece.newest_seq + 1:
            piece.seq_breaks += 1
        low, high = begin, known[-1]
        if known != list(range(begin, begin + len(known))):
            piece.seq_breaks += sum(after != before + 1 for before, after in itertools.pairwise(known))
            low, high = min(known), max(known)
        piece.first_seq = low if piece.first_seq is None else min(piece.first_seq, low)
        piece.last_seq = high if piece.last_seq is None else max(piece.last_seq, high)
        piece.newest_seq = known[-1]

    def resume_state(self) -> str:
        """JSON to read on from `offset`: the wire's state, and the newest sequence number of each run."""
        newest = {name: piece.newest_seq for name, piece in self.pieces.items() if piece.newest_seq is not None}
        state = msgspec.json.encode(
            {"wire": self.ctx.state, "newest_seq": newest, "tail_redactions": self.tail_redactions}
        )
        return state.decode()

    def row(self) -> dict[str, Any]:
        """The source's columns that reading fills; the driver adds path, stat and revision."""
        pieces = []
        for piece in self.pieces.values():
            values = msgspec.structs.asdict(piece)
            del values["newest_seq"]
            pieces.append(values)
        return {
            "bytes_read": self.offset, "digest": self.hasher.hexdigest(), "lines": self.line + (self.pending_bytes > 0),
            "event_lines": self.event_lines, "events": self.events, "refused_lines": self.refused_lines,
            "refusals": self.refusal_count, "blank_lines": self.blank_lines, "pending_bytes": self.pending_bytes,
            "tail": self.tail, "redactions": self.redactions + self.tail_redactions, "has_bom": self.has_bom,
            "ends_without_newline": self.ends_without_newline,
            "blanks": [{"line": line, "text": text} for line, text in self.blanks],
            "skeleton": self.skeleton, "began_at": self.began_at, "runs": pieces,
            "resume_state": self.resume_state(), "shape": self.shape,
        }  # fmt: skip


def distinct(line: Ints, first: int, members: Sequence[int] | range) -> int:
    """How many lines these rows stand on; several records may stand on one, next to each other."""
    is_run = isinstance(members, range)
    numbers = line[first + members[0] : first + members[-1] + 1] if is_run else line[np.asarray(members) + first]
    return int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1


def _first(stamps: Sequence[int | None] | pa.Array, members: Sequence[int]) -> int | None:
    """The first of the members' times that is known."""
    for i in members:
        at = stamps[i]
        at = at.as_py() if isinstance(at, pa.Scalar) else at
        if at is not None:
            return at if isinstance(at, int) else int(at.value)
    return None


def _bounds(stamps: Sequence[int | None] | pa.Array, members: Sequence[int] | None) -> tuple[int | None, int | None]:
    """The lowest and the highest that is known of the members (None: of all)."""
    known = stamps if isinstance(stamps, pa.Array) else pa.array(stamps, pa.int64())
    found = pc.min_max(known if members is None else known.take(pa.array(members, pa.int64()))).as_py()
    return found["min"], found["max"]


def line_hashes(lines: Lines, index: Ints) -> list[int]:
    """xxh3-64 of the lines of the index."""
    hashed, buffer = xxhash.xxh3_64_intdigest, lines.buffer
    bounds = zip(lines.starts[index].tolist(), lines.ends[index].tolist(), strict=True)
    return [hashed(buffer[start:end]) for start, end in bounds]


def key_by_line(rows: Rows, hashes: list[int]) -> None:
    """Where its wire says so, a record with no key of its own is known by its bytes; `hashes` are the rows' lines'."""
    if not rows.constants.get("is_line_key"):
        return
    own = np.array(hashes, np.uint64).view(np.int64).tolist()
    said = rows.columns.get("event_key")
    if said is not None:
        own = [line if key is None else key for key, line in zip(said, own, strict=True)]
    rows.columns["event_key"] = own
