"""Captures of Claude Code's `--output-format stream-json`, alone or in the log of what started it.

A run is a session: its process writes an init, messages, perhaps partial ones, and a result for each turn. Rows have
no times. The whole run's usage stands in the last result's `modelUsage`; rows show who called what. Text between the
records is kept. Harness Lab's sanitised agent stream is such a capture without the thoughts. Rules: native.md, 2.
"""
# The methods of a wire are described once, in base.Wire.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from analytics.wires import claude_stream_lines as lines, claude_stream_notices as notices, claude_stream_rows as rows
from analytics.wires.base import Context, Refusal, Rows, Sample, Wire, key64, mended
from analytics.wires.claude_messages import word
from analytics.wires.claude_stream_span import NAME, Span
from analytics.wires.claude_stream_state import Run, State

SHAPE = "stream"
READERS: dict[type[Any], Callable[[Span, int, Any, Run], str | None]] = {
    **dict.fromkeys(lines.TAGS.values(), notices.beside),
    lines.Assistant: rows.assistant,
    lines.User: rows.user,
    lines.StreamEvent: rows.stream_event,
    lines.Result: rows.result,
    lines.System: notices.system,
    lines.RateLimitEvent: notices.rate_limit,
    lines.ControlRequest: notices.control_request,
    lines.ControlResponse: notices.control_response,
    lines.ControlCancel: notices.control_cancel,
    lines.Unknown: notices.unknown,
    lines.PlainText: notices.plain_text,
    lines.Torn: notices.torn,
}
DAMAGED = frozenset({"line_too_long", "too_deep", "nul_byte"})
MENDABLE = frozenset({"malformed", "number_out_of_range", "not_json"})
FOREIGN_KEYS = ("sessionId", "parentUuid", "timestamp_ms", "model_call_id", "qwen_code_version", "usageMetadata")
FOREIGN_TYPES = frozenset({"tool_call", "completion", "message", "init", "thinking", "tool_use", "tool_result"})


class ClaudeStream:
    """The wire; see the module."""

    name = NAME
    summary = "Claude Code stream-json captures (stdout), plain text between the records included"
    secret_exempt_keys: frozenset[str] = frozenset()
    recovers_glued = True

    def sniff(self, sample: Sample) -> str | None:
        records = [o for o in sample.objects if type(o.get("type")) is str]
        foreign = sum(is_foreign(o) for o in records)
        return SHAPE if sum(is_record(o) for o in records) > foreign else None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        return lines.DECODER

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return msgspec.json.decode(text, type=State)

    def is_final_without_newline(self, shape: str) -> bool:
        return False

    def needs_newline(self, shape: str) -> bool:
        return False

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        kind, run_id = obj.get("type"), word(obj.get("session_id"))
        if type(kind) is not str or kind not in lines.TAGS:
            return Refusal("unknown_event", f"type {kind!r:.80} is not known", run_id)
        is_number = "`int` >" in error or "`int` <" in error or "out of range" in error or "got `float`" in error
        return Refusal("number_out_of_range" if is_number else "malformed", error, run_id)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> lines.AnyLine | None:
        """Plain text is data here, and so is a row of a type that nobody knows yet."""
        if refusal.reason in DAMAGED or (refusal.reason == "invalid_utf8" and lines.TORN.match(line)):
            return None
        if refusal.reason in MENDABLE:
            found = mended_record(line)
            if found is not None or refusal.reason != "not_json":
                return found
        return lines.text_line(line, may_refuse=ctx.state is not None)

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        span, state = Span(len(objs), ctx), ctx.state
        current = state.current or next((name for o in objs if (name := word(o.session_id))), None)
        changes: list[tuple[int, str | None]] = [(0, current)]
        kinds: list[str] = []
        run, turns = span.run(current), span.turns
        for i, o in enumerate(objs):
            named = o.session_id
            if named != current and (named := word(named)) is not None:
                current = named
                run = span.run(current)
                changes.append((i, current))
            kind = READERS[type(o)](span, i, o, run)
            kinds.append(kind or "opaque")
            if kind is None:
                continue  # it is refused
            if run.turn_id is not None:
                turns[i] = run.turn_id
            if not run.is_begun:
                span.speak(i, run)
            if o.timestamp is not None:
                span.clock(i, o.timestamp)
        state.current = current
        span.rows.columns["event_key"] = [
            key64(o.uuid.encode()) if o.uuid and type(o.uuid) is str else None for o in objs
        ]
        return span.finish(kinds, changes)


def mended_record(line: bytes) -> Any | None:
    """A record whose only faults are those that `mended` takes out."""
    try:
        return lines.DECODER.decode(mended(line) or b"")
    except msgspec.MsgspecError:
        return None


def is_record(obj: Mapping[str, Any]) -> bool:
    """True: only Claude Code writes this. Cursor and others share the frame (init, assistant, result)."""
    kind, subtype, message = obj["type"], obj.get("subtype"), obj.get("message")
    if kind == "rate_limit_event":
        return isinstance(obj.get("rate_limit_info"), dict)
    if kind == "control_request":
        return isinstance(obj.get("request"), dict)
    if kind == "control_response":
        return isinstance(obj.get("response"), dict)
    if word(obj.get("session_id")) is None or is_foreign(obj):
        return False
    if kind == "system":
        has_tools = isinstance(obj.get("tools"), list) and ("permissionMode" in obj or "apiKeySource" in obj)
        return word(subtype) is not None and (subtype != "init" or has_tools or "claude_code_version" in obj)
    if kind == "assistant":
        return isinstance(message, dict) and "content" in message and bool(message.keys() & {"id", "model", "usage"})
    if kind == "user":
        return isinstance(message, dict) and "content" in message and "parent_tool_use_id" in obj
    if kind == "stream_event":
        return isinstance(obj.get("event"), dict)
    usage = obj.get("usage")
    has_usage = isinstance(usage, dict) and "input_tokens" in usage
    return kind == "result" and (has_usage or "modelUsage" in obj or "total_cost_usd" in obj)


def is_foreign(obj: Mapping[str, Any]) -> bool:
    """True: another agent's record (Cursor, Qwen, Gemini, Droid), or one of a session file."""
    return any(key in obj for key in FOREIGN_KEYS) or obj["type"] in FOREIGN_TYPES


WIRE: Wire = ClaudeStream()
