"""Rows of wires to Arrow: one record batch per block, extra parts in their place, refused rows left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.schema import EVENT, Column, arrow_schema, arrow_type
from analytics.wires.base import MAX_INT, Refusal, Rows

INHERITED = ("run_id", "run_id_origin", "seq", "ts", "ts_origin", "event")
PLACED = frozenset({"wire", "source_id", "line", "part", "byte_offset", "payload", "raw", "redactions"})
COLUMNS: tuple[Column, ...] = tuple(c for c in EVENT if c.name not in PLACED)
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class Placed:
    """Rows of one span, and where its lines stand."""

    rows: Rows
    source_id: str
    line: Ints
    byte_offset: Ints
    payload: pa.StringArray
    raw: dict[int, bytes] = field(default_factory=dict)
    redactions: dict[int, int] = field(default_factory=dict)


def refuse_wide_integers(rows: Rows) -> None:
    """Refuse lines that hold an integer beyond 64 bits; called only after Arrow found one."""
    for column in COLUMNS:
        if column.type not in ("int", "time"):
            continue
        name = column.name
        dense = rows.columns.get(name)
        places, values = rows.sparse.get(name, ([], []))
        cells = enumerate(dense) if dense is not None else zip(places, values, strict=True)
        wide = [i for i, value in cells if not _fits(value)]
        wide += [i for i, part in rows.parts if not _fits(part.get(name))]
        for i in wide:
            rows.refused.setdefault(i, Refusal("number_out_of_range", f"{name} does not fit 64 bits"))
        if wide and dense is not None:
            rows.columns[name] = [value if _fits(value) else None for value in dense]
        elif wide:
            rows.sparse[name] = (places, [value if _fits(value) else None for value in values])
    rows.parts = [(i, values) for i, values in rows.parts if i not in rows.refused]


def _fits(value: Any) -> bool:
    return not isinstance(value, int) or -MAX_INT - 1 <= value <= MAX_INT


@dataclass(frozen=True, slots=True)
class _Insert:
    """A part to be inserted behind row `at` of the batch."""

    at: int
    number: int
    values: dict[str, Any]
    span: int
    row: int


def batch(spans: Sequence[Placed]) -> pa.RecordBatch:
    """One record batch of all spans, in order. Raises OverflowError on an integer beyond 64 bits."""
    sizes = [span.rows.n for span in spans]
    n = sum(sizes)
    starts = np.cumsum([0, *sizes])
    inserts = _inserts(spans, starts)
    at = np.array([insert.at for insert in inserts], np.int64)
    arrays: dict[str, pa.Array] = {column.name: _column(column, spans, n, inserts) for column in COLUMNS}
    arrays["source_id"] = _repeated([span.source_id for span in spans], sizes, at)
    arrays["line"] = pa.array(_widened(np.concatenate([span.line for span in spans]), at))
    arrays["byte_offset"] = pa.array(_widened(np.concatenate([span.byte_offset for span in spans]), at))
    part, redactions = np.zeros(n + len(at), np.int64), _counts(spans, starts, n)
    if inserts:
        part[at + 1 + np.arange(len(at))] = [insert.number for insert in inserts]
        redactions = np.insert(redactions, at + 1, 0)
    arrays["part"], arrays["redactions"] = pa.array(part), pa.array(redactions)
    arrays["raw"] = _raw(spans, starts, n, inserts)
    payload = spans[0].payload if len(spans) == 1 else pa.concat_arrays([span.payload for span in spans])
    arrays["payload"] = _with_gaps(payload, at)
    schema = arrow_schema("event")
    made = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    refused = [int(starts[k]) + i for k, span in enumerate(spans) for i in span.rows.refused]
    if not refused:
        return made
    kept = np.ones(n, bool)
    kept[refused] = False
    return made.filter(pa.array(np.insert(kept, at + 1, kept[at]) if inserts else kept))


def _inserts(spans: Sequence[Placed], starts: Ints) -> list[_Insert]:
    made: list[_Insert] = []
    for k, span in enumerate(spans):
        before = -1
        number = 0
        for i, values in sorted(span.rows.parts, key=lambda part: part[0]):
            number = number + 1 if i == before else 1
            before = i
            made.append(_Insert(int(starts[k]) + i, number, values, k, i))
    return made


def _widened(values: Ints, at: Ints) -> Ints:
    return np.insert(values, at + 1, values[at]) if len(at) else values


def _column(column: Column, spans: Sequence[Placed], n: int, inserts: list[_Insert]) -> pa.Array:
    name = column.name
    said = any(name in span.rows.columns or name in span.rows.constants for span in spans)
    if not said:
        return _sparse(column, spans, n, inserts)
    pieces: list[Iterable[Any]] = []
    for span in spans:
        values = span.rows.columns.get(name)
        if values is not None:
            pieces.append(values)
        elif name in span.rows.sparse:
            known = dict(zip(*span.rows.sparse[name], strict=True))
            pieces.append([known.get(i) for i in range(span.rows.n)])
        else:
            pieces.append(repeat(span.rows.constants.get(name), span.rows.n))
    merged = list(chain.from_iterable(pieces)) if len(pieces) > 1 else list(pieces[0])
    if inserts:
        inherits = name in INHERITED
        wide: list[Any] = []
        done = 0
        for insert in inserts:
            end = insert.at + 1
            if end > done:
                wide += merged[done:end]
                done = end
            wide.append(_value(name, insert, spans) if inherits else insert.values.get(name))
        merged = wide + merged[done:]
    return _array(merged, column)


def _sparse(column: Column, spans: Sequence[Placed], n: int, inserts: list[_Insert]) -> pa.Array:
    """A column few rows of which are set: its values, taken to their places."""
    name = column.name
    places: list[int] = []
    values: list[Any] = []
    start = 0
    for span in spans:
        found = span.rows.sparse.get(name)
        if found:
            places += [start + i for i in found[0]] if start else found[0]
            values += found[1]
        start += span.rows.n
    total = n + len(inserts)
    if not places and not any(name in insert.values for insert in inserts):
        return pa.nulls(total, arrow_type(column.type))
    at = np.array(places, np.int64)
    if inserts:
        at += np.searchsorted(np.array([insert.at for insert in inserts]), at)  # a row moves behind the parts before it
        inherits = name in INHERITED
        new = [_value(name, insert, spans) if inherits else insert.values.get(name) for insert in inserts]
        rows = [insert.at + 1 + j for j, insert in enumerate(inserts)]
        at, values = np.concatenate([at, np.array(rows, np.int64)]), values + new
    index = np.full(total, -1, np.int64)
    index[at] = np.arange(len(at))
    return _array(values, column).take(pa.array(index, mask=index < 0))


def _array(values: list[Any], column: Column) -> pa.Array:
    if column.type == "time":
        return pa.array(values, pa.int64()).view(arrow_type("time"))
    return pa.array(values, arrow_type(column.type))


def _repeated(values: list[str], sizes: list[int], at: Ints) -> pa.Array:
    index = _widened(np.repeat(np.arange(len(values), dtype=np.int32), sizes), at)
    return pa.array(values, pa.string()).take(pa.array(index))


def _counts(spans: Sequence[Placed], starts: Ints, n: int) -> Ints:
    counts = np.zeros(n, np.int64)
    for k, span in enumerate(spans):
        for i, count in span.redactions.items():
            counts[starts[k] + i] = count
    return counts


def _raw(spans: Sequence[Placed], starts: Ints, n: int, inserts: list[_Insert]) -> pa.Array:
    if not any(span.raw for span in spans):
        return pa.nulls(n + len(inserts), pa.binary())
    values: list[bytes | None] = [None] * n
    for k, span in enumerate(spans):
        for i, octets in span.raw.items():
            values[int(starts[k]) + i] = octets
    for insert in reversed(inserts):
        values.insert(insert.at + 1, None)
    return pa.array(values, pa.binary())


def _value(name: str, insert: _Insert, spans: Sequence[Placed]) -> Any:
    if name in insert.values:
        return insert.values[name]
    return spans[insert.span].rows.value(name, insert.row)


def _with_gaps(payload: pa.StringArray, after: Ints) -> pa.StringArray:
    """The same strings with a NULL inserted behind each row of `after`."""
    if len(after) == 0:
        return payload
    _, offsets_buffer, data = payload.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[payload.offset : payload.offset + len(payload) + 1]
    widened = np.insert(offsets, after + 1, offsets[after + 1])
    valid = np.ones(len(payload) + len(after), bool)
    valid[after + 1 + np.arange(len(after))] = False
    if payload.null_count:
        valid[valid] = np.asarray(payload.is_valid())
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.StringArray.from_buffers(len(valid), pa.py_buffer(widened.astype(np.int32)), data, bits)
