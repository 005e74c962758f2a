"""Where whole records stand on one physical line: glued together, or behind the stub of a record that broke off.

Writers that lose a newline, or are killed in the middle of a record, leave such lines (native.md: 13 glued, 21 spliced
lines in 10,949 files). Only a wire that says `recovers_glued` has its refused lines looked at here.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_TRIES = 4096
OPENING = re.compile(r'\{\s*"')
DECODER = json.JSONDecoder()


def cuts(line: bytes) -> list[int]:
    """Offsets in the line at which a further part begins, a whole record or a stub; empty: nothing can be recovered.

    A record is a JSON object with a `type`, followed by nothing or by the next record. What stands between records
    is a stub. The structure of JSON is ASCII, so the bytes are looked at as Latin-1, and offsets are byte offsets.
    """
    text = line.decode("latin-1").rstrip(" \t\r")
    starts: list[int] = []
    at, tries = len(text) - len(text.lstrip(" \t")), 0
    is_found = False
    while at < len(text):
        end = _record_end(text, at)
        if end is not None:
            starts.append(at)
            is_found = True
            at = len(text) - len(text[end:].lstrip(" \t"))
            continue
        starts.append(at)
        for opening in OPENING.finditer(text, at + 1):
            tries += 1
            if tries > MAX_TRIES:
                return []
            end = _record_end(text, opening.start())
            if end is not None and (end == len(text) or text[end] == "{"):
                at = opening.start()
                break
        else:
            break
    return starts[1:] if is_found else []


def _record_end(text: str, start: int) -> int | None:
    """Where the record that begins here ends; None if none does."""
    found: Any
    if not text.startswith("{", start):
        return None
    try:
        found, end = DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return end if isinstance(found, dict) and "type" in found else None
