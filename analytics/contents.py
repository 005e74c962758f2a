"""Digests of file contents, for the ledger's questions: is it still what was read, are these two the same."""

from __future__ import annotations

import sys
from pathlib import Path

import xxhash

from analytics.reading import open_source

_BLOCK = 1 << 20
_EDGE = 4096


def prefix_digest(path: str, limit: int) -> tuple[str, int, bool]:
    """xxh3-128 of the first `limit` (decompressed) bytes, how many there were, and whether more follow.

    Raises OSError, also where compressed data is broken.
    """
    digest = xxhash.xxh3_128()
    view, seen = memoryview(bytearray(max(1, min(limit, _BLOCK)))), 0
    opened = open_source(path, max_ratio=sys.maxsize)
    try:
        while seen < limit:
            got = opened.stream.readinto(view[: limit - seen])
            if not got:
                break
            digest.update(view[:got])
            seen += got
        return digest.hexdigest(), seen, opened.stream.readinto(view[:1]) > 0
    finally:
        opened.close()


def is_same(path: str, size: int, digest: str) -> bool:
    """The whole (decompressed) content has this size and digest. An unreadable or broken file is not the same."""
    try:
        found, seen, is_longer = prefix_digest(path, size)
    except OSError:
        return False
    return (found, seen, is_longer) == (digest, size, False)


def edges(path: str, size: int) -> bytes:
    """The first and the last 4 KiB: enough to tell most files of one size apart."""
    with Path(path).open("rb", buffering=0) as file:
        head = file.read(_EDGE)
        if size > _EDGE:
            file.seek(max(_EDGE, size - _EDGE))
            head += file.read(_EDGE)
    return head
