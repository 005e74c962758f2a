"""Rows of both engines in a form that compares."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter


def canonical(value):
    """A value as both engines' drivers give it; a decimal is its number, a time is in UTC."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return tuple((key, canonical(one)) for key, one in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, float):
        return float(f"{value:.12g}")  # sums of fractions are in no order
    return value


def rows_of(table) -> Counter:
    """How often each row stands in an Arrow table."""
    return Counter(tuple(map(canonical, row.values())) for row in table.to_pylist())
