"""The rows of one span of a capture, and what every reader of a line does with them."""

from __future__ import annotations

from typing import Any

from analytics.wires.base import Context, Refusal, Rows, attributes, micros
from analytics.wires.claude_messages import NO_USAGE, Usage, call_scope, usage_lists
from analytics.wires.claude_stream_state import Run

NAME = "claude-stream"
SPEAKS = "tokens cost decisions results outcome"
END_RULE = "turns"
VIEW_RANK, RESULT_RANK = 5, 20  # of one session: rows alone, then its session file, then a result
Words = list[str | None]


class Span:
    """The columns of one span. Readers set their line's event and further columns, and return its kind."""

    def __init__(self, n: int, ctx: Context) -> None:
        self.ctx = ctx
        self.unnamed = f"{NAME}-{ctx.source_id}"
        self.rows = Rows(n)
        self.put = self.rows.put
        self.events: list[str | None] = [None] * n
        self.turns: list[str | None] = [None] * n
        self.texts: tuple[list[int], list[int]] = [], []  # places and characters
        self.calls: tuple[list[int], Words, Words, Words] = [], [], [], []
        self.results: tuple[list[int], Words, Words, Words, list[bool]] = [], [], [], [], []
        self.answers: tuple[list[int], Words, Words, list[Usage]] = [], [], [], []
        self.finals: list[bool] = []

    def run(self, name: str | None) -> Run:
        """The run of a session, remembered if it is new."""
        runs: dict[str, Run] = self.ctx.state.runs
        run = runs.get(name or "")
        if run is None:
            run = runs[name or ""] = Run(name)
        return run

    def scope(self, call_id: str | None, run: Run) -> str | None:
        """Over which runs the call id names one call; the session file of the run says the same."""
        return call_scope(call_id, run.session_id or self.unnamed)

    def part(self, i: int, run: Run, parent: str | None = None, **values: Any) -> None:
        """A further fact of line i. Only the event is a part's own by default, so it gets its turn and its place."""
        if run.turn_id is not None:
            values["turn_id"] = run.turn_id
        if parent is not None:
            values["parent_call_id"] = parent
        self.rows.parts.append((i, values))

    def refuse(self, i: int, run: Run, reason: str, detail: str) -> None:
        """The line is damaged; its run is what it names, or where it stands."""
        self.rows.refused[i] = Refusal(reason, detail, run.session_id)

    def text(self, i: int, text: Any) -> None:
        """The size of the text that line i holds."""
        if type(text) is str:
            self.texts[0].append(i)
            self.texts[1].append(len(text))

    def call(self, i: int, run: Run, call_id: str | None, tool: str | None) -> None:
        """Line i asks for a call."""
        places, ids, scopes, tools = self.calls
        places.append(i)
        ids.append(call_id)
        scopes.append(self.scope(call_id, run))
        tools.append(tool)

    def outcome(self, i: int, run: Run, call_id: str | None, tool: str | None, *, is_error: bool) -> None:
        """Line i holds the result of a call."""
        places, ids, scopes, tools, errors = self.results
        places.append(i)
        ids.append(call_id)
        scopes.append(self.scope(call_id, run))
        tools.append(tool)
        errors.append(is_error)

    def snapshot(self, i: int, key: str | None, model: str | None, usage: Any, *, is_final: bool) -> None:
        """Line i shows the usage of an answer as far as it is known there."""
        places, keys, models, usages = self.answers
        places.append(i)
        keys.append(key)
        models.append(model)
        usages.append(usage if type(usage) is Usage else NO_USAGE)
        self.finals.append(is_final)

    def speak(self, i: int, run: Run) -> None:
        """What the stream has shown that it speaks of, and how the run's end is judged."""
        run.is_begun = True
        speaks = SPEAKS + " limits" * run.has_limits + " offered" * run.has_tools
        self.put(i, speaks=speaks, end_rule=END_RULE)

    def introduce(self, i: int, run: Run, **said: Any) -> None:
        """What the run is: a view of a session."""
        run.is_named = True
        told = attributes(session_id=run.session_id, view_rank=VIEW_RANK, **said)
        # it is of this source alone, even where the row beside it is a copy
        self.part(i, run, kind="run.started", event="run", event_key=None, attributes=told)

    def begin(self, i: int, run: Run, *, is_answer: bool) -> None:
        """A message stands in a turn of a run that says what it is, even where no init opened them."""
        if run.turn_id is None:
            run.start_turn()
            self.part(i, run, kind="turn.started")
        if is_answer:
            run.is_quiet = False
        if not run.is_named:
            self.introduce(i, run)

    def clock(self, i: int, text: Any) -> None:
        """Some newer user rows say when they were written."""
        ts = micros(text) if type(text) is str else None
        if ts is not None:
            self.put(i, ts=ts, ts_origin="vendor")

    def finish(self, kinds: list[str], changes: list[tuple[int, str | None]]) -> Rows:
        """All columns. `changes`: from which row on a run's rows stand."""
        rows = self.rows
        rows.columns["kind"], rows.columns["event"], rows.columns["turn_id"] = kinds, self.events, self.turns
        places, chars = self.texts
        rows.fill(places, text_chars=chars)
        places, ids, scopes, tools = self.calls
        rows.fill(places, call_id=ids, call_scope=scopes, tool=tools)
        places, ids, scopes, tools, errors = self.results
        rows.fill(places, call_id=ids, call_scope=scopes, tool=tools, is_error=errors)
        self.usage()
        rows.constants["run_id_origin"] = "source" if changes[0][1] is None else "wire"
        if len(changes) == 1:
            rows.constants["run_id"] = changes[0][1] or self.unnamed
            return rows
        run_ids: list[str] = []
        for (first, name), (last, _) in zip(changes, [*changes[1:], (rows.n, None)], strict=True):
            run_ids += [name or self.unnamed] * (last - first)
        rows.columns["run_id"] = run_ids
        return rows

    def usage(self) -> None:
        """The columns of the snapshots."""
        places, keys, models, said = self.answers
        if not places:
            return
        self.rows.fill(
            places, request_id=keys, usage_key=keys, model=models, usage_is_final=self.finals,
            requests=[1] * len(places), usage_scope=["snapshot"] * len(places),
            **usage_lists(said),
        )  # fmt: skip
