"""What a span of a Codex exec capture has in common, whatever form its rows have: processes, turns, totals and calls.

Rows before the one that names the thread wait for it: Codex prints text first, and before 2025-09-30 a configuration.
"""

from __future__ import annotations

import re
from typing import Any

from analytics.wires.base import Refusal, Rows, attributes, clip
from analytics.wires.codex_exec_calls import usage_columns
from analytics.wires.codex_exec_lines import Broken, Call, State, Usage, word

RETRY = re.compile(r"(?:retry|reconnect)\D{0,40}(\d{1,9})\s*/\s*(\d{1,9})", re.IGNORECASE)
SPEAKS = "tokens results decisions outcome"
UNKNOWN_USAGE = {"kind": "usage", "usage_scope": "delta", "usage_is_final": False, "input_includes_cache": True}


class Process:
    """One span of a capture, and the process it stands in; rows from `waiting` on are of one that nothing named yet."""

    def __init__(self, n: int, source_id: str, state: State) -> None:
        self.rows, self.state = Rows(n), state
        self.made = f"codex-exec-{source_id}"  # the name of a process whose rows name no thread
        self.runs: list[str | None] = [None] * n
        self.events = [""] * n
        self.kinds = ["system"] * n
        self.turns: list[str | None] = [None] * n
        self.broken: dict[int, Broken] = {}
        self.speaks: dict[int, str] = {}
        self.waiting = 0
        self.first: int | None = None  # the first good row of the waiting process
        self.header: int | None = None  # its configuration

    def finish(self) -> Rows:
        """The columns."""
        rows, runs = self.rows, self.runs
        for i, why in self.broken.items():
            rows.refused[i] = Refusal(why.reason, why.detail, runs[i])
        if self.broken:
            rows.parts = [part for part in rows.parts if part[0] not in self.broken]
        rows.columns |= {"event": self.events, "kind": self.kinds, "turn_id": self.turns, "run_id": runs}
        rows.columns["run_id_origin"] = ["source" if run and run.startswith(self.made) else "wire" for run in runs]
        for i, topics in self.speaks.items():
            rows.put(i, speaks=topics)
        return rows

    # processes

    def settle(self, end: int) -> None:
        """Rows before `end` that still wait get a name made from the source."""
        state = self.state
        if state.run_id is not None or self.waiting >= end:
            return
        number = state.unnamed + 1
        name = self.made if number == 1 else f"{self.made}#{number}"
        if self.first is None:  # nothing but refused lines: no run has begun
            self.runs[self.waiting : end] = [name] * (end - self.waiting)
            return
        state.unnamed = number
        self.name(end, name)

    def name(self, end: int, run_id: str) -> None:
        """The process has a name: rows that wait get it, and the first good one says what the stream speaks of."""
        self.state.run_id = run_id
        self.runs[self.waiting : end] = [run_id] * (end - self.waiting)
        if self.first is not None:
            self.introduce(self.first)
        if self.header is not None and self.state.thread_id is None:
            self.configured(self.header)
        self.first = self.header = None

    def renew(self, i: int) -> None:
        """The process before is over, another begins at row i, and nothing of the one holds for the other."""
        state = self.state
        self.settle(i)
        self.waiting = i
        state.run_id = state.thread_id = None
        state.has_rows = state.has_header = state.is_turn_open = state.has_limits = False
        state.turn, state.open, state.said = 0, {}, {}

    def thread(self, i: int, thread_id: str) -> None:
        """Row i names the thread of the process; rows that wait belong to it."""
        state = self.state
        if state.run_id is not None:  # it was read in part, under a name made from the source
            state.run_id, self.waiting = None, i
        count = state.processes[thread_id] = state.processes.get(thread_id, 0) + 1
        state.thread_id = thread_id
        self.first = i if self.first is None else self.first
        self.name(i + 1, thread_id if count == 1 else f"{thread_id}#{count}")

    def introduce(self, i: int) -> None:
        """What the run's first row states."""
        state = self.state
        self.speak(i, SPEAKS)
        self.rows.put(i, end_rule="turns")
        if state.thread_id is not None:
            self.configured(i, session_id=state.thread_id, view_rank=10)

    def configured(self, i: int, **more: Any) -> None:
        """What the run's start says of it."""
        self.part(i, kind="run.started", event="run", attributes=attributes(**self.state.said, **more))

    def speak(self, i: int, topics: str) -> None:
        self.speaks[i] = f"{self.speaks[i]} {topics}" if i in self.speaks else topics

    # small helpers

    def part(self, i: int, **values: Any) -> None:
        """A further fact of a row; a part inherits no turn."""
        turn = self.turns[i]
        self.rows.parts.append((i, values if turn is None else {"turn_id": turn, **values}))

    def refuse(self, i: int, detail: str) -> None:
        self.broken[i] = Broken("malformed", detail)

    def in_turn(self, i: int) -> None:
        state = self.state
        if state.is_turn_open:
            self.turns[i] = str(state.turn)

    def spoken(self, i: int, kind: str, text: Any) -> None:
        """A message or reasoning."""
        self.kinds[i] = kind
        if type(text) is str:
            self.rows.put(i, text_chars=len(text))

    def trouble(self, i: int, kind: str, text: Any) -> None:
        """An error, or the retry that an error row shows."""
        said = word(text)
        retry = RETRY.search(said) if said is not None else None
        self.kinds[i] = "retry" if retry else kind
        self.rows.put(i, message=clip(said), is_error=True if kind == "error" and not retry else None)
        if retry:
            self.rows.put(i, attributes=attributes(attempt=int(retry[1]), max=int(retry[2])))

    # turns and usage

    def turn_started(self, i: int) -> None:
        self.state.turn += 1
        self.state.is_turn_open = True
        self.kinds[i], self.turns[i] = "turn.started", str(self.state.turn)

    def turn_ended(self, i: int, status: str, outcome: str | None, message: str | None = None) -> None:
        """The turn is over, and with it the run unless another follows; one whose start is missing is a turn, too."""
        state = self.state
        if not state.is_turn_open:
            state.turn += 1
        state.is_turn_open = False
        self.kinds[i], self.turns[i] = "turn.ended", str(state.turn)
        said = {"status": status, "outcome": outcome, "message": clip(message)}
        self.rows.put(i, is_error=None if outcome is None else outcome == "error", **said)
        self.part(i, kind="run.ended", **said)

    def total(self, i: int, usage: Usage, **values: Any) -> None:
        """A running total of the thread."""
        key = f"codex-thread:{self.state.thread_id}" if self.state.thread_id is not None else None
        self.part(
            i, kind="usage", usage_scope="cumulative", usage_key=key, **usage_columns(usage), **self.model(), **values
        )  # fmt: skip

    def unknown(self, i: int) -> None:
        """What this turn used is not told, so the run's figures are a lower bound."""
        self.part(i, **UNKNOWN_USAGE)

    def model(self) -> dict[str, str | None]:
        said = self.state.said
        return {"model": said.get("model"), "effort": said.get("effort")} if said else {}

    # calls

    def requested(self, i: int, call_id: str | None, tool: str, paths: list[str] | None = None) -> None:
        if call_id is not None:
            self.state.open[call_id] = Call(tool, paths or [])
        self.kinds[i] = "tool.requested"
        self.rows.put(i, call_id=call_id, tool=tool, model=self.state.said.get("model"))

    def finished(self, i: int, call_id: str | None, tool: str, **values: Any) -> Call:
        """The call is over; one that never began is requested here as well."""
        call = self.state.open.pop(call_id, None) if call_id is not None else None
        if values.get("status") == "declined":
            values |= {"is_error": None, "decision": "deny", "evidence": "item_status", "reason": "declined"}
        if call is None:
            self.requested(i, call_id, tool)
            self.state.open.pop(call_id or "", None)
            said = {name: value for name, value in values.items() if value is not None}
            self.part(i, kind="tool.finished", call_id=call_id, tool=tool, **said)
            return Call(tool)
        self.kinds[i] = "tool.finished"
        self.rows.put(i, call_id=call_id, tool=call.tool or tool, **values)
        return call

    def file(self, i: int, call_id: str | None, path: str, status: str | None = None) -> None:
        self.part(i, kind="file.changed", path=path, call_id=call_id, tool="file_change", status=status)
