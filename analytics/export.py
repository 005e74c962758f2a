"""Rows out: table, json, jsonl, csv, parquet, md; to stdout or to a file that appears only when it is whole.

Data formats carry what the relation holds: NULL stays null, integers and decimals stay exact, times are ISO 8601.
Text from the streams is hostile until shown otherwise, so what a viewer would act on comes out spelled out.
"""
# ruff: noqa: PLC0415 — pyarrow.parquet and rich cost 60 ms; they are imported by the one format that needs them

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa

from analytics.formats import Format, Formulas

BATCH_ROWS = 8192
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_JSON_CONTROLS = re.compile(rb"\xc2([\x80-\x9f])|\x7f")
_CSV_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CSV_QUOTED = re.compile(r'[",\n\r]|^\s|\s$')
_MD_SPECIAL = re.compile(r"[\\`*\[\]~|#!$]")
_MD_UNDERSCORES = re.compile(r"(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")
_FAR = 2**63 - 1
_ENCODER = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class Options:
    """What the output switches say of how rows look."""

    format: Format = "table"
    formulas: Formulas = "escape"


def reader(rows: Any) -> pa.RecordBatchReader:
    """A stream of Arrow batches from a DuckDB relation, an Arrow table or a reader."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.Table):
        return rows.to_reader(max_chunksize=BATCH_ROWS)
    made: pa.RecordBatchReader = rows.to_arrow_reader(BATCH_ROWS)
    return made


@contextmanager
def sink(out: Path | None) -> Iterator[IO[bytes]]:
    """Where bytes go: stdout, or a file beside `out` that takes its name once everything is written."""
    if out is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(out)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def write(rows: Any, options: Options, to: IO[bytes], *, note: Callable[[str], None] | None = None) -> int:
    """Writes all rows in the wanted format; the number of rows."""
    batches = reader(rows)
    if options.format == "parquet":
        return _parquet(batches, to)
    if options.format == "json":
        return _json(batches, to)
    if options.format == "jsonl":
        return _jsonl(batches, to)
    if options.format == "csv":
        return _csv(batches, to, options.formulas)
    if options.format == "md":
        return _md(batches, to)
    return _table(batches, to, note)


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


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
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


def _batches(batches: pa.RecordBatchReader) -> Iterator[list[list[Any]]]:
    for batch in batches:
        if batch.num_rows:
            yield [_values(column) for column in batch.columns]


def _names(schema: pa.Schema) -> list[str]:
    """Column names, told apart where a query gives one name twice (JSON would drop all but the last)."""
    names: list[str] = []
    for name in schema.names:
        unique, count = name, 1
        while unique in names:
            unique, count = f"{name}_{count}", count + 1
        names.append(unique)
    return names


def _objects(batches: pa.RecordBatchReader) -> Iterator[list[bytes]]:
    names = _names(batches.schema)
    for columns in _batches(batches):
        yield [_inert_json(_ENCODER.encode(dict(zip(names, row, strict=True)))) for row in zip(*columns, strict=True)]


def _inert_json(text: bytes) -> bytes:
    """DEL and the C1 controls escaped too: JSON allows them bare, terminals act on them."""
    if b"\xc2" not in text and b"\x7f" not in text:
        return text
    return _JSON_CONTROLS.sub(lambda hit: b"\\u00%02x" % (hit[1] or b"\x7f")[0], text)


def _json(batches: pa.RecordBatchReader, to: IO[bytes]) -> int:
    count = 0
    to.write(b"[")
    for objects in _objects(batches):
        to.write((b",\n" if count else b"\n") + b",\n".join(objects))
        count += len(objects)
    to.write(b"\n]\n" if count else b"]\n")
    return count


def _jsonl(batches: pa.RecordBatchReader, to: IO[bytes]) -> int:
    count = 0
    for objects in _objects(batches):
        to.write(b"\n".join(objects) + b"\n")
        count += len(objects)
    return count


def _parquet(batches: pa.RecordBatchReader, to: IO[bytes]) -> int:
    import pyarrow.parquet as pq

    schema = pa.schema(
        [field.with_name(name) for field, name in zip(batches.schema, _names(batches.schema), strict=True)]
    )
    storable = pa.schema([field.with_type(_storable(field.type)) for field in schema])
    count = 0
    with pq.ParquetWriter(to, storable, compression="zstd") as writer:
        for table in _chunks(batches):
            columns = [_stored(table.column(i), field.type) for i, field in enumerate(storable)]
            writer.write_table(pa.table(columns, schema=storable))
            count += table.num_rows
    return count


def _chunks(batches: pa.RecordBatchReader, rows: int = 65_536) -> Iterator[pa.Table]:
    """Batches gathered into row groups worth having."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _storable(kind: pa.DataType) -> pa.DataType:
    """The type itself, but for what Parquet cannot hold: intervals become ISO text, an untyped NULL becomes text."""
    return pa.string() if pa.types.is_interval(kind) or pa.types.is_null(kind) else kind


def _stored(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_interval(column.type):
        return pa.array([plain(value) for value in column.to_pylist()], kind)
    return column.cast(kind) if column.type != kind else column


def _csv(batches: pa.RecordBatchReader, to: IO[bytes], formulas: Formulas) -> int:
    escape = formulas == "escape"
    names = (_csv_cell(name, escape=escape) for name in _names(batches.schema))
    to.write((",".join(names) + "\n").encode())
    count = 0
    for columns in _batches(batches):
        cells = [[_csv_cell(value, escape=escape) for value in column] for column in columns]
        lines = [",".join(row) for row in zip(*cells, strict=True)]
        to.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
        count += len(lines)
    return count


def _csv_cell(value: Any, *, escape: bool) -> str:
    """NULL is an empty cell, an empty text is `""`; a text a spreadsheet would compute gets an apostrophe before it."""
    if value is None:
        return ""
    text = scalar(value)
    if not isinstance(value, str | list | dict):
        return text
    if escape:
        text = _CSV_CONTROLS.sub(lambda hit: f"\\x{ord(hit[0]):02x}", text)
        if text.startswith(FORMULA_STARTS):
            text = f"'{text}"
    if not text or _CSV_QUOTED.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def scalar(value: Any) -> str:
    """A plain value as bare text: numbers exact, truth as true and false, lists and structs as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return _ENCODER.encode(value).decode()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def inert_markdown(text: str) -> str:
    """The text as a Markdown table cell that shows it and does nothing: no markup, HTML, link, mention or new line."""
    from analytics.render import visible

    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MD_SPECIAL.sub(lambda hit: f"\\{hit[0]}", text)
    text = _MD_UNDERSCORES.sub(lambda hit: "\\_" * len(hit[0]), text)
    text = text.replace("://", "&#58;//").replace("@", "&#64;")
    return re.sub(r"(?i)\bwww\.", lambda hit: hit[0][:-1] + "&#46;", text)


def _md(batches: pa.RecordBatchReader, to: IO[bytes]) -> int:
    from analytics.render import UNKNOWN

    def right(kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    heads = [inert_markdown(name) for name in _names(batches.schema)]
    rules = ["---:" if right(field.type) else "---" for field in batches.schema]
    to.write(f"| {' | '.join(heads)} |\n| {' | '.join(rules)} |\n".encode("utf-8", "backslashreplace"))
    count = 0
    for columns in _batches(batches):
        for row in zip(*columns, strict=True):
            cells = [UNKNOWN if value is None else inert_markdown(scalar(value)) for value in row]
            to.write(f"| {' | '.join(cells)} |\n".encode("utf-8", "backslashreplace"))
            count += 1
    return count


def _table(batches: pa.RecordBatchReader, to: IO[bytes], note: Callable[[str], None] | None) -> int:
    from analytics.render import table

    count = 0

    def rows() -> Iterator[Sequence[Any]]:
        nonlocal count
        for columns in _batches(batches):
            for row in zip(*columns, strict=True):
                count += 1
                yield row

    width, colour = terminal(to)
    for line in table(batches.schema, rows(), width=width, colour=colour, note=note):
        to.write((line + "\n").encode("utf-8", "backslashreplace"))
    return count


def terminal(to: IO[bytes]) -> tuple[int | None, bool]:
    """(width, colour) of a terminal; (None, False) for a file or a pipe, whose readers want whole cells."""
    if not to.isatty():
        return None, False
    try:
        width = os.get_terminal_size(to.fileno()).columns
    except OSError:
        width = 80
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return width or 80, colour
