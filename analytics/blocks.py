"""Bytes to decoded lines: a block of many lines, of one or of many sources, is decoded chunk by chunk in C.

`Decoder.decode_lines` ignores newlines, so a chunk is good only if each line starts with `{`, ends with `}` (before an
optional CR) and there are as many objects as lines. UTF-8 is checked by Arrow over the whole block, since msgspec
accepts bad UTF-8 in fields it skips. A bad line costs its own chunk a second look, line by line, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from analytics.glued import cuts
from analytics.lines import Ints, Lines
from analytics.redact import Redactor
from analytics.wires.base import Context, Refusal, Wire, loose

CHUNK_LINES = 32
GLUED = frozenset({"not_json", "trailing_text", "nul_byte", "invalid_utf8"})  # how a line of several records looks


@dataclass(slots=True)
class Payload:
    """The texts of a block, one per line, and what stands in place of some: redacted text, or None for no UTF-8."""

    texts: pa.StringViewArray
    instead: dict[int, str | None] = field(default_factory=dict)

    def column(self, rows: Ints) -> pa.StringViewArray:
        """The texts of these lines, NULL where a row is -1; the texts themselves are not copied."""
        texts, n = self.texts, len(self.texts)
        if len(rows) == n and not self.instead and (rows == np.arange(n)).all():
            return texts
        if self.instead:
            texts = pa.concat_arrays([texts, pa.array(self.instead.values(), pa.string_view())])
            at = np.arange(n + 1)
            at[list(self.instead)] = n + np.arange(len(self.instead))
            at[n] = -1
            rows = at[rows]
        valid, views, *data = texts.buffers()
        is_valid = rows >= 0
        if valid is not None:
            is_valid &= texts.is_valid().to_numpy(zero_copy_only=False)[rows]
        taken = np.frombuffer(views, np.int64, 2 * len(texts), 16 * texts.offset).reshape(-1, 2)[rows]
        taken[~is_valid] = 0
        bits = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
        return pa.StringViewArray.from_buffers(pa.string_view(), len(rows), [bits, pa.py_buffer(taken), *data])


@dataclass(slots=True)
class Refused:
    """A line that is no event: its index among the lines, and why."""

    index: int
    refusal: Refusal
    line: bytes
    kept: bytes | None = None  # what may be kept of it, where it is part of a secret that stands on several lines


@dataclass(slots=True)
class Decoded:
    """The good lines of a block: `index` into the Lines, the objects, the payload beside them, and what was left out.

    Keys of the dictionaries are indices into the Lines, too.
    """

    index: Ints
    objects: list[Any]
    payload: Payload
    refused: list[Refused] = field(default_factory=list)
    blanks: list[tuple[int, bytes]] = field(default_factory=list)
    raw: dict[int, bytes] = field(default_factory=dict)  # bytes that are no UTF-8 text
    redactions: dict[int, int] = field(default_factory=dict)  # how many
    may_hold_secrets: bool = True  # False: the scan of the block found not one line worth a look


@dataclass(slots=True)
class LineDecoder:
    """Decodes lines of one wire and shape."""

    wire: Wire
    shape: str
    decoder: msgspec.json.Decoder[Any]
    redactor: Redactor | None
    max_line_bytes: int

    def decode(
        self, lines: Lines, texts: pa.StringViewArray, firsts: Sequence[int], contexts: Sequence[Context]
    ) -> Decoded:
        """Whole lines, whatever they hold; source k begins at line `firsts[k]`."""
        n = len(lines)
        odd, broken = lines.odd(self.max_line_bytes), not_utf8(texts)
        odd[broken] = True
        doubtful = set((np.flatnonzero(odd) // CHUNK_LINES).tolist())
        out = Decoded(np.arange(n), [], Payload(texts))
        left_out: list[int] = []
        cuts = [*lines.starts[::CHUNK_LINES].tolist(), int(lines.ends[-1]) + 1]
        for number, (start, end) in enumerate(pairwise(cuts)):
            first = number * CHUNK_LINES
            size = min(CHUNK_LINES, n - first)
            if number not in doubtful:
                try:
                    found = self.decoder.decode_lines(lines.buffer[start:end])
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    pass
                else:
                    if len(found) == size:
                        out.objects += found
                        continue
            for j in range(first, first + size):
                ctx = contexts[bisect_right(firsts, j) - 1]
                if not self._closely(j, lines.line(j), ctx, out, is_plain=not odd[j], is_glued=lines.is_glued(j)):
                    left_out.append(j)
        if left_out:
            out.index = np.delete(out.index, left_out)
        self.redact(out, broken)
        return out

    def parted(self, decoded: Decoded) -> dict[int, list[int]]:
        """The refused lines that hold whole records, and where to cut them; empty for wires that do not recover."""
        if not getattr(self.wire, "recovers_glued", False):
            return {}
        found = {one.index: cuts(one.line) for one in decoded.refused if one.refusal.reason in GLUED}
        return {j: places for j, places in found.items() if places}

    def _closely(self, j: int, line: bytes, ctx: Context, out: Decoded, *, is_plain: bool, is_glued: bool) -> bool:
        """One line of a chunk that holds a bad one; True if it is an event. `is_plain`: nothing odd is known of it."""
        if is_plain:
            try:
                out.objects.append(self.decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
            else:
                return True
        if not line.strip(b" \t\r"):
            out.blanks.append((j, line))
            return False
        found = self.one(line, ctx)
        if isinstance(found, Refusal):
            found = self._without_secrets(line, found, ctx)
            if is_glued and found.reason == "not_json":
                found = Refusal("torn_record", f"the record breaks off: {found.detail}")
            out.refused.append(Refused(j, found, line))
            return False
        is_text = is_utf8(line)
        if self.redactor is not None and (not is_text or is_torn(line)):  # the scan of the payload passes it over
            line, count = self.redactor.any_bytes(line)
            if count:
                out.redactions[j] = count
                out.payload.instead[j] = line.decode() if is_text else None
                found = self.one(line, ctx)
        if not is_text:
            out.raw[j] = line
            out.payload.instead[j] = None
        out.objects.append(found)
        return True

    def _without_secrets(self, line: bytes, found: Refusal, ctx: Context) -> Refusal:
        """The refusal in words that quote the redacted line: a quoted part may no longer look like the secret it is."""
        clean, count = self.redactor.text(line) if self.redactor is not None else (line, 0)
        if not count:
            return found
        again = self.one(clean, ctx)
        is_same = isinstance(again, Refusal) and again.reason == found.reason
        return again if is_same else Refusal(found.reason, None)

    def hide(self, decoded: Decoded, kept: Mapping[int, bytes]) -> None:
        """Keep no more than this of lines that are part of a secret on several lines; see `key_lines`."""
        for j, clean in kept.items():
            row = int(np.searchsorted(decoded.index, j))
            if row < len(decoded.index) and decoded.index[row] == j:
                decoded.payload.instead[j] = clean.decode()
                decoded.redactions[j] = 1
                decoded.objects[row] = self._again(clean, decoded.objects[row])
        for one in decoded.refused:
            one.kept = kept.get(one.index)

    def redact(self, decoded: Decoded, unreadable: Sequence[int] = ()) -> None:
        """Replace secrets in the payload, and decode a changed line anew so that no column keeps one."""
        if self.redactor is None or not decoded.objects:
            return
        texts, places = decoded.payload.texts, None
        if len(unreadable):
            places = np.delete(np.arange(len(texts)), unreadable)
            texts = Payload(texts).column(places)
        suspects = self.redactor.suspects(texts)
        decoded.may_hold_secrets = suspects is not None or places is not None
        if suspects is None:
            return
        if places is not None:
            suspects = places[suspects]
        at = np.searchsorted(decoded.index, suspects)
        for j, row in zip(suspects.tolist(), at.tolist(), strict=True):
            if row == len(decoded.index) or decoded.index[row] != j or j in decoded.redactions:
                continue  # done, or a refused line; what is kept of that is redacted where it is refused
            clean, count = self.redactor.json_line(decoded.payload.texts[j].as_py())
            if count:
                decoded.payload.instead[j] = clean
                decoded.redactions[j] = count
                decoded.objects[row] = self._again(clean.encode(), decoded.objects[row])

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
        except msgspec.ValidationError:  # 1e400: JSON, but no number that anything here can hold
            value = loose(line)
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
        run_id = run_id if isinstance(run_id, str) else None
        return Refusal("trailing_text", f"{len(line) - end} bytes follow the object", run_id)


def not_utf8(texts: pa.StringViewArray) -> list[int]:
    """Indices of the texts that are not UTF-8. Arrow names only the first it finds."""
    found: list[int] = []
    at = 0
    while at < len(texts):
        try:
            texts.slice(at).validate(full=True)
        except pa.ArrowInvalid as error:
            at += int(str(error).rsplit(" ", 1)[1])
            found.append(at)
            at += 1
        else:
            break
    return found


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


def is_torn(line: bytes) -> bool:
    """True: text that a record was cut to, or that is no UTF-8 for all its bytes say."""
    return b"\0" in line or (line.lstrip()[:1] == b"{" and line.rstrip()[-1:] != b"}")


def _json_type(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def sha256(data: bytes) -> str:
    """Digest of refused bytes before redaction."""
    return hashlib.sha256(data).hexdigest()
