"""The meter of Codex rollouts: what one token_count used, under which key it is counted, and its limit windows.

Rules and their numbers come from the field notes on native transcripts, section 3. The total is the meter, `last` only
gauges the context (trap 62): an equal total is no request (34 % of 20,221 events; traps 46 to 48), a total with a
smaller part is a counter that started again. Forks and pages repeat rows of another file (traps 49 to 58, 68); the key
makes a repeated request the same request wherever it stands.
"""

from __future__ import annotations

from typing import Any

import msgspec
import xxhash
from msgspec import Struct
from msgspec.structs import astuple

from analytics.wires.base import MAX_INT, in_bounds
from analytics.wires.codex_rollout_lines import Other, State, Tokens, word

UNIQUE_CHARS = 32  # an id of this length is a UUID; a shorter one ("1") is unique in its thread at most
LAST_SECOND = 253_402_300_799  # of the year 9999


class Info(Struct, gc=False):
    """The figures of a token_count."""

    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None
    model_context_window: Any = None


class Window(Struct, gc=False):
    """One window; an older version names its reset in seconds from the row's time."""

    used_percent: Any = None
    window_minutes: Any = None
    resets_at: Any = None
    resets_in_seconds: Any = None


class Limits(Struct, gc=False):
    """The limits of a token_count; 0.40 wrote the windows flat."""

    limit_id: Any = None
    limit_name: Any = None
    primary: Window | Other = None
    secondary: Window | Other = None
    rate_limit_reached_type: Any = None
    primary_used_percent: Any = None
    primary_window_minutes: Any = None
    secondary_used_percent: Any = None
    secondary_window_minutes: Any = None


INFO = msgspec.json.Decoder(Info | None)
LIMITS = msgspec.json.Decoder(Limits | Other)


def used(
    before: Tokens | None, total: Tokens, whole: Tokens, last: Tokens | None, *, is_inherited: bool
) -> Tokens | None:
    """What was used since the total before; None: nothing. `whole`: the total, filled from the one before.

    is_inherited: without a total before, this one may be another thread's, and then an empty `last` is an estimate.
    """
    now = whole.parts()
    if before is None:
        if last is not None and (any(last.parts()) or is_inherited):
            return last if any(last.parts()) else None
        return total if any(now) else None
    was = before.parts()
    if now == was:
        return None
    if now[0] >= was[0] and now[1] >= was[1] and now[2] >= was[2] and now[3] >= was[3]:
        return difference(total, before, last or Tokens())
    made = total if last is None else last
    return made if any(made.parts()) else None


def filled(total: Tokens, before: Tokens | None) -> Tokens:
    """The total, and where it leaves out a part, the one that was last known: what it hides counts with the next.

    A counter that started again has nothing before it.
    """
    if before is None:
        return total
    nows = astuple(total)
    if None not in nows:
        return total
    parts = list(zip(nows, astuple(before), strict=True))
    for now, was in parts:
        if now is None and was is not None:
            break
    else:
        return total
    if any(now is not None and was is not None and now < was for now, was in parts[:4]):
        return total
    return Tokens(*(was if now is None else now for now, was in parts))


def difference(total: Tokens, before: Tokens, last: Tokens) -> Tokens:
    """Part by part; a part that the total does not have is not known, and one that it has for the first time is as
    `last` gauges it.
    """
    made = Tokens(*map(moved, astuple(total), astuple(before), astuple(last)))
    made.total_tokens = None  # which is no part
    return made


def moved(now: int | None, was: int | None, last: int | None) -> int | None:
    """How far one part of the total moved."""
    if now is None:
        return None
    if was is None:
        return now if last is None else last
    return now - was if now > was else 0


def request_key(state: State, thread: str, total: Tokens, last: Tokens | None) -> str:
    """The lake-wide identity of the request that moved the total; `state` still has the total before.

    A replay repeats the figures and the turn's id, but neither times nor, in another version's hands, absent figures.
    Pages count by thread, since the next page begins with the last figures of the page before under a turn of its own.
    Rows outside all turns form a chain: a request is the same if all requests before it are, from the root on.
    """
    figures = f"{vector(total)};{vector(last)}"
    turn = state.known_turn
    root = state.root or thread
    if state.is_paged:
        owner = state.base if state.total is None and state.base else thread
        return hashed(f"{owner};{figures}")
    if turn is not None:
        return hashed(f"{turn};{figures}" if len(turn) >= UNIQUE_CHARS else f"{root};{turn};{figures}")
    state.chain = hashed(f"{state.chain or root};{figures}")
    return state.chain


def vector(tokens: Tokens | None) -> str:
    """Figures as the key has them."""
    if tokens is None:
        return ""
    given, cached, output, reasoning = tokens.parts()
    return f"{given},{cached},{output},{reasoning},{tokens.total_tokens or 0}"


def hashed(text: str) -> str:
    """A key that no other vendor's can equal."""
    return f"codex:{xxhash.xxh3_64_hexdigest(text.encode())}"


def gauge(last: Tokens | None, window: Any) -> int | None:
    """The size of the context by `last`; not where it exceeds the model's window (trap 62), for then it is a sum."""
    size = None if last is None else last.total_tokens
    return None if size is not None and type(window) is int and 0 < window < size else size


def samples(limits: Limits, ts: int | None) -> list[dict[str, Any]]:
    """One part per window that says something; a null window is not known and never 0 % (traps 63, 65)."""
    limit_id, name, status = word(limits.limit_id), word(limits.limit_name), word(limits.rate_limit_reached_type)
    return [
        {
            "kind": "rate_limit", "limit_id": limit_id, "limit_name": name, "limit_unit": "percent",
            "limit_window_minutes": length(window.window_minutes), "limit_used": number(window.used_percent),
            "limit_resets_at": resets_at(window, ts), "limit_status": status,
        }
        for window in windows(limits)
    ]  # fmt: skip


def windows(limits: Limits) -> list[Window]:
    """The windows of any of the three generations."""
    found = [window for window in (limits.primary, limits.secondary) if type(window) is Window]
    if found:
        return found
    flat = (
        Window(limits.primary_used_percent, limits.primary_window_minutes),
        Window(limits.secondary_used_percent, limits.secondary_window_minutes),
    )
    return [window for window in flat if window.used_percent is not None]


def length(value: Any) -> int | None:
    """The length names the window, not its slot (trap 66); 299 and 10079 are whole hours less the minute under way."""
    if type(value) is not int or not 0 <= value < MAX_INT:
        return None
    return value + 1 if value % 60 == 59 else value


def resets_at(window: Window, ts: int | None) -> int | None:
    """Microseconds since the epoch; a relative reset counts from the row's own time (trap 64)."""
    at = number(window.resets_at)
    if at is not None:
        return round(at * 1_000_000) if 0 <= at <= LAST_SECOND else None
    rest = number(window.resets_in_seconds)
    return None if rest is None or ts is None else in_bounds(ts + round(rest * 1_000_000))


def number(value: Any) -> float | None:
    """The value if it is a number."""
    return float(value) if type(value) in (int, float) and abs(value) <= MAX_INT else None
