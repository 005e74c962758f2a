"""The three adapters of metaharness: the same 20 events, three ways to count."""

from __future__ import annotations

from typing import Any

from makers.common import REASONS, Made, Tokens
from makers.metaharness import PLANTED_SECRET, Plan, Stream, stream, usage_object

HELPER = "alder-helper-1"


def make(plan: Plan) -> Made:
    return {"claude": claude, "codex": codex, "b10x": b10x}[plan.adapter](stream(plan))


def finish(s: Stream, reason: str, *, tokens_need_the_end: bool = False) -> Made:
    """The last lines by ending, and the completeness they make."""
    ending, completeness = s.plan.ending, "closed"
    if ending in ("cut", "cut-after-end"):
        completeness = "truncated"
        if ending == "cut":
            s.tail = s.line("text", {"text": s.voice.say(), "request_id": None}, None)[:-30]
    else:
        s.closed(reason, {"kind": "signaled", "signal": 9} if ending == "halt" else {"kind": "exited", "code": 0})
        if ending == "marker-not-last":
            completeness = "inconsistent"
            s.warn("RETAIN_FAILED", "the transcript could not be copied")
    return s.made(completeness, tokens_need_the_end=tokens_need_the_end)


def step(s: Stream, index: int, outcome: dict[str, str] | None = None) -> None:
    where = {"workflow": f"repair/{s.plan.variant}", "state": "implement", "index": index, "attempt": 1}
    if outcome is None:
        s.emit("step.entered", step=where, frame_digest=None)
    else:
        s.emit("step.left", step=where, outcome=outcome)


def asides(s: Stream, number: int) -> None:
    """The rarer lines a plan asks for, each once, in the second round."""
    if number != 2:
        return
    for name in s.plan.shows:
        if name == "retries":
            s.warn(
                "VENDOR_API_RETRY",
                "the vendor retried its API call after HTTP 529: overloaded (attempt 1 of 10, after 812ms)",
            )
        elif name == "opaque":
            s.vendor("opaque", vendor_type="system", vendor_subtype="status", digest=s.voice.digits(64), source_line=9)
        elif name == "auth":
            s.emit("auth.expired", credential_source="operator-login", detail="the session has expired", source_line=12)
        elif name == "injection":
            s.vendor("injection", text=s.voice.say(), origin="synthetic")
        elif name == "command":
            s.emit("command.result", id="c-1", outcome={"result": "ok", "applies_at": "next_turn"})
        elif name.startswith("bad:"):
            s.damage(name[4:])


def claude_decision(s: Stream, call: str, tool: str, arguments: dict[str, Any]) -> bool:
    """Decide one call; True = it may run. Every kind of decision comes up in its turn."""
    turn = len(s.calls) + s.plan.repetition
    if turn % 9 == 4:
        s.decide(call, "deny", "embedder", 12)
    elif turn % 17 == 7:
        s.decide(call, "deny", "deadline", 25_000)
    elif turn % 11 == 6:
        s.decide(call, "replace", "embedder", 30)
    elif turn % 13 == 9:
        s.decide(call, "abstain", "embedder", 2)
    else:
        s.decide(call, "allow", "embedder", s.voice.between(1, 40))
    if "represented" in s.plan.shows and turn % 5 == 1:
        s.request(call, tool, arguments, "hook")
    if "mutated" in s.plan.shows and turn % 6 == 2:
        s.request(call, tool, {"again": True}, "hook")
        s.warn("REQUEST_MUTATED", f"call {call} was presented again with a different input")
        s.decide(call, "deny", "adapter", 1)
    return s.calls[call].last_decision != "deny"


def claude(s: Stream) -> Made:
    """Usage repeats on each block of an answer with an early output count; only session.ended has the total."""
    v, plan, model = s.voice, s.plan, "larch-5" if s.plan.repetition == 0 else "larch-mini-5"
    s.start(
        session_id=f"s-{v.digits(8)}", model=model, permission_mode="default", credential_source="operator-login",
        output_style="default", offered_tools=["Bash", "Edit", "Grep", "Read", "Task"], slash_commands=[],
        skills=["triage"], agents=[], plugins=[], mcp_servers=[{"name": "tides", "status": "connected"}],
    )  # fmt: skip
    s.warn("AMBIENT_INPUT", "the status text is part of the prompt")
    seen, total = Tokens(), Tokens()
    context = v.between(9_000, 14_000)
    for number in range(1, plan.rounds + 1):
        if "steps" in plan.shows and number % 4 == 1:
            step(s, number // 4)
        request = f"req_{v.digits(10)}"
        early = Tokens(v.between(2, 14), context, v.between(0, 3_000), v.between(1, 24))
        context += early.input + early.cache_write
        usage = {"request_id": request, "model": model, "usage": usage_object(early, service_tier="standard")}
        if v.chance(0.4):
            s.emit("thinking.estimate", estimate=v.between(40, 130), delta=v.between(-20, 60))
            s.vendor("thinking", text=v.say(), request_id=request)
            s.vendor("usage", **usage)
        s.vendor("text", text=v.say(), request_id=request)
        s.vendor("usage", **usage)
        call, tool = f"toolu_{v.digits(12)}", v.pick(("Bash", "Bash", "Read", "Edit", "Grep"))
        arguments = {"command": v.command()} if tool == "Bash" else {"file_path": v.path(), "note": v.sentence()}
        s.request(call, tool, arguments, "hook")
        s.vendor("usage", **usage)
        seen.add(early)
        total.add(Tokens(early.input, early.cache_read, early.cache_write, early.output + v.between(40, 1_200)))
        if number == plan.rounds and plan.ending in ("cut", "halt"):
            break
        if claude_decision(s, call, tool, arguments):
            text = f"export HARBOUR_API_KEY={PLANTED_SECRET}" if "secret" in plan.shows and number == 1 else v.output()
            s.result(call, is_error=v.chance(0.08), content=text)
        else:
            s.result(call, is_error=True, content=v.pick(REASONS))
        if number % 4 == 0 and "limits" in plan.shows:
            hour = int(s.clock.now.timestamp()) // 18_000 * 18_000 + 18_000
            week = int(s.clock.now.timestamp()) // 604_800 * 604_800 + 604_800
            used = v.between(100, 990) / 1_000
            s.limit("five_hour", used, hour, "allowed_warning" if used > 0.8 else "allowed")
            s.limit("seven_day", None if v.chance(0.5) else v.between(10, 60) / 100, week, "allowed")
        asides(s, number)
        if "steps" in plan.shows and number % 4 == 0:
            step(
                s,
                number // 4 - 1,
                {"outcome": "completed"} if number > 4 else {"outcome": "failed", "reason": "checks are red"},
            )
    truth = s.truth
    truth.requests = plan.rounds
    ended = plan.ending not in ("cut", "halt")
    if plan.ending == "halt":
        s.decide(call, "deny", "adapter", 310)
        s.warn("PENDING_CALL_ABANDONED", f"{call} was never decided")
    if ended:
        total.reasoning = total.output * 3 // 10
        main, helper = total.output * 15 + total.input * 3 + total.cache_read // 3, v.between(900, 9_000)
        used = usage_object(total, service_tier="standard", thinking_tokens=total.reasoning, iterations=plan.rounds)
        side = usage_object(Tokens(v.between(300, 3_000), 0, 0, v.between(9, 90)), cost_usd=helper / 1e6)
        truth.cost_usd = (main + helper) / 1e6
        failed = plan.ending == "max-turns"
        s.end(
            is_error=failed, word="max-turns" if failed else "completed", usage=used, total_cost_usd=truth.cost_usd,
            subtype="error_max_turns" if failed else "success", stop_reason="end_turn",
            duration_ms=s.clock.elapsed_ms(),
            permission_denials=[{"tool_name": "Bash", "tool_use_id": c, "tool_input": None} for c in sorted(s.denied)],
            model_usage={model: usage_object(total, cost_usd=main / 1e6), HELPER: side},
        )  # fmt: skip
    kept = total if ended else seen
    truth.input_tokens = kept.input + kept.cache_read + kept.cache_write
    truth.uncached_input_tokens, truth.output_tokens = kept.input, kept.output
    truth.cache_read_tokens, truth.cache_write_tokens = kept.cache_read, kept.cache_write
    truth.reasoning_tokens = kept.reasoning if ended else None
    truth.tokens_are_lower_bound = not ended
    return finish(s, {"max-turns": "error", "halt": "steer-halt"}.get(plan.ending, "completed"))


def codex(s: Stream) -> Made:
    """Each call shows twice (the hook's id, the vendor's id), each message twice; usage is a running total."""
    v, plan = s.voice, s.plan
    s.start(session_id=f"s-{v.digits(8)}")
    total, percent = Tokens(), v.between(100, 500)
    for number in range(1, plan.rounds + 1):
        s.vendor("turn.started", turn=number, frame_digest=None)
        s.vendor("opaque", vendor_type="turn_context", vendor_subtype=None, digest=v.digits(64), source_line=number * 9)
        said = v.say()
        s.vendor("text", text=said, request_id=None)
        s.vendor("text", text=said, request_id=None)
        for _ in range(v.between(1, 2)):
            hook, call, arguments = f"exec-{v.digits(6)}", f"call_{v.digits(10)}", {"command": v.command()}
            s.request(hook, "Bash", arguments, "hook", counted=False)
            denied = (len(s.calls) + plan.repetition) % 7 == 3
            s.decide(hook, "deny" if denied else "allow", "embedder", v.between(2, 60))
            s.request(call, "exec", arguments, "none")
            if number == plan.rounds and plan.ending in ("cut", "halt"):
                break
            text = "Command blocked: " + v.pick(REASONS) if denied else v.output()
            s.result(call, is_error=None, content=text)
            if not denied:
                code = int(v.chance(0.15))
                done = {"type": "CommandExecution", "id": call, "exit_code": code}
                s.result(call, is_error=bool(code), content=text, tool_use_result=done, exit_code=code,
                         outcome_source="retained_tool_completion")  # fmt: skip
        if number == plan.rounds and plan.ending in ("cut", "halt"):
            break
        asides(s, number)
        output = v.between(60, 900)
        total.add(Tokens(v.between(4_000, 9_000), v.between(500, 3_900), 0, output, output // 4))
        used = usage_object(total, cache_creation_input_tokens=None, thinking_tokens=total.reasoning)
        s.vendor("usage", request_id=None, model=None, usage=used)
        if "limits" in plan.shows:
            percent += v.between(0, 40)
            s.limit("codex", percent / 10, None, None)
        s.vendor("turn.ended", turn=number, stop_reason=None)
    ended = plan.ending not in ("cut", "halt")
    if ended:
        is_error = {"error": True, "bare": None}.get(plan.ending, False)
        models = [{"turn": 1, "turn_id": "t1", "model": "kite-6-codex", "scope": "turn_selection"}]
        answer = {"text": v.say(), "turn_id": "t1"} if is_error is False else None
        s.end(is_error=is_error, word=None, usage=used, final_answer=answer, observed_models=models)
    truth = s.truth
    truth.input_tokens, truth.uncached_input_tokens = total.input, total.input - total.cache_read
    truth.cache_read_tokens, truth.output_tokens, truth.reasoning_tokens = (
        total.cache_read,
        total.output,
        total.reasoning,
    )
    truth.tokens_are_lower_bound = not ended
    return finish(s, {"error": "error", "halt": "steer-halt"}.get(plan.ending, "completed"))


def b10x(s: Stream) -> Made:
    """No times, text in deltas, a usage line per turn, denials only as warnings."""
    v, plan, model = s.voice, s.plan, "plover-2"
    withheld = [{"tool": "run", "reason": "exec.argv-only must be true and this machine says nothing"}]
    s.start(
        model=model, credential_source="api-key:environment", offered_tools=["file_edit", "file_read", "run"],
        available_operations=["file.read", "file.edit", "find"], withheld=withheld if plan.repetition else [],
        skills=[], agents=[], mcp_servers=[],
    )  # fmt: skip
    total, codes = Tokens(), ("approval-denied", "hook-refused", "unpublished-tool", "hook-failed")
    for number in range(1, plan.rounds + 1):
        s.emit("turn.started", turn=number, frame_digest=None)
        for word in v.sentence().split(" "):
            if v.chance(0.5):
                s.emit("text", text=word + " ", request_id=None)
        for _ in range(v.between(1, 2)):
            call = f"k{len(s.calls) + 1}"
            s.request(call, v.pick(("file_edit", "file_read", "run")), {"path": v.path(), "text": v.say()}, "none")
            if number == plan.rounds and plan.ending == "cut":
                break
            denied = len(s.calls) % 6 == 4
            if denied:
                s.warn(codes[len(s.denied) % 4], f"{v.pick(REASONS)} ({call})")
                s.denied.add(call)
            s.result(call, is_error=denied or v.chance(0.1), content=None)
        asides(s, number)
        if number == plan.rounds and plan.ending == "cut":
            break
        used = Tokens(v.between(300, 5_000), v.between(0, 299), 0, v.between(20, 500), 0)
        used.reasoning = used.output // 3
        said = usage_object(used, cache_creation_input_tokens=None, thinking_tokens=used.reasoning)
        s.emit("usage", request_id=None, model=model, usage=said)
        total.add(used)
        s.truth.requests = number
    ended, truth = plan.ending != "cut", s.truth
    if ended:
        spent = plan.ending == "budget"
        truth.cost_usd = total.output * 9 / 1e6 if plan.repetition else None
        s.end(is_error=spent, word="budget-exhausted" if spent else "completed", usage=None,
              total_cost_usd=truth.cost_usd, permission_denials=[], subagents_spawned=0)  # fmt: skip
    truth.input_tokens, truth.uncached_input_tokens = total.input, total.input - total.cache_read
    truth.cache_read_tokens, truth.output_tokens, truth.reasoning_tokens = (
        total.cache_read,
        total.output,
        total.reasoning,
    )
    return finish(s, "budget" if plan.ending == "budget" else "completed", tokens_need_the_end=True)
