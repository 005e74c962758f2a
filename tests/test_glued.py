"""Several records on one physical line: whole ones are found again, whatever stands between them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from analytics.glued import cuts

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('{}[]":,\\aé\0 type', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "a", "}{"]), inner, max_size=3)
    ),
    max_leaves=8,
)
RECORDS = st.builds(
    lambda rest: {"type": "note"} | rest, st.dictionaries(st.sampled_from(["m", "n"]), JSON, max_size=2)
)


def parts(line: bytes) -> list[bytes]:
    """The line cut where `cuts` says."""
    places = [0, *cuts(line), len(line)]
    return [line[start:end] for start, end in itertools.pairwise(places)]


@given(st.lists(RECORDS, min_size=1, max_size=4), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_glued_records_come_apart(records: list[dict[str, Any]], separators: tuple[str, str]) -> None:
    texts = [json.dumps(record, separators=separators, ensure_ascii=False).encode() for record in records]
    assert parts(b"".join(texts)) == texts


@given(RECORDS, RECORDS, st.data())
def test_record_behind_a_stub_is_found(torn: dict[str, Any], whole: dict[str, Any], data: st.DataObject) -> None:
    text, kept = json.dumps(torn).encode(), json.dumps(whole).encode()
    stub = text[: data.draw(st.integers(1, len(text) - 1))]
    found = parts(stub + kept)
    assert b"".join(found) == stub + kept
    assert kept in found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'\0\0\0{"type":"a"}', [3]),
        (b"\0\0\0", []),
        (b'{"type":"a"}', []),
        (b'{"type":"a"', []),
        (b"plain text", []),
        (b'{"type":"a"}{"type":"b"', [12]),
        (b'{"type":"a"} \t{"type":"b"}\r', [14]),
        (b'{"type":"a"}\0\0{"type":"b"}', [12, 14]),
        (b'{"type":"a"}tail', [12]),
        # no part is blank, or the line would be counted as blank too
        (b'{"type":"a"}\r{"type":"b"}', [13]),
        (b'{"type":"a"} \r {"type":"b"}\r', [15]),
        (b'\r{"type":"a"}{"type":"b"}', [13]),
        # a whole object inside the stub is no record: something else follows it
        (b'{"m":[{"type":"text"},{"x{"type":"a"}', [25]),
        # a record of another kind than an object with a type is none
        (b'{"a":1}{"type":"b"}', [7]),
        (b'[1]{"type":"b"}', [3]),
        (b'{"a":1}{"b":2}', []),
    ],
)
def test_places(line: bytes, expected: list[int]) -> None:
    assert cuts(line) == expected


def test_long_hopeless_line_ends_soon() -> None:
    assert cuts(b'{"a' * 100_000) == []


def test_deep_torn_line_ends_soon() -> None:
    torn = b'{"type":"user","x":' + b'{"a":' * 800 + b'"' + b"x" * 2_000_000
    assert cuts(torn) == []


def test_many_small_objects_in_a_stub_hide_no_record() -> None:
    stub = b'{"type":"user","x":[' + b",".join([b'{"a":1}'] * 6000) + b',{"t'
    assert cuts(stub + b'{"type":"assistant"}') == [len(stub)]
