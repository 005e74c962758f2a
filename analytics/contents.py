"""Digests of file contents, for the ledger's questions: is it still what was read, are these two the same."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import xxhash

from analytics.reading import open_bytes, open_source

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


def originals_of(
    files: Sequence[tuple[str, str]], size: int, known: Sequence[tuple[str, int, str]]
) -> list[str | None]:
    """For each of the files of one size the name of the content it holds; None: it is like no other.

    files: path and name. known: name, decompressed size and digest of contents that are there already; else the
    first of several equal files gives its name to all of them.
    """
    edges = [_edges(path, size) for path, _ in files]
    looks = Counter(edges)
    firsts: dict[tuple[bytes, str], str] = {}
    originals: list[str | None] = []
    for (path, name), edge in zip(files, edges, strict=True):
        same = next((one for one, length, digest in known if is_same(path, length, digest)), None)
        if same is None and edge is not None and looks[edge] > 1:
            digest = _whole_digest(path, size)
            same = firsts.setdefault((edge, digest), name) if digest is not None else None
        originals.append(same)
    return originals


def _whole_digest(path: str, size: int) -> str | None:
    """Digest of the stored bytes, compressed or not; None where the file is no longer what it was."""
    digest, seen = xxhash.xxh3_128(), 0
    try:
        with open_bytes(path) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                seen += len(block)
    except OSError:
        return None
    return digest.hexdigest() if seen == size else None


def _edges(path: str, size: int) -> bytes | None:
    """The first and the last 4 KiB: enough to tell most files of one size apart. None: unreadable."""
    try:
        return _read_edges(path, size)
    except OSError:
        return None


def _read_edges(path: str, size: int) -> bytes:
    with open_bytes(path) as file:
        head = bytes(file.read(_EDGE))
        if size > _EDGE:
            file.seek(max(_EDGE, size - _EDGE))
            head += file.read(_EDGE)
    return head
