"""Rows of Codex rollouts: threads, turns, messages, requests and limits of one span of a file.

How figures become requests is in `codex_rollout_usage`, how calls end in `codex_rollout_calls`. A thing that stands in
the file twice is told once: an item counts, and the event beside it that the screen was drawn from is a shadow.
"""
# Every reader is named in codex_rollout_lines and has the same arguments.

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from analytics.wires.base import attributes, clip
from analytics.wires.codex_rollout_calls import Calls
from analytics.wires.codex_rollout_lines import ANY, Kind, Payload, chars, raw, word
from analytics.wires.codex_rollout_span import BrokenRowError, whole
from analytics.wires.codex_rollout_threads import Thread, is_older, thread_of
from analytics.wires.codex_rollout_usage import INFO, LIMITS, Info, Limits, filled, gauge, request_key, samples, used

VIEW_RANK = 20


class Reading(Calls):
    """The rows of one span of a file. Readers handle one type each; they move the state only if they do not raise."""

    def row(self, i: int, known: Kind, p: Payload) -> bool:
        """Reads a row of a known type; False if it is refused, and then the state is as it was."""
        self.kinds[i] = known.kind
        self.events[i] = known.event
        if known.reader is not None:
            try:
                getattr(self, known.reader)(i, p)
            except BrokenRowError as error:
                return self.refuse(i, error.reason, f"{known.event}: {error}")
        if p.status == "declined":
            self.declined(i, word(p.call_id))
        self.turns[i] = self.turns[i] or self.state.turn
        return True

    def introduce(self, i: int, thread: Thread | None) -> None:
        """What the run's first row in a file says of the run; a thread that is not known is the file's own."""
        self.state.begun = self.run_id
        speaks = "decisions results" if self.is_bare else "decisions results clock"
        self.also_speaks(i, speaks)
        self.rows.put(i, end_rule="turns")
        said: dict[str, Any] = {"kind": "run.started", "event": "run"}
        if thread is not None:
            said["attributes"] = attributes(session_id=thread.id, view_rank=VIEW_RANK, **thread.said)
            said["parent_run_id"] = thread.parent
        self.rows.parts.insert(0, (i, said))

    def meta(self, i: int, p: Payload) -> None:
        """The first meta names the run; those behind it are a fork's ancestors, or a resume of the same thread."""
        state, thread = self.state, thread_of(p)
        if thread is None:
            raise BrokenRowError("the thread has no id")
        is_first = state.run is None
        if is_first:
            state.run = thread.id
            state.is_paged, state.base, state.created_at = thread.is_paged, thread.base, thread.created_at
            state.is_inherited = thread.parent is not None or thread.base is not None
        if is_first or state.is_leading:
            state.root = thread.parent or thread.id
        state.kin += [name for name in (thread.id, thread.parent) if name is not None and name not in state.kin]

    def header(self, i: int, p: Payload) -> None:
        """The first row of the headerless form."""
        self.meta(i, p)

    def turn_context(self, i: int, p: Payload) -> None:
        state = self.state
        turn = word(p.turn_id)
        if turn is not None:
            state.turn = state.known_turn = turn
        state.model = word(p.model) or state.model
        state.effort = word(p.effort)
        self.rows.put(i, model=state.model, effort=state.effort)

    def turn_started(self, i: int, p: Payload) -> None:
        """The begin of a turn, which ends the doubt about an open one: a thread works on one turn at a time."""
        state = self.state
        turn = word(p.turn_id)
        if state.doubtful_turn is not None and state.doubtful_turn != turn:
            ended = {"kind": "turn.ended", "turn_id": state.doubtful_turn, "status": "replayed"}
            self.rows.parts.append((i, ended))
        is_replay = False if not state.is_inherited else self.is_older(turn, p.started_at)
        if turn is None:
            state.unnamed_turns += 1
            turn = str(state.unnamed_turns)
        else:
            state.known_turn = turn
        state.turn = turn
        state.doubtful_turn = turn if is_replay is None else None
        if is_replay:
            state.replayed_turn = turn
            self.shadows.append((i, True))

    def is_older(self, turn: str | None, started_at: Any = None) -> bool | None:
        return is_older(turn, started_at, self.run_id, self.state.created_at)

    def turn_ended(self, i: int, p: Payload) -> None:
        self.end_turn(i, p, "completed")

    def turn_aborted(self, i: int, p: Payload) -> None:
        self.end_turn(i, p, "aborted")

    def end_turn(self, i: int, p: Payload, status: str) -> None:
        """The end of a turn; one that a fork repeats is a shadow, as its begin is."""
        state = self.state
        turn = self.turns[i] = word(p.turn_id) or state.turn
        if state.is_inherited and (turn == state.replayed_turn or self.is_older(turn)):
            self.shadows.append((i, True))
        if turn == state.turn:
            state.turn = None
        if turn == state.doubtful_turn:
            state.doubtful_turn = None
        self.rows.put(i, status=status, reason=clip(word(p.reason)), duration_ms=whole(p.duration_ms))

    def said(self, i: int, p: Payload) -> None:
        self.events[i] = word(p.role) or self.events[i]
        self.texts.append((i, chars(p.content)))

    def thought(self, i: int, p: Payload) -> None:
        self.texts.append((i, chars(p.summary)))

    def shown(self, i: int, p: Payload) -> None:
        self.shadows.append((i, True))
        if type(p.message) is str:
            self.texts.append((i, len(p.message)))

    def failure(self, i: int, p: Payload) -> None:
        error = raw(p.codex_error_info, ANY)
        if type(error) is dict:
            error = next(iter(error), None)
        is_error = True if self.kinds[i] == "error" else None
        self.rows.put(i, message=clip(word(p.message)), status=clip(word(error)), is_error=is_error)

    def token_count(self, i: int, p: Payload) -> None:
        """A request if the total moved; a gauge of context and limits always."""
        state = self.state
        try:
            info = None if p.info is UNSET else INFO.decode(p.info)
        except msgspec.MsgspecError as error:
            raise BrokenRowError(str(error)) from error
        if not state.speaks_tokens and not self.is_bare:
            state.speaks_tokens = True
            self.also_speaks(i, "tokens")
        if info is not None:
            self.meter(i, info)
        windows = self.windows(i, p.rate_limits)
        if windows is not None:
            if not state.speaks_limits:
                state.speaks_limits = True
                self.also_speaks(i, "limits")
            self.rows.parts += [(i, said) for said in windows]

    def windows(self, i: int, said: Raw | UnsetType) -> list[dict[str, Any]] | None:
        """The windows of a row's limits, which most rows repeat from the one before; None: it tells of no limits."""
        if said is UNSET:
            return None
        text = bytes(said)
        if text == self.limits_before:
            return self.windows_before
        limits = raw(said, LIMITS)
        if type(limits) is not Limits:
            return None
        if b"resets_in_seconds" in text:  # which counts from the row's own time
            return samples(limits, self.ts[i].as_py())
        self.limits_before, self.windows_before = text, samples(limits, None)
        return self.windows_before

    def meter(self, i: int, info: Info) -> None:
        state, total, last = self.state, info.total_token_usage, info.last_token_usage
        window = whole(info.model_context_window)
        self.gauged.append((i, gauge(last, window), window))
        if total is None:
            return
        whole_total = filled(total, state.total)
        tokens = used(state.total, total, whole_total, last, is_inherited=state.is_inherited)
        if tokens is not None:
            key = request_key(state, self.run_id, total, last)
            self.kinds[i] = "usage"
            figures = (
                tokens.input_tokens, tokens.cached_input_tokens, tokens.cache_write_input_tokens,
                tokens.output_tokens, tokens.reasoning_output_tokens,
            )  # fmt: skip
            self.spent.append((i, key, key, *figures, state.model, state.effort))
        state.total = whole_total
