"""Streams made worse: what a broken writer, a full disk, an odd locale or an enemy could make of a real one.

Two kinds of damage: to bytes and lines, which need not be JSON afterwards, and to the JSON of a line, which stays JSON
but says something else. Everything is drawn from one `random.Random`: wire, seed and number say the input.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

WINDOW = 40  # lines of a seed that one input takes
BOM = b"\xef\xbb\xbf"


class Raw(str):
    """JSON text that `json.dumps` would not write."""

    __slots__ = ()


class Twice(dict[str, Any]):
    """An object whose key stands in it twice, the second time with `other`."""

    def __init__(self, made: dict[str, Any], key: str, other: Any) -> None:
        super().__init__(made)
        self.key, self.other = key, other


def nested(depth: int, opened: str = '{"a":', closed: str = "}") -> Raw:
    return Raw(opened * depth + "1" + closed * depth)


TIMES: tuple[Any, ...] = (
    "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "2026-06-30T23:59:60Z", "2026-02-30T00:00:00Z",
    "2026-05-04T24:00:00Z", "2026-05-04", "2026-05-04 10:00", "2026-05-04T10:00:00", "2026-05-04T10:00:00.123456789Z",
    "2026-05-04T10:00:00,5Z", "2026-05-04T10:00:00+0200", "2026-05-04T10:00:00+99:00", "20260504T100000Z",
    "2026-W19-1", "+12026-05-04T10:00:00Z", "1767225600", "1677-01-01T00:00:00Z", "2300-01-01T00:00:00Z",
    0, -1, 1_767_225_600, 1_767_225_600.5, 1_767_225_600_000, 1_767_225_600_000_000, 253_402_300_799, 253_402_300_800,
    253_402_300_799_999, 253_402_300_800_000, -62_135_596_801, 9_223_372_036_854, 9_223_372_036_855,
    9_223_372_036_854_775, 10**18,
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 255, 2**31, 2**32, 2**53, 2**53 + 1, 10**15, 10**15 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30,
    -(2**63), -(2**63) - 1, 1.5, 10.0, -0.0, 1e-300, 1e15, 1e16, 1e308, Raw("1e400"), Raw("-1e400"), Raw("1E3"),
    Raw("-0"), Raw("12345678901234567890.0"), Raw("NaN"), Raw("Infinity"), Raw("007"), Raw("1" * 400),
    Raw("1" * 5000), "7", "0x10", "1e3", "", True,
)  # fmt: skip
TEXTS: tuple[Any, ...] = (
    "", " ", "\t\n", "\0", "a" * 5000, Raw('"\\ud800"'), Raw('"\\udc00\\ud800"'), Raw('"\\u0000"'), "\U0001f600",
    "\u2028\u2029\x85", "\ufeff", "../../x", "a/b\\c", "a\nb", "%s%n", "=1+1", "' OR 1=1 --", '"', "#2", "a#2", "null",
    "NaN", "true", "{}", '{"a":1}', "\x1b[31m", "<script>", "I\u0307", "e\u0301", "run\u200b", "\ud7ff\ue000",
)  # fmt: skip
SHAPES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], [{}], {"": None}, {"a": {"b": []}}, [1, "a", None, {}], {"type": "text"},
    nested(30), nested(300), nested(1100), nested(2000, "[", "]"), nested(40_000, "[", "]"),
)  # fmt: skip
ODD = (TIMES, NUMBERS, TEXTS, SHAPES)
TOKENS: tuple[bytes, ...] = (
    b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", BOM, b"\xff\xfe", b"\r", b"\n", b"\r\n", b"\x0b",
    b"\x0c", b"\x85", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\\u0000", b"\\ud800",
    b"\\udfff", b"null", b"NaN", b"-", b"1e999", b" ", b"\t", b"{}", b"[]", b'{"a":1}', b"data: ", b"// ", b"\x1b[0m",
    b"]" * 3000, b"[" * 3000, b"Bearer abcdefghijklmnopqrstuvwxyz0123456789", b"AKIA" + b"QWERTYUIOPASDFGH",
)  # fmt: skip


@dataclass(slots=True)
class Seeds:
    """Real streams of one wire, and every value that stands in them, by key: ids and names meet again elsewhere."""

    streams: list[bytes]
    documents: list[bytes] = field(default_factory=list)
    known: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for data in (*self.streams, *self.documents):
            for line in [data] if data in self.documents else data.split(b"\n"):
                value = parsed(line)
                for holder, key in places(value):
                    if isinstance(key, str):
                        some = self.known.setdefault(key, [])
                        if len(some) < 200 and holder[key] not in some:
                            some.append(holder[key])


def parsed(line: bytes) -> Any:
    """The JSON of a line; None where it is none, or no object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (object or array, key or index) in a value."""
    found: list[tuple[Any, Any]] = []
    open_ones = [value]
    while open_ones:
        holder = open_ones.pop()
        if isinstance(holder, dict | list):
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            found += [(holder, key) for key in keys]
            open_ones += [holder[key] for key in keys]
    return found


def stream(rng: Random, seeds: Seeds) -> bytes:
    """One input."""
    edits = 1 + min(int(rng.expovariate(0.5)), 8)
    if seeds.documents and rng.random() < 0.3:
        return _document(rng, seeds, edits)
    lines = rng.choice(seeds.streams).split(b"\n")
    if len(lines) > WINDOW:
        start = 0 if rng.random() < 0.7 else rng.randrange(len(lines) - WINDOW)
        lines = lines[start : start + WINDOW] + ([b""] if rng.random() < 0.9 else [])
    for _ in range(edits):
        chance = rng.random()
        if chance < 0.6:
            at = rng.randrange(len(lines))
            lines[at] = say_otherwise(rng, seeds, lines[at])
        elif chance < 0.85:
            _edit_lines(rng, seeds, lines)
        else:
            at = rng.randrange(len(lines))
            lines[at] = _edit_bytes(rng, lines[at])
    data = b"\n".join(lines)
    chance = rng.random()
    if chance < 0.03:
        return BOM + data
    if chance < 0.06:
        return data.replace(b"\n", b"\r\n")
    if chance < 0.10:
        return _edit_bytes(rng, data)
    return data[: rng.randrange(len(data) + 1)] if chance < 0.15 else data


def _document(rng: Random, seeds: Seeds, edits: int) -> bytes:
    data = rng.choice(seeds.documents)
    value = parsed(data)
    for _ in range(edits):
        value = _edit_value(rng, seeds, value)
    data = dumped(rng, value, indent=rng.choice((None, None, 1, 2)))
    chance = rng.random()
    if chance < 0.1:
        return _edit_bytes(rng, data)
    if chance < 0.15:
        return data[: rng.randrange(len(data) + 1)]
    return BOM + data if chance < 0.2 else data + rng.choice((b"", b"\n", b"\n\n", b" ", b"\n{}"))


def say_otherwise(rng: Random, seeds: Seeds, line: bytes) -> bytes:
    """The line with some of its JSON changed, written in one of JSON's many ways."""
    value = parsed(line)
    if value is None:
        return _edit_bytes(rng, line)
    for _ in range(1 + (rng.random() < 0.3)):
        value = _edit_value(rng, seeds, value)
    return dumped(rng, value)


def _edit_value(rng: Random, seeds: Seeds, value: Any) -> Any:
    found = places(value)
    if not found:
        return value
    flat = [one for one in found if one[0] is value]
    holder, key = rng.choice(flat if rng.random() < 0.35 else found)
    edit = rng.randrange(10)
    if edit <= 2:
        holder[key] = rng.choice(rng.choice(ODD))
    elif edit == 3:
        del holder[key]
    elif edit == 4 and isinstance(key, str):
        holder[rng.choice(list(seeds.known))] = holder.pop(key)
    elif edit == 5:
        other, there = rng.choice(found)
        holder[key], other[there] = json_copy(other[there]), json_copy(holder[key])
    elif edit <= 7 and isinstance(key, str):
        holder[key] = rng.choice(seeds.known.get(key) or [None])
    elif edit == 8 and isinstance(key, str) and isinstance(holder, dict) and holder is not value:
        _replace(value, holder, Twice(holder, key, rng.choice(rng.choice(ODD))))
    else:
        new = rng.choice(list(seeds.known))
        said = rng.choice([*seeds.known[new], None])
        if isinstance(holder, dict):
            holder[new] = said
        else:
            holder.insert(rng.randrange(len(holder) + 1), said)
    return json_copy(value)


def _replace(value: Any, old: Any, new: Any) -> None:
    for holder, key in places(value):
        if holder[key] is old:
            holder[key] = new
            return


def json_copy(value: Any) -> Any:
    """A copy that shares nothing, so that a value of the seeds is never changed."""
    if isinstance(value, Twice):
        return Twice({key: json_copy(one) for key, one in value.items()}, value.key, json_copy(value.other))
    if isinstance(value, dict):
        return {key: json_copy(one) for key, one in value.items()}
    return [json_copy(one) for one in value] if isinstance(value, list) else value


def dumped(rng: Random, value: Any, indent: int | None = None) -> bytes:
    """JSON text: dense or spaced, with escapes or without, keys as they were or shuffled."""
    comma, colon = rng.choice(((",", ":"), (",", ":"), (", ", ": "), (" ,\t", " : ")))
    is_ascii, is_shuffled = rng.random() < 0.5, rng.random() < 0.2

    def text(one: Any, depth: int) -> str:
        begin = "" if indent is None else "\n" + " " * (indent * depth)
        if isinstance(one, Raw):
            return str(one)
        if isinstance(one, dict):
            pairs = list(one.items()) + ([(one.key, one.other)] if isinstance(one, Twice) else [])
            if is_shuffled:
                rng.shuffle(pairs)
            inside = [f"{begin}{json.dumps(key)}{colon}{text(item, depth + 1)}" for key, item in pairs]
            return "{" + comma.join(inside) + "}"
        if isinstance(one, list):
            return "[" + comma.join(begin + text(item, depth + 1) for item in one) + "]"
        return json.dumps(one, ensure_ascii=is_ascii)

    return text(value, 1).encode("utf-8", "surrogatepass")


def _edit_lines(rng: Random, seeds: Seeds, lines: list[bytes]) -> None:
    at = rng.randrange(len(lines))
    edit = rng.randrange(9)
    if edit == 0:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif edit == 1 and len(lines) > 1:
        del lines[at]
    elif edit == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif edit == 3:
        lines.insert(at, rng.choice((b"", b" ", b"\r", b"\t ", *TOKENS)))
    elif edit == 4 and at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + rng.choice((b"", b" ", b"\0", b",")) + lines[at + 1]]
    elif edit == 5 and at + 1 < len(lines):
        lines[at : at + 2] = [lines[at][: rng.randrange(len(lines[at]) + 1)] + lines[at + 1]]
    elif edit == 6:
        cut = rng.randrange(len(lines[at]) + 1)
        lines[at : at + 1] = [lines[at][:cut], lines[at][cut:]]
    elif edit == 7:
        other = rng.choice(seeds.streams).split(b"\n")
        start = rng.randrange(len(other))
        lines[at:at] = other[start : start + rng.randint(1, 6)]
    else:
        lines[at:] = lines[at:] + lines[at:]


def _edit_bytes(rng: Random, line: bytes) -> bytes:
    made = bytearray(line)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(made) + 1)
        edit = rng.randrange(5)
        if edit == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif edit == 1 and at < len(made):
            made[at] = rng.randrange(256)
        elif edit == 2:
            made[at:at] = rng.choice(TOKENS)
        elif edit == 3:
            del made[at : at + rng.randint(1, 30)]
        else:
            made[at:at] = made[at : at + rng.randint(1, 60)]
    return bytes(made)
