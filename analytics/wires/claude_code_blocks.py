"""What single records of a session say, as event columns: content blocks, failed results, errors, retries."""

from __future__ import annotations

import re
from typing import Any

from analytics.wires.base import attributes, clip
from analytics.wires.claude_code_lines import Line, Nested, Run, run_of
from analytics.wires.claude_messages import (
    Block,
    Message,
    call_scope,
    decider,
    is_interruption,
    raw,
    refusal,
    result_text,
    whole,
    word,
)

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
TEXTS = frozenset({"text", "image", "document"})
EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")
Columns = dict[str, Any]


def block_columns(block: Block, role: str, run: Run, denial: str | None = None) -> Columns:
    """A content block of any kind; opens or closes its call."""
    kind = word(block.type) or ""
    if kind in TEXTS:
        return {"kind": "message", "text_chars": length(block.text)}
    if kind in THOUGHTS:
        return {"kind": "reasoning", "text_chars": length(block.thinking)}
    if kind in CALLS:
        call_id, tool = word(block.id), word(block.name)
        if call_id:
            run.open[call_id] = tool
            run.latest.append(call_id)
        return {"kind": "tool.requested"} | of_call(call_id, tool, run)
    if kind.endswith("tool_result"):
        call_id, is_error = word(block.tool_use_id), block.is_error is True
        said = finished(call_id, run.open.pop(call_id, None) if call_id else None, run)
        return said | {"is_error": is_error} | (verdict(block, denial) if is_error or denial else {})
    return {"kind": "opaque", "event": f"{role}/{kind}" if kind else role}


def finished(call_id: str | None, tool: str | None, run: Run) -> Columns:
    """The end of a call."""
    return {"kind": "tool.finished"} | of_call(call_id, tool, run)


def of_call(call_id: str | None, tool: str | None, run: Run) -> Columns:
    """Which call a fact is about."""
    return {"call_id": call_id, "call_scope": call_scope(call_id, run_of(run.session, run.agent)), "tool": tool}


def length(text: Any) -> int | None:
    """Characters of a text."""
    return len(text) if type(text) is str else None


def denied(kind: str, decided_by: str | None, evidence: str) -> Columns:
    """A denial."""
    return {"decision": "deny", "reason": kind, "decided_by": decided_by, "evidence": evidence}


def row_denied(kind: str) -> Columns:
    """A denial by the row's own word (toolDenialKind, since 2.1.80)."""
    return denied(kind, decider(kind), "tool_denial_kind")


def refused_results(content: list[Any]) -> list[Block]:
    """The results that a row's kind of denial is about: the failed ones, if any is said to have failed."""
    results = [block for block in content if type(block) is Block and block.type == "tool_result"]
    return [block for block in results if block.is_error is True] or results


def verdict(block: Block, denial: str | None) -> Columns:
    """What a failed result says of its call: refused, interrupted, or an exit code. The row's word on a denial goes
    before the text.
    """
    if denial is not None:
        return row_denied(denial)
    text = result_text(block.content)
    if is_interruption(text):
        return {"status": "interrupted"}
    refused = refusal(text)
    if refused is not None:
        return denied(*refused, "result_text")
    code = EXIT_CODE.match(text)
    return {"exit_code": int(code[1])} if code else {}


def made_up(row: Nested, message: Message) -> Columns:
    """An answer that the client made up, mostly of an error."""
    error, status = word(raw(row.error)), whole(row.api_error_status)
    is_error = row.is_api_error_message is True or error is not None or status is not None
    content = message.content
    blocks = content if type(content) is list else [content]
    texts = [word(b.text if type(b) is Block else b) for b in blocks]
    return {
        "message": clip("\n".join(text for text in texts if text)) or None,
        "is_error": is_error or None,
        "reason": error,
        "status": error if status is None else str(status),
    }


def compaction(said: Any) -> Columns:
    """`compactMetadata`: the context gets smaller; totals of usage do not."""
    if type(said) is not dict:
        return {}
    trigger, before, after = word(said.get("trigger")), whole(said.get("preTokens")), whole(said.get("postTokens"))
    return {
        "reason": trigger,
        "duration_ms": whole(said.get("durationMs")),
        "context_tokens": after,
        "attributes": attributes(trigger=trigger, pre_tokens=before, post_tokens=after),
    }


def retry(o: Line) -> Columns:
    """A request failed and is tried again. The vendor's error object is wrapped in the client's."""
    error = raw(o.error)
    status = error.get("status") if type(error) is dict else None
    text = None
    while type(error) is dict:
        text = word(error.get("message")) or text
        error = error.get("error")
    delay = whole(o.retry_in_ms)
    return {
        "status": None if status is None else str(status)[:80],
        "message": clip(text),
        "attributes": attributes(attempt=whole(o.retry_attempt), max=whole(o.max_retries), retry_in_ms=delay),
    }
