"""Claude Code sessions: the rows of an agent's home, one answer on as many rows as it has blocks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from makers.common import Clock, Made, Tokens, Truth, Voice, dumps
from makers.native import FOLDER, NativeFile, Row, beginning, count_claude, uuid4

MODEL, HELPER = "larch-5", "larch-mini-5"
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
RULED_OUT = "Permission to use Bash with command make harbour has been denied."
NOT_GRANTED = "Claude requested permissions to write to src/quay.py, but you haven't granted it yet."
INTERRUPTED = "[Request interrupted by user for tool use]"


@dataclass(slots=True)
class Answer:
    """One request: its ids, what it used at its end, and the output its first rows show."""

    id: str
    request: str
    model: str
    tokens: Tokens
    hour: int
    early: int

    def usage(self, output: int) -> Row:
        used = self.tokens
        kept = {
            "ephemeral_5m_input_tokens": used.cache_write - self.hour,
            "ephemeral_1h_input_tokens": self.hour,
        }
        return {
            "input_tokens": used.input, "cache_creation_input_tokens": used.cache_write,
            "cache_read_input_tokens": used.cache_read, "cache_creation": kept, "output_tokens": output,
            "service_tier": "standard",
        }  # fmt: skip

    def message(self, block: Row, output: int, stop: str | None) -> Row:
        return {
            "model": self.model, "id": self.id, "type": "message", "role": "assistant", "content": [block],
            "stop_reason": stop, "stop_sequence": None, "usage": self.usage(output),
        }  # fmt: skip


@dataclass(slots=True)
class Session(NativeFile):
    """A session's file, or the file of a subagent of it.

    finality: rows show the output as it was when each was written (`growing`, the last is final), never the final
    one (`early`, as 2.1.0 to 2.1.59 do), or the final one on each row (`whole`, since 2.1.200).
    """

    session: str = ""
    version: str = ""
    finality: str = "growing"
    agent: str | None = None
    parent: str | None = None
    context: int = 9_000
    hour_share: float = 0.0
    shown: list[tuple[str, Row]] = field(default_factory=list)
    finals: list[Answer] = field(default_factory=list)

    @property
    def knows_effort(self) -> bool:
        return int(self.version.rpartition(".")[2]) >= 80

    def envelope(self, kind: str, **fields: Any) -> Row:
        row: Row = {
            "parentUuid": self.parent, "isSidechain": self.agent is not None, "userType": "external", "cwd": FOLDER,
            "sessionId": self.session, "version": self.version, "gitBranch": "quay",
        }  # fmt: skip
        if self.agent is not None:
            row["agentId"] = self.agent
        self.parent = uuid4(self.voice)
        return row | {"type": kind} | fields | {"uuid": self.parent, "timestamp": self.now()}

    def row(self, kind: str, **fields: Any) -> Row:
        made = self.envelope(kind, **fields)
        self.write(made)
        if kind in ("assistant", "user"):
            self.shown.append((kind, made))
        return made

    def prompt(self, text: str, **fields: Any) -> None:
        self.row("user", message={"role": "user", "content": text}, **fields)

    def answer(self, *tools: str, thinks: bool = False, model: str | None = None) -> list[str]:
        """One answer: thinking, text, and a call of each tool, each block on its own row. Gives the calls' ids."""
        v = self.voice
        written = v.between(60, 2_400)
        used = Tokens(v.between(2, 14), self.context, written, v.between(90, 1_100))
        self.context += written
        hour = int(written * self.hour_share)
        asked = model or (MODEL if self.agent is None else HELPER)
        made = Answer(f"msg_01{v.digits(22)}", f"req_011C{v.digits(20)}", asked, used, hour, v.between(1, 9))
        calls = [f"toolu_01{v.digits(22)}" for _ in tools]
        blocks: list[Row] = [{"type": "thinking", "thinking": v.say(), "signature": v.digits(24)}] if thinks else []
        blocks.append({"type": "text", "text": v.say()})
        blocks += [tool_use(v, call, tool) for call, tool in zip(calls, tools, strict=True)]
        for at, block in enumerate(blocks):
            is_last = at == len(blocks) - 1
            is_final = self.finality == "whole" or (self.finality == "growing" and is_last)
            output = used.output if is_final else made.early + at
            stop = ("tool_use" if tools else "end_turn") if is_final else None
            more: Row = {"requestId": made.request} | ({"effort": "high"} if self.knows_effort else {})
            self.row("assistant", message=made.message(block, output, stop), **more)
        stored = used.output if self.finality != "early" else made.early + len(blocks) - 1
        count_claude(self.truth, Tokens(used.input, used.cache_read, used.cache_write, stored), hour)
        self.finals.append(made)
        for call in calls:
            self.call_opened(call)
        return calls

    def result(self, call: str, text: str | None = None, how: str = "finished", **fields: Any) -> None:
        """A call's result; `how` it ended, and `toolDenialKind` among the fields where the version writes it."""
        is_error = how != "finished" or (text or "").startswith("<tool_use_error>")
        block: Row = {"tool_use_id": call, "type": "tool_result", "content": text or self.output()}
        said = f"Error: {block['content']}" if is_error else {"stdout": block["content"], "stderr": ""}
        more = {"toolUseResult": said} | fields
        if is_error:
            block["is_error"] = True
        self.row("user", message={"role": "user", "content": [block]}, **more)
        self.call_ended(call, how)

    def work(self, *tools: str, thinks: bool = False) -> None:
        """An answer whose calls all come back."""
        for call in self.answer(*tools, thinks=thinks):
            self.result(call)


def tool_use(v: Voice, call: str, tool: str) -> Row:
    arguments: Row = {"command": v.command()} if tool == "Bash" else {"file_path": v.path()}
    if tool == "Task":
        arguments = {"description": v.sentence(), "prompt": v.sentence(), "subagent_type": "scout"}
    return {"type": "tool_use", "id": call, "name": tool, "input": arguments}


def session(name: str, on: int, version: str, finality: str, hour_share: float = 0.0) -> Session:
    voice, clock, truth = beginning("claude-code", "session", name, on)
    truth.run_id = uuid4(voice)
    return Session(
        voice, clock, truth, session=truth.run_id, version=version, finality=finality, hour_share=hour_share,
        context=voice.between(6_000, 12_000),
    )  # fmt: skip


def subagent(of: Session) -> Session:
    """A subagent that begins now: its own chain of rows, under the session's id."""
    agent = of.voice.digits(7)
    voice = Voice(f"claude-code/{of.session}/{agent}")
    truth = Truth("claude-code", "session", f"{of.session}/{agent}", parent_run_id=of.session)
    return Session(
        voice, Clock(voice, of.clock.now), truth, session=of.session, version=of.version, finality=of.finality,
        agent=agent, context=voice.between(2_000, 4_000), hour_share=of.hour_share,
    )  # fmt: skip


def task_result(s: Session, call: str, agent: Session) -> None:
    """What the parent sees of a subagent: the usage of its last request, which adds nothing."""
    last = agent.finals[-1]
    s.clock.now = max(s.clock.now, agent.clock.now)
    total = last.tokens.input + last.tokens.cache_read + last.tokens.cache_write + last.tokens.output
    said = {"status": "completed", "agentId": agent.agent, "totalTokens": total, "totalToolUseCount": 1,
            "usage": last.usage(last.tokens.output)}  # fmt: skip
    s.result(call, s.voice.say(), toolUseResult=said)


def ended(s: Session) -> Made:
    """A session writes no end, so whether it is whole cannot be known; only that it was cut can."""
    is_damaged = bool(s.truth.refusals) or bool(s.tail)
    return s.made("truncated" if s.tail else "undecidable", is_lower_bound=s.finality == "early" or is_damaged)


Files = dict[str, list[Made]]


def home(s: Session) -> str:
    return f"projects/-project/{s.session}.jsonl"


def agent_home(agent: Session) -> str:
    return f"projects/-project/{agent.session}/subagents/agent-{agent.agent}.jsonl"


def long_session() -> Files:
    """2.1.120: growing rows, writes kept for an hour, denials by their kind, a subagent, a compaction, an API error."""
    s = session("long", 6, "2.1.120", "growing", 0.8)
    s.write({"type": "permission-mode", "permissionMode": "default", "sessionId": s.session})
    s.prompt("Mend the sluice, and say what you changed.")
    s.work("Read", "Bash", thinks=True)
    call, other = s.answer("Edit", "Read")
    s.result(call, REFUSED, "denied", toolUseResult="User rejected tool use", toolDenialKind="user-rejected")
    s.result(other)
    (call,) = s.answer("Task", thinks=True)
    agent = subagent(s)
    agent.prompt("Look for the second gate.")
    agent.work("Read")
    agent.work("Bash", thinks=True)
    agent.answer()
    task_result(s, call, agent)
    (call,) = s.answer("Bash")
    refused = "The classifier did not answer, so the command did not run."
    s.result(call, refused, "denied", toolDenialKind="automode-unavailable")
    retry = {"error": {"status": 529}, "retryInMs": 612.5, "retryAttempt": 1, "maxRetries": 10}
    s.row("system", subtype="api_error", level="error", **retry)
    s.seen(retries=1)
    s.work("Edit")
    before = s.context
    s.context = s.voice.between(5_000, 7_000)
    shrunk = {"trigger": "auto", "preTokens": before, "postTokens": s.context, "durationMs": 21_000}
    s.row("system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=shrunk)
    s.seen(compactions=1)
    s.prompt(s.voice.say(), isCompactSummary=True, isVisibleInTranscriptOnly=True)
    s.work("Bash")
    (call,) = s.answer("Bash", thinks=True)
    s.result(call, INTERRUPTED, "interrupted")
    s.prompt("Go on, but leave the second gate alone.")
    s.row("tide-mark", height=3, note=s.voice.sentence())
    s.seen(opaque_records=1)
    said = [{"type": "text", "text": "API Error: 500 the harbour is closed"}]
    broken = {
        "model": "<synthetic>", "id": uuid4(s.voice), "type": "message", "role": "assistant", "content": said,
        "stop_reason": "stop_sequence", "usage": {"input_tokens": 0, "output_tokens": 0},
    }  # fmt: skip
    s.row("assistant", message=broken, isApiErrorMessage=True, apiErrorStatus=500, error="server_error")
    s.seen(errors=1)
    s.row("system", subtype="turn_duration", durationMs=s.clock.elapsed_ms(), isMeta=False)
    s.work("Read", "Read")
    s.answer("Bash")  # its result never came
    return {home(s): [ended(s)], agent_home(agent): [ended(agent)]}


def resumed() -> Files:
    """2.1.210: a session, and its resumed copy: the same rows under a new session id, then two answers of its own."""
    s = session("first", 3, "2.1.210", "whole", 0.5)
    s.prompt("Sort the ledger by column.")
    s.work("Read", thinks=True)
    s.work("Edit", "Bash")
    s.work("Bash")
    s.answer()
    copy = session("again", 4, s.version, s.finality, s.hour_share)
    asked = {"type": "queue-operation", "operation": "enqueue", "timestamp": copy.now(), "sessionId": copy.session}
    copy.write(asked | {"content": "And the totals?"})
    for _, row in s.shown:
        copy.write(row | {"sessionId": copy.session})
    copy.parent, copy.context = s.parent, s.context
    copy.prompt("And the totals?")
    (call,) = copy.answer("Bash", thinks=True)
    copy.result(call, RULED_OUT, "denied")
    copy.answer()
    return {home(s): [ended(s)], home(copy): [ended(copy)]}


def old() -> Files:
    """2.1.30: no row is final, denials by their text only, a subagent that stands in progress rows and nowhere else."""
    s = session("old", 1, "2.1.30", "early")
    s.prompt("Trim the harbour list.")
    call, other, third = s.answer("Bash", "Edit", "Read", thinks=True)
    s.result(call, REFUSED, "denied", toolUseResult="User rejected tool use")
    s.result(other, "<tool_use_error>Sibling tool call errored</tool_use_error>")
    s.result(third, f"notes/denials.md:4: {REFUSED}")  # quotes one, is none
    call, other = s.answer("Bash", "Write")
    s.row("progress", data={"type": "bash_progress", "output": s.output(), "elapsedTimeSeconds": 2},
          toolUseID=f"bash-progress-{s.voice.digits(4)}", parentToolUseID=call)  # fmt: skip
    s.result(call, RULED_OUT, "denied")
    s.result(other, NOT_GRANTED, "denied")
    (call,) = s.answer("Task")
    agent = subagent(s)
    asked = "Which berths are empty?"
    agent.prompt(asked)
    agent.work("Read", thinks=True)
    agent.answer()
    for kind, row in agent.shown:
        nested = {"type": kind, "timestamp": row["timestamp"], "message": row["message"], "uuid": row["uuid"]}
        if "requestId" in row:
            nested["requestId"] = row["requestId"]
        s.clock.now = max(s.clock.now, agent.clock.now)
        data: Row = {"message": nested, "normalizedMessages": [], "type": "agent_progress", "prompt": asked,
                "agentId": agent.agent}  # fmt: skip
        s.row("progress", data=data, toolUseID=f"agent_{nested['uuid'][:8]}", parentToolUseID=call)
    task_result(s, call, agent)
    s.answer()
    agent.lines.clear()  # it has no file
    return {home(s): [ended(agent), ended(s)]}


def torn() -> Files:
    """2.1.64: two records on one line, a stub before a whole record, a message in single characters, a cut end."""
    s = session("torn", 2, "2.1.64", "growing")
    s.prompt("Count the crates.")
    s.work("Bash", thinks=True)
    s.work("Read")
    snapshot = {"type": "file-history-snapshot", "messageId": uuid4(s.voice), "snapshot": {}, "isSnapshotUpdate": False}
    s.lines[-1] += dumps(snapshot)
    s.answer("Bash")
    last = s.lines.pop()
    stub = dumps(s.envelope("user", message={"role": "user", "content": s.voice.say()}))[:170]
    s.lines.append(stub + last)
    s.truth.refuse("torn_record")
    s.glued += 1
    spilled = json.dumps({"model": MODEL, "role": "assistant"})
    s.write(s.envelope("assistant", message={str(at): letter for at, letter in enumerate(spilled)}))
    s.truth.refuse("malformed")
    call = next(iter(s.open_calls))
    s.result(call)
    s.answer()
    s.tail = dumps(s.envelope("user", message={"role": "user", "content": s.voice.say()}))[:-90]
    return {home(s): [ended(s)]}
