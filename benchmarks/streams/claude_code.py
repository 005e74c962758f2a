"""Claude Code's session files: one row a block, the answer's usage on each, tool results twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import Voice

TOOLS = ("Bash", "Bash", "Read", "Edit", "Grep")
MODEL = "larch-5"


def usage(into: int, write: int, read: int, out: int) -> str:
    """An answer's usage as its rows carry it."""
    return (
        f'{{"input_tokens":{into},"cache_creation_input_tokens":{write},"cache_read_input_tokens":{read},'
        f'"cache_creation":{{"ephemeral_5m_input_tokens":{write},"ephemeral_1h_input_tokens":0}},'
        f'"output_tokens":{out},"service_tier":"standard"}}'
    )


def message(answer: str, block: str, stop: str, used: str) -> str:
    """An assistant's message with one block of its content."""
    return (
        f'{{"model":"{MODEL}","id":"{answer}","type":"message","role":"assistant","content":[{block}],'
        f'"stop_reason":{stop},"stop_sequence":null,"usage":{used}}}'
    )


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One session of as many answers as there is room for."""
    session = v.uuid()
    common = (
        f'"isSidechain":false,"userType":"external","cwd":"/project/{number % 7}","sessionId":"{session}",'
        '"version":"2.1.130","gitBranch":"main"'
    )
    parent = "null"

    def row(kind: str, rest: str) -> str:
        nonlocal parent
        above, parent = parent, f'"{v.uuid()}"'
        return f'{{"parentUuid":{above},{common},"type":"{kind}",{rest},"uuid":{parent},"timestamp":"{v.iso()}Z"}}'

    yield row("user", f'"message":{{"role":"user","content":"{v.bit()}"}}')
    context = v.between(9_000, 18_000)
    while more():
        answer, call, tool = f"msg_{v.hex(24)}", f"toolu_{v.hex(24)}", v.pick(TOOLS)
        request = f'"requestId":"req_{v.hex(24)}"'
        write, out = v.between(50, 4_000), v.between(30, 1_500)
        context = 20_000 if context > 170_000 else context + write
        blocks = [f'{{"type":"text","text":"{v.text()}"}}']
        if v.chance() < 0.5:
            blocks.insert(0, f'{{"type":"thinking","thinking":"{v.bit()}","signature":"{v.cipher()}"}}')
        given = f'"command":"{v.bit()}"' if tool == "Bash" else f'"file_path":"part_{v.between(0, 40)}.py"'
        blocks.append(f'{{"type":"tool_use","id":"{call}","name":"{tool}","input":{{{given}}}}}')
        for place, block in enumerate(blocks, 1):
            is_last = place == len(blocks)
            used = usage(4, write, context, out if is_last else place)
            told = message(answer, block, '"tool_use"' if is_last else "null", used)
            yield row("assistant", f'"message":{told},{request}')
        result = v.text(times=2)
        said = f'[{{"type":"text","text":"{result}"}}]' if v.chance() < 0.1 else f'"{result}"'
        is_error = v.chance() < 0.05
        printed = f'"Error: {result}"' if is_error else f'{{"stdout":"{result}","stderr":"","interrupted":false}}'
        yield row(
            "user",
            f'"message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result",'
            f'"content":{said},"is_error":{"true" if is_error else "false"}}}]}},'
            f'"toolUseResult":{printed}',
        )
