"""Claude Code's stream-json: what a session without a terminal prints, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.claude_code import MODEL, TOOLS, message, usage
from streams.voice import Voice


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One process from its init row to its result, of as many answers as there is room for."""
    session = v.uuid()

    def row(kind: str, rest: str) -> str:
        return f'{{"type":"{kind}",{rest},"session_id":"{session}","uuid":"{v.uuid()}"}}'

    yield row(
        "system",
        f'"subtype":"init","cwd":"/project/{number % 7}","tools":["Bash","Edit","Grep","Read"],"mcp_servers":[],'
        f'"model":"{MODEL}","permissionMode":"default","slash_commands":[],"apiKeySource":"none",'
        '"claude_code_version":"2.1.150","output_style":"default","agents":[],"skills":[],"plugins":[]',
    )
    answers, total, context = 0, [0, 0, 0, 0], v.between(9_000, 18_000)
    while more():
        answers += 1
        answer, call, tool = f"msg_{v.hex(24)}", f"toolu_{v.hex(24)}", v.pick(TOOLS)
        parts = (4, v.between(50, 4_000), context, v.between(1, 24))
        total = [a + b for a, b in zip(total, parts, strict=True)]
        context = 20_000 if context > 170_000 else context + parts[1]
        blocks = [f'{{"type":"text","text":"{v.text()}"}}']
        if v.chance() < 0.5:
            blocks.insert(0, f'{{"type":"thinking","thinking":"{v.bit()}","signature":"{v.cipher()}"}}')
        given = f'"command":"{v.bit()}"' if tool == "Bash" else f'"file_path":"part_{v.between(0, 40)}.py"'
        blocks.append(f'{{"type":"tool_use","id":"{call}","name":"{tool}","input":{{{given}}}}}')
        for block in blocks:
            told = message(answer, block, "null", usage(*parts))
            yield row("assistant", f'"message":{told},"parent_tool_use_id":null')
        result = v.text(times=2)
        said = f'[{{"type":"text","text":"{result}"}}]' if v.chance() < 0.1 else f'"{result}"'
        yield row(
            "user",
            f'"message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result",'
            f'"content":{said}}}]}},"parent_tool_use_id":null,'
            f'"tool_use_result":{{"stdout":"{result}","stderr":""}}',
        )
        if answers % 16 == 3:
            resets = (v.now // 18_000_000 + 1) * 18_000
            yield row(
                "rate_limit_event",
                f'"rate_limit_info":{{"status":"allowed","resetsAt":{resets},"rateLimitType":"five_hour",'
                f'"utilization":{v.between(0, 100) / 100},"isUsingOverage":false}}',
            )
    into, write, read, out = total
    cost = (out * 15 + into * 3 + read * 0.3 + write * 3.75) / 1e6
    yield row(
        "result",
        f'"subtype":"success","is_error":false,"duration_ms":{answers * 4_000},"duration_api_ms":{answers * 3_000},'
        f'"num_turns":{answers},"result":"{v.bit()}","total_cost_usd":{cost:.6f},"usage":{usage(*total)},'
        f'"modelUsage":{{"{MODEL}":{{"inputTokens":{into},"outputTokens":{out},"cacheReadInputTokens":{read},'
        f'"cacheCreationInputTokens":{write},"webSearchRequests":0,"costUSD":{cost:.6f},"contextWindow":200000,'
        '"maxOutputTokens":32000}},"permission_denials":[]',
    )
