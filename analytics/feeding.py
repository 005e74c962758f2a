"""The block: whole lines of one or many sources, filled from streams, decoded at once, handed on as rows.

A line longer than the limit is read past in pieces, never held; an unterminated last line is a line where nothing can
follow it, and pending where the file may still grow.
"""

from __future__ import annotations

import hashlib
import sys
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analytics import columns, key_lines, reading
from analytics.blocks import Decoded, LineDecoder, Refused
from analytics.lines import Ints, Lines
from analytics.redact import Redactor
from analytics.tally import HELD_BYTES, RAW_LIMIT, Tally, kept_of, key_by_line, line_hashes
from analytics.wires.base import Refusal
from analytics.writing import Writers

BLOCK_BYTES = 8 << 20
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
    """Lines first … last-1 of the block, all of one source; the first of them is line `first_line` of the source."""

    tally: Tally
    first_line: int
    first: int
    last: int


class Block:
    """The buffer of one worker."""

    def __init__(self, writers: Writers, advance: Advance, max_line_bytes: int, redactor: Redactor | None) -> None:
        self.writers, self.advance, self.max_line_bytes, self.redactor = writers, advance, max_line_bytes, redactor
        self.fill = 0
        self.segments: list[Segment] = []
        self.decoder: LineDecoder | None = None
        self._resize(max(BLOCK_BYTES, reading.HEAD_BYTES))

    def _resize(self, size: int) -> None:
        """One byte more than is read into it: an unterminated last line may need a newline of ours."""
        self.size = size
        self.buffer = self.writers.buffer(size + 1)

    def begin(self, stream: reading.Stream) -> int:
        """Read the first bytes of a source behind what the block holds; they end at the place that is returned."""
        if self.size - self.fill < reading.HEAD_BYTES:
            self.flush()
        with memoryview(self.buffer) as view:
            return self.fill + reading.fill(stream, view[self.fill : self.fill + reading.HEAD_BYTES])

    def more(self, stream: reading.Stream, filled: int) -> int:
        """Read on behind what `begin` read, as far as the block goes; it stands at the block's beginning then."""
        filled = self._start_anew(filled)
        with memoryview(self.buffer) as view:
            return filled + reading.fill(stream, view[filled : self.size])

    def _start_anew(self, filled: int) -> int:
        """Hand on what the block holds, and put what `begin` read at its beginning; returns where that ends."""
        start, before = self.fill, self.buffer
        self.flush()
        if start:
            self.buffer[: filled - start] = before[start:filled]  # a copy: both may be one buffer
        return filled - start

    def cut_beginning(self, size: int, filled: int) -> int:
        """Forget the first bytes that `begin` read; returns where what is left of them ends."""
        self.buffer[self.fill : filled - size] = self.buffer[self.fill + size : filled]
        return filled - size

    def take(self, opened: reading.Opened, tally: Tally, decoder: LineDecoder, filled: int | None = None) -> None:
        """All lines of a source; what `begin` read of it stands before `filled`."""
        start = self.fill
        filled = start if filled is None else filled
        if self.decoder is not decoder or self.size - filled < ROOM_BYTES:
            start, filled = 0, self._start_anew(filled)
        self.decoder = decoder
        self.advance(filled - start, 0)
        broken: reading.SourceDefect | None = None
        while True:
            if filled == self.size:
                start, filled = self._make_room(opened, tally, start, filled)
            try:
                with memoryview(self.buffer) as view:
                    got = opened.stream.readinto(view[filled : self.size])
            except reading.SourceDefect as error:
                broken, got = error, 0
            if not got:
                break
            self.advance(got, 0)
            filled += got
        self._end(opened, tally, decoder, start, filled)
        if broken is not None:
            tally.refuse(broken.reason, str(broken), line=None, offset=tally.offset, data=b"", redactor=self.redactor)

    def _make_room(self, opened: reading.Opened, tally: Tally, start: int, filled: int) -> tuple[int, int]:
        """The block is full: hand on its whole lines, keep the rest; a line beyond the limit is read past."""
        cut = max(self.buffer.rfind(b"\n", start, filled) + 1, start)
        if cut > start:
            self._segment(tally, start, cut, is_terminated=True)
        with memoryview(self.buffer) as view:
            rest = bytes(view[cut:filled])
        self.fill = cut
        self.flush()
        if len(rest) > self.max_line_bytes:
            rest = self._skip_long_line(opened, tally, rest)
        wanted = max(BLOCK_BYTES, reading.HEAD_BYTES, 2 * len(rest))
        if wanted != self.size:
            self._resize(wanted)
        self.buffer[: len(rest)] = rest
        return 0, len(rest)

    def _skip_long_line(self, opened: reading.Opened, tally: Tally, begun: bytes) -> bytes:
        """Read past a line that is longer than the limit and refuse it; returns what follows it."""
        digest = hashlib.sha256(begun)
        tally.hasher.update(begun)
        size, view = len(begun), memoryview(bytearray(1 << 20))
        kept = begun[:HELD_BYTES]  # as much as of any refusal, wherever in the block the line began
        rest, is_terminated = b"", False
        while not is_terminated:
            try:
                got = opened.stream.readinto(view)
            except reading.SourceDefect:
                break  # the next read raises it again, where what was read so far is already counted
            if not got:
                break
            self.advance(got, 0)
            data = bytes(view[:got])
            cut = data.find(b"\n")
            if cut >= 0:
                is_terminated, rest, data = True, data[cut + 1 :], data[:cut]
            digest.update(data)
            tally.hasher.update(data)
            size += len(data)
            kept += data[: HELD_BYTES - len(kept)]
        detail = f"{size} bytes, the limit is {self.max_line_bytes}"
        tally.line += 1
        tally.refused_lines += 1
        tally.refuse("line_too_long", detail, line=tally.line, offset=tally.offset, data=kept,
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
            self.buffer[filled] = 10
            tally.ends_without_newline = True
            self._segment(tally, cut, filled + 1, is_terminated=False)
            self.fill = filled + 1
            return
        tail = bytes(self.buffer[cut:filled])
        tally.pending_bytes = len(tail)
        if self.redactor is None:
            tally.tail = tail[:RAW_LIMIT]
            return
        clean = key_lines.part(tail)[1]
        if clean is not None:  # it could be part of a key; the lines before it tell
            self.flush()
        if clean is not None and tally.is_inside_key:
            tally.tail, tally.tail_redactions = clean, 1
        else:
            tally.tail, tally.tail_redactions = kept_of(tail, self.redactor)

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
        lines = Lines.find(self.buffer, end)
        self.advance(0, len(lines))
        lent = self.buffer if end * 2 > self.size else None
        kept = lent or bytes(memoryview(self.buffer)[:end])  # few bytes must not hold a whole buffer back
        contexts = [segment.tally.ctx for segment in segments]
        bounds = self._bounds(lines, segments)
        decoded = decoder.decode(lines, lines.texts(kept), bounds[:-1], contexts)
        parted = decoder.parted(decoded)
        if parted:
            lines = lines.split(parted)
            bounds = self._bounds(lines, segments)
            decoded = decoder.decode(lines, lines.texts(kept), bounds[:-1], contexts)
        if self.redactor is not None:
            self._hide_keys(decoder, lines, decoded, segments, bounds, end)
        spans = []
        for segment, first, last in zip(segments, bounds, bounds[1:], strict=False):
            spans.append(Span(segment.tally, segment.tally.line + 1, first, last))
            begin, final = lines.numbers(np.array([first, last - 1])).tolist()
            segment.tally.line += final - begin + 1
        shifts = np.array([segment.shift for segment in segments])
        self.emit(decoder, lines, decoded, spans, lines.starts + np.repeat(shifts, np.diff(bounds)), lent)
        if lent is not None:
            self.buffer = self.writers.buffer(self.size + 1)

    def _hide_keys(
        self, decoder: LineDecoder, lines: Lines, decoded: Decoded, segments: list[Segment], bounds: list[int], end: int
    ) -> None:
        """Private keys over several lines of plain text, also over the end of a block."""
        is_none = not decoded.may_hold_secrets or self.buffer.find(key_lines.HEADER, 0, end) < 0
        if is_none and not any(segment.tally.is_inside_key for segment in segments):
            return
        kept: dict[int, bytes] = {}
        for segment, first, last in zip(segments, bounds, bounds[1:], strict=False):
            tally = segment.tally
            found, tally.is_inside_key = key_lines.find(
                self.buffer, lines, first, last, is_inside=tally.is_inside_key
            )  # fmt: skip
            kept |= found
        if kept:
            decoder.hide(decoded, kept)

    @staticmethod
    def _bounds(lines: Lines, segments: list[Segment]) -> list[int]:
        """The line at which each segment begins, and one more."""
        return [0, *(np.searchsorted(lines.ends, [s.end - 1 for s in segments]) + 1).tolist()]

    def emit(
        self, decoder: LineDecoder, lines: Lines, decoded: Decoded, spans: list[Span], offsets: Ints,
        lent: bytearray | None = None,
    ) -> None:  # fmt: skip
        """Decoded lines to rows, rows to the wire's writer, and everything to the tallies.

        `lent`: the buffer that the payload points into, if the writer is to give it back.
        """
        firsts = [span.first for span in spans]
        rows = [*np.searchsorted(decoded.index, firsts).tolist(), len(decoded.objects)]
        placed = [
            columns.Placed(decoder.wire.read(decoded.objects[first:last], span.tally.ctx), span.tally.source_id, first)
            for span, first, last in zip(spans, rows, rows[1:], strict=False)
        ]
        decoded.objects.clear()
        shifts = np.array([span.first_line for span in spans]) - lines.numbers(np.array(firsts, np.int64))
        line = lines.numbers(decoded.index) + np.repeat(shifts, np.diff(rows))
        hashes = line_hashes(lines, decoded.index)
        for place in placed:
            key_by_line(place.rows, hashes[place.first : place.first + place.rows.n])
            columns.settle_times(place.rows)
        is_glued = lines.physical is not None
        size = int((lines.ends - lines.starts).sum())
        try:
            batch = columns.batch(placed, decoded, line, offsets[decoded.index], size, is_glued=is_glued)
        except OverflowError:
            for place in placed:
                columns.refuse_wide_integers(place.rows)
            batch = columns.batch(placed, decoded, line, offsets[decoded.index], size, is_glued=is_glued)
        batch.buffer = lent
        self.writers.events(spans[0].tally.wire, batch)
        refused = list(decoded.refused)
        for place in placed:
            at = [int(decoded.index[place.first + i]) for i in place.rows.refused]
            whys = place.rows.refused.values()
            refused += [Refused(j, torn(why, lines, j), lines.line(j)) for j, why in zip(at, whys, strict=True)]
        if getattr(decoder.wire, "recovers_glued", False):
            refused = [with_run(one, decoded, spans, placed) for one in refused]
        self._refusals(refused, lines, decoded, spans, offsets, decoder)
        redactions = columns.by_row(decoded.redactions, decoded.index)
        for span, place in zip(spans, placed, strict=True):
            span.tally.count(place.rows, place.first, line, hashes, redactions)

    @staticmethod
    def _refusals(
        refused: list[Refused], lines: Lines, decoded: Decoded, spans: list[Span], offsets: Ints, decoder: LineDecoder
    ) -> None:
        """Tell the tallies of refused and blank lines. A line that several records stand on is refused in part."""
        if not refused and not decoded.blanks:
            return
        firsts = [span.first for span in spans]
        rejected = {one.index for one in refused}
        kept = set(lines.numbers(decoded.index[~np.isin(decoded.index, list(rejected))]).tolist())
        seen: set[int] = set()
        for one in sorted(refused, key=lambda r: r.index):
            span = spans[bisect_right(firsts, one.index) - 1]
            begin, number = lines.numbers(np.array([span.first, one.index])).tolist()
            is_alone = number not in kept and number not in seen
            seen.add(number)
            part = 0 if lines.physical is None else one.index - int(np.searchsorted(lines.physical, number))
            at = span.first_line + number - begin
            span.tally.refuse_line(one, at, int(offsets[one.index]), decoder.redactor, part=part, is_alone=is_alone)
        for j, text in decoded.blanks:
            span = spans[bisect_right(firsts, j) - 1]
            begin, number = lines.numbers(np.array([span.first, j])).tolist()
            span.tally.blank(span.first_line + number - begin, text)


def torn(why: Refusal, lines: Lines, j: int) -> Refusal:
    """The same; a part of a line that breaks off before another record is called what it is."""
    return replace(why, reason="torn_record") if why.reason == "not_json" and lines.is_glued(j) else why


def with_run(one: Refused, decoded: Decoded, spans: list[Span], placed: list[columns.Placed]) -> Refused:
    """The same, with the run of the row before it in its source, where it names none itself.

    Right where a file belongs to one session, so that what was lost there can be told of a run. Before the first row
    none is known: how much of the source was read at once must not show.
    """
    if one.refusal.run_id is not None:
        return one
    at = bisect_right([span.first for span in spans], one.index) - 1
    span, rows = spans[at], placed[at].rows
    i = int(np.searchsorted(decoded.index, one.index)) - placed[at].first - 1
    while i >= 0 and i in rows.refused:
        i -= 1
    run_id = rows.value("run_id", i) if i >= 0 else span.tally.newest_run()
    if run_id is None:
        return one
    return Refused(one.index, replace(one.refusal, run_id=run_id), one.line, one.kept)
