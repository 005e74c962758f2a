"""The lines of a stream-json capture as msgspec Structs.

The union is tagged by `type`, so a small partial message does not pay for the fields of a result. A
type that nobody knows yet is decoded apart (`Unknown`).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from analytics.glued import cuts
from analytics.wires.base import MAX_INT
from analytics.wires.claude_messages import Count, Message, Other, Usage

PLAIN_TEXT = "plain_text"
SYSTEM_KEYS = {
    "permission_mode": "permissionMode", "api_key_source": "apiKeySource", "original_model": "originalModel",
    "fallback_model": "fallbackModel",
}  # fmt: skip
MODEL_KEYS = {
    "input_tokens": "inputTokens", "output_tokens": "outputTokens", "cache_read_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheCreationInputTokens", "web_search_requests": "webSearchRequests",
    "cost_usd": "costUSD", "context_window": "contextWindow",
}  # fmt: skip
TORN = re.compile(rb'\s*\{\s*"(?:type|.{0,4096}?"type)"\s*:', re.DOTALL)  # begins like a record of the stream


def number(value: Any) -> float | None:
    """The value if it is a number that fits; a utilization of exactly 1 is written as an integer."""
    return float(value) if type(value) in (int, float) and abs(value) <= MAX_INT else None


def flag(value: Any) -> bool | None:
    """The value if it is true or false."""
    return value if type(value) is bool else None


class Line(Struct, kw_only=True, gc=False):
    """What any row may have."""

    session_id: Any = None
    parent_tool_use_id: Any = None
    timestamp: Any = None
    uuid: Any = None


class Assistant(
    Line, tag="assistant", kw_only=True, gc=False, rename={"is_api_error_message": "isApiErrorMessage"}
):  # fmt: skip
    message: Message
    request_id: Any = None
    error: Any = None
    is_api_error_message: Any = None


class User(Line, tag="user", kw_only=True, gc=False, rename={"is_synthetic": "isSynthetic"}):
    message: Message
    is_synthetic: Any = None


class StartedMessage(Struct, gc=False):
    """The message of a `message_start`: it names the answer that the deltas behind it belong to."""

    id: Any = None
    model: Any = None
    usage: Usage | Other = None


class ApiEvent(Struct, gc=False):
    """An event of the API's own stream."""

    type: Any = None
    message: StartedMessage | Other = None
    usage: Usage | Other = None
    error: Any = None


class StreamEvent(Line, tag="stream_event", kw_only=True, gc=False):
    event: ApiEvent


class CompactMetadata(Struct, gc=False):
    """Sizes of the context before and after, where the row tells them."""

    trigger: Any = None
    pre_tokens: Any = None
    post_tokens: Any = None
    duration_ms: Any = None


class System(Line, tag="system", kw_only=True, gc=False, rename=SYSTEM_KEYS):
    """`init` and everything else that has a subtype."""

    subtype: Any = None
    cwd: Any = None
    model: Any = None
    tools: Any = None
    claude_code_version: Any = None
    permission_mode: Any = None
    api_key_source: Any = None
    output_style: Any = None
    fast_mode_state: Any = None
    attempt: Any = None
    max_retries: Any = None
    retry_delay_ms: Any = None
    error_status: Any = None
    error: Any = None
    compact_metadata: CompactMetadata | Other = None
    tool_name: Any = None
    tool_use_id: Any = None
    message: Any = None
    original_model: Any = None
    fallback_model: Any = None
    exit_code: Any = None
    outcome: Any = None


class LimitWindow(Struct, gc=False, rename="camel"):
    """One window of `unifiedWindows`."""

    utilization: Any = None
    resets_at: Any = None


class RateLimit(LimitWindow, gc=False, rename="camel"):
    """`rate_limit_info`; the name of the field was misread in the wild as `rate_limit`."""

    status: Any = None
    rate_limit_type: Any = None
    overage_status: Any = None
    overage_resets_at: Any = None
    overage_disabled_reason: Any = None
    is_using_overage: Any = None
    surpassed_threshold: Any = None
    unified_windows: dict[str, LimitWindow | Other] | Other = None


class RateLimitEvent(Line, tag="rate_limit_event", kw_only=True, gc=False):
    rate_limit_info: RateLimit | Other = None


class Asked(Struct, gc=False):
    """What a control request asks; only a tool's permission is of interest."""

    subtype: Any = None
    tool_name: Any = None
    tool_use_id: Any = None
    decision_reason: Any = None


class ControlRequest(Line, tag="control_request", kw_only=True, gc=False):
    request_id: Any = None
    request: Asked | Other = None


class Reply(Struct, gc=False, rename={"tool_use_id": "toolUseID"}):
    """What the other side answered."""

    behavior: Any = None
    message: Any = None
    tool_use_id: Any = None


class Replied(Struct, gc=False):
    """The envelope of a reply."""

    subtype: Any = None
    request_id: Any = None
    response: Reply | Other = None


class ControlResponse(Line, tag="control_response", kw_only=True, gc=False):
    response: Replied | Other = None


class ModelUsage(Struct, gc=False, rename=MODEL_KEYS):
    """Running figures of one model in the process, side calls and subagents included."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    web_search_requests: Count | None = None
    cost_usd: Any = None
    context_window: Any = None


class Denial(Struct, gc=False):
    """One refused call of a result's list."""

    tool_name: Any = None
    tool_use_id: Any = None


class Result(Line, tag="result", kw_only=True, gc=False, rename={"model_usage": "modelUsage"}):
    subtype: Any = None
    is_error: Any = None
    num_turns: Any = None
    duration_ms: Any = None
    duration_api_ms: Any = None
    total_cost_usd: Any = None
    usage: Usage | Other = None
    model_usage: dict[str, ModelUsage | Other] | Other = None
    permission_denials: list[Denial | Other] | str | float | bool | None = None
    stop_reason: Any = None
    terminal_reason: Any = None
    api_error_status: Any = None
    errors: Any = None
    result: Any = None


class ToolProgress(Line, tag="tool_progress", kw_only=True, gc=False):
    """A sign of life of a running call."""


class KeepAlive(Line, tag="keep_alive", kw_only=True, gc=False):
    """A sign of life of the process."""


class AuthStatus(Line, tag="auth_status", kw_only=True, gc=False):
    """Progress of a login."""


class ControlCancel(Line, tag="control_cancel_request", kw_only=True, gc=False):
    request_id: Any = None


class NonJsonOutput(Line, tag="non_json_output", kw_only=True, gc=False):
    """How Harness Lab's sanitised stream wraps a line that was no JSON."""


Record = (
    Assistant | User | StreamEvent | System | RateLimitEvent | ControlRequest | ControlResponse | Result
    | ToolProgress | KeepAlive | AuthStatus | ControlCancel | NonJsonOutput
)  # fmt: skip
TAGS: dict[str, type[Any]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        Assistant, User, StreamEvent, System, RateLimitEvent, ControlRequest, ControlResponse, Result,
        ToolProgress, KeepAlive, AuthStatus, ControlCancel, NonJsonOutput,
    )
}  # fmt: skip


class Unknown(Line, kw_only=True, gc=False):
    """A row of a type that this wire does not know: new ones come every month."""

    type: str
    subtype: Any = None


class PlainText(Struct, gc=False):
    """A line between the records: shell noise, progress, a wrapper's words."""

    session_id: ClassVar[None] = None
    parent_tool_use_id: ClassVar[None] = None
    timestamp: ClassVar[None] = None
    uuid: ClassVar[None] = None

    chars: int


class Torn(PlainText, gc=False):
    """A record that broke off; its run is known only where it stands."""


AnyLine = Record | Unknown | PlainText
DECODER = msgspec.json.Decoder(Record)
UNKNOWN = msgspec.json.Decoder(Unknown)


def text_line(line: bytes, *, may_refuse: bool) -> Unknown | PlainText | None:
    """A line that is no known record. None: it holds whole records that can be cut out of it.

    A whole JSON text without a `type` is the output of another program, so plain text.
    """
    is_torn = TORN.match(line) is not None
    try:
        return UNKNOWN.decode(line)
    except msgspec.ValidationError:
        is_torn = is_torn and not is_json(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    if may_refuse and b'"type"' in line and cuts(line):
        return None
    chars = len(line.decode("utf-8", "replace").rstrip("\r\n"))
    return Torn(chars) if is_torn else PlainText(chars)


def is_json(line: bytes) -> bool:
    """True: the line is one whole JSON text."""
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
