"""Rows out: table, json, jsonl, csv, parquet, md, html; to stdout or to a file that appears only when it is whole.

Data formats carry what the relation holds: NULL stays null, integers and decimals stay exact, times are ISO 8601.
Text from the streams is hostile until shown otherwise, so what a viewer would act on comes out spelled out.
"""
# ruff: noqa: PLC0415 — Arrow, pyarrow.parquet and rich are imported by the formats and rows that need them

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from analytics.errors import RunlakeError, UsageError
from analytics.formats import Format, Formulas
from analytics.rows import NUMBERS, Rows, rows_of
from analytics.values import as_json, plain, scalar

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
# what turns the direction of text around, or is a line's end to some: U+061C, 200E, 200F, 2028 to 202E, 2066 to 2069
_JSON_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]|\x7f|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
_MAY_BE_CONTROL = (b"\x7f", b"\xc2", b"\xd8\x9c", b"\xe2\x80", b"\xe2\x81")
_CSV_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_HTML_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>runlake</title>
<style>
table { border-collapse: collapse; font: 14px system-ui, sans-serif }
th, td { border-bottom: 1px solid #8884; padding: 2px 8px; text-align: left; unicode-bidi: isolate }
.n { text-align: right; font-variant-numeric: tabular-nums }
</style>
<table>
"""
_CSV_QUOTED = re.compile(r'[",\n\r]|^\s|\s$')
_MD_SPECIAL = re.compile(r"[\\`*\[\]~|#!$]")
_MD_UNDERSCORES = re.compile(r"(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")


@dataclass(frozen=True, slots=True)
class Options:
    """What the output switches say of how rows look."""

    format: Format = "table"
    formulas: Formulas = "escape"


def refuse_lake(out: Path) -> None:
    """A usage error for a path inside a lake, whose files are runlake's own."""
    for folder in out.absolute().parents:
        if (folder / "runlake.json").is_file() and (folder / "_delta_log").is_dir():
            raise UsageError(f"{out} is inside the lake {folder}. Write it somewhere else.")


@contextmanager
def sink(out: Path | None) -> Iterator[IO[bytes]]:
    """Where bytes go: stdout, or a file beside `out` that takes its name once everything is written."""
    if out is None or str(out) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    refuse_lake(out)
    if out.is_dir():
        raise UsageError(f"{out} is a folder. Name a file, such as {out / 'rows.csv'}.")
    if out.exists() and not out.is_file():  # a device or a FIFO: nothing to put in its place
        with out.open("wb") as file:
            yield file
        return
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(out)
    except OSError as error:
        raise RunlakeError.from_os("write", out, error) from error
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def write(
    rows: Any, options: Options, to: IO[bytes], *, note: Callable[[str], None] | None = None, are_few: bool = False
) -> int:
    """Writes all rows in the wanted format; the number of rows. `are_few`: all may stand in memory (a relation's)."""
    if options.format == "parquet":
        from analytics.arrowrows import reader

        return _parquet(reader(rows), to)
    made = rows_of(rows, are_few=are_few)
    if options.format == "json":
        return json_rows(made, to)
    if options.format == "jsonl":
        return _jsonl(made, to)
    if options.format == "csv":
        return _csv(made, to, options.formulas)
    if options.format == "md":
        return _md(made, to)
    if options.format == "html":
        return _html(made, to)
    return _table(made, to, note)


def write_folder(
    rows: Mapping[str, Any], folder: Path, options: Options, *, are_few: bool = False,
    naming: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Iterator[tuple[Path, int]]:  # fmt: skip
    """One file per relation, named after it; each is told, with its number of rows, when it is there.

    `naming`: what surrounds the writing of each, by its name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunlakeError.from_os("make the folder", folder, error) from error
    for name, relation in rows.items():
        file = folder / f"{name}.{options.format}"
        with naming(name), sink(file) as to:
            count = write(relation, options, to, are_few=are_few)
        yield file, count


def _names(given: Iterable[str]) -> list[str]:
    """Column names, told apart where a query gives one name twice (JSON would drop all but the last)."""
    names: list[str] = []
    for name in given:
        unique, count = name, 1
        while unique in names:
            unique, count = f"{name}_{count}", count + 1
        names.append(unique)
    return names


def _objects(rows: Rows) -> Iterator[list[bytes]]:
    names = _names(field.name for field in rows.fields)
    for columns in rows.batches:
        yield [_inert_json(as_json(dict(zip(names, row, strict=True)))) for row in zip(*columns, strict=True)]


def _inert_json(text: bytes) -> bytes:
    """DEL, the C1 controls and turns of direction escaped too: JSON allows them bare, terminals act on them."""
    if not any(mark in text for mark in _MAY_BE_CONTROL):
        return text
    return _JSON_CONTROLS.sub(lambda hit: b"\\u%04x" % ord(hit[0].decode()), text)


def json_rows(rows: Rows, to: IO[bytes]) -> int:
    """An array of objects, one a line; the number of rows."""
    count = 0
    to.write(b"[")
    for objects in _objects(rows):
        to.write((b",\n" if count else b"\n") + b",\n".join(objects))
        count += len(objects)
    to.write(b"\n]\n" if count else b"]\n")
    return count


def _jsonl(rows: Rows, to: IO[bytes]) -> int:
    count = 0
    for objects in _objects(rows):
        to.write(b"\n".join(objects) + b"\n")
        count += len(objects)
    return count


def _parquet(batches: pa.RecordBatchReader, to: IO[bytes]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [field.with_name(name) for field, name in zip(batches.schema, _names(batches.schema.names), strict=True)]
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
    import pyarrow as pa

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
    import pyarrow as pa

    return pa.string() if pa.types.is_interval(kind) or pa.types.is_null(kind) else kind


def _stored(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    import pyarrow as pa

    if pa.types.is_interval(column.type):
        return pa.array([plain(value) for value in column.to_pylist()], kind)
    return column.cast(kind) if column.type != kind else column


def _csv(rows: Rows, to: IO[bytes], formulas: Formulas) -> int:
    escape = formulas == "escape"
    names = (_csv_cell(name, escape=escape) for name in _names(field.name for field in rows.fields))
    to.write((",".join(names) + "\n").encode())
    count = 0
    for columns in rows.batches:
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
        text = spell_controls(text)
        if text.startswith(FORMULA_STARTS):
            text = f"'{text}"
    if not text or _CSV_QUOTED.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def spell_controls(text: str) -> str:
    """The text with the controls and turns of direction that spreadsheets and terminals act on spelled out."""
    return _CSV_CONTROLS.sub(_spelled, text)


def _spelled(hit: re.Match[str]) -> str:
    code = ord(hit[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def inert_markdown(text: str) -> str:
    """The text as a Markdown table cell that shows it and does nothing: no markup, HTML, link, mention or new line."""
    from analytics.render import visible

    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MD_SPECIAL.sub(lambda hit: f"\\{hit[0]}", text)
    text = _MD_UNDERSCORES.sub(lambda hit: "\\_" * len(hit[0]), text)
    text = text.replace("://", "&#58;//").replace("@", "&#64;")
    return re.sub(r"(?i)\bwww\.", lambda hit: hit[0][:-1] + "&#46;", text)


def _md(rows: Rows, to: IO[bytes]) -> int:
    from analytics.render import UNKNOWN

    heads = [inert_markdown(name) for name in _names(field.name for field in rows.fields)]
    rules = ["---:" if field.kind in NUMBERS else "---" for field in rows.fields]
    to.write(f"| {' | '.join(heads)} |\n| {' | '.join(rules)} |\n".encode("utf-8", "backslashreplace"))
    count = 0
    for columns in rows.batches:
        for row in zip(*columns, strict=True):
            cells = [UNKNOWN if value is None else inert_markdown(scalar(value)) for value in row]
            to.write(f"| {' | '.join(cells)} |\n".encode("utf-8", "backslashreplace"))
            count += 1
    return count


def _html(rows: Rows, to: IO[bytes]) -> int:
    """A page with one table. Text is escaped, and the page's own policy forbids scripts, requests and forms."""
    from html import escape

    from analytics.render import UNKNOWN, visible

    kinds = [' class="n"' if field.kind in NUMBERS else "" for field in rows.fields]
    names = [escape(visible(name)) for name in _names(field.name for field in rows.fields)]
    head = "".join(f"<th{kind}>{name}" for kind, name in zip(kinds, names, strict=True))
    to.write(f"{_HTML_HEAD}<thead><tr>{head}\n<tbody>\n".encode("utf-8", "backslashreplace"))
    count = 0
    for columns in rows.batches:
        for row in zip(*columns, strict=True):
            cells = (UNKNOWN if value is None else escape(visible(scalar(value))) for value in row)
            line = "".join(f"<td{kind}>{cell}" for kind, cell in zip(kinds, cells, strict=True))
            to.write(f"<tr>{line}\n".encode("utf-8", "backslashreplace"))
            count += 1
    to.write(b"</table>\n")
    return count


def _table(rows: Rows, to: IO[bytes], note: Callable[[str], None] | None) -> int:
    from analytics.render import table

    count = 0

    def counted() -> Iterator[Sequence[Any]]:
        nonlocal count
        for columns in rows.batches:
            for row in zip(*columns, strict=True):
                count += 1
                yield row

    width, colour = terminal(to)
    for line in table(rows.fields, counted(), width=width, colour=colour, note=note):
        to.write((line + "\n").encode("utf-8", "backslashreplace"))
    return count


def terminal(to: IO[bytes]) -> tuple[int | None, bool]:
    """(width, colour) of a terminal; (None, False) for a file or a pipe, whose readers want whole cells.

    COLUMNS, where somebody exported it, holds for both.
    """
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() and int(told) > 0 else None
    if not to.isatty():
        return width, False
    if width is None:
        try:
            width = os.get_terminal_size(to.fileno()).columns or 80
        except OSError:
            width = 80
    return width, not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
