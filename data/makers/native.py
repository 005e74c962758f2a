"""What the makers of the agents' own files share: ids, times, and how figures add up on each side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from makers.common import Clock, LimitSample, Made, Tokens, Truth, Voice, day, dumps

FOLDER = "/scratch/harbour"
Row = dict[str, Any]


def uuid4(voice: Voice) -> str:
    d = voice.digits(32)
    return f"{d[:8]}-{d[8:12]}-4{d[13:16]}-a{d[17:20]}-{d[20:]}"


def uuid7(voice: Voice, millis: int) -> str:
    """A uuid that begins with its time, as threads and turns of Codex have them."""
    stamp, d = f"{millis:012x}", voice.digits(20)
    return f"{stamp[:8]}-{stamp[8:]}-7{d[:3]}-a{d[3:6]}-{d[6:18]}"


def after(clock: Clock, hours: int, offset: int) -> int:
    """The end of the clock's window of some hours, seconds since the epoch; `offset` tells one account from another."""
    size = hours * 3_600
    return (int(clock.now.timestamp()) - offset) // size * size + size + offset


def count_claude(truth: Truth, tokens: Tokens, hour: int | None) -> None:
    """Add a request's disjoint parts; `hour` None: its record does not split the cache writes."""
    truth.requests = (truth.requests or 0) + 1
    truth.uncached_input_tokens = (truth.uncached_input_tokens or 0) + tokens.input
    truth.cache_read_tokens = (truth.cache_read_tokens or 0) + tokens.cache_read
    truth.cache_write_tokens = (truth.cache_write_tokens or 0) + tokens.cache_write
    truth.input_tokens = (truth.input_tokens or 0) + tokens.input + tokens.cache_read + tokens.cache_write
    truth.output_tokens = (truth.output_tokens or 0) + tokens.output
    if hour is not None:
        truth.cache_write_1h_tokens = (truth.cache_write_1h_tokens or 0) + hour


def count_codex(truth: Truth, tokens: Tokens) -> None:
    """Add figures whose cached tokens are inside the input, and whose reasoning is inside the output."""
    truth.input_tokens = (truth.input_tokens or 0) + tokens.input
    truth.uncached_input_tokens = (truth.uncached_input_tokens or 0) + tokens.input - tokens.cache_read
    truth.cache_read_tokens = (truth.cache_read_tokens or 0) + tokens.cache_read
    truth.output_tokens = (truth.output_tokens or 0) + tokens.output
    truth.reasoning_tokens = (truth.reasoning_tokens or 0) + tokens.reasoning


@dataclass(slots=True)
class NativeFile:
    """A file that grows row by row, and the truth of the run it begins."""

    voice: Voice
    clock: Clock
    truth: Truth
    lines: list[str] = field(default_factory=list)
    tail: str = ""
    glued: int = 0
    limits: list[LimitSample] = field(default_factory=list)
    open_calls: set[str] = field(default_factory=set)
    interrupted: int = 0

    def now(self) -> str:
        return self.clock.iso() + "Z"

    def output(self) -> str:
        """What a tool printed, cut short: these rows say most things twice."""
        return "\n".join(self.voice.output().split("\n")[:2])

    def write(self, row: Row) -> None:
        self.lines.append(dumps(row))

    def call_opened(self, call: str) -> None:
        self.open_calls.add(call)
        self.truth.tool_calls += 1

    def call_ended(self, call: str, how: str = "finished") -> None:
        """Finished, denied or interrupted; the last counts as unfinished, too: it never gave a result."""
        self.open_calls.discard(call)
        self.truth.denied_calls += how == "denied"
        self.interrupted += how == "interrupted"

    def seen(self, **counts: int) -> None:
        """Count a record of a rarer kind, by the column of run_metrics that must know of it."""
        for name, more in counts.items():
            self.truth.also[name] = self.truth.also.get(name, 0) + more

    def made(self, completeness: str, *, is_lower_bound: bool) -> Made:
        truth = self.truth
        truth.tool_calls_unfinished = len(self.open_calls) + self.interrupted
        truth.tokens_are_lower_bound = is_lower_bound if truth.output_tokens is not None else None
        truth.close(completeness, tokens_need_the_end=False)
        return Made(self.lines, truth, self.tail, self.limits, self.glued)


def beginning(wire: str, shape: str, name: str, on: int) -> tuple[Voice, Clock, Truth]:
    """Voice, clock and truth of a file: its name is its seed, so that adding one changes no other."""
    voice = Voice(f"{wire}/{name}")
    return voice, Clock(voice, day(on, voice)), Truth(wire, shape, None)
