"""Claude Code session files: `~/.claude/projects/<slug>/**/*.jsonl` and their exports.

A run is a session, or a subagent of it; both are named by their rows, never by the file. A run may stand in several
files and a file may hold several. The format has no end marker and no gauge of limits. Rules: native.md, section 1.
"""
# The methods of a wire are described once, in base.Wire.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from analytics.wires.base import Context, Refusal, Rows, Sample, Wire, loose, mended
from analytics.wires.claude_code_lines import CONVERSATION, KNOWN, METADATA, Line, State, run_of
from analytics.wires.claude_code_rows import NAME, Filler
from analytics.wires.claude_messages import word

SHAPE = "session"
DECODER = msgspec.json.Decoder(Line)
MENDABLE = frozenset({"malformed", "not_json", "number_out_of_range", "unknown_event"})


class ClaudeCode:
    """The wire; see the module."""

    name = NAME
    summary = "Claude Code session files (JSONL), subagent files among them"
    secret_exempt_keys: frozenset[str] = frozenset()
    recovers_glued = True

    def sniff(self, sample: Sample) -> str | None:
        if any(is_look_alike(o) for o in sample.objects):
            return None
        return SHAPE if any(is_row(o) for o in sample.objects) else None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        return DECODER

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return msgspec.json.decode(text, type=State)

    def is_final_without_newline(self, shape: str) -> bool:
        return False

    def needs_newline(self, shape: str) -> bool:
        return False

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        session_id, agent_id = word(obj.get("sessionId")), word(obj.get("agentId"))
        run_id = run_of(session_id, agent_id) if session_id else None
        if "type" not in obj:
            return Refusal("unknown_event", "the object has no type, so it is no row of a session", run_id)
        is_number = "`int` >" in error or "`int` <" in error or "out of range" in error or "got `float`" in error
        return Refusal("number_out_of_range" if is_number else "malformed", error, run_id)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> Line | None:
        """A row of a type that is not known, whatever its fields hold; and a known row whose only faults are counters
        written as 12.0, or half of a surrogate pair in a text (the client cuts long texts).
        """
        if refusal.reason not in MENDABLE:
            return None
        obj = loose(line)
        kind = word(obj.get("type")) if type(obj) is dict else None
        if obj is None or kind is None:
            return None
        if kind not in KNOWN:
            return envelope(kind, obj)
        try:
            return DECODER.decode(mended(line) or b"")
        except msgspec.MsgspecError:
            return None

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        return Filler(objs, ctx.state, ctx.source_id).read()


def envelope(kind: str, obj: Mapping[str, Any]) -> Line:
    """A row of which only the envelope is read, where it holds text."""
    return Line(
        type=kind, session_id=word(obj.get("sessionId")), agent_id=word(obj.get("agentId")),
        uuid=word(obj.get("uuid")), timestamp=obj.get("timestamp"), cwd=obj.get("cwd"),
        git_branch=obj.get("gitBranch"), version=obj.get("version"), entrypoint=obj.get("entrypoint"),
    )  # fmt: skip


def is_row(obj: Mapping[str, Any]) -> bool:
    """True: the object is a row that only a session file has."""
    kind = obj.get("type")
    if type(kind) is not str:  # of a row beyond the sample only the keys are known
        return "type" in obj and "parentUuid" in obj and "sessionId" in obj
    if kind in CONVERSATION:
        return "uuid" in obj and ("sessionId" in obj or "parentUuid" in obj)
    if kind == "summary":
        return "leafUuid" in obj
    if kind == "file-history-snapshot":
        return "snapshot" in obj
    return kind in METADATA and "sessionId" in obj


def is_look_alike(obj: Mapping[str, Any]) -> bool:
    """True: Qwen Code, which uses the same envelope around another vendor's messages."""
    message = obj.get("message")
    return "usageMetadata" in obj or (isinstance(message, dict) and "parts" in message and "content" not in message)


WIRE: Wire = ClaudeCode()
