"""Copies of a stream under other names, so that many variants of it stand in one lake and none is another's copy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from conftest import CORPUS

NAMES = {
    "agentId", "call_id", "event_id", "forked_from_id", "id", "leafUuid", "message_id", "parentUuid",
    "parent_call_id", "parent_tool_use_id", "promptId", "request_id", "requestId", "run", "run_id", "sessionId",
    "session_id", "thread_id", "tool_use_id", "turn_id", "uuid",
}  # fmt: skip
SHORT = 5  # "c1", "item_0", "p1" are of their run
Where = tuple[dict[str, Any] | list[Any], Any]


def leaves(value: Any) -> Iterator[Where]:
    """Every place of a JSON value that holds no object and no array."""
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], dict | list):
            yield from leaves(value[key])
        else:
            yield value, key


def objects(data: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a stream, or the one of a document."""
    texts = [data.strip()] if data.startswith(b"{\n") else data.splitlines()
    return [json.loads(text) for text in texts if text.startswith(b"{") and text.endswith(b"}")]


def clone(data: bytes, tag: str) -> bytes:
    """The stream with `tag` behind each of its names, wherever they stand."""
    found = {
        holder[key]
        for value in objects(data)
        for holder, key in leaves(value)
        if key in NAMES and isinstance(holder[key], str) and len(holder[key]) > SHORT
    }
    if b'"payload"' in data or b'"parentUuid"' in data:  # records without an id are known by their bytes
        data = re.sub(rb"(?m)^\{", b'{"mark":"%s",' % tag.encode(), data)
    if not found:
        return data
    pattern = b"|".join(re.escape(name.encode()) for name in sorted(found, key=len, reverse=True))
    return re.sub(pattern, lambda match: match[0] + tag.encode(), data)


def corpus(name: str, run: str | None = None) -> bytes:
    """A stream of the sample corpus, or the lines of one run in it."""
    data = next(CORPUS.glob(name)).read_bytes()
    if name.endswith(".zst"):
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            data = stream.read()
    if run is None:
        return data
    return b"".join(line for line in data.splitlines(keepends=True) if run.encode() in line)
