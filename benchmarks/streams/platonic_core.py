"""platonic-core: host ledgers, version 2, in the order its state machine allows. A file holds one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import REASONS, Voice

TOOLS = (
    ("file.read", "read_only"), ("file.write", "workspace_write"), ("shell.exec", "workspace_write"),
    ("web.fetch", "network"),
)  # fmt: skip

DATA = ('{"exit_code":0}', '{"exit_code":1}', "null", "[1,2,3]", '"ok"')


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One run, of as many turns as there is room for; each turn but the last calls a tool."""
    name = f"run_{number:07d}"
    seq = -1

    def line(event: str, rest: str) -> str:
        nonlocal seq
        seq += 1
        return (
            f'{{"v":2,"record":{{"seq":{seq},"occurred_at_ms":{v.millis()},"event":{{"event":"{event}",'
            f'"run_id":"{name}"{rest}}}}}}}'
        )

    def fragment(lane: str, source: str, content: str) -> str:
        tokens = len(content) // 4
        return f'{{"lane":"{lane}","source":"{source}","content":"{content}","estimated_tokens":{tokens}}}'

    def respond(turn: int, proposed: str) -> str:
        served = ',"served_model":"kestrel/large-4"' if v.chance() < 0.7 else ""
        return line(
            "model_responded",
            f',"turn_id":"t{turn}","step":{turn},"output":{{"role":"assistant","content":"{v.bit()}"}},'
            f'"proposed_calls":[{proposed}]{served},"usage":{{"input_tokens":{v.between(50, 4_000)},'
            f'"output_tokens":{v.between(5, 500)}}}',
        )

    def context(turn: int) -> str:
        parts = (
            fragment("system_contract", "contract", v.bit()),
            fragment("current_task", "user", v.bit()),
            fragment("recent_turns", f"t{turn - 1}", v.text()),
        )
        fragments = ",".join(parts)
        return line(
            "context_built",
            f',"turn_id":"t{turn}","context":{{"token_budget":400000,"fragments":[{fragments}]}}',
        )

    yield line("run_started", ',"profile_id":"profile_main","profile_revision":3')
    turn = 0
    while more():
        yield context(turn)
        yield line("model_requested", f',"turn_id":"t{turn}","step":{turn},"model":"~kestrel/latest"')
        tool, effect = v.pick(TOOLS)
        given = f'{{"path":"part_{v.between(0, 40)}.py","text":"{v.bit()}"}}'
        yield respond(turn, f'{{"tool":"{tool}","input":{given}}}')
        call = f"c{turn}"
        told = f'{{"id":"{call}","tool":"{tool}","effect":"{effect}","input":{given}}}'
        yield line("tool_call_proposed", f',"turn_id":"t{turn}","call":{told}')
        turn += 1
        if v.chance() < 0.05:
            decision = f'{{"decision":"deny","reason":"{v.pick(REASONS)}"}}'
            yield line("policy_evaluated", f',"call_id":"{call}","decision":{decision}')
            continue
        yield line("policy_evaluated", f',"call_id":"{call}","decision":{{"decision":"allow"}}')
        yield line("tool_started", f',"call_id":"{call}"')
        if v.chance() < 0.05:
            yield line("tool_failed", f',"call_id":"{call}","reason":"{v.pick(REASONS)}"')
            continue
        yield line(
            "tool_finished",
            f',"result":{{"call_id":"{call}","summary":"{v.text()}","data":{v.pick(DATA)},"artifacts":[],'
            '"visibility":"both"}',
        )
    yield context(turn)
    yield line("model_requested", f',"turn_id":"t{turn}","step":{turn},"model":"~kestrel/latest"')
    yield respond(turn, "")
    yield line("run_finished", "")
