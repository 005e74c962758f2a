"""What the writers of streams draw from: words that compress like text, sizes with a heavy tail, ids, a clock.

All text is JSON already: quotes, backslashes and newlines in it are escaped, so a line is put together without an
encoder. It is UTF-8 seen as Latin-1 (one character a byte), which keeps the strings small and a line's length its
bytes; `line.encode("latin-1")` gives the file's bytes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

MAX_TEXT_BYTES = 195_000  # of a text that stands once in its line; lines reach about 200 kB
PAGE_PASSAGES, PASSAGE_PIECES = 50_000, 12  # of a page of about 4.5 MB; a piece is a word or a little more
REPEATED_SHARE, REPEATED_REACH = 0.15, 3_000  # passages that repeat what stood so many pieces before at most
SIZES = 8_192
GOLDEN = 0.6180339887498949
SPREAD = 1.45  # of the logarithms of text sizes: 1 in 10 is over twice the mean, 1 in 1,000 over thirteen times
START_MS = int(datetime(2026, 9, 1, 6, tzinfo=UTC).timestamp() * 1000)
DAYS = 60

COMMON = (  # noqa: SIM905 (words read better as text)
    "the of and to in is that for it as with on be this by from at or an are was not has but will can when then after "
    "before into over each only one two no new old all more less file line test case value name path list call run "
    "step error result check read write open close left right first last next same other still while because"
).split()
SYLLABLES = (  # noqa: SIM905 (the same)
    "ba be bi bo da de di do fa fe ga go ka ke ko la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se so ta te "
    "to va ve wa wi za"
).split()
ENDINGS = ("", "", "n", "r", "s", "l", "ing", "er")
OTHER_SCRIPTS = (
    "café naïve, déjà vu.", "✅ tests passed — 42 of 42", "文件不存在", "→ ошибка …", "🚀 launched in 12 µs",
)  # fmt: skip
TASKS = ("mend-sluice", "sort-ledger", "trim-harbour", "port-weaver", "audit-quarry", "split-orchard")
REASONS = (
    "this step may not publish",
    "destructive commands need a person",
    "outside the working tree",
    "the network is closed in this suite",
    "the frame allows reads only",
)


@cache
def pieces() -> tuple[bytes, ...]:
    """What all text is put together from, the frequent ones first: phrases, and what programs print. Each ends in a
    space, maybe after an escaped newline.
    """
    rng = random.Random("vocabulary")  # noqa: S311 - a corpus, no secret
    pick = rng.choice
    nouns = ["".join(pick(SYLLABLES) for _ in range(pick((2, 2, 3, 3, 4)))) + pick(ENDINGS) for _ in range(6_000)]
    vocabulary = COMMON + nouns
    words = rng.choices(vocabulary, [1 / (rank + 3) for rank in range(len(vocabulary))], k=20_000)
    word = iter(words).__next__
    number = rng.randrange
    printed = (
        lambda: f"{word()}_{word()} = {word()}.{word()}({word()},\\n    ",
        lambda: f"{number(10, 24)}:{number(60):02d}:{number(60):02d} INFO {word()}: {word()}={number(5_000)}\\n ",
        lambda: f"src/{word()}/{word()}_{word()}.py:{number(900)}: in {word()}\\n ",
        lambda: f'assert {word()}(\\"{word()} {word()}\\") == {number(50)}\\n    ',
        lambda: f"| {word()} | {number(10_000)} | {number(100)}.{number(100):02d} |\\n ",
        lambda: f"def {word()}_{word()}({word()}, {word()}):\\n    ",
        lambda: f"{word()} {word()}.\\n ",
    )
    made = [" ".join(word() for _ in range(pick((2, 2, 3)))) + " " for _ in range(300)]
    made += [pick(printed)() for _ in range(400)]
    made += [f"{text} " for text in OTHER_SCRIPTS]
    made += [f"{noun} " for noun in vocabulary]
    rng.shuffle(made)
    return tuple(piece.encode() for piece in made)


class Pages:
    """Text without end from one seed: words by Zipf's law, now and then a passage that stood shortly before.

    zstd makes of it what it makes of source code: about 3.5 : 1 at level 1, a tenth more at level 3.
    """

    def __init__(self, seed: int) -> None:
        vocabulary = pieces()
        lengths = np.array([len(piece) for piece in vocabulary], np.int32)
        self._letters: NDArray[np.uint8] = np.frombuffer(b"".join(vocabulary), np.uint8)
        self._lengths = lengths
        self._starts = np.cumsum(lengths, dtype=np.int32) - lengths
        weights = 1 / (np.arange(len(vocabulary)) + 20.0)
        self._shares = np.cumsum(weights / weights.sum())
        self._draw = np.random.Generator(np.random.PCG64(seed))
        self.page = self._write()
        self._at = 0

    def _write(self) -> str:
        chosen = np.searchsorted(self._shares[:-1], self._draw.random(PAGE_PASSAGES * PASSAGE_PIECES))
        is_repeated = self._draw.random(PAGE_PASSAGES) < REPEATED_SHARE
        back = (REPEATED_REACH * self._draw.random(PAGE_PASSAGES)).astype(np.int32) + PASSAGE_PIECES
        shifts = np.repeat(np.where(is_repeated, back, 0), PASSAGE_PIECES)
        chosen = chosen[np.maximum(np.arange(len(chosen)) - shifts, 0)]
        lengths = self._lengths[chosen]
        ends = np.cumsum(lengths, dtype=np.int32)
        places = np.repeat(self._starts[chosen] - (ends - lengths), lengths)
        places += np.arange(ends[-1], dtype=np.int32)
        letters = self._letters[places]
        return letters.tobytes().decode("latin-1")

    def take(self, size: int) -> str:
        """The next `size` bytes and what is left of their last word."""
        begin = self._at
        if begin + size + 1_000 > len(self.page):
            self.page, begin = self._write(), 0
        end = self.page.find(" ", begin + size)
        self._at = end + 1
        return self.page[begin:end]


def text_sizes(mean: float) -> list[int]:
    """Sizes of texts, each as likely as the other: log-normal around `mean` bytes, the largest MAX_TEXT_BYTES."""
    normal = NormalDist()
    low = [np.exp(SPREAD * normal.inv_cdf((rank + 0.5) / SIZES)) for rank in range(SIZES - 1)]
    scale = max(mean * SIZES - MAX_TEXT_BYTES, mean * SIZES * 0.3) / sum(low)
    return [min(MAX_TEXT_BYTES, max(8, round(size * scale))) for size in low] + [MAX_TEXT_BYTES]


class Voice:
    """Everything random of one wire's files. `new_run` begins a run: a seed of its own for all but the text."""

    def __init__(self, pages: Pages, seed: str, mean_text: float) -> None:
        self._pages = pages
        self._seed = seed
        self._sizes = text_sizes(mean_text)
        self._small = [min(600, max(8, size // 6)) for size in self._sizes]
        self._minutes: dict[int, str] = {}
        self._place = 0.0  # in the sizes of texts: steps of the golden ratio meet all of them evenly
        self.new_run(0)

    def new_run(self, number: int) -> None:
        """Begin run `number`; its clock starts somewhere in the corpus's sixty days."""
        self._random = random.Random(f"{self._seed}/{number}")  # noqa: S311
        self.chance = self._random.random
        self.bits = self._random.getrandbits
        self.now = START_MS + int(self.chance() * DAYS) * 86_400_000 + int(self.chance() * 60_000_000)

    def pick(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[int(self.chance() * len(choices))]

    def between(self, low: int, high: int) -> int:
        """A whole number; both ends are possible."""
        return low + int(self.chance() * (high - low + 1))

    def text(self, times: int = 1) -> str:
        """A text of any size, for a line in which it stands `times` times."""
        self._place = (self._place + GOLDEN) % 1
        size = self._sizes[int(self._place * SIZES)]
        return self._pages.take(size if times == 1 else min(size, MAX_TEXT_BYTES // times))

    def bit(self) -> str:
        """A short text."""
        return self._pages.take(self._small[int(self.chance() * SIZES)])

    def cipher(self, most: int = 4_000) -> str:
        """Letters that do not compress, about half as many as a text has: a signature, encrypted reasoning."""
        size = min(most, max(32, self._sizes[int(self.chance() * SIZES)] // 2))
        return f"{self.bits(4 * size):0{size}x}"

    def hex(self, digits: int) -> str:
        """So many hexadecimal digits."""
        return f"{self.bits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A random UUID, version 4."""
        drawn = f"{self.bits(120):030x}"
        return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[12:15]}-8{drawn[15:18]}-{drawn[18:]}"

    def millis(self) -> int:
        """The time, a little later than the last: Unix milliseconds."""
        self.now += 1 + int(1_800 * self.chance())
        return self.now

    def iso(self) -> str:
        """The time, a little later than the last: ISO 8601 to the millisecond, without a zone."""
        minute, rest = divmod(self.millis(), 60_000)
        begin = self._minutes.get(minute)
        if begin is None:
            begin = self._minutes[minute] = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:")
        return f"{begin}{rest // 1000:02d}.{rest % 1000:03d}"
