"""Reports as one Excel workbook: a sheet each, and a sheet of notes.

Numbers, times (UTC) and truth values are such; ids and all other text are text, also where a spreadsheet would compute
it; unknown is an empty cell. The flags that say how far to trust a figure are columns, as in every data format, and
the notes say which figures they belong to and how many rows they mark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from analytics.errors import UsageError
from analytics.export import FORMULA_STARTS, spell_controls
from analytics.render import ORDINALS, companions_of
from analytics.reportset import Report
from analytics.rows import NUMBERS, Field
from analytics.values import scalar

if TYPE_CHECKING:
    from analytics.rows import Rows

LAST_ROW = 1_048_575  # of a sheet, with the first being 0
LONGEST_TEXT = 32_767  # what a cell holds, in UTF-16 units
LONGEST_NAME = 31
WHOLE = 2**53  # a cell holds a double: integers beyond it are written as text
NOTES = "notes"
_NO_NAME = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_FIRST_DAY, _LAST_YEAR = datetime(1900, 3, 1), 9999  # noqa: DTZ001 (Excel's calendar has no zones, and a false 29.2.1900)
_PLAIN, _MONEY, _FRACTION, _MOMENT, _DAY = (
    "0",
    '"$"#,##0.0000########',
    "0.####",
    "yyyy-mm-dd hh:mm:ss.000",
    "yyyy-mm-dd",
)


@dataclass(slots=True)
class Sheet:
    """What the notes say of a sheet. `marked`: flag → how many rows it marks."""

    name: str
    title: str
    row: str
    rows: int = 0
    more_rows: int = 0
    cut_texts: int = 0
    marked: dict[str, int] = field(default_factory=dict)


def write_workbook(reports: Iterable[Report], facts: dict[str, str], made_at: datetime, to: IO[bytes]) -> list[Sheet]:
    """Writes the workbook. `facts` head the notes; `made_at` is its date of creation."""
    try:
        import xlsxwriter  # noqa: PLC0415 (an extra)
    except ImportError:
        raise UsageError(
            "A workbook needs xlsxwriter. Install it with `pip install 'runlake[report]'`, or choose another format."
        ) from None
    options = {
        "constant_memory": True, "strings_to_formulas": False, "strings_to_numbers": False, "strings_to_urls": False,
    }  # fmt: skip
    whole = io.BytesIO()  # the library would report a file that takes no more in words, and in a traceback, of its own
    book = xlsxwriter.Workbook(whole, options)
    book.set_properties({"created": made_at.astimezone(UTC).replace(tzinfo=None), "author": "runlake"})
    writer = _Writer(book)
    sheets: list[Sheet] = []
    for report in reports:
        name = sheet_name(report.name, [NOTES, *(sheet.name for sheet in sheets)])
        sheets.append(writer.sheet(Sheet(name, report.title, report.row), report.rows))
    writer.notes(facts, sheets)
    book.close()
    to.write(whole.getbuffer())
    return sheets


def sheet_name(name: str, taken: Sequence[str]) -> str:
    """A name a sheet may have (31 characters, none of [ ] : * ? / and backslash), not yet taken whatever its case."""
    clean = _NO_NAME.sub("_", name).strip("'")[:LONGEST_NAME] or "sheet"
    used = {one.lower() for one in taken} | {"history"}  # Excel keeps that one to itself
    unique, number = clean, 1
    while unique.lower() in used:
        number += 1
        end = f"_{number}"
        unique = clean[: LONGEST_NAME - len(end)] + end
    return unique


class _Writer:
    """The formats of one workbook, and how values go into its cells."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.head = book.add_format({"bold": True, "bottom": 1})
        self.bold = book.add_format({"bold": True})
        self.quoted = book.add_format({"quote_prefix": True})
        self.formats = {
            code: book.add_format({"num_format": code})
            for code in (_PLAIN, "#,##0", _MONEY, _FRACTION, _MOMENT, _DAY, "0.00E+00")
        }

    def sheet(self, made: Sheet, rows: Rows) -> Sheet:
        """One report."""
        sheet = self.book.add_worksheet(made.name)
        sheet.freeze_panes(1, 0)
        put = [self._putter(sheet, column, made) for column in rows.fields]
        for place, column in enumerate(rows.fields):
            sheet.set_column(place, place, min(max(len(column.name) + 2, 12), 40))
            sheet.write_string(0, place, spell_controls(column.name), self.head)
        flags = {companion.flag: companion.marks for companion in companions_of([f.name for f in rows.fields]).values()}
        marks = [(place, flags[f.name], f.name) for place, f in enumerate(rows.fields) if f.name in flags]
        made.marked = {name: 0 for _, _, name in marks}
        for columns in rows.batches:
            for row in zip(*columns, strict=True):
                if made.rows == LAST_ROW:
                    made.more_rows += 1
                    continue
                made.rows += 1
                for place, value in enumerate(row):
                    if value is not None:
                        put[place](made.rows, place, value)
                for place, marked, name in marks:
                    made.marked[name] += row[place] is marked
        sheet.autofilter(0, 0, made.rows, max(len(rows.fields) - 1, 0))
        return made

    def notes(self, facts: dict[str, str], sheets: Sequence[Sheet]) -> None:
        """What holds for the workbook, then what holds for each sheet."""
        sheet = self.book.add_worksheet(NOTES)
        sheet.set_column(0, 1, 34)
        sheet.set_column(2, 2, 90)
        lines: list[tuple[str, str, str]] = [(name, value, "") for name, value in facts.items()]
        lines += [
            ("times", "UTC", ""),
            ("empty cells", "unknown", "The record did not say; never zero."),
            ("sheet", "about", "note"),
        ]
        for one in sheets:
            lines.append((one.name, one.title, f"One row is {one.row}. {one.rows:,} rows."))
            lines += [
                (one.name, flag, f"{_MEANINGS.get(flag, _BOUND)} Marks {count:,} of {one.rows:,}.")
                for flag, count in one.marked.items()
            ]
            if one.more_rows:
                lines.append((one.name, "cut", f"{one.more_rows:,} more rows do not fit into a sheet."))
            if one.cut_texts:
                lines.append((one.name, "cut", f"{one.cut_texts:,} texts are longer than a cell holds."))
        for number, line in enumerate(lines):
            for place, text in enumerate(line):
                if text:
                    sheet.write_string(number, place, spell_controls(text), self.bold if line[0] == "sheet" else None)

    def _putter(self, sheet: Any, column: Field, made: Sheet) -> Callable[[int, int, Any], None]:
        """How the values of a column are written."""
        name, kind = column.name, column.kind
        number_format = self.formats[_code(name, kind)]
        day_format = self.formats[_DAY]

        def text(row: int, place: int, value: Any) -> None:
            shown = spell_controls(scalar(value))
            if len(shown.encode("utf-16-le", "backslashreplace")) // 2 > LONGEST_TEXT:
                made.cut_texts += 1
                shown = shown[: LONGEST_TEXT // 2 - 1] + "…"
            sheet.write_string(row, place, shown, self.quoted if shown.startswith(FORMULA_STARTS) else None)

        def number(row: int, place: int, value: Any) -> None:
            is_whole = isinstance(value, int) and abs(value) > WHOLE
            if is_whole or (isinstance(value, float | Decimal) and not math.isfinite(value)):
                text(row, place, value)
            else:
                sheet.write_number(row, place, float(value), number_format)

        def moment(row: int, place: int, value: Any) -> None:
            try:
                when = datetime.fromisoformat(value).replace(tzinfo=None)
            except ValueError:
                text(row, place, value)
                return
            if when < _FIRST_DAY:
                text(row, place, value)
            else:
                sheet.write_datetime(row, place, when, number_format)

        def day(row: int, place: int, value: Any) -> None:
            try:
                when = date.fromisoformat(value)
            except ValueError:
                text(row, place, value)
                return
            if when < _FIRST_DAY.date():
                text(row, place, value)
            else:
                sheet.write_datetime(row, place, when, day_format)

        def truth(row: int, place: int, value: Any) -> None:
            sheet.write_boolean(row, place, value)

        if kind in NUMBERS:
            return number
        return {"truth": truth, "moment": moment, "temporal": day}.get(kind, text)


def _code(name: str, kind: str) -> str:
    """The number format of a column."""
    if kind == "moment":
        return _MOMENT
    if name.endswith("_usd"):
        return _MONEY
    if kind == "integer":
        return _PLAIN if name in ORDINALS else "#,##0"
    return _FRACTION


_BOUND = "Where true, the figure may be higher."
_MEANINGS = {
    "unfinished_is_exact": "Where false, calls of a run that is not closed may yet finish.",
    "is_exact": "Where false, calls of a run that is not closed may yet finish.",
}
