"""Codex rollouts: the meter runs on through a thread, a fork replays its parent, limits stand beside the meter."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from makers.common import Made, Tokens, dumps
from makers.native import FOLDER, NativeFile, Row, after, beginning, count_codex, uuid7

Files = dict[str, list[Made]]
MODEL, WINDOW = "kite-6-codex", 272_000
OFFSET = 5_400  # the account's windows begin an hour and a half off the full five hours
Call = tuple[str, str, str]  # kind of item, command, how it ended


@dataclass(slots=True)
class Rollout(NativeFile):
    """One thread. `records` are its rows without their times, for a fork to replay; `calls` for an exec capture."""

    thread: str = ""
    turn: str = ""
    total: Tokens = field(default_factory=Tokens)
    last: Tokens = field(default_factory=Tokens)
    records: list[tuple[str, Row]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    percent: int = 100

    def row(self, kind: str, payload: Row) -> None:
        self.write({"timestamp": self.now(), "type": kind, "payload": payload})
        self.records.append((kind, payload))

    def event(self, kind: str, **fields: Any) -> None:
        self.row("event_msg", {"type": kind} | fields)

    def item(self, kind: str, **fields: Any) -> None:
        self.row("response_item", {"type": kind} | fields)

    def start(self, source: str = "cli", **fields: Any) -> None:
        meta = {
            "id": self.thread, "timestamp": self.now(), "cwd": FOLDER, "originator": f"codex_{source}_rs",
            "cli_version": "0.140.0", "instructions": None, "source": source, "model_provider": "made-up",
        }  # fmt: skip
        self.row("session_meta", meta | fields | {"git": {"branch": "quay"}})

    def begin_turn(self, prompt: str) -> None:
        self.turn = uuid7(self.voice, round(self.clock.now.timestamp() * 1000))
        self.event(
            "task_started", turn_id=self.turn, started_at=int(self.clock.now.timestamp()), model_context_window=WINDOW
        )
        context = {"cwd": FOLDER, "approval_policy": "on-request", "sandbox_policy": {"mode": "workspace-write"},
                   "model": MODEL, "effort": "medium", "summary": "auto", "turn_id": self.turn}  # fmt: skip
        self.row("turn_context", context)
        self.item("message", role="user", content=[{"type": "input_text", "text": prompt}])
        self.event("user_message", message=prompt, images=[])

    def end_turn(self) -> None:
        said = self.voice.say()
        self.item("message", role="assistant", content=[{"type": "output_text", "text": said}])
        self.event("agent_message", message=said)
        self.event("task_complete", turn_id=self.turn, last_agent_message=said, duration_ms=self.clock.elapsed_ms())

    def open_call(self) -> tuple[str, str]:
        call, command = f"call_{self.voice.digits(24)}", self.voice.command()
        self.item("function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=call)
        self.call_opened(call)
        return call, command

    def close_call(self, call: str, output: str, how: str = "finished") -> None:
        self.item("function_call_output", call_id=call, output=output)
        self.call_ended(call, how)

    def run(self) -> None:
        """A command that ran."""
        call, command = self.open_call()
        code = int(self.voice.chance(0.2))
        self.close_call(call, f"Process exited with code {code}\nOutput:\n{self.output()}")
        self.calls.append(("command_execution", command, "failed" if code else "completed"))

    def patch(self, output: str, how: str = "finished") -> None:
        call = f"call_{self.voice.digits(24)}"
        text = f"*** Begin Patch\n*** Update File: {self.voice.path()}\n+{self.voice.sentence()}\n*** End Patch"
        self.item("custom_tool_call", status="completed", call_id=call, name="apply_patch", input=text)
        self.call_opened(call)
        self.item("custom_tool_call_output", call_id=call, output=output)
        self.call_ended(call, how)
        self.calls.append(("file_change", self.voice.path(), "declined" if how == "denied" else "completed"))

    def tokens(self, limits: Row | None, *, is_moved: bool = True) -> None:
        """A token_count. Not moved: the meter as it was, written again because the limits are new."""
        v = self.voice
        used = self.last
        if is_moved:
            cached, output = v.between(3_000, 9_000), v.between(90, 900)
            used = Tokens(cached + v.between(300, 2_500), cached, 0, output, output // 3)
            self.total.add(used)
            count_codex(self.truth, used)
            self.truth.requests = (self.truth.requests or 0) + 1
            self.last = used
        info: Row = {"total_token_usage": vector(self.total), "last_token_usage": vector(used)}
        self.event("token_count", info=info | {"model_context_window": WINDOW}, rate_limits=limits)
        self.sampled(limits)

    def sampled(self, limits: Row | None) -> None:
        for name, minutes in (("primary", 300), ("secondary", 10_080)):
            window = (limits or {}).get(name)
            if limits is not None and window is not None:
                self.limits.append((limits["limit_id"], window["resets_at"], window["used_percent"], minutes))

    def account(self, limit: str = "codex", *, has_week: bool = True) -> Row:
        """The limits as they stand: five hours and a week, told by their minutes, one of them one minute short."""
        self.percent += self.voice.between(0, 90)
        five = {"used_percent": self.percent / 10, "window_minutes": 299, "resets_at": after(self.clock, 5, OFFSET)}
        week = {"used_percent": self.percent / 40, "window_minutes": 10_080,
                "resets_at": after(self.clock, 168, OFFSET)}  # fmt: skip
        return {"limit_id": limit, "limit_name": None, "primary": five, "secondary": week if has_week else None,
                "credits": None, "plan_type": "made-up", "rate_limit_reached_type": None}  # fmt: skip


def vector(tokens: Tokens) -> Row:
    return {
        "input_tokens": tokens.input, "cached_input_tokens": tokens.cache_read, "output_tokens": tokens.output,
        "reasoning_output_tokens": tokens.reasoning, "total_tokens": tokens.input + tokens.output,
    }  # fmt: skip


def rollout(name: str, on: int) -> Rollout:
    voice, clock, truth = beginning("codex-rollout", "rollout", name, on)
    truth.run_id = uuid7(voice, round(clock.now.timestamp() * 1000))
    return Rollout(voice, clock, truth, thread=truth.run_id)


def path(r: Rollout) -> str:
    began = json.loads(r.lines[0])["payload"]["timestamp"]
    return f"sessions/{began[:10].replace('-', '/')}/rollout-{began[:19].replace(':', '-')}-{r.thread}.jsonl"


def family() -> Files:
    """A thread of two turns, and a fork of its first turn that goes on and is left in the middle of a turn."""
    r = rollout("family", 2)
    r.start()
    r.begin_turn("Round the totals of the ledger.")
    r.run()
    r.tokens(r.account())
    r.patch("patch rejected by user", "denied")
    r.tokens(None)
    r.tokens(r.account(), is_moved=False)
    r.item("web_search_call", status="completed", action={"type": "search", "query": "rounding of halves"})
    r.end_turn()
    replayed, total = list(r.records), copy(r.total)
    r.begin_turn("Now the columns.")
    r.run()
    call, _ = r.open_call()
    r.close_call(call, "aborted by user after 12.4s", "interrupted")
    r.tokens(r.account())
    r.run()
    r.tokens(r.account(), is_moved=False)
    r.tokens(None)
    r.end_turn()
    f = rollout("fork", 3)
    f.truth.parent_run_id = r.thread
    f.start(forked_from_id=r.thread)
    for kind, payload in replayed:
        f.row(kind, payload)
        if payload.get("type") == "token_count":
            f.sampled(payload["rate_limits"])
    f.total = total
    f.begin_turn("Round down instead.")
    f.run()
    f.tokens(f.account())
    f.run()
    f.tokens(None)
    f.end_turn()
    f.begin_turn("And the crates?")
    f.run()
    f.tokens(None)
    f.open_call()
    return {path(r): [r.made("closed", is_lower_bound=False)], path(f): [f.made("open", is_lower_bound=False)]}


def packed() -> Files:
    """Kept as .zst: two limits side by side, a declined command, a compaction with the old items in it, a cut line."""
    r = rollout("packed", 4)
    r.start(git=None)
    r.begin_turn("Which gate is open?")
    r.run()
    r.tokens(r.account())
    r.tokens(r.account("codex_swift", has_week=False), is_moved=False)
    call, command = r.open_call()
    r.event(
        "exec_command_end", call_id=call, turn_id=r.turn, command=command.split(" "), exit_code=-1, status="declined",
        duration={"secs": 0, "nanos": 0},
    )  # fmt: skip
    r.close_call(call, "the command was not run", "denied")
    r.event("token_count", info=None, rate_limits=r.account())
    r.sampled(json.loads(r.lines[-1])["payload"]["rate_limits"])
    old = [payload for kind, payload in r.records if kind == "response_item"]
    r.row("compacted", {"message": r.voice.say(), "replacement_history": old})
    r.event("context_compacted")
    r.seen(compactions=1)
    r.run()
    r.tokens(None)
    r.lines.append(dumps({"timestamp": r.now(), "type": "response_item", "payload": {"type": "reasoning"}})[:-9])
    r.truth.refuse("not_json")
    r.end_turn()
    return {path(r) + ".zst": [r.made("closed", is_lower_bound=True)]}


def of_a_harness(session: str, on: int) -> Rollout:
    """The agent's own file of a session that a harness ran and told of, too."""
    r = rollout(session, on)
    r.thread = r.truth.run_id = session
    r.start("exec")
    r.begin_turn("Trim the harbour.")
    r.run()
    r.tokens(None)
    r.end_turn()
    return r


def printed() -> Rollout:
    """One turn run by `codex exec`, whose standard output was kept, too; no limits are told."""
    r = rollout("printed", 6)
    r.start("exec")
    r.begin_turn("Count the lanterns.")
    for _ in range(2):
        r.run()
        r.tokens(None)
    r.patch("Success. Updated the following files:\nM src/lantern.py")
    r.tokens(None)
    r.end_turn()
    return r
