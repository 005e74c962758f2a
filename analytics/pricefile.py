"""A price list of one's own: a CSV file whose lines stand before the prices of `genai-prices`.

    model,valid_from,valid_until,input_usd_per_mtok,cached_input_usd_per_mtok,cache_write_5m_usd_per_mtok,…
    claude-opus-4*,2026-01-01,,5,0.50,6.25,10,25

`model` is a name, or a pattern with * and ? (case matters). The two dates are days, UTC, both within; empty = without
end. Prices are US dollars per million tokens; empty = no such price, and what would need it has none. The first line
that fits the model and the day gives the price; two lines of the same `model` must not share a day.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from analytics.bundledprices import STANDARD_SPEEDS
from analytics.errors import RunlakeError, UsageError
from analytics.pricing import Price, Rates, Reason

RATE_COLUMNS = (
    "input_usd_per_mtok", "cached_input_usd_per_mtok", "cache_write_5m_usd_per_mtok", "cache_write_1h_usd_per_mtok",
    "output_usd_per_mtok",
)  # fmt: skip
COLUMNS = ("model", "valid_from", "valid_until", *RATE_COLUMNS)
ERRORS_TOLD = 10
_PRICE = re.compile(r"\d{1,9}(\.\d{1,20})?")


@dataclass(frozen=True, slots=True)
class PriceLine:
    """One line of the file."""

    number: int
    model: str
    valid_from: date | None
    valid_until: date | None
    rates: Rates

    def holds(self, day: date) -> bool:
        """Whether it is the price of that day."""
        return not (self.valid_from and day < self.valid_from) and not (self.valid_until and day > self.valid_until)


class PriceFile:
    """The lines of one file. Its prices are those of the standard speed."""

    def __init__(self, name: str, lines: Sequence[PriceLine]) -> None:
        self.name = name
        self.lines = tuple(lines)

    def price(self, model: str, speed: str | None, at: datetime | None) -> Price | Reason:
        """The price of the first line that fits."""
        of_model = [line for line in self.lines if fnmatchcase(model, line.model)]
        if not of_model:
            return "unknown_model"
        if speed not in STANDARD_SPEEDS:
            return "no_speed_price"
        day = None if at is None else at.astimezone(UTC).date()
        for line in of_model:
            is_always = line.valid_from is None and line.valid_until is None
            if is_always or (day is not None and line.holds(day)):
                return Price(f"{self.name} line {line.number}", ((0, line.rates),))
            if day is None:
                return "no_date"
        return "no_price_then"

    def steps_of(self, model: str) -> frozenset[int]:
        """None: a line has one price whatever the size of a request."""
        return frozenset()

    def changes_by_the_hour(self, model: str) -> bool:
        """Never: a line's dates are whole days."""
        return False


def read_price_file(path: str | os.PathLike[str]) -> PriceFile:
    """The price list in the file; a usage error names each line that is wrong, and how."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RunlakeError.from_os("read", file, error) from error
    except UnicodeDecodeError:
        raise UsageError(f"The price list {file} is not UTF-8 text. Write it as CSV in UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        columns = _columns(file, head)
        lines: list[PriceLine] = []
        errors: list[str] = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            read = _line(reader.line_num, cells, head, columns)
            if isinstance(read, PriceLine):
                errors += _twice(read, lines)
                lines.append(read)
            else:
                errors += [f"line {reader.line_num}: {words}" for words in read]
    except csv.Error as error:
        raise UsageError(f"The price list {file} is not CSV: line {reader.line_num}: {error}.") from None
    if errors:
        more = f"\n… and {len(errors) - ERRORS_TOLD:,} more" if len(errors) > ERRORS_TOLD else ""
        told = "\n".join(errors[:ERRORS_TOLD])
        raise UsageError(f"The price list {file} cannot be used:\n{told}{more}")
    if not lines:
        raise UsageError(f"The price list {file} has no prices. Its lines are {','.join(COLUMNS)}.")
    return PriceFile(file.name, lines)


def _twice(line: PriceLine, before: Sequence[PriceLine]) -> list[str]:
    """What is wrong if the very same model has a price on a day already: which of the two was meant, nobody can say."""
    for other in before:
        if other.model != line.model:
            continue
        first = max(line.valid_from or date.min, other.valid_from or date.min)
        last = min(line.valid_until or date.max, other.valid_until or date.max)
        if first <= last:
            day = (
                "on all days" if first == date.min and last == date.max else f"on {first if first > date.min else last}"
            )
            return [f"line {line.number}: {line.model!r} has a price {day} already, in line {other.number}. Keep one."]
    return []


def _columns(file: Path, head: list[str]) -> dict[str, int]:
    """Where each column stands; any order will do."""
    for name in head:
        if name not in COLUMNS:
            near = get_close_matches(name, COLUMNS, n=1)
            guess = f"Did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"The price list {file}, line 1: there is no column {name!r}. {guess}{_ALL_COLUMNS}")
        if head.count(name) > 1:
            raise UsageError(f"The price list {file}, line 1: the column {name!r} stands twice. {_ALL_COLUMNS}")
    missing = [name for name in COLUMNS if name not in head]
    if missing:
        raise UsageError(f"The price list {file}, line 1: {', '.join(missing)} is missing. {_ALL_COLUMNS}")
    return {name: head.index(name) for name in COLUMNS}


_ALL_COLUMNS = f"The columns are {','.join(COLUMNS)}."


def _line(number: int, cells: list[str], head: list[str], columns: dict[str, int]) -> PriceLine | list[str]:
    """The line, or what is wrong with it."""
    if len(cells) != len(head):
        return [f"{len(cells)} cells, where the first line has {len(head)}."]
    said = {name: cells[place].strip() for name, place in columns.items()}
    errors = [] if said["model"] else ["model is empty. Write a name, or * for all models."]
    days: dict[str, date | None] = {}
    for name in ("valid_from", "valid_until"):
        try:
            days[name] = date.fromisoformat(said[name]) if said[name] else None
        except ValueError:
            errors.append(f"{name} {said[name]!r} is no date. Write it as 2026-01-31.")
    first, last = days.get("valid_from"), days.get("valid_until")
    if first and last and last < first:
        errors.append(f"valid_until {last} is before valid_from {first}.")
    rates: list[Decimal | None] = []
    for name in RATE_COLUMNS:
        if said[name] and not _PRICE.fullmatch(said[name]):
            errors.append(f"{name} {said[name]!r} is no price. Write US dollars per million tokens, such as 6.25.")
        else:
            rates.append(Decimal(said[name]) if said[name] else None)
    errors += [f"{name} is empty. A price needs it." for name in (RATE_COLUMNS[0], RATE_COLUMNS[-1]) if not said[name]]
    return errors or PriceLine(number, said["model"], first, last, Rates(*rates))
