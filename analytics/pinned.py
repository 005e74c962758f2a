"""What DuckDB sees of an object store: the files of one version of a lake, to be read and nothing else.

Its reader asks for a footer several times per query and for columns in small pieces; blocks that were fetched are kept
within a bound, since a data file never changes. A second wall around `runlake sql`: whatever the engine is made to ask
for, no other object is ever fetched, and none is written.
"""

from __future__ import annotations

import errno
import io
import threading
from collections import OrderedDict
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from analytics import objects
from analytics.places import Place

BLOCK_BYTES = 1 << 20
KEPT_BYTES = 256 << 20
MODIFIED = datetime.fromtimestamp(0, UTC)  # of every data file: it is written once


class Blocks:
    """Blocks of data files by path and number, the longest unused forgotten first. For any number of threads."""

    def __init__(self, fs: Any, scheme: str, kept_bytes: int = KEPT_BYTES) -> None:
        self._fs, self._scheme, self._most = fs, scheme, max(kept_bytes, BLOCK_BYTES)
        self._held: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Bytes of a file. What is not held is fetched, neighbours in one request."""
        first, last = start // BLOCK_BYTES, (stop - 1) // BLOCK_BYTES
        with self._lock:
            here = {n: self._held[path, n] for n in range(first, last + 1) if (path, n) in self._held}
            for number in here:
                self._held.move_to_end((path, number))
        missing = [n for n in range(first, last + 1) if n not in here]
        while missing:
            run = [missing.pop(0)]
            while missing and missing[0] == run[-1] + 1:
                run.append(missing.pop(0))
            here |= self._fetch(path, run)
        data = b"".join(here[n] for n in range(first, last + 1))
        return data[start - first * BLOCK_BYTES : stop - first * BLOCK_BYTES]

    def _fetch(self, path: str, run: list[int]) -> dict[int, bytes]:
        begin = run[0] * BLOCK_BYTES
        with objects.as_os_errors(f"{self._scheme}://{path}"):
            data = self._fs.cat_file(path, start=begin, end=(run[-1] + 1) * BLOCK_BYTES)
        got = {n: data[(n - run[0]) * BLOCK_BYTES :][:BLOCK_BYTES] for n in run}
        with self._lock:
            for number, block in got.items():
                if (path, number) not in self._held:
                    self._bytes += len(block)
                self._held[path, number] = block
            while self._bytes > self._most:
                self._bytes -= len(self._held.popitem(last=False)[1])
        return got


class PinnedFile(io.RawIOBase):
    """One data file, for DuckDB's reader."""

    def __init__(self, blocks: Blocks, path: str, size: int) -> None:
        self._blocks, self._path, self.size, self._at = blocks, path, size, 0
        self.mode = "rb"

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of any file."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, all that follow if negative."""
        stop = self.size if size < 0 else min(self._at + size, self.size)
        data = self._blocks.read(self._path, self._at, stop) if stop > self._at else b""
        self._at += len(data)
        return data

    def readinto(self, view: Any) -> int:
        """Fills the view, less only at the end."""
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


class PinnedFiles(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system that holds the data files of one version of a lake, and answers without asking the store."""

    cachable = False  # one per session

    def __init__(self, root: Place, files: dict[str, int], kept_bytes: int = KEPT_BYTES) -> None:
        super().__init__()
        scheme = str(root).split("://", 1)[0]
        self.protocol = scheme
        self._sizes = {self._strip_protocol(path): size for path, size in files.items()}
        self._blocks = Blocks(objects.fs_of(root), scheme, kept_bytes)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).split("://", 1)[-1].rstrip("/")

    def _size(self, path: str) -> int:
        size = self._sizes.get(self._strip_protocol(path))
        if size is None:
            raise FileNotFoundError(errno.ENOENT, "it is no file of this version of the lake", path)
        return size

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Size and kind of a pinned file."""
        return {"name": self._strip_protocol(path), "size": self._size(path), "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """True: it is a pinned file."""
        return self._strip_protocol(path) in self._sizes

    def glob(self, path: str, **_: Any) -> list[str]:
        """The path itself: a query names its files, and may look for no others."""
        return [self._strip_protocol(path)] if self.exists(path) else []

    def ls(self, path: str, detail: bool = True, **_: Any) -> Collection[Any]:  # noqa: FBT001, FBT002 (fsspec's own)
        """The path itself, if it is a pinned file."""
        return ([self.info(path)] if detail else [self._strip_protocol(path)]) if self.exists(path) else []

    def modified(self, path: str) -> datetime:
        """The same for each: a data file never changes."""
        self._size(path)
        return MODIFIED

    def open(self, path: str, mode: str = "rb", **_: Any) -> PinnedFile:
        """A pinned file, for reading."""
        if mode != "rb":
            raise PermissionError(errno.EROFS, "the lake's files are only read", path)
        return PinnedFile(self._blocks, self._strip_protocol(path), self._size(path))
