"""Rows of Claude Code session files: answers and their usage, calls and results, denials, retries, compactions.

A session repeats itself: an answer stands on a row per block, a resumed file holds its parent's rows again. Each row
says only what it holds, with the keys (event_key, usage_key, call ids) by which the queries know copies. The content
blocks of a row come first among its parts, so that a copy of the row has the same parts at the same places.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from analytics.wires.base import Refusal, Rows, attributes, clip, key64, origin_of, times
from analytics.wires.claude_code_blocks import (
    Columns,
    block_columns,
    compaction,
    finished,
    made_up,
    refused_results,
    retry,
    row_denied,
    verdict,
)
from analytics.wires.claude_code_lines import METADATA, PROGRESS, SUBTYPES, Line, Nested, Progress, Run, State, run_of
from analytics.wires.claude_messages import (
    NO_USAGE,
    SYNTHETIC,
    Block,
    Message,
    Usage,
    call_scope,
    is_interruption,
    raw,
    request_key,
    usage_lists,
    whole,
    word,
)

NAME = "claude-code"
VIEW_RANK = 10
SPEAKS = "tokens results decisions clock"
MESSAGES = frozenset({"assistant", "user"})
Words = list[str | None]


class Filler:
    """The columns of one span, filled row by row."""

    def __init__(self, objs: list[Line], state: State, source_id: str) -> None:
        n = len(objs)
        self.objs, self.state, self.rows = objs, state, Rows(n)
        self.run_ids, self.unnamed = self.name(f"{NAME}-{source_id}")
        self.events = [o.type for o in objs]
        self.kinds = ["system"] * n
        self.texts: tuple[list[int], list[int]] = [], []  # places and characters
        self.answers: tuple[list[int], list[Message], list[str | None], list[Any]] = [], [], [], []
        self.calls: tuple[list[int], list[str], Words, Words] = [], [], [], []
        self.results: tuple[list[int], Words, Words, Words, list[bool]] = [], [], [], [], []

    def name(self, made_up: str) -> tuple[list[str], int]:
        """The run of each row. Rows that name none belong to the run before, the first ones to the first that is named;
        where none is, to a run made from the source. Also how many rows stand in a run made up like this.
        """
        state = self.state
        run, named, session_id, agent_id = state.run, None, None, None
        found: list[str | None] = []
        for o in self.objs:
            if o.session_id and (o.session_id != session_id or o.agent_id != agent_id):
                session_id, agent_id = o.session_id, o.agent_id
                run = self.known(session_id, agent_id)
                named = named or run
            found.append(run)
        state.run = run
        first = named or made_up
        return [run or first for run in found], 0 if named else found.count(None)

    def known(self, session_id: str, agent_id: str | None) -> str:
        """The run of a session or its subagent, remembered if it is new."""
        run_id = run_of(session_id, agent_id)
        if run_id not in self.state.runs:
            self.state.runs[run_id] = Run(session_id, agent_id or None)
        return run_id

    def read(self) -> Rows:
        """All rows, then their columns."""
        runs = self.state.runs
        run, known = Run(""), ""
        for i, o in enumerate(self.objs):
            run_id = self.run_ids[i]
            if run_id != known:
                run, known = runs.setdefault(run_id, Run(run_id)), run_id  # a new one is the one made up
            kind = o.type
            if kind in MESSAGES:
                message = o.message
                if type(message) is not Message or message.content is UNSET:
                    self.rows.refused[i] = Refusal("malformed", f"the message of the {kind} row has no content", run_id)
                    continue
                self.message(i, o, message, run)
            elif kind == "progress":
                if self.progress(i, o):
                    continue
            elif kind == "system":
                self.system(i, o)
            elif kind not in METADATA:
                self.kinds[i] = "opaque"
            if not run.is_started:
                self.introduce(i, o, run, run_id)
        self.columns()
        return self.rows

    def introduce(self, i: int, o: Line, run: Run, run_id: str) -> None:
        """What the run's stream can speak of, on its first row; what it is, beside the first row that tells."""
        said: Columns = {"end_rule": "none", "speaks": SPEAKS}
        if not run.is_begun:
            run.is_begun = True
            self.rows.put(i, **said)
        if o.type in METADATA:
            return
        run.is_started = True
        told = {name: word(getattr(o, name)) for name in ("cwd", "git_branch", "version", "entrypoint")}
        view = {"session_id": run_id, "view_rank": VIEW_RANK} if run.agent is None else {}
        said["attributes"] = attributes(**told, **view)
        # it is of this source alone, even where the row beside it is a copy
        self.parts(i, said | {"kind": "run.started", "event": "run", "event_key": None})

    def parts(self, i: int, *parts: Columns) -> None:
        self.rows.parts += [(i, part) for part in parts]

    def text(self, i: int, text: Any) -> None:
        if type(text) is str:
            self.texts[0].append(i)
            self.texts[1].append(len(text))

    def message(self, i: int, row: Nested, message: Message, run: Run) -> None:
        """A row of the conversation."""
        if row.type != "assistant":
            self.turn(i, row, message, run)
        elif message.model == SYNTHETIC or row.is_api_error_message is True:
            self.kinds[i] = "error"  # no request stands behind it, whatever model and usage it shows
            self.rows.put(i, **made_up(row, message))
        else:
            self.answer(i, row, message, run)

    def answer(self, i: int, row: Nested, message: Message, run: Run) -> None:
        """A row of an answer. The usage is the answer's, so it stands on the row, whatever its blocks are."""
        key = request_key(message, row.request_id, row.uuid)
        places, messages, keys, efforts = self.answers
        places.append(i)
        messages.append(message)
        keys.append(key)
        if key != run.answer:
            run.answer, run.latest = key, []
        efforts.append(row.effort)
        self.kinds[i] = "message"
        content = message.content
        if type(content) is not list:
            self.text(i, content)
            return
        for number, block in enumerate(content):
            if type(block) is not Block:
                continue
            if number:
                part = block_columns(block, "assistant", run)
                self.parts(i, part | {"request_id": key, "model": word(message.model)})
            elif block.type == "text":
                self.text(i, block.text)
            elif block.type == "thinking":
                self.kinds[i] = "reasoning"
                self.text(i, block.thinking)
            elif block.type == "tool_use" and type(block.id) is str:
                self.kinds[i] = "tool.requested"
                at, ids, scopes, tools = self.calls
                at.append(i)
                ids.append(block.id)
                scopes.append(call_scope(block.id, run_of(run.session, run.agent)))
                tools.append(tool := word(block.name))
                run.open[block.id] = tool
                run.latest.append(block.id)
            else:
                self.first(i, block_columns(block, "assistant", run))

    def turn(self, i: int, row: Nested, message: Message, run: Run) -> None:
        """What the model is given: a prompt, results of calls, or text that the client puts in."""
        is_put_in = row.is_meta is True or row.is_compact_summary is True
        self.kinds[i] = "injection" if is_put_in else "message"
        content, denial = message.content, word(row.tool_denial_kind)
        is_stopped = False
        if type(content) is not list:
            self.text(i, content)
            is_stopped = type(content) is str and is_interruption(content)
        else:
            refused = refused_results(content) if denial else []
            for number, block in enumerate(content):
                if type(block) is not Block:
                    continue
                kind = block.type
                verdict_of = denial if denial and any(block is other for other in refused) else None
                if kind == "text" and type(block.text) is str:
                    is_stopped = is_stopped or is_interruption(block.text)
                if number:
                    self.parts(i, block_columns(block, "user", run, verdict_of))
                elif kind == "tool_result":
                    self.result(i, block, run, verdict_of)
                elif kind == "text":
                    self.text(i, block.text)
                else:
                    self.first(i, block_columns(block, "user", run, verdict_of))
            denial = None if refused else denial
        if denial is not None:  # it does not tell of which call
            self.parts(i, {"kind": "tool.decided"} | row_denied(denial))
        if is_stopped:  # the calls that were waited for end here, but nothing was refused
            self.rows.put(i, status="interrupted")
            for call_id in run.latest:
                if call_id in run.open:
                    self.parts(i, finished(call_id, run.open.pop(call_id), run) | {"status": "interrupted"})

    def result(self, i: int, block: Block, run: Run, denial: str | None) -> None:
        """The result of a call, the first block of its row."""
        self.kinds[i] = "tool.finished"
        places, ids, scopes, tools, errors = self.results
        call_id = word(block.tool_use_id)
        places.append(i)
        ids.append(call_id)
        scopes.append(call_scope(call_id, run_of(run.session, run.agent)))
        tools.append(run.open.pop(call_id, None) if call_id else None)
        errors.append(is_error := block.is_error is True)
        if is_error or denial is not None:
            self.rows.put(i, **verdict(block, denial))

    def first(self, i: int, values: Columns) -> None:
        """The first block of a row stands on the row itself."""
        self.kinds[i] = values.pop("kind")
        self.events[i] = values.pop("event", self.events[i])
        self.rows.put(i, **values)

    def progress(self, i: int, o: Line) -> bool:
        """A progress row; True if it is the row of a subagent and is done with."""
        data = o.data
        kind = word(data.type) if type(data) is Progress else None
        if kind is not None:
            self.events[i] = f"progress/{kind}"
            self.kinds[i] = "system" if kind in PROGRESS else "opaque"
        if type(data) is not Progress or kind != "agent_progress":
            return False
        row, agent_id = data.message, word(data.agent_id)
        if type(row) is not Nested or row.type not in MESSAGES:
            return False
        message = row.message
        if type(message) is not Message or message.content is UNSET:
            return False
        runs, run_id, parent_call_id = self.state.runs, self.run_ids[i], word(o.parent_tool_use_id)
        if agent_id is not None:
            run_id = self.run_ids[i] = self.known(runs[run_id].session, agent_id)
        run, behind = runs[run_id], len(self.rows.parts)
        self.message(i, row, message, run)
        if not run.is_started:
            self.introduce(i, o, run, run_id)
        self.rows.put(i, parent_call_id=parent_call_id)
        for _, part in self.rows.parts[behind:]:
            part["parent_call_id"] = parent_call_id
        return True

    def system(self, i: int, o: Line) -> None:
        """A system row; most subtypes say nothing that is counted."""
        subtype, put = word(o.subtype), self.rows.put
        if subtype is None:
            return
        self.events[i] = f"system/{subtype}"
        if subtype == "turn_duration":
            put(i, duration_ms=whole(o.duration_ms))
        elif subtype == "compact_boundary":
            self.kinds[i] = "compaction"
            put(i, **compaction(raw(o.compact_metadata)))
        elif subtype == "api_error":
            self.kinds[i] = "retry"
            put(i, **retry(o))
        elif subtype == "error" or (subtype == "informational" and o.level == "error"):
            self.kinds[i] = "error"
            put(i, message=clip(word(raw(o.content))), is_error=True)
        elif subtype in ("api_refusal", "model_refusal_fallback") or (
            subtype == "informational" and o.level == "warning"
        ):
            self.kinds[i] = "warning"
            models = attributes(original_model=word(o.original_model), fallback_model=word(o.fallback_model))
            put(i, message=clip(word(raw(o.content))), status=subtype, attributes=models)
        elif subtype not in SUBTYPES:
            self.kinds[i] = "opaque"

    def columns(self) -> None:
        """What the rows say, column by column."""
        rows, objs, run_ids = self.rows, self.objs, self.run_ids
        columns, constants = rows.columns, rows.constants
        columns["kind"], columns["event"] = self.kinds, self.events
        columns["event_key"] = [key64(o.uuid.encode()) if o.uuid else None for o in objs]
        columns["ts"] = moments = times([o.timestamp if type(o.timestamp) is str else None for o in objs])
        columns["ts_origin"] = origin_of(moments, "vendor")
        constants |= {"is_line_key": True, "is_shared_run": True, "run_id_origin": "wire"}
        if self.unnamed:
            del constants["run_id_origin"]
            columns["run_id_origin"] = ["source" if i < self.unnamed else "wire" for i in range(rows.n)]
        runs = {run_id: self.state.runs[run_id] for run_id in {*run_ids}}
        agents = {run_id: (run.session, run.agent) for run_id, run in runs.items() if run.agent}
        if len(runs) == 1:
            constants["run_id"] = run_ids[0]
        else:
            columns["run_id"] = run_ids
        if agents:
            places = [i for i, run_id in enumerate(run_ids) if run_id in agents]
            of = [agents[run_ids[i]] for i in places]
            rows.fill(places, parent_run_id=[session for session, _ in of], agent_id=[agent for _, agent in of])
            for i, part in self.rows.parts:
                if (agent := agents.get(run_ids[i])) is not None:
                    part["parent_run_id"], part["agent_id"] = agent
        places, chars = self.texts
        rows.fill(places, text_chars=chars)
        places, ids, scopes, tools = self.calls
        rows.fill(places, call_id=ids, call_scope=scopes, tool=tools)
        places, known, scopes, tools, errors = self.results
        rows.fill(places, call_id=known, call_scope=scopes, tool=tools, is_error=errors)
        self.usage()

    def usage(self) -> None:
        """The usage of the answers: a snapshot on each row, final on the rows that name a stop reason."""
        places, messages, keys, efforts = self.answers
        if not places:
            return
        said = [m.usage if type(m.usage) is Usage else NO_USAGE for m in messages]
        self.rows.fill(
            places,
            request_id=keys, usage_key=keys, requests=[1] * len(places), usage_scope=["snapshot"] * len(places),
            usage_is_final=[m.stop_reason is not None for m in messages],
            model=[word(m.model) for m in messages],
            effort=[word(effort) for effort in efforts],
            **usage_lists(said),
        )  # fmt: skip
