"""What every wire file offers, and the few shapes that pass between a wire and the block decoder.

A wire turns decoded lines into event rows; it never touches bytes, files or Arrow. The decoder (`analytics.decode`)
finds line boundaries, checks UTF-8, decodes whole blocks with the wire's msgspec decoder, and goes line by line only
around a bad line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

MESSAGE_CHARS = 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Microseconds of the years 1 to 9999. A time beyond them can be stored, but neither Python nor the lake's statistics
# can hold it: one such line would keep a whole ingest from being committed.
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
MAX_INT = 2**63 - 1
# Of one token counter, and far beyond any account's (a thread's total of 3.2e9 is the largest known): a greater one is
# damage, and a few of the size of MAX_INT would overflow every sum over the lake.
MAX_TOKENS = 10**15
# Of this length a call id is the vendor's and random; shorter ones are counted anew by each gateway or session
# ("functions.Bash:0", "call_1").
UNIQUE_CALL_CHARS = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one line is refused (a name of `refusals.REASONS`), and what the line itself still tells."""

    reason: str
    detail: str | None = None
    run_id: str | None = None
    seq: int | None = None


@dataclass(slots=True)
class Context:
    """Where a span of lines stands. `state` is the wire's own Struct, carried from span to span of one source."""

    source_id: str
    shape: str
    state: Any


@dataclass(slots=True)
class Rows:
    """What a wire says of `n` decoded lines.

    columns: per event column a list (or an Arrow array) of length n; a column left out is NULL. `ts` and
    `limit_resets_at` are integers, microseconds since the epoch. constants: columns with one value for all n rows.
    sparse and filled: columns most of whose rows are NULL, as places and values (cheaper than a list of None), set
    row by row or many rows at once. A name stands in columns, in constants, or in the other two.
    parts: further facts of a line, as (index of the line, column values); they become part 1, 2, … in list order.
    A part inherits run_id, run_id_origin, seq, ts, ts_origin and event of its line unless it names them.
    refused: index of the line → Refusal; its columns and parts are dropped.
    """

    n: int
    columns: dict[str, Sequence[Any] | pa.Array] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    sparse: dict[str, tuple[list[int], list[Any]]] = field(default_factory=dict)
    filled: list[tuple[list[int], dict[str, list[Any]]]] = field(default_factory=list)
    parts: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    refused: dict[int, Refusal] = field(default_factory=dict)

    def put(self, i: int, **values: Any) -> None:
        """Set sparse columns of one row; None is not kept."""
        for name, value in values.items():
            if value is not None:
                places, kept = self.sparse.setdefault(name, ([], []))
                places.append(i)
                kept.append(value)

    def fill(self, places: list[int], **values: list[Any]) -> None:
        """Set sparse columns of many rows, a list of values beside the list of their indices."""
        self.filled.append((places, values))

    def said(self, name: str) -> Iterator[tuple[Sequence[int], Any]]:
        """What the rows say of a column that is no constant: places and values."""
        if name in self.columns:
            yield range(self.n), self.columns[name]
        if name in self.sparse:
            yield self.sparse[name]
        for places, columns in self.filled:
            if name in columns:
                yield places, columns[name]

    def value(self, name: str, i: int) -> Any:
        """The value of a column in one row, wherever it stands."""
        if name in self.columns:
            found = self.columns[name][i]
            return found.as_py() if isinstance(found, pa.Scalar) else found
        found = self.constants.get(name)
        for places, values in self.said(name):
            found = dict(zip(places, values, strict=True)).get(i, found)
        return found

    def blank(self, *names: str) -> list[list[Any]]:
        """New all-NULL columns, to be filled by index."""
        made: list[list[Any]] = []
        for name in names:
            column: list[Any] = [None] * self.n
            self.columns[name] = column
            made.append(column)
        return made


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a source, for sniffing: the lines that parse as JSON objects, and how many do not."""

    objects: Sequence[Mapping[str, Any]]
    other_lines: int
    is_document: bool = False


class Wire(Protocol):
    """One wire. `name` is the partition value; `secret_exempt_keys` are declared keys the secret-key rule skips."""

    name: str
    summary: str
    secret_exempt_keys: frozenset[str]

    def sniff(self, sample: Sample) -> str | None:
        """The shape this wire sees in the sample, or None."""

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        """Decodes one line (`decode`) or many (`decode_lines`) into objects that `read` takes."""

    def new_state(self, shape: str) -> Any:
        """A fresh state for a source; a msgspec Struct that encodes to JSON."""

    def load_state(self, shape: str, text: str) -> Any:
        """The state that `msgspec.json.encode(state)` wrote."""

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        """Why a JSON object did not fit the decoder. `error` holds msgspec's words."""

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> Any | None:
        """An object for `read` in place of a line that would be refused (plain text is data on some wires), or None."""

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        """Event rows of consecutive good lines of one source; moves ctx.state on."""

    def is_final_without_newline(self, shape: str) -> bool:
        """True: an unterminated last line is a line like any other, even in a file that may still grow."""

    def needs_newline(self, shape: str) -> bool:
        """True: a line is never data without its newline, even where nothing can follow (stdin, compressed)."""


def micros(text: str | None, *, assume_utc: bool = False) -> int | None:
    """Microseconds since the epoch of one ISO 8601 time; None where it is none, lacks a zone, or is out of bounds."""
    if not text or (text[4:5] != "-" and "T" not in text):  # Python reads bare digits as a date, too
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        if not assume_utc:
            return None
        moment = moment.replace(tzinfo=UTC)
    gap = moment - EPOCH
    return in_bounds((gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds)


def in_bounds(moment: int | None) -> int | None:
    """The moment, if it is known and lies in the years 1 to 9999."""
    return moment if moment is not None and FIRST_TIME <= moment <= LAST_TIME else None


def all_in_bounds(moments: pa.Int64Array) -> bool:
    """True: every moment that is known lies in the years 1 to 9999."""
    found = pc.min_max(moments)
    low, high = found["min"].as_py(), found["max"].as_py()
    return low is None or (low >= FIRST_TIME and high <= LAST_TIME)


def times(texts: Sequence[str | None], *, assume_utc: bool = False) -> pa.Int64Array:
    """`micros` over a list; the common case runs in Arrow."""
    try:
        kind = pa.timestamp("us") if assume_utc else pa.timestamp("us", "UTC")
        parsed = pa.array(texts, pa.string()).cast(kind).view(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        parsed = pa.array((micros(text, assume_utc=assume_utc) for text in texts), pa.int64())
    if not all_in_bounds(parsed):
        parsed = pa.array(map(in_bounds, parsed.to_pylist()), pa.int64())
    return parsed


def origin_of(moments: pa.Int64Array, origin: str) -> pa.Array:
    """The column ts_origin: NULL where no time is known."""
    return pc.if_else(moments.is_valid(), origin, None)


def key64(data: bytes) -> int:
    """The signed 64-bit xxh3 of some bytes: how lake-wide identities fit an integer column."""
    key = xxhash.xxh3_64_intdigest(data)
    return key - (1 << 64) if key >> 63 else key


def loose(line: bytes) -> Any | None:
    """The line as `mended` has it, read. None: it is no JSON."""
    whole = mended(line)
    return None if whole is None else json.loads(whole)


def mended(line: bytes) -> bytes | None:
    """JSON for the decoder in place of a line whose only faults are halves of surrogate pairs, which become question
    marks (clients cut long texts by UTF-16 units), and counters written as 12.0, which become whole. None: no JSON.
    """
    try:
        return json.dumps(json.loads(line, parse_float=number), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None


def number(text: str) -> int | float:
    """A number with a point; whole where nothing stands behind it."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def clip(text: str | None) -> str | None:
    """A message cut to the length the lake keeps outside the payload."""
    return text if text is None or len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - 1] + "…"


def attributes(**values: Any) -> str | None:
    """The attributes column: a JSON object of what the record said; None values are left out."""
    said = {key: value for key, value in values.items() if value is not None}
    return msgspec.json.encode(said).decode() if said else None


class DocumentError(ValueError):
    """A JSON document is not of the shape its wire has; the message names the place."""


@dataclass(frozen=True, slots=True)
class Element:
    """One event inside a document: where its bytes stand, and the object for `read` (or why it is refused)."""

    offset: int
    length: int
    obj: Any | Refusal


class DocumentWire(Wire, Protocol):
    """A wire one of whose shapes is a single JSON document instead of lines."""

    def document(self, data: bytes, ctx: Context) -> list[Element]:
        """The events in the document, in byte order. Raises DocumentError."""
