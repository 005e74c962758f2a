"""What the replay of a platonic-core run must remember, and which event each phase accepts.

The state goes into the ledger as JSON after each ingest, so it is kept small whatever the length of the run.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right

import msgspec
from msgspec import UNSET

from analytics.wires import platonic_core_lines as wire
from analytics.wires.base import Refusal

Fault = tuple[str, str]

NOT_STARTED, READY, CONCLUDED, COMPACTED = "not_started", "ready_for_context", "turn_concluded", "context_compacted"
TO_REQUEST, TO_RESPOND, TO_PROPOSE = "ready_to_request_model", "awaiting_model_response", "awaiting_tool_call"
TO_JUDGE, TO_APPROVE, TO_EXECUTE, RUNNING = "awaiting_policy", "awaiting_approval", "ready_to_execute", "tool_running"
POLICY_DENIED, APPROVAL_DENIED, TOOL_FAILED = "policy_denied", "approval_denied", "tool_failed"
FINISHED, FAILED = "finished", "failed"

BETWEEN_TURNS = frozenset((READY, CONCLUDED, POLICY_DENIED, APPROVAL_DENIED, TOOL_FAILED))
# context_compacted is the wire's "same phase, but only the matching context_built or run_failed is legal"
IN_TURN = frozenset((COMPACTED, TO_REQUEST, TO_RESPOND, TO_PROPOSE, TO_JUDGE, TO_APPROVE, TO_EXECUTE, RUNNING))

LEGAL_FROM: dict[type[wire.Event], frozenset[str]] = {
    wire.RunStarted: frozenset((NOT_STARTED,)),
    wire.ContextBuilt: BETWEEN_TURNS | {COMPACTED},
    wire.ContextCompacted: BETWEEN_TURNS,
    wire.ModelRequested: frozenset((TO_REQUEST,)),
    wire.ModelFailed: frozenset((TO_RESPOND,)),
    wire.ModelResponded: frozenset((TO_RESPOND,)),
    wire.ToolProposalsRejected: frozenset((TO_PROPOSE,)),
    wire.ToolCallProposed: frozenset((TO_PROPOSE,)),
    wire.PolicyEvaluated: frozenset((TO_JUDGE,)),
    wire.ApprovalGranted: frozenset((TO_APPROVE,)),
    wire.ApprovalDenied: frozenset((TO_APPROVE,)),
    wire.ToolStarted: frozenset((TO_EXECUTE,)),
    wire.ToolFinished: frozenset((RUNNING,)),
    wire.ToolFailed: frozenset((RUNNING,)),
    wire.RunFinished: frozenset((CONCLUDED,)),
    wire.RunFailed: BETWEEN_TURNS | IN_TURN,
}


class UsedIds(msgspec.Struct):
    """The ids a run has used. Counters (t1, t2, …) are kept as spans of numbers by prefix, other ids as digests.

    A run of a million lines has 140,000 turns; as spans they stay one pair of numbers in the resume state.
    """

    spans: dict[str, list[int]] = {}
    digests: dict[str, None] = {}

    def take(self, name: str, *, only_look: bool = False) -> bool:
        """True if the id is new; it is used from then on unless `only_look`."""
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        if not digits or len(digits) > 12 or len(prefix) > 8 or (digits[0] == "0" and digits != "0"):
            digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
            is_new = digest not in self.digests
            if is_new and not only_look:
                self.digests[digest] = None
            return is_new
        number = int(digits)
        ends = self.spans.get(prefix)
        if ends is None:
            if not only_look:
                self.spans[prefix] = [number, number + 1]
            return True
        at = bisect_right(ends, number)  # ends holds start, stop, start, stop, …: odd = inside a span
        if at & 1:
            return False
        if not only_look:
            if at and ends[at - 1] == number:
                ends[at - 1] = number + 1
            else:
                ends[at:at] = (number, number + 1)
        return True


class State(msgspec.Struct):
    """Where the replay stands. Proposed calls are kept as digests: their inputs may hold secrets and be long."""

    phase: str = NOT_STARTED
    run_id: str | None = None
    next_seq: int = 0
    step: int = 0
    turn_id: str | None = None
    call_id: str | None = None
    tool: str | None = None
    proposed: list[tuple[str, str]] = []
    turns: UsedIds = msgspec.field(default_factory=UsedIds)
    calls: UsedIds = msgspec.field(default_factory=UsedIds)
    introduced: str | None = None

    def other_turn(self, turn_id: str) -> Fault | None:
        """The fault of an event that names another turn than the one in progress."""
        if turn_id == self.turn_id:
            return None
        return "turn_mismatch", f"expected {self.turn_id!r}, found {turn_id!r}"

    def other_step(self, turn_id: str, step: int) -> Fault | None:
        """The same for the turn, then for the step."""
        if turn_id == self.turn_id and step == self.step:
            return None
        return self.other_turn(turn_id) or ("step_mismatch", f"expected {self.step}, found {step}")

    def other_call(self, call_id: str) -> Fault | None:
        """The same for the call in progress."""
        if call_id == self.call_id:
            return None
        return "call_mismatch", f"expected {self.call_id!r}, found {call_id!r}"


def digest(raw: msgspec.Raw) -> str:
    """Digest of a JSON value: the same for equal values however they are spaced, escaped or ordered; 1 is not 1.0."""
    try:
        text = msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")
    except (msgspec.DecodeError, msgspec.EncodeError, RecursionError):
        text = bytes(raw)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def odd_line(line: wire.LedgerLine, run_id: str | None) -> Refusal | str:
    """The run of a host line that holds voice events instead of a record of v 1 or 2, or why it is refused."""
    record, voices = line.record, line.voice_events
    version = "no v" if line.v is UNSET else f"v is {line.v}"
    if record is not UNSET:
        reason = "unknown_format" if voices is UNSET else "malformed"
        detail = version if voices is UNSET else "voice_events stands beside a record"
        return Refusal(reason, detail, record.event.run_id, record.seq)
    if line.v not in {1, 2, UNSET}:
        return Refusal("unknown_format", version)
    if voices is UNSET:
        return (
            Refusal("not_a_record", "an empty object")
            if line.v is UNSET
            else Refusal("malformed", "v without a record")
        )
    named = [voice.event.run_id for voice in voices]
    if line.v is not UNSET or not (run_id or named):
        what = "empty voice_events before any line names a run" if line.v is UNSET else "v beside voice_events"
        return Refusal("malformed", what)
    if any(map(wire.is_blank, named)):
        return Refusal("blank_id", "run_id of a voice event")
    run = run_id or named[0]
    other = next((name for name in named if name != run), None)
    return run if other is None else Refusal("foreign_run_id", f"expected {run!r}, found {other!r}", other)
