"""platonic-core: bare records and host ledgers v1 / v2, in the order its state machine allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from makers.common import REASONS, Clock, Made, Tokens, Truth, Voice, day, dumps

EFFECTS = {
    "file.read": "read_only", "file.list": "read_only", "file.write": "workspace_write",
    "shell.exec": "workspace_write", "web.fetch": "network", "mail.send": "external_side_effect",
}  # fmt: skip


@dataclass(slots=True)
class Plan:
    """What one run is to show. Endings: finished failed canceled orphan, and two that stay open: pending, running."""

    form: str
    number: int
    day: int
    turns: int
    ending: str = "finished"
    shows: tuple[str, ...] = ()


@dataclass(slots=True)
class Ledger:
    """The lines of one run. A damaged line takes no sequence number."""

    plan: Plan
    run: str
    voice: Voice
    clock: Clock
    truth: Truth
    lines: list[str] = field(default_factory=list)
    seq: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    known: int = 0
    unknown: int = 0

    def line(self, seq: int, event: str, version: int | None = None, **fields: Any) -> str:
        record = {
            "seq": seq,
            "occurred_at_ms": self.clock.millis(),
            "event": {"event": event, "run_id": self.run} | fields,
        }
        if self.plan.form == "record":
            return dumps(record)
        return dumps({"v": version or int(self.plan.form[1]), "record": record})

    def emit(self, event: str, **fields: Any) -> None:
        self.lines.append(self.line(self.seq, event, **fields))
        self.seq += 1

    def damage(self, reason: str) -> None:
        """Damage fit for the phase `ready for context`."""
        self.lines.append(
            {
                "unknown_event": lambda: self.line(self.seq, "run_paused"),
                "unknown_field": lambda: self.line(self.seq, "run_failed", reason="x", exit_code=1),
                "illegal_transition": lambda: self.line(self.seq, "tool_started", call_id="c1"),
                "sequence_mismatch": lambda: self.line(self.seq + 2, "run_failed", reason="x"),
                "unknown_format": lambda: self.line(self.seq, "run_failed", 3, reason="x"),
            }[reason]()
        )
        self.truth.refuse(reason)


def make(plan: Plan) -> Made:
    run = f"run_{plan.number:04d}"
    voice = Voice(run)
    book = Ledger(plan, run, voice, Clock(voice, day(plan.day, voice)), Truth("platonic-core", plan.form, run))
    if plan.form == "v2":
        book.emit("run_started", profile_id="profile_main", profile_revision=3)
    else:
        book.emit("run_started", agent_id="plume")
    steps = 0
    for turn in range(1, plan.turns + 1):
        steps = one_turn(book, turn, steps)
        if turn == 2 and "voice" in plan.shows:
            spoken = {"event": "voice_spoken", "run_id": run, "turn_id": "t2", "ttfa_ms": 220, "sentence_count": 1}
            line = {"v": 1, "sequence": 0, "event": spoken | {"interrupted_at": None}}
            book.lines.append(dumps({"voice_events": [line]}))
    return close(book)


def one_turn(book: Ledger, turn: int, step: int) -> int:
    """A turn from its context to the end of its one call; returns the next step number."""
    v, plan, truth = book.voice, book.plan, book.truth
    last, turn_id = turn == plan.turns, f"t{turn}"
    if turn == 2:
        for name in plan.shows:
            if name.startswith("bad:"):
                book.damage(name[4:])
    if turn == 5 and "compaction" in plan.shows:
        book.emit("context_compacted", turn_id=turn_id, estimated_tokens_before=3_900, estimated_tokens_after=900,
                  dropped_turn_start=0, dropped_turn_end_exclusive=3)  # fmt: skip
    lanes = (
        ("system_contract", "contract", 20),
        ("current_task", "user", 8),
        ("recent_turns", f"t{turn - 1}", v.between(20, 900)),
    )
    fragments = [{"lane": a, "source": b, "content": v.say(), "estimated_tokens": n} for a, b, n in lanes]
    book.emit("context_built", turn_id=turn_id, context={"token_budget": 4_000, "fragments": fragments})
    truth.requests = (truth.requests or 0) + 1
    book.emit("model_requested", turn_id=turn_id, step=step, model="~kestrel/latest")
    if turn == 3 and "retries" in plan.shows:
        book.emit("model_failed", turn_id=turn_id, step=step, reason="provider returned HTTP 429; retry after 8s")
        truth.requests += 1
        book.emit("model_requested", turn_id=turn_id, step=step, model="~kestrel/latest")
    closing = last and plan.ending in ("finished", "failed")
    tool = v.pick(tuple(EFFECTS))
    arguments = {"path": v.path(), "text": v.sentence()}
    calls = [] if closing else [{"tool": tool, "input": arguments}]
    served = {"served_model": v.pick(("kestrel/large-4", "kestrel/small-2"))} if v.chance(0.7) else {}
    usage = None
    if turn == 2 and "unknown usage" in plan.shows:
        book.unknown += 1
    else:
        usage = {"input_tokens": v.between(50, 4_000), "output_tokens": v.between(5, 500)}
        book.tokens.add(Tokens(usage["input_tokens"], output=usage["output_tokens"]))
        book.known += 1
    output = {"role": "assistant", "content": v.say()}
    book.emit("model_responded", turn_id=turn_id, step=step, output=output, proposed_calls=calls, **served, usage=usage)
    if turn == 4 and "rejected" in plan.shows and calls:
        book.emit("tool_proposals_rejected", turn_id=turn_id, reason="no registered tool of that name")
    elif calls:
        one_call(book, turn, tool, arguments)
    return step + 1


def one_call(book: Ledger, turn: int, tool: str, arguments: dict[str, Any]) -> None:
    """Policy, then approval where it asks for one, then the tool."""
    v, plan, truth = book.voice, book.plan, book.truth
    last, call = turn == plan.turns, f"c{turn}"
    book.emit(
        "tool_call_proposed",
        turn_id=f"t{turn}",
        call={"id": call, "tool": tool, "effect": EFFECTS[tool], "input": arguments},
    )
    truth.tool_calls += 1
    turns = turn + plan.number
    asks = last and plan.ending in ("canceled", "pending")
    if turns % 8 == 4 and not last:
        book.emit("policy_evaluated", call_id=call, decision={"decision": "deny", "reason": v.pick(REASONS)})
        truth.denied_calls += 1
        return
    if turns % 5 == 2 or asks:
        book.emit("policy_evaluated", call_id=call, decision={"decision": "require_approval", "reason": EFFECTS[tool]})
        if asks:
            return
        if plan.number % 3 == 2 and not last:
            book.emit("approval_denied", call_id=call, actor_id="human:desk", reason=v.pick(REASONS))
            truth.denied_calls += 1
            return
        book.emit("approval_granted", call_id=call, actor_id="human:desk")
    else:
        book.emit("policy_evaluated", call_id=call, decision={"decision": "allow"})
    book.emit("tool_started", call_id=call)
    if last and plan.ending in ("orphan", "running"):
        truth.tool_calls_unfinished += 1
    elif turns % 7 == 1:
        book.emit("tool_failed", call_id=call, reason=v.pick(REASONS))
    else:
        data = {"exit_code": 0} if tool == "shell.exec" else None
        result = {"call_id": call, "summary": v.output(), "data": data, "artifacts": [], "visibility": "both"}
        book.emit("tool_finished", result=result)


def close(book: Ledger) -> Made:
    """The end by ending; `running` leaves a whole record without its newline, which is not data."""
    truth, ending = book.truth, book.plan.ending
    reasons = {
        "failed": "provider gave up", "canceled": "run canceled", "orphan": "daemon restarted before run completed",
    }  # fmt: skip
    tail = ""
    if ending == "finished":
        book.emit("run_finished")
        truth.outcome = "finished"
    elif ending in reasons:
        book.emit("run_failed", reason=reasons[ending])
        truth.outcome = "canceled" if ending == "canceled" else "failed"
    elif ending == "running":
        tail = book.line(book.seq, "tool_failed", call_id=f"c{book.plan.turns}", reason="not data without its newline")
    if book.known:
        truth.input_tokens, truth.output_tokens = book.tokens.input, book.tokens.output
        truth.tokens_are_lower_bound = True if book.unknown else None
    truth.close("open" if ending in ("pending", "running") else "closed", tokens_need_the_end=True)
    return Made(book.lines, truth, tail)
