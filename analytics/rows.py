"""Rows on their way out of a query: names and kinds of the columns, and their plain values in batches.

Most answers hold numbers, truth values, times and text alone. Those are fetched from DuckDB as they are; loading Arrow
would take longer (0.1 s) than many a report. All other types go through Arrow, which keeps them exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from analytics.values import FAR, instant

BATCH_ROWS = 8192
Kind = Literal["integer", "fraction", "truth", "moment", "temporal", "text"]

NUMBERS = frozenset({"integer", "fraction"})
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    "DOUBLE": "fraction", "BOOLEAN": "truth", "VARCHAR": "text", "VARCHAR[]": "text",
    "TIMESTAMP WITH TIME ZONE": "moment", "DATE": "temporal",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, and what its values are. A decimal without a fraction is an integer."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns and their plain values (`analytics.values.plain`), a list per column, in batches."""

    fields: list[Field]
    batches: Iterator[list[list[Any]]]


def rows_of(rows: Any, *, are_few: bool = False) -> Rows:
    """The rows of a DuckDB relation, an Arrow table or an Arrow reader.

    `are_few`: the rows of the relation may stand in memory all at once. Arrow streams them.
    """
    if are_few:
        kinds = [_KINDS.get(str(kind)) for kind in rows.types]
        fields = [Field(name, kind) for name, kind in zip(rows.columns, kinds, strict=True) if kind is not None]
        if len(fields) == len(kinds):
            return Rows(fields, _fetched(rows, fields))
    from analytics.arrowrows import fields_of, plain_batches, reader  # noqa: PLC0415 (0.1 s; see above)

    batches = reader(rows)
    return Rows(fields_of(batches.schema), plain_batches(batches))


def _fetched(relation: Any, fields: list[Field]) -> Iterator[list[list[Any]]]:
    """The relation's values by column. Times come as microseconds, days as text: Python's end with the year 9999."""
    moments = [place for place, field in enumerate(fields) if field.kind == "moment"]
    if any(field.kind in ("moment", "temporal") for field in fields):
        columns = (_selected(f"#{n}", field.kind) for n, field in enumerate(fields, 1))
        relation = relation.project(", ".join(f"{column} AS c{n}" for n, column in enumerate(columns)))
    stream = relation.iter_rows(BATCH_ROWS)
    while batch := list(islice(stream, BATCH_ROWS)):
        values: list[list[Any]] = [list(column) for column in zip(*batch, strict=True)]
        for place in moments:
            values[place] = [instant(value) for value in values[place]]
        yield values


def _selected(column: str, kind: Kind) -> str:
    if kind == "temporal":
        return f"CAST({column} AS VARCHAR)"
    if kind != "moment":
        return column
    far = f"WHEN {column} > TIMESTAMPTZ '1970-01-01' THEN {FAR} WHEN {column} IS NOT NULL THEN -{FAR}"
    return f"CASE WHEN isfinite({column}) THEN epoch_us({column}) {far} END"
