"""The schema of platonic-core 0.3.1: its 16 events and their three nestings, unknown fields forbidden.

What msgspec cannot see is a key that stands twice in one object: the crate refuses it, msgspec keeps the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from analytics.wires.base import MAX_INT

U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Meta(ge=0, le=MAX_INT)]  # the lake's integers are signed: the upper half of u64 is refused
Lane = Literal[
    "system_contract", "current_task", "tool_schemas", "recent_turns", "retrieved_context", "artifact_summary", "policy"
]
Role = Literal["system", "user", "assistant", "tool"]
Effect = Literal["read_only", "workspace_write", "network", "external_side_effect", "secret_access"]


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class Strict(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An object that forbids fields it does not know."""


class Fragment(Strict):
    """A piece of context; `source` is free text, no identifier."""

    lane: Lane
    source: str
    content: str
    estimated_tokens: U32


class Budgeted(Strict):
    """A context: the fragments must add up to no more than the budget."""

    token_budget: U32
    fragments: list[Fragment]


class Output(Strict):
    """What the model said."""

    role: Role
    content: str


class Proposal(Strict):
    """A model's wish; it has no id and is joined to the validated call by tool and input."""

    tool: str
    input: Raw


class Usage(Strict):
    """Tokens of one response. This wire knows no cache."""

    input_tokens: U32
    output_tokens: U32


class Call(Strict):
    """A wish that the host validated."""

    id: str
    tool: str
    effect: Effect
    input: Raw


class Result(Strict):
    """What a tool gave back; the call id stands in here, not on the event."""

    call_id: str
    summary: str
    data: Raw
    artifacts: list[str]
    visibility: Literal["model", "user", "both"]


class Allow(msgspec.Struct, tag_field="decision", tag="allow", gc=False):
    """Alone tolerates further keys, as the crate does."""


class RequireApproval(Strict, tag_field="decision", tag="require_approval"):
    """Not a denial: somebody else decides."""

    reason: str


class Deny(Strict, tag_field="decision", tag="deny"):
    """Ends the turn."""

    reason: str


class Event(Strict, tag_field="event", tag=_snake):
    """What all 16 events have."""

    run_id: str


class RunStarted(Event):
    """Names an agent, or (host v 2) a profile and its revision; never both."""

    agent_id: str | UnsetType = UNSET
    profile_id: str | UnsetType = UNSET
    profile_revision: U64 | UnsetType = UNSET


class ContextBuilt(Event):
    """Opens a turn."""

    turn_id: str
    context: Budgeted


class ContextCompacted(Event):
    """Announces a turn whose context was cut; only its context_built may follow."""

    turn_id: str
    estimated_tokens_before: U32
    estimated_tokens_after: U32
    dropped_turn_start: U64
    dropped_turn_end_exclusive: U64


class ModelRequested(Event):
    """`model` is the host's alias, not the model that serves."""

    turn_id: str
    step: U32
    model: str


class ModelFailed(Event):
    """The same turn and step are requested again."""

    turn_id: str
    step: U32
    reason: str


class ModelResponded(Event):
    """`usage` null (or left out) is unknown usage; zeros are known zeros."""

    turn_id: str
    step: U32
    output: Output
    proposed_calls: list[Proposal]
    served_model: str | None = None
    usage: Usage | None = None


class ToolProposalsRejected(Event):
    """The host refused all proposals of a response."""

    turn_id: str
    reason: str


class ToolCallProposed(Event):
    """At most one per turn, however many were proposed."""

    turn_id: str
    call: Call


class PolicyEvaluated(Event):
    """The policy's verdict on the call in progress."""

    call_id: str
    decision: Allow | RequireApproval | Deny


class ApprovalGranted(Event):
    """Somebody allowed what the policy left open."""

    call_id: str
    actor_id: str


class ApprovalDenied(Event):
    """Somebody refused what the policy left open."""

    call_id: str
    actor_id: str
    reason: str


class ToolStarted(Event):
    """The call is executed from here on."""

    call_id: str


class ToolFinished(Event):
    """Ends the turn."""

    result: Result


class ToolFailed(Event):
    """Ends the turn; the run cannot finish right after it."""

    call_id: str
    reason: str


class RunFinished(Event):
    """Legal only after a turn that ended well."""


class RunFailed(Event):
    """Legal in every phase of a run; cancelling is a failure with the reason "run canceled"."""

    reason: str


AnyEvent = (
    RunStarted
    | ContextBuilt
    | ContextCompacted
    | ModelRequested
    | ModelFailed
    | ModelResponded
    | ToolProposalsRejected
    | ToolCallProposed
    | PolicyEvaluated
    | ApprovalGranted
    | ApprovalDenied
    | ToolStarted
    | ToolFinished
    | ToolFailed
    | RunFinished
    | RunFailed
)


class Record(Strict):
    """An event with its place and the host's clock."""

    seq: U64
    occurred_at_ms: U64
    event: AnyEvent


class VoiceEvent(msgspec.Struct, gc=False):
    """The host's voice events are no part of the crate; only what ties them to a run is read."""

    event: str
    run_id: str
    turn_id: str


class VoiceEntry(msgspec.Struct, gc=False):
    """One of a batch."""

    v: U32
    sequence: U64
    event: VoiceEvent


class LedgerLine(Strict):
    """`v` and `record`, or `voice_events` alone. msgspec has no such alternative, so the reader checks which it is."""

    v: int | UnsetType = UNSET
    record: Record | UnsetType = UNSET
    voice_events: list[VoiceEntry] | UnsetType = UNSET


LINES: dict[str, Any] = {"event": AnyEvent, "record": Record, "ledger": LedgerLine}
NESTINGS = {"event": "a bare event", "record": "a record", "ledger": "a ledger line"}
EVENT_NAMES: dict[type, str] = {kind: _snake(kind.__name__) for kind in AnyEvent.__args__}
KNOWN_EVENTS = frozenset(EVENT_NAMES.values())


def nesting(obj: Mapping[str, Any]) -> str | None:
    """Which of the three nestings an object has, by its keys alone; None if it has none of them."""
    if "record" in obj or "voice_events" in obj or ("v" in obj and "event" not in obj):
        return "ledger"
    if isinstance(obj.get("event"), dict) or ("seq" in obj and "occurred_at_ms" in obj):
        return "record"
    return "event" if "event" in obj else None


def is_blank(name: str) -> bool:
    """Empty or white space only: such an identifier is refused."""
    return not name or name.isspace()


def identifiers(event: Event) -> Iterator[tuple[str, str]]:
    """(field, value) of every identifier in an event."""
    for field in ("run_id", "agent_id", "profile_id", "turn_id", "call_id", "actor_id", "model", "served_model"):
        value = getattr(event, field, None)
        if isinstance(value, str):
            yield field, value
    if type(event) is ModelResponded:
        yield from (("proposed_calls.tool", proposal.tool) for proposal in event.proposed_calls)
    elif type(event) is ToolCallProposed:
        yield from (("call.id", event.call.id), ("call.tool", event.call.tool))
    elif type(event) is ToolFinished:
        yield "result.call_id", event.result.call_id
        yield from (("result.artifacts", artifact) for artifact in event.result.artifacts)
