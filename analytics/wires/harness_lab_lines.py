"""The lines of Harness Lab as msgspec Structs, and what is remembered of a run between lines.

One loose `Payload` serves all kinds: different kinds use one key with different types, so leaves are `Any` and each
reader takes what has the type it needs. Only the envelope is strict, as upstream's model is.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct

from analytics.wires.base import MAX_INT, MAX_TOKENS

Kind = Literal[
    "run_started", "run_finished", "assistant_message", "tool_started", "tool_finished", "command_started",
    "command_finished", "file_change", "usage", "error", "reasoning_event", "system",
]  # fmt: skip
KINDS = frozenset(get_args(Kind))
PLAIN_TEXT = "plain_text"
I64 = Annotated[int, Meta(ge=-MAX_INT - 1, le=MAX_INT)]
Id = Annotated[str, Meta(min_length=1)]


class UnreadableError(ValueError):
    """The line fits its Struct, but not the wire; becomes a Refusal."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def word(value: Any) -> str | None:
    """The value if it is text."""
    return value if type(value) is str else None


def whole(value: Any) -> int | None:
    """The value if it is a whole number of 64 bits."""
    return value if type(value) is int and -MAX_INT <= value <= MAX_INT else None


def flag(value: Any) -> bool | None:
    """The value if it is true or false."""
    return value if type(value) is bool else None


def duration(value: float) -> int:
    """A float that is whole, as upstream's model takes it."""
    if not value.is_integer():
        raise UnreadableError("malformed", "duration_ms is not a whole number")
    if abs(value) > MAX_INT:
        raise UnreadableError("number_out_of_range", "duration_ms does not fit 64 bits")
    return int(value)


def counter(name: str, value: Any, *, is_generic: bool) -> int | None:
    """A usage counter as `int(value)` takes it. What `int` cannot take kills upstream's reader of generic stdout, so
    there the line is refused; in a normalized event it is unknown.
    """
    if value is UNSET:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        if is_generic:
            raise UnreadableError("malformed", f"{name} is no number but {type(value).__name__}") from None
        return None
    if not 0 <= number <= MAX_TOKENS:
        raise UnreadableError("number_out_of_range", f"{name} is negative or beyond {MAX_TOKENS}")
    return number


class Payload(Struct, gc=False):
    """The payload keys that a row needs, of all kinds together."""

    task: Any = None
    variant: Any = None
    runner: Any = None
    repetition: Any = None
    base_commit: Any = None
    worktree: Any = None
    model: Any = None
    models: Any = None
    message_id: Any = None
    text: Any = None
    tool: Any = None
    call_id: Any = None
    launcher: Any = None
    status: Any = None
    outcome: Any = None
    exit_code: Any = None
    is_error: Any = None
    subtype: Any = None
    error: Any = None
    error_status: Any = None
    message: Any = None
    path: Any = None
    turn: Any = None
    trigger: Any = None
    hook_name: Any = None
    blocked: Any = None
    permission_denials: Any = None
    final: Any = None
    total_cost_usd: Any = None
    input_tokens: Any = UNSET
    cached_input_tokens: Any = UNSET
    cache_write_tokens: Any = UNSET
    output_tokens: Any = UNSET
    reasoning_output_tokens: Any = UNSET


class Event(Struct, kw_only=True, gc=False):
    """A normalized event; `run_id` stands on the line (shape "events")."""

    kind: str
    run_id: Id
    sequence: I64
    timestamp: str | None = None
    source: str = "runner"
    name: str | None = None
    duration_ms: I64 | float | None = None
    payload: Payload = msgspec.field(default_factory=Payload)
    call_id: str | None = None
    parent_call_id: str | None = None


class ExportEvent(Event, kw_only=True, gc=False):
    """A normalized event inside an export document, where the run around it has the id."""

    run_id: str = ""


class GenericLine(Payload, kw_only=True, gc=False):
    """A line of the generic protocol. Without an object as `payload`, the line's own keys are the payload, which is
    why the payload's keys are fields here too; `source` and `parent_call_id` of the line are not honoured.
    """

    source: ClassVar[str] = "generic"
    parent_call_id: ClassVar[None] = None

    kind: Kind
    name: str | None = None
    call_id: str | None = None
    duration_ms: I64 | float | None = None
    payload: Payload | list[Any] | str | float | bool | None = None


class PlainText(Struct, gc=False):
    """A line of the generic protocol that is no event; upstream joins them all into one assistant message."""

    source: ClassVar[str] = "runner"
    parent_call_id: ClassVar[None] = None
    name: ClassVar[None] = None
    call_id: ClassVar[None] = None
    duration_ms: ClassVar[None] = None
    payload: ClassVar[Payload] = Payload()
    kind: ClassVar[str] = PLAIN_TEXT

    chars: int


Line = Event | GenericLine | PlainText


class ExportedReproducibility(Struct):
    """How the run was made; the runner is all that is needed."""

    runner: Any = None


class ExportedRun(Struct):
    """A run of the document; its id is the run id of its events."""

    id: Id
    events: list[msgspec.Raw] | None = None
    reproducibility: ExportedReproducibility | None = None


class Export(Struct):
    """The document of `experiment export`; the events stay raw, so that their bytes are known."""

    runs: list[ExportedRun]
    schema_version: Any = None


class OpenCall(Struct, array_like=True):
    """A call that has started and not finished."""

    occurrence: int
    tool: str | None = None
    is_denied: bool = False


class Run(Struct, omit_defaults=True):
    """What the lines so far say of one run; dropped at run_finished, so a file of many runs keeps a small state."""

    is_begun: bool = False
    is_named: bool = False
    runner: str | None = None
    model: str | None = None
    launcher: str | None = None
    used: dict[str, int] = {}  # how often each call id was opened
    open: dict[str, list[OpenCall]] = {}  # in the order of their starts
    notices: dict[str, int] = {}  # permission_denied notices by tool ("" = it named none)
    vendor_only: int = 0  # denials that only the vendor's list showed

    def link(self, tool: str | None) -> tuple[str, OpenCall] | None:
        """The call a denial of this tool speaks of: the latest open one that is not denied yet."""
        if tool is None:
            return None
        for call_id, calls in reversed(self.open.items()):
            for call in reversed(calls):
                if call.tool == tool and not call.is_denied:
                    return call_id, call
        return None


class State(Struct):
    """The runs that a source has begun and not finished."""

    runs: dict[str, Run] = {}
