"""Harness Lab: normalized events of runs of claude and codex in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import TASKS, Voice

TOOLS = ("Bash", "Bash", "Read", "Edit", "Grep")


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One run from `run_started` to `run_finished`, of as many rounds as there is room for."""
    agent = ("claude", "codex")[number % 2]
    task, model = v.pick(TASKS), {"claude": "larch-5", "codex": "kite-6-codex"}[agent]
    name = f"run_{v.hex(6)}{number:06d}{agent}"
    sequence = -1

    def line(kind: str, told: str, payload: str, call: str = "null", source: str = agent, took: str = "null") -> str:
        nonlocal sequence
        sequence += 1
        return (
            f'{{"event_id":"evt_{sequence:09x}{v.hex(10)}","run_id":"{name}","sequence":{sequence},'
            f'"timestamp":"{v.iso()}000Z","kind":"{kind}","source":"{source}","name":{told},"duration_ms":{took},'
            f'"payload":{payload},"call_id":{call},"parent_call_id":null,"raw_metadata":null}}'
        )

    def used(told: str, figures: tuple[int, ...], rest: str) -> str:
        into, read, write, out = figures
        return line(
            "usage",
            told,
            f'{{"input_tokens":{into},"cached_input_tokens":{read},"cache_write_tokens":{write},"output_tokens":{out},'
            f'"reasoning_output_tokens":0{rest}}}',
        )

    def arguments(tool: str) -> str:
        if tool == "Grep":  # a string where others have an object
            return f'"{v.bit()}"'
        return f'{{"file_path":"src/{task}/part_{v.between(0, 40)}.py","text":"{v.bit()}"}}'

    yield line(
        "run_started",
        "null",
        f'{{"task":"{task}","variant":"{agent}-plain","runner":"{agent}","model":"{model}","repetition":{number % 4},'
        f'"base_commit":"9f2c41d","worktree":"/scratch/{task}"}}',
        source="runner",
    )
    total = [0, 0, 0, 0]
    context = v.between(6_000, 12_000)
    while more():
        figures = (v.between(2, 14), context, v.between(0, 2_500), v.between(1, 900))
        context = 20_000 if context > 160_000 else context + figures[2]
        total = [a + b for a, b in zip(total, figures, strict=True)]
        message = f"msg_{v.hex(16)}"
        if v.chance() < 0.5:
            yield line("reasoning_event", '"thinking"', '{"count":1}')
        if agent == "claude":
            yield used('"message_usage"', figures, f',"model":"{model}","message_id":"{message}"')
        yield line("assistant_message", '"assistant"', f'{{"text":"{v.text()}","message_id":"{message}"}}')
        for _ in range(v.between(1, 2)):
            tool, call = v.pick(TOOLS) if agent == "claude" else "shell", f'"tu_{v.hex(14)}"'
            family = "command" if tool in {"Bash", "shell"} else "tool"
            given = f'"command":"{v.bit()}"' if family == "command" else f'"input":{arguments(tool)}'
            yield line(f"{family}_started", f'"{tool}"', f'{{"tool":"{tool}",{given}}}', call)
            status = "error" if v.chance() < 0.05 else "completed"
            finished = f'{{"tool":"{tool}","status":"{status}","output":"{v.text()}"}}'
            yield line(f"{family}_finished", f'"{tool}"', finished, call, took=str(v.between(1, 4_000)))
    if agent == "claude":
        final = f',"final":true,"total_cost_usd":{total[3] * 15 / 1e6},"models":["{model}"]'
        yield used('"result_usage"', tuple(total), final)
    else:
        yield used('"turn_usage"', tuple(total), f',"raw_input_tokens":{total[0] + total[1]}')
    yield line("system", '"verification"', '{"outcome":"pass","exit_code":0,"timed_out":false}', source="runner")
    verdict = '{"status":"completed","outcome":"pass","error":null,"exit_code":0}'
    yield line("run_finished", "null", verdict, source="runner", took=str(sequence * 700))
