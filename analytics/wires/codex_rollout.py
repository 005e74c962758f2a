"""Codex rollouts: the session files of Codex, in their envelope and in the headerless form before it.

* "rollout": `{timestamp, type, payload}` rows (since about 0.32). A file is one thread; the first session_meta names
  it, whatever a resume or a fork writes behind it.
* "bare": a header `{id, timestamp, instructions, git}`, then bare items and state markers. No times and no usage:
  tokens are unknown, not zero.

Copies, forks and pages repeat what stands in another file; nothing is dropped here, but every request has a lake-wide
key and every call a lake-wide id, so that what is repeated counts once.
"""
# The methods of a wire are described once, in base.Wire.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from analytics.wires.base import Context, Refusal, Rows, Sample, Wire, key64, mended, origin_of, times
from analytics.wires.codex_rollout_lines import (
    BARE_ITEMS,
    EVENTS,
    HEADER,
    ITEMS,
    STATE_MARKER,
    TYPES,
    BareLine,
    Line,
    Payload,
    State,
    word,
)
from analytics.wires.codex_rollout_rows import Reading
from analytics.wires.codex_rollout_threads import Thread, thread_of

NESTED = {"response_item": ITEMS, "event_msg": EVENTS}
OURS = frozenset(("session_meta", "turn_context", "compacted", *NESTED))
KNOWN = frozenset((*TYPES, *NESTED))
DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "rollout": msgspec.json.Decoder(Line),
    "bare": msgspec.json.Decoder(BareLine),
}
STATE = msgspec.json.Decoder(State)


class CodexRollout:
    """The wire; see the module."""

    name = "codex-rollout"
    summary = "Codex session files (rollouts), with and without an envelope"
    secret_exempt_keys: frozenset[str] = frozenset()

    def sniff(self, sample: Sample) -> str | None:
        for obj in sample.objects:
            if isinstance(obj.get("payload"), dict) and word(obj.get("type")) in OURS:
                return "rollout"
            if "type" not in obj and (is_header(obj) or obj.get("record_type") == "state"):
                return "bare"
        return None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        return DECODERS[shape]

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return STATE.decode(text)

    def is_final_without_newline(self, shape: str) -> bool:
        return False

    def needs_newline(self, shape: str) -> bool:
        return False

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        return Refusal("malformed", error)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> Line | BareLine | None:
        """A row whose only fault is half of a surrogate pair in a text."""
        if refusal.reason != "not_json":
            return None
        try:
            found: Line | BareLine = DECODERS[ctx.shape].decode(mended(line) or b"")
        except msgspec.MsgspecError:
            return None
        return found

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        state: State = ctx.state
        thread, before = None, state.rows
        if state.run is None:
            thread = next((found for o in objs if (found := thread_named(o)) is not None), None)
        run_id = state.run or (thread.id if thread else f"{self.name}-{ctx.source_id}")
        is_known = state.run is not None or thread is not None
        moments = times([o.timestamp if type(o.timestamp) is str else None for o in objs])
        is_bare = ctx.shape == "bare"
        reading = Reading(len(objs), state, run_id, moments, is_bare=is_bare)
        for i, o in enumerate(objs):
            if state.run is not None and not state.is_leading and (joined := joined_thread(o, state)) is not None:
                thread, ctx.state = joined, State()
                state, run_id = ctx.state, joined.id
                reading.switch(i, state, run_id)
            p = o.payload
            if type(p) is Payload:
                is_read = enveloped(reading, i, o.type, p)
            elif is_bare:
                is_read = bare(reading, i, o)
            else:
                is_read = without_payload(reading, i, o)
            if is_read:
                if state.begun != run_id:
                    reading.introduce(i, thread)
                if state.is_leading and state.run is not None and reading.events[i] != "session_meta":
                    state.is_leading = False
        rows = self.finish(reading, is_known=is_known)
        if is_bare:
            key_by_place(rows, reading, before)
        return rows

    def finish(self, reading: Reading, *, is_known: bool) -> Rows:
        rows, moments = reading.finish(), reading.ts
        rows.constants |= {
            "run_id_origin": "wire" if is_known else "source", "is_line_key": True, "is_shared_run": True,
        }  # fmt: skip
        if len(reading.runs) == 1:
            rows.constants["run_id"] = reading.run_id
        else:
            rows.columns["run_id"] = [run_id for run_id, size in reading.pieces() for _ in range(size)]
        rows.columns["ts"] = moments
        if moments.null_count:
            rows.columns["ts_origin"] = origin_of(moments, "vendor")
        else:
            rows.constants["ts_origin"] = "vendor"
        return rows


def key_by_place(rows: Rows, reading: Reading, before: int) -> None:
    """Keys for rows without a time, which repeat each other in all files: their place in the run tells them apart.
    The first run of the span has `before` rows already.
    """
    keys: list[int] = []
    for run_id, size in reading.pieces():
        keys += [key64(f"{run_id} {before + i}".encode()) for i in range(size)]
        reading.state.rows, before = before + size, 0
    rows.columns["event_key"] = keys


def enveloped(reading: Reading, i: int, kind: Any, p: Payload) -> bool:
    """A row in its envelope; True if it is read."""
    if type(kind) is not str:
        return reading.refuse(i, "unknown_event", "the row has no type")
    names, inner = NESTED.get(kind), p.type
    if names is None:
        known = TYPES.get(kind)
        return reading.opaque(i, kind) if known is None else reading.row(i, known, p)
    if type(inner) is not str:
        return reading.refuse(i, "malformed", f"{kind}: the payload has no type")
    known = names.get(inner)
    return reading.opaque(i, f"{kind}/{inner}") if known is None else reading.row(i, known, p)


def without_payload(reading: Reading, i: int, o: Line) -> bool:
    """A row of the envelope's shape that has no object in it; True if it is read."""
    if type(o.type) is not str:
        return reading.refuse(i, "unknown_event", "the row has no type")
    is_enveloped = o.payload is not UNSET or type(o.timestamp) is str
    if o.type in KNOWN or not is_enveloped:
        return reading.refuse(i, "malformed", f"{o.type:.80}: the payload is no object")
    return reading.opaque(i, o.type)


def bare(reading: Reading, i: int, o: BareLine) -> bool:
    """A row of the headerless form; True if it is read."""
    if type(o.type) is str:
        known = BARE_ITEMS.get(o.type)
        return reading.opaque(i, o.type) if known is None else reading.row(i, known, o)
    if o.record_type == "state":
        return reading.row(i, STATE_MARKER, o)
    if type(o.record_type) is str:
        return reading.opaque(i, o.record_type)
    if o.type is None and word(o.id) is not None and type(o.timestamp) is str:
        return reading.row(i, HEADER, o)
    return reading.refuse(i, "unknown_event", "the row has no type")


def is_header(obj: Mapping[str, Any]) -> bool:
    """True: the first row of the headerless form."""
    has_names = isinstance(obj.get("id"), str) and isinstance(obj.get("timestamp"), str)
    return has_names and "instructions" in obj and "payload" not in obj


def thread_named(o: Line | BareLine) -> Thread | None:
    """The thread that a row opens, if it opens one."""
    if type(o.payload) is Payload:
        return thread_of(o.payload) if o.type == "session_meta" else None
    if not isinstance(o, BareLine) or o.type is not None or o.record_type is not None:
        return None
    return thread_of(o) if type(o.timestamp) is str else None


def joined_thread(o: Line | BareLine, state: State) -> Thread | None:
    """The thread of another rollout behind this one in the same file: neither a resume nor an ancestor's meta."""
    if o.type != "session_meta" and o.type is not None:
        return None
    thread = thread_named(o)
    return None if thread is None or thread.id in state.kin else thread


WIRE: Wire = CodexRollout()
