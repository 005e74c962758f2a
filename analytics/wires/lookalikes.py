"""Transcripts of other agents, told by their content: they look like ours, and read as ours they would be wrong.

Qwen Code writes Claude Code's envelope around Gemini's messages; Cursor frames its stream as Claude does. Each mark
here is one that no wire of ours has (native.md 1, 2 and 5). One row that bears it decides, since hook rows, user rows
and plain text may stand before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from analytics.wires.base import Sample

Row = Mapping[str, Any]
COPILOT = ("session.", "user.", "assistant.", "tool.", "hook.", "permission.", "subagent.", "skill.", "system.")
RESEMBLED = frozenset(
    {"claude-code", "claude-stream", "codex-rollout", "codex-exec"}
)  # wires a look-alike may pass for
CLAUDE_INIT = frozenset({"tools", "mcp_servers", "claude_code_version", "slash_commands"})
OPENCODE = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})
DOCUMENTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Gemini CLI", frozenset({"sessionId", "projectHash", "messages"})),
    ("Copilot CLI", frozenset({"sessionId", "chatMessages", "timeline"})),
    ("OpenCode", frozenset({"sessionID", "messageID"})),
    ("OpenCode", frozenset({"sessionID", "modelID", "providerID"})),
)
FRAMED_AS_OURS = frozenset({"Cursor", "Qwen Code"})
PI_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution"})


def lookalike(sample: Sample, *, is_known: bool = False) -> str | None:
    """The display name of the agent whose transcript this is, if it is none of ours.

    `is_known`: a wire of ours takes it for its own. Then a few foreign rows among many are rows that a log holds; but
    streams of Cursor and Qwen Code have the very frame of Claude's, and one row tells.
    """
    for agent, is_its in AGENTS.items():
        rows = sum(map(is_its, sample.objects))
        if rows and (not is_known or agent in FRAMED_AS_OURS or rows * 2 >= len(sample.objects)):
            return agent
    if is_cursor_frame(sample.objects):
        return "Cursor"
    return outline(sample.objects[0].keys()) if sample.is_document and sample.objects else None


def outline(keys: Collection[str]) -> str | None:
    """The agent of a document that is too long, or has too many lines, for more than the names of its keys."""
    return next((agent for agent, its in DOCUMENTS if its <= set(keys)), None)


def inner(row: Row, key: str) -> Row:
    """The object under a key; empty if there is none."""
    found = row.get(key)
    return found if isinstance(found, dict) else {}


def is_text(row: Row, *keys: str) -> bool:
    """True: text under each of the keys."""
    return all(isinstance(row.get(key), str) for key in keys)


def is_cursor(row: Row) -> bool:
    """A row of Cursor Agent's stream-json that Claude's has not."""
    if not is_text(row, "session_id"):
        return False
    kind, subtype = row.get("type"), row.get("subtype")
    return (
        (kind == "tool_call" and subtype in ("started", "completed") and isinstance(row.get("tool_call"), dict))
        or (kind == "thinking" and subtype in ("delta", "completed"))
        or (kind == "assistant" and is_text(row, "model_call_id"))
        or (kind in ("assistant", "user") and type(row.get("timestamp_ms")) is int and not is_claudes(row))
        or (kind == "result" and "inputTokens" in inner(row, "usage"))
    )


def is_claudes(row: Row) -> bool:
    """A row with something that Claude writes on each of its rows, and Cursor on none."""
    return bool(row.get("uuid")) or "id" in inner(row, "message") or "parent_tool_use_id" in row or "num_turns" in row


def is_cursor_frame(rows: Sequence[Row]) -> bool:
    """A Cursor stream that has called nothing so far: its frame, without any mark of Claude."""
    is_framed = False
    for row in rows:
        if is_claudes(row):
            return False
        is_init = row.get("type") == "system" and row.get("subtype") == "init"
        is_framed |= is_init and is_text(row, "apiKeySource", "permissionMode") and not CLAUDE_INIT & row.keys()
        is_framed |= row.get("type") == "result" and is_text(row, "session_id", "request_id")
    return is_framed


def is_qwen(row: Row) -> bool:
    """A row of Qwen Code: of its sessions, its stream, or its older document (Gemini's with one word changed)."""
    if row.get("type") == "system" and is_text(row, "qwen_code_version"):
        return True
    if is_gemini_document(row):
        return any(isinstance(message, dict) and message.get("type") == "qwen" for message in row["messages"])
    if not is_text(row, "sessionId"):
        return False
    message = inner(row, "message")
    has_parts = isinstance(message.get("parts"), list) and "content" not in message
    return (is_text(row, "uuid") and has_parts) or "promptTokenCount" in inner(row, "usageMetadata")


def is_gemini(row: Row) -> bool:
    """A row of Gemini CLI: header or document of a chat, an answer, or a row of its stream-json."""
    kind = row.get("type")
    if is_text(row, "sessionId", "projectHash") and ("startTime" in row or "messages" in row):
        return True
    if kind == "gemini":
        return is_text(row, "id") and "content" in row
    if kind == "init":
        return is_text(row, "session_id", "model", "timestamp") and "subtype" not in row
    if kind == "result":
        return is_text(row, "status") and "total_tokens" in inner(row, "stats")
    return kind == "tool_use" and is_text(row, "tool_name", "tool_id") and isinstance(row.get("parameters"), dict)


def is_gemini_document(row: Row) -> bool:
    """A chat of Gemini CLI before it wrote lines."""
    return is_text(row, "sessionId", "projectHash") and isinstance(row.get("messages"), list)


def is_pi(row: Row) -> bool:
    """A row of Pi: the header, an entry of the tree, or an answer with its usage."""
    kind = row.get("type")
    if kind == "session":
        return type(row.get("version")) is int and is_text(row, "id", "timestamp", "cwd")
    if kind not in ("message", "message_start", "message_end", "turn_end"):
        return False
    message = inner(row, "message")
    is_entry = "parentId" in row and is_text(row, "id") and str(message.get("role")) in PI_ROLES
    return (kind == "message" and is_entry) or {"input", "output", "cacheRead"} <= inner(message, "usage").keys()


def is_copilot(row: Row) -> bool:
    """A row of Copilot CLI's events, or its older document."""
    kind = row.get("type")
    if isinstance(kind, str) and kind.startswith(COPILOT):
        return isinstance(row.get("data"), dict) and "parentId" in row and is_text(row, "id", "timestamp")
    return is_text(row, "sessionId") and isinstance(row.get("chatMessages"), list) and "timeline" in row


def is_opencode(row: Row) -> bool:
    """A row of OpenCode's stream, a file of its storage, or an export: all name a session `ses_…`."""
    own, info = row.get("id"), inner(row, "info")
    session = row.get("sessionID") or info.get("id") or own
    if not isinstance(session, str) or not session.startswith("ses_"):
        return False
    if session is own:
        return is_text(row, "projectID", "directory")
    is_stored = isinstance(own, str) and own.startswith(("msg_", "prt_"))
    return str(row.get("type")) in OPENCODE or is_stored or (bool(info) and isinstance(row.get("messages"), list))


# Qwen before Gemini: its older document is Gemini's, with one word changed
AGENTS: dict[str, Callable[[Row], bool]] = {
    "Cursor": is_cursor,
    "Qwen Code": is_qwen,
    "Gemini CLI": is_gemini,
    "Pi": is_pi,
    "Copilot CLI": is_copilot,
    "OpenCode": is_opencode,
}
