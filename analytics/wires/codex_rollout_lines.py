"""The rows of Codex rollouts as msgspec Structs, the names of their types, and what is remembered between rows.

Types and fields come from the field notes on native transcripts, section 3 (89,120 rows of about 60 versions). One
loose payload serves all types: the vendor documents none of them and adds some with most versions, so a leaf is `Any`
and each reader takes what has the type it needs. What is large or rarely looked at stays raw.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from analytics.wires.base import MAX_TOKENS

Count = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
Other = list[Any] | str | float | bool | None  # what may stand where an object is expected, and then says nothing


class Payload(Struct, gc=False):
    """The keys that a row needs, of all types together."""

    type: Any = None
    call_id: Any = None
    id: Any = None
    name: Any = None
    role: Any = None
    status: Any = None
    turn_id: Any = None
    started_at: Any = None
    content: Raw | UnsetType = UNSET
    summary: Raw | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    output: Any = None
    info: Raw | UnsetType = UNSET
    rate_limits: Raw | UnsetType = UNSET
    message: Any = None
    reason: Any = None
    model: Any = None
    effort: Any = None
    exit_code: Any = None
    duration: Raw | UnsetType = UNSET
    duration_ms: Any = None
    codex_error_info: Raw | UnsetType = UNSET
    target_item_id: Any = None
    item: Raw | UnsetType = UNSET
    # session_meta
    timestamp: Any = None
    session_id: Any = None
    forked_from_id: Any = None
    parent_thread_id: Any = None
    source: Raw | UnsetType = UNSET
    thread_source: Any = None
    originator: Any = None
    cli_version: Any = None
    cwd: Any = None
    git: Raw | UnsetType = UNSET
    model_provider: Any = None
    agent_nickname: Any = None
    agent_role: Any = None
    history_mode: Any = None
    history_base: Raw | UnsetType = UNSET


class Line(Struct, gc=False):
    """A row in its envelope; a row without one has no payload."""

    payload: Payload | Other | UnsetType = UNSET
    type: Any = None
    timestamp: Any = None


class BareLine(Payload, gc=False):
    """A row of the form before the envelope (up to about 0.31): a header, items, and markers of type "state"."""

    payload: Payload | Other | UnsetType = UNSET
    record_type: Any = None


class Block(Struct, gc=False):
    """A piece of a message or a reasoning summary."""

    text: Any = None


class Item(Struct, gc=False):
    """The item of an item_… event."""

    id: Any = None
    status: Any = None


class Duration(Struct, gc=False):
    """A duration as Rust writes it."""

    secs: int
    nanos: int = 0


class Git(Struct, gc=False):
    """Where the work stood."""

    branch: Any = None
    commit_hash: Any = None


class HistoryBase(Struct, gc=False):
    """What a page goes on from."""

    thread_id: Any = None
    rollout_id: Any = None


class Sent(Struct, gc=False):
    """The arguments of write_stdin."""

    session_id: Any = None


CONTENT = msgspec.json.Decoder(list[Block | Other] | str | None)
ITEM = msgspec.json.Decoder(Item | Other)
DURATION = msgspec.json.Decoder(Duration | Other)
GIT = msgspec.json.Decoder(Git | Other)
HISTORY_BASE = msgspec.json.Decoder(HistoryBase | Other)
TEXT = msgspec.json.Decoder(str)
SENT = msgspec.json.Decoder(Sent)
ANY = msgspec.json.Decoder()


class Tokens(Struct, omit_defaults=True, gc=False):
    """A usage vector: cached (and cache writes) are inside the input, reasoning is inside the output.

    An absent part is not known; where vectors are compared it is the zero that a later version would write for it.
    """

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_output_tokens: Count | None = None
    total_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None

    def parts(self) -> tuple[int, int, int, int]:
        """What moves when tokens are used."""
        return (
            self.input_tokens or 0, self.cached_input_tokens or 0, self.output_tokens or 0,
            self.reasoning_output_tokens or 0,
        )  # fmt: skip


class OpenCall(Struct, array_like=True):
    """A call without an output so far; its end event, which comes before the output, may tell more."""

    tool: str | None = None
    process: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None


class State(Struct, omit_defaults=True):
    """What the rows so far say of the file: one thread, whatever other metas stand in it."""

    run: str | None = None
    begun: str | None = None  # the run whose first row has been
    is_leading: bool = True  # nothing but session_meta rows so far
    kin: list[str] = []  # the threads whose metas stand in the file or are named there as parents
    root: str | None = None  # the thread whose counter the file's totals go on from, as far as the metas tell
    chain: str | None = None  # the key of the latest request outside all turns
    is_inherited: bool = False  # a fork, a child or a later page: the first total may be another thread's
    is_paged: bool = False
    base: str | None = None  # the thread that a later page goes on from
    total: Tokens | None = None
    turn: str | None = None  # the turn that rows belong to
    known_turn: str | None = None  # the latest turn with an id of its own
    unnamed_turns: int = 0
    created_at: int | None = None  # when the thread began, seconds since the epoch
    replayed_turn: str | None = None  # the latest turn that is another thread's
    doubtful_turn: str | None = None  # an open turn of a fork that may be another thread's
    model: str | None = None
    effort: str | None = None
    rows: int = 0  # of the headerless form only, whose rows have no time
    speaks_tokens: bool = False
    speaks_limits: bool = False
    open: dict[str, OpenCall] = {}
    running: dict[str, str] = {}  # processes in the background: the call that started each


class Kind(NamedTuple):
    """What a type of row is to us; `reader` is a method of Reading."""

    event: str
    kind: str
    reader: str | None = None


def _kinds(prefix: str, *rows: tuple[str, str, str | None], system: str) -> dict[str, Kind]:
    made = {name: Kind(f"{prefix}{name}", kind, reader) for name, kind, reader in rows}
    return made | {name: Kind(f"{prefix}{name}", "system") for name in system.split()}


TYPES = _kinds(
    "",
    ("session_meta", "system", "meta"),
    ("turn_context", "system", "turn_context"),
    ("compacted", "compaction", None),
    system="world_state inter_agent_communication_metadata security_risk_score",
)
_ITEMS: tuple[tuple[str, str, str | None], ...] = (
    ("message", "message", "said"),
    ("reasoning", "reasoning", "thought"),
    ("function_call", "tool.requested", "call"),
    ("custom_tool_call", "tool.requested", "call"),
    ("local_shell_call", "tool.requested", "call"),
    ("tool_search_call", "tool.requested", "call"),
    ("function_call_output", "tool.finished", "output"),
    ("custom_tool_call_output", "tool.finished", "output"),
    ("local_shell_call_output", "tool.finished", "output"),
    ("tool_search_output", "tool.finished", "output"),
)
_SYSTEM_ITEMS = "web_search_call image_generation_call ghost_snapshot compaction compaction_summary context_compaction"
ITEMS = _kinds("response_item/", *_ITEMS, system=_SYSTEM_ITEMS)
BARE_ITEMS = _kinds("", *_ITEMS, system=_SYSTEM_ITEMS)
# Messages, reasoning and compactions stand in the file a second time as items: these are for the screen.
EVENTS = _kinds(
    "event_msg/",
    ("token_count", "system", "token_count"),
    ("task_started", "turn.started", "turn_started"),
    ("turn_started", "turn.started", "turn_started"),
    ("task_complete", "turn.ended", "turn_ended"),
    ("turn_complete", "turn.ended", "turn_ended"),
    ("turn_aborted", "turn.ended", "turn_aborted"),
    ("user_message", "message", "shown"),
    ("agent_message", "message", "shown"),
    ("agent_reasoning", "reasoning", "shown"),
    ("agent_reasoning_raw_content", "reasoning", "shown"),
    ("context_compacted", "compaction", "shown"),
    ("error", "error", "failure"),
    ("stream_error", "retry", "failure"),
    ("warning", "warning", "failure"),
    ("exec_command_end", "system", "command_ended"),
    ("guardian_assessment", "system", "assessed"),
    ("item_started", "system", "item"),
    ("item_completed", "system", "item"),
    system=(
        "agent_reasoning_section_break exec_command_begin exec_command_output_delta terminal_interaction"
        " patch_apply_begin patch_apply_updated patch_apply_end mcp_tool_call_begin mcp_tool_call_end web_search_begin"
        " web_search_end image_generation_begin image_generation_end view_image_tool_call dynamic_tool_call_request"
        " dynamic_tool_call_response exec_approval_request apply_patch_approval_request request_permissions"
        " request_user_input elicitation_request collab_agent_spawn_begin collab_agent_spawn_end"
        " collab_agent_interaction_begin collab_agent_interaction_end collab_waiting_begin collab_waiting_end"
        " collab_close_begin collab_close_end collab_resume_begin collab_resume_end sub_agent_activity"
        " thread_rolled_back thread_name_updated thread_goal_updated thread_settings_applied entered_review_mode"
        " exited_review_mode plan_update plan_delta turn_diff background_event session_configured model_reroute"
        " model_verification undo_started undo_completed hook_started hook_completed deprecation_notice"
        " mcp_startup_update mcp_startup_complete skills_update_available shutdown_complete raw_response_item"
    ),
)
STATE_MARKER = Kind("state", "system")
HEADER = Kind("header", "system", "header")


def word(value: Any) -> str | None:
    """The value if it is text that says something."""
    return value if type(value) is str and value else None


def raw(value: Raw | UnsetType, decoder: msgspec.json.Decoder[Any]) -> Any:
    """A raw value decoded; None where it is absent or of another shape."""
    if value is UNSET:
        return None
    try:
        return decoder.decode(value)
    except msgspec.MsgspecError:
        return None


def chars(value: Raw | UnsetType) -> int | None:
    """Characters of the text in a message's content or a summary."""
    found = raw(value, CONTENT)
    if type(found) is str:
        return len(found)
    if type(found) is not list:
        return None
    return sum(len(block.text) for block in found if type(block) is Block and type(block.text) is str)
