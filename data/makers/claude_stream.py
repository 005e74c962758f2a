"""Claude Code's stream-json: what the standard output of a session without a terminal looked like, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from makers import claude_code
from makers.claude_code import HELPER, MODEL, NOT_GRANTED, REFUSED, RULED_OUT, Answer, Session
from makers.common import Made, Tokens
from makers.native import FOLDER, NativeFile, Row, after, beginning, uuid4

Files = dict[str, list[Made]]
OFFSET = 3_600  # the account's windows begin an hour off those of the metaharness runs


@dataclass(slots=True)
class Capture(NativeFile):
    """One process. Its rows are stamped before an answer is finished, so they never show the final output."""

    session: str = ""
    version: str = ""
    has_partials: bool = False
    printed: dict[str | None, int] = field(default_factory=dict)
    followed: list[Session] = field(default_factory=list)
    listed: list[Row] = field(default_factory=list)

    def row(self, kind: str, **fields: Any) -> None:
        self.write({"type": kind} | fields | {"session_id": self.session, "uuid": uuid4(self.voice)})

    def start(self) -> None:
        tools = ["Bash", "Edit", "Read", "Task", "Write"]
        self.row(
            "system", subtype="init", cwd=FOLDER, tools=tools, mcp_servers=[], model=MODEL, permissionMode="default",
            slash_commands=[], apiKeySource="none", claude_code_version=self.version, output_style="default",
            agents=["scout"], skills=[], plugins=[],
        )  # fmt: skip

    def follow(self, s: Session, parent: str | None = None, *, is_cut: bool = False) -> None:
        """Show what the session has done since the last time; `parent` is the call a subagent works under.

        is_cut: the last answer is still running, so with partial messages its end is not there.
        """
        if s.agent not in self.printed:
            self.followed.append(s)
        rows = s.shown[self.printed.get(s.agent, 0) :]
        self.printed[s.agent] = len(s.shown)
        answers = {answer.id: answer for answer in s.finals}
        last: Answer | None = None
        for kind, row in rows:
            answer = answers.get(row["message"].get("id", ""))
            if last is not None and answer is not last and self.has_partials:
                self.delta(last, parent)
            if answer is None:
                last = None
                if not isinstance(row["message"]["content"], str):  # the prompt is not printed
                    said = {"tool_use_result": row["toolUseResult"]}
                    self.row(kind, message=row["message"], parent_tool_use_id=parent, **said)
                continue
            early = row["message"] | {"stop_reason": None, "usage": answer.usage(answer.early)}
            if answer is not last and self.has_partials:
                event = {"type": "message_start", "message": early | {"content": []}}
                self.row("stream_event", event=event, parent_tool_use_id=parent, ttft_ms=self.voice.between(300, 2_000))
            self.row(kind, message=early, parent_tool_use_id=parent)
            last = answer
        if last is not None and self.has_partials and not is_cut:
            self.delta(last, parent)

    def delta(self, answer: Answer, parent: str | None) -> None:
        usage = answer.usage(answer.tokens.output)
        del usage["cache_creation"]
        event = {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage}
        self.row("stream_event", event=event, parent_tool_use_id=parent)

    def limit(self, kind: str, hours: int, used: float | None, status: str = "allowed") -> None:
        info: Row = {"status": status, "resetsAt": after(self.clock, hours, OFFSET), "rateLimitType": kind}
        if used is not None:
            info["utilization"] = used
        self.row("rate_limit_event", rate_limit_info=info | {"isUsingOverage": False})
        self.limits.append((kind, info["resetsAt"], None if used is None else used * 100, hours * 60))

    def list_denial(self, call: str, tool: str) -> None:
        self.listed.append({"tool_name": tool, "tool_use_id": call, "tool_input": {}})

    def result(self) -> None:
        """The end: usage of the main chain as its rows show it; modelUsage with subagents and a title by the helper."""
        v, truth = self.voice, self.truth
        title = Tokens(v.between(200, 400), 0, 0, v.between(8, 20))
        models: dict[str, Tokens] = {HELPER: Tokens()}
        models[HELPER].add(title)
        for s in self.followed:
            for answer in s.finals:
                models.setdefault(answer.model, Tokens()).add(answer.tokens)
        costs = {m: round((t.output * 15 + t.input * 3 + t.cache_read * 0.3 + t.cache_write * 3.75) / 1e6, 6)
                 for m, t in models.items()}  # fmt: skip
        by_model = {
            model: {
                "inputTokens": used.input, "outputTokens": used.output, "cacheReadInputTokens": used.cache_read,
                "cacheCreationInputTokens": used.cache_write, "webSearchRequests": 0, "costUSD": costs[model],
                "contextWindow": 200_000, "maxOutputTokens": 32_000,
            }
            for model, used in models.items()
        }  # fmt: skip
        main = Tokens()
        for answer in self.followed[0].finals:
            used = answer.tokens
            main.add(Tokens(used.input, used.cache_read, used.cache_write, answer.early))
        usage = {"input_tokens": main.input, "cache_creation_input_tokens": main.cache_write,
                 "cache_read_input_tokens": main.cache_read, "output_tokens": main.output}  # fmt: skip
        truth.cost_usd = round(sum(costs.values()), 6)
        self.row(
            "result", subtype="success", is_error=False, duration_ms=v.between(9_000, 90_000),
            duration_api_ms=v.between(5_000, 9_000), num_turns=len(self.followed[0].finals), result=v.say(),
            total_cost_usd=truth.cost_usd, usage=usage, modelUsage=by_model, permission_denials=self.listed,
        )  # fmt: skip
        whole = Tokens()
        for used in models.values():
            whole.add(used)
        self.settle(whole)
        truth.outcome = "success"

    def settle(self, whole: Tokens) -> None:
        truth = self.truth
        truth.uncached_input_tokens, truth.output_tokens = whole.input, whole.output
        truth.cache_read_tokens, truth.cache_write_tokens = whole.cache_read, whole.cache_write
        truth.input_tokens = whole.input + whole.cache_read + whole.cache_write
        truth.requests = sum(len(s.finals) for s in self.followed)
        for s in self.followed:
            truth.tool_calls += s.truth.tool_calls
            truth.denied_calls += s.truth.denied_calls
            self.open_calls |= s.open_calls
            self.interrupted += s.interrupted


def capture(name: str, s: Session, *, has_partials: bool = False) -> Capture:
    voice, clock, truth = beginning("claude-stream", "stream", name, 0)
    clock.now = s.clock.now
    truth.run_id = s.session
    return Capture(voice, clock, truth, session=s.session, version=s.version, has_partials=has_partials)


def whole() -> Files:
    """A result, two subagents, limits; a call refused by the list, one by its text, one by both."""
    s = claude_code.session("printed", 7, "2.1.150", "growing")
    c = capture("printed", s)
    c.start()
    c.limit("five_hour", 5, 0.62)
    s.work("Read", thinks=True)
    c.follow(s)
    for prompt in ("Where is the tide table read?", "Where is it written?"):
        (call,) = s.answer("Task")
        c.follow(s)
        agent = claude_code.subagent(s)
        agent.prompt(prompt)
        agent.work("Bash")
        agent.answer()
        c.follow(agent, call)
        claude_code.task_result(s, call, agent)
        c.follow(s)
    call, other, third = s.answer("Write", "Read", "Bash")
    s.result(call, NOT_GRANTED, "denied")
    c.list_denial(call, "Write")
    s.result(other, RULED_OUT.replace("Bash with command make harbour", "Read"), "denied")
    s.result(third, "The hook did not let it run.", "denied")
    c.list_denial(third, "Bash")
    c.follow(s)
    c.row("system", subtype="tide_mark", height=3)
    c.seen(opaque_records=1)
    c.limit("five_hour", 5, 0.93, "allowed_warning")
    c.limit("seven_day", 168, None)
    s.answer()
    c.follow(s)
    c.lines.append("winch: 3 warnings, see the log")
    c.result()
    return {"printed.jsonl": [c.made("closed", is_lower_bound=False)]}


def cut() -> Files:
    """Killed in the middle of an answer: partial messages tell the output of those before; noise around the rows."""
    s = claude_code.session("killed", 8, "2.1.150", "growing")
    c = capture("killed", s, has_partials=True)
    c.lines += ["$ make harbour", "starting the agent"]
    c.start()
    s.work("Bash", thinks=True)
    s.work("Read")
    (call,) = s.answer("Edit")
    s.result(call, RULED_OUT.replace("Bash with command make harbour", "Edit"), "denied")
    c.follow(s)
    c.row("assistant", message={"0": "{", "1": '"'}, parent_tool_use_id=None)
    c.truth.refuse("malformed")
    c.lines.append("harbour: slow tide")
    s.answer("Bash")
    c.follow(s, is_cut=True)
    known = Tokens()
    for answer in s.finals:
        used = answer.tokens
        output = answer.early if answer is s.finals[-1] else used.output
        known.add(Tokens(used.input, used.cache_read, used.cache_write, output))
    c.settle(known)
    c.truth.cache_write_1h_tokens = 0
    return {"killed.log": [c.made("open", is_lower_bound=True)]}


def of_a_session() -> tuple[Files, Files]:
    """The files of a session, and its capture. The capture's total holds the subagent, too, so it is what counts."""
    s = claude_code.session("captured", 5, "2.1.130", "growing", 0.5)
    c = capture("captured", s)
    c.start()
    s.prompt("Close the winch, then report.")
    s.work("Read", thinks=True)
    (call,) = s.answer("Bash")
    s.result(call, REFUSED, "denied", toolUseResult="User rejected tool use", toolDenialKind="user-rejected")
    c.list_denial(call, "Bash")
    (call,) = s.answer("Task")
    c.follow(s)
    agent = claude_code.subagent(s)
    agent.prompt("Which crates are open?")
    agent.work("Bash")
    agent.answer()
    c.follow(agent, call)
    claude_code.task_result(s, call, agent)
    s.answer()
    c.follow(s)
    c.result()
    name = "captured.jsonl"
    c.truth.same_run_as = f"claude/{claude_code.home(s)}"
    for one in (s, agent):
        one.truth.is_counted, one.truth.same_run_as = False, f"claude-stream/{name}"
    stored = {claude_code.home(s): [claude_code.ended(s)], claude_code.agent_home(agent): [claude_code.ended(agent)]}
    return stored, {name: [c.made("closed", is_lower_bound=False)]}
