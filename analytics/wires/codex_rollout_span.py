"""One span of a Codex rollout as columns: where the readers of its rows put what they find."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from analytics.wires.base import MAX_INT, UNIQUE_CALL_CHARS, Refusal, Rows, clip
from analytics.wires.codex_rollout_lines import State

SCOPE = "codex"
FIGURES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


class BrokenRowError(ValueError):
    """A row of a known type that does not have its shape; becomes a Refusal."""

    @property
    def reason(self) -> str:
        is_range = any(sign in str(self) for sign in ("`int` >=", "`int` <=", "out of range", "got `float`"))
        return "number_out_of_range" if is_range else "malformed"


class Sheet(list[tuple[Any, ...]]):
    """Rows of one sort: the place of each, then what it says, in the order of `names`."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def into(self, rows: Rows, **constants: Any) -> None:
        """The same, as the decoder takes it; constants hold for every row of the sheet."""
        if self:
            places, *values = map(list, zip(*self, strict=True))
            same = {name: [value] * len(places) for name, value in constants.items()}
            rows.fill(places, **dict(zip(self.names, values, strict=True)), **same)


class Span:
    """The columns of n rows, and the state that the readers move on."""

    def __init__(self, n: int, state: State, run_id: str, ts: pa.Int64Array, *, is_bare: bool) -> None:
        self.state, self.run_id, self.ts, self.is_bare = state, run_id, ts, is_bare
        self.rows = Rows(n)
        self.runs = [(0, run_id)]  # where each run begins
        self.limits_before: bytes | None = None  # as the latest row had them whose windows say all
        self.windows_before: list[dict[str, Any]] = []
        self.kinds, self.events, self.turns = self.rows.blank("kind", "event", "turn_id")
        self.asked = Sheet("call_id", "call_scope", "tool", "model")
        self.done = Sheet("call_id", "call_scope", "tool", "text_chars", "exit_code", "is_error", "duration_ms")
        self.texts = Sheet("text_chars")
        self.shadows = Sheet("is_shadow")
        self.spent = Sheet("usage_key", "request_id", *FIGURES, "model", "effort")
        self.gauged = Sheet("context_tokens", "context_window_tokens")

    def scope(self, call_id: str | None) -> str | None:
        """Over which runs a call id names one call. Short ids come again in other threads, but are the same in a fork
        and its parent, so they are of the thread where both began, as short turn ids are (request_key).
        """
        if call_id is None:
            return None
        return SCOPE if len(call_id) >= UNIQUE_CALL_CHARS else f"{SCOPE}:{self.state.root or self.run_id}"

    def opaque(self, i: int, event: str) -> bool:
        """A row of the envelope whose type nobody described."""
        self.kinds[i] = "opaque"
        self.events[i] = clip(event)
        self.turns[i] = self.state.turn
        return True

    def refuse(self, i: int, reason: str, detail: str) -> bool:
        self.rows.refused[i] = Refusal(reason, detail, self.run_id)
        return False

    def switch(self, i: int, state: State, run_id: str) -> None:
        """Another run begins with this row."""
        self.state, self.run_id = state, run_id
        self.runs.append((i, run_id))

    def pieces(self) -> Iterator[tuple[str, int]]:
        """The runs in order, and how many rows each has."""
        for (first, run_id), (end, _) in pairwise([*self.runs, (self.rows.n, "")]):
            yield run_id, end - first

    def finish(self) -> Rows:
        """All rows."""
        self.asked.into(self.rows)
        self.done.into(self.rows)
        self.texts.into(self.rows)
        self.shadows.into(self.rows)
        self.spent.into(
            self.rows, usage_scope="delta", usage_is_final=True, input_includes_cache=True, requests=1
        )  # fmt: skip
        self.gauged.into(self.rows)
        return self.rows

    def also_speaks(self, i: int, topic: str) -> None:
        """A topic that this row is the first to show, beside what the row says already."""
        places, said = self.rows.sparse.setdefault("speaks", ([], []))
        if places and places[-1] == i:
            said[-1] += f" {topic}"
        else:
            places.append(i)
            said.append(topic)


def whole(value: Any) -> int | None:
    """The value if it is a whole number of 64 bits."""
    return value if type(value) is int and -MAX_INT <= value <= MAX_INT else None
