"""The rows of `codex exec --json` as msgspec Structs, in both forms, and what is remembered of a capture between rows.

Leaves are loose, since 0.144 changed item shapes without a mark (openai/codex #41216): each reader takes what has the
type it needs. Only usage counters are strict. A command's output is never decoded.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from analytics.wires.base import MAX_INT, MAX_TOKENS

Count = Annotated[int, Meta(ge=0, le=MAX_INT)]
Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
PLAIN_TEXT = "plain_text"
HEADER, PROMPT = "config_summary", "prompt"
RAW = msgspec.json.Decoder()
NOTHING = Raw()

# what an item of a row may be; everything else is opaque
CALL_ITEMS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"})
MESSAGES = frozenset({"agent_message", "assistant_message"})  # assistant_message: 0.42 to 0.4x
QUIET_ITEMS = frozenset({"todo_list", "plan"})
BEGINNINGS = frozenset({"thread.started", "session.created"})  # session.created: days in September 2025
ITEM_ROWS = frozenset({"item.started", "item.updated", "item.completed"})
ROWS = frozenset({
    *BEGINNINGS, *ITEM_ROWS, "turn.started", "turn.completed", "turn.failed", "error", "item.plan.delta",
    "request_user_input",
})  # fmt: skip

# the messages of the form before openai/codex PR #4525: what begins and ends a call, and the tool it is
OPENINGS = {
    "exec_command_begin": "command_execution", "patch_apply_begin": "file_change",
    "mcp_tool_call_begin": "mcp_tool_call", "web_search_begin": "web_search",
}  # fmt: skip
ENDINGS = {
    "exec_command_end": "command_execution", "patch_apply_end": "file_change", "mcp_tool_call_end": "mcp_tool_call",
    "web_search_end": "web_search",
}  # fmt: skip
SPOKEN = {
    "agent_message": "message", "user_message": "message", "agent_reasoning": "reasoning",
    "agent_reasoning_raw_content": "reasoning", "context_compacted": "compaction", "error": "error",
    "stream_error": "retry", "warning": "warning",
}  # fmt: skip
QUIET_MESSAGES = frozenset({
    "agent_message_delta", "agent_reasoning_delta", "agent_reasoning_raw_content_delta",
    "agent_reasoning_section_break", "exec_command_output_delta", "exec_approval_request",
    "apply_patch_approval_request", "background_event", "plan_update", "turn_diff", "shutdown_complete",
    "get_history_entry_response", "mcp_list_tools_response", "list_custom_prompts_response", "conversation_path",
    "conversation_history", "entered_review_mode", "exited_review_mode",
})  # fmt: skip
MARKS = frozenset({"session_configured", "task_started", "task_complete", "turn_aborted", "token_count"})
MESSAGE_TYPES = MARKS | QUIET_MESSAGES | OPENINGS.keys() | ENDINGS.keys() | SPOKEN.keys()


def word(value: Any) -> str | None:
    """The value if it is text that says something."""
    return value if type(value) is str and value else None


def whole(value: Any) -> int | None:
    """The value if it is a whole number of 64 bits."""
    return value if type(value) is int and -MAX_INT <= value <= MAX_INT else None


def is_said(raw: Raw) -> bool:
    """True: the key was there, and its value is not null."""
    return bytes(raw) not in (b"", b"null")


class Usage(Struct, gc=False):
    """Token counters; a running total, or one request's part of it. `cached_input_tokens` are inside the input."""

    input_tokens: Tokens | None = None
    cached_input_tokens: Tokens | None = None
    cache_write_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    reasoning_output_tokens: Tokens | None = None
    total_tokens: Tokens | None = None

    @property
    def is_blank(self) -> bool:
        """True: no counter was recorded."""
        return self.input_tokens is None and self.output_tokens is None and self.cached_input_tokens is None


class Failure(Struct, gc=False):
    """Why a turn failed."""

    message: Any = None


class Item(Struct, gc=False):
    """One thing the agent did, of any type."""

    id: Any = None
    type: Any = None
    item_type: Any = None
    status: Any = None
    exit_code: Any = None
    text: Any = None
    message: Any = None
    server: Any = None
    tool: Any = None
    changes: Raw = NOTHING
    error: Raw = NOTHING

    @property
    def kind(self) -> str:
        """Its type; before 0.44 under another name."""
        return word(self.type) or word(self.item_type) or "unknown"


class Line(Struct, gc=False):
    """A row of the form since 2025-09-30."""

    type: str
    thread_id: Any = None
    session_id: Any = None
    item: Item | None = None
    usage: Usage | None = None
    error: Failure | str | None = None
    message: Any = None


class Window(Struct, gc=False):
    """A window of a rate limit."""

    used_percent: float | None = None
    window_minutes: Count | None = None
    resets_at: Count | None = None


class Limits(Struct, gc=False):
    """Rate limits in their generations; relative resets are of no use here, since rows have no time."""

    limit_id: Any = None
    limit_name: Any = None
    primary: Window | None = None
    secondary: Window | None = None
    primary_used_percent: float | None = None
    primary_window_minutes: Count | None = None
    secondary_used_percent: float | None = None
    secondary_window_minutes: Count | None = None
    rate_limit_reached_type: Any = None


class Info(Struct, gc=False):
    """The total of the thread, and what its last request added."""

    total_token_usage: Usage | None = None
    last_token_usage: Usage | None = None
    model_context_window: Tokens | None = None


class Invocation(Struct, gc=False):
    """What an MCP call calls."""

    server: Any = None
    tool: Any = None


class Length(Struct, gc=False):
    """How long something took."""

    secs: Count = 0
    nanos: Count = 0


class Msg(Usage, gc=False, kw_only=True):
    """A message of the form before 2025-09-30. The oldest `token_count` has its counters on itself."""

    type: str
    session_id: Any = None
    model: Any = None
    reasoning_effort: Any = None
    server: Any = None
    tool: Any = None
    message: Any = None
    text: Any = None
    reason: Any = None
    call_id: Any = None
    exit_code: Any = None
    status: Any = None
    success: Any = None
    duration: Length | str | None = None
    changes: Raw = NOTHING
    result: Raw = NOTHING
    invocation: Invocation | None = None
    info: Info | None = None
    rate_limits: Limits | None = None
    model_context_window: Any = None


class MsgLine(Struct, gc=False):
    """A row of the form before 2025-09-30."""

    msg: Msg


class Header(Struct, gc=False):
    """The first row of that form: the configuration, all values text, keys as a person reads them."""

    workdir: Any = None
    model: Any = None
    provider: Any = None
    approval: Any = None
    sandbox: Any = None
    effort: Any = msgspec.field(name="reasoning effort", default=None)


class Prompt(Struct, gc=False):
    """The second row of that form."""

    chars: int


class PlainText(Struct, gc=False):
    """A line between the rows: what the shell, a wrapper or Codex itself prints beside them."""

    chars: int


class Broken(Struct, gc=False):
    """A row that cannot be read, so that the refusal can name the run it stands in."""

    reason: str
    detail: str | None = None


class Change(Struct, gc=False):
    """A file of a patch."""

    path: Any = None
    kind: Any = None


class McpResult(Struct, gc=False):
    """How an MCP call ended: Rust's Result."""

    Ok: Raw = NOTHING
    Err: Raw = NOTHING


class McpAnswer(Struct, gc=False):
    """What the server said of its own answer."""

    isError: Any = None  # noqa: N815 (MCP's spelling)
    is_error: Any = None


class Call(Struct, array_like=True):
    """A call that has been requested and not finished."""

    tool: str | None = None
    paths: list[str] = []


class State(Struct, omit_defaults=True):
    """The process that is being read, and how often each thread has been met. `run_id` None: nothing named it yet."""

    run_id: str | None = None
    thread_id: str | None = None
    processes: dict[str, int] = {}
    unnamed: int = 0
    has_rows: bool = False  # it has rows, not text alone
    has_header: bool = False  # it began with a configuration
    turn: int = 0
    is_turn_open: bool = False
    open: dict[str, Call] = {}
    said: dict[str, str] = {}  # what the configuration says of the run
    has_limits: bool = False


LINE = msgspec.json.Decoder(Line)
MSG = msgspec.json.Decoder(MsgLine)
HEAD = msgspec.json.Decoder(Header)
CHANGES = msgspec.json.Decoder(list[Change])
PATHS = msgspec.json.Decoder(dict[str, Raw])
MCP_RESULT = msgspec.json.Decoder(McpResult)
MCP_ANSWER = msgspec.json.Decoder(McpAnswer)
