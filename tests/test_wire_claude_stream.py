"""The stream-json wire on its own: captures in, event rows out. Answers are worked out by hand; each test of a figure
names the wrong figure that it avoids.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest
from helpers import Reader, check_conservation, rebuild
from hypothesis import given, settings, strategies as st

from analytics import wires
from analytics.refusals import NAMES
from analytics.schema import EVENT, KINDS, TOPICS, USAGE_SCOPES
from analytics.wires.base import Context, Refusal, Sample, key64
from analytics.wires.claude_stream import WIRE

FIXTURES = Path(__file__).parent / "fixtures"
NATIVE, OWN = FIXTURES / "native", FIXTURES / "claude-stream"
CASES = json.loads((NATIVE / "expected.json").read_text())
STREAMS = sorted(name for name in CASES if name.startswith("ss-"))
CAPTURES = [
    *sorted(path for name in STREAMS for path in (NATIVE / name).iterdir()), *sorted(OWN.iterdir()),
    FIXTURES / "samples/harness-lab/agent-stream-claude.sanitized.jsonl",
]  # fmt: skip
TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
BIG, SMALL = "claude-opus-4-6", "claude-haiku-4-5"
GARDEN, CLOCK = "5e11aaaa-0000-4000-8000-000000000001", "5e11aaaa-0000-4000-8000-000000000002"


# lines of a capture


def line(kind, session=GARDEN, **values):
    return {"type": kind, **values, **({} if session is None else {"session_id": session})}


def init(session=GARDEN, **values):
    said = {"subtype": "init", "cwd": "/srv/garden", "tools": ["Bash", "Read"], "model": BIG}
    return line("system", session, **said, **{"claude_code_version": "2.1.160", "permissionMode": "default"} | values)


def used(i=0, read=0, write=0, out=0, **values):
    counts = {"input_tokens": i, "cache_read_input_tokens": read, "cache_creation_input_tokens": write}
    return {**counts, "output_tokens": out, **values}


def answer(key, *blocks, usage=None, session=GARDEN, parent=None, model=BIG, stop=None, **values):
    message = {"id": key, "role": "assistant", "model": model, "content": list(blocks), "stop_reason": stop}
    if usage is not None:
        message["usage"] = usage
    return line("assistant", session, message=message, parent_tool_use_id=parent, **values)


def told(*blocks, session=GARDEN, parent=None, **values):
    message = {"role": "user", "content": list(blocks) if blocks and isinstance(blocks[0], dict) else blocks[0]}
    return line("user", session, message=message, parent_tool_use_id=parent, **values)


def text(words):
    return {"type": "text", "text": words}


def call(key, tool="Bash"):
    return {"type": "tool_use", "id": key, "name": tool, "input": {"command": "ls"}}


def done(key, words="ok", **values):
    return {"type": "tool_result", "tool_use_id": key, "content": words, **values}


def spent(i=0, read=0, write=0, out=0, cost=None):
    made = {"inputTokens": i, "cacheReadInputTokens": read, "cacheCreationInputTokens": write, "outputTokens": out}
    return made | ({} if cost is None else {"costUSD": cost})


def result(models=None, session=GARDEN, subtype="success", *, is_error=False, **values):
    said = {"subtype": subtype, "is_error": is_error, "duration_ms": 1500, "num_turns": 1}
    return line("result", session, **said, **({} if models is None else {"modelUsage": models}), **values)


def partial(event, session=GARDEN, parent=None, **values):
    return line("stream_event", session, event={"type": event, **values}, parent_tool_use_id=parent)


def started(key, usage, parent=None, model=BIG):
    return partial("message_start", parent=parent, message={"id": key, "model": model, "usage": usage})


def encode(lines):
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)


# what rows say


class Capture:
    """Rows of a capture and what they add up to, told from the rows alone."""

    def __init__(self, reading):
        self.reading, self.rows = reading, reading.events
        names = {column.name for column in EVENT} | {"wire", "source_id"}
        assert {name for row in self.rows for name in row} <= names
        assert {row["kind"] for row in self.rows} <= set(KINDS)
        assert {row["usage_scope"] for row in self.rows} <= {None, *USAGE_SCOPES}
        assert {topic for row in self.rows for topic in (row["speaks"] or "").split()} <= set(TOPICS)
        assert {row["reason"] for row in reading.refusals} <= NAMES
        assert not any(row["event_key"] for row in self.rows if row["kind"] == "run.started")

    def runs(self):
        return sorted({row["run_id"] for row in self.rows})

    def of(self, kind=None, run=None, **values):
        return [
            row for row in self.rows
            if kind in (None, row["kind"]) and run in (None, row["run_id"])
            and all(row[name] == value for name, value in values.items())
        ]  # fmt: skip

    def said(self, column, kind=None, run=None):
        return [row[column] for row in self.of(kind, run) if row[column] is not None]

    def totals(self, run=None):
        return [row for row in self.of("usage", run) if row["usage_scope"] == "turn_total"]

    def answers(self, run=None):
        """Of each answer the row with the largest output, the later of equal ones."""
        best = {}
        for row in self.of(run=run, usage_scope="snapshot"):
            before = best.get(row["usage_key"])
            if before is None or (row["output_tokens"] or 0) >= (before["output_tokens"] or 0):
                best[row["usage_key"]] = row
        return best

    def tokens(self, run=None, model=None):
        """The run's results; without any, its answers."""
        rows = self.totals(run) or list(self.answers(run).values())
        return [added(row[name] for row in rows if model in (None, row["model"])) for name in TOKENS]

    def cost(self, run=None):
        return added(self.said("cost_usd", run=run))

    def ended(self, run=None):
        return {row["call_id"] for row in self.of("tool.finished", run)}

    def calls(self, run=None):
        return {row["call_id"]: row["tool"] for row in self.of("tool.requested", run)}

    def denied(self, run=None):
        """Of each refused call who refused it, and where that is written."""
        made = {}
        for row in self.of(decision="deny", run=run):
            kinds, evidence = made.setdefault(row["call_id"], (set(), set()))
            kinds.add(row["reason"])
            evidence.add(row["evidence"])
        return made

    def interrupted(self, run=None):
        return [row["call_id"] for row in self.of("tool.finished", run, status="interrupted")]

    def completeness(self, run=None):
        turns = set(self.said("turn_id", "turn.started", run))
        ends = set(self.said("turn_id", "turn.ended", run))
        return "undecidable" if not turns else "closed" if turns <= ends else "open"


def added(values):
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@pytest.fixture(name="reader")
def _reader(tmp_path):
    return Reader(tmp_path / "lake")


@pytest.fixture(name="read")
def _read(tmp_path, reader):
    """Lines to a Capture, checked for conservation."""

    def made(*lines, path=None):
        if path is None:
            path = tmp_path / "capture.jsonl"
            path.write_bytes(encode(lines))
        _, reading = reader.read(path)
        assert reading.wire == "claude-stream"
        check_conservation(reading)
        assert rebuild(reading) == path.read_bytes()
        return Capture(reading)

    return made


# the cases with answers


@pytest.mark.parametrize("name", STREAMS)
def test_the_rows_of_a_case_hold_its_answer(name, read):
    case = CASES[name]
    captures = {file: read(path=NATIVE / file) for file in case["files"]}
    for file, capture in captures.items():
        wanted = [run for run in case["runs"] if run["file"] == file]
        assert capture.runs() == sorted(run["run_key"] for run in wanted)
        assert capture.reading.refusals == []
        for run in wanted:
            check_run(capture, run["run_key"], run)
    assert len(case["runs"]) == sum(len(capture.runs()) for capture in captures.values())


def check_run(capture, run, wanted):
    names = ("uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert capture.tokens(run) == [wanted[column] for column in names]
    assert capture.cost(run) == pytest.approx(wanted["cost_usd"], abs=1e-9)
    counted = capture.totals(run) or list(capture.answers(run).values())
    assert added(row["cache_write_1h_tokens"] for row in counted) == wanted["cache_write_1h_tokens"]
    assert {row["model"] for row in counted} == set(wanted["models"])
    assert all(row["usage_is_final"] for row in counted) != wanted["tokens_are_lower_bound"]
    assert len(capture.answers(run)) == wanted["requests"]
    assert len(capture.calls(run)) == wanted["tool_calls"]
    assert sorted(capture.calls(run).keys() - capture.ended(run)) == wanted["unfinished"]
    assert capture.interrupted(run) == wanted["interrupted"]
    denied = capture.denied(run)
    assert denied.keys() == {one["call_id"] for one in wanted["denied"]}
    for one in wanted["denied"]:
        kinds, evidence = denied[one["call_id"]]
        assert one["kind"] in kinds
        assert kinds <= {one["kind"], "listed"}
        assert sorted(evidence) == one["evidence"]
        assert capture.calls(run)[one["call_id"]] == one["tool"]
    assert capture.completeness(run) == wanted["completeness"]
    ends = capture.of("run.ended", run)
    assert len(ends) == wanted["results"]
    if ends:
        assert (ends[-1]["status"], ends[-1]["is_error"]) == (wanted["subtype"], wanted["is_error"])
        assert ends[-1]["outcome"] == ("error" if wanted.get("failed") else "success")
    texts = [row["line"] for row in capture.of(run=run, event="plain_text")]
    noise = [one["line"] for key in ("plain_text_lines", "refused_lines") for one in wanted.get(key, ())]
    assert texts == sorted(noise)
    assert [w | {"used": percent} for w, percent in windows(capture, run)] == [
        {name: one[name] for name in ("limit_id", "window_minutes", "resets_at", "samples", "last_status")}
        | {"used": one["peak_used_percent"]}
        for one in wanted["limit_windows"] or ()
    ]
    if "output_by_result" in wanted:
        turns = [added(row["output_tokens"] for row in capture.totals(run) if row["turn_id"] == t) for t in "123"]
        assert turns == wanted["output_by_result"]
    if "output_by_request" in wanted:
        assert [row["output_tokens"] for row in capture.answers(run).values()] == wanted["output_by_request"]


def windows(capture, run):
    """Windows by limit and reset, in order of their first sample, and the peak of each."""
    found = {}
    for row in capture.of("rate_limit", run):
        assert row["limit_unit"] == "fraction"
        found.setdefault((row["limit_id"], row["limit_resets_at"]), []).append(row)
    for (name, resets), rows in found.items():
        peak = max((row["limit_used"] for row in rows if row["limit_used"] is not None), default=None)
        said = {"limit_id": name, "window_minutes": rows[0]["limit_window_minutes"]}
        said |= {"resets_at": resets.timestamp(), "samples": len(rows), "last_status": rows[-1]["limit_status"]}
        yield said, None if peak is None else pytest.approx(peak * 100)


def test_harness_labs_sanitised_stream_is_this_wire(read):
    capture = read(path=CAPTURES[-1])
    assert capture.tokens() == [58, 22380, 5090, 413]  # result.usage says 55, 21480, 4390, 405
    assert len(capture.answers()) == 7
    assert {key: kinds for key, (kinds, _) in capture.denied().items()} == {
        "tu_2": {"hook-denied"}, "tu_5": {"rule-denied", "listed"}, "tu_7": {"hook-denied"},
    }  # fmt: skip
    assert capture.calls().keys() - capture.ended() == {"tu_6"}
    assert [row["text_chars"] for row in capture.of("reasoning")] == [None]  # the thought was taken out
    assert [row["event"] for row in capture.of("opaque")] == ["status_ping"]
    assert capture.said("parent_call_id") == ["tu_3", "tu_3"]


def test_a_log_of_two_sessions_a_restart_and_a_kill(read):
    """garden.log. First session: two results of one process (11, 4300, 420, 470 of the large model, beside a subagent
    and a side call), then one of a restarted process (7, 1500, 760, 90). Second session: killed.
    """
    capture = read(path=OWN / "garden.log")
    first, second = capture.runs()
    assert capture.tokens(first) == [11 + 11 + 250 + 7, 4300 + 400 + 1500, 420 + 90 + 760, 470 + 120 + 9 + 90]
    assert capture.tokens(first, BIG) == [18, 5800, 1180, 560]
    assert capture.cost(first) == pytest.approx(0.281 + 0.08, abs=1e-9)  # the last total alone: 0.08; all three: 0.592
    assert len(capture.answers(first)) == 5
    assert capture.calls(first) == {"toolu_a1": "Task", "toolu_s1": "Grep", "toolu_a4": "Bash"}
    assert capture.completeness(first) == "closed"
    assert [row["outcome"] for row in capture.of("run.ended")] == ["success", "success", "error"]
    assert capture.tokens(second) == [7, 6600, 510, 644]  # by assistant rows alone: output 5
    assert capture.answers(second)["msg_b1"]["cache_write_1h_tokens"] == 300
    assert capture.calls(second).keys() - capture.ended(second) == {"toolu_b2"}
    assert (capture.completeness(second), capture.cost(second)) == ("open", None)
    assert [(row["line"], row["run_id"]) for row in capture.of(event="plain_text")] == [
        (1, first), (17, first), (32, second)
    ]  # fmt: skip
    assert [(row["line"], row["reason"], row["run_id"]) for row in capture.reading.refusals] == [
        (22, "not_json", first)
    ]  # fmt: skip


def test_a_session_driven_by_another_program(read):
    """driven.jsonl: one reply allows, one denies, one Read is refused by a rule that no list names."""
    capture = read(path=OWN / "driven.jsonl")
    assert capture.denied() == {
        "toolu_c2": ({"user-rejected", "listed"}, {"control_response", "permission_denials"}),
        "toolu_c3": ({"rule-denied"}, {"result_text"}),
    }  # fmt: skip
    assert [row["decision"] for row in capture.rows if row["call_id"] == "toolu_c1" and row["decision"]] == [
        "ask", "allow"
    ]  # fmt: skip
    assert (capture.tokens(), capture.cost()) == ([8, 2000, 600, 75], 0.05)
    (end,) = capture.of("run.ended")  # the word is success
    assert (end["status"], end["outcome"], end["reason"]) == ("success", "error", "api error 529")
    assert capture.said("limit_used") == [0.4, 1.0]
    assert [row["event"] for row in capture.of("opaque")] == ["weather"]
    assert len(capture.runs()) == 1


# what each wire states of a run


def test_the_first_row_says_how_to_judge_the_run_and_the_init_what_it_is(read):
    hook = line("system", subtype="hook_started", hook_name="SessionStart")
    capture = read(b"$ run the gardener", hook, init(), answer("m1", text("hello"), usage=used(1, out=1)), result())
    assert [(row["line"], row["end_rule"]) for row in capture.rows if row["end_rule"]] == [(1, "turns"), (3, "turns")]
    assert capture.said("speaks") == [
        "tokens cost decisions results outcome", "tokens cost decisions results outcome offered"
    ]  # fmt: skip
    (begun,) = capture.of("run.started")
    assert (begun["line"], begun["event"]) == (3, "run")
    assert json.loads(begun["attributes"]) == {
        "session_id": GARDEN, "view_rank": 5, "cwd": "/srv/garden", "version": "2.1.160", "model": BIG,
        "permission_mode": "default",
    }  # fmt: skip
    assert capture.said("tool", "tool.offered") == ["Bash", "Read"]
    assert {row["run_id_origin"] for row in capture.rows} == {"wire"}


def test_a_run_without_init_names_itself_with_its_first_message(read):
    capture = read(answer("m1", text("hello"), usage=used(1, out=1)), answer("m1", text("hello"), usage=used(1, out=1)))
    (begun,) = capture.of("run.started")
    assert json.loads(begun["attributes"]) == {"session_id": GARDEN, "view_rank": 5}
    assert [(row["line"], row["turn_id"]) for row in capture.of("turn.started")] == [(1, "1")]


def test_a_result_outranks_the_session_file_only_if_it_tells_what_was_spent(read):
    capture = read(init(), result({BIG: spent(1)}), init(CLOCK), result(usage=used(1), session=CLOCK))
    assert [json.loads(row["attributes"])["view_rank"] for row in capture.of("run.ended")] == [20, 20]
    capture = read(init(), result())
    assert [json.loads(row["attributes"]) for row in capture.of("run.ended")] == [{"num_turns": 1}]


def test_leading_text_is_of_the_run_that_follows_and_alone_of_a_run_of_its_own(read, reader, tmp_path):
    lines = [b"warming up", init(), b"", b"between", init(CLOCK), b"behind"]
    capture = read(*lines)
    texts = [(row["line"], row["run_id"]) for row in capture.of(event="plain_text")]
    assert texts == [(1, GARDEN), (4, GARDEN), (6, CLOCK)]
    data = encode(lines)
    cut = Capture(reader.grow(tmp_path / "grown.jsonl", encode([init(), *lines])[len(encode([init()])) :], []))
    assert [row["run_id"] for row in cut.of(event="plain_text")] == [GARDEN, GARDEN, CLOCK]
    ctx = Context("0123", "stream", WIRE.new_state("stream"))
    rows = WIRE.read([WIRE.accept_text(data.split(b"\n")[0], Refusal("not_json"), ctx)], ctx)
    assert rows.constants == {"run_id": "claude-stream-0123", "run_id_origin": "source"}


# usage: several results, restarts, partial messages, gateways


def test_results_run_on_and_each_stands_for_its_turn(read):
    capture = read(
        init(), result({BIG: spent(10, 100, 50, 20, 0.5), SMALL: spent(5, out=1, cost=0.01)}, total_cost_usd=0.51),
        init(), result({BIG: spent(30, 400, 60, 70, 1.25), SMALL: spent(5, out=1, cost=0.01)}, total_cost_usd=1.26),
        init(), result({BIG: spent(30, 400, 60, 70, 1.25), SMALL: spent(9, out=3, cost=0.02)}, total_cost_usd=1.27),
    )  # fmt: skip
    assert capture.tokens() == [39, 400, 60, 73]  # the three results added up: 89, 900, 170, 165
    assert [(r["turn_id"], r["model"], r["input_tokens"], r["output_tokens"]) for r in capture.totals()] == [
        ("1", BIG, 10, 20), ("1", SMALL, 5, 1), ("2", BIG, 20, 50), ("3", SMALL, 4, 2),
    ]  # fmt: skip
    assert capture.cost() == pytest.approx(1.27)  # not 0.51 + 1.26 + 1.27, and not 1.26 with the parts beside it
    assert capture.tokens(model=SMALL)[3] == 3
    assert all(row["usage_is_final"] is True for row in capture.totals())
    assert capture.completeness() == "closed"


@pytest.mark.parametrize(
    "second",
    [
        {BIG: spent(8, 500, 60, 40, 2.0)},  # input is smaller
        {BIG: spent(30, 500, 60, 40, 0.3)},  # cost is smaller
        {SMALL: spent(30, 500, 60, 40, 2.0)},  # a model is gone
    ],
)
def test_a_figure_that_falls_means_another_process_of_the_session(second, read):
    capture = read(init(), result({BIG: spent(10, 100, 50, 20, 0.5)}), init(), result(second))
    (now,) = second.values()
    counts = [now[key] for key in ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")]
    assert capture.tokens() == [a + b for a, b in zip((10, 100, 50, 20), counts, strict=True)]
    assert capture.cost() == pytest.approx(0.5 + now["costUSD"])


def test_a_total_cost_that_falls_means_another_process_too(read):
    capture = read(
        init(), result({BIG: spent(10, out=20)}, total_cost_usd=0.9),
        init(), result({BIG: spent(11, out=21)}, total_cost_usd=0.4),
    )  # fmt: skip
    assert capture.tokens() == [21, 0, 0, 41]  # as one process: 11, 21
    assert [row["cost_usd"] for row in capture.of(usage_scope="cost")] == [0.9, 0.4]


def test_costs_of_models_add_up_to_the_total(read):
    capture = read(
        init(), result({BIG: spent(1, cost=0.5000004), SMALL: spent(1, cost=0.1000004)}, total_cost_usd=0.600001),
        init(), result({BIG: spent(2, cost=0.7000004), SMALL: spent(2)}, total_cost_usd=1.100001),
    )  # fmt: skip
    assert [(row["model"], row["usage_scope"], row["cost_usd"]) for row in capture.rows if row["cost_usd"]] == [
        (BIG, "turn_total", pytest.approx(0.5000006, abs=1e-12)), (SMALL, "turn_total", 0.1000004),
        (BIG, "turn_total", pytest.approx(0.2, abs=1e-12)),
        (None, "cost", pytest.approx(0.3, abs=1e-12)),  # no model names it
    ]  # fmt: skip
    assert capture.cost() == pytest.approx(1.100001, abs=1e-9)


def test_the_restart_of_one_session_leaves_the_other_alone(read):
    capture = read(
        init(), result({BIG: spent(10, out=20)}), init(CLOCK), result({BIG: spent(7, out=3)}, CLOCK),
        init(), result({BIG: spent(15, out=26)}), init(CLOCK), result({BIG: spent(9, out=1)}, CLOCK),
    )  # fmt: skip
    assert capture.tokens(GARDEN) == [15, 0, 0, 26]
    assert capture.tokens(CLOCK) == [16, 0, 0, 4]  # its output fell, 3 to 1: a new process


def test_a_result_without_models_is_its_turn_and_a_lower_bound(read):
    capture = read(
        init(), answer("m1", text("a"), usage=used(4, 10, 5, 2)), result(usage=used(4, 10, 5, 90), total_cost_usd=0.25),
        init(), answer("m2", text("b"), usage=used(3, 15, 0, 1)), result(usage=used(3, 15, 0, 60), total_cost_usd=0.4),
    )  # fmt: skip
    assert capture.tokens() == [7, 25, 5, 150]  # the rows alone have output 3, the last result 60
    assert capture.cost() == pytest.approx(0.4)
    assert [row["usage_is_final"] for row in capture.totals()] == [False, False]
    assert [row["model"] for row in capture.totals()] == [BIG, BIG]


def test_a_turn_of_two_models_without_a_split_has_no_model(read):
    capture = read(
        init(), answer("m1", text("a"), usage=used(4)), answer("m2", text("b"), usage=used(3), model=SMALL),
        result(usage=used(7)),
    )  # fmt: skip
    assert [row["model"] for row in capture.totals()] == [None]


def test_a_result_that_leaves_the_models_out_is_contained_in_the_next(read):
    lines = [init(), result({BIG: spent(10, out=20)}), init(), result(usage=used(5, out=6), subtype="error_x")]
    capture = read(*lines)
    assert capture.tokens() == [10, 0, 0, 20]
    assert [row["usage_is_final"] for row in capture.totals()] == [True, False]  # what is known is a lower bound
    capture = read(*lines, init(), result({BIG: spent(18, out=29)}))
    assert capture.tokens() == [18, 0, 0, 29]  # with the turn in between: 23, 35


def test_a_run_that_failed_before_any_request_spent_nothing(read):
    capture = read(init(), result({}, is_error=True, usage=used(), total_cost_usd=0))
    assert capture.tokens() == [0, 0, 0, 0]  # and not unknown
    assert capture.totals()[0]["usage_is_final"] is True


def test_only_what_was_recorded_is_said(read):
    bare = {"input_tokens": 8700, "output_tokens": 292}
    capture = read(
        init(), answer("m1", text("a"), usage=bare), answer("m2", text("b")),
        result({BIG: {"inputTokens": 10386, "outputTokens": 1206}}, usage={"input_tokens": 1686, "output_tokens": 914}),
    )  # fmt: skip
    first, second = (capture.answers()[key] for key in ("m1", "m2"))
    assert (first["input_tokens"], first["cache_read_tokens"], first["cache_write_1h_tokens"]) == (8700, None, None)
    assert first["input_includes_cache"] is False
    assert [second[name] for name in (*TOKENS, "requests")] == [None, None, None, None, 1]
    assert capture.tokens() == [10386, None, None, 1206]  # the rows say 292, result.usage 914


def test_ids_that_gateways_write_on_every_answer_name_nothing(read):
    capture = read(
        init(), answer("msg", text("a"), usage=used(5, out=1), uuid="u-1"),
        answer("msg", text("b"), usage=used(6, out=2), uuid="u-2"),
        answer(None, text("c"), usage=used(7, out=3), request_id="req-3", uuid="u-3"),
    )  # fmt: skip
    assert set(capture.answers()) == {"u-1", "u-2", "req-3"}
    assert capture.tokens() == [18, 0, 0, 6]  # as one answer: 6, 2


def test_blocks_of_one_answer_are_one_request(read):
    usage = used(3, 100, 40, 9, cache_creation={"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 30})
    capture = read(
        init(), answer("m1", {"type": "thinking", "thinking": "hmm"}, text("yes"), usage=usage),
        answer("m1", call("c1"), usage=usage, stop="tool_use"), told(done("c1")),
    )  # fmt: skip
    assert capture.tokens() == [3, 100, 40, 9]  # row by row: 6, 200, 80, 18
    (kept,) = capture.answers().values()
    assert (kept["cache_write_1h_tokens"], kept["usage_is_final"]) == (30, True)
    assert [(row["kind"], row["part"], row["text_chars"]) for row in capture.of(request_id="m1")] == [
        ("reasoning", 0, 3), ("message", 1, 3), ("tool.requested", 0, None),
    ]  # fmt: skip
    assert capture.said("requests") == [1, 1]


def test_partial_messages_tell_the_true_output(read):
    capture = read(
        init(),
        started("m1", used(4, 900, 300, 2, cache_creation={"ephemeral_1h_input_tokens": 300})),
        partial("content_block_delta", delta={"type": "text_delta", "text": "the"}),
        answer("m1", text("the rake"), usage=used(4, 900, 300, 2)),
        partial("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 777}),  # older: output only
        partial("message_stop"),
        partial("message_delta", usage={"output_tokens": 5}),  # of no answer that began
    )
    assert capture.tokens() == [4, 900, 300, 777]  # by the assistant rows: output 2
    (kept,) = capture.answers().values()
    assert (kept["usage_is_final"], kept["cache_write_1h_tokens"], kept["kind"]) == (True, 300, "usage")
    assert [row["kind"] for row in capture.of(event="stream_event/message_delta")] == ["usage", "system"]
    assert capture.completeness() == "open"


def test_partial_messages_of_a_subagent_and_of_the_main_chain_do_not_mix(read):
    capture = read(
        init(), started("m1", used(4)), started("s1", used(2), "c1", SMALL), started("s2", used(3), "c2", SMALL),
        partial("message_delta", parent="c1", usage=used(2, out=11)), partial("message_delta", usage=used(4, out=44)),
        partial("message_delta", parent="c2", usage=used(3, out=33)),
    )  # fmt: skip
    found = {key: (row["model"], row["output_tokens"]) for key, row in capture.answers().items()}
    assert found == {"m1": (BIG, 44), "s1": (SMALL, 11), "s2": (SMALL, 33)}
    assert capture.said("parent_call_id", "usage") == ["c1", "c2", "c1", "c2"]


def test_a_killed_answer_is_known_from_its_start(read):
    capture = read(init(), started("m1", used(4, 900, 300, 2)))
    assert capture.tokens() == [4, 900, 300, 2]  # no assistant row: nothing at all
    assert capture.answers()["m1"]["usage_is_final"] is False


def test_a_synthetic_answer_is_an_error_and_no_request(read):
    capture = read(
        init(), answer("u-1", text("API Error: 500"), usage=used(), model="<synthetic>", error="server_error"),
        answer("u-2", text("limit"), usage=used(), isApiErrorMessage=True),
    )  # fmt: skip
    assert capture.answers() == {}
    assert capture.said("model") == [BIG]  # the init's
    assert [(row["status"], row["message"]) for row in capture.of("error")] == [
        ("server_error", "API Error: 500"), (None, "limit")
    ]  # fmt: skip


# turns and ends


def test_turns_begin_with_an_init_or_the_first_message_and_end_with_a_result(read):
    capture = read(
        init(), init(),  # the second repeats the first: nothing was answered in between
        answer("m1", text("a")), result(), line("system", subtype="task_notification"),
        told("and now?", isReplay=True), init(), answer("m2", text("b")), result(), result(),
    )  # fmt: skip
    assert capture.said("turn_id", "turn.started") == capture.said("turn_id", "turn.ended") == ["1", "2", "3"]
    (notice,) = capture.of(event="system/task_notification")
    assert notice["turn_id"] is None
    assert capture.completeness() == "closed"


def test_a_turn_that_a_new_process_cuts_off_stays_open(read):
    capture = read(init(), answer("m1", text("a")), init(), answer("m2", text("b")), result({BIG: spent(1)}))
    assert capture.said("turn_id", "turn.started") == ["1", "2"]
    assert capture.said("turn_id", "turn.ended") == ["2"]
    assert capture.completeness() == "open"


def test_a_result_alone_is_a_closed_turn(read):
    capture = read(result({BIG: spent(2, out=5)}, result="done"))  # --output-format json
    assert (capture.completeness(), capture.tokens()) == ("closed", [2, 0, 0, 5])


@pytest.mark.parametrize(
    ("values", "outcome", "reason"),
    [
        ({}, "success", None),
        ({"terminal_reason": "completed"}, "success", "completed"),
        ({"is_error": True, "api_error_status": 529, "result": "API Error"}, "error", "api error 529"),
        ({"is_error": True, "result": "API Error"}, "error", "API Error"),
        ({"subtype": "error_max_turns", "errors": ["too many turns"]}, "error", "too many turns"),
        ({"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, "error", "aborted_tools"),
    ],
)
def test_success_needs_more_than_the_word(values, outcome, reason, read):
    capture = read(init(), result({BIG: spent(1)}, **values))
    (end,) = capture.of("run.ended")
    assert (end["outcome"], end["reason"], end["duration_ms"]) == (outcome, reason, 1500)


# calls, denials, control requests


def test_denials_are_united_by_call(read):
    listed = [
        {"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "rm"}},
        {"tool_name": "Edit", "tool_use_id": "c3", "tool_input": {}},
    ]
    capture = read(
        init(), answer("m1", call("c1"), call("c2", "Read"), call("c3", "Edit"), call("c4", "Read"), usage=used(1)),
        told(done("c1", "The user doesn't want to proceed with this tool use.", is_error=True),
             done("c2", [text("Permission to use Read has been denied.")], is_error=True),
             done("c3", "cannot", is_error=True),
             done("c4", "Permission to use Read has been denied.")),  # the text of a file, not of a refusal
        result({BIG: spent(1)}, permission_denials=listed),
        init(), result({BIG: spent(1)}, permission_denials=listed[:1]),
    )  # fmt: skip
    assert capture.denied() == {
        "c1": ({"user-rejected", "listed"}, {"result_text", "permission_denials"}),
        "c2": ({"rule-denied"}, {"result_text"}),  # never in the list
        "c3": ({"listed"}, {"permission_denials"}),
    }  # the lists alone: 2, or 3 entries; the texts alone: 2; both added: 5
    decided = {row["call_id"]: row["decided_by"] for row in capture.of(evidence="result_text")}
    assert decided == {"c1": "human", "c2": "policy"}
    assert [row["tool"] for row in capture.of("tool.decided")] == ["Bash", "Edit", "Bash"]
    assert {row["call_scope"] for row in capture.rows if row["call_id"]} == {f"claude:{GARDEN}"}


@pytest.mark.parametrize(
    ("key", "scope"),
    [("toolu_1", "claude"), ("srvtoolu_1", "claude"), ("c" * 20, "claude"), ("c" * 19, "claude:"),
     ("functions.Bash:0", "claude:"), ("call_1", "claude:")],
)  # fmt: skip
def test_a_short_call_id_is_of_its_session(key, scope, read):
    """Two sessions of one gateway: with one scope for all, the second session's call would be a copy of the first's."""

    def session(name):
        asked = {"subtype": "can_use_tool", "tool_name": "Edit", "tool_use_id": key}
        reply = {"subtype": "success", "request_id": "r", "response": {"behavior": "deny"}}
        return [
            init(name), answer("m1", call(key), text("a"), call(key), session=name),
            line("control_request", name, request_id="r", request=asked),
            line("control_response", name, response=reply),
            line("system", name, subtype="permission_denied", tool_use_id=key),
            told(done(key), done(key), session=name), answer("m2", call(key), session=name),
            told("[Request interrupted by user]", session=name),
            result(session=name, permission_denials=[{"tool_name": "Bash", "tool_use_id": key}]),
        ]  # fmt: skip

    capture = read(*session(GARDEN), *session(CLOCK))
    for name in (GARDEN, CLOCK):
        found = [row for row in capture.of(run=name) if row["call_id"] or row["call_scope"]]
        assert [row["kind"] for row in found] == [
            *["tool.requested"] * 2, "tool.decided", "approval", "tool.decided", *["tool.finished"] * 2,
            "tool.requested", "tool.finished", "tool.decided",
        ]  # fmt: skip
        assert {(row["call_id"], row["call_scope"]) for row in found} == {
            (key, scope if scope == "claude" else scope + name)
        }


def test_records_are_known_by_their_uuid(read):
    """A copy of a capture, or a longer one, has the same keys; a record without a uuid has none."""
    made = [
        init(uuid="u-1"), answer("m1", text("a"), call("c1"), usage=used(1), uuid="u-2"), told(done("c1"), uuid=""),
        told("b", uuid=7), {"type": "tea_break", "uuid": "u-3"}, b"plain", partial("ping") | {"uuid": "u-4"},
        result({BIG: spent(1)}, uuid="u-5"),
    ]  # fmt: skip
    capture = read(*made)
    assert {(row["line"], row["event_key"]) for row in capture.rows if row["kind"] != "run.started"} == {
        (1, key64(b"u-1")), (2, key64(b"u-2")), (3, None), (4, None), (5, key64(b"u-3")), (6, None),
        (7, key64(b"u-4")), (8, key64(b"u-5")),
    }  # fmt: skip
    assert [row["event_key"] for row in capture.of("run.started")] == [None]
    assert len([row for row in capture.rows if row["event_key"] == key64(b"u-2")]) == 2
    again = read(*made, init(uuid="u-6"))
    assert [row["event_key"] for row in again.rows][: len(capture.rows)] == [row["event_key"] for row in capture.rows]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_no_two_records_of_a_capture_are_one(path, read):
    keys = [row["event_key"] for row in read(path=path).rows if row["part"] == 0 and row["event_key"] is not None]
    assert len(keys) == len({*keys})


def test_a_control_reply_decides_the_call_that_was_asked_about(read):
    def asked(request, key, **values):
        said = {"subtype": "can_use_tool", "tool_name": "Edit", "input": {"a": 1}, "tool_use_id": key} | values
        return line("control_request", None, request_id=request, request=said)

    def reply(request, **values):
        said = {"subtype": "success", "request_id": request, "response": values}
        return line("control_response", None, response=said)

    capture = read(
        init(), answer("m1", call("c1", "Edit"), call("c2", "Edit"), call("c3", "Edit"), usage=used(1)),
        asked("r1", "c1"), asked("r2", "c2", decision_reason="outside the garden"), asked("r3", "c3"),
        reply("r2", behavior="deny", message="not there"), reply("r1", behavior="allow", updatedInput={"a": 1}),
        line("control_cancel_request", None, request_id="r3"), reply("r3", behavior="deny"),
        reply("r9", behavior="deny"), reply("r4"),
        line("control_request", None, request_id="r4", request={"subtype": "interrupt"}),
        reply("r8", behavior="deny", toolUseID="c3"), line("control_response", None, response={"subtype": "error"}),
    )  # fmt: skip
    assert [(row["call_id"], row["decision"], row["reason"]) for row in capture.of("tool.decided")] == [
        ("c1", "ask", None), ("c2", "ask", "outside the garden"), ("c3", "ask", None),
    ]  # fmt: skip
    answers = [(row["call_id"], row["decision"], row["tool"], row["message"]) for row in capture.of("approval")]
    assert answers == [
        ("c2", "deny", "Edit", "not there"), ("c1", "allow", "Edit", None), ("c3", "deny", None, None),
    ]  # fmt: skip
    assert capture.denied()["c2"] == ({"user-rejected"}, {"control_response"})
    assert {row["run_id"] for row in capture.rows} == {GARDEN}


def test_an_interruption_ends_the_calls_that_wait_and_refuses_nothing(read):
    capture = read(
        init(), answer("m1", call("c1"), call("c2"), call("c3"), usage=used(1)), told(done("c1")),
        told(done("c2", "[Request interrupted by user for tool use]", is_error=True)),
        told(text("[Request interrupted by user for tool use]")), result(subtype="error_during_execution"),
        told(text("[Request interrupted by user]")),
    )  # fmt: skip
    assert capture.interrupted() == ["c2", "c3"]
    assert (capture.denied(), capture.calls().keys() - capture.ended()) == ({}, set())
    assert capture.completeness() == "closed"  # the last row begins no turn


def test_blocks_of_unknown_kinds_are_opaque(read):
    capture = read(
        init(), answer("m1", {"type": "hologram"}, text("a"), {"type": ["x"]}, usage=used(1)),
        told({"type": "image", "source": {}}, {"type": "scent"}), told({"type": "redacted_thinking"}),
    )  # fmt: skip
    found = [(row["line"], row["kind"], row["event"]) for row in capture.rows if row["line"] > 1]
    assert found == [
        (2, "opaque", "assistant/hologram"), (2, "message", "assistant"), (2, "opaque", "assistant/"),
        (3, "message", "user"), (3, "opaque", "user/scent"), (4, "reasoning", "user"),
    ]  # fmt: skip


def test_results_know_their_tool_and_exit_code(read):
    capture = read(
        init(), answer("m1", call("c1"), {"type": "server_tool_use", "id": "s1", "name": "web_search"}, usage=used(1)),
        answer("m1", {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, usage=used(1)),
        told(done("c1", "Exit code 2\nno such tool", is_error=True)), told(done("c9")),
    )  # fmt: skip
    assert [(r["call_id"], r["tool"], r["is_error"], r["exit_code"]) for r in capture.of("tool.finished")] == [
        ("s1", "web_search", False, None), ("c1", "Bash", True, 2), ("c9", None, False, None),
    ]  # fmt: skip


def test_a_subagent_stands_under_its_call(read):
    capture = read(
        init(), answer("m1", call("c1", "Task"), usage=used(5)),
        answer("s1", text("looking"), call("c2", "Grep"), usage=used(7), parent="c1", model=SMALL),
        told(done("c2"), parent="c1"), told(done("c1")), result({BIG: spent(5), SMALL: spent(7)}, usage=used(5)),
    )  # fmt: skip
    under = {row["call_id"]: row["parent_call_id"] for row in capture.rows if row["call_id"]}
    assert under == {"c1": None, "c2": "c1"}
    assert capture.tokens() == [12, 0, 0, 0]  # result.usage leaves the subagent out: 5
    assert capture.tokens(model=SMALL)[0] == 7


# limits, retries, compactions, other rows


def limit(**values):
    return line("rate_limit_event", rate_limit_info=values)


def test_limits_are_fractions_with_resets_in_seconds(read):
    capture = read(
        init(), limit(status="allowed", rateLimitType="five_hour", resetsAt=1780560000),
        limit(status="rejected", rateLimitType="five_hour", resetsAt=1780560000, utilization=1, overageResetsAt=1790e6),
        limit(status="allowed", rateLimitType="seven_day_opus", resetsAt=1780560000000, utilization=0.5),
        limit(status="allowed", rateLimitType="five_hour", unifiedWindows={
            "five_hour": {"utilization": 0.25, "resetsAt": 1780578000}, "seven_day": {"utilization": 0.75}}),
        line("rate_limit_event", rate_limit="none"), limit(),
    )  # fmt: skip
    found = [
        (row["line"], row["limit_id"], row["limit_window_minutes"], row["limit_used"],
         row["limit_resets_at"] and row["limit_resets_at"].timestamp(), row["limit_status"])
        for row in capture.of("rate_limit")
    ]  # fmt: skip
    assert found == [
        (2, "five_hour", 300, None, 1780560000, "allowed"),  # missing is not 0
        (3, "five_hour", 300, 1.0, 1780560000, "rejected"),  # an integer is a fraction, too
        (4, "seven_day_opus", 10080, 0.5, None, "allowed"),  # no second of this age of the world
        (5, "five_hour", 300, 0.25, 1780578000, "allowed"),
        (5, "seven_day", 10080, 0.75, None, None),
        (6, None, None, None, None, None),
        (7, None, None, None, None, None),
    ]
    assert [row["line"] for row in capture.rows if "limits" in (row["speaks"] or "")] == [2]


def test_a_stream_without_limits_does_not_speak_of_them(read):
    capture = read(init(), answer("m1", text("a"), usage=used(1)), result({BIG: spent(1)}))
    assert not any("limits" in said for said in capture.said("speaks"))


def test_system_rows(read):
    capture = read(
        init(),
        line("system", subtype="api_retry", attempt=2, max_retries=10, retry_delay_ms=800, error_status=529),
        line("system", subtype="compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 9000}),
        line("system", subtype="permission_denied", tool_name="Bash", message="nobody is there"),
        line("system", subtype="permission_denied", tool_name="Bash", tool_use_id="c7", message="nobody is there"),
        line("system", subtype="hook_response", exit_code=2, outcome="error"), line("system", subtype="moonphase"),
        line("system", subtype="status", status="compacting"), line("system"), line("keep_alive", None),
        line("tool_progress", tool_use_id="c1"), line("weather", subtype="rain", message=["any", "shape"]),
    )  # fmt: skip
    found = {row["line"]: (row["kind"], row["event"]) for row in capture.rows if row["part"] == 0}
    assert found == {
        1: ("turn.started", "system/init"), 2: ("retry", "system/api_retry"),
        3: ("compaction", "system/compact_boundary"), 4: ("warning", "system/permission_denied"),
        5: ("tool.decided", "system/permission_denied"), 6: ("system", "system/hook_response"),
        7: ("opaque", "system/moonphase"), 8: ("system", "system/status"), 9: ("system", "system"),
        10: ("system", "keep_alive"), 11: ("system", "tool_progress"), 12: ("opaque", "weather/rain"),
    }  # fmt: skip
    (retry,), (compaction,) = capture.of("retry"), capture.of("compaction")
    assert (retry["status"], json.loads(retry["attributes"])) == ("529", {"attempt": 2, "max": 10, "retry_in_ms": 800})
    assert json.loads(compaction["attributes"]) == {"trigger": "auto", "pre_tokens": 9000}
    assert set(capture.denied()) == {"c7"}


def test_times_are_told_where_they_stand(read):
    capture = read(init(), told(text("a"), timestamp="2026-05-01T10:00:00.250Z"), told(text("b")), told(text("c"),
                   timestamp="soon"))  # fmt: skip
    assert [(row["line"], row["ts"].isoformat(), row["ts_origin"]) for row in capture.rows if row["ts"]] == [
        (2, "2026-05-01T10:00:00.250000+00:00", "vendor")
    ]


# noise and damage


def test_plain_text_and_objects_of_others_are_kept_as_text(read):
    noise = [b"$ make", b"{not a record", b"[1, 2]", b'{"level": "info"}', b'{"type": 7}', b"ca\xffe", b"null", b"{}"]
    capture = read(init(), *noise, answer("m1", text("a"), usage=used(1)))
    found = [(row["line"], row["kind"], row["run_id"]) for row in capture.of(event="plain_text")]
    assert found == [(n, "system", GARDEN) for n in range(2, 10)]
    assert [row["text_chars"] for row in capture.of(event="plain_text")][:2] == [6, 13]
    assert capture.reading.refusals == []


def test_damaged_records_are_refused_with_their_run_and_nothing_else_is_lost(read):
    capture = read(
        init(), b'{"type":"assistant","message":{"id":"m1","usage":{"input_tok',
        line("user", message={"0": "h", "1": "i"}), line("assistant", message="text"),
        answer("m2", text("a"), usage=used(-3)), line("stream_event", event=None),
        b'{"type":"system","subtype":"status","x":"\xff"}', answer("m3", text("b"), usage=used(2, out=1)),
    )  # fmt: skip
    found = [(row["line"], row["reason"], row["run_id"]) for row in capture.reading.refusals]
    assert found == [
        (2, "not_json", GARDEN), (3, "malformed", GARDEN), (4, "malformed", GARDEN),
        (5, "number_out_of_range", GARDEN), (6, "malformed", GARDEN), (7, "invalid_utf8", GARDEN),
    ]  # fmt: skip
    assert capture.tokens() == [2, 0, 0, 1]
    assert [row["line"] for row in capture.rows if row["end_rule"]] == [1]


@pytest.mark.parametrize(("figure", "is_read"), [(10**15, True), (10**15 + 1, False), (2**63 - 1, False)])
def test_a_counter_beyond_all_use_is_refused(figure, is_read, read):
    capture = read(
        init(), answer("m1", text("a"), usage=used(figure)), started("m2", used(1, figure)),
        partial("message_delta", usage={"output_tokens": figure}), result({BIG: spent(out=figure)}),
    )  # fmt: skip
    found = [(row["line"], row["reason"], row["run_id"]) for row in capture.reading.refusals]
    assert found == ([] if is_read else [(n, "number_out_of_range", GARDEN) for n in range(2, 6)])


def test_a_refused_first_line_does_not_take_the_runs_statements_with_it(read):
    capture = read(line("user", message={"0": "h"}), init())
    assert [row["line"] for row in capture.rows if row["end_rule"]] == [2]


def test_records_that_share_a_line_are_both_read(reader, tmp_path):
    first, second = (json.dumps(answer(key, text(key), usage=used(3, out=1))).encode() for key in ("m1", "m2"))
    path = tmp_path / "glued.jsonl"
    path.write_bytes(encode([
        init(), first + second, b"40 % done" + first.replace(b"m1", b"m3"), b'{"type":"assistant","mess' + second,
        second + b" bye",
    ]))  # fmt: skip
    capture = Capture(reader.read(path)[1])
    assert set(capture.answers()) == {"m1", "m2", "m3"}
    assert [row["line"] for row in capture.of(event="plain_text")] == [3, 5]
    assert [(row["line"], row["reason"]) for row in capture.reading.refusals] == [(4, "torn_record")]


def test_records_with_odd_numbers_or_cut_texts_are_mended(read):
    capture = read(
        init(), json.dumps(answer("m1", text("a"), usage=used(2, out=1))).replace(": 2,", ": 2.0,").encode(),
        json.dumps(answer("m2", text("clock?"), usage=used(5, out=4))).replace("?", "\\ud83d").encode(),
    )  # fmt: skip
    assert capture.tokens() == [7, 0, 0, 5]
    assert capture.reading.refusals == []


def test_secrets_in_any_kind_of_line_are_taken_out(read, tmp_path, reader):
    secret = "sk-ant-api03-" + "Ab3" * 20
    lines = [
        init(), f"token {secret}".encode(), line("weather", note=secret), {"note": secret}, told(text(secret)),
        f'{{"type":"user","message":"{secret}'.encode(),
    ]  # fmt: skip
    path = tmp_path / "secret.log"
    path.write_bytes(encode(lines))
    _, reading = reader.read(path)
    capture = Capture(reading)
    assert secret not in str(reading.events) + str(reading.refusals)
    assert [row["event"] for row in capture.rows if row["part"] == 0][1:] == [
        "plain_text", "weather", "plain_text", "user"
    ]  # fmt: skip
    assert reading.reasons() == [(6, "not_json")]
    assert sum(row["redactions"] for row in [*reading.events, *reading.refusals]) == 5


# what is and is not this wire

CURSOR = [
    {"type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/srv", "session_id": CLOCK, "model": "Auto",
     "permissionMode": "default"},
    {"type": "user", "message": {"role": "user", "content": [text("hi")]}, "session_id": CLOCK},
    {"type": "thinking", "subtype": "delta", "text": "…", "session_id": CLOCK, "timestamp_ms": 1},
    {"type": "assistant", "message": {"role": "assistant", "content": [text("a")]}, "session_id": CLOCK,
     "model_call_id": "x", "timestamp_ms": 2},
    {"type": "tool_call", "subtype": "started", "call_id": "t", "tool_call": {}, "session_id": CLOCK},
    {"type": "result", "subtype": "success", "is_error": False, "session_id": CLOCK, "request_id": "r",
     "usage": {"inputTokens": 4, "outputTokens": 5}},
]  # fmt: skip
GEMINI = [
    {"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": CLOCK, "model": "gemini-3-pro"},
    {"type": "message", "role": "user", "content": "hi"},
    {"type": "tool_use", "tool_name": "read_file", "tool_id": "t1", "parameters": {}},
    {"type": "tool_result", "tool_id": "t1", "status": "success"},
    {"type": "result", "status": "success", "stats": {"total_tokens": 9, "input_tokens": 4, "output_tokens": 5}},
]  # fmt: skip
QWEN = [
    init(CLOCK) | {"qwen_code_version": "0.6.0", "permission_mode": "yolo"},
    {"type": "assistant", "message": {"role": "model", "parts": []}, "usageMetadata": {}, "session_id": CLOCK},
]  # fmt: skip
DROID = [
    {"type": "system", "subtype": "init", "cwd": "/srv", "session_id": CLOCK, "tools": ["Read"], "model": "claude-x"},
    {"type": "message", "role": "assistant", "id": "m", "text": "a", "session_id": CLOCK},
    {"type": "completion", "finalText": "a", "numTurns": 1, "session_id": CLOCK},
]  # fmt: skip
SESSION = [
    {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": CLOCK, "message": {"role": "user", "content": "hi"}},
    {"type": "system", "subtype": "compact_boundary", "sessionId": CLOCK, "uuid": "v"},
]  # fmt: skip
EXEC = [
    {"type": "thread.started", "thread_id": CLOCK},
    {"type": "turn.started"},
    {"type": "turn.completed", "usage": {}},
]
ROLLOUT = [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": CLOCK}}]


@pytest.mark.parametrize(
    "rows", [CURSOR, GEMINI, QWEN, DROID, SESSION, EXEC, ROLLOUT, [{"kind": "system"}], [{"a": 1}]]
)
def test_look_alikes_are_not_taken(rows):
    assert WIRE.sniff(Sample(rows, 0)) is None
    for at in range(1, len(rows)):
        assert WIRE.sniff(Sample(rows[at:], 3)) is None


@pytest.mark.parametrize(
    "rows",
    [
        [line("system", subtype="hook_started", hook_name="x")],
        [init()],
        [init() | {"claude_code_version": None, "permissionMode": "plan"}],
        [answer("m1", text("a"), usage=used(1))],
        [told(text("a"))],
        [started("m1", used(1))],
        [result({BIG: spent(1)}), {"type": "weather"}],
        [limit(status="allowed")],
        [{"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}, {"kind": "debug"}],
    ],
)
def test_any_piece_of_a_capture_is_recognised(rows):
    assert WIRE.sniff(Sample(rows, 5)) == "stream"


def test_files_of_other_wires_are_not_taken():
    others = [path for path in NATIVE.rglob("*.jsonl") if not path.parent.name.startswith("ss-")]
    harnesses = ("metaharness", "platonic-core", "harness-lab")
    samples = [path for name in harnesses for path in (FIXTURES / "samples" / name).iterdir()]
    others += [path for path in samples if "agent-stream" not in path.name]
    for path in others:
        objects = []
        for one in path.read_bytes().splitlines()[:8]:
            try:
                objects.append(json.loads(one))
            except ValueError:
                continue
        assert WIRE.sniff(Sample([o for o in objects if isinstance(o, dict)], 0)) is None, path.name


def test_the_registry_has_the_wire():
    assert wires.BY_NAME["claude-stream"].shapes == ("stream",)


# properties


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_capture_that_grows_says_what_the_whole_says(path, tmp_path, reader):
    data = path.read_bytes()
    target = tmp_path / path.name
    target.write_bytes(data)
    _, whole = reader.read(target)
    ends = [at + 1 for at, octet in enumerate(data) if octet == 10][:-1]
    leading = first_named(whole)
    dice = random.Random(5)
    some = [[end] for end in dice.sample(ends, 8)] + [sorted(dice.sample(range(1, len(data)), 5)) for _ in range(3)]
    for cuts in [ends, *some]:  # line by line, then once or at any bytes
        assert comparable(reader.grow(target, data, cuts), leading) == comparable(whole, leading), cuts
        reader.clear()


def first_named(reading):
    """The line of the first row that a record wrote; text before it has no run until then."""
    return min(row["line"] for row in reading.events if row["event"] != "plain_text")


def comparable(reading, leading):
    """Everything but where text before the first record stands."""
    rows = [row for row in reading.events if row["line"] >= leading]
    kept = [{name: value for name, value in row.items() if name not in ("speaks", "end_rule")} for row in rows]
    state = json.loads(msgspec.json.encode(reading.source["resume_state"]["wire"]))
    state["runs"].pop("", None)
    said = [(row["run_id"], row["speaks"], row["end_rule"]) for row in rows if row["speaks"]]
    return kept if leading > 1 else (kept, said), reading.refusals, state


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_key_order_and_spaces_change_nothing(seed, tmp_path_factory):
    dice = random.Random(seed)
    path = dice.choice(CAPTURES)
    folder = tmp_path_factory.mktemp("shuffled")
    data, made = path.read_bytes(), []
    for one in data.split(b"\n"):
        try:
            made.append(json.dumps(shuffled(json.loads(one), dice), indent=None).encode())
        except ValueError:
            made.append(one)
    found = []
    for content in (data, b"\n".join(made)):
        (folder / "capture").write_bytes(content)
        _, reading = Reader(folder / "lake").read(folder / "capture")
        found.append([
            {name: value for name, value in row.items() if name not in ("payload", "byte_offset", "source_id")}
            for row in reading.events
        ])  # fmt: skip
    assert in_order(found[0]) == in_order(found[1])


def in_order(rows):
    """Models of a result and windows of a limit come in the order of the keys, which says nothing."""
    return sorted(map(str, ({**row, "part": row["part"] > 0} for row in rows)))


def shuffled(value, dice):
    if isinstance(value, dict):
        items = [(key, shuffled(one, dice)) for key, one in value.items()]
        dice.shuffle(items)
        return dict(items)
    return [shuffled(one, dice) for one in value] if isinstance(value, list) else value


ODD = (None, 1, -1, 1.5, 2**70, "x", "", [], [1], {}, {"a": 1}, True, [{"type": "tool_result"}], [None])


def bent(value, dice):
    """The same with some values of another type or missing."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if dice.random() > 0.02}
        return {key: dice.choice(ODD) if dice.random() < 0.05 else bent(one, dice) for key, one in kept.items()}
    return [bent(one, dice) for one in value] if isinstance(value, list) else value


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_any_value_may_stand_anywhere(seed, tmp_path_factory):
    dice = random.Random(seed)
    path, made = dice.choice(CAPTURES), []
    for one in path.read_bytes().split(b"\n"):
        try:
            made.append(json.dumps(bent(json.loads(one), dice)).encode())
        except ValueError:
            made.append(one)
    folder = tmp_path_factory.mktemp("bent")
    (folder / "capture").write_bytes(b"\n".join(made))
    _, reading = Reader(folder / "lake", wire="claude-stream").read(folder / "capture")
    check_conservation(reading)
    Capture(reading)


COUNTS = st.integers(0, 1000)


@given(st.lists(st.lists(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_turns_of_any_processes_add_up(processes):
    """Whatever the turns used: each process states running totals, and the rows give the sum of all processes, unless
    a later process begins above the earlier one's totals, which nothing in a capture tells from a turn.
    """
    lines, whole, before = [], [0, 0, 0, 0], None
    for turns in processes:
        total = [0, 0, 0, 0]
        for turn in turns:
            total = [a + b for a, b in zip(total, turn, strict=True)]
            lines += [init(), result({BIG: spent(*total)})]
            is_new = before is None or any(now < was for now, was in zip(total, before, strict=True))
            base = [0, 0, 0, 0] if is_new else before
            whole = [w + now - was for w, now, was in zip(whole, total, base, strict=True)]
            before = total
    ctx = Context("s", "stream", WIRE.new_state("stream"))
    objs = WIRE.decoder("stream").decode_lines(encode(lines))
    cut = len(objs) // 2
    parts = [values for half in (objs[:cut], objs[cut:]) for _, values in WIRE.read(half, ctx).parts]
    rows = [values for values in parts if values.get("usage_scope") == "turn_total"]
    assert [sum(row[name] for row in rows) for name in TOKENS] == whole
    assert all(row[name] >= 0 for row in rows for name in TOKENS)
