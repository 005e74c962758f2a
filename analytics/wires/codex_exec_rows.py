"""Rows of a Codex exec capture: processes, turns, items and their calls, running totals.

Rules come from the field notes on native transcripts (section 4): the last total of a thread is its usage and turns are
differences; an item started and not completed is an unfinished call; `declined` is a denial, not a failure (codex
PR #7101); an error row is also how a retry shows. A failed turn tells no usage, so it leaves a row of unknown figures.
"""

from __future__ import annotations

from typing import Any

from analytics.wires.base import Rows
from analytics.wires.codex_exec_calls import (
    answer_is_error,
    changed_files,
    configuration,
    limit_parts,
    mcp_name,
    milliseconds,
    patched_paths,
    usage_columns,
)
from analytics.wires.codex_exec_lines import (
    BEGINNINGS,
    CALL_ITEMS,
    ENDINGS,
    HEADER,
    ITEM_ROWS,
    MESSAGES,
    OPENINGS,
    PLAIN_TEXT,
    PROMPT,
    QUIET_ITEMS,
    QUIET_MESSAGES,
    SPOKEN,
    Broken,
    Header,
    Item,
    Line,
    Msg,
    MsgLine,
    PlainText,
    Prompt,
    is_said,
    whole,
    word,
)
from analytics.wires.codex_exec_process import Process

FAILED = {"completed": False, "failed": True}


class Reader(Process):
    """The rows of both forms, and the lines between them."""

    def read(self, objs: list[Any]) -> Rows:
        """All rows in order."""
        state = self.state
        for i, o in enumerate(objs):
            if type(o) is Line:
                self.line(i, o)
                state.has_rows = True
            elif type(o) is MsgLine:
                self.message(i, o.msg)
                state.has_rows = True
            else:
                self.beside(i, o)
            if state.run_id is not None:
                self.runs[i] = state.run_id
            elif i not in self.broken and self.first is None:
                self.first = i
        self.settle(len(objs))
        return self.finish()

    # rows since 2025-09-30

    def line(self, i: int, o: Line) -> None:
        kind = self.events[i] = o.type
        self.in_turn(i)
        if kind in ITEM_ROWS:
            self.item(i, o)
        elif kind == "turn.started":
            self.turn_started(i)
        elif kind == "turn.completed":
            self.turn_ended(i, "completed", "success")
            if o.usage is None or o.usage.is_blank:
                self.unknown(i)
            else:
                self.total(i, o.usage)
        elif kind == "turn.failed":
            self.turn_ended(i, "failed", "error", word(o.error if isinstance(o.error, str) else message_of(o.error)))
            self.unknown(i)
        elif kind in BEGINNINGS:
            self.thread_started(i, o)
        elif kind == "error":
            self.trouble(i, "error", o.message)
        elif kind not in ("item.plan.delta", "request_user_input"):
            self.kinds[i] = "opaque"

    def thread_started(self, i: int, o: Line) -> None:
        thread_id = word(o.thread_id) or word(o.session_id)
        if thread_id is None:
            self.refuse(i, f"{o.type} without the id of its thread")
            return
        if self.state.thread_id is not None or self.state.has_header:
            self.renew(i)
        self.turns[i] = None
        self.thread(i, thread_id)

    def item(self, i: int, o: Line) -> None:
        item = o.item
        if item is None:
            self.refuse(i, f"{o.type} without an item")
            return
        kind = item.kind
        self.events[i] = f"{o.type}/{kind}"
        is_end = o.type == "item.completed"
        if kind in CALL_ITEMS:
            self.call_item(i, item, kind, is_start=o.type == "item.started", is_end=is_end)
        elif kind in MESSAGES or kind == "reasoning":
            if is_end:
                self.spoken(i, "reasoning" if kind == "reasoning" else "message", item.text)
        elif kind == "error":
            if is_end:
                self.trouble(i, "error", item.message)
        elif kind not in QUIET_ITEMS:
            self.kinds[i] = "opaque"

    def call_item(self, i: int, item: Item, kind: str, *, is_start: bool, is_end: bool) -> None:
        call_id, status, tool = word(item.id), word(item.status), kind
        if kind == "mcp_tool_call":
            tool = mcp_name(item.server, item.tool)
        elif kind == "collab_tool_call":
            tool = word(item.tool) or kind
        if not is_end or status == "in_progress":
            if is_start or (is_end and call_id not in self.state.open):
                self.requested(i, call_id, tool)
            else:
                self.rows.put(i, call_id=call_id, tool=tool, status=status)
            return
        is_error = FAILED.get(status or "")
        if is_error is None and is_said(item.error):
            is_error = True
        self.finished(i, call_id, tool, status=status, is_error=is_error, exit_code=whole(item.exit_code))
        if kind == "file_change" and status in ("completed", None):
            for path, change in changed_files(item.changes):
                self.file(i, call_id, path, change)

    # rows before 2025-09-30

    def message(self, i: int, msg: Msg) -> None:
        kind = self.events[i] = msg.type
        self.in_turn(i)
        if kind in SPOKEN:
            if SPOKEN[kind] in ("error", "retry", "warning"):
                self.trouble(i, SPOKEN[kind], msg.message)
            else:
                self.spoken(i, SPOKEN[kind], msg.text if SPOKEN[kind] == "reasoning" else msg.message)
        elif kind in OPENINGS:
            tool = mcp_of(msg) if kind == "mcp_tool_call_begin" else OPENINGS[kind]
            self.requested(i, word(msg.call_id), tool, patched_paths(msg.changes))
        elif kind in ENDINGS:
            self.call_ended(i, msg, kind)
        elif kind == "token_count":
            self.token_count(i, msg)
        elif kind == "task_started":
            self.turn_started(i)
            self.rows.put(i, context_window_tokens=whole(msg.model_context_window))
        elif kind == "task_complete":
            self.turn_ended(i, "completed", "success")
        elif kind == "turn_aborted":
            self.turn_ended(i, word(msg.reason) or "aborted", None)
            self.unknown(i)
        elif kind == "session_configured":
            self.session_configured(i, msg)
        elif kind not in QUIET_MESSAGES:
            self.kinds[i] = "opaque"

    def session_configured(self, i: int, msg: Msg) -> None:
        """The row that names the thread; the configuration before it belongs to the same process."""
        state, thread_id = self.state, word(msg.session_id)
        if thread_id is None:
            self.refuse(i, "session_configured without the id of its thread")
            return
        if state.thread_id is not None:
            self.renew(i)
        more = {"model": word(msg.model), "effort": word(msg.reasoning_effort)}
        state.said = {**state.said, **{name: value for name, value in more.items() if value is not None}}
        self.turns[i] = None
        self.thread(i, thread_id)

    def call_ended(self, i: int, msg: Msg, kind: str) -> None:
        call_id, status, exit_code = word(msg.call_id), word(msg.status), whole(msg.exit_code)
        tool, is_error = ENDINGS[kind], None
        if kind == "exec_command_end":
            is_error = None if exit_code is None else exit_code != 0
        elif kind == "patch_apply_end":
            is_error = not msg.success if type(msg.success) is bool else None
        elif kind == "mcp_tool_call_end":
            tool, is_error = mcp_of(msg), answer_is_error(msg.result)
        call = self.finished(
            i, call_id, tool, status=status, is_error=is_error, exit_code=exit_code,
            duration_ms=milliseconds(msg.duration),
        )  # fmt: skip
        if kind == "patch_apply_end" and msg.success is True:
            for path in call.paths:
                self.file(i, call_id, path)

    def token_count(self, i: int, msg: Msg) -> None:
        """`info` has the thread's total; before it, the counters stand on the row and are those of one request."""
        info = msg.info
        if info is not None and info.total_token_usage is not None and not info.total_token_usage.is_blank:
            last = info.last_token_usage
            self.total(
                i, info.total_token_usage, context_tokens=last.total_tokens if last is not None else None,
                context_window_tokens=info.model_context_window,
            )  # fmt: skip
        elif not msg.is_blank:
            self.part(i, kind="usage", usage_scope="delta", requests=1, **usage_columns(msg), **self.model())
        windows = list(limit_parts(msg.rate_limits))
        if windows and not self.state.has_limits:
            self.state.has_limits = True
            self.speak(i, "limits")
        for window in windows:
            self.part(i, kind="rate_limit", **window)

    # lines that are no rows

    def beside(self, i: int, o: Header | Prompt | PlainText | Broken) -> None:
        if isinstance(o, Broken):
            self.broken[i] = o
            return
        if isinstance(o, Header):
            self.header_row(i, o)
            return
        self.in_turn(i)
        self.events[i] = PROMPT if isinstance(o, Prompt) else PLAIN_TEXT
        if isinstance(o, Prompt):
            self.kinds[i] = "message"
        self.rows.put(i, text_chars=o.chars)

    def header_row(self, i: int, o: Header) -> None:
        """The configuration begins a process; text before it belongs to it."""
        state = self.state
        self.events[i] = HEADER
        if state.has_rows:
            self.renew(i)
        state.said, state.has_rows, state.has_header = configuration(o), True, True
        if state.run_id is None:
            self.header = i
        else:
            self.configured(i)


def message_of(error: Any) -> Any:
    """The text of an error that is an object."""
    return getattr(error, "message", None)


def mcp_of(msg: Msg) -> str:
    """The tool of an MCP call."""
    called = msg.invocation or msg  # the oldest builds wrote server and tool on the message itself
    return mcp_name(called.server, called.tool)
