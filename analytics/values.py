"""Values as plain text and JSON hold them: exact, and the same in every format."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

ENCODER = msgspec.json.Encoder(decimal_format="number")
_FAR = 2**63 - 1


def iso(moment: datetime) -> str:
    """ISO 8601; a time with a zone is UTC and says Z, a time without one says nothing."""
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """A value as JSON can hold it, exactly: times and bytes as text, decimals as numbers, maps with text keys."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 and abs(value) < _FAR else value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, pa.MonthDayNano):
        return _interval(value.months, value.days, value.nanoseconds)
    if isinstance(value, timedelta):
        return _interval(0, value.days, (value.seconds * 1_000_000 + value.microseconds) * 1000)
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value)


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """An ISO 8601 duration."""
    seconds = Decimal(nanoseconds) / 1_000_000_000
    clock = f"T{seconds.normalize():f}S" if seconds else ""
    text = (f"{months}M" if months else "") + (f"{days}D" if days else "") + clock
    return f"P{text}" if text else "PT0S"


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
        return [_far(value) for value in column.cast(pa.int64()).to_pylist()]


def _far(value: int | None) -> str | None:
    """A time outside the years 1 to 9999: infinity, or its distance from 1970."""
    if value is None:
        return None
    if abs(value) >= _FAR:
        return "infinity" if value > 0 else "-infinity"
    return f"1970-01-01T00:00:00Z{value:+d}us"


def scalar(value: Any) -> str:
    """A plain value as bare text: numbers exact, truth as true and false, lists and structs as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return ENCODER.encode(value).decode()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
