"""Rows of Harness Lab's twelve kinds: pairing of starts and finishes, usage by source, and denials.

Rules come from the wire's field notes: Harness Lab's own launcher is no call of the agent; a call id may be opened
again; a claude run's `result_usage` replaces its `message_usage` rows; `cumulative: true` on a codex `token_count`
does not make it a running total; one denial stands in up to three places.
"""
# Every reader is named as its kind and has the same arguments.

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from analytics.wires.base import MAX_TOKENS, Refusal, Rows, attributes, clip
from analytics.wires.harness_lab_lines import (
    PLAIN_TEXT,
    Line,
    OpenCall,
    Payload,
    PlainText,
    Run,
    UnreadableError,
    counter,
    duration,
    flag,
    whole,
    word,
)

GENERIC_MAIN = "generic-main"
NOT_AGENTS = frozenset({"runner", "harnesslab"})
FAILED = frozenset({"error", "failed", "declined", "denied", "rejected", "blocked"})
DENIED = frozenset({"declined", "denied", "rejected", "blocked"})  # codex's words
SESSIONS = frozenset({"session", "session_init", "thread_started", "session_configured"})
COUNTERS = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}


class Columns(dict[str, Any]):
    """Columns of n rows; one is made, all NULL, when it is first asked for."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def __missing__(self, name: str) -> list[Any]:
        made: list[Any] = [None] * self.n
        self[name] = made
        return made


class Filler:
    """The columns of one span, filled line by line; each reader handles one kind and returns ours."""

    def __init__(self, n: int, *, is_generic: bool) -> None:
        self.columns = Columns(n)
        self.rows = Rows(n, self.columns)
        self.is_generic = is_generic

    def put(self, i: int, **values: Any) -> None:
        for name, value in values.items():
            self.columns[name][i] = value

    def line(self, i: int, o: Line, run: Run, run_id: str, seq: int | None) -> bool:
        """Reads one line; False if it is refused, and then `run` is as it was."""
        reader = READERS.get(o.kind) if o.kind != PLAIN_TEXT or self.is_generic else None
        if reader is None:
            self.rows.refused[i] = Refusal("unknown_event", f"kind {o.kind!r:.80} is not known", run_id, seq)
            return False
        length = o.duration_ms
        payload = o.payload if type(o.payload) is Payload else o
        try:
            if length is not None:
                self.columns["duration_ms"][i] = length if type(length) is int else duration(length)
            self.columns["kind"][i] = reader(self, i, o, payload, run)
        except UnreadableError as error:
            self.rows.refused[i] = Refusal(error.reason, str(error), run_id, seq)
            return False
        if not run.is_begun or not run.is_named:
            self.introduce(i, o, run)
        return True

    def introduce(self, i: int, o: Line, run: Run) -> None:
        """What the stream can speak of, on the run's first row and again on the row that tells which runner it is."""
        if self.is_generic:
            run.runner = "generic"
        elif run.runner is None and o.source not in NOT_AGENTS:
            run.runner = o.source
        is_news = not run.is_begun
        if run.runner is not None:
            is_news = run.is_named = True
            if self.columns["attributes"][i] is None:
                self.columns["attributes"][i] = attributes(adapter=run.runner)
        if not run.is_begun:
            run.is_begun = True
            self.columns["end_rule"][i] = "none" if self.is_generic else "sequenced"
        if is_news:
            speaks = "tokens results decisions" + ("" if self.is_generic else " clock outcome")
            self.columns["speaks"][i] = speaks + (" cost" if run.runner == "claude" else "")

    def run_started(self, i: int, o: Line, p: Payload, run: Run) -> str:
        run.runner = word(p.runner) or run.runner
        run.model = word(p.model) or run.model
        said = {name: getattr(p, name) for name in ("task", "variant", "runner", "repetition", "base_commit")}
        said |= {"model": p.model, "worktree": p.worktree}
        self.put(i, model=word(p.model), attributes=attributes(adapter=run.runner, **said))
        run.is_named = False  # introduce this row: it is the one that knows the runner
        return "run.started"

    def run_finished(self, i: int, o: Line, p: Payload, run: Run) -> str:
        self.put(
            i, status=word(p.status), outcome=word(p.outcome), exit_code=whole(p.exit_code), message=clip(word(p.error))
        )
        return "run.ended"

    def message(self, i: int, o: Line, p: Payload, run: Run) -> str:
        if type(p.text) is str:
            self.columns["text_chars"][i] = len(p.text)
        self.columns["request_id"][i] = word(p.message_id)
        self.columns["model"][i] = word(p.model)
        return "message"

    def started(self, i: int, o: Line, p: Payload, run: Run) -> str:
        call_id = o.call_id
        tool = self.columns["tool"][i] = word(p.tool) or o.name
        if not self.is_generic and (p.launcher is True or (call_id == GENERIC_MAIN and o.source == "runner")):
            run.launcher = call_id
            return "system"
        if call_id is not None:
            occurrence = run.used[call_id] = run.used.get(call_id, 0) + 1
            self.columns["call_occurrence"][i] = occurrence
            calls = run.open.pop(call_id, None) or []
            calls.append(OpenCall(occurrence, tool))
            run.open[call_id] = calls
        return "tool.started"

    def finished(self, i: int, o: Line, p: Payload, run: Run) -> str:
        columns, call_id, source, status = self.columns, o.call_id, o.source, p.status
        tool: str | None = word(p.tool) or o.name
        exit_code = whole(p.exit_code)
        columns["exit_code"][i] = exit_code
        if type(status) is str:
            columns["status"][i] = status
            if status == "completed" or status in FAILED:
                columns["is_error"][i] = status != "completed"
        elif exit_code is not None:
            columns["is_error"][i] = exit_code != 0
        if not self.is_generic and is_launcher_end(call_id, source, p, run):
            run.launcher = None
            columns["tool"][i] = tool
            return "system"
        if call_id is not None:
            calls = run.open.get(call_id)
            if calls:
                call = calls.pop()
                columns["call_occurrence"][i] = call.occurrence
                tool = tool or call.tool
                if not calls:
                    del run.open[call_id]
            else:  # an orphan; the id counts as opened, so that a later start is another call
                columns["call_occurrence"][i] = run.used.setdefault(call_id, 1)
        columns["tool"][i] = tool
        if source == "codex" and type(status) is str and status in DENIED:
            self.put(i, decision="deny", decided_by="vendor", evidence="status")
        return "tool.finished"

    def file_change(self, i: int, o: Line, p: Payload, run: Run) -> str:
        call_id = o.call_id or word(p.call_id)
        occurrence = None if call_id is None else run.used.get(call_id)
        self.put(i, path=word(p.path), tool=word(p.tool), call_id=call_id, call_occurrence=occurrence)
        return "file.changed"

    def usage(self, i: int, o: Line, p: Payload, run: Run) -> str:
        columns, is_generic = self.columns, self.is_generic
        for key, column in COUNTERS.items():
            value: int | None = getattr(p, key)
            if type(value) is not int or not 0 <= value <= MAX_TOKENS:
                value = counter(key, value, is_generic=is_generic)
            columns[column][i] = value
        columns["input_includes_cache"][i] = False
        columns["model"][i] = word(p.model) or run.model
        name = None if o.source == "generic" else o.name  # an agent of the generic protocol names its lines freely
        if name == "message_usage":
            columns["usage_scope"][i] = "snapshot"
            columns["request_id"][i] = word(p.message_id)
            columns["requests"][i] = 1
        elif name == "result_usage":
            columns["usage_scope"][i] = "final" if p.final is True else None
            if type(p.total_cost_usd) in (int, float):
                columns["cost_usd"][i] = float(p.total_cost_usd)
            if type(p.models) is list:
                columns["model"][i] = word(p.models[0]) if len(p.models) == 1 else None
        else:
            columns["usage_scope"][i] = "delta"
            if o.source != "codex":
                columns["requests"][i] = 1
        return "usage"

    def error(self, i: int, o: Line, p: Payload, run: Run) -> str:
        self.put(i, status=o.name, message=clip(word(p.message)), is_error=True)
        return "error"

    def reasoning(self, i: int, o: Line, p: Payload, run: Run) -> str:
        return "reasoning"

    def plain_text(self, i: int, o: Line, p: Payload, run: Run) -> str:
        if isinstance(o, PlainText):
            self.columns["text_chars"][i] = o.chars
        return "system"

    def system(self, i: int, o: Line, p: Payload, run: Run) -> str:
        name = o.name
        if name is None:
            return "system"
        self.columns["event"][i] = f"system/{name}"
        if name == "hook":
            return self.hook(i, p, run) if p.blocked is True else "system"
        if name == "permission_denied":
            return self.permission_denied(i, p, run)
        if name == "result":
            return self.result(i, o, p, run)
        if name == "rate_limit_event":  # Harness Lab drops the values
            return "rate_limit"
        if name == "api_retry":
            status = p.error_status
            self.put(i, message=clip(word(p.error)), status=None if status is None else str(status)[:80])
            return "retry"
        if name == "compact_boundary":
            self.columns["reason"][i] = word(p.trigger)
            return "compaction"
        if name == "turn_started":
            self.columns["turn_id"][i] = None if p.turn is None else str(p.turn)[:80]
            return "turn.started"
        if name in ("unknown_event", "unknown_item", "unknown_block"):
            return "opaque"
        if name in SESSIONS and type(p.model) is str:
            run.model = p.model
            self.columns["model"][i] = p.model
        self.columns["exit_code"][i] = whole(p.exit_code)
        self.columns["outcome"][i] = word(p.outcome)
        return "system"

    def permission_denied(self, i: int, p: Payload, run: Run) -> str:
        tool = word(p.tool)
        run.notices[tool or ""] = run.notices.get(tool or "", 0) + 1
        return self.denial(i, p, run, tool, decided_by="permission", evidence="permission_notice")

    def hook(self, i: int, p: Payload, run: Run) -> str:
        name = word(p.hook_name)
        tool = name.partition(":")[2] or None if name else None
        return self.denial(i, p, run, tool, decided_by=name or "hook", evidence="hook")

    def denial(self, i: int, p: Payload, run: Run, tool: str | None, *, decided_by: str, evidence: str) -> str:
        """Neither a notice nor a hook names its call, so it is tied to the open one it can mean, if there is one."""
        self.put(i, decision="deny", decided_by=decided_by, evidence=evidence, tool=tool, reason=clip(word(p.message)))
        linked = run.link(tool)
        if linked is not None:
            call_id, call = linked
            call.is_denied = True
            self.put(i, call_id=call_id, call_occurrence=call.occurrence)
        return "tool.decided"

    def result(self, i: int, o: Line, p: Payload, run: Run) -> str:
        """The vendor's list is the notices again, then its own: N notices and M entries are max(N, M - N) denials."""
        self.put(i, status=word(p.subtype), is_error=flag(p.is_error))
        if o.source == "generic" or type(p.permission_denials) is not list:
            return "system"
        listed, notices = p.permission_denials, sum(run.notices.values())
        news = len(listed) - 2 * notices - run.vendor_only
        if news <= 0:
            return "system"
        known = Counter(run.notices)
        extra: list[str] = []
        for entry in listed[notices:]:
            tool = word(entry) or ""
            if known[tool] > 0:
                known[tool] -= 1
            else:
                extra.append(tool)
        for tool in extra[-news:]:
            values = {"kind": "tool.decided", "decision": "deny", "decided_by": "vendor", "evidence": "vendor_list"}
            self.rows.parts.append((i, values | {"tool": tool or None}))
        run.vendor_only += news
        return "system"


def is_launcher_end(call_id: str | None, source: str, p: Payload, run: Run) -> bool:
    """Harness Lab ends what it launched itself; where the agent took the launcher's id, its own call ends first."""
    if p.launcher is True or (call_id == GENERIC_MAIN and source == "runner"):
        return True
    return call_id is not None and call_id == run.launcher and source in NOT_AGENTS and call_id not in run.open


READERS: dict[str, Callable[[Filler, int, Any, Any, Run], str]] = {
    "run_started": Filler.run_started,
    "run_finished": Filler.run_finished,
    "assistant_message": Filler.message,
    "tool_started": Filler.started,
    "tool_finished": Filler.finished,
    "command_started": Filler.started,
    "command_finished": Filler.finished,
    "file_change": Filler.file_change,
    "usage": Filler.usage,
    "error": Filler.error,
    "reasoning_event": Filler.reasoning,
    "system": Filler.system,
    PLAIN_TEXT: Filler.plain_text,
}
