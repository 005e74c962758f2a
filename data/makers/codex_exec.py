"""Captures of `codex exec --json`: items, turns, and the running total of the thread."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

from makers import codex_rollout
from makers.codex_rollout import Call, Rollout
from makers.common import Made, Tokens, dumps
from makers.native import NativeFile, Row, beginning, count_codex, uuid7

Files = dict[str, list[Made]]


@dataclass(slots=True)
class Exec(NativeFile):
    """One process of a thread; ids of items start again in each."""

    total: Tokens = field(default_factory=Tokens)
    items: int = 0

    def row(self, kind: str, **fields: Any) -> None:
        self.write({"type": kind} | fields)

    def start(self) -> None:
        self.row("thread.started", thread_id=self.truth.run_id)

    def call(self, kind: str, what: str, how: str) -> None:
        """An item that runs: it is started, and unless `how` is in_progress, completed."""
        item: Row = {"id": f"item_{self.items}", "type": kind}
        self.items += 1
        if kind == "command_execution":
            item |= {"command": what, "aggregated_output": "", "exit_code": None}
        elif kind == "file_change":
            item |= {"changes": [{"path": what, "kind": "update"}]}
        else:
            item |= {"server": "tides", "tool": what, "arguments": {}, "result": None, "error": None}
        self.row("item.started", item=item | {"status": "in_progress"})
        self.call_opened(item["id"])
        if how == "in_progress":
            return
        if kind == "command_execution":
            code = {"completed": 0, "failed": 1, "declined": -1}[how]
            output = "" if how == "declined" else self.output()
            item |= {"aggregated_output": output, "exit_code": code}
        self.row("item.completed", item=item | {"status": how})
        self.call_ended(item["id"], "denied" if how == "declined" else "finished")

    def say(self, kind: str, **fields: Any) -> None:
        self.row("item.completed", item={"id": f"item_{self.items}", "type": kind} | fields)
        self.items += 1

    def end_turn(self, used: Tokens) -> None:
        """A turn used this much; the row shows the thread's total."""
        self.total.add(used)
        usage = codex_rollout.vector(self.total)
        del usage["total_tokens"]
        self.row("turn.completed", usage=usage)
        self.truth.outcome = "success"
        count_codex(self.truth, used)


def process(name: str, thread: str, total: Tokens | None = None) -> Exec:
    voice, clock, truth = beginning("codex-exec", "items", name, 0)
    truth.run_id = thread
    return Exec(voice, clock, truth, total=total or Tokens())


def spent(e: Exec) -> Tokens:
    cached, output = e.voice.between(9_000, 40_000), e.voice.between(200, 2_000)
    return Tokens(cached + e.voice.between(900, 5_000), cached, 0, output, output // 4)


def of_a_rollout() -> tuple[Files, Files]:
    """A rollout and the standard output of the same process. The rollout knows more, so it is what counts."""
    r: Rollout = codex_rollout.printed()
    e = process("printed", r.thread)
    e.start()
    e.row("turn.started")
    calls: list[Call] = r.calls
    for call in calls:
        e.call(*call)
    e.say("agent_message", text=e.voice.say())
    e.end_turn(r.total)
    name, stored = "printed.jsonl", codex_rollout.path(r)
    e.truth.same_run_as, e.truth.is_counted = f"codex/{stored}", False
    r.truth.same_run_as = f"codex-exec/{name}"
    return (
        {stored: [r.made("closed", is_lower_bound=False)]},
        {name: [e.made("closed", is_lower_bound=False)]},
    )


def resumed() -> Files:
    """A thread in two processes: the second one's total begins where the first one's ended."""
    e = process("first", "")
    e.truth.run_id = thread = uuid7(e.voice, 1_793_700_000_000)
    e.lines.append("Reading the prompt from stdin")
    e.start()
    for _ in range(2):
        e.row("turn.started")
        e.say("reasoning", text=e.voice.sentence())
        e.call("command_execution", e.voice.command(), "completed")
        e.say("agent_message", text=e.voice.say())
        e.end_turn(spent(e))
    first = e.made("closed", is_lower_bound=False)
    e = process("second", thread, copy(e.total))
    e.start()
    e.row("turn.started")
    e.call("command_execution", e.voice.command(), "declined")
    e.call("command_execution", e.voice.command(), "failed")
    e.call("mcp_tool_call", "tide_table", "in_progress")
    e.lines.append(dumps({"type": "item.completed", "item": "item_3"}))
    e.truth.refuse("malformed")
    e.row("error", message="stream lost, retrying 1/5")
    e.say("agent_message", text=e.voice.say())
    e.end_turn(spent(e))
    return {"first.jsonl": [first], "second.jsonl": [e.made("closed", is_lower_bound=False)]}


def failed() -> Files:
    """A turn that failed: what it used is not told, and a turn's end is no verdict on the run."""
    e = process("failed", "")
    e.truth.run_id = uuid7(e.voice, 1_793_800_000_000)
    e.start()
    e.row("turn.started")
    e.call("command_execution", e.voice.command(), "completed")
    e.row("turn.failed", error={"message": "the harbour does not answer"})
    e.truth.outcome = "error"
    return {"failed.jsonl": [e.made("closed", is_lower_bound=True)]}
