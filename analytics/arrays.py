"""Arrow arrays of the lake's types from Python values, with NULL where nothing was said."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.schema import Column, Type, arrow_type

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
DTYPES: dict[str, Any] = {"int": np.int64, "time": np.int64, "float": np.float64, "bool": np.bool_}


def scatter(values: pa.Array, at: Ints, total: int, column: Column) -> pa.Array:
    """Values put at their places, NULL everywhere else; of several for one place the last holds."""
    if values.null_count:
        at = at[values.is_valid().to_numpy(zero_copy_only=False)]
        values = values.drop_null()
    if not len(at):
        return nulls(column.type, total)
    valid = np.zeros(total, np.bool_)
    valid[at] = True
    bits, kind = _bits(valid), arrow_type(column.type)
    if column.type == "text":
        if not (at[1:] > at[:-1]).all():
            order = np.argsort(at, kind="stable")
            at = at[order]
            is_last = np.append(at[1:] != at[:-1], True)
            at = at[is_last]
            values = values.take(pa.array(order[is_last]))
        _, ends, text = values.buffers()
        offsets = np.zeros(total + 1, np.int32)
        offsets[at + 1] = np.diff(np.frombuffer(ends, np.int32, len(values) + 1))
        np.cumsum(offsets, out=offsets)
        return pa.Array.from_buffers(kind, total, [bits, pa.py_buffer(offsets), text])
    cells = np.zeros(total, DTYPES[column.type])
    if column.type == "time":
        values = values.view(pa.int64())
    cells[at] = values.to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(kind, total, [bits, _bits(cells) if column.type == "bool" else pa.py_buffer(cells)])


def _bits(flags: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def nulls(kind: Type, total: int) -> pa.Array:
    """So many NULLs; up to a row group's worth shares one array."""
    pool = _null_pool(kind)
    return pool.slice(0, total) if total <= len(pool) else pa.nulls(total, arrow_type(kind))


@cache
def _null_pool(kind: Type) -> pa.Array:
    """One array of NULLs per type, shared by all columns that a block says nothing of."""
    return pa.nulls(1 << 16, arrow_type(kind))


def array(values: list[Any], column: Column) -> pa.Array:
    """The values of a column; times are microseconds. Raises OverflowError on an integer beyond 64 bits."""
    if column.type == "time":
        return pa.array(values, pa.int64()).view(arrow_type("time"))
    return pa.array(values, arrow_type(column.type))
