"""Codex `exec --json`: what a process prints on stdout, caught in a file.

* "items": rows `thread.started`, `turn.*`, `item.*` since openai/codex PR #4525 (2025-09-30).
* "msg": before it a configuration object, the prompt, then `{"id", "msg": {"type"}}`. Some of those builds kept
  `task_complete` to themselves, so that their captures stay open.

A run is a process; its id is the thread's, `#2` for the second process that one file holds of a thread. Rows have no
time, no model and no request: usage is the thread's running total, over resumes too (native.md 4: adding up turns gave
6.9 M where a total of the thread was meant, codex #17539). Items are numbered anew by each process, so a call is known
by run and item. A capture that was joined from both forms is read as both.
"""
# The methods of a wire are described once, in base.Wire.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from analytics.wires.base import Context, Refusal, Rows, Sample, Wire, mended
from analytics.wires.codex_exec_lines import (
    BEGINNINGS,
    HEAD,
    ITEM_ROWS,
    LINE,
    MESSAGE_TYPES,
    MSG,
    RAW,
    ROWS,
    Broken,
    Line,
    Msg,
    MsgLine,
    PlainText,
    Prompt,
    State,
    word,
)
from analytics.wires.codex_exec_rows import Reader

DECODERS: dict[str, msgspec.json.Decoder[Any]] = {"items": LINE, "msg": MSG}
BEGUN = re.compile(rb'\s*\{\s*"')  # how a row begins, and what a shell prints hardly ever does
REFUSED = frozenset({"line_too_long", "too_deep"})  # neither text nor worth a second look


class CodexExec:
    """The wire; see the module."""

    name = "codex-exec"
    summary = "Codex: captures of `codex exec --json`, in the form since 2025-09-30 and the one before"
    secret_exempt_keys: frozenset[str] = frozenset()

    def sniff(self, sample: Sample) -> str | None:
        items = sum(map(is_item_row, sample.objects))
        messages = sum(map(is_message_row, sample.objects))
        if items and items >= messages:
            return "items"
        return "msg" if messages else None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        return DECODERS[shape]

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return msgspec.json.decode(text, type=State)

    def is_final_without_newline(self, shape: str) -> bool:
        return False

    def needs_newline(self, shape: str) -> bool:
        return False

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        return Refusal(fault(error), error)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> Any | None:
        """What stands between the rows is text and stays what it is; a row of ours that broke is no text. A broken one
        is handed on to `read`, which knows the run.
        """
        if refusal.reason in REFUSED:
            return None
        obj, whole = json_object(line), line
        if obj is None and refusal.reason == "not_json":  # half of a surrogate pair in a text, perhaps
            whole = mended(line) or line
            obj = json_object(whole)
        text = PlainText(len(line.decode("utf-8", "replace")))
        if obj is not None:
            return self.other_form(whole, obj) or text
        if refusal.reason == "nul_byte" or BEGUN.match(line):
            return Broken(refusal.reason, refusal.detail)
        return text

    def other_form(self, line: bytes, obj: Mapping[str, Any]) -> Any | None:
        """A JSON object that the shape's decoder did not take; None: it is another program's."""
        kind, msg = obj.get("type"), obj.get("msg")
        try:
            if isinstance(kind, str):
                return LINE.decode(line) if kind in ROWS else Line(kind)
            if isinstance(msg, dict) and isinstance(named := msg.get("type"), str):
                return MSG.decode(line) if named in MESSAGE_TYPES else MsgLine(Msg(type=named))
        except msgspec.ValidationError as error:
            return Broken(fault(str(error)), str(error))
        if isinstance(obj.get("workdir"), str) and "model" in obj:
            return HEAD.decode(line)
        prompt = obj.get("prompt")
        if isinstance(prompt, str) and len(obj) == 1:
            return Prompt(len(prompt))
        return None

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        return Reader(len(objs), ctx.source_id, ctx.state).read(objs)


def is_item_row(o: Mapping[str, Any]) -> bool:
    """True: a row that only the form since 2025-09-30 has."""
    kind, item, usage = word(o.get("type")), o.get("item"), o.get("usage")
    if kind in BEGINNINGS:
        return word(o.get("thread_id") or o.get("session_id")) is not None
    if kind in ITEM_ROWS:
        return isinstance(item, dict) and word(item.get("type") or item.get("item_type")) is not None
    if kind == "turn.completed":
        return isinstance(usage, dict) and "input_tokens" in usage
    return kind == "turn.failed" and isinstance(o.get("error"), dict)


def is_message_row(o: Mapping[str, Any]) -> bool:
    """True: a row that only the form before it has; in other protocols of Codex such a message stands deeper."""
    msg = o.get("msg")
    return isinstance(msg, dict) and "id" in o and word(msg.get("type")) in MESSAGE_TYPES


def fault(error: str) -> str:
    """The refusal reason behind the words of msgspec."""
    is_number = "out of range" in error or "`int` <=" in error or "`int` >=" in error or "got `float`" in error
    return "number_out_of_range" if is_number else "malformed"


def json_object(line: bytes) -> Mapping[str, Any] | None:
    """The line as an object, if it is one."""
    try:
        found = RAW.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


WIRE: Wire = CodexExec()
