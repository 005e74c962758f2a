"""Transcripts as the coding agents write them, row by row, for inputs small enough to add up by hand.

Each class is one file that grows: a Claude Code session, a Claude Code stream-json capture, a Codex rollout, a capture
of `codex exec --json`. Times start at 10:00 on 4 May 2026, UTC; `start` moves a file by seconds.
"""

from __future__ import annotations

import copy
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Self

Row = dict[str, Any]
Tokens = tuple[int, int, int, int]  # input with cached, cached, output with reasoning, reasoning

START = datetime(2026, 5, 4, 10, tzinfo=UTC)
DAY = 86_400
SONNET, HAIKU, OPUS = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001", "claude-opus-4-6"
GPT = "gpt-5.2-codex"
REJECTED = "The user doesn't want to proceed with this tool use."
RULED_OUT = "Permission to use Bash with command make has been denied."
NOT_GRANTED = "You asked to use Write, but you haven't granted it yet."
CODEX_REJECTED = "exec command rejected by user"


def at(seconds: float) -> str:
    """A time as both vendors write it."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch(seconds: float = 0) -> int:
    """The same, seconds since the epoch."""
    return int((START + timedelta(seconds=seconds)).timestamp())


def dump(rows: list[Row], *, spaced: bool = False) -> bytes:
    """Rows as lines; spaced: as a serialiser writes them that puts blanks after colons and commas."""
    separators = (", ", ": ") if spaced else (",", ":")
    return b"".join(json.dumps(row, separators=separators, ensure_ascii=False).encode() + b"\n" for row in rows)


def usage(
    tokens: int, output: int, *, read: int | None = 0, write: int | None = 0, hour: int | None = 0,
    five: int | None = None, **more: Any,
) -> Row:  # fmt: skip
    """`message.usage`; None leaves a key out; `hour` and `five` are the parts of `write` (five: the rest)."""
    made: Row = {"input_tokens": tokens, "output_tokens": output, "service_tier": "standard", **more}
    if read is not None:
        made["cache_read_input_tokens"] = read
    if write is not None:
        made["cache_creation_input_tokens"] = write
        if hour is not None:
            rest = write - hour if five is None else five
            made["cache_creation"] = {"ephemeral_5m_input_tokens": rest, "ephemeral_1h_input_tokens": hour}
    return made


def text(words: str = "done") -> Row:
    return {"type": "text", "text": words}


def thought(words: str = "first the list") -> Row:
    return {"type": "thinking", "thinking": words, "signature": "c2ln"}


def tool(call: str, name: str = "Bash", **arguments: Any) -> Row:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments or {"command": "make"}}


def message(
    answer: str | None, figures: Row | None, blocks: tuple[Row, ...], stop: str | None, model: str = SONNET
) -> Row:
    """An assistant's message, or the part of it that one row shows."""
    made: Row = {"id": answer, "type": "message", "role": "assistant", "model": model}
    if answer is None:
        del made["id"]
    made |= {"content": list(blocks) or [text()], "stop_reason": stop, "stop_sequence": None}
    return made if figures is None else made | {"usage": figures}


def tool_result(call: str, content: Any, *, is_error: bool) -> Row:
    made: Row = {"tool_use_id": call, "type": "tool_result", "content": content}
    return made | {"is_error": True} if is_error else made


class File:
    """Rows that make a file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, *rows: Row) -> Self:
        self.rows += rows
        return self

    def cut(self, rows: int) -> Self:
        """A checkpoint of it: the first rows only."""
        made = copy.deepcopy(self)
        made.rows = made.rows[:rows]
        return made

    @property
    def data(self) -> bytes:
        return dump(self.rows)


class Session(File):
    """A Claude Code session file, or the file of a subagent of it."""

    def __init__(
        self, session: str, *, start: float = 0, agent: str | None = None, version: str = "2.1.100", **envelope: Any
    ) -> None:
        super().__init__()
        self.session, self.agent, self.clock = session, agent, start
        self.envelope: Row = {
            "isSidechain": agent is not None, "userType": "external", "cwd": "/work", "sessionId": session,
            "version": version, "gitBranch": "main", **envelope,
        }  # fmt: skip
        if agent is not None:
            self.envelope["agentId"] = agent

    def row(self, kind: str, **fields: Any) -> Self:
        """A row of any type, one second after the one before."""
        name = f"{self.session}/{self.agent}/{len(self.rows)}"
        parent = self.rows[-1].get("uuid") if self.rows else None
        row = {"parentUuid": parent, **self.envelope, "type": kind, **fields}
        row |= {"uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, name)), "timestamp": at(self.clock)}
        self.clock += 1
        return self.add(row)

    def user(self, words: str = "sort the parcels") -> Self:
        return self.row("user", message={"role": "user", "content": words})

    def answer(
        self, answer: str | None, figures: Row | None, *blocks: Row, stop: str | None = "end_turn",
        request: str | None = None, model: str = SONNET, **fields: Any,
    ) -> Self:  # fmt: skip
        """One row of an answer."""
        if request is not None:
            fields["requestId"] = request
        return self.row("assistant", message=message(answer, figures, blocks, stop, model), **fields)

    def result(self, call: str, content: Any = "ok", *, is_error: bool = False, **fields: Any) -> Self:
        block = tool_result(call, content, is_error=is_error)
        return self.row("user", message={"role": "user", "content": [block]}, **fields)

    def calls(self, answer: str, figures: Row, *calls: str, name: str = "Bash") -> Self:
        """An answer with one row a call, and each call's result."""
        for number, call in enumerate(calls, 1):
            self.answer(answer, figures, tool(call, name), stop="tool_use" if number == len(calls) else None)
        for call in calls:
            self.result(call)
        return self

    def progress(
        self, agent: str, answer: str, figures: Row, *blocks: Row, stop: str | None = "end_turn", call: str = "task"
    ) -> Self:
        """An answer of a subagent as 2.1.12 to 2.1.63 show it inside the parent's file."""
        nested = {"type": "assistant", "timestamp": at(self.clock), "uuid": f"{answer}-{len(self.rows)}"}
        nested["message"] = message(answer, figures, blocks, stop, HAIKU)
        data = {"message": nested, "normalizedMessages": [], "type": "agent_progress", "agentId": agent}
        return self.row("progress", data=data, toolUseID=f"agent_{agent}", parentToolUseID=call)

    def copy(self, session: str | None = None, *, start: float | None = None, **fields: Any) -> Session:
        """The history that another file repeats: ids, uuids, times and figures as they were.

        A resumed session begins with a row of its own, at the time of the resume; a subagent's mirror (`agentId`)
        begins with the first answer.
        """
        made = Session(session or self.session, start=self.clock if start is None else start)
        made.envelope |= self.envelope | {"sessionId": made.session} | fields
        made.agent = made.envelope.get("agentId")
        if "agentId" not in fields:
            made.row("queue-operation", operation="enqueue")
        history = self.rows[1:] if "agentId" in fields else self.rows
        return made.add(*({**copy.deepcopy(row), "sessionId": made.session, **fields} for row in history))


class Capture(File):
    """What `claude -p --output-format stream-json` prints."""

    def __init__(self, session: str, *, model: str = SONNET, version: str = "2.1.100", process: int = 1) -> None:
        super().__init__()
        self.session, self.model, self.version, self.process = session, model, version, process

    def row(self, kind: str, **fields: Any) -> Self:
        name = f"capture/{self.session}/{self.process}/{len(self.rows)}"
        made = {"type": kind, **fields, "session_id": self.session}
        return self.add(made | {"uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, name))})

    def init(self) -> Self:
        return self.row(
            "system", subtype="init", cwd="/work", tools=["Bash", "Read"], mcp_servers=[], model=self.model,
            permissionMode="default", apiKeySource="none", claude_code_version=self.version, slash_commands=[],
        )  # fmt: skip

    def answer(
        self, answer: str, figures: Row, *blocks: Row, under: str | None = None, model: str | None = None,
        stop: str | None = None,
    ) -> Self:  # fmt: skip
        """One row of an answer; `under`: the call of the subagent that gave it."""
        body = message(answer, figures, blocks, stop, model or self.model)
        return self.row("assistant", message=body, parent_tool_use_id=under)

    def reply(self, call: str, content: str = "ok", *, is_error: bool = False, under: str | None = None) -> Self:
        block = tool_result(call, content, is_error=is_error)
        return self.row("user", message={"role": "user", "content": [block]}, parent_tool_use_id=under)

    def partial(self, event: Row) -> Self:
        return self.row("stream_event", event=event, parent_tool_use_id=None)

    def streamed(self, answer: str, figures: Row, output: int) -> Self:
        """The partial messages around an answer: how it begins, and what it came to."""
        self.partial({"type": "message_start", "message": message(answer, figures, (), None, self.model)})
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        return self.partial({"type": "message_delta", "delta": delta, "usage": {**figures, "output_tokens": output}})

    def limit(self, kind: str, status: str, resets: int, **fields: Any) -> Self:
        info = {"status": status, "resetsAt": resets, "rateLimitType": kind, **fields}
        return self.row("rate_limit_event", rate_limit_info=info)

    def ended(
        self, figures: Row, models: dict[str, Row] | None, *, cost: float = 0.5, subtype: str = "success",
        is_error: bool = False, denied: tuple[tuple[str, str], ...] = (), **fields: Any,
    ) -> Self:  # fmt: skip
        """A result; `denied`: the list's calls and tools."""
        fields |= {} if models is None else {"modelUsage": models}
        listed = [{"tool_name": name, "tool_use_id": call, "tool_input": {}} for call, name in denied]
        return self.row(
            "result", subtype=subtype, is_error=is_error, duration_ms=900, duration_api_ms=800, num_turns=1,
            result="done", total_cost_usd=cost, usage=figures, permission_denials=listed, **fields,
        )  # fmt: skip


def model_usage(tokens: int, output: int, *, read: int = 0, write: int = 0, cost: float = 0.5) -> Row:
    """One model's running total in a result."""
    return {
        "inputTokens": tokens, "outputTokens": output, "cacheReadInputTokens": read, "cacheCreationInputTokens": write,
        "webSearchRequests": 0, "costUSD": cost, "contextWindow": 200_000,
    }  # fmt: skip


def vector(tokens: Tokens) -> Row:
    """Usage figures as Codex writes them."""
    given, cached, output, reasoning = tokens
    return {
        "input_tokens": given, "cached_input_tokens": cached, "output_tokens": output,
        "reasoning_output_tokens": reasoning, "total_tokens": given + output,
    }  # fmt: skip


def window(percent: float, minutes: int, resets: int | None = None, *, seconds: int | None = None) -> Row:
    made: Row = {"used_percent": percent, "window_minutes": minutes}
    if resets is not None:
        made["resets_at"] = resets
    if seconds is not None:
        made["resets_in_seconds"] = seconds
    return made


class Rollout(File):
    """A Codex rollout; `total` runs on as the counter of the thread does."""

    def __init__(self, thread: str, *, start: float = 0, version: str = "0.118.0", **meta: Any) -> None:
        super().__init__()
        self.thread, self.clock, self.version = thread, start, version
        self.total: Tokens = (0, 0, 0, 0)
        self.meta(thread, **meta)

    def row(self, kind: str, payload: Row, **envelope: Any) -> Self:
        self.add({"timestamp": at(self.clock), "type": kind, "payload": payload, **envelope})
        self.clock += 1
        return self

    def meta(self, thread: str, **fields: Any) -> Self:
        made = {
            "id": thread, "timestamp": at(self.clock), "cwd": "/work", "originator": "codex_cli_rs",
            "cli_version": self.version, "instructions": None, "source": "cli", "model_provider": "custom",
        }  # fmt: skip
        return self.row("session_meta", made | fields)

    def event(self, kind: str, **fields: Any) -> Self:
        return self.row("event_msg", {"type": kind, **fields})

    def item(self, kind: str, **fields: Any) -> Self:
        return self.row("response_item", {"type": kind, **fields})

    def turn(self, turn: str | None = None, model: str = GPT) -> Self:
        """The begin of a turn; without an id only its context, as older versions write it."""
        context = {"cwd": "/work", "approval_policy": "on-request", "model": model, "effort": "medium"}
        if turn is not None:
            self.event("task_started", turn_id=turn, model_context_window=272_000)
            context["turn_id"] = turn
        return self.row("turn_context", context)

    def done(self, turn: str) -> Self:
        return self.event("task_complete", turn_id=turn, duration_ms=900)

    def count(self, total: Tokens, last: Tokens | None = None, *, limits: Row | None = None, **more: int) -> Self:
        """A token_count with the given figures; the thread's counter stands at `total` then."""
        self.total = total
        info: Row = {"total_token_usage": vector(total), "model_context_window": 272_000}
        info["last_token_usage"] = vector(last if last is not None else total) | more
        return self.event("token_count", info=info, rate_limits=limits)

    def spend(self, given: int, cached: int, output: int, reasoning: int = 0, *, limits: Row | None = None) -> Self:
        """A request: the total moves by it."""
        last = (given, cached, output, reasoning)
        now = tuple(a + b for a, b in zip(self.total, last, strict=True))
        return self.count((now[0], now[1], now[2], now[3]), last, limits=limits)

    def again(self) -> Self:
        """The event before once more, as a refresh of the limits writes it."""
        return self.row("event_msg", copy.deepcopy(self.rows[-1]["payload"]))

    def limits(self, limits: Row | None) -> Self:
        return self.event("token_count", info=None, rate_limits=limits)

    def call(self, call: str, name: str = "exec_command") -> Self:
        return self.item("function_call", name=name, arguments='{"cmd":"make"}', call_id=call)

    def output(self, call: str, words: str = "ok") -> Self:
        return self.item("function_call_output", call_id=call, output=words)

    def replay(self, parent: Rollout, rows: int | None = None) -> Self:
        """What a fork repeats of its parent, with new times; its counter stands where the parent's stood."""
        for row in parent.rows[:rows]:
            self.row(row["type"], copy.deepcopy(row["payload"]))
            info = row["payload"].get("info")
            if info:
                total = info["total_token_usage"]
                self.total = tuple(total[name] for name in list(total)[:4])  # type: ignore[assignment]
        return self


class Exec(File):
    """What `codex exec --json` prints."""

    def __init__(self, thread: str) -> None:
        super().__init__()
        self.add({"type": "thread.started", "thread_id": thread})

    def turn(self) -> Self:
        return self.add({"type": "turn.started"})

    def item(self, step: str, item: str, kind: str = "command_execution", **fields: Any) -> Self:
        if kind == "command_execution":
            fields = {"command": "make", "aggregated_output": "", "exit_code": None, "status": "in_progress"} | fields
        return self.add({"type": f"item.{step}", "item": {"id": item, "type": kind, **fields}})

    def command(self, item: str, *, status: str = "completed", exit_code: int = 0) -> Self:
        """A command from its start to its end."""
        return self.item("started", item).item("completed", item, status=status, exit_code=exit_code)

    def say(self, item: str, words: str = "done") -> Self:
        return self.item("completed", item, "agent_message", text=words)

    def done(self, given: int, cached: int, output: int, reasoning: int | None = None) -> Self:
        """The end of a turn, with the thread's running total."""
        figures = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output}
        if reasoning is not None:
            figures["reasoning_output_tokens"] = reasoning
        return self.add({"type": "turn.completed", "usage": figures})
