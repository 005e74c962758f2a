"""Private keys printed as plain text, one line after the other: no line alone shows that it is part of a secret.

A stream of plain text (or a log in which a record is torn) may hold such a block. Its lines are found by the header
before them; the header and the END line stay, what stands between goes.
"""

from __future__ import annotations

import re

import numpy as np

from analytics.lines import Buffer, Lines

HEADER = b"PRIVATE KEY"
MARK = b"[REDACTED:private_key]"
_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----\s*\Z")
# with what tools put before a line: a diff's sign, a quote's bar, a line number
_BEFORE = rb"[ \t]*+[+>|-]?+[ \t]*+(?:[0-9]{1,6}(?:[ \t:|]|\xe2\x86\x92)++)?+"
_BODY = re.compile(_BEFORE + rb"(?P<key>[A-Za-z0-9+/]++={0,2}+)\s*\Z")
_ATTRIBUTE = re.compile(_BEFORE + rb"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): .{1,200}|)\s*\Z")
_LONG = 20


def begins(line: bytes) -> bool:
    """The line ends in a private key's header, so what follows it is the key."""
    return _BEGIN.search(line) is not None


def part(line: bytes) -> tuple[bool, bytes | None]:
    """Whether the line behind a header still belongs to the block; and the line without its part of the key.

    Base64 comes in fours; a shorter run of letters that does not is a word.
    """
    body = _BODY.match(line)
    if body is None:
        return _ATTRIBUTE.match(line) is not None, None
    key = body["key"]
    if len(key) < _LONG and len(key) % 4:
        return False, None
    return True, line[: body.start("key")] + MARK + line[body.end("key") :]


def find(buffer: Buffer, lines: Lines, first: int, last: int, *, is_inside: bool) -> tuple[dict[int, bytes], bool]:
    """Which of the lines first … last-1, all of one source, are part of a key, and what may be kept of each.

    `is_inside`: the lines before them ended inside a key; the second value says the same of these.
    """
    found: dict[int, bytes] = {}
    at = first
    while at < last:
        if not is_inside:
            place = buffer.find(HEADER, int(lines.starts[at]), int(lines.ends[last - 1]))
            if place < 0:
                break
            at = int(np.searchsorted(lines.ends, place))
            is_inside = begins(lines.line(at))
            at += 1
            continue
        is_inside, clean = part(lines.line(at))
        if clean is not None:
            found[at] = clean
        at += is_inside  # a line that is no part of the key may be the header of the next
    return found, is_inside
