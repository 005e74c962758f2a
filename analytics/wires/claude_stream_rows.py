"""What the messages of a capture say, whole and in parts, and its results. Each reader takes one line and gives its
kind, or None for a line that it refuses.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from analytics.wires import claude_stream_lines as lines
from analytics.wires.base import attributes, clip
from analytics.wires.claude_messages import (
    SYNTHETIC,
    Block,
    CacheCreation,
    Message,
    Usage,
    is_interruption,
    kept_an_hour,
    refusal,
    request_key,
    result_text,
    whole,
    word,
)
from analytics.wires.claude_stream_lines import flag
from analytics.wires.claude_stream_span import RESULT_RANK, Span
from analytics.wires.claude_stream_state import Answer, Run
from analytics.wires.claude_stream_totals import spent

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
TEXTS = frozenset({"text", "image", "document"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
QUIET = frozenset({"content_block_start", "content_block_delta", "content_block_stop", "message_stop", "ping"})
NOBODY = (None, None)
EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")


def assistant(span: Span, i: int, o: lines.Assistant, run: Run) -> str | None:
    """A row of an answer, mostly one of its blocks. It is stamped before the answer is finished, so its output is too
    small in 320 of 379 captures; the input side is right.
    """
    message, parent = o.message, word(o.parent_tool_use_id)
    if message.content is UNSET:
        span.refuse(i, run, "malformed", "the message has no content")
        return None
    span.events[i] = "assistant"
    span.begin(i, run, is_answer=True)
    if parent is not None:
        span.put(i, parent_call_id=parent)
    model, error = word(message.model), word(o.error)
    if model == SYNTHETIC or o.is_api_error_message is True:
        span.put(i, is_error=True, status=error, reason=error, message=clip(text_of(message)) or None)
        return "error"
    if parent is None and model is not None and model not in run.models:
        run.models.append(model)
    key = request_key(message, o.request_id, o.uuid)
    span.snapshot(i, key, model, message.usage, is_final=message.stop_reason is not None)
    if error is not None:
        span.put(i, status=error)
    return blocks(span, i, message, run, parent, {"request_id": key, "model": model})


def user(span: Span, i: int, o: lines.User, run: Run) -> str | None:
    """What the model is given: results, prompts, and texts that the client puts in."""
    message, parent = o.message, word(o.parent_tool_use_id)
    if message.content is UNSET:
        span.refuse(i, run, "malformed", "the message has no content")
        return None
    span.events[i] = "user"
    if parent is not None:
        span.put(i, parent_call_id=parent)
    if is_interruption(text_of(message)):  # ends the calls that wait and refuses nothing; no turn begins with it
        span.put(i, status="interrupted")
        for call_id, (tool, above) in run.open.items():
            ended = {"kind": "tool.finished"} | of_call(span, run, call_id, tool)
            span.part(i, run, above, **ended, status="interrupted")
        run.open.clear()
    else:
        span.begin(i, run, is_answer=False)
    kind = blocks(span, i, message, run, parent)
    return "injection" if kind == "message" and o.is_synthetic is True else kind


def blocks(
    span: Span, i: int, message: Message, run: Run, parent: str | None, shared: dict[str, Any] | None = None
) -> str:  # fmt: skip
    """The first block is the row, each further one a part, which has `shared` beside its own."""
    content = message.content
    if type(content) is not list or not content:
        span.text(i, content)
        return "message"
    role = span.events[i] or ""
    kind = first(span, i, content[0], run, parent)
    for found in content[1:]:
        span.part(i, run, parent, **{"event": role} | block(span, found, run, parent, role) | (shared or {}))
    return kind


def first(span: Span, i: int, found: Any, run: Run, parent: str | None) -> str:
    """The block that stands on the row itself; the usual ones go to their columns straight."""
    kind = found.type if type(found) is Block else None
    if kind == "text":
        span.text(i, found.text)
        return "message"
    if kind == "tool_use":
        call_id, tool = word(found.id), word(found.name)
        if call_id is not None:
            run.open[call_id] = (tool, parent)
        span.call(i, run, call_id, tool)
        return "tool.requested"
    if kind == "tool_result":
        call_id, is_error = word(found.tool_use_id), found.is_error is True
        tool, _ = run.open.pop(call_id, NOBODY) if call_id is not None else NOBODY
        span.outcome(i, run, call_id, tool, is_error=is_error)
        if is_error:
            span.put(i, **verdict(found))
        return "tool.finished"
    values = block(span, found, run, parent, span.events[i] or "")
    made = str(values.pop("kind"))
    span.events[i] = values.pop("event", span.events[i])
    span.put(i, **values)
    return made


def block(span: Span, found: Any, run: Run, parent: str | None, role: str) -> dict[str, Any]:
    """What a content block says, as event columns."""
    if type(found) is not Block:
        return {"kind": "message", "text_chars": len(found) if type(found) is str else None}
    kind = word(found.type) or ""
    if kind in TEXTS:
        return {"kind": "message", "text_chars": len(found.text) if type(found.text) is str else None}
    if kind in THOUGHTS:  # Harness Lab's sanitised stream takes the text out
        return {"kind": "reasoning", "text_chars": len(found.thinking) if type(found.thinking) is str else None}
    if kind in CALLS:
        call_id, tool = word(found.id), word(found.name)
        if call_id is not None:
            run.open[call_id] = (tool, parent)
        return {"kind": "tool.requested"} | of_call(span, run, call_id, tool)
    if kind.endswith("tool_result"):
        call_id, is_error = word(found.tool_use_id), found.is_error is True
        tool, _ = run.open.pop(call_id, NOBODY) if call_id is not None else NOBODY
        ended = {"kind": "tool.finished", "is_error": is_error} | of_call(span, run, call_id, tool)
        return ended | verdict(found) if is_error else ended
    return {"kind": "opaque", "event": f"{role}/{kind}"}


def of_call(span: Span, run: Run, call_id: str | None, tool: str | None) -> dict[str, Any]:
    """Which call a fact is about."""
    return {"call_id": call_id, "call_scope": span.scope(call_id, run), "tool": tool}


def verdict(found: Block) -> dict[str, Any]:
    """What a failed result says of its call by its text. The list of a result misses some refusals (a Read that a rule
    refuses: claude-code #82747).
    """
    text = result_text(found.content)
    if is_interruption(text):
        return {"status": "interrupted"}
    refused = refusal(text)
    if refused is not None:
        kind, decided_by = refused
        return {"decision": "deny", "evidence": "result_text", "reason": kind, "decided_by": decided_by}
    code = EXIT_CODE.match(text)
    return {"exit_code": int(code[1])} if code else {}


def stream_event(span: Span, i: int, o: lines.StreamEvent, run: Run) -> str:
    """A partial message. Only its deltas tell what an answer cost in the end."""
    event, parent = o.event, word(o.parent_tool_use_id)
    name = word(event.type)
    span.events[i] = f"stream_event/{name}"
    if parent is not None:
        span.put(i, parent_call_id=parent)
    if run.turn_id is None or run.is_quiet:
        span.begin(i, run, is_answer=True)
    if name in QUIET:
        if name == "message_stop":
            run.answers.pop(parent or "", None)
        return "system"
    if name == "message_start":
        return message_start(span, i, event.message, run, parent or "")
    if name == "message_delta":
        answer = run.answers.get(parent or "")
        if answer is None or type(event.usage) is not Usage:
            return "system"
        span.snapshot(i, answer.key, answer.model, grown(event.usage, answer), is_final=True)
        return "usage"
    if name == "error":
        error = event.error if type(event.error) is dict else {}
        span.put(i, is_error=True, status=word(error.get("type")), message=clip(word(error.get("message"))))
        return "error"
    return "opaque"


def message_start(span: Span, i: int, message: Any, run: Run, chain: str) -> str:
    """It names the answer that the deltas behind it belong to."""
    run.answers.pop(chain, None)
    if not isinstance(message, lines.StartedMessage):
        return "system"
    key = request_key(Message(id=message.id), None, None)
    if key is None:
        return "system"
    model, usage = word(message.model), message.usage
    if not chain and model is not None and model not in run.models:
        run.models.append(model)
    answer = run.answers[chain] = Answer(key, model)
    if type(usage) is not Usage:
        return "system"
    answer.input, answer.read = usage.input_tokens, usage.cache_read_input_tokens
    answer.written = usage.cache_creation_input_tokens
    answer.hour = kept_an_hour(answer.written, usage.cache_creation)
    span.snapshot(i, key, model, usage, is_final=False)
    return "usage"


def grown(said: Usage, answer: Answer) -> Usage:
    """The figures of a delta; older ones name only output, so the rest is what the answer started with."""
    written, split = said.cache_creation_input_tokens or answer.written, said.cache_creation
    if split is None and written == answer.written and answer.hour is not None:
        split = CacheCreation(ephemeral_1h_input_tokens=answer.hour)
    return Usage(
        input_tokens=said.input_tokens or answer.input, output_tokens=said.output_tokens,
        cache_creation_input_tokens=written, cache_read_input_tokens=said.cache_read_input_tokens or answer.read,
        cache_creation=split, output_tokens_details=said.output_tokens_details, speed=said.speed,
    )  # fmt: skip


def result(span: Span, i: int, o: lines.Result, run: Run) -> str:
    """The end of a turn, and of the run unless another turn follows. Success needs more than the word: 16 results say
    `success` beside `is_error`, and three that ran out of turns say no error.
    """
    subtype = word(o.subtype)
    span.events[i] = f"result/{subtype}" if subtype else "result"
    span.begin(i, run, is_answer=True)
    is_error = flag(o.is_error)
    is_failed = is_error is True or subtype not in (None, "success")
    texts = [word(error) for error in o.errors] if type(o.errors) is list else []
    error = next((text for text in texts if text), None) or (word(o.result) if is_failed else None)
    http, duration = None if o.api_error_status is None else str(o.api_error_status)[:80], whole(o.duration_ms)
    reason = word(o.terminal_reason) or (f"api error {http}" if http else None) or (error if is_failed else None)
    usage = spent(o, run)
    said = attributes(
        view_rank=RESULT_RANK if usage or type(o.model_usage) is dict else None, num_turns=whole(o.num_turns),
        duration_api_ms=whole(o.duration_api_ms), stop_reason=word(o.stop_reason),
        terminal_reason=word(o.terminal_reason), api_error_status=http,
    )  # fmt: skip
    span.put(
        i, status=subtype, outcome="error" if is_failed else "success", is_error=is_error, reason=clip(reason),
        message=clip(error), duration_ms=duration, attributes=said,
    )  # fmt: skip
    span.part(i, run, kind="turn.ended", reason=word(o.stop_reason), duration_ms=duration)
    for values in usage:
        span.part(i, run, **values)
    denials(span, i, o, run)
    span.turns[i] = run.turn_id
    run.end_turn()
    return "run.ended"


def denials(span: Span, i: int, o: lines.Result, run: Run) -> None:
    """The calls that the result lists as refused; a refused run still says success and exits with 0."""
    for denial in o.permission_denials if type(o.permission_denials) is list else ():
        if isinstance(denial, lines.Denial):
            span.part(
                i, run, kind="tool.decided", **of_call(span, run, word(denial.tool_use_id), word(denial.tool_name)),
                decision="deny", evidence="permission_denials", reason="listed",
            )  # fmt: skip


def text_of(message: Message) -> str:
    """The text of a message, of its text blocks alone."""
    content = message.content
    if type(content) is str:
        return content
    found = content if type(content) is list else []
    texts = [one.text if type(one) is Block else one for one in found]
    return "\n".join(text for text in texts if type(text) is str)
