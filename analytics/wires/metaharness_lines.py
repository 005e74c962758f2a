"""The 20 events of `metaharness.event/1` as msgspec Structs: only the fields that a row or a refusal needs.

Leaves are type-checked; nested keys that newer builds added are not demanded, so older lines stay readable. A token
figure that is fractional or negative makes the line malformed, as upstream has it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from analytics.wires.base import MAX_INT, MAX_TOKENS

U64 = Annotated[int, Meta(ge=0, le=MAX_INT)]
Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
I64 = Annotated[int, Meta(ge=-MAX_INT - 1, le=MAX_INT)]


class Usage(Struct, gc=False):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    thinking_tokens: Tokens | None = None
    cost_usd: float | None = None


class Event(Struct, tag_field="event", kw_only=True, gc=False):
    format: Literal["metaharness.event/1"]
    seq: U64
    run: str
    at: str | None = None


class Withheld(Struct):
    tool: str
    reason: str


class SessionStarted(Event, tag="session.started"):
    adapter: str
    adapter_class: str
    hermetic: dict[str, Any]
    transcript: dict[str, Any]
    harness_version: str | None = None
    session_id: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    credential_source: str | None = None
    output_style: str | None = None
    cwd: str | None = None
    offered_tools: list[str] | None = None
    slash_commands: list[str] | None = None
    skills: list[str] | None = None
    agents: list[str] | None = None
    available_operations: list[str] | None = None
    withheld: list[Withheld] | None = None
    plugins: list[dict[str, Any]] | None = None
    mcp_servers: list[dict[str, Any]] | None = None
    inputs_digest: str | None = None


class Census(Struct):
    allowed: U32 | None = None
    denied: U32 | None = None
    replaced: U32 | None = None
    abstained: U32 | None = None
    by_seam: dict[str, U32] | None = None
    by_decider: dict[str, U32] | None = None


class VendorDenial(Struct):
    tool_name: str | None = None
    tool_use_id: str | None = None


class SessionEnded(Event, tag="session.ended"):
    census: Census
    is_error: bool | None = None
    subtype: str | None = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: str | None = None
    num_turns: U64 | None = None
    duration_ms: U64 | None = None
    duration_api_ms: U64 | None = None
    ttft_ms: U64 | None = None
    time_to_request_ms: U64 | None = None
    total_cost_usd: float | None = None
    permission_denials: list[VendorDenial] | None = None
    subagents_spawned: U64 | None = None
    usage: Usage | None = None
    model_usage: dict[str, Usage] | None = None
    observed_models: list[dict[str, Any]] | None = None


class Step(Struct):
    workflow: str
    state: str
    index: U32
    attempt: U32


class Verdict(Struct):
    outcome: Literal["completed", "failed", "no_verdict"]
    reason: str | None = None


class StepEntered(Event, tag="step.entered"):
    step: Step


class StepLeft(Event, tag="step.left"):
    step: Step
    outcome: Verdict


class TurnStarted(Event, tag="turn.started"):
    turn: U32


class TurnEnded(Event, tag="turn.ended"):
    turn: U32
    stop_reason: str | None = None


class Text(Event, tag="text"):
    text: str
    request_id: str | None = None


class Thinking(Event, tag="thinking"):
    text: str
    request_id: str | None = None


class ThinkingEstimate(Event, tag="thinking.estimate"):
    estimate: U64
    delta: I64 | None = None


class Injection(Event, tag="injection"):
    text: str
    origin: str | None = None


class ToolRequested(Event, tag="tool.requested"):
    call_id: str
    name: str
    input: msgspec.Raw
    decision_required: bool
    seam: str
    deadline_ms: U64 | None = None


class Decision(Struct, gc=False):
    decision: Literal["allow", "deny", "replace", "abstain"]
    reason: str | None = None


class ToolDecided(Event, tag="tool.decided"):
    call_id: str
    decision: Decision
    decided_by: str
    seam: str
    latency_ms: U64 | None = None


class ToolResult(Event, tag="tool.result"):
    call_id: str
    is_error: bool | None = None
    exit_code: I64 | None = None
    outcome_source: str | None = None


class UsageEvent(Event, tag="usage"):
    usage: Usage
    request_id: str | None = None
    model: str | None = None


class Limit(Struct, gc=False):
    status: str | None = None
    window: str | None = None
    resets_at: I64 | None = None
    utilization: float | None = None
    using_overage: bool | None = None


class RateLimit(Event, tag="rate_limit"):
    info: Limit


class Refused(Struct):
    code: str
    reason: str


class CommandOutcome(Struct):
    result: Literal["ok", "refused"]
    applies_at: str | None = None
    refused: Refused | None = None


class CommandResult(Event, tag="command.result"):
    id: str
    outcome: CommandOutcome


class WarningEvent(Event, tag="warning"):
    code: str
    message: str


class Opaque(Event, tag="opaque"):
    digest: str
    vendor_type: str | None = None
    vendor_subtype: str | None = None
    source_line: U64 | None = None


class AuthExpired(Event, tag="auth.expired"):
    credential_source: str | None = None
    detail: str | None = None
    source_line: U64 | None = None


class Process(Struct):
    kind: Literal["exited", "signaled", "unknown"]
    code: I64 | None = None
    signal: I64 | None = None


class StreamClosed(Event, tag="stream.closed"):
    events: U64
    reason: str
    run_id: str
    process: Process | UnsetType = UNSET


KINDS: dict[type[Event], str] = {
    SessionStarted: "run.started",
    SessionEnded: "run.ended",
    StepEntered: "step.entered",
    StepLeft: "step.left",
    TurnStarted: "turn.started",
    TurnEnded: "turn.ended",
    Text: "message",
    Thinking: "reasoning",
    ThinkingEstimate: "system",
    Injection: "injection",
    ToolRequested: "tool.requested",
    ToolDecided: "tool.decided",
    ToolResult: "tool.finished",
    UsageEvent: "usage",
    RateLimit: "rate_limit",
    CommandResult: "system",
    WarningEvent: "warning",
    Opaque: "opaque",
    AuthExpired: "auth.expired",
    StreamClosed: "stream.closed",
}
TAGS: dict[type[Event], str] = {cls: str(cls.__struct_config__.tag) for cls in KINDS}
EVENTS = frozenset(TAGS.values())
