"""Arrow batches as plain values, for types that DuckDB's own Python values do not keep exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from analytics.rows import BATCH_ROWS, Field, Kind
from analytics.values import instant, plain


def reader(rows: Any) -> pa.RecordBatchReader:
    """A stream of Arrow batches from a DuckDB relation, an Arrow table or a reader."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.Table):
        return rows.to_reader(max_chunksize=BATCH_ROWS)
    made: pa.RecordBatchReader = rows.to_arrow_reader(BATCH_ROWS)
    return made


def fields_of(schema: pa.Schema) -> list[Field]:
    """Names and kinds of the columns."""
    return [Field(field.name, _kind(field.type)) for field in schema]


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_boolean(kind):
        return "truth"
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "fraction"
    if pa.types.is_timestamp(kind):
        return "moment"
    return "temporal" if pa.types.is_temporal(kind) else "text"


def plain_batches(batches: pa.RecordBatchReader) -> Iterator[list[list[Any]]]:
    """The plain values of each column, batch by batch."""
    for batch in batches:
        if batch.num_rows:
            yield [values(column) for column in batch.columns]


def values(column: pa.Array) -> list[Any]:
    """The plain values of a column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return values(column.dictionary_decode())
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_map(kind):
        return [None if pairs is None else plain(dict(pairs)) for pairs in column.to_pylist()]
    try:
        return [plain(value) for value in column.to_pylist()]
    except (OverflowError, ValueError, pa.ArrowInvalid):
        return [instant(value, zoned=kind.tz is not None) for value in column.cast(pa.int64()).to_pylist()]
