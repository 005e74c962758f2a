"""Rows as a page holds them: plain values, and how each column is shown; `report.js` draws, sorts and filters them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

from analytics.html.board import label
from analytics.render import ORDINALS, shown_columns, visible
from analytics.rows import NUMBERS, Field, Rows
from analytics.values import scalar

TEXT_CHARS = 400
SAFE = 2**53  # beyond it a browser's numbers are no longer exact: such integers travel as text
RUN_COLUMNS = frozenset({"run_id", "parent_run_id", "same_run_as"})
WORDS = {"infinity": "∞", "-infinity": "-∞"}


@dataclass(slots=True)
class Held:
    """The first rows of an answer, and how many it has."""

    fields: list[Field]
    rows: list[tuple[Any, ...]]
    total: int


def hold(rows: Rows, most: int) -> Held:
    """Reads an answer to its end and keeps its first rows."""
    kept: list[tuple[Any, ...]] = []
    total = 0
    for batch in rows.batches:
        count = len(batch[0]) if batch else 0
        kept += islice(zip(*batch, strict=True), max(most - total, 0))
        total += count
    return Held(rows.fields, kept, total)


def shape(one: Field) -> str:
    """How the values of a column are shown: the words that report.js knows."""
    if one.kind not in NUMBERS:
        return {"truth": "truth", "moment": "moment"}.get(one.kind, "text")
    if one.name.endswith("_usd"):
        return "usd"
    if one.name.endswith("_ms") or one.name == "ms":
        return "ms"
    if one.kind == "integer":
        return "ordinal" if one.name in ORDINALS else "integer"
    if one.name == "share":
        return "share"
    return "percent" if one.name.endswith("percent") else "fraction"


def table(held: Held) -> dict[str, Any]:
    """The table as JSON: columns (n name, t title, s shape, k place of the measure, f flag's place, w its
    value that marks, m mark, r it names runs) and rows.

    Hidden flags keep their place in the rows; `o` lists the columns in the order shown.
    """
    shown = shown_columns(held.fields)
    columns: list[dict[str, Any]] = []
    for one in held.fields:
        columns.append({"n": visible(one.name), "t": label(one.name), "s": shape(one)})
        if one.name in RUN_COLUMNS:
            columns[-1]["r"] = True
    for column in shown:
        if column.flag is not None:
            mark = "open" if column.as_open else "least"
            columns[column.index] |= {"f": column.flag, "w": column.marks, "m": mark}
    names = [one.name for one in held.fields]
    if "measure" in names:  # figures of several measures in one column: each row's measure says the unit
        for told in columns:
            if told["s"] == "fraction":
                told |= {"s": "measured", "k": names.index("measure")}
    makers = [_text if one.kind in ("text", "temporal") else _value for one in held.fields]
    rows = [[make(value) for make, value in zip(makers, row, strict=True)] for row in held.rows]
    return {"c": columns, "o": [column.index for column in shown], "r": rows, "n": held.total}


def _value(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -SAFE < value < SAFE else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return _text(value)


def _text(value: Any) -> str | None:
    """Any other value as harmless text, cut where it is long."""
    if value is None:
        return None
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    text = visible(value if isinstance(value, str) else scalar(value))
    return text if len(text) <= TEXT_CHARS else text[:TEXT_CHARS] + "…"
