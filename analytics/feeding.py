"""The block: whole lines of one or many sources, filled from streams, decoded at once, handed on as rows.

A line longer than the limit is read past in pieces, never held; an unterminated last line is a line where nothing can
follow it, and pending where the file may still grow.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics import columns, reading
from analytics.blocks import Decoded, LineDecoder, Lines, Refused
from analytics.redact import Redactor
from analytics.tally import RAW_LIMIT, Tally
from analytics.writing import Writers

BLOCK_BYTES = 8 << 20
TOGETHER_BYTES = 96 << 10  # pieces smaller than this on average are decoded in one call
ROOM_BYTES = 64 << 10
Advance = Callable[[int, int], None]  # told the bytes and the lines that were read


@dataclass(slots=True)
class Segment:
    """Whole lines of one source inside the block; `shift` turns a place in the block into a byte offset."""

    tally: Tally
    start: int
    end: int
    shift: int


@dataclass(slots=True)
class Span:
    """Decoded lines of one source. `offsets`: where each line stands, if not at its place plus `shift`."""

    tally: Tally
    first_line: int
    decoded: Decoded
    lines: Lines
    shift: int = 0
    offsets: Any = None

    def byte_offsets(self, index: Any) -> Any:
        """The byte offsets in the source of lines, by their index."""
        return self.lines.starts[index] + self.shift if self.offsets is None else self.offsets[index]


class Block:
    """The buffer of one worker."""

    def __init__(self, writers: Writers, advance: Advance, max_line_bytes: int, redactor: Redactor | None) -> None:
        self.writers, self.advance, self.max_line_bytes, self.redactor = writers, advance, max_line_bytes, redactor
        self.buffer = bytearray(BLOCK_BYTES)
        self.fill = 0
        self.segments: list[Segment] = []
        self.decoder: LineDecoder | None = None

    def take(self, opened: reading.Opened, tally: Tally, decoder: LineDecoder, head: bytes) -> None:
        """All lines of a source; `head` was read already."""
        if self.decoder is not decoder or len(self.buffer) - self.fill < len(head) + ROOM_BYTES:
            self.flush()
        self.decoder = decoder
        start, filled = self.fill, self.fill + len(head)
        self.buffer[start:filled] = head
        self.advance(len(head), 0)
        broken: OSError | None = None
        while True:
            if filled == len(self.buffer):
                start, filled = self._make_room(opened, tally, start, filled)
            try:
                with memoryview(self.buffer) as view:
                    got = opened.stream.readinto(view[filled:])
            except (reading.BrokenCompression, reading.RatioExceeded) as error:
                broken, got = error, 0
            if not got:
                break
            self.advance(got, 0)
            filled += got
        self._end(opened, tally, decoder, start, filled)
        if broken is not None:
            reason = "compression_ratio" if isinstance(broken, reading.RatioExceeded) else "compressed_data_broken"
            tally.refuse(reason, str(broken), line=None, offset=tally.offset, data=b"", redactor=self.redactor)

    def _make_room(self, opened: reading.Opened, tally: Tally, start: int, filled: int) -> tuple[int, int]:
        """The block is full: hand on its whole lines, keep the rest; a line beyond the limit is read past."""
        cut = max(self.buffer.rfind(b"\n", start, filled) + 1, start)
        if cut > start:
            self._segment(tally, start, cut, is_terminated=True)
        rest = bytes(memoryview(self.buffer)[cut:filled])
        self.fill = cut
        self.flush()
        if len(rest) > self.max_line_bytes:
            rest = self._skip_long_line(opened, tally, rest)
        wanted = max(BLOCK_BYTES, 2 * len(rest))
        if wanted != len(self.buffer):
            self.buffer = bytearray(wanted)
        self.buffer[: len(rest)] = rest
        return 0, len(rest)

    def _skip_long_line(self, opened: reading.Opened, tally: Tally, begun: bytes) -> bytes:
        """Read past a line that is longer than the limit and refuse it; returns what follows it."""
        digest = hashlib.sha256(begun)
        tally.hasher.update(begun)
        size, view = len(begun), memoryview(bytearray(1 << 20))
        rest, is_terminated = b"", False
        while not is_terminated and (got := opened.stream.readinto(view)):
            self.advance(got, 0)
            data = bytes(view[:got])
            cut = data.find(b"\n")
            if cut >= 0:
                is_terminated, rest, data = True, data[cut + 1 :], data[:cut]
            digest.update(data)
            tally.hasher.update(data)
            size += len(data)
        detail = f"{size} bytes, the limit is {self.max_line_bytes}"
        tally.line += 1
        tally.refused_lines += 1
        tally.refuse("line_too_long", detail, line=tally.line, offset=tally.offset, data=begun[:RAW_LIMIT],
                     size=size, digest=digest.hexdigest(), redactor=self.redactor)  # fmt: skip
        tally.offset += size + is_terminated
        tally.ends_without_newline = not is_terminated
        if is_terminated:
            tally.hasher.update(b"\n")
        return rest

    def _end(self, opened: reading.Opened, tally: Tally, decoder: LineDecoder, start: int, filled: int) -> None:
        """The end of a source: its last lines, and an unterminated tail as a line or as pending."""
        cut = max(self.buffer.rfind(b"\n", start, filled) + 1, start)
        if cut > start:
            self._segment(tally, start, cut, is_terminated=True)
        self.fill = cut
        if cut == filled:
            return
        wire, shape = decoder.wire, decoder.shape
        is_closed = opened.compression is not None or opened.file is sys.stdin.buffer
        if wire.is_final_without_newline(shape) or (is_closed and not wire.needs_newline(shape)):
            if filled == len(self.buffer):
                self.buffer.append(10)
            self.buffer[filled] = 10
            tally.ends_without_newline = True
            self._segment(tally, cut, filled + 1, is_terminated=False)
            self.fill = filled + 1
            return
        tail = bytes(memoryview(self.buffer)[cut:filled])
        tally.pending_bytes = len(tail)
        tally.tail, count = self.redactor.text(tail[:RAW_LIMIT]) if self.redactor else (tail[:RAW_LIMIT], 0)
        tally.redactions += count

    def _segment(self, tally: Tally, start: int, end: int, *, is_terminated: bool) -> None:
        """Note whole lines of a source; the newline that ends an unterminated last line is ours, not the source's."""
        real = end - start - (not is_terminated)
        self.segments.append(Segment(tally, start, end, tally.offset - start))
        with memoryview(self.buffer) as view:
            tally.hasher.update(view[start : start + real])
        tally.offset += real

    def flush(self) -> None:
        """Decode the block and hand its rows to the writers."""
        segments, self.segments = self.segments, []
        end, self.fill = self.fill, 0
        if not segments or self.decoder is None:
            return
        decoder = self.decoder
        lines = Lines.find(memoryview(bytes(memoryview(self.buffer)[:end])))
        self.advance(0, len(lines))
        last = np.searchsorted(lines.ends, np.array([s.end - 1 for s in segments])) + 1
        bounds = [0, *last.tolist()]
        # large pieces are decoded one by one: a bad line then costs its own piece a second look, not the whole block
        together = decoder.fast(lines) if end < len(segments) * TOGETHER_BYTES else None
        whole = None
        if together is not None:
            whole = Decoded(np.arange(len(lines)), *together)
            decoder.redact(whole)
        spans = []
        for k, segment in enumerate(segments):
            piece = lines.slice(bounds[k], bounds[k + 1])
            if whole is None:
                decoded = decoder.decode(piece, segment.tally.ctx)
            else:
                decoded = whole.slice(bounds[k], bounds[k + 1])
            spans.append(Span(segment.tally, segment.tally.line + 1, decoded, piece, segment.shift))
            segment.tally.line += len(piece)
        self.emit(spans, decoder)

    def emit(self, spans: list[Span], decoder: LineDecoder) -> None:
        """Decoded spans to rows, rows to the wire's writer, and everything to the tallies."""
        placed = []
        for span in spans:
            decoded, index = span.decoded, span.decoded.index
            rows = decoder.wire.read(decoded.objects, span.tally.ctx)
            raw = decoded.raw
            if raw and decoder.redactor:
                raw = {j: decoder.redactor.text(octets)[0] for j, octets in raw.items()}
            placed.append(
                columns.Placed(rows, span.tally.source_id, index + span.first_line, span.byte_offsets(index),
                               decoded.payload, raw, decoded.redactions)
            )  # fmt: skip
        try:
            batch = columns.batch(placed)
        except OverflowError:
            for place in placed:
                columns.refuse_wide_integers(place.rows)
            batch = columns.batch(placed)
        if batch.num_rows:
            self.writers.events(spans[0].tally.wire, batch)
        for span, place in zip(spans, placed, strict=True):
            _tell(span, place, decoder.redactor)


def _tell(span: Span, place: columns.Placed, redactor: Redactor | None) -> None:
    """Count a span's rows, refusals and blank lines in its tally."""
    tally, decoded, lines, rows = span.tally, span.decoded, span.lines, place.rows
    refused = list(decoded.refused)
    for i, why in rows.refused.items():
        j = int(decoded.index[i])
        refused.append(Refused(j, why, lines.line(j)))
    for one in sorted(refused, key=lambda r: r.index):
        tally.refuse_line(one, span.first_line, int(span.byte_offsets(one.index)), redactor)
    for index, text in decoded.blanks:
        tally.blank_lines += 1
        tally.blanks.append((span.first_line + index, text))
    tally.count(rows, place.line, lines, decoded.index, decoded.redactions)
