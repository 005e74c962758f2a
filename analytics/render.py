"""How rows look on a terminal: unknown as –, a lower bound as ≥ 3, calls of an open stream as 3 open so far.

Only `--format table` goes through here. Data formats carry NULL and the flag columns instead (`analytics.export`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Literal

from rich.cells import cell_len, set_cell_size

from analytics.rows import NUMBERS, Field, Kind
from analytics.values import scalar

UNKNOWN = "–"
GAP = "  "
WIDTHS_FROM_ROWS = 1000
NARROWEST_TEXT = 12
# words of a short list that a reader must be able to tell apart: never cut, however narrow the terminal
WHOLE = frozenset({"metric", "verdict", "report"})


@dataclass(frozen=True, slots=True)
class Companion:
    """A flag column that says how far to trust its neighbours; a terminal shows it on them and hides the flag.

    `marks` is the value of the flag at which the neighbours are marked.
    """

    flag: str
    marks: bool
    as_: Literal["lower bound", "open"]
    columns: tuple[str, ...]


_TOKENS = (
    "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_5m_tokens",
    "cache_write_1h_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "input_tokens_with_cache_known",
)  # fmt: skip
_SPREAD = ("min_value", "p50", "p90", "p95", "p99", "max_value", "mean_value")

COMPANIONS: tuple[Companion, ...] = (
    Companion("tokens_are_lower_bound", True, "lower bound", _TOKENS),  # noqa: FBT003 (a list read as a table)
    Companion("parent_tokens_are_lower_bound", True, "lower bound", ("parent_total_tokens",)),  # noqa: FBT003
    Companion("cost_is_lower_bound", True, "lower bound", ("cost_usd",)),  # noqa: FBT003
    Companion("denials_are_lower_bound", True, "lower bound", ("denied_calls",)),  # noqa: FBT003
    Companion("is_lower_bound", True, "lower bound", (*_TOKENS, *_SPREAD, "denied_calls")),  # noqa: FBT003
    Companion("unfinished_is_exact", False, "open", ("tool_calls_unfinished",)),  # noqa: FBT003
    Companion("is_exact", False, "open", ("unfinished",)),  # noqa: FBT003
)
LOWER_BOUND_SUFFIX = "_is_lower_bound"  # X_is_lower_bound is the companion of X wherever both stand

# integers that name a place or a state, not a quantity: no thousands separators
ORDINALS = frozenset({
    "line", "first_line", "last_line", "part", "byte_offset", "seq", "first_seq", "last_seq", "step", "exit_code",
    "revision", "version", "inode", "mtime_ns", "pid", "year", "call_occurrence", "position", "piece",
})  # fmt: skip

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\x1b"}
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """The text with everything a terminal would act on (controls, bidirectional marks, line separators) spelled out."""
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if unicodedata.category(char) == "Zs":
        return " "
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_lines(text: str) -> str:
    """A text of several lines, each of them made visible, tabs as spaces."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.strip("\n").split("\n"))


def duration(milliseconds: float) -> str:
    """Milliseconds as a person says them: 850 ms, 4.2 s, 1 m 04 s, 2 h 05 m, 3 d 04 h."""
    if milliseconds < 0:
        return f"-{duration(-milliseconds)}"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02d} s"
    minutes = round(milliseconds / 60_000)
    if minutes < 1440:
        return f"{minutes // 60} h {minutes % 60:02d} m"
    hours = round(milliseconds / 3_600_000)
    return f"{hours // 24} d {hours % 24:02d} h"


def dollars(amount: Decimal | float) -> str:
    """US dollars to a hundredth of a cent; smaller amounts keep two digits that say something."""
    sign = "-" if amount < 0 else ""
    size = -amount if amount < 0 else amount
    if size and size < 0.0001:
        places = 1 - math.floor(math.log10(float(size)))
        return f"{sign}${size:.{places}f}"
    return f"{sign}${size:,.4f}"


def number(value: Decimal | float) -> str:
    """A fraction to four places, without trailing zeros, with thousands separators."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value != 0 and -0.0001 < value < 0.0001:
        return f"{value:.2g}"
    text = f"{value:,.4f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def moment(value: str) -> str:
    """A time (ISO 8601) to the second, UTC marked by Z."""
    try:
        return datetime.fromisoformat(value).isoformat(" ", "seconds").replace("+00:00", "Z")
    except ValueError:  # infinity, or outside the years 1 to 9999
        return value


def cell_text(value: Any) -> str:
    """Any value that is not a number, a time or a truth value, on one line and harmless."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ", ".join(visible(item) for item in value)
    if isinstance(value, str):
        return visible(value)
    return visible(scalar(value))


def formatter(name: str, kind: Kind) -> Callable[[Any], str]:
    """How the values of one column are shown, by its name's unit and its kind."""
    numeric = kind in NUMBERS
    if kind == "truth":
        return lambda value: "yes" if value else "no"
    if numeric and name.endswith("_usd"):
        return dollars
    if numeric and (name.endswith("_ms") or name == "ms"):
        return duration
    if kind == "integer":
        return str if name in ORDINALS else (lambda value: f"{value:,}")
    if numeric:
        return number
    if kind == "moment":
        return moment
    return cell_text


@dataclass(slots=True)
class Column:
    """A column as people see it. `cell` gives the text of it in a row."""

    name: str
    index: int
    show: Callable[[Any], str]
    is_left: bool
    may_be_cut: bool
    flag: int | None = None
    marks: bool = True
    as_open: bool = False
    head: tuple[str, ...] = ()
    width: int = 0

    def cell(self, row: Sequence[Any]) -> str:
        """The value in a row of plain values, marked as its companion says."""
        value = row[self.index]
        if value is None:
            return UNKNOWN
        text = self.show(value)
        if self.flag is None or row[self.flag] is not self.marks:
            return text
        return f"{text} open so far" if self.as_open else f"≥ {text}"


def companions_of(names: Collection[str]) -> dict[str, Companion]:
    """The columns among the names that have a companion among them, and which."""
    tied: dict[str, Companion] = {}
    for name in names:
        flag = name + LOWER_BOUND_SUFFIX
        if flag in names:
            tied[name] = Companion(flag, marks=True, as_="lower bound", columns=(name,))
    for companion in COMPANIONS:
        if companion.flag in names:
            for name in companion.columns:
                if name in names:
                    tied.setdefault(name, companion)
    return tied


def shown_columns(fields: Sequence[Field]) -> list[Column]:
    """The shown columns, each with its companion; companions themselves are left out."""
    place = {field.name: index for index, field in enumerate(fields)}
    tied = companions_of(place)
    hidden = {companion.flag for companion in tied.values()}
    shown: list[Column] = []
    for index, field in enumerate(fields):
        if field.name in hidden:
            continue
        right = field.kind in NUMBERS
        name = visible(field.name)
        fixed = field.kind != "text" or field.name in WHOLE
        show = formatter(field.name, field.kind)
        column = Column(name, index, show, is_left=not right, may_be_cut=not fixed, head=(name,))
        if field.name in tied:
            companion = tied[field.name]
            column.flag, column.marks = place[companion.flag], companion.marks
            column.as_open = companion.as_ == "open"
        shown.append(column)
    return shown


def _wrapped(name: str, width: int) -> tuple[str, ...]:
    """A column name over several lines, broken after underscores."""
    parts = re.findall(r"[^_]*_+|[^_]+", name) or [name]
    lines = [parts[0]]
    for part in parts[1:]:
        if cell_len(lines[-1] + part) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return tuple(lines)


def _fit(columns: list[Column], natural: list[int], width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit, narrowed: first column names wrap, then long text is cut, then the last columns go."""

    def total(some: Sequence[Column]) -> int:
        return sum(column.width for column in some) + len(GAP) * (len(some) - 1)

    for column, size in zip(columns, natural, strict=True):
        column.width = max(size, cell_len(column.name))
    if total(columns) > width:
        for column, size in zip(columns, natural, strict=True):
            longest = max(cell_len(part) for part in re.findall(r"[^_]*_+|[^_]+", column.name) or [column.name])
            column.width = max(size, longest)
            column.head = _wrapped(column.name, column.width)
    kept = list(columns)
    while True:
        widest = max((column.width for column in kept if column.may_be_cut), default=0)
        while total(kept) > width and widest > NARROWEST_TEXT:
            widest -= 1
            for column in kept:
                if column.may_be_cut and column.width > widest:
                    column.width = widest
        if total(kept) <= width or len(kept) == 1:
            break
        kept.pop()
    for column in kept:
        if column.may_be_cut:
            column.head = tuple(cut(line, column.width) for line in _wrapped(column.name, column.width))
    return kept, [column.name for column in columns if column not in kept]


def cut(text: str, width: int) -> str:
    """The text, or as much of it as fits, ending in an ellipsis."""
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _pad(text: str, column: Column, *, last: bool) -> str:
    if column.may_be_cut:
        text = cut(text, column.width)
    if column.is_left:
        return text if last else text + " " * (column.width - cell_len(text))
    return " " * (column.width - cell_len(text)) + text


def table(
    fields: Sequence[Field],
    rows: Iterable[Sequence[Any]],
    *,
    width: int | None = None,
    colour: bool = False,
    note: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """The lines of a table. `rows` hold plain values in the order of the fields; `width` None: as wide as it needs.

    Widths come from the first rows, so that a long result streams. `note` is told of columns that did not fit.
    """
    columns = shown_columns(fields)
    stream = iter(rows)
    first = [[column.cell(row) for column in columns] for row in islice(stream, WIDTHS_FROM_ROWS)]
    natural = [max((cell_len(cells[i]) for cells in first), default=0) for i in range(len(columns))]
    kept, dropped = _fit(columns, natural, width or 1_000_000)
    places = [columns.index(column) for column in kept]
    height = max((len(column.head) for column in kept), default=0)
    for level in range(height):
        heads = [(c.head[level - (height - len(c.head))] if level >= height - len(c.head) else "") for c in kept]
        line = GAP.join(_pad(head, column, last=column is kept[-1]) for head, column in zip(heads, kept, strict=True))
        yield f"\x1b[1m{line.rstrip()}\x1b[0m" if colour else line.rstrip()
    yield GAP.join("─" * column.width for column in kept)
    rest = ([column.cell(row) for column in columns] for row in stream)
    for cells in chain(first, rest):
        padded = [
            _pad(cells[place], column, last=column is kept[-1]) for place, column in zip(places, kept, strict=True)
        ]
        if colour:
            padded = [f"\x1b[2m{text}\x1b[0m" if text.strip() == UNKNOWN else text for text in padded]
        yield GAP.join(padded).rstrip()
    if dropped and note is not None:
        note(
            f"{len(dropped)} more columns do not fit: {', '.join(dropped)}. --format csv or a wider terminal has them."
        )
