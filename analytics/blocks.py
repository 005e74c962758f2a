"""Bytes to decoded lines: a block of many lines (of one or of many sources) at once, line by line only around a bad one.

`Decoder.decode_lines` ignores newlines, so a block is good only if each line starts with `{`, ends with `}` (before an
optional CR) and there are as many objects as lines. UTF-8 is checked by Arrow over the whole block, since msgspec
accepts bad UTF-8 in fields it skips.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from analytics.redact import Redactor
from analytics.wires.base import Context, Refusal, Wire

CHUNK_LINES = 64
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class Lines:
    """Line boundaries inside a buffer of whole lines: line j is buffer[starts[j]:ends[j]], the newline at ends[j]."""

    buffer: memoryview
    octets: np.ndarray[Any, np.dtype[np.uint8]]
    starts: Ints
    ends: Ints

    @classmethod
    def find(cls, buffer: memoryview) -> Lines:
        """All lines of a buffer that ends with a newline."""
        octets = np.frombuffer(buffer, np.uint8)
        ends = np.flatnonzero(octets == 10)
        starts = np.empty(len(ends), np.int64)
        if len(ends):
            starts[0] = 0
            starts[1:] = ends[:-1] + 1
        return cls(buffer, octets, starts, ends)

    @classmethod
    def of(cls, texts: list[bytes]) -> Lines:
        """Texts that may hold newlines themselves, as lines of a buffer made for them."""
        buffer = b"\n".join([*texts, b""])
        lengths = np.array([len(text) for text in texts], np.int64)
        ends = np.cumsum(lengths + 1) - 1
        return cls(memoryview(buffer), np.frombuffer(buffer, np.uint8), ends - lengths, ends)

    def __len__(self) -> int:
        return len(self.ends)

    def slice(self, first: int, last: int) -> Lines:
        """Lines first … last-1, sharing the buffer."""
        return Lines(self.buffer, self.octets, self.starts[first:last], self.ends[first:last])

    def line(self, j: int) -> bytes:
        """The bytes of line j without its newline."""
        return bytes(self.buffer[self.starts[j] : self.ends[j]])


@dataclass(slots=True)
class Refused:
    """A line that is no event: its index among the lines, and why."""

    index: int
    refusal: Refusal
    line: bytes


@dataclass(slots=True)
class Decoded:
    """Good lines: `index` into the Lines, the objects, the payload beside them (redacted), and what was left out."""

    index: Ints
    objects: list[Any]
    payload: pa.StringArray
    refused: list[Refused] = field(default_factory=list)
    blanks: list[tuple[int, bytes]] = field(default_factory=list)
    raw: dict[int, bytes] = field(default_factory=dict)  # position → bytes that are no UTF-8 text
    redactions: dict[int, int] = field(default_factory=dict)  # position → count

    def slice(self, first: int, last: int) -> Decoded:
        """The same of lines first … last-1, where every line is good."""
        redactions = {j - first: n for j, n in self.redactions.items() if first <= j < last}
        payload = self.payload.slice(first, last - first)
        return Decoded(np.arange(last - first), self.objects[first:last], payload, redactions=redactions)


@dataclass(slots=True)
class LineDecoder:
    """Decodes lines of one wire and shape."""

    wire: Wire
    shape: str
    decoder: msgspec.json.Decoder[Any]
    redactor: Redactor | None
    max_line_bytes: int

    def fast(self, lines: Lines) -> tuple[list[Any], pa.StringArray] | None:
        """All lines at once, or None if any of them needs a closer look."""
        n = len(lines)
        lengths = lines.ends - lines.starts
        if n == 0 or int(lengths.min()) < 2 or int(lengths.max()) > self.max_line_bytes:
            return None
        last = lines.octets[lines.ends - 1]
        carriage = last == 13
        if carriage.any():
            if int(lengths[carriage].min()) < 3:
                return None
            last = lines.octets[lines.ends - 1 - carriage]
        if not ((lines.octets[lines.starts] == 123).all() and (last == 125).all()):
            return None
        first, end = int(lines.starts[0]), int(lines.ends[-1]) + 1
        view = lines.buffer[first:end]
        payload = _payload(view, lines, lengths)
        try:
            payload.validate(full=True)
            objects = self.decoder.decode_lines(view)
        except (msgspec.MsgspecError, pa.ArrowInvalid, UnicodeDecodeError, RecursionError):
            return None
        return (objects, payload) if len(objects) == n else None

    def decode(self, lines: Lines, ctx: Context) -> Decoded:
        """Lines of one source, whatever they hold."""
        fast = self.fast(lines)
        if fast is not None:
            decoded = Decoded(np.arange(len(lines)), *fast)
        else:
            decoded = self._closely(lines, ctx)
        self.redact(decoded)
        return decoded

    def redact(self, decoded: Decoded) -> None:
        """Replace secrets in the payload, and decode a changed line anew so that no column keeps one."""
        if self.redactor is None or not decoded.objects:
            return
        suspects = self.redactor.suspects(decoded.payload)
        if suspects is None:
            return
        changed: dict[int, str] = {}
        for j in suspects.tolist():
            text = decoded.payload[j].as_py()
            if text is None:
                continue
            clean, count = self.redactor.json_line(text)
            if count:
                changed[j] = clean
                decoded.redactions[j] = count
        if not changed:
            return
        for j, clean in changed.items():
            decoded.objects[j] = self._again(clean.encode(), decoded.objects[j])
        decoded.payload = _replace(decoded.payload, changed)

    def _again(self, clean: bytes, before: Any) -> Any:
        try:
            return self.decoder.decode(clean)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            refusal = Refusal("not_json", "plain text")
            accepted = self.wire.accept_text(clean, refusal, Context("", self.shape, None))
            if accepted is None:
                name = type(before).__name__
                raise AssertionError(f"a redacted {name} line no longer decodes; please report this as a bug") from None
            return accepted

    def _closely(self, lines: Lines, ctx: Context) -> Decoded:
        """Chunk by chunk; a chunk with a bad line goes line by line."""
        index: list[int] = []
        objects: list[Any] = []
        payloads: list[pa.StringArray] = []
        out = Decoded(np.empty(0, np.int64), objects, pa.array([], pa.string()))
        for first in range(0, len(lines), CHUNK_LINES):
            chunk = lines.slice(first, min(first + CHUNK_LINES, len(lines)))
            fast = self.fast(chunk)
            if fast is not None:
                index.extend(range(first, first + len(chunk)))
                objects.extend(fast[0])
                payloads.append(fast[1])
                continue
            texts: list[bytes | None] = []
            for j in range(len(chunk)):
                line = chunk.line(j)
                if not line.strip(b" \t\r"):
                    out.blanks.append((first + j, line))
                    continue
                found = self.one(line, ctx)
                if isinstance(found, Refusal):
                    out.refused.append(Refused(first + j, found, line))
                    continue
                if not is_utf8(line):
                    out.raw[len(objects)] = line
                texts.append(None if len(objects) in out.raw else line)
                index.append(first + j)
                objects.append(found)
            payloads.append(pa.array(texts, pa.binary()).cast(pa.string()))
        out.index = np.array(index, np.int64)
        out.payload = pa.concat_arrays(payloads) if payloads else out.payload
        return out

    def one(self, line: bytes, ctx: Context) -> Any | Refusal:
        """One line: the decoded object, or why it is refused."""
        found = self._checked(line, ctx)
        if isinstance(found, Refusal):
            accepted = self.wire.accept_text(line, found, ctx)
            return found if accepted is None else accepted
        return found

    def _checked(self, line: bytes, ctx: Context) -> Any | Refusal:
        if len(line) > self.max_line_bytes:
            return Refusal("line_too_long", f"{len(line)} bytes, the limit is {self.max_line_bytes}")
        if b"\0" in line:
            return Refusal("nul_byte", f"{line.count(0)} NUL bytes, the first at byte {line.index(0)} of the line")
        try:
            line.decode()
        except UnicodeDecodeError as error:
            return Refusal("invalid_utf8", f"byte {error.start} of the line is not UTF-8: {error.reason}")
        try:
            return self.decoder.decode(line)
        except msgspec.ValidationError as error:
            return self._explain(line, str(error), ctx)
        except msgspec.DecodeError as error:
            return self._broken(line, str(error), ctx)
        except RecursionError:
            return Refusal("too_deep", "the JSON nests deeper than the decoder goes")

    def _explain(self, line: bytes, error: str, ctx: Context) -> Refusal:
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError as broken:  # the shape was wrong before the text broke off
            return self._broken(line, str(broken), ctx)
        except RecursionError:
            return Refusal("too_deep", "the JSON nests deeper than the decoder goes")
        if not isinstance(value, dict):
            return Refusal("not_an_object", f"the line is a JSON {_json_type(value)}, not an object")
        return self.wire.explain(value, error, ctx)

    def _broken(self, line: bytes, error: str, ctx: Context) -> Refusal:
        if "trailing characters" not in error or line.lstrip()[:1] != b"{":
            return Refusal("not_json", error)
        end = _object_end(line)
        known = self._checked(line[:end], ctx) if 0 < end < len(line) else None
        run_id = known.run_id if isinstance(known, Refusal) else getattr(known, "run", getattr(known, "run_id", None))
        return Refusal("trailing_text", f"{len(line) - end} bytes follow the object", run_id if isinstance(run_id, str) else None)


def _payload(view: memoryview, lines: Lines, lengths: Ints) -> pa.StringArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = bytes(view).replace(b"\n", b"")
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(text))


def _replace(payload: pa.StringArray, changed: dict[int, str]) -> pa.StringArray:
    pieces: list[pa.StringArray] = []
    at = 0
    for j in sorted(changed):
        pieces += [payload.slice(at, j - at), pa.array([changed[j]], pa.string())]
        at = j + 1
    return pa.concat_arrays([*pieces, payload.slice(at)])


def _object_end(line: bytes) -> int:
    """Where the first JSON object of a line ends; the line's length if it has no whole object."""
    text = line.decode()
    start = len(text) - len(text.lstrip())
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return len(line)
    return len(text[:end].encode())


def is_utf8(line: bytes) -> bool:
    """True: the bytes are valid UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_type(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def sha256(data: bytes) -> str:
    """Digest of refused bytes before redaction."""
    return hashlib.sha256(data).hexdigest()

