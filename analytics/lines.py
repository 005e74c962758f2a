"""Where the lines of a block stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

STRETCH_BYTES = 128 << 10  # what is searched for newlines at once: its flags stay in the cache
INLINE_BYTES = 12  # what an Arrow string view holds in itself
Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Buffer = bytes | bytearray


@dataclass(slots=True)
class Lines:
    """Line boundaries inside a buffer of whole lines: line j is buffer[starts[j]:ends[j]], the newline at ends[j].

    Where several records stand on one physical line, each is a line here, and `physical` numbers what it stands on.
    """

    buffer: memoryview
    octets: np.ndarray[Any, np.dtype[np.uint8]]
    starts: Ints
    ends: Ints
    physical: Ints | None = None

    @classmethod
    def find(cls, buffer: Buffer, size: int) -> Lines:
        """All lines of the first `size` bytes of a buffer, the last of which is a newline."""
        octets = np.frombuffer(buffer, np.uint8, size)
        stretches = range(0, size, STRETCH_BYTES)
        ends = np.concatenate([np.flatnonzero(octets[at : at + STRETCH_BYTES] == 10) + at for at in stretches])
        starts = np.empty(len(ends), np.int64)
        if len(ends):
            starts[0] = 0
            starts[1:] = ends[:-1] + 1
        return cls(memoryview(buffer), octets, starts, ends)

    @classmethod
    def of(cls, texts: list[bytes]) -> Lines:
        """Texts that may hold newlines themselves, as lines of a buffer made for them."""
        buffer = b"\n".join([*texts, b""])
        lengths = np.array([len(text) for text in texts], np.int64)
        ends = np.cumsum(lengths + 1) - 1
        return cls(memoryview(buffer), np.frombuffer(buffer, np.uint8), ends - lengths, ends)

    def split(self, cuts: Mapping[int, Sequence[int]]) -> Lines:
        """The same with some lines cut into several; `cuts` are offsets in the line at which a further part begins."""
        at = np.array([j for j, places in cuts.items() for _ in places], np.int64)
        begins = np.concatenate([self.starts[j] + np.array(places, np.int64) for j, places in cuts.items()])
        starts, ends = np.insert(self.starts, at + 1, begins), np.insert(self.ends, at, begins)
        return Lines(self.buffer, self.octets, starts, ends, np.insert(np.arange(len(self)), at + 1, at))

    def numbers(self, index: Ints) -> Ints:
        """Which physical lines of the buffer these are."""
        return index if self.physical is None else self.physical[index]

    def is_glued(self, j: int) -> bool:
        """True: line j is a part of a physical line."""
        return self.physical is not None and bool((self.physical[max(j - 1, 0) : j + 2] == self.physical[j]).sum() > 1)

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, j: int) -> bytes:
        """The bytes of line j without its newline."""
        return bytes(self.buffer[self.starts[j] : self.ends[j]])

    def odd(self, max_bytes: int) -> Flags:
        """Which lines are no JSON object by their ends, or too long."""
        lengths = self.ends - self.starts
        last = self.octets[self.ends - 1]  # of an empty line it is the newline before, or any byte: too short anyway
        carriage = last == 13
        if carriage.any():
            last = self.octets[self.ends - 1 - carriage]
        found: Flags = (lengths < 2 + carriage) | (lengths > max_bytes) | (last != 125)
        found |= self.octets[self.starts] != 123
        return found

    def texts(self, buffer: Buffer) -> pa.StringViewArray:
        """The lines as Arrow string views into the buffer, which must stay as it is while they are in use."""
        lengths = self.ends - self.starts
        views = np.zeros((len(self), 4), np.int32)  # length, first four bytes, number of the buffer, place in it
        views[:, 0] = lengths
        views[:, 1] = self._beginnings(self.starts, 4).view(np.int32)[:, 0]
        views[:, 3] = self.starts
        short = np.flatnonzero(lengths <= INLINE_BYTES)
        if len(short):  # these stand in the view itself, with zeros behind them
            texts = self._beginnings(self.starts[short], INLINE_BYTES)
            texts[np.arange(INLINE_BYTES) >= lengths[short, None]] = 0
            views[short, 1:] = texts.view(np.int32)
        return pa.StringViewArray.from_buffers(
            pa.string_view(), len(self), [None, pa.py_buffer(views), pa.py_buffer(buffer)]
        )

    def _beginnings(self, starts: Ints, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """So many bytes from each place on."""
        at = starts[:, None] + np.arange(count)
        octets: np.ndarray[Any, np.dtype[np.uint8]] = self.octets[np.minimum(at, len(self.octets) - 1)]
        return octets
