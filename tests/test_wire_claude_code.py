"""The Claude Code session wire: rows in, event rows out. Each figure names the naive answer it avoids.

`session.jsonl` was written by hand with everything a session can hold, `resumed.jsonl` repeats its beginning under
another session id, `subagents/agent-beef01.jsonl` is the own file of the subagent that the session shows in part.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import Reader, Reading, check_conservation, rebuild
from hypothesis import HealthCheck, given, settings, strategies as st

from analytics.refusals import NAMES
from analytics.schema import KINDS
from analytics.wires.base import Context, Refusal, Sample, key64
from analytics.wires.claude_code import WIRE
from analytics.wires.claude_code_rows import VIEW_RANK
from analytics.wires.claude_messages import (
    CacheCreation,
    Message,
    OutputDetails,
    Usage,
    decider,
    is_interruption,
    kept_an_hour,
    refusal,
    request_key,
    result_text,
    usage_columns,
)

FIXTURES = Path(__file__).parent / "fixtures" / "claude-code"
SESSION, RESUMED, AGENT = (FIXTURES / n for n in ("session.jsonl", "resumed.jsonl", "subagents/agent-beef01.jsonl"))
S, R = "5e550000-0000-4000-8000-000000000001", "5e550000-0000-4000-8000-000000000002"
ROWS = [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]
NOT_SAID_TWICE = ("payload", "byte_offset", "source_id")
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path, wire="claude-code")


def read(reader: Reader, data: bytes | list[dict[str, Any]], name: str = "s.jsonl") -> Reading:
    """Rows (or bytes) as a file, read by the worker."""
    path = reader.folder / name
    path.write_bytes(data if isinstance(data, bytes) else b"".join(json.dumps(row).encode() + b"\n" for row in data))
    _, reading = reader.read(path)
    reader.clear()
    check_conservation(reading)
    assert {row["kind"] for row in reading.events} <= set(KINDS)
    assert {row["reason"] for row in reading.refusals} <= NAMES
    return reading


def rows(reading: Reading, **values: Any) -> list[dict[str, Any]]:
    """The event rows that hold all of the values."""
    return [row for row in reading.events if all(row[name] == value for name, value in values.items())]


def only(reading: Reading, **values: Any) -> dict[str, Any]:
    """The one event row that holds all of the values."""
    (row,) = rows(reading, **values)
    return row


def says(row: dict[str, Any], **values: Any) -> bool:
    return {name: row[name] for name in values} == values


def one(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row in its envelope."""
    return {"uuid": "u-1", "parentUuid": None, "sessionId": "s-1", "timestamp": "2026-07-01T08:00:00Z"} | row | more


def answer(content: Any, usage: Any = None, **message: Any) -> dict[str, Any]:
    said = {"id": "msg_a1", "role": "assistant", "model": "claude-x-1", "content": content} | message
    return one({"type": "assistant", "message": said if usage is None else said | {"usage": usage}})


def prompt(content: Any, **more: Any) -> dict[str, Any]:
    return one({"type": "user", "message": {"role": "user", "content": content}}, **more)


def call(name: str, call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"a": 1}}


def result(call_id: str, content: Any, *, is_error: Any = True) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}


class TestSession:
    """The file written by hand, line by line."""

    @pytest.fixture
    def session(self, reader: Reader) -> Reading:
        reading = read(reader, SESSION.read_bytes())
        assert reading.reasons() == []
        assert rebuild(reading) == SESSION.read_bytes()
        return reading

    def test_every_row_says_whose_it_is(self, session: Reading) -> None:
        """The first and the last row name no session; the subagent's rows are its own (the naive: one run)."""
        runs = [(row["line"], row["run_id"]) for row in session.events if row["part"] == 0]
        agent = {15, 16}
        assert runs == [(n, f"{S}/beef01" if n in agent else S) for n in range(1, 28)]
        assert {row["run_id_origin"] for row in session.events} == {"wire"}
        assert {row["agent_id"] for row in rows(session, line=15)} == {"beef01"}
        assert {row["parent_run_id"] for row in session.events if row["line"] not in agent} == {None}

    def test_a_run_is_introduced_once(self, session: Reading) -> None:
        assert [row["line"] for row in session.events if row["speaks"] and row["part"] == 0] == [1, 15]
        assert {row["speaks"] for row in session.events if row["speaks"]} == {"tokens results decisions clock"}
        assert {row["end_rule"] for row in session.events if row["end_rule"]} == {"none"}
        main, agent = rows(session, kind="run.started")
        assert (main["line"], agent["line"]) == (3, 15), "the first rows that tell of the run"
        said = {"cwd": "/srv/garden", "git_branch": "hedge", "version": "2.1.130", "entrypoint": "cli"}
        assert json.loads(main["attributes"]) == said | {"session_id": S, "view_rank": VIEW_RANK}
        assert json.loads(agent["attributes"]) == said, "a subagent is no view of the session"
        assert says(agent, parent_run_id=S, agent_id="beef01", parent_call_id="toolu_ask", event="run")
        assert (main["event_key"], agent["event_key"]) == (None, None), "no copy of the row beside it hides it"

    def test_usage_stands_on_each_row_of_an_answer(self, session: Reading) -> None:
        """Summing the rows of msg_rose gives 315 output, its first row 2; the fullest row is right: 311."""
        found = defaultdict(list)
        for row in session.events:
            if row["usage_scope"]:
                assert says(row, usage_scope="snapshot", requests=1, request_id=row["usage_key"])
                found[row["usage_key"]].append((row["output_tokens"], row["usage_is_final"]))
        assert found == {
            "msg_rose": [(2, False), (2, False), (311, True)],
            "msg_shears": [(5, False), (5, False), (64, False)],
            "msg_count": [(21, True)],
            "msg_done": [(None, True)],
        }
        fullest = only(session, line=6, part=0)
        assert says(
            fullest, input_tokens=4, cache_read_tokens=9000, cache_write_tokens=700, cache_write_1h_tokens=700,
            reasoning_tokens=None, input_includes_cache=False, model="claude-opus-4-6", effort="high", speed="standard",
        )  # fmt: skip
        unknown = only(session, line=24, part=0)
        assert says(unknown, input_tokens=None, input_includes_cache=None, cache_read_tokens=None)

    def test_no_usage_of_what_is_no_request(self, session: Reading) -> None:
        """A Task's result repeats the subagent's last request, client-made answers have zeros: none of it is usage."""
        for line in (18, 20, 21, 26):
            row = only(session, line=line, part=0)
            assert says(row, usage_scope=None, requests=None, input_tokens=None, output_tokens=None, model=None)

    def test_blocks(self, session: Reading) -> None:
        """Three calls of one row (the first block alone shows one of them)."""
        asked = [(r["line"], r["part"], r["call_id"], r["tool"]) for r in rows(session, kind="tool.requested")]
        assert asked == [
            (6, 0, "toolu_look", "Read"), (6, 1, "toolu_dig", "Bash"), (6, 2, "toolu_burn", "Bash"),
            (11, 0, "toolu_fetch", "WebFetch"), (12, 0, "toolu_ask", "Task"), (13, 0, "toolu_wait", "Bash"),
            (16, 1, "toolu_count", "Grep"),
        ]  # fmt: skip
        for row in rows(session, kind="tool.requested"):
            assert row["call_scope"] == "claude"
            assert row["model"] is not None
            assert row["request_id"] is not None
        assert says(only(session, line=4), kind="reasoning", text_chars=len("Which roses?"))
        assert says(only(session, line=5), kind="message", event="assistant", text_chars=len("I look first."))
        assert says(only(session, line=3, part=0), kind="message", event="user", text_chars=24)
        assert says(only(session, line=23), kind="injection", event="user", text_chars=32)
        assert says(only(session, line=24, part=1), kind="opaque", event="assistant/hologram")

    def test_results(self, session: Reading) -> None:
        """A failed command that prints a refusal is none; what the row or the text says is; an interruption is not."""
        ended = {row["call_id"]: row for row in rows(session, kind="tool.finished")}
        assert {key: row["tool"] for key, row in ended.items()} == {
            "toolu_look": "Read", "toolu_dig": "Bash", "toolu_burn": "Bash", "toolu_fetch": "WebFetch",
            "toolu_ask": "Task", "toolu_wait": "Bash",
        }  # fmt: skip
        assert says(ended["toolu_look"], is_error=False, decision=None, call_scope="claude")
        assert says(ended["toolu_dig"], is_error=True, exit_code=2, decision=None)
        denied = {key: [row[n] for n in ("reason", "evidence", "decided_by")] for key, row in ended.items()
                  if row["decision"] == "deny"}  # fmt: skip
        assert denied == {
            "toolu_burn": ["user-rejected", "tool_denial_kind", "human"],
            "toolu_fetch": ["rule-denied", "result_text", "policy"],
        }
        assert says(ended["toolu_wait"], line=19, part=1, status="interrupted", decision=None, is_error=None)
        assert says(only(session, line=19, part=0), kind="message", status="interrupted")

    def test_other_records(self, session: Reading) -> None:
        retry = only(session, kind="retry")
        assert says(retry, event="system/api_error", status="529", message="Overloaded")
        assert json.loads(retry["attributes"]) == {"attempt": 1, "max": 10, "retry_in_ms": 531}
        compaction = only(session, kind="compaction")
        assert says(compaction, reason="auto", duration_ms=8123, context_tokens=21000, input_tokens=None)
        assert json.loads(compaction["attributes"]) == {"trigger": "auto", "pre_tokens": 155000, "post_tokens": 21000}
        made_up, limit = rows(session, kind="error")
        assert says(made_up, is_error=None, status=None, message="No response requested.")
        assert says(limit, is_error=True, status="429", reason="rate_limit")
        assert limit["message"].startswith("You've hit your session limit")
        assert rows(session, kind="rate_limit") == [], "the format has no gauge"
        assert says(only(session, line=25), kind="system", event="system/turn_duration", duration_ms=26000)
        assert says(only(session, line=17), kind="system", event="progress/bash_progress")
        assert says(only(session, line=26), kind="opaque", event="compost-heap")
        assert [row["event"] for row in session.events if row["line"] in (1, 2, 27)] == [
            "file-history-snapshot", "mode", "summary",
        ]  # fmt: skip

    def test_times_and_identities(self, session: Reading) -> None:
        for row in session.events:
            assert row["ts_origin"] == ("vendor" if row["ts"] else None)
        assert [row["line"] for row in session.events if row["ts"] is None] == [1, 2, 27]
        assert only(session, line=4)["ts"].isoformat() == "2026-07-01T08:00:03.250000+00:00"
        for line, row in enumerate(ROWS, 1):
            keys = {r["event_key"] for r in rows(session, line=line) if r["kind"] != "run.started"}
            assert len(keys) == 1
            if "uuid" in row:
                assert keys == {key64(row["uuid"].encode())}
            else:
                assert keys != {None}, "a row without uuid is known by its bytes"


def test_copies_are_known_by_their_rows(reader: Reader) -> None:
    """A resumed file holds its parent's rows under its own session id: same keys, another run."""
    first, second = read(reader, SESSION.read_bytes()), read(reader, RESUMED.read_bytes())
    assert {row["run_id"] for row in second.events} == {R}
    key = {(row["event_key"], row["part"]): row for row in first.events if row["kind"] != "run.started"}
    shared = [row for row in second.events if (row["event_key"], row["part"]) in key]
    assert [row["line"] for row in shared] == [2, 3, 4, 5, 5, 5, 6, 7, 8]
    for row in shared:
        before = key[row["event_key"], row["part"]]
        for name in ("kind", "call_id", "usage_key", "output_tokens", "decision", "tool", "ts", "text_chars"):
            assert row[name] == before[name]
    totals: dict[str, int] = {}
    for row in [*first.events, *second.events]:
        if row["usage_scope"] and row["run_id"] in (S, R):
            totals[row["usage_key"]] = max(totals.get(row["usage_key"], 0), row["output_tokens"] or 0)
    assert sum(totals.values()) == 311 + 64 + 0 + 17, "per file: 311 twice"


def test_a_subagent_is_one_run_wherever_it_stands(reader: Reader) -> None:
    """Its progress rows inside the session and its own file name one run, one answer, one call."""
    inside, own = read(reader, SESSION.read_bytes()), read(reader, AGENT.read_bytes())
    run_id = f"{S}/beef01"
    assert {row["run_id"] for row in own.events} == {run_id}
    assert {row["agent_id"] for row in own.events} == {"beef01"}
    assert says(only(own, kind="run.started"), parent_run_id=S, agent_id="beef01")
    outputs = defaultdict(list)
    for row in [*rows(inside, run_id=run_id), *own.events]:
        if row["usage_key"]:
            outputs[row["usage_key"]].append(row["output_tokens"])
    assert outputs == {"msg_count": [21, 48], "msg_three": [6]}
    asked = {row["call_id"] for row in [*inside.events, *own.events] if row["kind"] == "tool.requested"}
    ended = {row["call_id"] for row in [*inside.events, *own.events] if row["kind"] == "tool.finished"}
    assert asked - ended == set(), "without its own file the subagent's call would be unfinished"
    assert {row["call_id"] for row in inside.events if row["kind"] == "tool.requested"} - ended == set()


class TestDamage:
    """Rows that are not what they should be."""

    @pytest.mark.parametrize(
        "value",
        [-1, 0.5, 10**15 + 1, 2**63 - 1, 2**63, -(2**70), 1e300],
        ids=["negative", "fraction", "beyond all use", "64 bits", "wide", "low", "huge"],
    )
    @pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_input_tokens"])
    def test_counters_out_of_range(self, reader: Reader, name: str, value: float) -> None:
        reading = read(reader, [answer("a"), answer("b", {"input_tokens": 1, name: value})])
        assert reading.reasons() == [(2, "number_out_of_range")]
        assert reading.refusals[0]["run_id"] == "s-1"

    def test_split_out_of_range(self, reader: Reader) -> None:
        usage = {"cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": -5}}
        assert read(reader, [answer("a"), answer("a", usage)]).reasons() == [(2, "number_out_of_range")]

    def test_the_largest_counter(self, reader: Reader) -> None:
        """Nine thousand such rows still add up in 64 bits; two of 2**63 - 1 do not."""
        usage = {"input_tokens": 10**15, "cache_creation_input_tokens": 10**15, "cache_creation": {}}
        reading = read(reader, [answer("a", usage | {"cache_creation": {"ephemeral_1h_input_tokens": 10**15}})])
        assert reading.reasons() == []
        assert says(only(reading, part=0), input_tokens=10**15, cache_write_1h_tokens=10**15)
        beyond = usage | {"cache_creation": {"ephemeral_1h_input_tokens": 10**15 + 1}}
        assert read(reader, [answer("a"), answer("b", beyond)]).reasons() == [(2, "number_out_of_range")]

    def test_whole_floats_are_whole(self, reader: Reader) -> None:
        reading = read(reader, [answer("a", {"input_tokens": 12.0, "output_tokens": 1e3}), answer("b")])
        assert reading.reasons() == []
        assert says(only(reading, line=1, part=0), input_tokens=12, output_tokens=1000, kind="message")

    @pytest.mark.parametrize("usage", [None, [], [1], "much", 7, True, {}], ids=repr)
    def test_usage_of_another_type_says_nothing(self, reader: Reader, usage: Any) -> None:
        reading = read(reader, [one(answer("a") | {"message": answer("a")["message"] | {"usage": usage}})])
        row = only(reading, part=0)
        assert says(row, usage_scope="snapshot", requests=1, usage_key="msg_a1", input_tokens=None, output_tokens=None)

    @pytest.mark.parametrize("part", ["cache_creation", "output_tokens_details"])
    @pytest.mark.parametrize("value", [None, [], "x", 1.5, {}], ids=repr)
    def test_parts_of_usage_of_another_type(self, reader: Reader, part: str, value: Any) -> None:
        reading = read(reader, [answer("a", {"input_tokens": 3, "cache_creation_input_tokens": 9, part: value})])
        assert says(only(reading, part=0), input_tokens=3, cache_write_1h_tokens=None, reasoning_tokens=None)

    @pytest.mark.parametrize(
        "message",
        [None, "text", [], 3, {}, {"0": "{", "1": '"'}, {"content": 3}, {"content": {"text": "x"}}],
        ids=repr,
    )
    @pytest.mark.parametrize("kind", ["assistant", "user"])
    def test_messages_without_content(self, reader: Reader, kind: str, message: Any) -> None:
        """The row is lost, the file goes on, and the loss names the run (claude-code #24663)."""
        reading = read(reader, [one({"type": kind, "message": message}), answer("b")])
        assert reading.reasons() == [(1, "malformed")]
        assert reading.refusals[0]["run_id"] == "s-1"
        assert [row["line"] for row in reading.events if row["part"] == 0] == [2]

    def test_the_run_of_a_refused_subagent_row(self, reader: Reader) -> None:
        reading = read(reader, [answer("a"), one({"type": "user", "message": 1, "agentId": "a7"})])
        assert [(row["line"], row["run_id"]) for row in reading.refusals] == [(2, "s-1/a7")]

    @pytest.mark.parametrize(
        "content", [None, "", [], ["text"], [1, None, [2]], [{}], [{"type": 5}], [{"type": "text", "text": {"a": 1}}]],
        ids=repr,
    )  # fmt: skip
    @pytest.mark.parametrize("make", [answer, prompt])
    def test_odd_content_is_content(self, reader: Reader, make: Any, content: Any) -> None:
        reading = read(reader, [make(content)])
        assert reading.reasons() == []
        assert [row["line"] for row in reading.events if row["part"] == 0] == [1]

    def test_odd_blocks(self, reader: Reader) -> None:
        blocks = [
            {"type": "text", "text": "abc"}, 3, {"type": "tool_use", "id": 7, "name": ["x"]},
            {"type": "tool_use", "id": "toolu_1", "name": None, "input": "not an object"},
            {"type": "redacted_thinking", "data": "xx"}, {"type": "image", "source": {}},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result"}]},
        ]  # fmt: skip
        found = read(reader, [answer(blocks)]).events
        assert [(r["kind"], r["call_id"], r["tool"]) for r in found if r["kind"] != "run.started"] == [
            ("message", None, None), ("tool.requested", None, None), ("tool.requested", "toolu_1", None),
            ("reasoning", None, None), ("message", None, None), ("tool.requested", "srv_1", "web_search"),
            ("tool.finished", "srv_1", "web_search"),
        ]  # fmt: skip

    @pytest.mark.parametrize("found", ["bare", 5, None, {"a": {}}, [{"b": 1}, "c"]], ids=repr)
    def test_tool_use_result_of_any_type(self, reader: Reader, found: Any) -> None:
        reading = read(reader, [prompt([result("toolu_1", "ok", is_error=False)], toolUseResult=found)])
        assert says(only(reading, part=0), kind="tool.finished", call_id="toolu_1", is_error=False, decision=None)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("sessionId", 5), ("agentId", []), ("uuid", {}), ("message", {"usage": {"input_tokens": -1}})],
    )
    def test_unknown_types_are_never_refused(self, reader: Reader, name: str, value: Any) -> None:
        """Whatever the fields hold that a known row must have right."""
        reading = read(reader, [prompt("a"), one({"type": "night-garden"}, **{name: value}), prompt("b")])
        assert reading.reasons() == []
        assert says(only(reading, line=2), kind="opaque", event="night-garden")
        known = read(reader, [prompt("a"), prompt("b", **{name: value})])
        assert [line for line, _ in known.reasons()] == [2]

    def test_not_of_the_envelope(self, reader: Reader) -> None:
        """A workflow's journal beside its agents' files."""
        reading = read(reader, [prompt("a"), {"key": "step-1", "state": "done"}, one({"type": None})])
        assert reading.reasons() == [(2, "unknown_event"), (3, "malformed")]

    def test_half_a_surrogate_pair_costs_nothing(self, reader: Reader) -> None:
        """The client cuts long texts by UTF-16 units."""
        line = json.dumps(answer("cut \ud83d here", {"input_tokens": 2, "output_tokens": 5})).encode()
        assert b"\\ud83d" in line
        reading = read(reader, line + b"\n")
        assert says(only(reading, part=0), kind="message", output_tokens=5, text_chars=len("cut ? here"))
        assert rebuild(reading) == line + b"\n"

    def test_odd_times(self, reader: Reader) -> None:
        times = ["2026-07-01T08:00:00Z", "2026-07-01T10:00:00+02:00", "yesterday", 1782892800, None, "", ["x"]]
        reading = read(reader, [prompt(str(n), timestamp=time) for n, time in enumerate(times)])
        assert reading.reasons() == []
        found = [row["ts"] for row in reading.events if row["part"] == 0]
        assert [at and at.isoformat() for at in found] == ["2026-07-01T08:00:00+00:00"] * 2 + [None] * 5

    def test_only_refused_rows(self, reader: Reader) -> None:
        reading = read(reader, [one({"type": "assistant"}), one({"type": "user"})])
        assert reading.events == []
        assert reading.reasons() == [(1, "malformed"), (2, "malformed")]

    def test_a_secret_in_an_unknown_row(self, reader: Reader) -> None:
        """A redacted row is decoded anew by the same rules."""
        key = "sk-ant-api03-" + "Ab1Cd2Ef3G" * 9 + "AA"
        reading = read(reader, [prompt("a"), one({"type": "vault", "uuid": 7, "note": key})])
        assert reading.reasons() == []
        assert key not in only(reading, line=2)["payload"]
        assert says(only(reading, line=2), kind="opaque", event="vault", redactions=1)


class TestKeys:
    """An answer is known by its message, over all files."""

    @pytest.mark.parametrize(
        ("message_id", "request_id", "key"),
        [
            ("msg_1", "req_1", "msg_1"), ("msg_1", None, "msg_1"), (None, "req_1", "req_1"), ("", "req_1", "req_1"),
            (None, None, "u-9"), ("", "", "u-9"), (5, 7, "u-9"), ("ocgo", "req_1", "req_1"), ("ocgo", None, "u-9"),
            ("msg_00000000000000000000", None, "u-9"), ("00000000-0000-0000-0000-000000000000", "req_1", "req_1"),
            ("chatcmpl-8x", None, "chatcmpl-8x"),
        ],
    )  # fmt: skip
    def test_fallback(self, message_id: Any, request_id: Any, key: str) -> None:
        assert request_key(Message(id=message_id), request_id, "u-9") == key

    def test_nothing_names_it(self, reader: Reader) -> None:
        assert request_key(Message(), None, None) is None
        row = answer("a", {"input_tokens": 3}, id=None)
        row.pop("uuid")
        reading = read(reader, [row, row])
        found = rows(reading, part=0)
        assert [(r["usage_key"], r["request_id"], r["requests"], r["input_tokens"]) for r in found] == [
            (None, None, 1, 3)
        ] * 2

    def test_sessions_and_requests_do_not_count(self, reader: Reader) -> None:
        """A side question has another requestId, a resumed file another sessionId: still one answer."""
        made = [answer("a", {"output_tokens": 4}) | {"requestId": f"req_{n}", "sessionId": f"s-{n}"} for n in range(3)]
        assert {row["usage_key"] for row in rows(read(reader, made), part=0)} == {"msg_a1"}


class TestUsage:
    @pytest.mark.parametrize(
        ("written", "five", "hour", "right"),
        [
            (1000, 200, 800, 800), (1000, 0, 900, 900), (1000, 600, 600, None), (1000, 0, 1001, None),
            (None, 5, 5, None), (0, None, None, 0), (0, 0, 3, 0), (1000, None, 300, 300), (1000, 300, None, None),
        ],
    )  # fmt: skip
    def test_the_hour_of_a_cache_write(self, written: Any, five: Any, hour: Any, right: Any) -> None:
        """The rest goes to five minutes, and no split beyond its total is believed."""
        assert kept_an_hour(written, CacheCreation(five, hour)) == right

    def test_no_split(self) -> None:
        assert [kept_an_hour(n, None) for n in (None, 0, 7)] == [None, 0, None]

    def test_missing_keys_are_unknown(self) -> None:
        assert usage_columns(Usage(input_tokens=5210, output_tokens=88)) == {
            "input_tokens": 5210, "output_tokens": 88, "cache_read_tokens": None, "cache_write_tokens": None,
            "cache_write_1h_tokens": None, "reasoning_tokens": None, "input_includes_cache": False,
        }  # fmt: skip
        assert usage_columns(None) == usage_columns("x") == {}

    def test_reasoning(self) -> None:
        said = [OutputDetails(thinking_tokens=3), OutputDetails(reasoning_tokens=4), OutputDetails(), None]
        assert [usage_columns(Usage(output_tokens_details=s))["reasoning_tokens"] for s in said] == [3, 4, None, None]


class TestDenials:
    """Which texts refuse a call, and by whom."""

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("The user doesn't want to proceed with this tool use. The tool use was rejected.", "user-rejected"),
            ("The user doesn't want to take this action right now. STOP.", "user-rejected"),
            ("The user doesn’t want to proceed with this tool use.", "user-rejected"),
            ("<tool_use_error>The user doesn't want to proceed with this tool use</tool_use_error>", "user-rejected"),
            ("Error: The user doesn't want to proceed with this tool use", "user-rejected"),
            ("The agent proposed a plan that was rejected by the user. They chose to stay.", "user-rejected"),
            ("Permission for this tool use was denied. Try something else.", "user-rejected"),
            ("Permission to use Bash has been denied.", "rule-denied"),
            ("Permission to use Bash with command cat <<E\nx\nE has been denied.", "rule-denied"),
            ("Permission to use mcp__shed__open has been auto-denied in dontAsk mode.", "rule-denied"),
            ("Claude requested permissions to write to /srv/a.md, but you haven't granted it yet.", "not-granted"),
            ("You asked to use Write, but you haven't granted it yet.", "not-granted"),
            ("PreToolUse:Bash hook error: [guard.sh]: not on Sundays", "hook-denied"),
            ("Hook PreToolUse:Bash denied this tool", "hook-denied"),
            ("Bash operation blocked by hook:\n- no", "hook-denied"),
            ("<tool_use_error>Sibling tool call errored</tool_use_error>", None),
            ("<tool_use_error>File has not been read yet. Read it first.</tool_use_error>", None),
            ("Exit code 1", None),
            ("Exit code 1: PreToolUse hook error in the log", None),
            ("Exit code 1 you haven't granted it yet", None),
            ("lamps.py:3: # The user doesn't want to proceed with this tool use", None),
            ("log:\nPermission to use Bash has been denied.", None),
            ("Permission to use the shed was asked for.", None),
            ("PostToolUse:Bash hook error: too late", None),
            ("[Request interrupted by user for tool use]", None),
            ("", None),
        ],
    )
    def test_texts(self, reader: Reader, text: str, kind: str | None) -> None:
        found = refusal(text)
        assert (found and found[0]) == kind
        reading = read(reader, [prompt([result("t1", text)]), prompt([result("t2", [{"type": "text", "text": text}])])])
        for row in rows(reading, kind="tool.finished"):
            expected = (None, None) if kind is None else ("deny", "result_text")
            assert (row["decision"], row["evidence"]) == expected
            assert says(row, reason=kind, decided_by=kind and decider(kind), is_error=True)

    @pytest.mark.parametrize("is_error", [False, None, "true", 1])
    def test_only_a_failed_result_refuses(self, reader: Reader, is_error: Any) -> None:
        """A file that quotes a refusal is read without a failure."""
        text = "The user doesn't want to proceed with this tool use"
        row = only(read(reader, [prompt([result("t1", text, is_error=is_error)])]), part=0)
        assert says(row, decision=None, is_error=False)

    @pytest.mark.parametrize(
        ("kind", "who"),
        [
            ("user-rejected", "human"), ("permission-rule", "policy"), ("automode-unavailable", "vendor"),
            ("hook-denied", "hook"), ("moon-phase", None),
        ],
    )  # fmt: skip
    def test_the_row_goes_before_the_text(self, reader: Reader, kind: str, who: str | None) -> None:
        texts = ("Permission to use Bash has been denied.", "no idea", "[Request interrupted by user for tool use]")
        for text in texts:
            row = only(read(reader, [prompt([result("t1", text)], toolDenialKind=kind)]), part=0)
            assert says(row, decision="deny", reason=kind, evidence="tool_denial_kind", decided_by=who, status=None)

    def test_a_row_of_several_results(self, reader: Reader) -> None:
        content = [result("t1", "fine", is_error=False), result("t2", "no"), {"type": "text", "text": "sorry"}]
        reading = read(reader, [prompt(content, toolDenialKind="user-rejected")])
        ended = {row["call_id"]: row["decision"] for row in rows(reading, kind="tool.finished")}
        assert ended == {"t1": None, "t2": "deny"}

    def test_a_kind_without_a_result(self, reader: Reader) -> None:
        for content in ("stopped", [{"type": "text", "text": "stopped"}]):
            reading = read(reader, [prompt(content, toolDenialKind="user-rejected")])
            assert says(only(reading, kind="tool.decided"), decision="deny", call_id=None, reason="user-rejected")

    def test_result_text(self) -> None:
        blocks = [{"type": "text", "text": "a"}, {"type": "image"}, "b", 3, {"text": 5}]
        for content, right in (("x", "x"), (blocks, "a\nb"), (None, ""), (5, ""), ({}, "")):
            assert result_text(content) == result_text(msgspec.Raw(msgspec.json.encode(content))) == right


class TestInterruptions:
    STOP = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")

    def test_texts(self) -> None:
        assert all(is_interruption(text) and is_interruption(f" {text}\n") for text in self.STOP)
        assert not is_interruption("what does [Request interrupted by user] mean?")

    @pytest.mark.parametrize("text", STOP)
    @pytest.mark.parametrize("as_block", [True, False])
    def test_it_ends_the_calls_that_are_waited_for(self, reader: Reader, text: str, *, as_block: bool) -> None:
        """t1 is lost for good (the next answer came without it), t2 has a result: only t3 ends here."""
        made = [
            answer([call("Read", "t1")], id="msg_1"),
            answer([call("Bash", "t2"), call("Grep", "t3")], id="msg_2"),
            prompt([result("t2", "ok", is_error=False)]),
            prompt([{"type": "text", "text": text}] if as_block else text),
            prompt(text),
        ]
        reading = read(reader, made)
        ended = [(r["line"], r["call_id"], r["status"]) for r in rows(reading, kind="tool.finished")]
        assert ended == [(3, "t2", None), (4, "t3", "interrupted")]
        assert rows(reading, decision="deny") == []

    def test_a_result_may_say_it(self, reader: Reader) -> None:
        content = [result("t1", self.STOP[1]), {"type": "text", "text": self.STOP[1]}]
        reading = read(reader, [answer([call("Bash", "t1")]), prompt(content)])
        assert [(r["call_id"], r["status"]) for r in rows(reading, kind="tool.finished")] == [("t1", "interrupted")]


class TestCallScopes:
    """Over which runs a call id names one call."""

    @pytest.mark.parametrize(
        ("call_id", "scope"),
        [("toolu_1", "claude"), ("srvtoolu_1", "claude"), ("c" * 20, "claude"), ("c" * 19, "claude:s-1"),
         ("functions.Bash:0", "claude:s-1"), ("call_1", "claude:s-1"), ("0", "claude:s-1")],
    )  # fmt: skip
    def test_by_the_id(self, reader: Reader, call_id: str, scope: str) -> None:
        """The call as the first block and as a later one, its result, and an interruption that ends it."""
        blocks = [call("Bash", call_id), {"type": "text", "text": "x"}, call("Bash", call_id)]
        made = [answer(blocks), prompt([result(call_id, "a"), result(call_id, "b")]), answer(blocks, id="msg_a2"),
                prompt("[Request interrupted by user]")]  # fmt: skip
        found = [row for row in read(reader, made).events if row["kind"] in ("tool.requested", "tool.finished")]
        assert len(found) == 7
        assert {(row["call_id"], row["call_scope"]) for row in found} == {(call_id, scope)}

    def test_a_call_without_an_id_has_none(self, reader: Reader) -> None:
        reading = read(reader, [answer([{"type": "tool_use", "name": "Bash"}])])
        assert says(only(reading, kind="tool.requested"), call_id=None, call_scope=None)

    def test_short_ids_are_of_their_run(self, reader: Reader) -> None:
        """A subagent counts from 0 again; its progress rows and its own file are one run."""
        asked = answer([call("Bash", "functions.Bash:0")])
        nested = {"type": "assistant", "message": asked["message"]}
        data = {"type": "agent_progress", "agentId": "a1", "message": nested}
        nameless = {key: value for key, value in asked.items() if key != "sessionId"}
        made = [asked, asked | {"agentId": "a1"}, one({"type": "progress", "data": data}),
                one({"type": "progress", "data": data}, agentId="a2"), asked | {"sessionId": "s-2", "agentId": "a3"},
                nameless, asked | {"sessionId": "s-2"}]  # fmt: skip
        found = [(r["run_id"], r["call_scope"]) for r in rows(read(reader, made), kind="tool.requested")]
        assert found == [
            ("s-1", "claude:s-1"), ("s-1/a1", "claude:s-1/a1"), ("s-1/a1", "claude:s-1/a1"),
            ("s-1/a1", "claude:s-1/a1"), ("s-2/a3", "claude:s-2/a3"), ("s-2/a3", "claude:s-2/a3"),
            ("s-2", "claude:s-2"),
        ]  # fmt: skip


class TestRuns:
    """Which run a row is of."""

    def test_a_file_of_several_sessions(self, reader: Reader) -> None:
        made = [
            {"type": "summary", "summary": "x", "leafUuid": "y"}, prompt("a", sessionId="s-1"),
            prompt("b", sessionId="s-2", agentId="a7"), {"type": "summary", "summary": "z", "leafUuid": "y"},
            prompt("c", sessionId="s-1"), prompt("d", sessionId="", agentId=""),
            prompt("e", sessionId="s-2", agentId=""),
        ]  # fmt: skip
        reading = read(reader, made)
        runs = [row["run_id"] for row in reading.events if row["part"] == 0]
        assert runs == ["s-1", "s-1", "s-2/a7", "s-2/a7", "s-1", "s-1", "s-2"]
        assert {row["run_id"]: row["parent_run_id"] for row in rows(reading, kind="run.started")} == {
            "s-1": None, "s-2/a7": "s-2", "s-2": None,
        }  # fmt: skip
        assert {piece["is_shared"] for piece in reading.source["runs"]} == {True}

    def test_a_file_that_names_no_run(self, reader: Reader) -> None:
        """The rows stand in a run made from the source until one is named."""
        path = reader.folder / "s.jsonl"
        nameless = json.dumps({"type": "summary", "summary": "x", "leafUuid": "y"}).encode() + b"\n"
        path.write_bytes(nameless)
        record, reading = reader.read(path)
        assert says(reading.events[0], run_id="claude-code-0123456789abcdef", run_id_origin="source", kind="system")
        path.write_bytes(nameless * 2 + json.dumps(prompt("a")).encode() + b"\n")
        _, reading = reader.read(path, record, reading)
        found = [(r["line"], r["run_id"], r["run_id_origin"]) for r in reading.events if r["part"] == 0]
        assert found == [(1, "claude-code-0123456789abcdef", "source"), (2, "s-1", "wire"), (3, "s-1", "wire")]

    def test_old_sidechains_stay_in_the_session(self, reader: Reader) -> None:
        reading = read(reader, [prompt("a"), answer("b", {"output_tokens": 3}) | {"isSidechain": True}])
        assert {row["run_id"] for row in reading.events} == {"s-1"}

    @pytest.mark.parametrize(
        "data", [None, [], "x", {}, {"type": "agent_progress"}, {"type": "agent_progress", "message": "x"},
                 {"type": "agent_progress", "agentId": "a1", "message": {"type": "assistant", "message": {"0": "{"}}},
                 {"type": "hook_progress", "message": {"type": "assistant", "message": {"content": "x"}}}], ids=repr,
    )  # fmt: skip
    def test_other_progress(self, reader: Reader, data: Any) -> None:
        reading = read(reader, [one({"type": "progress", "data": data})])
        assert says(only(reading, part=0), kind="system", run_id="s-1", usage_scope=None)

    def test_unknown_progress_and_system_rows(self, reader: Reader) -> None:
        made = [one({"type": "progress", "data": {"type": "tea"}}), one({"type": "system", "subtype": "tea"}),
                one({"type": "system", "subtype": 4}), one({"type": "system", "subtype": "away_summary"})]  # fmt: skip
        found = [(r["kind"], r["event"]) for r in read(reader, made).events if r["part"] == 0]
        assert found == [("opaque", "progress/tea"), ("opaque", "system/tea"), ("system", "system"),
                         ("system", "system/away_summary")]  # fmt: skip

    def test_progress_of_a_nameless_subagent_stays_in_the_session(self, reader: Reader) -> None:
        nested = {"type": "assistant", "message": answer([call("Bash", "t1")], {"output_tokens": 2})["message"]}
        made = one({"type": "progress", "data": {"type": "agent_progress", "message": nested}, "parentToolUseID": "t0"})
        assert says(only(read(reader, [made]), part=0), run_id="s-1", output_tokens=2, parent_call_id="t0")

    def test_progress_inside_a_subagent_belongs_to_the_session(self, reader: Reader) -> None:
        """A row between subagent rows that names no run is of the file's run, not of the progress row's."""
        nested = {"type": "user", "message": {"role": "user", "content": "x"}}
        data = {"type": "agent_progress", "agentId": "a2", "message": nested}
        made = [one({"type": "progress", "data": data}, agentId="a1"), {"type": "mode", "mode": "plan"}]
        reading = read(reader, made)
        assert [row["run_id"] for row in reading.events if row["part"] == 0] == ["s-1/a2", "s-1/a1"]
        assert only(reading, kind="run.started")["parent_run_id"] == "s-1"

    @pytest.mark.parametrize(
        ("row", "kind", "said"),
        [
            ({"subtype": "api_error", "error": "lost"}, "retry", {"status": None}),
            ({"subtype": "api_error"}, "retry", {"status": None, "attributes": None}),
            ({"subtype": "api_error", "error": {"status": 401, "message": "no"}}, "retry",
             {"status": "401", "message": "no"}),
            ({"subtype": "compact_boundary"}, "compaction", {"attributes": None}),
            ({"subtype": "compact_boundary", "compactMetadata": {"preTokens": "x"}}, "compaction",
             {"attributes": None}),
            ({"subtype": "error", "content": "lost"}, "error", {"message": "lost", "is_error": True}),
            ({"subtype": "informational", "level": "warning", "content": "slow"}, "warning", {"message": "slow"}),
            ({"subtype": "informational", "level": "info", "content": "x"}, "system", {"message": None}),
            ({"subtype": "model_refusal_fallback", "originalModel": "m-1", "fallbackModel": "m-2"}, "warning",
             {"attributes": '{"original_model":"m-1","fallback_model":"m-2"}', "model": None}),
            ({"subtype": "turn_duration", "durationMs": 12.75}, "system", {"duration_ms": 12}),
            ({"subtype": "turn_duration", "durationMs": "x"}, "system", {"duration_ms": None}),
        ],
    )  # fmt: skip
    def test_system_rows(self, reader: Reader, row: dict[str, Any], kind: str, said: dict[str, Any]) -> None:
        found = only(read(reader, [one({"type": "system"} | row)]), part=0)
        assert says(found, kind=kind, event=f"system/{row['subtype']}", **said)


class TestSniff:
    @pytest.mark.parametrize("path", [SESSION, RESUMED, AGENT])
    def test_any_part_of_a_session(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert WIRE.sniff(Sample(rows, 0)) == "session"
        assert WIRE.sniff(Sample(rows[-1:], 3)) == "session"
        assert WIRE.sniff(Sample([rows[3]], 0, is_document=True)) == "session"

    def test_a_first_row_beyond_the_sample(self) -> None:
        keys = ("parentUuid", "isSidechain", "sessionId", "type", "message", "role", "content")
        assert WIRE.sniff(Sample([dict.fromkeys(keys)], 0, is_document=True)) == "session"

    @pytest.mark.parametrize(
        "row",
        [
            {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u"},
            {"type": "assistant", "message": {"content": []}, "session_id": "s", "uuid": "u"},
            {"type": "thread.started", "thread_id": "t"},
            {"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}},
            {"display": "x", "project": "/p", "timestamp": 1, "sessionId": "s"},
            {"type": "user", "timestamp": "t", "content": "x"},
            {"sessionId": "s", "projectHash": "p", "startTime": "t"},
            {
                "type": "user",
                "uuid": "u",
                "parentUuid": None,
                "sessionId": "s",
                "message": {"role": "user", "parts": []},
            },
            {"type": "assistant", "uuid": "u", "sessionId": "s", "usageMetadata": {}, "message": {"parts": []}},
            {"key": "step-1", "state": "done"},
            {},
        ],
        ids=lambda row: ",".join(row)[:40],
    )
    def test_look_alikes_are_left_alone(self, row: dict[str, Any]) -> None:
        assert WIRE.sniff(Sample([row], 0)) is None


def shuffled(value: Any, draw: random.Random) -> Any:
    """The same JSON value with its keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        draw.shuffle(keys)
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


def comparable(reading: Reading) -> list[dict[str, Any]]:
    """The event rows without what depends on the spelling of a line."""
    made = [{name: value for name, value in row.items() if name not in NOT_SAID_TWICE} for row in reading.events]
    for row in made:
        if "uuid" not in ROWS[row["line"] - 1]:
            row["event_key"] = None
    return made


@FEW
@given(seed=st.integers(0, 2**32), is_spaced=st.booleans(), is_ascii=st.booleans())
def test_spelling_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, *, seed: int, is_spaced: bool, is_ascii: bool
) -> None:
    """Spaced JSON, keys in any order, escaped characters: the same rows (byte patterns would count zero)."""
    reader = Reader(tmp_path_factory.mktemp("spelling"), wire="claude-code")
    separators = (", ", ": ") if is_spaced else (",", ":")
    draw = random.Random(seed)
    lines = [json.dumps(shuffled(row, draw), ensure_ascii=is_ascii, separators=separators).encode() for row in ROWS]
    spelled = read(reader, b"\n".join([*lines, b""]), "spelled.jsonl")
    assert comparable(spelled) == comparable(read(reader, SESSION.read_bytes(), "plain.jsonl"))


@FEW
@given(data=st.data())
def test_read_on_is_read_whole(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Cut anywhere behind the first row that names a run, and read on: the same rows, ledger and state."""
    content = SESSION.read_bytes() + AGENT.read_bytes() + RESUMED.read_bytes()
    second = list(itertools.accumulate(len(line) for line in content.splitlines(keepends=True)))[1]
    cuts = data.draw(st.lists(st.integers(second, len(content)), max_size=4))
    reader = Reader(tmp_path_factory.mktemp("cuts"), wire="claude-code")
    path = reader.folder / "s.jsonl"
    grown = reader.grow(path, content, cuts)
    reader.clear()
    whole = reader.grow(path, content, [])
    assert grown.comparable() == whole.comparable()


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8),
    st.sampled_from(
        ["tool_result", "tool_use", "text", "agent_progress", "assistant", "api_error", "s-1", "<synthetic>"]
    ),
)  # fmt: skip
FIELDS = sorted({key for row in ROWS for key in row})
INNER = ["type", "content", "message", "usage", "id", "name", "text", "tool_use_id", "is_error", "input_tokens", "role",
         "agentId", "model", "cache_creation", "trigger", "status", "error", "stop_reason"]  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@FEW
@given(damage=st.lists(st.tuples(st.integers(0, len(ROWS) - 1), st.sampled_from(FIELDS), VALUES), max_size=6))
def test_any_value_anywhere_is_a_row_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, str, Any]]
) -> None:
    """Nothing that a field may hold ends the reading or loses a line."""
    made = [dict(row) for row in ROWS]
    for at, name, value in damage:
        made[at][name] = value
    reader = Reader(tmp_path_factory.mktemp("damage"), wire="claude-code")
    content = b"".join(json.dumps(row).encode() + b"\n" for row in made)
    reading = read(reader, content)
    assert rebuild(reading) == content
    touched = {at + 1 for at, _, _ in damage}
    assert {line for line, _ in reading.reasons()} <= touched


def test_explain_names_the_run() -> None:
    ctx = Context("src", "session", WIRE.new_state("session"))
    said = {"type": "user", "sessionId": "s-1", "agentId": "a7"}
    assert WIRE.explain(said, "Expected `str`", ctx) == Refusal("malformed", "Expected `str`", "s-1/a7")
    assert WIRE.explain({"sessionId": 5}, "x", ctx).run_id is None


def test_state_is_small(reader: Reader) -> None:
    """What is remembered grows with runs and open calls, not with rows."""
    made = [row for n in range(300) for row in (answer([call("Bash", f"t{n}")], id=f"msg_{n}"),
            prompt([result(f"t{n}", "ok", is_error=False)]))]  # fmt: skip
    saved = read(reader, made).source["resume_state"]["wire"]
    assert len(json.dumps(saved)) < 300
