"""Where whole records stand on one physical line: glued together, or behind the stub of a record that broke off.

Writers that lose a newline, or are killed in the middle of a record, leave such lines (native.md: 13 glued, 21 spliced
lines in 10,949 files). Only a wire that says `recovers_glued` has its refused lines looked at here.
"""

from __future__ import annotations

import json
import re
from typing import Any

LOOKS = 32  # how often a line is looked through before it is given up; a torn record may nest deep
OPENING = re.compile(r'\{\s*"')
DECODER = json.JSONDecoder()


def cuts(line: bytes) -> list[int]:
    """Offsets in the line at which a further part begins, a whole record or a stub; empty: nothing can be recovered.

    A record is a JSON object with a `type`, followed by nothing or by the next record. What stands between records
    is a stub; white space goes with what precedes it, so that no part is blank. The structure of JSON is ASCII, so
    the bytes are looked at as Latin-1, and offsets are byte offsets.
    """
    text = line.decode("latin-1").rstrip(" \t\r")
    starts: list[int] = []
    at, budget = len(text) - len(text.lstrip(" \t\r")), LOOKS * len(text)
    is_found = False
    while at < len(text):
        end, seen = _record_end(text, at)
        budget -= seen
        if end is not None:
            starts.append(at)
            is_found = True
            at = len(text) - len(text[end:].lstrip(" \t\r"))
            continue
        starts.append(at)
        for opening in OPENING.finditer(text, at + 1):
            if budget < 0:
                return starts[1:] if is_found else []
            end, seen = _record_end(text, opening.start())
            budget -= seen
            if end is not None and (end == len(text) or text[end] == "{"):
                at = opening.start()
                break
        else:
            break
    return starts[1:] if is_found else []


def _record_end(text: str, start: int) -> tuple[int | None, int]:
    """Where the record that begins here ends (None if none does), and how much of the text was looked at."""
    found: Any
    if not text.startswith("{", start):
        return None, 0
    try:
        found, end = DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated")  # its place is where the string begins, not where it was left
        return None, (len(text) if is_cut else error.pos) - start
    except RecursionError:
        return None, len(text) - start
    return (end if isinstance(found, dict) and "type" in found else None), end - start
