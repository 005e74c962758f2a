"""What both Claude wires read alike: an API message, its usage, the key of an answer, and the texts of refused calls.

Rules and counts come from the field notes on native transcripts (sections 1 and 2). Usage counters are strict, so a
negative, fractional or too large one fails in the decoder; content blocks are loose, since new kinds come every month.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from analytics.wires.base import MAX_INT, MAX_TOKENS, UNIQUE_CALL_CHARS

Count = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
Other = list[Any] | str | float | bool | None  # what may stand where an object is expected, and then says nothing
SYNTHETIC = "<synthetic>"  # the model of an answer that the client made up; never a request

SCOPE = "claude"  # of call ids that the vendor gave: in a copy, or seen through the other wire, the call is the same
VENDOR_CALLS = ("toolu_", "srvtoolu_")

# ids that gateways write on every answer ("ocgo": ccusage #1635); such an id names nothing
CONSTANT_IDS = frozenset({"", "0", "chatcmpl", "id", "message", "msg", "none", "null", "ocgo", "undefined", "unknown"})
NO_ID = "00000000"  # how an id of nothing but zeros ends

RAW = msgspec.json.Decoder()


class CacheCreation(Struct, gc=False):
    """How long the tokens written to the cache are kept (since 1.0.98)."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class OutputDetails(Struct, gc=False):
    """What the output is made of."""

    reasoning_tokens: Count | None = None
    thinking_tokens: Count | None = None


class Usage(Struct, gc=False):
    """`message.usage`. Gateways leave the cache keys out (9 % of rows): unknown, not zero."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | Other = None
    output_tokens_details: OutputDetails | Other = None
    speed: Any = None


class Block(Struct, gc=False):
    """A content block of any kind; the input of a call is left where it is, a result's content is read when asked."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    id: Any = None
    name: Any = None
    tool_use_id: Any = None
    is_error: Any = None
    content: msgspec.Raw | UnsetType = UNSET


class Message(Struct, gc=False):
    """An API message. `content` is always there in a whole one."""

    content: list[Block | Other] | str | UnsetType | None = UNSET
    id: Any = None
    role: Any = None
    model: Any = None
    stop_reason: Any = None
    usage: Usage | Other = None


def usage_columns(usage: Usage | Other) -> dict[str, Any]:
    """A usage object as event columns; what it does not say is None."""
    if not isinstance(usage, Usage):
        return {}
    written = usage.cache_creation_input_tokens
    return {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens,
        "cache_write_tokens": written,
        "cache_write_1h_tokens": kept_an_hour(written, usage.cache_creation),
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": reasoning_tokens(usage.output_tokens_details),
        "input_includes_cache": False,
    }


def reasoning_tokens(details: OutputDetails | Other) -> int | None:
    """The thinking part of the output, where the details tell."""
    if not isinstance(details, OutputDetails):
        return None
    return details.reasoning_tokens if details.thinking_tokens is None else details.thinking_tokens


def kept_an_hour(written: int | None, split: CacheCreation | Other) -> int | None:
    """The part of a cache write that is kept for an hour. A split beyond its total is not to be trusted; of nothing
    written nothing is kept, split or not.
    """
    if not written:
        return written
    if not isinstance(split, CacheCreation) or split.ephemeral_1h_input_tokens is None:
        return None
    hour = split.ephemeral_1h_input_tokens
    return hour if hour + (split.ephemeral_5m_input_tokens or 0) <= written else None


def request_key(message: Message, request_id: Any, uuid: Any) -> str | None:
    """The identity of an answer over all files: the message's id, else the request's, else the row's own.

    Not the session and not the request beside it: a resumed file changes the one, a side question the other.
    """
    for key in (message.id, request_id, uuid):
        if type(key) is str and key not in CONSTANT_IDS and not key.endswith(NO_ID):
            return key
    return None


NO_USAGE = Usage()


def usage_lists(said: list[Usage]) -> dict[str, list[Any]]:
    """The usage columns of many answers; NO_USAGE says nothing, so it leaves all of them NULL."""
    return {
        "speed": [word(u.speed) for u in said],
        "input_tokens": [u.input_tokens for u in said],
        "cache_read_tokens": [u.cache_read_input_tokens for u in said],
        "cache_write_tokens": [u.cache_creation_input_tokens for u in said],
        "cache_write_1h_tokens": [kept_an_hour(u.cache_creation_input_tokens, u.cache_creation) for u in said],
        "output_tokens": [u.output_tokens for u in said],
        "reasoning_tokens": [
            None if u.output_tokens_details is None else reasoning_tokens(u.output_tokens_details) for u in said
        ],
        "input_includes_cache": [None if u is NO_USAGE else False for u in said],
    }


def call_scope(call_id: str | None, run: str) -> str | None:
    """Over which runs a call id names one call. Gateways write short ids of their own ("functions.Bash:0"), which come
    again in other sessions and in the subagents of this one, so those are of the run.
    """
    if call_id is None:
        return None
    is_vendors = len(call_id) >= UNIQUE_CALL_CHARS or call_id.startswith(VENDOR_CALLS)
    return SCOPE if is_vendors else f"{SCOPE}:{run}"


# Each text from its beginning, or in its first line: a result that quotes a refusal further down is none.
REFUSALS: tuple[tuple[str, str], ...] = (
    (r"The user doesn['’]t want to (?:proceed with this tool use|take this action)", "user-rejected"),
    (r"The agent proposed a plan that was rejected by the user", "user-rejected"),
    (r"Permission for this tool use was denied", "user-rejected"),  # the same, said to a subagent
    (r"Permission to use .{1,20000}? has been (?:auto-)?denied", "rule-denied"),
    (r"(?!Exit code)[^\n]*?you haven['’]t granted it yet", "not-granted"),
    (
        r"Hook PreToolUse:[^\n]* denied this tool|(?!Exit code|PostToolUse)[^\n]*?(?:hook error|blocked by hook)",
        "hook-denied",
    ),
)
_REFUSAL = re.compile(
    r"\s*(?:Error: )?(?:<tool_use_error>)?(?:Error: )?(?:"
    + "|".join(f"({pattern})" for pattern, _ in REFUSALS) + ")", re.DOTALL
)  # fmt: skip

_DECIDERS = (
    ("user-", "human"), ("rule-", "policy"), ("permission-", "policy"), ("not-granted", "policy"), ("hook", "hook"),
    ("automode-", "vendor"), ("auto-mode-", "vendor"),
)  # fmt: skip


def decider(kind: str) -> str | None:
    """Who refuses by a kind of denial (a toolDenialKind, or one of REFUSALS)."""
    return next((who for start, who in _DECIDERS if kind.startswith(start)), None)


def refusal(text: str) -> tuple[str, str | None] | None:
    """Kind of denial and who decided, by the text of a failed result; None: it refuses nothing.

    "Sibling tool call errored", "File has not been read yet", exit codes and interruptions are no refusals.
    """
    found = _REFUSAL.match(text)
    if found is None or found.lastindex is None:
        return None
    kind = REFUSALS[found.lastindex - 1][1]
    return kind, decider(kind)


INTERRUPTIONS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")


def is_interruption(text: str) -> bool:
    """True: the user stopped the answer or the calls of it; nothing was refused."""
    return text.strip() in INTERRUPTIONS


def word(value: Any) -> str | None:
    """The value if it is text that says something."""
    return value if type(value) is str and value else None


def whole(value: Any) -> int | None:
    """The value as a whole number of 64 bits; a fraction (of a millisecond) is dropped."""
    if type(value) is float and abs(value) < 2**53:
        return int(value)
    return value if type(value) is int and abs(value) <= MAX_INT else None


def raw(value: Any) -> Any:
    """A value that was left raw; None where it is not there."""
    return RAW.decode(value) if isinstance(value, msgspec.Raw) else None


def result_text(content: Any) -> str:
    """The text of a tool result: a string, or the text of its blocks. Takes raw JSON, too."""
    if isinstance(content, msgspec.Raw):
        content = raw(content)
    if type(content) is str:
        return content
    if type(content) is not list:
        return ""
    texts = [b if type(b) is str else b.get("text") if type(b) is dict else None for b in content]
    return "\n".join(text for text in texts if type(text) is str)
