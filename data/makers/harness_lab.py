"""Harness Lab: normalized events (A), the flattened export (B), generic stdout (C), the export document."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from makers.common import REASONS, Clock, Made, Tokens, Truth, Voice, day, dumps

BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
MODELS = {"claude": "larch-5", "codex": "kite-6-codex", "generic": "tiny-1"}


@dataclass(slots=True)
class Plan:
    """What one run is to show. Shape C has no run id of its own."""

    shape: str
    agent: str
    task: str
    variant: str
    repetition: int
    day: int
    rounds: int
    ending: str = "ok"
    shows: tuple[str, ...] = ()


def base36(number: int, width: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number, 36)
        text = BASE36[rest] + text
    return text.rjust(width, "0")


@dataclass(slots=True)
class Lab:
    """The lines of one run, numbered from 0."""

    plan: Plan
    run: str
    voice: Voice
    clock: Clock
    truth: Truth
    lines: list[str] = field(default_factory=list)
    events: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    opened: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    interrupted: int = 0
    notices: int = 0
    hooks: int = 0
    words: int = 0
    listed: list[str] = field(default_factory=list)

    def emit(
        self, kind: str, payload: dict[str, Any], name: str | None = None, *, call: str | None = None,
        source: str | None = None, parent: str | None = None, duration_ms: int | None = None,
    ) -> None:  # fmt: skip
        if self.plan.shape == "C":
            said = {"kind": kind, "name": name, "call_id": call, "duration_ms": duration_ms, "payload": payload}
            self.lines.append(dumps({key: value for key, value in said.items() if value is not None}))
        else:
            self.lines.append(self.line(kind, payload, name, self.events, call, source, parent, duration_ms))
        self.events += 1

    def line(
        self, kind: str, payload: Any, name: str | None, sequence: int, call: str | None = None,
        source: str | None = None, parent: str | None = None, duration_ms: int | None = None,
    ) -> str:  # fmt: skip
        millis = self.clock.millis()
        said = {
            "event_id": f"evt_{base36(millis, 9)}{base36(self.events, 3)}{self.voice.digits(7)}", "run_id": self.run,
            "sequence": sequence, "timestamp": self.clock.now.strftime("%Y-%m-%dT%H:%M:%S.%f"), "kind": kind,
            "source": source or self.plan.agent, "name": name, "duration_ms": duration_ms,
        }  # fmt: skip
        ties = {"call_id": call, "parent_call_id": parent}
        if self.plan.shape == "A":
            said["timestamp"] += "Z"
            return dumps(said | {"payload": payload} | ties | {"raw_metadata": None})
        return dumps(said | ties | {"payload": payload, "raw_metadata": None})

    def damage(self, reason: str) -> None:
        """A damaged line takes no sequence number."""
        if self.plan.shape == "C":
            line = dumps({"kind": "usage", "payload": {"input_tokens": None, "output_tokens": 3}})
        elif reason == "unknown_event":
            line = self.line("telemetry", {}, None, 900 + self.events)
        else:
            line = self.line("system", ["not", "an", "object"], "hook", 900 + self.events)
        self.lines.append(line)
        self.truth.refuse(reason)

    def start(self, tool: str, arguments: dict[str, Any], call: str, parent: str | None = None) -> None:
        family = "command" if tool in ("Bash", "shell") else "tool"
        payload = {"tool": tool} | (arguments if family == "command" else {"input": arguments})
        self.emit(f"{family}_started", payload, tool, call=call, parent=parent)
        self.opened[call] = (family, tool)
        self.truth.tool_calls += 1

    def finish(self, call: str, status: str, output: str, *, parent: str | None = None, **more: Any) -> None:
        family, tool = self.opened.pop(call)
        payload = {"tool": tool, "status": status, "output": output} | more
        took = self.voice.between(1, 4_000)
        self.emit(f"{family}_finished", payload, tool, call=call, parent=parent, duration_ms=took)
        self.interrupted += status == "interrupted"

    def usage(self, name: str | None, tokens: Tokens, *, add: bool = True, **more: Any) -> None:
        said = {
            "input_tokens": tokens.input, "cached_input_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write, "output_tokens": tokens.output,
            "reasoning_output_tokens": tokens.reasoning,
        }  # fmt: skip
        self.emit("usage", said | more, name)
        if add:
            self.tokens.add(tokens)


def make(plan: Plan) -> Made:
    key = f"{plan.shape}/{plan.variant}/{plan.task}/r{plan.repetition}"
    voice = Voice(key)
    run = f"run_{voice.digits(8)}{plan.agent}"
    truth = Truth("harness-lab", plan.shape, None if plan.shape == "C" else run)
    lab = Lab(plan, run, voice, Clock(voice, day(plan.day, voice)), truth)
    if plan.shape == "C":
        lab.lines.append("agent 4.1 booting")
    else:
        setup = {
            "task": plan.task, "variant": plan.variant, "runner": plan.agent, "model": MODELS[plan.agent],
            "repetition": plan.repetition, "base_commit": "9f2c41d", "worktree": f"/scratch/{plan.task}",
        }  # fmt: skip
        lab.emit("run_started", setup, source="runner")
    final = {"claude": claude, "codex": codex, "generic": generic}[plan.agent](lab)
    return close(lab, final)


def claude_call(lab: Lab, number: int) -> None:
    """One call: now and then stopped by a hook, by permissions, by an interruption, or left open."""
    v = lab.voice
    tool, call = v.pick(("Bash", "Bash", "Read", "Edit", "Grep")), f"tu_{v.digits(10)}"
    lab.start(tool, {"command": v.command()} if tool == "Bash" else {"file_path": v.path()}, call)
    turn = number + lab.plan.repetition
    if turn % 13 == 5:
        hook = {"hook_event": "PreToolUse", "hook_name": f"PreToolUse:{tool}", "exit_code": 2, "outcome": "error"}
        lab.emit("system", hook | {"decision": None, "blocked": True, "message": v.pick(REASONS)}, "hook")
        lab.hooks += 1
        lab.finish(call, "error", "PreToolUse hook error: " + v.pick(REASONS))
    elif turn % 9 == 4:
        lab.emit("system", {"tool": tool, "message": "nobody can approve this request"}, "permission_denied")
        lab.notices += 1
        lab.listed += [tool, tool]
        lab.finish(call, "error", f"Permission to use {tool} has been denied")
    elif turn % 15 == 8:
        lab.finish(call, "interrupted", "")
    elif turn % 19 != 11:
        if tool == "Edit":
            lab.emit("file_change", {"path": v.path(), "kind": "edit", "tool": tool, "call_id": call}, "edit")
        lab.finish(call, "error" if v.chance(0.08) else "completed", v.output())


def claude(lab: Lab) -> Tokens | None:
    """Early per-message figures, then one final row that replaces them."""
    v, plan, model = lab.voice, lab.plan, MODELS["claude"]
    lab.emit(
        "system", {"model": model, "tools": ["Bash", "Edit", "Grep", "Read", "Task"], "mcp_servers": []}, "session_init"
    )
    context, real, messages = v.between(6_000, 12_000), 0, 0
    for number in range(1, plan.rounds + 1):
        messages += 1
        message = f"msg_{v.digits(8)}"
        if v.chance(0.4):
            lab.emit("reasoning_event", {"count": 1}, "thinking")
        used = Tokens(v.between(2, 14), context, v.between(0, 2_500), v.between(1, 20))
        context += used.cache_write
        real += used.output + v.between(30, 1_200)
        lab.usage("message_usage", used, model=model, message_id=message)
        lab.emit("assistant_message", {"text": v.say(), "message_id": message, "model": model}, "assistant")
        claude_call(lab, number)
        if number == 3:
            for name in plan.shows:
                if name.startswith("bad:"):
                    lab.damage(name[4:])
            lab.emit(
                "system", {"byte_len": 0, "type": "rate_limit_event", "keys": ["rate_limit_info"]}, "rate_limit_event"
            )
        if number == 4:
            retry = {"attempt": 1, "max_retries": 10, "error": "overloaded", "error_status": 529, "retry_delay_ms": 800}
            lab.emit("system", retry, "api_retry")
        if number == 6 and plan.rounds > 8:
            lab.emit("system", {"trigger": "auto"}, "compact_boundary")
    lab.truth.requests = messages
    if plan.ending == "timeout":
        lab.emit("error", {"message": "the agent ran out of its time"}, "agent_timeout", source="runner")
    if plan.ending in ("timeout", "cut"):
        return None
    cost = (real * 15 + lab.tokens.input * 3 + lab.tokens.cache_read // 3) / 1e6
    final = Tokens(lab.tokens.input, lab.tokens.cache_read, lab.tokens.cache_write, real)
    lab.usage("result_usage", final, add=False, final=True, total_cost_usd=cost, models=[model])
    lab.truth.cost_usd = cost
    failed = plan.ending == "blocked"
    result = {
        "subtype": "error_max_turns" if failed else "success", "is_error": failed, "num_turns": messages,
        "duration_ms": lab.clock.elapsed_ms(), "total_cost_usd": cost, "permission_denials": lab.listed,
        "stop_reason": None,
    }  # fmt: skip
    lab.emit("system", result, "result")
    return final


def codex(lab: Lab) -> None:
    """One row per turn; a refusal is only a status word."""
    v, plan = lab.voice, lab.plan
    lab.emit("system", {"model": MODELS["codex"]}, "session_configured")
    lab.emit("system", {"turn": 1}, "turn_started")
    for number in range(1, plan.rounds + 1):
        lab.emit("assistant_message", {"text": v.say()}, "assistant")
        call = f"item_{v.digits(8)}"
        if number % 4 == 3:
            lab.start("apply_patch", {"files": [{"path": v.path(), "kind": "update"}]}, call)
            lab.emit("file_change", {"path": v.path(), "kind": "update"}, "update")
            lab.finish(call, "completed", "Success")
        else:
            lab.start("shell", {"command": f"bash -lc {v.command()!r}", "cwd": f"/scratch/{plan.task}"}, call)
            if (number + plan.repetition) % 8 == 5:
                lab.finish(call, "declined", "", exit_code=None)
                lab.words += 1
            elif number < plan.rounds or plan.ending == "ok":
                code = int(v.chance(0.15))
                lab.finish(call, "failed" if code else "completed", v.output(), exit_code=code)
        used = Tokens(v.between(100, 2_000), v.between(0, 9_000), 0, v.between(20, 600), v.between(0, 19))
        lab.usage("token_count", used, cumulative=True)


def generic(lab: Lab) -> None:
    """Any agent: every usage line adds up. The runner's own launcher call is none of the agent's."""
    v, plan = lab.voice, lab.plan
    if plan.shape != "C":
        launch = {"command": "my-agent", "launcher": True}
        lab.emit("command_started", launch, "harness", call="generic-main", source="runner")
    for number in range(1, plan.rounds + 1):
        lab.emit("assistant_message", {"text": v.say()})
        call = f"a{number}"
        lab.start(v.pick(("shell", "read")), {"command": v.command()}, call)
        if number % 7 == 4:
            lab.emit("system", {"tool": "shell", "message": v.pick(REASONS)}, "permission_denied")
            lab.notices += 1
            lab.finish(call, "error", "denied")
        elif number % 9 == 6:
            lab.finish(call, "interrupted", "")
        elif number < plan.rounds or plan.ending == "ok":
            lab.finish(call, "completed", v.output(), exit_code=0)
        tokens = Tokens(v.between(100, 900), v.between(0, 900), v.between(0, 50), v.between(5, 300), v.between(0, 4))
        lab.usage(None, tokens)
        if plan.shape == "C" and number % 5 == 2:
            lab.lines.append(v.sentence())
            lab.lines.append('{"kind":"rate_limit","payload":{"window":"5h","used":0.8}}')
        if number == 3:
            for name in plan.shows:
                if name.startswith("bad:"):
                    lab.damage(name[4:])
    lab.truth.requests = plan.rounds


def close(lab: Lab, final: Tokens | None) -> Made:
    """Close open calls as the runner does, write the verdict, and settle the figures."""
    v, plan, truth = lab.voice, lab.plan, lab.truth
    left_open = 0
    if plan.shape == "C" or plan.ending == "cut":
        left_open = len(lab.opened)
    else:
        for call, (family, tool) in list(lab.opened.items()):
            synthetic = {"status": "interrupted", "synthetic": True}
            lab.emit(f"{family}_finished", synthetic, tool, call=call, source="harnesslab")
            lab.interrupted += 1
        if plan.agent == "generic":
            ended = {"exit_code": 0, "output": ""}
            lab.emit("command_finished", ended, "harness", call="generic-main", source="runner", duration_ms=9_000)
        outcome = "fail" if plan.ending != "ok" else v.pick(("pass", "pass", "fail", "not_verified"))
        status = {"ok": "completed", "timeout": "timeout", "blocked": "blocked"}[plan.ending]
        code = int(outcome != "pass")
        lab.emit("system", {"outcome": outcome, "exit_code": code, "timed_out": False}, "verification", source="runner")
        verdict = {"status": status, "outcome": outcome, "error": None, "exit_code": code}
        lab.emit("run_finished", verdict, source="runner", duration_ms=lab.clock.elapsed_ms())
        truth.outcome = outcome
    kept = final or lab.tokens
    truth.input_tokens = kept.input + kept.cache_read + kept.cache_write
    truth.uncached_input_tokens, truth.cache_read_tokens = kept.input, kept.cache_read
    truth.cache_write_tokens, truth.output_tokens, truth.reasoning_tokens = (
        kept.cache_write,
        kept.output,
        kept.reasoning,
    )
    truth.denied_calls = max(lab.notices, len(lab.listed) - lab.notices) + lab.hooks + lab.words
    truth.tool_calls_unfinished = lab.interrupted + left_open
    if plan.agent == "claude":  # early figures are a lower bound even in a closed run
        truth.tokens_are_lower_bound = final is None
    truth.close(
        "undecidable" if plan.shape == "C" else "truncated" if plan.ending == "cut" else "closed",
        tokens_need_the_end=True,
    )
    torn = plan.ending == "cut" and plan.shape == "A"
    tail = lab.line("assistant_message", {"text": v.say()}, "assistant", lab.events)[:-40] if torn else ""
    return Made(lab.lines, truth, tail)


def document(made: list[tuple[Plan, Made]]) -> str:
    """`experiment export`: one JSON document, the events inline under their run."""
    runs = []
    for plan, run in made:
        events = [{key: value for key, value in json.loads(line).items() if key != "run_id"} for line in run.lines]
        verdict = events[-1]["payload"]
        runs.append(
            {
                "id": run.truth.run_id, "task": plan.task, "variant": plan.variant, "repetition": plan.repetition,
                "status": verdict["status"], "outcome": verdict["outcome"],
                "reproducibility": {"runner": plan.agent, "metrics_version": "2"}, "metrics": None, "events": events,
            }
        )  # fmt: skip
    experiment = {
        "id": "exp_0001",
        "name": "harbour-sweep",
        "status": "completed",
        "repetitions": 1,
        "harnesslab_version": "0.3.0",
    }
    return (
        json.dumps(
            {"schema_version": "2", "experiment": experiment, "variants": [], "tasks": [], "runs": runs}, indent=1
        )
        + "\n"
    )
