"""Opening a source: plain, gzip or zstd by its content, with a bound on what it may expand to."""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa

from analytics.discover import inode_of
from analytics.places import is_remote
from analytics.wires.base import Sample

HEAD_BYTES = 256 << 10
PIECE_BYTES = 1 << 20
SNIFF_OBJECTS = 8
SNIFF_DEPTH = 8  # of a record that is cut off; what tells a wire stands in the first two levels
MANY_OBJECTS = 2000  # looked at where the first few tell nothing
STDIN = "-"
BOM = b"\xef\xbb\xbf"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_OPENING = re.compile(r"\s*\{\s*")
_MEMBER = re.compile(r'"([^"\\]{1,80})"\s*:\s*')
_COMMA = re.compile(r"\s*,\s*")
_VALUES = json.JSONDecoder()
_KEY = re.compile(rb'"([A-Za-z_]{1,40})"\s*:')


class Stream(Protocol):
    """Bytes of a source in order."""

    def readinto(self, view: memoryview) -> int:
        """Fill the view from the start; 0 at the end. Raises SourceDefect."""


class SourceDefect(OSError):
    """The source cannot be read further; `reason` is the refusal reason, the message has the details."""

    reason = "read_error"


class BrokenCompression(SourceDefect):
    """Compressed data is cut or corrupt; the message has the decompressor's words."""

    reason = "compressed_data_broken"


class RatioExceeded(SourceDefect):
    """The source expands beyond the allowed ratio."""

    reason = "compression_ratio"


class Plain:
    """An uncompressed file, read to the size it had when it was opened: a writer may be appending."""

    def __init__(self, file: BinaryIO, limit: int | None) -> None:
        self._file = file
        self._left = sys.maxsize if limit is None else limit

    def readinto(self, view: memoryview) -> int:
        """Read at most what was there when the file was opened."""
        wanted = min(len(view), self._left)
        try:
            got = self._file.readinto(view[:wanted]) or 0 if wanted else 0  # type: ignore[attr-defined]
        except OSError as error:
            raise SourceDefect(error.strerror or str(error)) from error
        self._left -= got
        return int(got)


class Gzip:
    """A gzip file, all its members in a row. zlib hands out all that precedes a cut; Arrow keeps a block back."""

    CHUNK = 64 << 10

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(wbits=31)
        self._waiting = b""
        self._started = False
        self._error: OSError | None = None

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end. Raises OSError where the data is cut or corrupt."""
        while True:
            if self._error is not None:
                raise self._error
            raw = self._waiting or self._file.read(self.CHUNK)
            if self._inflate.eof:  # the member ended; zeros may pad, or another member follows
                raw = raw.lstrip(b"\0") if self._waiting else raw
                if not raw:
                    return b""
                self._inflate, self._started = zlib.decompressobj(wbits=31), False
            if not raw and not self._started:
                return b""
            before = self._inflate.copy()
            try:  # without raw bytes: what zlib still holds
                data = self._inflate.decompress(raw, size)
            except zlib.error as error:
                self._error = OSError(str(error))
                return _before_defect(before, raw, size) or self.read(size)
            self._started = True
            self._waiting = self._inflate.unconsumed_tail or self._inflate.unused_data
            if data:
                return data
            if not raw and not self._inflate.eof:
                raise OSError("the compressed data is cut")


def _before_defect(inflate: Any, raw: bytes, size: int) -> bytes:
    """What zlib can give of these bytes, one at a time: where it fails it keeps back all that it made in that call."""
    made = bytearray()
    while len(made) < size:
        try:
            octet = inflate.decompress(raw, 1)
        except zlib.error:
            break
        if not octet:
            break
        made += octet
        raw = inflate.unconsumed_tail
    return bytes(made)


class Compressed:
    """A gzip or zstd file, with a bound on what it may expand to."""

    CHUNK = 64 << 10
    FREE_BYTES = 256 << 20

    def __init__(self, file: BinaryIO, codec: str, size: int, max_ratio: int) -> None:
        self._stream = Gzip(file) if codec == "gzip" else pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)
        self._produced, self._size, self._max_ratio = 0, max(size, 1), max_ratio
        self._error: SourceDefect | None = None

    def readinto(self, view: memoryview) -> int:
        """Decompress into the view, in small steps so that what precedes a defect is kept; a defect stays raised."""
        if self._error is not None:
            raise self._error
        try:
            data = self._stream.read(min(len(view), self.CHUNK))
        except (OSError, pa.ArrowInvalid) as error:
            self._error = BrokenCompression(str(error))
            raise self._error from error
        self._produced += len(data)
        if self._produced > self.FREE_BYTES and self._produced > self._size * self._max_ratio:
            self._error = RatioExceeded(f"{self._size} bytes expand to more than {self._max_ratio} times that")
            raise self._error
        view[: len(data)] = data
        return len(data)


@dataclass(slots=True)
class Opened:
    """An open source: its stream, its stat and how it is compressed."""

    stream: Stream
    file: BinaryIO
    size_bytes: int
    mtime_ns: int
    inode: int
    compression: str | None

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self.file is not sys.stdin.buffer:
            self.file.close()


def open_source(path: str, *, offset: int = 0, max_ratio: int = 1000) -> Opened:
    """Open a path (or `-`, stdin) for reading from a byte offset of its content. Raises OSError."""
    if path == STDIN:
        raw: Any = sys.stdin.buffer
        peeked = raw.peek(4)[:4]
        codec = _codec(peeked)
        stream: Stream = Compressed(raw, codec, sys.maxsize, max_ratio) if codec else Plain(raw, None)
        return Opened(stream, raw, 0, 0, 0, codec)
    file = open_bytes(path)
    try:
        size, mtime_ns, inode = _stat_of(path, file)
        seekable = file.seekable()
        codec = None
        if seekable:
            codec = _codec(file.read(4))
            file.seek(offset)
        limit = size - offset if seekable else None
        stream = Compressed(file, codec, size, max_ratio) if codec else Plain(file, limit)
    except BaseException:
        file.close()
        raise
    return Opened(stream, file, size, mtime_ns, inode, codec)


def open_bytes(path: str) -> Any:
    """A file, or an object of a store, for reading without a buffer of Python's. Raises OSError."""
    if is_remote(path):
        from analytics import objects  # noqa: PLC0415 (0.5 s; what stands in folders needs none of it)

        return objects.open_for_reading(path, block=objects.SOURCE_BLOCK)
    return open(os.fsencode(path), "rb", buffering=0)


def _stat_of(path: str, file: Any) -> tuple[int, int, int]:
    """Size, time of change (ns) and inode of what is open. An object's ETag stands for its inode."""
    if is_remote(path):
        from analytics.objectsources import stat_of  # noqa: PLC0415 (the same)

        return stat_of(file.info)
    stat = os.fstat(file.fileno())
    return stat.st_size, stat.st_mtime_ns, inode_of(stat)


def _codec(head: bytes) -> str | None:
    return next((codec for magic, codec in _MAGIC.items() if head.startswith(magic)), None)


def fill(stream: Stream, view: memoryview) -> int:
    """Fill the view; less only at the end of the source, or before a defect that the next read raises."""
    filled = 0
    while filled < len(view):
        try:
            got = stream.readinto(view[filled:])
        except SourceDefect:
            if not filled:
                raise
            break
        if not got:
            break
        filled += got
    return filled


def read_up_to(stream: Stream, limit: int, begun: bytes) -> tuple[bytes, SourceDefect | None]:
    """What was begun and up to `limit` bytes more, and the defect that ended it. Memory grows with what is there.

    Raises SourceDefect where the file itself cannot be read, since then nothing is wrong with what it holds.
    """
    data, wanted = bytearray(begun), len(begun) + limit
    with memoryview(bytearray(min(limit, PIECE_BYTES))) as piece:
        try:
            while len(data) < wanted and (got := fill(stream, piece[: wanted - len(data)])):
                data += piece[:got]
        except SourceDefect as error:
            if error.reason == SourceDefect.reason:
                raise
            return bytes(data), error
    return bytes(data), None


def looks_like_utf16(head: bytes) -> bool:
    """True: a UTF-16 or UTF-32 byte order mark, or NUL in every second byte of an ASCII text."""
    if head.startswith(_UTF16):
        return True
    probe = head[:512]
    return len(probe) >= 16 and (not any(probe[1::2]) or not any(probe[0::2])) and any(probe)


def take_sample(
    buffer: bytes | bytearray, start: int, stop: int, *, whole: bool, objects: int = SNIFF_OBJECTS
) -> Sample:
    """The beginning of a source, buffer[start:stop], for sniffing. `whole`: that is all of it."""
    found: list[Mapping[str, Any]] = []
    others = lines = 0
    at = start + len(BOM) if buffer.startswith(BOM, start, stop) else start
    while at < stop and len(found) < objects:
        end = buffer.find(b"\n", at, stop)
        if end < 0 and not whole:
            begun = begun_object(bytes(buffer[at:stop]))
            if begun and (found or others):  # alone it may as well be the beginning of a document
                found.append(begun)
            break
        end = stop if end < 0 else end
        line = buffer[at:end].strip()
        at = end + 1
        if not line:
            continue
        lines += 1
        obj = _parse(line)
        if isinstance(obj, dict):
            found.append(obj)
        else:
            others += 1
    if not found:
        text = bytes(buffer[start:stop]).removeprefix(BOM)
        if text.lstrip()[:1] == b"{":
            keys = {key.decode() for key in _KEY.findall(text[:65536])}
            said = {} if whole or b"\n" in text.strip() else begun_object(text)  # lines of a document say it in pieces
            return Sample([dict.fromkeys(keys) | said], others, is_document=True)
    is_document = whole and lines == 1 and len(found) == 1
    return Sample(found, others, is_document=is_document)


def begun_object(text: bytes) -> dict[str, Any]:
    """What a JSON object that is cut off says before the cut; empty if it is none, or says nothing whole."""
    return _begun(text.decode("latin-1"), 0, SNIFF_DEPTH)[0]


def _begun(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    """The members of the object that begins here, and where it was left; not of objects more than `depth` deep."""
    said: dict[str, Any] = {}
    opened = _OPENING.match(text, at)
    at = opened.end() if opened else len(text)
    while member := _MEMBER.match(text, at):
        at = member.end()
        try:
            said[member[1]], at = _VALUES.raw_decode(text, at)
        except (ValueError, RecursionError):
            inside, _ = _begun(text, at, depth - 1) if depth else ({}, at)
            if inside:
                said[member[1]] = inside
            break
        comma = _COMMA.match(text, at)
        if comma is None:
            break
        at = comma.end()
    return said, at


def _parse(line: bytes | bytearray) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
