"""The codex-exec wire: captures in, event rows out. Each figure names the naive answer it avoids.

The inputs are made by hand; reports are those of the field notes on native transcripts, section 4.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from helpers import Lab, Reader, check_conservation, rebuild

from analytics.refusals import NAMES
from analytics.schema import KINDS, TOPICS, USAGE_SCOPES
from analytics.wires import sniff
from analytics.wires.base import Sample
from analytics.wires.codex_exec import WIRE

FIXTURES = Path(__file__).parent / "fixtures" / "codex-exec"
NAMED = sorted(path.name for path in FIXTURES.iterdir())
THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"
A, B = "0199b000-0000-7000-8000-00000000000a", "0199b000-0000-7000-8000-00000000000b"
SOURCE = "codex-exec-0123456789abcdef"
FIGURES = ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")
START = '{"type":"thread.started","thread_id":"t-1"}'


class Read:
    """A capture read by the worker alone."""

    def __init__(self, folder, data, name="capture.jsonl"):
        path = folder / name
        path.write_bytes(data)
        self.record, self.reading = Reader(folder / "lake").read(path)
        check_conservation(self.reading)
        assert rebuild(self.reading) == data
        self.rows = self.reading.events
        assert {row["kind"] for row in self.rows} <= set(KINDS)
        assert {row["usage_scope"] for row in self.rows} - {None} <= set(USAGE_SCOPES)
        assert {topic for row in self.rows for topic in (row["speaks"] or "").split()} <= set(TOPICS)
        assert {row["reason"] for row in self.reading.refusals} <= NAMES
        assert {row["event_key"] for row in self.rows} <= {None}, "a capture's rows are no records of the vendor's"

    def of(self, run_id=None, *kinds):
        return [row for row in self.rows if run_id in (None, row["run_id"]) and (not kinds or row["kind"] in kinds)]

    def totals(self, run_id):
        return [[row[name] for name in FIGURES] for row in self.of(run_id, "usage")]

    def calls(self, run_id):
        return {row["call_id"]: row["tool"] for row in self.of(run_id, "tool.requested")}

    def unfinished(self, run_id):
        return sorted(self.calls(run_id).keys() - {row["call_id"] for row in self.of(run_id, "tool.finished")})

    def finished(self, run_id):
        names = ("status", "is_error", "exit_code")
        return {row["call_id"]: tuple(row[name] for name in names) for row in self.of(run_id, "tool.finished")}

    def at(self, line, part=0):
        return next(row for row in self.rows if (row["line"], row["part"]) == (line, part))


@pytest.fixture(name="read")
def _read(tmp_path):
    return lambda *lines: Read(tmp_path, "".join(f"{line}\n" for line in lines).encode())


@pytest.fixture(name="fixture")
def _fixture(tmp_path):
    return lambda name: Read(tmp_path, (FIXTURES / name).read_bytes(), name)


def item(what, kind="command_execution", **values):
    return json.dumps({"type": f"item.{what}", "item": {"id": "item_0", "type": kind} | values})


def message(kind, **values):
    return json.dumps({"id": "0", "msg": {"type": kind} | values})


def attributes(row):
    return json.loads(row["attributes"])


# which wire and form it is


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("every-item.jsonl", "items"), ("three-processes.log", "items"), ("old-item-names.jsonl", "items"),
        ("before-2025-09-30.jsonl", "msg"), ("oldest-counters.log", "msg"),
    ],
)  # fmt: skip
def test_both_forms_are_told_by_content(fixture, name, shape):
    got = fixture(name)
    assert (got.record.wire, got.record.row["shape"], got.record.status) == ("codex-exec", shape, "read")


@pytest.mark.parametrize(
    "row",
    [
        {"type": "turn.started"},
        {"type": "error", "message": "no"},
        {"type": "item.completed", "item": "text"},
        {"type": "thread.started"},
        {"jsonrpc": "2.0", "method": "codex/event", "params": {"id": "0", "msg": {"type": "task_started"}}},
        {"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": {"type": "token_count"}},
        {"id": "0", "msg": {"type": "of another protocol"}},
        {"prompt": "hello"},
    ],
)
def test_a_row_that_others_may_write_is_no_evidence(row):
    assert WIRE.sniff(Sample([row], 0)) is None


def test_a_capture_whose_beginning_is_lost_is_still_one(read):
    got = read(item("completed", "agent_message", text="hi"), '{"type":"turn.completed","usage":{"input_tokens":5}}')
    assert got.record.wire == "codex-exec"
    assert {row["run_id"] for row in got.rows} == {SOURCE}
    assert {row["run_id_origin"] for row in got.rows} == {"source"}
    assert got.at(2)["turn_id"] == "1", "an end without a start ends a turn"


@pytest.mark.parametrize("name", NAMED)
def test_no_other_wire_takes_it(name):
    objects = []
    for line in (FIXTURES / name).read_bytes().splitlines():
        try:
            objects.append(json.loads(line))
        except ValueError:
            continue
    assert sniff(Sample(objects[:8], 0))[0] == "codex-exec"


# the form since 2025-09-30


def test_a_run_says_what_it_is_on_its_first_row(fixture):
    got = fixture("every-item.jsonl")
    first, started = got.at(1), got.at(1, 1)
    assert {row["run_id"] for row in got.rows} == {THREAD}, "text before the thread's row belongs to it"
    assert (first["end_rule"], first["kind"], first["event"]) == ("turns", "system", "plain_text")
    assert set(first["speaks"].split()) >= {"tokens", "results", "decisions"}
    assert not {"limits", "cost", "clock"} & set(first["speaks"].split())
    assert (started["kind"], started["event"]) == ("run.started", "run")
    assert attributes(started) == {"session_id": THREAD, "view_rank": 10}
    assert sum(row["speaks"] is not None for row in got.rows) == 1
    assert {row["ts"] for row in got.rows} == {None}


def test_items_that_are_calls(fixture):
    got = fixture("every-item.jsonl")
    # every item a call: 11; only those that started: 5
    assert got.calls(THREAD) == {
        "item_1": "command_execution", "item_2": "command_execution", "item_3": "mcp__tides__next",
        "item_5": "spawn_agent", "item_6": "file_change", "item_7": "web_search", "item_10": "command_execution",
    }  # fmt: skip
    assert got.finished(THREAD) == {
        "item_1": ("completed", False, 0), "item_2": ("declined", None, -1), "item_3": ("failed", True, None),
        "item_5": ("completed", False, None), "item_6": ("completed", False, None), "item_7": (None, None, None),
    }  # fmt: skip
    assert got.unfinished(THREAD) == ["item_10"]
    assert [(row["path"], row["status"], row["call_id"]) for row in got.of(THREAD, "file.changed")] == [
        ("/yard/timer.py", "update", "item_6"),
        ("/yard/bell.txt", "add", "item_6"),
    ]


def test_declined_is_a_denial_and_no_failure(fixture):
    # codex PR #7101: counted as failed, a declined call is an error and nobody said no
    [denied] = [row for row in fixture("every-item.jsonl").rows if row["decision"] is not None]
    assert denied["kind"] == "tool.finished"
    names = ("call_id", "decision", "evidence", "reason", "decided_by", "is_error")
    assert [denied[name] for name in names] == ["item_2", "deny", "item_status", "declined", None, None]


def test_messages_errors_retries_and_what_nobody_knows(fixture):
    got = fixture("every-item.jsonl")
    kinds = Counter(row["kind"] for row in got.rows)
    assert (kinds["message"], kinds["reasoning"], kinds["error"], kinds["retry"], kinds["opaque"]) == (1, 1, 1, 1, 2)
    assert [row["text_chars"] for row in got.of(THREAD, "message", "reasoning")] == [43, 24]
    [retry] = got.of(THREAD, "retry")
    assert attributes(retry) == {"attempt": 2, "max": 5}
    assert retry["is_error"] is None
    assert [row["event"] for row in got.of(THREAD, "opaque")] == ["item.started/lantern_glow", "tide.turned"]
    text = [row["text_chars"] for row in got.rows if row["event"] == "plain_text"]
    assert text == [len("Reading prompt from stdin..."), len("WARN the cellar door is open"), 25]
    assert got.reading.reasons() == []


def test_a_total_runs_on_and_turns_are_counted_by_us(fixture):
    got = fixture("three-processes.log")
    # codex #17539, gitmoot #661: rows are totals of the thread; added up, the first run had 14,000 and 145
    assert got.totals(A) == [[5000, 1000, 50, None], [9000, 4000, 95, None]]
    rows = got.of(None, "usage")
    assert {row["usage_scope"] for row in rows[:3]} == {"cumulative"}
    assert {row["usage_key"] for row in rows[:3]} == {f"codex-thread:{A}"}, "over all processes of the thread"
    assert {row["usage_is_final"] for row in rows[:3]} == {True}
    assert {row["input_includes_cache"] for row in rows} == {True}
    assert {row["requests"] for row in rows} == {None}, "a capture does not tell requests"
    assert {row["model"] for row in rows} == {None}
    ends = [(row["turn_id"], row["status"], row["outcome"]) for row in got.of(A, "turn.ended")]
    assert ends == [("1", "completed", "success"), ("2", "completed", "success")]
    assert [row["turn_id"] for row in got.of(A, "turn.started")] == ["1", "2"]
    assert [row["outcome"] for row in got.of(A, "run.ended")] == ["success", "success"], "the last one is the run's"


def test_processes_of_one_file_are_runs(fixture):
    got = fixture("three-processes.log")
    assert list(dict.fromkeys(row["run_id"] for row in got.rows)) == [A, f"{A}#2", B]
    # item ids start again with each process: keyed by the id alone there was one call
    assert got.finished(A) == {"item_0": ("completed", False, 0)}
    assert got.finished(f"{A}#2") == {"item_0": ("failed", True, 1)}
    starts = got.of(None, "run.started")
    assert [attributes(row)["session_id"] for row in starts] == [A, A, B]
    assert got.at(8)["run_id"] == A, "text after a process belongs to it"
    assert got.totals(f"{A}#2") == [[16000, 9500, 140, None]]


def test_a_failed_turn_ends_and_its_figures_are_unknown(fixture):
    got = fixture("three-processes.log")
    [end] = got.of(B, "turn.ended")
    assert (end["status"], end["outcome"], end["is_error"]) == ("failed", "error", True)
    assert end["message"] == "the monthly limit is reached"
    assert [(row["status"], row["outcome"]) for row in got.of(B, "run.ended")] == [("failed", "error")]
    [usage] = got.of(B, "usage")
    assert (usage["usage_scope"], usage["usage_is_final"]) == ("delta", False)
    assert got.totals(B) == [[None] * 4], "unknown, not zero"


def test_older_names(fixture):
    # codex #5028: names of the new form alone saw no call and no message
    got = fixture("old-item-names.jsonl")
    run = "0199c000-0000-7000-8000-00000000000c"
    assert got.calls(run) == {"itm_1": "command_execution"}
    assert got.finished(run) == {"itm_1": ("completed", False, 0)}
    assert [row["event"] for row in got.of(run, "message")] == ["item.completed/assistant_message"]


def test_last_status_in_progress_is_not_finished(read):
    got = read(START, item("started", status="in_progress"), item("completed", status="in_progress"))
    assert got.unfinished("t-1") == ["item_0"]
    alone = read(START, item("completed", status="in_progress"))
    assert alone.unfinished("t-1") == ["item_0"], "seen for the first time, it is requested"


@pytest.mark.parametrize(
    ("values", "is_error"),
    [
        ({"status": "failed"}, True), ({"status": "completed"}, False), ({"status": "paused"}, None), ({}, None),
        ({"error": {"message": "no"}}, True), ({"error": None}, None), ({"status": "completed", "error": None}, False),
    ],
)  # fmt: skip
def test_an_error_is_what_says_so(read, values, is_error):
    [end] = read(START, item("completed", "mcp_tool_call", server="s", tool="t", **values)).of(None, "tool.finished")
    assert end["is_error"] is is_error
    assert end["tool"] == "mcp__s__t"


def test_a_turn_that_completed_without_figures_leaves_them_unknown(read):
    got = read(START, '{"type":"turn.started"}', '{"type":"turn.completed","usage":null}')
    assert [(row["usage_scope"], row["output_tokens"]) for row in got.of("t-1", "usage")] == [("delta", None)]


def test_missing_counters_are_unknown_and_none_is_made_up(read):
    got = read(START, '{"type":"turn.completed","usage":{"input_tokens":7,"cache_write_input_tokens":2}}')
    [row] = got.of("t-1", "usage")
    assert [row[name] for name in (*FIGURES, "cache_write_tokens")] == [7, None, None, None, 2]


# the form before it


def test_the_old_form_says_the_same(fixture):
    got = fixture("before-2025-09-30.jsonl")
    assert {row["run_id"] for row in got.rows} == {SOURCE}, "no row names a thread"
    assert got.calls(SOURCE) == {
        "call_a": "command_execution", "call_b": "file_change", "call_c": "mcp__tides__next",
    }  # fmt: skip
    assert got.finished(SOURCE) == {
        "call_a": (None, False, 0), "call_b": (None, False, None), "call_c": (None, True, None)
    }  # fmt: skip
    assert [row["duration_ms"] for row in got.of(SOURCE, "tool.finished")] == [1250, None, 7]
    assert [row["path"] for row in got.of(SOURCE, "file.changed")] == ["/yard/timer.py"]
    assert [(row["kind"], row["turn_id"]) for row in got.of(SOURCE, "turn.started", "turn.ended")] == [
        ("turn.started", "1"), ("turn.ended", "1"),
    ]  # fmt: skip
    kinds = Counter(row["kind"] for row in got.rows)
    assert (kinds["message"], kinds["reasoning"], kinds["retry"], kinds["opaque"]) == (2, 1, 1, 1)


def test_totals_of_the_old_form(fixture):
    got = fixture("before-2025-09-30.jsonl")
    # added up: 13,500 and 430
    assert got.totals(SOURCE) == [[4000, 1024, 120, 64], [9500, 6000, 310, 100]]
    usage = got.of(SOURCE, "usage")
    assert {(row["usage_scope"], row["usage_key"], row["model"], row["effort"]) for row in usage} == {
        ("cumulative", None, "gpt-5", "medium")
    }
    assert [row["context_tokens"] for row in usage] == [4120, 5690], "of the last request, not of the thread"
    assert {row["context_window_tokens"] for row in usage} == {272000}


def test_limits_of_the_old_form(fixture):
    got = fixture("before-2025-09-30.jsonl")
    samples = [(row["line"], row["limit_window_minutes"], row["limit_used"]) for row in got.of(SOURCE, "rate_limit")]
    assert samples == [(9, 300, 12.5), (9, 10080, 3.0), (18, 300, 14.0)]
    assert {row["limit_unit"] for row in got.of(SOURCE, "rate_limit")} == {"percent"}
    assert {row["limit_resets_at"] for row in got.of(SOURCE, "rate_limit")} == {None}, "relative, and rows have no time"
    assert [(row["line"], row["speaks"]) for row in got.rows if row["speaks"] and "limits" in row["speaks"]] == [
        (9, "limits")
    ]


def test_flat_and_absolute_limits(read):
    flat = {"primary_used_percent": 40.0, "primary_window_minutes": 300, "secondary_used_percent": None}
    absolute = {"limit_id": "codex", "primary": {"used_percent": 7, "window_minutes": 60, "resets_at": 1790000000}}
    got = read(
        message("task_started"), message("token_count", info=None, rate_limits=flat),
        message("token_count", info=None, rate_limits=absolute | {"secondary": None}),
    )  # fmt: skip
    names = ("limit_id", "limit_window_minutes", "limit_used")
    rows = got.of(None, "rate_limit")
    assert [tuple(row[name] for name in names) for row in rows] == [(None, 300, 40.0), ("codex", 60, 7.0)]
    assert rows[1]["limit_resets_at"].timestamp() == 1790000000
    assert got.of(None, "usage") == []


def test_the_oldest_counters_are_those_of_one_request(fixture):
    got = fixture("oldest-counters.log")
    # taken as a running total the first run had 1,500 and 20
    assert got.totals(SOURCE) == [[1000, 400, 30, 10], [1500, 900, 20, 0]]
    assert {(row["usage_scope"], row["requests"]) for row in got.of(SOURCE, "usage")} == {("delta", 1)}


def test_a_configuration_begins_a_process(fixture):
    got = fixture("oldest-counters.log")
    assert list(dict.fromkeys(row["run_id"] for row in got.rows)) == [SOURCE, f"{SOURCE}#2"]
    assert [attributes(row)["model"] for row in got.of(None, "run.started")] == ["gpt-5", "o3"]
    assert got.at(1)["run_id"] == SOURCE, "text before it belongs to it"
    assert attributes(got.of(SOURCE, "run.started")[0]) == {
        "cwd": "/yard", "model": "gpt-5", "model_provider": "openai", "approval_policy": "never",
        "sandbox": "read-only", "effort": "medium",
    }  # fmt: skip
    assert got.unfinished(f"{SOURCE}#2") == ["call_x"]


def test_a_thread_that_the_old_form_names_takes_the_rows_before(read):
    got = read(
        '{"workdir":"/yard","model":"gpt-5"}', '{"prompt":"hi"}',
        message("session_configured", session_id="s-1", model="gpt-5-codex", reasoning_effort="high"),
        message("task_started"), message("token_count", info={"total_token_usage": {"input_tokens": 9}}),
        message("turn_aborted", reason="interrupted"),
    )  # fmt: skip
    assert {row["run_id"] for row in got.rows} == {"s-1"}
    [start] = got.of(None, "run.started")
    assert attributes(start) == {
        "cwd": "/yard", "model": "gpt-5-codex", "effort": "high", "session_id": "s-1", "view_rank": 10
    }  # fmt: skip
    assert got.at(5, 1)["usage_key"] == "codex-thread:s-1"
    assert [(row["status"], row["outcome"]) for row in got.of(None, "run.ended")] == [("interrupted", None)]
    [end] = got.of(None, "turn.ended")
    assert (end["status"], end["outcome"]) == ("interrupted", None)
    assert [row["usage_scope"] for row in got.of(None, "usage")] == ["cumulative", "delta"]


def test_a_capture_that_goes_on_in_the_other_form_is_read_on(read):
    # codex #5028, #41216: the form changes without a mark; read as text the second half would be lost
    new = (START, '{"type":"turn.started"}', '{"type":"turn.completed","usage":{"input_tokens":8,"output_tokens":1}}')
    old = (
        '{"workdir":"/yard","model":"gpt-5"}', '{"prompt":"hi"}', message("task_started"),
        message("token_count", info={"total_token_usage": {"input_tokens": 3}}),
    )  # fmt: skip
    forward, back = read(*old, *new), read(*new, *old)
    assert [row["input_tokens"] for row in forward.of(None, "usage")] == [3, 8]
    assert [row["input_tokens"] for row in back.of(None, "usage")] == [8, 3]
    assert [row["run_id"] for row in forward.of(None, "usage")] == [SOURCE, "t-1"]
    assert [row["run_id"] for row in back.of(None, "usage")] == ["t-1", SOURCE]


@pytest.mark.parametrize(
    ("result", "is_error"),
    [
        ({"Ok": {"content": [], "isError": False}}, False), ({"Ok": {"content": [], "is_error": True}}, True),
        ({"Ok": {"content": []}}, False), ({"Err": "timed out"}, True), (None, None), ("text", None), ({}, None),
    ],
)  # fmt: skip
def test_how_an_mcp_call_of_the_old_form_ended(read, result, is_error):
    got = read(message("task_started"), message("mcp_tool_call_end", call_id="c", server="s", tool="t", result=result))
    [end] = got.of(None, "tool.finished")
    assert (end["tool"], end["is_error"]) == ("mcp__s__t", is_error)
    assert got.calls(None) == {"c": "mcp__s__t"}, "an end without a beginning is a call"


# lines that are no rows


@pytest.mark.parametrize(
    "line",
    [
        "", "   ", "warning: 3 lamps", "{", "}", "[1, 2]", '"text"', "null", "{}", '{"level":"info","msg":"listening"}',
        '{"id":"1","msg":{"kind":"x"}}', "{oops", "{ 1 }", '{"prompt":"a","more":1}', "ünïcode → text",
    ],
)  # fmt: skip
def test_what_is_no_row_is_text_and_stays(read, line):
    got = read(START, line, '{"type":"turn.started"}')
    assert got.reading.reasons() == []
    if line.strip():
        row = got.at(2)
        assert (row["event"], row["kind"], row["text_chars"], row["run_id"]) == (
            "plain_text",
            "system",
            len(line),
            "t-1",
        )
        assert row["payload"] == line


def test_text_that_is_not_utf8_keeps_its_bytes(tmp_path):
    got = Read(tmp_path, START.encode() + b"\n\xff\xfe caf\xe9\n")
    assert got.at(2)["raw"] == b"\xff\xfe caf\xe9"
    assert got.at(2)["payload"] is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type":"item.comp', "not_json"),
        ('{ "type": "turn.st', "not_json"),
        (START + START, "trailing_text"),
        ('{"type":"turn.started"} done', "trailing_text"),
        ('{"type":"item.completed"}', "malformed"),
        ('{"type":"item.completed","item":[]}', "malformed"),
        ('{"type":"thread.started"}', "malformed"),
        ('{"type":"thread.started","thread_id":7}', "malformed"),
        ('{"type":"turn.completed","usage":[1]}', "malformed"),
        ('{"type":"turn.completed","usage":{"input_tokens":"7"}}', "malformed"),
        ('{"type":"turn.completed","usage":{"input_tokens":-7}}', "number_out_of_range"),
        ('{"type":"turn.completed","usage":{"output_tokens":99999999999999999999}}', "number_out_of_range"),
        ('{"type":"turn.completed","usage":{"output_tokens":1000000000000001}}', "number_out_of_range"),
        ('{"type":"turn.completed","usage":{"cached_input_tokens":9223372036854775807}}', "number_out_of_range"),
        (
            '{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000000000000001}}}}',
            "number_out_of_range",
        ),
        (
            '{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":-1}}}}',
            "number_out_of_range",
        ),
        ('{"id":"0","msg":{"type":"session_configured"}}', "malformed"),
        ('{"type":"turn.started"\0}', "nul_byte"),
    ],
)
def test_a_broken_row_is_refused_with_its_run(read, line, reason):
    got = read(START, line, '{"type":"turn.started"}')
    assert [(row["line"], row["reason"], row["run_id"]) for row in got.reading.refusals] == [(2, reason, "t-1")]
    assert [row["line"] for row in got.rows if row["part"] == 0] == [1, 3]


def test_the_largest_counter(read):
    """Nine thousand such rows still add up in 64 bits; two of 2**63 - 1 do not."""
    got = read(START, '{"type":"turn.completed","usage":{"input_tokens":1000000000000000}}')
    assert got.totals("t-1") == [[10**15, None, None, None]]


def test_half_a_surrogate_pair_costs_nothing(read):
    """The end of a call was refused with its line, so the call stayed unfinished."""
    cut, done = "cut \ud83d here", {"status": "completed", "exit_code": 0}
    got = read(
        START, item("started", command=cut), item("completed", aggregated_output=cut, **done),
        item("completed", "agent_message", text=cut), message("exec_command_begin", call_id="c", command=[cut]),
        message("exec_command_end", call_id="c", stdout=cut, exit_code=3), json.dumps({"prompt": cut}),
        json.dumps({"level": "info", "msg": cut}), json.dumps(cut), json.dumps({"type": "tide", "text": cut}),
        json.dumps({"workdir": "/shed", "model": cut}),
    )  # fmt: skip
    assert got.reading.reasons() == []
    assert got.finished("t-1") == {"item_0": ("completed", False, 0), "c": (None, True, 3)}
    assert [(row["line"], row["event"], row["text_chars"]) for row in got.rows if row["text_chars"]] == [
        (4, "item.completed/agent_message", 10), (7, "prompt", 10), (8, "plain_text", len(got.at(8)["payload"])),
        (9, "plain_text", len(json.dumps(cut))),
    ]  # fmt: skip
    assert (got.at(10)["kind"], got.at(11)["event"]) == ("opaque", "config_summary")
    assert "\\ud83d" in got.at(4)["payload"]


def test_a_row_that_is_cut_is_refused_whatever_it_holds(read):
    got = read(START, '{"type":"item.completed","item":{"text":"\\ud83d', "{not json \\ud83d", "say \\ud83d")
    assert [(row["line"], row["reason"]) for row in got.reading.refusals] == [(2, "not_json")]


def test_a_row_of_an_unknown_type_is_never_refused(read):
    got = read(
        START, '{"type":"tide.turned","usage":"none","item":7,"error":[]}', '{"id":0,"msg":{"type":"x","info":1}}'
    )
    assert [(row["event"], row["kind"]) for row in got.rows if row["line"] > 1] == [
        ("tide.turned", "opaque"), ("x", "opaque"),
    ]  # fmt: skip


def test_a_broken_row_before_all_others_introduces_no_run(read):
    got = read('{"type":"thread.started"}', START)
    assert [row["run_id"] for row in got.reading.refusals] == ["t-1"]
    assert (got.at(2)["end_rule"], got.at(2, 1)["kind"]) == ("turns", "run.started")


def test_the_end_of_a_file_that_may_grow_is_pending(tmp_path):
    got = Read(tmp_path, f'{START}\n{{"type":"turn.sta'.encode())
    assert got.record.row["pending_bytes"] == 17
    assert got.reading.reasons() == []


def test_a_secret_in_a_broken_row_or_in_text_is_gone(tmp_path):
    secret = "sk-ant-api03-" + "Ab3" * 30
    lines = (START, f"export KEY={secret}", f'{{"type":"error","message":"{secret}', item("completed", text=secret))
    (tmp_path / "capture.jsonl").write_text("".join(f"{line}\n" for line in lines))
    record, got = Reader(tmp_path / "lake").read(tmp_path / "capture.jsonl")
    assert secret not in str(got.events) + str(got.refusals) + str(record)
    assert [(row["line"], row["event"]) for row in got.events if row["part"] == 0][1:] == [
        (2, "plain_text"), (4, "item.completed/command_execution"),
    ]  # fmt: skip
    assert got.reasons() == [(3, "not_json")]


# read on


@pytest.mark.parametrize("name", NAMED)
def test_cut_after_any_line_and_read_on_is_the_whole(tmp_path, name):
    data = (FIXTURES / name).read_bytes()
    reader, path = Reader(tmp_path / "lake"), tmp_path / name
    path.write_bytes(data)
    whole = reader.read(path)[1].comparable()
    ends = [at + 1 for at, octet in enumerate(data) if octet == 10][:-1]
    for end in ends:
        assert reader.grow(path, data, [end]).comparable() == whole, f"cut at byte {end}"
        assert reader.grow(path, data, [end - 9, end + 5]).comparable() == whole, f"cut inside lines around {end}"


def test_text_that_was_read_before_the_thread_had_a_name_has_one_of_the_source(tmp_path):
    data = (FIXTURES / "every-item.jsonl").read_bytes()
    grown = Reader(tmp_path / "lake", wire="codex-exec").grow(tmp_path / "x.jsonl", data, [data.index(b"\n") + 1])
    assert [(row["run_id"], row["run_id_origin"]) for row in grown.events[:2]] == [(SOURCE, "source"), (THREAD, "wire")]
    assert {row["run_id"] for row in grown.events[1:]} == {THREAD}
    assert grown.events[1]["end_rule"] == "turns", "the thread's own first row introduces it"


def test_a_growing_line_by_line_capture_is_the_whole(tmp_path):
    for name in ("three-processes.log", "before-2025-09-30.jsonl", "oldest-counters.log"):
        data = (FIXTURES / name).read_bytes()
        reader, path = Reader(tmp_path / f"lake-{name}"), tmp_path / name
        path.write_bytes(data)
        whole = reader.read(path)[1].comparable()
        cuts = [at + 1 for at, octet in enumerate(data) if octet == 10][:-1]
        assert reader.grow(path, data, cuts).comparable() == whole


# through a lake


def test_spaced_json_and_other_key_orders_are_the_same(read, fixture):
    rows = [json.loads(line) for line in (FIXTURES / "three-processes.log").read_text().splitlines() if line[0] == "{"]
    turned = [json.dumps(dict(reversed(row.items())), indent=None, separators=(" , ", " : ")) for row in rows]
    got, plain = read(*turned), fixture("three-processes.log")
    left_out = ("line", "byte_offset", "payload")
    kept = [row for row in plain.rows if row["event"] != "plain_text"]
    assert [{k: v for k, v in row.items() if k not in left_out} for row in got.rows] == [
        {k: v for k, v in row.items() if k not in left_out} for row in kept
    ]


def test_calls_and_denials_in_a_lake(tmp_path):
    lab = Lab(tmp_path)
    lab.write("every-item.jsonl", (FIXTURES / "every-item.jsonl").read_bytes())
    lab.ingest(jobs=1)
    assert lab.failed_checks() == {}
    [run] = lab.metrics()
    assert (run["run_id"], run["tool_calls"], run["denied_calls"], run["failed_calls"]) == (THREAD, 7, 1, 1)
    assert (run["messages"], run["errors"], run["retries"], run["opaque_records"]) == (1, 1, 1, 2)
    assert (run["file_changes"], run["rate_limit_samples"], run["requests"]) == (2, None, None)
    states = dict(lab.sql("SELECT call_id, state FROM tool_calls"))
    assert (states["item_2"], states["item_10"], states["item_1"]) == ("denied", "unfinished", "finished")
