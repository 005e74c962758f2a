"""Values as plain text and JSON hold them: exact, and the same in every format."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

FAR = 2**63 - 1
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (without a zone, as the times counted from it)


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
        return int(value) if value.as_tuple().exponent == 0 and abs(value) < FAR else value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if type(value).__name__ == "MonthDayNano":  # Arrow's interval
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


def instant(micros: int | None, *, zoned: bool = True) -> str | None:
    """Microseconds since 1970 as ISO 8601; outside the years 1 to 9999 infinity, or the distance from 1970."""
    if micros is None:
        return None
    if abs(micros) >= FAR:
        return "infinity" if micros > 0 else "-infinity"
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat() + ("Z" if zoned else "")
    except OverflowError:
        return f"1970-01-01T00:00:00Z{micros:+d}us"


@cache
def _encoder() -> Any:
    import msgspec  # noqa: PLC0415 (30 ms that a table need not wait for)

    return msgspec.json.Encoder(decimal_format="number")


def as_json(value: Any) -> bytes:
    """A plain value as JSON, numbers exact."""
    encoded: bytes = _encoder().encode(value)
    return encoded


def scalar(value: Any) -> str:
    """A plain value as bare text: numbers exact, truth as true and false, lists and structs as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return as_json(value).decode()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
