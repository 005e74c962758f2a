"""The rows of Claude Code session files as msgspec Structs, and what is remembered of a run between rows.

One loose `Line` serves all types: they share the envelope, and the decoder takes the fields of any. What is looked at
rarely stays raw; `toolUseResult` (three JSON types in one column) is never decoded.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from analytics.wires.claude_messages import Message, Other

# row types that hold no usage, no calls and no text of the conversation
METADATA = frozenset({
    "agent-color", "agent-name", "agent-setting", "ai-title", "attachment", "attribution-snapshot", "bridge-session",
    "content-replacement", "custom-title", "file-history-snapshot", "frame-link", "last-prompt", "mode",
    "permission-mode", "pr-link", "queue-operation", "relocated", "speculation-accept", "summary", "tag",
    "task-summary", "worktree-state",
})  # fmt: skip
CONVERSATION = frozenset({"assistant", "user", "progress", "system"})
KNOWN = METADATA | CONVERSATION

SUBTYPES = frozenset({
    "api_error", "api_refusal", "away_summary", "compact_boundary", "error", "informational", "local_command",
    "microcompact_boundary", "model_refusal_fallback", "session_start", "stop_hook_summary", "turn_duration",
})  # fmt: skip
PROGRESS = frozenset({
    "agent_progress", "bash_progress", "hook_progress", "mcp_progress", "query_update", "search_results_received",
    "waiting_for_task",
})  # fmt: skip


class Nested(Struct, rename="camel", gc=False):
    """The row of a subagent that an agent_progress row carries (2.1.12 to 2.1.63)."""

    type: Any = None
    message: Message | Other = None
    uuid: Any = None
    request_id: Any = None
    tool_denial_kind: Any = None
    is_api_error_message: Any = None
    api_error_status: Any = None
    error: msgspec.Raw | UnsetType = UNSET
    is_meta: Any = None
    is_compact_summary: Any = None
    effort: Any = None


class Progress(Struct, rename="camel", gc=False):
    """`data` of a progress row."""

    type: Any = None
    agent_id: Any = None
    message: Nested | Other = None


class Line(Nested, rename="camel", kw_only=True, gc=False):
    """A row of any type. Several types have no uuid, no timestamp, or no session."""

    type: str
    session_id: str | None = None
    agent_id: str | None = None
    uuid: str | None = None
    timestamp: Any = None
    cwd: Any = None
    git_branch: Any = None
    version: Any = None
    entrypoint: Any = None
    data: Progress | Other = None
    parent_tool_use_id: Any = msgspec.field(default=None, name="parentToolUseID")
    subtype: Any = None
    level: Any = None
    content: msgspec.Raw | UnsetType = UNSET
    compact_metadata: msgspec.Raw | UnsetType = UNSET
    duration_ms: Any = None
    retry_attempt: Any = None
    max_retries: Any = None
    retry_in_ms: Any = None
    original_model: Any = None
    fallback_model: Any = None

    @property
    def run_id(self) -> str | None:
        """The run that the row names."""
        return run_of(self.session_id, self.agent_id) if self.session_id else None


class Run(Struct, omit_defaults=True):
    """What the rows so far say of one run in this source."""

    session: str  # of a subagent the one it works in
    agent: str | None = None  # the subagent's name
    is_begun: bool = False  # its first row is there
    is_started: bool = False  # so is the first one that tells of it
    open: dict[str, str | None] = {}  # calls without a result yet: id → tool
    answer: str | None = None  # the key of its latest answer
    latest: list[str] = []  # the calls of that answer; a new answer shows that nobody waits for older ones


class State(Struct, omit_defaults=True):
    """What a source has said so far."""

    run: str | None = None  # the run of the last row that named one
    runs: dict[str, Run] = {}


def run_of(session_id: str, agent_id: str | None) -> str:
    """A session, or a subagent in it: the rows of both carry the session's id."""
    return f"{session_id}/{agent_id}" if agent_id else session_id
