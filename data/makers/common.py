"""What the makers share: a seeded voice, a clock, and the truth about one run."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
# limit, reset, percent; the native wires also tell the length of the window, minutes
LimitSample = tuple[str, int | None, float | None] | tuple[str, int | None, float | None, int]

TASKS = ("mend-sluice", "sort-ledger", "trim-harbour")
REASONS = (
    "this step may not publish",
    "destructive commands need a person",
    "outside the working tree",
    "the network is closed in this suite",
    "the frame allows reads only",
)
NOUNS = (
    "sluice", "gate", "ledger", "entry", "tide", "table", "harbour", "berth",
    "lantern", "crate", "quay", "winch", "barge", "column", "total", "sum",
)  # fmt: skip
VERBS = ("reads", "opens", "sorts", "checks", "keeps", "drops", "merges", "closes", "counts", "trims", "rounds")


def dumps(value: Any) -> str:
    """JSON as the wires write it: compact, UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Voice:
    """Invented words from one seed. Only `random()` is drawn from: it is the same in every Python version."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def between(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        return self._random() < share

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def digits(self, count: int) -> str:
        return "".join(self.pick("0123456789abcdef") for _ in range(count))

    def sentence(self) -> str:
        return f"The {self.pick(NOUNS)} {self.pick(VERBS)} the {self.pick(NOUNS)} before the {self.pick(NOUNS)}."

    def say(self) -> str:
        return " ".join(self.sentence() for _ in range(self.between(1, 3)))

    def path(self) -> str:
        return f"src/{self.pick(NOUNS)}/{self.pick(NOUNS)}_{self.pick(NOUNS)}.py"

    def command(self) -> str:
        return self.pick(
            (
                f"pytest -q tests/test_{self.pick(NOUNS)}.py",
                f"grep -rn '{self.pick(NOUNS)}' src | head -{self.between(5, 40)}",
                f"git diff --stat HEAD~{self.between(1, 4)}",
                f"python -m {self.pick(NOUNS)}.{self.pick(NOUNS)} --check",
                f"sed -n '{self.between(1, 90)},{self.between(91, 200)}p' {self.path()}",
            )
        )

    def output(self) -> str:
        """Some lines of what a tool prints."""
        makers = (
            lambda: f"{self.path()}:{self.between(1, 400)}: {self.sentence()}",
            lambda: f"    {self.pick(NOUNS)}_{self.pick(NOUNS)} = {self.pick(NOUNS)}({self.between(0, 99)})",
            lambda: (
                f"FAILED tests/test_{self.pick(NOUNS)}.py::test_{self.pick(NOUNS)} - assert {self.between(1, 9)} == 0"
            ),
            lambda: f"{self.between(1, 90)} passed in {self.between(1, 90) / 10} s ✓",
        )
        return "\n".join(self.pick(makers)() for _ in range(self.between(2, 12)))


class Clock:
    """The clock of one run: moves on by a few seconds at each reading."""

    def __init__(self, voice: Voice, start: datetime) -> None:
        self._voice = voice
        self._start = start
        self.now = start

    def tick(self) -> datetime:
        self.now += timedelta(milliseconds=self._voice.between(40, 9_000))
        return self.now

    def iso(self) -> str:
        return self.tick().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]

    def elapsed_ms(self) -> int:
        return (self.now - self._start) // timedelta(milliseconds=1)

    def millis(self) -> int:
        return round(self.tick().timestamp() * 1000)


@dataclass(slots=True)
class Tokens:
    """A running sum of the five counters, in the order the wires name them."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def add(self, other: Tokens) -> None:
        self.input += other.input
        self.cache_read += other.cache_read
        self.cache_write += other.cache_write
        self.output += other.output
        self.reasoning += other.reasoning


@dataclass(slots=True)
class Truth:
    """What is true of one run. None = its stream does not say."""

    wire: str
    shape: str
    run_id: str | None
    file: str = ""
    completeness: str = ""
    outcome: str | None = None
    input_tokens: int | None = None
    uncached_input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    tokens_are_lower_bound: bool | None = None
    requests: int | None = None
    cost_usd: float | None = None
    tool_calls: int = 0
    denied_calls: int = 0
    denials_are_lower_bound: bool = False
    tool_calls_unfinished: int = 0
    unfinished_is_exact: bool = True
    refused_lines: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    cache_write_1h_tokens: int | None = None
    parent_run_id: str | None = None
    same_run_as: str | None = None  # the file of the other view of this run
    is_counted: bool = True
    also: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        self.refusals[reason] += 1
        self.refused_lines += 1

    def close(self, completeness: str, *, tokens_need_the_end: bool) -> None:
        """Fill the flags: a count is exact if the stream closed and each refused line was at least read by name."""
        self.completeness = completeness
        whole = completeness == "closed" and set(self.refusals) <= {"unknown_event"}
        self.denials_are_lower_bound = not whole
        self.unfinished_is_exact = completeness == "closed"
        if self.output_tokens is not None and self.tokens_are_lower_bound is None:
            self.tokens_are_lower_bound = tokens_need_the_end and not whole

    def row(self) -> dict[str, Any]:
        """As it is written; the fields behind `refusals` only where they say something."""
        made = asdict(self) | {"refusals": dict(sorted(self.refusals.items()))}
        usual: dict[str, Any] = {
            "cache_write_1h_tokens": None, "parent_run_id": None, "same_run_as": None, "is_counted": True, "also": {},
        }  # fmt: skip
        return {name: value for name, value in made.items() if name not in usual or value != usual[name]}


@dataclass(slots=True)
class Made:
    """One run as it was written: its lines, an unterminated tail, its truth, its samples of limits.

    glued: refused stubs on lines that hold a whole record, too, and so are lines of events.
    """

    lines: list[str]
    truth: Truth
    tail: str = ""
    limits: list[LimitSample] = field(default_factory=list)
    glued: int = 0


def day(number: int, voice: Voice) -> datetime:
    """A working hour of the corpus's n-th day."""
    return datetime(2026, 11, 2, 7, tzinfo=UTC) + timedelta(days=number, minutes=voice.between(0, 600))
