"""The replay of a platonic-core run: each line is checked against the machine, then put into columns.

Order of checks: sequence number, run id, phase, then the event's own rules; a blank identifier comes before all of
them, as the crate finds it while parsing. A refused line changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

from msgspec import UNSET

from analytics.wires import platonic_core_lines as wire, platonic_core_state as at
from analytics.wires.base import LAST_MICROS, Refusal, Rows, attributes, clip
from analytics.wires.platonic_core_state import Fault

Rule = Callable[["Replay", int, Any], Fault | None]

SPEAKS = "tokens decisions results starts clock outcome"
BLANK: Fault = ("blank_id", "")  # which one is looked up where the line is refused
MAX_MS = LAST_MICROS // 1000  # a later time is damage and stays NULL
_kept = lru_cache(maxsize=1024)(attributes)  # for what repeats from line to line


class Replay:
    """One span of lines: the machine and the columns it fills. A handler checks first and changes things only after."""

    def __init__(self, state: at.State, n: int) -> None:
        self.state = state
        self.version: int | None = None
        self.fresh: list[wire.Proposal] = []  # this span's proposals, compared by their bytes first
        self.rows = Rows(n, constants={"run_id_origin": "wire"})
        blank = self.rows.blank
        self.run_id, self.seq, self.ts, self.ts_origin, self.event, self.kind = blank(
            "run_id", "seq", "ts", "ts_origin", "event", "kind"
        )
        self.agent_id, self.turn_id, self.step, self.call_id, self.call_occurrence, self.tool = blank(
            "agent_id", "turn_id", "step", "call_id", "call_occurrence", "tool"
        )
        self.decision, self.decided_by, self.evidence, self.status, self.outcome = blank(
            "decision", "decided_by", "evidence", "status", "outcome"
        )
        self.is_error, self.reason, self.message, self.model, self.text_chars, self.attributes = blank(
            "is_error", "reason", "message", "model", "text_chars", "attributes"
        )
        self.requests, self.input_tokens, self.output_tokens, self.usage_scope = blank(
            "requests", "input_tokens", "output_tokens", "usage_scope"
        )
        self.end_rule, self.speaks = blank("end_rule", "speaks")

    def run(self, objs: list[Any], shape: str) -> Rows:
        """Replays the lines in order; the state stands behind the last good one afterwards."""
        state = self.state
        is_ledger, is_bare = shape == "ledger", shape == "event"
        run_ids, seqs, times, origins, events = self.run_id, self.seq, self.ts, self.ts_origin, self.event
        seq: int | None = None
        for i, obj in enumerate(objs):
            if is_ledger:
                record, version = obj.record, obj.v
                if record is UNSET or version not in {1, 2} or obj.voice_events is not UNSET:
                    self._odd_line(i, obj)
                    continue
                self.version = version
            else:
                record = obj
            if is_bare:
                event = record
            else:
                event, seq = record.event, record.seq
            legal, name, handler = TABLE[type(event)]
            run_id = event.run_id
            fault: Fault | None
            if seq != state.next_seq and not is_bare:
                fault = ("sequence_mismatch", f"expected {state.next_seq}, found {seq}")
            elif run_id != state.run_id and state.run_id is not None:
                fault = ("foreign_run_id", f"expected {state.run_id!r}, found {run_id!r}")
            elif state.phase not in legal:
                fault = ("illegal_transition", f"from {state.phase} on {name}")
            else:
                fault = handler(self, i, event)
            if fault is not None:
                self._refuse(i, fault, event, seq)
                continue
            run_ids[i] = run_id
            events[i] = name
            if not is_bare:
                state.next_seq += 1
                seqs[i] = seq
                if record.occurred_at_ms <= MAX_MS:
                    times[i] = record.occurred_at_ms * 1000
                    origins[i] = "host"
        if self.fresh:
            state.proposed = [(p.tool, at.digest(p.input)) for p in self.fresh]
        return self.rows

    def _refuse(self, i: int, fault: Fault, event: wire.Event, seq: int | None) -> None:
        """A blank identifier comes first: the crate finds it while parsing, before any rule of the replay."""
        for field, value in wire.identifiers(event):
            if wire.is_blank(value):
                fault = ("blank_id", f"{field} is {value!r}")
                break
        self.rows.refused[i] = Refusal(*fault, None if wire.is_blank(event.run_id) else event.run_id, seq)

    def _odd_line(self, i: int, line: wire.LedgerLine) -> None:
        found = at.odd_line(line, self.state.run_id)
        if isinstance(found, Refusal):
            self.rows.refused[i] = found
            return
        self.run_id[i], self.event[i], self.kind[i] = found, "voice_events", "system"
        self.turn_id[i] = line.voice_events[0].event.turn_id if line.voice_events else None
        self._introduce(i, found)

    def _introduce(self, i: int, run_id: str) -> None:
        """A run's first row says what its stream can speak of and how its end is judged."""
        if self.state.introduced != run_id:
            self.end_rule[i], self.speaks[i] = "replayed", SPEAKS
            self.state.introduced = run_id

    def _call_row(self, i: int, kind: str) -> None:
        state = self.state
        self.kind[i] = kind
        self.turn_id[i], self.call_id[i], self.call_occurrence[i], self.tool[i] = (
            state.turn_id,
            state.call_id,
            1,
            state.tool,
        )

    def _run_started(self, i: int, event: wire.RunStarted) -> Fault | None:
        agent, profile, revision = event.agent_id, event.profile_id, event.profile_revision
        if agent is UNSET:
            if profile is UNSET or revision is UNSET:
                return "malformed", "run_started has neither agent_id nor profile_id with profile_revision"
            if self.version == 1:
                return "malformed", "run_started has no agent_id; a profile_id needs v 2"
            if revision == 0:
                return "malformed", "profile_revision is 0; it counts from 1"
        elif profile is not UNSET or revision is not UNSET:
            return "malformed", "run_started has both agent_id and a profile"
        if any(wire.is_blank(name) for name in (event.run_id, agent, profile) if name is not UNSET):
            return BLANK
        said = {"agent_id": agent, "profile_id": profile, "profile_revision": revision}
        self.kind[i], self.requests[i] = "run.started", 0
        self.agent_id[i] = None if agent is UNSET else agent
        self.attributes[i] = attributes(**{key: value for key, value in said.items() if value is not UNSET})
        self._introduce(i, event.run_id)
        self.state.run_id, self.state.phase = event.run_id, at.READY
        return None

    def _context_built(self, i: int, event: wire.ContextBuilt) -> Fault | None:
        state, turn, budget = self.state, event.turn_id, event.context.token_budget
        if state.phase == at.COMPACTED and turn != state.turn_id:
            return self.state.other_turn(event.turn_id)
        lanes: dict[str, int] = {}
        for fragment in event.context.fragments:
            lanes[fragment.lane] = lanes.get(fragment.lane, 0) + fragment.estimated_tokens
        if sum(lanes.values()) > budget:
            return "context_budget_exceeded", f"{sum(lanes.values())} estimated tokens, budget {budget}"
        if wire.is_blank(turn):
            return BLANK
        if not state.turns.take(turn):
            return "turn_reused", repr(turn)
        self.kind[i], self.turn_id[i] = "context", turn
        fragments = len(event.context.fragments)
        self.attributes[i] = attributes(token_budget=budget, estimated_tokens=lanes, fragments=fragments)
        state.turn_id, state.phase = turn, at.TO_REQUEST
        return None

    def _context_compacted(self, i: int, event: wire.ContextCompacted) -> Fault | None:
        start, stop = event.dropped_turn_start, event.dropped_turn_end_exclusive
        if wire.is_blank(event.turn_id):
            return BLANK
        if not self.state.turns.take(event.turn_id, only_look=True):
            return "turn_reused", repr(event.turn_id)
        if start >= stop:
            return "invalid_compaction_range", f"turns {start} to {stop}, end excluded"
        self.kind[i], self.turn_id[i] = "compaction", event.turn_id
        self.attributes[i] = attributes(
            estimated_tokens_before=event.estimated_tokens_before,
            estimated_tokens_after=event.estimated_tokens_after,
            dropped_turn_start=start,
            dropped_turn_end_exclusive=stop,
        )
        self.state.turn_id, self.state.phase = event.turn_id, at.COMPACTED
        return None

    def _model_requested(self, i: int, event: wire.ModelRequested) -> Fault | None:
        if fault := self.state.other_step(event.turn_id, event.step):
            return fault
        if wire.is_blank(event.model):
            return BLANK
        self.kind[i], self.requests[i], self.model[i] = "request", 1, event.model
        self.turn_id[i], self.step[i] = event.turn_id, event.step
        self.state.phase = at.TO_RESPOND
        return None

    def _model_failed(self, i: int, event: wire.ModelFailed) -> Fault | None:
        if fault := self.state.other_step(event.turn_id, event.step):
            return fault
        self.kind[i], self.reason[i], self.message[i] = "retry", event.reason, clip(event.reason)
        self.turn_id[i], self.step[i] = event.turn_id, event.step
        self.state.phase = at.TO_REQUEST
        return None

    def _model_responded(self, i: int, event: wire.ModelResponded) -> Fault | None:
        if fault := self.state.other_step(event.turn_id, event.step):
            return fault
        model, calls, usage = event.served_model, event.proposed_calls, event.usage
        if (model is not None and wire.is_blank(model)) or any(wire.is_blank(call.tool) for call in calls):
            return BLANK
        self.kind[i], self.usage_scope[i], self.model[i] = "usage", "delta", model
        self.turn_id[i], self.step[i] = event.turn_id, event.step
        self.text_chars[i] = len(event.output.content)
        self.attributes[i] = _kept(proposed_calls=len(calls), role=event.output.role)
        if usage is not None:
            self.input_tokens[i], self.output_tokens[i] = usage.input_tokens, usage.output_tokens
        self.fresh = calls
        self.state.step += 1
        self.state.phase = at.TO_PROPOSE if calls else at.CONCLUDED
        return None

    def _turn_settled(self, phase: str) -> None:
        self.state.phase, self.state.proposed, self.fresh = phase, [], []

    def _tool_proposals_rejected(self, i: int, event: wire.ToolProposalsRejected) -> Fault | None:
        if fault := self.state.other_turn(event.turn_id):
            return fault
        if wire.is_blank(event.reason):
            return "empty_rejection_reason", repr(event.reason)
        self.kind[i], self.status[i], self.reason[i] = "warning", "tool_proposals_rejected", event.reason
        self.turn_id[i] = event.turn_id
        self._turn_settled(at.CONCLUDED)
        return None

    def _tool_call_proposed(self, i: int, event: wire.ToolCallProposed) -> Fault | None:
        if fault := self.state.other_turn(event.turn_id):
            return fault
        call, state = event.call, self.state
        if wire.is_blank(call.id) or wire.is_blank(call.tool):
            return BLANK
        if not state.calls.take(call.id, only_look=True):
            return "call_reused", repr(call.id)
        if not any(p.tool == call.tool and p.input == call.input for p in self.fresh):
            known = state.proposed or [(p.tool, at.digest(p.input)) for p in self.fresh]
            if (call.tool, at.digest(call.input)) not in known:
                return "unproposed_call", repr(call.tool)
        state.calls.take(call.id)
        state.call_id, state.tool = call.id, call.tool
        self._call_row(i, "tool.requested")
        self.attributes[i] = _kept(effect=call.effect)
        self._turn_settled(at.TO_JUDGE)
        return None

    def _policy_evaluated(self, i: int, event: wire.PolicyEvaluated) -> Fault | None:
        if fault := self.state.other_call(event.call_id):
            return fault
        self._call_row(i, "tool.decided")
        self.decided_by[i], self.evidence[i] = "policy", "policy"
        verdict = event.decision
        if isinstance(verdict, wire.Allow):
            self.decision[i], self.state.phase = "allow", at.TO_EXECUTE
        else:
            is_ask = isinstance(verdict, wire.RequireApproval)
            self.reason[i] = verdict.reason
            self.decision[i], self.state.phase = ("ask", at.TO_APPROVE) if is_ask else ("deny", at.POLICY_DENIED)
        return None

    def _approval(self, i: int, event: wire.ApprovalGranted | wire.ApprovalDenied) -> Fault | None:
        if fault := self.state.other_call(event.call_id):
            return fault
        if wire.is_blank(event.actor_id):
            return BLANK
        self._call_row(i, "approval")
        self.decided_by[i], self.evidence[i] = event.actor_id, "approval"
        if isinstance(event, wire.ApprovalDenied):
            self.decision[i], self.reason[i], self.state.phase = "deny", event.reason, at.APPROVAL_DENIED
        else:
            self.decision[i], self.state.phase = "allow", at.TO_EXECUTE
        return None

    def _tool_started(self, i: int, event: wire.ToolStarted) -> Fault | None:
        if fault := self.state.other_call(event.call_id):
            return fault
        self._call_row(i, "tool.started")
        self.state.phase = at.RUNNING
        return None

    def _tool_finished(self, i: int, event: wire.ToolFinished) -> Fault | None:
        result = event.result
        if fault := self.state.other_call(result.call_id):
            return fault
        if any(map(wire.is_blank, result.artifacts)):
            return BLANK
        self._call_row(i, "tool.finished")
        self.is_error[i], self.status[i], self.text_chars[i] = False, "finished", len(result.summary)
        self.state.phase = at.CONCLUDED
        return None

    def _tool_failed(self, i: int, event: wire.ToolFailed) -> Fault | None:
        if fault := self.state.other_call(event.call_id):
            return fault
        self._call_row(i, "tool.finished")
        self.is_error[i], self.status[i], self.reason[i] = True, "failed", event.reason
        self.state.phase = at.TOOL_FAILED
        return None

    def _run_finished(self, i: int, _event: wire.RunFinished) -> Fault | None:
        self.kind[i], self.status[i], self.outcome[i] = "run.ended", "run_finished", "finished"
        self.state.phase = at.FINISHED
        return None

    def _run_failed(self, i: int, event: wire.RunFailed) -> Fault | None:
        self.kind[i], self.status[i], self.reason[i] = "run.ended", "run_failed", event.reason
        self.outcome[i] = "canceled" if event.reason == "run canceled" else "failed"
        self._turn_settled(at.FAILED)
        return None

    RULES: ClassVar[dict[type[wire.Event], Rule]] = {
        wire.RunStarted: _run_started,
        wire.ContextBuilt: _context_built,
        wire.ContextCompacted: _context_compacted,
        wire.ModelRequested: _model_requested,
        wire.ModelFailed: _model_failed,
        wire.ModelResponded: _model_responded,
        wire.ToolProposalsRejected: _tool_proposals_rejected,
        wire.ToolCallProposed: _tool_call_proposed,
        wire.PolicyEvaluated: _policy_evaluated,
        wire.ApprovalGranted: _approval,
        wire.ApprovalDenied: _approval,
        wire.ToolStarted: _tool_started,
        wire.ToolFinished: _tool_finished,
        wire.ToolFailed: _tool_failed,
        wire.RunFinished: _run_finished,
        wire.RunFailed: _run_failed,
    }


TABLE = {kind: (at.LEGAL_FROM[kind], wire.EVENT_NAMES[kind], rule) for kind, rule in Replay.RULES.items()}
