"""Codex session files (rollouts): items, their display twins, and the running total after each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import Voice


def vector(into: int, cached: int, out: int, reasoning: int) -> str:
    """Token figures as rollouts write them."""
    return (
        f'{{"input_tokens":{into},"cached_input_tokens":{cached},"output_tokens":{out},'
        f'"reasoning_output_tokens":{reasoning},"total_tokens":{into + out}}}'
    )


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One thread with a turn of as many answers as there is room for."""
    thread, turn = v.uuid(), v.uuid()

    def row(kind: str, payload: str) -> str:
        return f'{{"timestamp":"{v.iso()}Z","type":"{kind}","payload":{{{payload}}}}}'

    yield row(
        "session_meta",
        f'"id":"{thread}","timestamp":"{v.iso()}Z","cwd":"/project/{number % 7}","originator":"codex_cli_rs",'
        '"cli_version":"0.140.0","instructions":null,"source":"cli","model_provider":"made-up","git":{"branch":"main"}',
    )
    yield row("event_msg", f'"type":"task_started","turn_id":"{turn}","model_context_window":272000')
    yield row(
        "turn_context",
        f'"cwd":"/project/{number % 7}","approval_policy":"on-request","model":"kite-6-codex","effort":"medium",'
        f'"summary":"auto","turn_id":"{turn}"',
    )
    asked = v.bit()
    told = f'"type":"message","role":"user","content":[{{"type":"input_text","text":"{asked}"}}]'
    yield row("response_item", told)
    yield row("event_msg", f'"type":"user_message","message":"{asked}","images":[]')
    total = [0, 0, 0, 0]
    answers = 0
    while more():
        answers += 1
        call = f"call_{v.hex(24)}"
        yield row("response_item", f'"type":"reasoning","summary":[],"encrypted_content":"{v.cipher()}"')
        command = v.bit().replace("\\", "\\\\").replace('"', '\\"')
        arguments = f'{{\\"cmd\\": \\"{command}\\"}}'
        yield row(
            "response_item",
            f'"type":"function_call","name":"exec_command","arguments":"{arguments}","call_id":"{call}"',
        )
        code = int(v.chance() < 0.1)
        output = f'"Process exited with code {code}\\nOutput:\\n{v.text()}"'
        if v.chance() < 0.05:  # a list where most have a string
            output = f'[{{"type":"input_text","text":{output}}}]'
        yield row("response_item", f'"type":"function_call_output","call_id":"{call}","output":{output}')
        said = v.text()
        yield row("event_msg", f'"type":"agent_message","message":"{said}"')
        told = f'"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{said}"}}]'
        yield row("response_item", told)
        into, out = v.between(9_000, 150_000), v.between(40, 900)
        last = (into, into // 2, out, out // 3)
        total = [a + b for a, b in zip(total, last, strict=True)]
        resets = (v.now // 18_000_000 + 1) * 18_000
        yield row(
            "event_msg",
            f'"type":"token_count","info":{{"total_token_usage":{vector(*total)},"last_token_usage":{vector(*last)},'
            '"model_context_window":272000},"rate_limits":{"limit_id":"codex","limit_name":null,'
            f'"primary":{{"used_percent":{v.between(0, 1_000) / 10},"window_minutes":300,"resets_at":{resets}}},'
            '"secondary":null,"credits":null,"plan_type":"made-up","rate_limit_reached_type":null}',
        )
    yield row("event_msg", f'"type":"task_complete","turn_id":"{turn}","last_agent_message":null')
