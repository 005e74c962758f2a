"""metaharness.event/1: runs of the adapters claude, codex and b10x."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from makers.common import REASONS, Clock, Made, Tokens, Truth, Voice, day, dumps

TAG = "metaharness.event/1"
OPERATIONS = {"Bash": "shell", "Read": "file.read", "Edit": "file.edit", "Grep": "search", "Task": "subagent.spawn"}
# pieces, so that no scanner takes this file for a leak; the value is made up
PLANTED_SECRET = "sk-" + "corpus" + "0123456789abcdef" * 2


@dataclass(slots=True)
class Plan:
    """What one run is to show. `shows` names the rarer things that must occur in it."""

    adapter: str
    task: str
    variant: str
    repetition: int
    day: int
    rounds: int
    ending: str
    shows: tuple[str, ...] = ()


@dataclass(slots=True)
class Call:
    answered: bool = False
    last_decision: str | None = None


@dataclass(slots=True)
class Stream:
    """The lines of one run. Each takes a sequence number, and so does a damaged one."""

    plan: Plan
    run: str
    voice: Voice
    clock: Clock
    truth: Truth
    lines: list[str] = field(default_factory=list)
    tail: str = ""
    limits: list[tuple[str, int | None, float | None]] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    decisions: Counter[str] = field(default_factory=Counter)
    deciders: Counter[str] = field(default_factory=Counter)

    def line(self, event: str, fields: dict[str, Any], at: str | None, tag: str = TAG) -> str:
        head: dict[str, Any] = {"format": tag, "seq": len(self.lines) + 1, "run": self.run}
        if at is not None:
            head["at"] = at
        return dumps(head | {"event": event} | fields)

    def emit(self, event: str, **fields: Any) -> None:
        """A line of metaharness's own: no time."""
        self.lines.append(self.line(event, fields, None))

    def vendor(self, event: str, **fields: Any) -> None:
        """A line made from a vendor's record: it carries the vendor's time (b10x has none)."""
        at = None if self.plan.adapter == "b10x" else self.clock.iso() + "Z"
        self.lines.append(self.line(event, fields, at))

    def damage(self, reason: str) -> None:
        text = {"text": self.voice.say(), "request_id": None}
        good = self.line("text", text, None)
        self.lines.append(
            {
                "unknown_format": self.line("text", text, None, "metaharness.event/2"),
                "unknown_event": self.line("tool.progress", {"percent": 40}, None),
                "malformed": self.line("thinking.estimate", {"estimate": 10.5, "delta": None}, None),
                "trailing_text": good + " <-- flushed twice",
                "not_json": good[: len(good) * 2 // 3],
            }[reason]
        )
        self.truth.refuse(reason)

    def warn(self, code: str, message: str) -> None:
        self.emit("warning", code=code, message=message)

    def request(self, call: str, tool: str, arguments: Any, seam: str, *, counted: bool = True) -> None:
        operation = {"operations": [OPERATIONS[tool]]} if tool in OPERATIONS else {}
        asked = seam == "hook"
        self.vendor(
            "tool.requested", call_id=call, name=tool, input=arguments, **operation, decision_required=asked,
            deadline_ms=25_000 if asked else None, seam=seam,
        )  # fmt: skip
        if counted:
            self.calls.setdefault(call, Call())

    def decide(self, call: str, decision: str, decided_by: str, latency_ms: int) -> None:
        body: dict[str, Any] = {"decision": decision}
        if decision == "deny":
            body["reason"] = self.voice.pick(REASONS)
            self.denied.add(call)
        elif decision == "replace":
            body["input"] = {"command": self.voice.command()}
        self.emit(
            "tool.decided", call_id=call, decision=body, decided_by=decided_by, seam="hook", latency_ms=latency_ms
        )
        self.decisions[decision] += 1
        self.deciders[decided_by] += 1
        if call in self.calls:
            self.calls[call].last_decision = decision

    def result(self, call: str, *, is_error: bool | None, content: str | None, **more: Any) -> None:
        size = None if content is None else len(content.encode())
        fields = {"tool_use_result": None, "exit_code": None, "outcome_source": None} | more
        self.vendor("tool.result", call_id=call, is_error=is_error, content=content, bytes=size, **fields)
        self.calls[call].answered = True

    def limit(self, window: str, used: float | None, resets_at: int | None, status: str | None) -> None:
        overage = None if self.plan.adapter == "codex" else False
        info = {
            "status": status,
            "window": window,
            "resets_at": resets_at,
            "utilization": used,
            "using_overage": overage,
        }
        self.emit("rate_limit", info=info)
        percent = used if used is None or self.plan.adapter == "codex" else used * 100
        self.limits.append((window, resets_at, percent))

    def start(self, **fields: Any) -> None:
        plan = self.plan
        unknown = dict.fromkeys(("session_id", "model", "permission_mode", "credential_source", "output_style"))
        lists = dict.fromkeys(
            ("offered_tools", "withheld", "slash_commands", "skills", "agents", "plugins", "mcp_servers")
        )
        hermetic = {
            "mode": "strict", "decisions": "ask", "imposed": [{"row": "h5", "how": "flag"}],
            "unavailable": [{"row": "h7", "why": "the operator named the working directory"}],
            "ambient_inputs": [], "installed_plugins": [],
        }  # fmt: skip
        said = unknown | {"cwd": f"/scratch/{plan.task}"} | lists | {"inputs_digest": self.voice.digits(64)} | fields
        transcript = {"path": None, "digest": None, "bytes": None}
        self.emit(
            "session.started", adapter=plan.adapter,
            adapter_class="direct_provider" if plan.adapter == "b10x" else "harness",
            harness_version=f"1.{plan.day}.0", **said, transcript=transcript, hermetic=hermetic,
        )  # fmt: skip

    def end(self, *, is_error: bool | None, word: str | None, usage: dict[str, Any] | None, **fields: Any) -> None:
        names = ("allow", "allowed"), ("deny", "denied"), ("replace", "replaced"), ("abstain", "abstained")
        census = {said: self.decisions[name] for name, said in names}
        census |= {"by_seam": {"hook": sum(self.deciders.values())}, "by_decider": dict(self.deciders)}
        defaults = {
            "final_answer": None, "observed_models": None, "is_error": is_error, "subtype": word, "stop_reason": None,
            "terminal_reason": word, "api_error_status": None, "num_turns": self.plan.rounds,
            "duration_ms": None, "duration_api_ms": None, "ttft_ms": None, "time_to_request_ms": None,
            "total_cost_usd": None, "permission_denials": None, "subagents_spawned": None, "usage": usage,
            "model_usage": None, "census": census,
        }  # fmt: skip
        self.vendor("session.ended", **(defaults | fields))
        self.truth.outcome = {True: "error", False: "success", None: None}[is_error]

    def closed(self, reason: str, process: dict[str, Any]) -> None:
        self.emit("stream.closed", process=process, events=len(self.lines), reason=reason, run_id=self.run)

    def made(self, completeness: str, *, tokens_need_the_end: bool) -> Made:
        truth = self.truth
        truth.tool_calls = len(self.calls)
        truth.denied_calls = len(self.denied)
        truth.tool_calls_unfinished = sum(
            not call.answered and call.last_decision != "deny" for call in self.calls.values()
        )
        truth.close(completeness, tokens_need_the_end=tokens_need_the_end)
        return Made(self.lines, truth, self.tail, self.limits)


def usage_object(tokens: Tokens, **more: Any) -> dict[str, Any]:
    said = {
        "input_tokens": tokens.input, "output_tokens": tokens.output, "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write, "service_tier": None, "thinking_tokens": None,
        "iterations": None, "speed": None, "cost_usd": None,
    }  # fmt: skip
    return said | more


def stream(plan: Plan) -> Stream:
    """An empty stream for the plan, with its own voice: adding a run to the corpus changes no other."""
    run = f"night-{plan.day}/{plan.task}/{plan.variant}/r{plan.repetition}"
    voice = Voice(run)
    return Stream(plan, run, voice, Clock(voice, day(plan.day, voice)), Truth("metaharness", "events", run))
