"""Captures of `codex exec --json`: items, and the running total of the thread after each turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import Voice

ASKED = ('{"harbour":"north","hours":3}', '{"hours":"all"}', "[7]", "null")


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One process of a thread of its own, of as many turns as there is room for."""
    item = -1
    thread = f"{v.uuid()[:-7]}{number:07x}"

    def ran(command: str, output: str, code: str, status: str) -> str:
        return (
            f'"item":{{"id":"item_{item}","type":"command_execution","command":"{command}",'
            f'"aggregated_output":"{output}","exit_code":{code},"status":"{status}"}}}}'
        )

    def said(kind: str, text: str) -> str:
        return f'{{"type":"item.completed","item":{{"id":"item_{item}","type":"{kind}","text":"{text}"}}}}'

    yield f'{{"type":"thread.started","thread_id":"{thread}"}}'
    into = cached = out = 0
    while more():
        yield '{"type":"turn.started"}'
        for _ in range(v.between(2, 8)):
            item += 1
            yield said("reasoning", v.bit())
            item += 1
            command, is_failed = v.bit(), v.chance() < 0.1
            yield '{"type":"item.started",' + ran(command, "", "null", "in_progress")
            status = "failed" if is_failed else "completed"
            yield '{"type":"item.completed",' + ran(command, v.text(), str(int(is_failed)), status)
            item += 1
            yield said("agent_message", v.text())
            if v.chance() < 0.1:
                item += 1
                told = f'"id":"item_{item}","type":"mcp_tool_call","server":"tides","tool":"lookup","arguments"'
                arguments, result = v.pick(ASKED), v.pick(('{"content":[]}', "null"))
                yield (
                    f'{{"type":"item.completed","item":{{{told}:{arguments},"result":{result},"error":null,'
                    '"status":"completed"}}'
                )
        into += v.between(9_000, 150_000)
        cached += v.between(4_000, 9_000)
        out += v.between(200, 2_000)
        yield (
            f'{{"type":"turn.completed","usage":{{"input_tokens":{into},"cached_input_tokens":{cached},'
            f'"output_tokens":{out},"reasoning_output_tokens":{out // 4}}}}}'
        )
