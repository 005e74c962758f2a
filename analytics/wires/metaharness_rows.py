"""Rows of `metaharness.event/1`: each event's facts as columns, told by the adapter of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from msgspec import Struct

from analytics.wires import metaharness_lines as lines
from analytics.wires.base import Rows, all_in_bounds, attributes, clip, times
from analytics.wires.metaharness_lines import KINDS, TAGS, Event
from analytics.wires.metaharness_usage import SPEAKS, WINDOW_MINUTES, Run, final_usage, shown_by

B10X_DENIALS = {
    "approval-denied": "approval",
    "hook-refused": "hook",
    "hook-failed": "hook",
    "unpublished-tool": "harness",
}
UNKNOWN_SPEAKS = "decisions results outcome"
CODES = {cls: code for code, cls in enumerate(KINDS)}
RETRY = len(KINDS)
EVENT_NAMES = pa.array(TAGS[cls] for cls in KINDS)
KIND_NAMES = pa.array([*KINDS.values(), "retry"])
LAST_SECOND = 253_402_300_799  # the end of the year 9999


class State(Struct):
    runs: dict[str, Run] = {}


class Filler:
    """The rows of one span: each method reads one event, or all events of one kind that stand in a stretch of a run."""

    def __init__(self, n: int) -> None:
        self.rows = Rows(n)
        self.put = self.rows.put
        self.fill = self.rows.fill

    def calls(self, places: list[int], objs: list[Any]) -> None:
        """What every event of a tool call has."""
        self.fill(places, call_id=[o.call_id for o in objs], call_occurrence=[1] * len(objs))

    def session_started(self, i: int, o: lines.SessionStarted, run: Run) -> None:
        run.adapter, run.model = o.adapter, o.model
        speaks = SPEAKS.get(o.adapter, UNKNOWN_SPEAKS)
        if o.offered_tools is not None:
            speaks += " offered"
        if o.withheld is not None:
            speaks += " withheld"
        said = {name: getattr(o, name) for name in o.__struct_fields__ if name not in Event.__struct_fields__}
        said["offered_tools"] = None  # each has a row of its own
        self.put(i, model=o.model, speaks=speaks, attributes=attributes(**said))
        parts: list[tuple[str, str, str | None]] = [(tool, "offered", None) for tool in o.offered_tools or ()]
        parts += [(held.tool, "withheld", held.reason) for held in o.withheld or ()]
        for tool, status, reason in parts:
            self.rows.parts.append((i, {"kind": "tool.offered", "tool": tool, "status": status, "reason": reason}))

    def session_ended(self, i: int, o: lines.SessionEnded, run: Run) -> None:
        outcome = None if o.is_error is None else ("error" if o.is_error else "success")
        denials = None if o.permission_denials is None else [d.tool_use_id for d in o.permission_denials]
        names = ("subtype", "stop_reason", "terminal_reason", "api_error_status", "num_turns", "duration_api_ms",
                 "ttft_ms", "time_to_request_ms", "subagents_spawned", "census", "observed_models")  # fmt: skip
        said = {name: getattr(o, name) for name in names}
        self.put(
            i,
            outcome=outcome,
            is_error=o.is_error,
            status=o.terminal_reason or o.subtype,
            duration_ms=o.duration_ms,
            attributes=attributes(**said, permission_denials=denials),
        )
        final_usage(self.rows, i, o, run)

    def step_entered(self, i: int, o: lines.StepEntered, run: Run) -> None:
        said = attributes(workflow=o.step.workflow, state=o.step.state, attempt=o.step.attempt)
        self.put(i, step=o.step.index, attributes=said)

    def step_left(self, i: int, o: lines.StepLeft, run: Run) -> None:
        said = attributes(workflow=o.step.workflow, state=o.step.state, attempt=o.step.attempt)
        self.put(i, step=o.step.index, attributes=said, outcome=o.outcome.outcome, reason=o.outcome.reason)

    def turn_started(self, i: int, o: lines.TurnStarted, run: Run) -> None:
        self.put(i, turn_id=str(o.turn))

    def turn_ended(self, i: int, o: lines.TurnEnded, run: Run) -> None:
        self.put(i, turn_id=str(o.turn), reason=o.stop_reason)

    def texts(self, places: list[int], objs: list[lines.Text | lines.Thinking], run: Run) -> None:
        self.fill(places, text_chars=[len(o.text) for o in objs], request_id=[o.request_id for o in objs])
        if run.read_as != "codex":
            return
        for i, o in zip(places, objs, strict=True):
            event, digest = TAGS[type(o)], xxhash.xxh3_64_hexdigest(o.text.encode())
            if run.last_text.get(event) == digest:
                self.put(i, is_shadow=True)
                del run.last_text[event]
            else:
                run.last_text[event] = digest

    def thinking_estimate(self, i: int, o: lines.ThinkingEstimate, run: Run) -> None:
        self.put(i, attributes=attributes(estimate=o.estimate, delta=o.delta))

    def injection(self, i: int, o: lines.Injection, run: Run) -> None:
        self.put(i, text_chars=len(o.text), reason=o.origin)

    def tools_requested(self, places: list[int], objs: list[lines.ToolRequested], run: Run) -> None:
        self.calls(places, objs)
        self.fill(places, tool=[o.name for o in objs])
        if run.read_as == "codex":
            shown = [i for i, o in zip(places, objs, strict=True) if o.seam != "none"]
            self.fill(shown, is_shadow=[True] * len(shown))

    def tools_decided(self, places: list[int], objs: list[lines.ToolDecided], run: Run) -> None:
        self.calls(places, objs)
        decisions = [o.decision for o in objs]
        self.fill(
            places, decision=[d.decision for d in decisions], decided_by=[o.decided_by for o in objs],
            evidence=["tool.decided"] * len(objs), reason=[d.reason for d in decisions],
            duration_ms=[o.latency_ms for o in objs],
        )  # fmt: skip

    def tool_results(self, places: list[int], objs: list[lines.ToolResult], run: Run) -> None:
        self.calls(places, objs)
        self.fill(places, is_error=[o.is_error for o in objs], exit_code=[o.exit_code for o in objs])

    def usages(self, places: list[int], objs: list[lines.UsageEvent], run: Run) -> None:
        n, used = len(objs), [o.usage for o in objs]
        models = [o.model for o in objs]
        self.fill(
            places, request_id=[o.request_id for o in objs], model=models,
            input_tokens=[u.input_tokens for u in used], output_tokens=[u.output_tokens for u in used],
            cache_read_tokens=[u.cache_read_input_tokens for u in used],
            cache_write_tokens=[u.cache_creation_input_tokens for u in used],
            reasoning_tokens=[u.thinking_tokens for u in used], cost_usd=[u.cost_usd for u in used],
        )  # fmt: skip
        scope = {"claude": "snapshot", "b10x": "delta", "codex": "cumulative"}.get(run.read_as or "")
        if scope is not None:
            self.fill(places, usage_scope=[scope] * n, input_includes_cache=[run.read_as != "claude"] * n)
        if run.read_as in ("claude", "b10x"):
            self.fill(places, requests=[1] * n)
            run.models += [model for model in dict.fromkeys(models) if model and model not in run.models]

    def rate_limit(self, i: int, o: lines.RateLimit, run: Run) -> None:
        info = o.info
        resets = info.resets_at
        self.put(
            i,
            limit_id=info.window,
            limit_name=info.window,
            limit_window_minutes=WINDOW_MINUTES.get(info.window or ""),
            limit_used=info.utilization,
            limit_unit={"claude": "fraction", "codex": "percent"}.get(run.read_as or ""),
            limit_resets_at=resets * 1_000_000 if resets is not None and 0 <= resets <= LAST_SECOND else None,
            limit_status=info.status,
            attributes=attributes(using_overage=info.using_overage),
        )

    def command_result(self, i: int, o: lines.CommandResult, run: Run) -> None:
        refused = o.outcome.refused
        self.put(i, status=o.outcome.result, reason=refused.code if refused else None,
                 message=clip(refused.reason) if refused else None)  # fmt: skip

    def warning(self, i: int, o: lines.WarningEvent, run: Run) -> None:
        self.put(i, status=o.code, message=clip(o.message))

    def denial(self, i: int, o: lines.WarningEvent, waiting: dict[str, str]) -> None:
        """b10x decides in warnings: the call is the one the message names, else the newest that waits."""
        call = next((c for c in reversed(waiting) if names(o.message, c)), None) or next(reversed(waiting), None)
        self.put(i, decision="deny", decided_by=B10X_DENIALS[o.code], evidence="warning", reason=o.code)
        if call is not None:
            self.put(i, call_id=call, call_occurrence=1, tool=waiting[call])

    def opaque(self, i: int, o: lines.Opaque, run: Run) -> None:
        said = attributes(digest=o.digest, source_line=o.source_line, vendor_subtype=o.vendor_subtype)
        self.put(i, status=o.vendor_type, attributes=said)

    def auth_expired(self, i: int, o: lines.AuthExpired, run: Run) -> None:
        said = attributes(credential_source=o.credential_source, source_line=o.source_line)
        self.put(i, message=clip(o.detail), attributes=said)

    def stream_closed(self, i: int, o: lines.StreamClosed, run: Run) -> None:
        self.put(i, declared_events=o.events, reason=o.reason)
        mismatch = o.run_id if o.run_id != o.run else None
        process = o.process if isinstance(o.process, lines.Process) else None
        if process is not None:
            self.put(i, status=process.kind, exit_code=process.code)
        said = attributes(signal=process.signal if process else None, declared_run_id=mismatch)
        self.put(i, attributes=said)


# the order matters: a session's start tells how to read the rest, and requests name the tools of what follows
READERS: dict[type[Event], Callable[[Filler, int, Any, Run], None]] = {
    lines.SessionStarted: Filler.session_started,
    lines.StepEntered: Filler.step_entered,
    lines.StepLeft: Filler.step_left,
    lines.TurnStarted: Filler.turn_started,
    lines.TurnEnded: Filler.turn_ended,
    lines.ThinkingEstimate: Filler.thinking_estimate,
    lines.Injection: Filler.injection,
    lines.RateLimit: Filler.rate_limit,
    lines.CommandResult: Filler.command_result,
    lines.WarningEvent: Filler.warning,
    lines.Opaque: Filler.opaque,
    lines.AuthExpired: Filler.auth_expired,
    lines.StreamClosed: Filler.stream_closed,
}
GROUP_READERS: dict[type[Event], Callable[[Filler, list[int], list[Any], Run], None]] = {
    lines.ToolRequested: Filler.tools_requested,
    lines.ToolDecided: Filler.tools_decided,
    lines.ToolResult: Filler.tool_results,
    lines.Text: Filler.texts,
    lines.Thinking: Filler.texts,
    lines.UsageEvent: Filler.usages,
}


def vendor_times(texts: list[str | None]) -> pa.Int64Array:
    """Microseconds of the times that end in Z; any other is not known."""
    stamps = pa.array(texts, pa.string())
    is_utc = pc.ends_with(stamps, pattern="Z")
    if is_utc.false_count:
        stamps = pc.if_else(is_utc, stamps, None)
    try:
        moments = stamps.cast(pa.timestamp("us", "UTC")).view(pa.int64())
    except pa.ArrowInvalid:
        moments = None
    if moments is None or not all_in_bounds(moments):
        return times(stamps.to_pylist())
    return moments


def names(message: str, call_id: str) -> bool:
    """True: the message holds the call id as a whole word (k1 is not in k12)."""
    at = message.find(call_id)
    while at >= 0:
        before, after = message[at - 1 : at], message[at + len(call_id) : at + len(call_id) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = message.find(call_id, at + 1)
    return False


def stretch(filler: Filler, objs: list[Any], classes: list[type[Event]], first: int, last: int, run: Run) -> None:
    """Lines first … last-1, all of one run."""
    if classes[first] is lines.SessionStarted:
        run.adapter = objs[first].adapter
    if run.read_as is None:
        place, shown = next(((i, name) for i in range(first, last) if (name := shown_by(objs[i]))), (first, None))
        if place > first:
            stretch(filler, objs, classes, first, place, run)
            first = place
        run.shown = shown
    groups: dict[type[Event], list[int]] = {}
    tools = run.tools
    named: dict[type[Event], list[str | None]] = {lines.ToolDecided: [], lines.ToolResult: []}
    done = lines.ToolDecided if run.read_as == "codex" else lines.ToolResult  # the hook's id gets no result
    waiting_at: dict[int, dict[str, str]] = {}
    for i in range(first, last):
        cls = classes[i]
        group = groups.get(cls)
        if group is None:
            groups[cls] = [i]
        else:
            group.append(i)
        if cls is lines.ToolRequested:
            tools[objs[i].call_id] = objs[i].name
        elif cls in named:
            call = objs[i].call_id
            named[cls].append(tools.get(call))
            if cls is done or cls is lines.ToolResult:
                tools.pop(call, None)
        elif cls is lines.WarningEvent and run.read_as == "b10x" and objs[i].code in B10X_DENIALS:
            waiting_at[i] = dict(tools)
    for cls, read in READERS.items():
        for i in groups.get(cls, ()):
            read(filler, i, objs[i], run)
    for i, waiting in waiting_at.items():
        filler.denial(i, objs[i], waiting)
    for cls, read_all in GROUP_READERS.items():
        places = groups.get(cls)
        if places:
            read_all(filler, places, [objs[i] for i in places], run)
    for cls, found in named.items():
        if found:
            filler.fill(groups[cls], tool=found)
    for i in groups.get(lines.SessionEnded, ()):
        filler.session_ended(i, objs[i], run)
