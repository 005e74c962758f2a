"""Points in time as people write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from analytics.errors import UsageError

_AGE = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

When = str | date | datetime


def moment(when: When, *, end: bool = False) -> datetime:
    """A point in time, UTC: a time, the begin (`end`: the end) of a day, or an age counted back from now."""
    if isinstance(when, datetime):
        return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    if isinstance(when, date):
        return datetime.combine(when + timedelta(days=1) if end else when, time(), UTC)
    text = when.strip()
    age = _AGE.fullmatch(text)
    try:
        if age is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return moment(date.fromisoformat(text), end=end)
        return moment(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{when!r} is no time. Give a date (2026-09-01), a time (2026-09-01T12:00:00Z), or an age (36h, 7d)."
        ) from None
