"""Rows of wires to Arrow: one record batch per block, extra parts in their place, refused rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.arrays import Flags, Ints, array, nulls, scatter
from analytics.blocks import Decoded
from analytics.schema import EVENT, Column, arrow_schema, arrow_type
from analytics.wires.base import MAX_INT, Refusal, Rows

INHERITED = ("run_id", "run_id_origin", "seq", "ts", "ts_origin", "event", "event_key")
PLACED = frozenset({"wire", "source_id", "line", "part", "byte_offset", "payload", "raw", "redactions"})
COLUMNS: tuple[Column, ...] = tuple(c for c in EVENT if c.name not in PLACED)
PAYLOAD_AT = arrow_schema("event").get_field_index("payload")
BESIDE_PAYLOAD = arrow_schema("event").remove(PAYLOAD_AT)


@dataclass(slots=True)
class Placed:
    """Rows of one span; the first is row `first` of the block."""

    rows: Rows
    source_id: str
    first: int


@dataclass(slots=True)
class Batch:
    """Event rows of a block: all columns but the payload, and the payload, whose texts stay where they were read."""

    rows: pa.RecordBatch
    payload: pa.StringViewArray
    payload_bytes: int
    buffer: bytearray | None = None  # what the payload's views point into, to be used again once they are written


def settle_times(rows: Rows) -> None:
    """Row times as an Arrow array, which both the tally and the table read; not if one of them does not fit."""
    stamps = rows.columns.get("ts")
    if isinstance(stamps, list):
        with suppress(OverflowError):  # refused by name, together with all other wide numbers
            rows.columns["ts"] = pa.array(stamps, pa.int64())


def refuse_wide_integers(rows: Rows) -> None:
    """Refuse lines that hold an integer beyond 64 bits; called only after Arrow found one."""
    for column in COLUMNS:
        if column.type not in ("int", "time"):
            continue
        name = column.name
        wide = [i for i, part in rows.parts if not _fits(part.get(name))]
        for places, said in rows.said(name):
            wide += [i for i, value in zip(places, said, strict=True) if not _fits(value)]
        for i in wide:
            rows.refused.setdefault(i, Refusal("number_out_of_range", f"{name} does not fit 64 bits"))
        for _, said in rows.said(name) if wide else ():
            if isinstance(said, list):
                said[:] = [value if _fits(value) else None for value in said]
    rows.parts = [(i, values) for i, values in rows.parts if i not in rows.refused]


def _fits(value: Any) -> bool:
    return not isinstance(value, int) or -MAX_INT - 1 <= value <= MAX_INT


@dataclass(slots=True)
class _Parts:
    """The parts of a block's lines: part k is of row `at[k]`, and stands at `places[k]` of the `total` final rows."""

    at: Ints
    numbers: list[int]
    values: list[dict[str, Any]]
    total: int
    places: Ints = field(init=False)
    rows: Ints = field(init=False)  # per final row the row it is of
    shifts: Ints = field(init=False)  # per row how many parts stand before it
    names: set[str] = field(init=False)  # the columns that some part names

    def __post_init__(self) -> None:
        rows = np.arange(self.total - len(self.at))
        self.places = self.at + 1 + np.arange(len(self.at))
        self.rows = np.insert(rows, self.at + 1, self.at) if len(self.at) else rows
        self.shifts = np.searchsorted(self.at, rows)
        self.names = {name for values in self.values for name in values}

    def widened(self, values: Ints) -> Ints:
        """A part has what its line has."""
        return values[self.rows] if len(self.at) else values


@dataclass(slots=True)
class _Cells:
    """What the spans of a block say of one column: (first row, count, values) or (places, values)."""

    dense: list[tuple[int, int, Sequence[Any]]] = field(default_factory=list)
    constant: list[tuple[int, int, Any]] = field(default_factory=list)
    places: list[Ints] = field(default_factory=list)
    values: list[Sequence[Any]] = field(default_factory=list)


def batch(
    spans: Sequence[Placed], decoded: Decoded, line: Ints, byte_offset: Ints, payload_bytes: int, *,
    is_glued: bool = False,
) -> Batch:  # fmt: skip
    """The event rows of a block, in order. Raises OverflowError on an integer beyond 64 bits.

    `is_glued`: several rows may stand on one line next to each other, so parts are numbered over all of them.
    """
    n = len(line)
    parts = _parts(spans, n)
    said = _cells(spans)
    arrays: dict[str, pa.Array] = {}
    for column in COLUMNS:
        cells = said.get(column.name)
        arrays[column.name] = _column(column, cells or _Cells(), n, parts)
    sizes = [span.rows.n for span in spans]
    source = parts.widened(np.repeat(np.arange(len(spans)), sizes))
    arrays["source_id"] = pa.array([span.source_id for span in spans], pa.string()).take(pa.array(source))
    arrays["line"], arrays["byte_offset"] = pa.array(parts.widened(line)), pa.array(parts.widened(byte_offset))
    number, redactions = np.zeros(parts.total, np.int64), np.zeros(n, np.int64)
    number[parts.places] = parts.numbers
    refused = [span.first + i for span in spans for i in span.rows.refused]
    kept = np.ones(n, np.int64)
    kept[refused] = 0
    kept = parts.widened(kept)
    if is_glued:
        number = _places(source, parts.widened(line), kept)
    for row, count in by_row(decoded.redactions, decoded.index).items():
        redactions[row] = count
    redactions = parts.widened(redactions)
    redactions[parts.places] = 0
    arrays["part"], arrays["redactions"] = pa.array(number), pa.array(redactions)
    arrays["raw"] = _raw(decoded, parts)
    made = pa.RecordBatch.from_arrays([arrays[name] for name in BESIDE_PAYLOAD.names], schema=BESIDE_PAYLOAD)
    if refused:
        made = made.filter(pa.array(kept == 1))
    payload = _payload(decoded, parts, kept == 1)
    return Batch(made, payload, payload_bytes)


def _places(source: Ints, line: Ints, kept: Ints) -> Ints:
    """For each row, how many rows that are kept of the same line stand before it."""
    is_new = np.append(True, (np.diff(line) != 0) | (np.diff(source) != 0))
    starts, before = np.flatnonzero(is_new), np.cumsum(kept) - kept
    return before - np.repeat(before[starts], np.diff(np.append(starts, len(line))))


def by_row(by_line: Mapping[int, Any], index: Ints) -> dict[int, Any]:
    """The same, keyed by row: the place of the line in `index`."""
    if not by_line:
        return {}
    return dict(zip(np.searchsorted(index, list(by_line)).tolist(), by_line.values(), strict=True))


def _payload(decoded: Decoded, parts: _Parts, is_kept: Flags) -> pa.StringViewArray:
    """The payload of all rows that are kept, which stands on the first of a line; its parts have none."""
    rows = parts.widened(decoded.index).copy()
    rows[parts.places] = -1
    return decoded.payload.column(rows[is_kept])


def _parts(spans: Sequence[Placed], n: int) -> _Parts:
    at: list[int] = []
    numbers: list[int] = []
    values: list[dict[str, Any]] = []
    for span in spans:
        before = number = -1
        for i, said in sorted(span.rows.parts, key=lambda part: part[0]):
            number = number + 1 if i == before else 1
            before = i
            at.append(span.first + i)
            numbers.append(number)
            values.append(said)
    return _Parts(np.array(at, np.int64), numbers, values, n + len(at))


def _cells(spans: Sequence[Placed]) -> dict[str, _Cells]:
    """What the rows of all spans say, per column."""
    said: dict[str, _Cells] = {}

    def of(name: str) -> _Cells:
        cells = said.get(name)
        if cells is None:
            cells = said[name] = _Cells()
        return cells

    for span in spans:
        rows, first = span.rows, span.first
        if not rows.n:  # lines that were all refused; a piece of no length would take the place of its neighbour
            continue
        for name, column in rows.columns.items():
            of(name).dense.append((first, rows.n, column))
        for name, value in rows.constants.items():
            of(name).constant.append((first, rows.n, value))
        for name, (places, values) in rows.sparse.items():
            cells = of(name)
            cells.places.append(np.array(places, np.int64) + first)
            cells.values.append(values)
        for places, columns in rows.filled:
            at = np.array(places, np.int64) + first
            for name, values in columns.items():
                cells = of(name)
                cells.places.append(at)
                cells.values.append(values)
    return said


def _column(column: Column, cells: _Cells, n: int, parts: _Parts) -> pa.Array:
    """A column of all rows, by the cheapest way that what was said of it allows."""
    name = column.name
    if cells.dense or cells.constant or (name in INHERITED and len(parts.at)):
        made = _full(column, cells, n)
        if not len(parts.at):
            return _plain(made)
        if name in INHERITED and name not in parts.names:
            return _plain(made.take(pa.array(parts.rows)))
        order = parts.rows.copy()
        order[parts.places] = np.arange(n, parts.total)
        said = [values.get(name) for values in parts.values]
        if name in INHERITED:
            inherited = _plain(made.take(pa.array(parts.at)))
            own = (inherited.view(pa.int64()) if column.type == "time" else inherited).to_pylist()
            said = [values.get(name, own[k]) for k, values in enumerate(parts.values)]
        added = array(said, column)
        if isinstance(made, pa.DictionaryArray):
            added = added.dictionary_encode()
        return _plain(pa.concat_arrays([made, added]).take(pa.array(order)))
    new = [values.get(name) for values in parts.values] if name in parts.names else []
    if not cells.places and not new:
        return nulls(column.type, parts.total)
    found = list(chain.from_iterable(cells.values))
    at = np.concatenate([*cells.places, np.empty(0, np.int64)])
    if len(parts.at):
        at += parts.shifts[at]  # a row moves behind the parts before it
    if new:
        at, found = np.concatenate([at, parts.places]), found + new
    return scatter(array(found, column), at, parts.total, column)


def _full(column: Column, cells: _Cells, n: int) -> pa.Array:
    """A column that some spans say for each of their rows, without parts."""
    if cells.dense or sum(count for _, count, _ in cells.constant) < n:
        return _joined(column, cells, n)
    values = array([value for _, _, value in cells.constant], column)
    index = np.repeat(np.arange(len(values), dtype=np.int32), [count for _, count, _ in cells.constant])
    return pa.DictionaryArray.from_arrays(pa.array(index), values)


def _plain(made: pa.Array) -> pa.Array:
    """Dictionaries save copies on the way, but files hold plain columns."""
    return made.dictionary_decode() if isinstance(made, pa.DictionaryArray) else made


def _joined(column: Column, cells: _Cells, n: int) -> pa.Array:
    """A column that is said in several ways; neighbouring lists become one array."""
    beside = nulls(column.type, n)
    if cells.places:
        values = list(chain.from_iterable(cells.values))
        beside = scatter(array(values, column), np.concatenate(cells.places), n, column)
    full: list[tuple[int, int, Any]] = [
        *cells.dense,
        *((first, count, [value] * count) for first, count, value in cells.constant),
    ]
    pieces: list[pa.Array] = []
    run: list[Any] = []
    at = 0
    for first, count, values in sorted(full, key=lambda piece: piece[0]):
        if run and (first > at or isinstance(values, pa.Array)):
            pieces.append(array(run, column))
            run = []
        if first > at:
            pieces.append(beside.slice(at, first - at))
        if isinstance(values, pa.Array):
            is_coded = isinstance(values, pa.DictionaryArray)
            pieces.append(values if is_coded else values.view(arrow_type(column.type)))
        else:
            run += values
        at = first + count
    if run:
        pieces.append(array(run, column))
    if at < n:
        pieces.append(beside.slice(at))
    if any(piece.type != pieces[0].type for piece in pieces):
        pieces = [_plain(piece) for piece in pieces]
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces or [beside])


def _raw(decoded: Decoded, parts: _Parts) -> pa.Array:
    if not decoded.raw:
        return nulls("bytes", parts.total)
    rows = by_row(decoded.raw, decoded.index)
    values: list[bytes | None] = [None] * parts.total
    for row, octets in rows.items():
        values[row + int(np.searchsorted(parts.at, row))] = octets
    return pa.array(values, pa.binary())
