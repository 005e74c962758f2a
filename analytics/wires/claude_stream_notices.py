"""What stands beside the messages of a capture: system rows, limits, control requests and replies, plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analytics.wires import claude_stream_lines as lines
from analytics.wires.base import attributes, clip
from analytics.wires.claude_messages import whole, word
from analytics.wires.claude_stream_lines import flag, number
from analytics.wires.claude_stream_span import Span
from analytics.wires.claude_stream_state import Run

QUIET_SUBTYPES = frozenset({
    "hook_started", "hook_progress", "status", "task_started", "task_progress", "task_updated", "task_notification",
    "notification", "thinking_tokens", "state", "session_state_changed", "files_persisted", "local_command",
    "local_command_output", "elicitation_complete", "microcompact_boundary", "informational", "stop_hook_summary",
    "turn_duration", "away_summary", "session_start",
})  # fmt: skip
LAST_SECOND = 253_402_300_799  # the end of the year 9999; what is beyond is not in seconds


def system(span: Span, i: int, o: lines.System, run: Run) -> str:
    """A system row; most subtypes say nothing that is counted."""
    subtype = word(o.subtype)
    if subtype is None:
        span.events[i] = "system"
        return "system"
    span.events[i] = f"system/{subtype}"
    reader = SYSTEM.get(subtype)
    if reader is not None:
        return reader(span, i, o, run)
    return "system" if subtype in QUIET_SUBTYPES else "opaque"


def init(span: Span, i: int, o: lines.System, run: Run) -> str:
    """An init begins a turn, unless the turn that is open has no answer yet: then it is that turn's."""
    is_start = run.turn_id is None or not run.is_quiet
    if is_start:
        run.start_turn()
    model = word(o.model)
    run.model = model or run.model
    span.put(i, model=model)
    if not run.is_told:
        run.is_told = True
        span.introduce(
            i, run, cwd=word(o.cwd), version=word(o.claude_code_version), model=model,
            permission_mode=word(o.permission_mode), api_key_source=word(o.api_key_source),
            output_style=word(o.output_style), fast_mode_state=word(o.fast_mode_state),
        )  # fmt: skip
        if type(o.tools) is list:
            run.has_tools = True
            span.speak(i, run)
            for tool in o.tools:
                span.part(i, run, kind="tool.offered", tool=word(tool), status="offered")
    return "turn.started" if is_start else "system"


def compact_boundary(span: Span, i: int, o: lines.System, _run: Run) -> str:
    """The context gets smaller; totals of usage do not."""
    said = o.compact_metadata
    if isinstance(said, lines.CompactMetadata):
        trigger, after = word(said.trigger), whole(said.post_tokens)
        span.put(
            i, reason=trigger, duration_ms=whole(said.duration_ms), context_tokens=after,
            attributes=attributes(trigger=trigger, pre_tokens=whole(said.pre_tokens), post_tokens=after),
        )  # fmt: skip
    return "compaction"


def api_retry(span: Span, i: int, o: lines.System, _run: Run) -> str:
    """A request failed and is tried again."""
    said = attributes(attempt=whole(o.attempt), max=whole(o.max_retries), retry_in_ms=whole(o.retry_delay_ms))
    status = None if o.error_status is None else str(o.error_status)[:80]
    span.put(i, status=status, message=clip(word(o.error)), attributes=said)
    return "retry"


def permission_denied(span: Span, i: int, o: lines.System, run: Run) -> str:
    """A notice. The refusal stands in the call's result, too, so a notice that names no call decides nothing."""
    call_id = word(o.tool_use_id)
    span.put(i, tool=word(o.tool_name), message=clip(word(o.message)))
    if call_id is None:
        return "warning"
    scope = span.scope(call_id, run)
    span.put(i, call_id=call_id, call_scope=scope, decision="deny", evidence="permission_notice", reason="listed")
    return "tool.decided"


def hook_response(span: Span, i: int, o: lines.System, _run: Run) -> str:
    """A hook that refuses a call does not name it; the call's result does."""
    span.put(i, exit_code=whole(o.exit_code), outcome=word(o.outcome))
    return "system"


def model_refusal_fallback(span: Span, i: int, o: lines.System, _run: Run) -> str:
    """A model refused to answer and another one was asked."""
    models = attributes(original_model=word(o.original_model), fallback_model=word(o.fallback_model))
    span.put(i, status=word(o.subtype), attributes=models)
    return "warning"


def rate_limit(span: Span, i: int, o: lines.RateLimitEvent, run: Run) -> str:
    """A sample of the account's limits: one a turn, named by the limit that is nearest."""
    span.events[i] = "rate_limit_event"
    said = o.rate_limit_info
    if not isinstance(said, lines.RateLimit):
        return "rate_limit"
    if not run.has_limits:
        run.has_limits = True
        span.speak(i, run)
    name = word(said.rate_limit_type)
    windows = said.unified_windows if type(said.unified_windows) is dict else {}
    values = sample(name, said)
    same = windows.get(name) if name is not None else None
    if isinstance(same, lines.LimitWindow):
        values = {key: sample(name, same)[key] if value is None else value for key, value in values.items()}
    extra = attributes(
        overage_status=word(said.overage_status), overage_resets_at=whole(said.overage_resets_at),
        overage_disabled_reason=word(said.overage_disabled_reason), is_using_overage=flag(said.is_using_overage),
        surpassed_threshold=number(said.surpassed_threshold),
    )  # fmt: skip
    span.put(i, **values, limit_status=word(said.status), attributes=extra)
    for other, one in windows.items():
        if other != name and isinstance(one, lines.LimitWindow):
            span.part(i, run, kind="rate_limit", **sample(other, one))
    return "rate_limit"


def sample(name: str | None, said: lines.LimitWindow | lines.RateLimit) -> dict[str, Any]:
    """One window's gauge. Utilization is a fraction and mostly missing: unknown, not zero. Resets are in seconds."""
    resets = number(said.resets_at)
    minutes = 300 if name == "five_hour" else 10080 if name is not None and name.startswith("seven_day") else None
    return {
        "limit_id": name,
        "limit_window_minutes": minutes,
        "limit_used": number(said.utilization),
        "limit_unit": "fraction",
        "limit_resets_at": None if resets is None or not 0 < resets <= LAST_SECOND else int(resets * 1_000_000),
    }


def control_request(span: Span, i: int, o: lines.ControlRequest, run: Run) -> str:
    """A request of the process to what drives it, or the other way round; a tool's permission is asked here."""
    asked = o.request
    subtype = word(asked.subtype) if isinstance(asked, lines.Asked) else None
    span.events[i] = f"control_request/{subtype}" if subtype else "control_request"
    if not isinstance(asked, lines.Asked) or subtype != "can_use_tool":
        return "system"
    call_id, tool, request_id = word(asked.tool_use_id), word(asked.tool_name), word(o.request_id)
    if request_id is not None:
        run.asked[request_id] = (call_id, tool)
    scope, reason = span.scope(call_id, run), clip(word(asked.decision_reason))
    span.put(i, call_id=call_id, call_scope=scope, tool=tool, decision="ask", reason=reason)
    return "tool.decided"


def control_response(span: Span, i: int, o: lines.ControlResponse, run: Run) -> str:
    """A reply; it decides the call that its request asked about."""
    span.events[i] = "control_response"
    replied = o.response
    if not isinstance(replied, lines.Replied):
        return "system"
    call_id, tool = run.asked.pop(word(replied.request_id) or "", (None, None))
    reply = replied.response
    if not isinstance(reply, lines.Reply) or reply.behavior not in ("allow", "deny"):
        return "system"
    call_id = call_id or word(reply.tool_use_id)
    if call_id is None:
        return "system"
    span.put(
        i, call_id=call_id, call_scope=span.scope(call_id, run), tool=tool, decision=reply.behavior, decided_by="human",
        evidence="control_response", reason="user-rejected" if reply.behavior == "deny" else None,
        message=clip(word(reply.message)),
    )  # fmt: skip
    return "approval"


def control_cancel(span: Span, i: int, o: lines.ControlCancel, run: Run) -> str:
    """Nobody waits for the reply any more."""
    span.events[i] = "control_cancel_request"
    run.asked.pop(word(o.request_id) or "", None)
    return "system"


def beside(span: Span, i: int, o: lines.Record, _run: Run) -> str:
    """A row that is known and says nothing of the run's work."""
    span.events[i] = str(type(o).__struct_config__.tag)
    return "system"


def unknown(span: Span, i: int, o: lines.Unknown, _run: Run) -> str:
    """A row of a type that nobody knows yet; new ones come every month."""
    subtype = word(o.subtype)
    span.events[i] = f"{o.type}/{subtype}" if subtype else o.type
    return "opaque"


def plain_text(span: Span, i: int, o: lines.PlainText, _run: Run) -> str:
    """Noise between the records, kept where it stands."""
    span.events[i] = lines.PLAIN_TEXT
    span.put(i, text_chars=o.chars)
    return "system"


def torn(span: Span, i: int, _o: lines.Torn, run: Run) -> None:
    """A lost record is damage to the run that it stands in."""
    span.refuse(i, run, "not_json", "the record breaks off")


SYSTEM: dict[str, Callable[[Span, int, lines.System, Run], str]] = {
    "init": init,
    "compact_boundary": compact_boundary,
    "api_retry": api_retry,
    "permission_denied": permission_denied,
    "hook_response": hook_response,
    "model_refusal_fallback": model_refusal_fallback,
}
