"""Calls of Codex rollouts: how they open and end, what ran on behind them, and who refused them.

Rules come from the field notes on native transcripts, section 3 (denials, unfinished calls, ends). An item is the
call; the event beside it, which the screen was drawn from, only adds what the host measured.
"""
# Every reader is named in codex_rollout_lines and has the same arguments.

from __future__ import annotations

import msgspec

from analytics.wires.base import attributes, clip
from analytics.wires.codex_rollout_lines import (
    DURATION,
    ITEM,
    SENT,
    TEXT,
    Duration,
    Item,
    OpenCall,
    Payload,
    raw,
    word,
)
from analytics.wires.codex_rollout_outputs import End, end_of
from analytics.wires.codex_rollout_span import BrokenRowError, Span, whole

UNNAMED = {"local_shell_call": "local_shell", "tool_search_call": "tool_search"}  # calls whose type is their tool
SENDS = "write_stdin"  # the tool that polls a process


class Calls(Span):
    """The readers of items and events that speak of calls. They move the state only if they do not raise."""

    def call(self, i: int, p: Payload) -> None:
        """A call. Without an id (a search that the vendor runs) it has no output and is none."""
        call_id = word(p.call_id) or (word(p.id) if p.type == "local_shell_call" else None)
        if call_id is None:
            if p.type != "tool_search_call":
                raise BrokenRowError("the call has no id")
            self.kinds[i] = "system"
            return
        state = self.state
        tool = word(p.name) or UNNAMED.get(p.type)
        self.asked.append((i, call_id, self.scope(call_id), tool, state.model))
        if call_id not in state.open:
            state.open[call_id] = OpenCall(tool, polled(p) if tool == SENDS else None)

    def output(self, i: int, p: Payload) -> None:
        """An output ends its call, but not the process that the call started in the background."""
        call_id = word(p.call_id)
        if call_id is None:
            if p.type != "tool_search_output":
                raise BrokenRowError("the output names no call")
            self.kinds[i] = "system"
            return
        call = self.state.open.pop(call_id, None) or OpenCall()
        end = end_of(p.output)
        if end.denial is not None:
            kind, decided_by = end.denial
            self.rows.put(i, decision="deny", evidence="output_text", reason=kind, decided_by=decided_by)
            self.done.append((i, call_id, self.scope(call_id), call.tool, end.chars, None, None, None))
            return
        exit_code = call.exit_code if end.exit_code is None else end.exit_code
        is_poll = self.process(i, call_id, call, end)
        is_error = None if exit_code is None or is_poll else exit_code != 0
        duration = call.duration_ms if end.duration_ms is None else end.duration_ms
        self.done.append((i, call_id, self.scope(call_id), call.tool, end.chars, exit_code, is_error, duration))

    def process(self, i: int, call_id: str, call: OpenCall, end: End) -> bool:
        """A process runs on until a poll of it shows an exit code, which is then told of the call that started it.
        True: this call is that poll.
        """
        state, process = self.state, end.process or call.process
        if end.is_interrupted:
            self.rows.put(i, status="interrupted")
        if process is None:
            return False
        is_running = end.process is not None and end.exit_code is None
        self.rows.put(i, status="running" if is_running else None, attributes=attributes(process=process))
        if is_running and call.tool != SENDS:
            state.running[process] = call_id
        if end.exit_code is None:
            return False
        starter = state.running.pop(process, call_id)
        if starter == call_id:
            return False
        said = {"kind": "tool.finished", "call_id": starter, "call_scope": self.scope(starter)}
        ended = {"exit_code": end.exit_code, "is_error": end.exit_code != 0}
        self.rows.parts.append((i, said | ended | {"attributes": attributes(process=process)}))
        return True

    def command_ended(self, i: int, p: Payload) -> None:
        """What the host measured of a command. It stands before the output, unless the command ran on behind it."""
        state, call_id = self.state, word(p.call_id)
        if call_id is None:
            return
        lasted = raw(p.duration, DURATION)
        length = lasted.secs * 1000 + lasted.nanos // 1_000_000 if type(lasted) is Duration else None
        exit_code, length = whole(p.exit_code), whole(length)
        call = state.open.get(call_id)
        process = next((name for name, starter in state.running.items() if starter == call_id), None)
        self.rows.put(i, status=clip(word(p.status)))
        if call is not None:
            if p.status != "declined":
                call.exit_code, call.duration_ms = exit_code, length
        elif process is not None and exit_code is not None:
            del state.running[process]
            self.kinds[i] = "tool.finished"
            self.done.append((i, call_id, self.scope(call_id), None, None, exit_code, exit_code != 0, length))
            self.rows.put(i, attributes=attributes(process=process))

    def declined(self, i: int, call_id: str | None) -> None:
        """A call that the client did not let through, by the status of its item or end."""
        values = {"decision": "deny", "evidence": "item_status", "reason": "declined"}
        if self.kinds[i] == "system":
            self.kinds[i] = "tool.decided"
            self.rows.put(i, call_id=call_id, call_scope=self.scope(call_id), **values)
        else:
            beside = {"kind": "tool.decided", "call_id": call_id, "call_scope": self.scope(call_id)}
            self.rows.parts.append((i, beside | values))

    def item(self, i: int, p: Payload) -> None:
        item = raw(p.item, ITEM)
        if type(item) is Item and item.status == "declined":
            self.declined(i, word(item.id))

    def assessed(self, i: int, p: Payload) -> None:
        """The vendor's own judge of risky calls; only its verdicts are decisions."""
        self.rows.put(i, status=clip(word(p.status)))
        if p.status not in ("denied", "approved"):
            return
        call_id = word(p.target_item_id) or word(p.call_id)
        if call_id is None and word(p.id) in self.state.open:
            call_id = word(p.id)
        is_denied = p.status == "denied"
        self.kinds[i] = "tool.decided"
        self.rows.put(
            i, call_id=call_id, call_scope=self.scope(call_id), decision="deny" if is_denied else "allow",
            evidence="guardian_assessment", decided_by="vendor", reason="guardian-denied" if is_denied else None,
        )  # fmt: skip


def polled(p: Payload) -> str | None:
    """The process that a write_stdin talks to."""
    try:
        sent = SENT.decode(TEXT.decode(p.arguments))  # type: ignore[arg-type]
    except (msgspec.MsgspecError, TypeError):
        return None
    return None if sent.session_id is None else str(sent.session_id)[:80]
