"""The platonic-core wire: schema 0.3.1, the whole state machine, refusals by name, and reading on from an offset."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from analytics import refusals, schema
from analytics.wires.base import Context, Refusal, Sample
from analytics.wires.platonic_core import WIRE
from analytics.wires.platonic_core_state import State, UsedIds

FIXTURES = Path(__file__).parent / "fixtures" / "platonic-core"
FINISHED, LEDGER, CANCELED = (
    "recorded-events-finished.jsonl",
    "ledger-v2-uncommitted-tail.jsonl",
    "canceled-then-refused-lines.jsonl",
)
SHAPES = {FINISHED: "record", LEDGER: "ledger", CANCELED: "record"}


class Read:
    """Lines read the way the decoder of blocks does it: what fits goes to `read`, the rest is explained."""

    def __init__(self, lines, shape, state=None):
        ctx = Context("s", shape, state or WIRE.new_state(shape))
        objs, where, self.refused = [], [], {}
        for i, line in enumerate(lines):
            try:
                objs.append(WIRE.decoder(shape).decode(line))
                where.append(i)
            except msgspec.ValidationError as error:
                self.refused[i] = WIRE.explain(json.loads(line), str(error), ctx)
        self.spans = WIRE.read(objs, ctx)
        self.state: State = ctx.state
        self.refused |= {where[i]: refusal for i, refusal in self.spans.refused.items()}
        self.rows = {}
        for i, place in enumerate(where):
            if i not in self.spans.refused:
                row = {name: values[i] for name, values in self.spans.columns.items() if values[i] is not None}
                self.rows[place] = row | self.spans.constants
        assert {refusal.reason for refusal in self.refused.values()} <= refusals.NAMES

    def all(self, column):
        return [row[column] for row in self.rows.values() if column in row]

    def kinds(self):
        return Counter(self.all("kind"))


def committed(name):
    data = (FIXTURES / name).read_bytes()
    end = data.rfind(b"\n") + 1
    return data[:end].splitlines(), data[end:]


def sample(name):
    return Read(committed(name)[0], SHAPES[name])


INPUT = {"path": "a", "n": 1}
CONTEXT = {"token_budget": 9, "fragments": []}
SAID = {"role": "assistant", "content": ""}
CALL = {"id": "c1", "tool": "file.read", "effect": "read_only", "input": INPUT}
RESULT = {"call_id": "c1", "summary": "", "data": None, "artifacts": [], "visibility": "both"}
DROPPED = {"estimated_tokens_before": 9, "estimated_tokens_after": 3, "dropped_turn_start": 0}

VOICE = {"v": 1, "sequence": 0, "event": {"event": "voice_spoken", "run_id": "r", "turn_id": "t1", "ttfa_ms": 1}}
PROPOSAL = {"tool": "file.read", "input": INPUT}
ASK = {"decision": "require_approval", "reason": ""}
TURN = {"turn_id": "t1"}
ASKED = TURN | {"step": 0}
STEPS = (
    ("not_started", None, {}),
    ("ready_for_context", "run_started", {"agent_id": "plume"}),
    ("ready_to_request_model", "context_built", TURN | {"context": CONTEXT}),
    ("awaiting_model_response", "model_requested", ASKED | {"model": "m"}),
    ("awaiting_tool_call", "model_responded", ASKED | {"output": SAID, "proposed_calls": [PROPOSAL]}),
    ("awaiting_policy", "tool_call_proposed", TURN | {"call": CALL}),
    ("awaiting_approval", "policy_evaluated", {"call_id": "c1", "decision": ASK}),
    ("ready_to_execute", "approval_granted", {"call_id": "c1", "actor_id": "human:desk"}),
    ("tool_running", "tool_started", {"call_id": "c1"}),
    ("turn_concluded", "tool_finished", {"result": RESULT}),
)


def record(seq, name, *, at=1000, **fields):
    return {"seq": seq, "occurred_at_ms": at, "event": {"event": name, "run_id": "r", **fields}}


def run_to(phase):
    """The records of a run up to a phase."""
    made: list[dict] = []
    for name, event, fields in STEPS:
        if event:
            made.append(record(len(made), event, **fields))
        if name == phase:
            return made
    raise AssertionError(phase)


def encoded(objs):
    return [json.dumps(obj).encode() for obj in objs]


def refusal_after(phase, obj, shape="record"):
    """The refusal of one line after a run up to a phase; the state must stay, and the run must go on."""
    before = run_to(phase)
    if shape == "ledger":
        before = [{"v": 2, "record": r} for r in before]
    elif shape == "event":
        before = [r["event"] for r in before]
    alone = Read(encoded(before), shape)
    assert not alone.refused
    read = Read(encoded([*before, obj]), shape)
    assert read.state == alone.state
    return read.refused[len(before)]


# the samples


def test_bad_lines_after_a_canceled_run_are_refused_by_name():
    read = sample(CANCELED)
    assert {i + 1: refusal.reason for i, refusal in sorted(read.refused.items())} == {
        8: "illegal_transition",
        9: "sequence_mismatch",
        10: "unknown_event",
        11: "unknown_field",
        12: "foreign_run_id",
        13: "unknown_field",
        14: "blank_id",
        15: "not_a_record",
    }
    assert read.refused[8].detail == "expected 7, found 9"
    assert read.refused[9] == Refusal("unknown_event", "run_paused", "run_0003", 7)
    assert read.refused[11].run_id == "run_9999"
    assert (read.refused[13].run_id, read.refused[13].seq) == (None, 7)
    assert (read.refused[14].run_id, read.refused[14].seq) == ("run_0003", None)


def test_a_canceled_run_is_no_success_and_has_no_denial():
    read = sample(CANCELED)
    assert len(read.rows) == 7
    assert (sum(read.all("input_tokens")), sum(read.all("output_tokens"))) == (90, 12)
    assert read.all("outcome") == ["canceled"]  # naive: failed
    assert read.all("decision") == ["ask"]  # naive: 1 denial, from the approval_denied after the end
    assert read.kinds()["tool.requested"] == 1
    assert read.kinds()["tool.started"] == 0
    assert (read.state.phase, read.state.next_seq) == ("failed", 7)
    assert len(committed(CANCELED)[1]) == 66


def test_finished_run_of_bare_records():
    read = sample(FINISHED)
    kinds = read.kinds()
    assert not read.refused
    assert (read.state.phase, read.state.next_seq, read.all("outcome")) == ("finished", 38, ["finished"])
    assert (sum(read.all("input_tokens")), sum(read.all("output_tokens"))) == (1267, 113)
    assert (kinds["usage"], len(read.all("input_tokens"))) == (6, 5)  # one response without usage, one known zero
    assert (sum(read.all("requests")), kinds["retry"], kinds["context"]) == (7, 1, 6)
    usage = [json.loads(row["attributes"]) for row in read.rows.values() if row["kind"] == "usage"]
    assert sum(said["proposed_calls"] for said in usage) == 6
    assert kinds["tool.requested"] == 4
    denied = {
        row["call_id"]: (row["evidence"], row["tool"]) for row in read.rows.values() if row.get("decision") == "deny"
    }
    assert denied == {"c2": ("policy", "secret.read"), "c3": ("approval", "file.delete")}
    assert read.all("status").count("tool_proposals_rejected") == 1
    granted = [row for row in read.rows.values() if row["kind"] == "approval" and row["decision"] == "allow"]
    assert [row["decided_by"] for row in granted] == ["human:mara"]
    assert kinds["tool.started"] == kinds["tool.finished"] == 2
    assert read.all("is_error") == [False, True]
    models = {row.get("model") for row in read.rows.values() if row["kind"] == "usage"}
    assert models - {None} == {"vendor/model-5-2026-08-01", "vendor/small-2"}


def test_ledger_lines_with_voice_events_and_an_uncommitted_tail():
    lines, tail = committed(LEDGER)
    read = sample(LEDGER)
    assert not read.refused
    assert len(tail) == 219
    assert json.loads(tail)["record"]["seq"] == 15  # whole, and still not data
    assert WIRE.needs_newline("ledger")
    assert not WIRE.is_final_without_newline("ledger")
    assert (len(lines), read.state.phase, read.state.next_seq) == (16, "tool_running", 15)
    voice = read.rows[8]
    assert (voice["kind"], voice["event"], voice["run_id"]) == ("system", "voice_events", "run_0002")
    assert not {"seq", "ts", "ts_origin"} & voice.keys()
    assert (sum(read.all("input_tokens")), sum(read.all("output_tokens")), read.kinds()["usage"]) == (120, 15, 2)
    assert {row["call_id"] for row in read.rows.values() if row["kind"] == "tool.started"} == {"c1", "c2"}
    assert [row["call_id"] for row in read.rows.values() if row["kind"] == "tool.finished"] == ["c1"]
    start = read.rows[0]
    assert json.loads(start["attributes"]) == {"profile_id": "profile_main", "profile_revision": 4}
    assert "agent_id" not in start


@pytest.mark.parametrize("name", SHAPES)
def test_reading_on_from_any_line_equals_reading_whole(name):
    lines, _ = committed(name)
    whole = sample(name)
    for cut in range(len(lines) + 1):
        first = Read(lines[:cut], SHAPES[name])
        state = WIRE.load_state(SHAPES[name], msgspec.json.encode(first.state).decode())
        rest = Read(lines[cut:], SHAPES[name], state)
        assert first.rows | {i + cut: row for i, row in rest.rows.items()} == whole.rows
        assert first.refused | {i + cut: refusal for i, refusal in rest.refused.items()} == whole.refused
        assert rest.state == Read(lines, SHAPES[name]).state


@pytest.mark.parametrize("name", SHAPES)
def test_rows_keep_to_the_schema(name):
    read = sample(name)
    assert set(read.spans.columns) | set(read.spans.constants) <= {column.name for column in schema.EVENT}
    assert set(read.kinds()) <= set(schema.KINDS)
    firsts = [i for i, row in read.rows.items() if "end_rule" in row]
    assert firsts == [0]
    assert read.rows[0]["end_rule"] in schema.END_RULES
    assert set(read.rows[0]["speaks"].split()) == set(schema.TOPICS) - {"cost", "limits", "offered", "withheld"}
    for row in read.rows.values():
        assert ("tool" in row) == ("call_id" in row) == ("call_occurrence" in row)
        assert row["run_id_origin"] == "wire"


def test_times_are_the_hosts():
    row = sample(FINISHED).rows[1]
    assert (row["ts"], row["ts_origin"]) == (1790000000800 * 1000, "host")


def test_context_by_lane():
    said = json.loads(sample(FINISHED).rows[1]["attributes"])
    lanes = {"system_contract": 20, "current_task": 9}
    assert said == {"token_budget": 4000, "estimated_tokens": lanes, "fragments": 2}


# the rules, one line each

BROKEN = json.loads((FIXTURES / "rules" / "broken.json").read_text())


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case['reason']}: {case['case']} ({case['shape']})")
def test_a_line_that_breaks_a_rule_is_refused_by_name_and_changes_nothing(case):
    refusal = refusal_after(case["after"], case["line"], case["shape"])
    assert refusal.reason == case["reason"]
    assert refusal.run_id in {"r", "x", None}


def test_every_rule_of_this_wire_is_broken_once():
    names = [reason.name for reason in refusals.REASONS]
    own = set(names[names.index("unknown_field") : names.index("empty_rejection_reason") + 1])
    elsewhere = {"call_reused"}
    assert own - elsewhere <= {case["reason"] for case in BROKEN}


def test_a_call_id_is_used_once_in_a_run():
    more = [
        record(9, "context_built", turn_id="t2", context=CONTEXT),
        record(10, "model_requested", turn_id="t2", step=1, model="m"),
        record(11, "model_responded", turn_id="t2", step=1, output=SAID, proposed_calls=[PROPOSAL]),
        record(12, "tool_call_proposed", turn_id="t2", call=CALL),
        record(12, "tool_call_proposed", turn_id="t2", call=CALL | {"id": "c2"}),
    ]
    read = Read(encoded([*run_to("turn_concluded"), *more]), "record")
    assert {i: refusal.reason for i, refusal in read.refused.items()} == {12: "call_reused"}
    assert read.state.call_id == "c2"


def test_after_a_compaction_only_its_context_or_a_failure_is_legal():
    start = [
        *run_to("turn_concluded"),
        record(9, "context_compacted", turn_id="t2", **DROPPED, dropped_turn_end_exclusive=1),
    ]
    for event, reason in (
        (record(10, "run_finished"), "illegal_transition"),
        (record(10, "context_compacted", turn_id="t3", **DROPPED, dropped_turn_end_exclusive=1), "illegal_transition"),
        (record(10, "context_built", turn_id="t3", context=CONTEXT), "turn_mismatch"),
    ):
        assert Read(encoded([*start, event]), "record").refused[10].reason == reason
    for event in (record(10, "context_built", turn_id="t2", context=CONTEXT), record(10, "run_failed", reason="")):
        assert not Read(encoded([*start, event]), "record").refused


def test_a_run_cannot_finish_right_after_a_tool_failed_but_goes_on():
    failed = [*run_to("tool_running"), record(8, "tool_failed", call_id="c1", reason="no such file")]
    read = Read(
        encoded([*failed, record(9, "run_finished"), record(9, "context_built", turn_id="t2", context=CONTEXT)]),
        "record",
    )
    assert {i: refusal.detail for i, refusal in read.refused.items()} == {9: "from tool_failed on run_finished"}
    assert read.state.phase == "ready_to_request_model"


def test_a_failed_request_is_repeated_with_the_same_turn_and_step():
    asked = {"turn_id": "t1", "step": 0}
    more = [record(3, "model_failed", **asked, reason="HTTP 429"), record(4, "model_requested", **asked, model="m")]
    read = Read(encoded([*run_to("awaiting_model_response"), *more]), "record")
    assert not read.refused
    assert (read.rows[3]["kind"], read.rows[3]["message"], sum(read.all("requests"))) == ("retry", "HTTP 429", 2)


def test_a_file_whose_beginning_is_cut_is_refused_line_by_line():
    lines, _ = committed(FINISHED)
    read = Read(lines[5:], "record")
    assert {refusal.reason for refusal in read.refused.values()} == {"sequence_mismatch"}
    assert len(read.refused) == 33


@pytest.mark.parametrize("spelling", ['{"n":1,"path":"a"}', ' { "path" : "\\u0061", "n" : 1 } '])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_call_is_compared_by_value(spelling, is_resumed):
    lines = encoded(run_to("awaiting_tool_call"))
    call = encoded([record(4, "tool_call_proposed", turn_id="t1", call=CALL | {"input": "INPUT"})])
    call[0] = call[0].replace(b'"INPUT"', spelling.encode())
    state = Read(lines, "record").state
    if is_resumed:
        text = msgspec.json.encode(state).decode()
        assert "path" not in text  # the state goes into the ledger: it holds digests, not inputs
        read = Read(call, "record", WIRE.load_state("record", text))
    else:
        read = Read(lines + call, "record")
    assert not read.refused
    assert read.state.phase == "awaiting_policy"


def test_a_policy_that_allows_may_say_more():
    obj = record(5, "policy_evaluated", call_id="c1", decision={"decision": "allow", "reason": "x"})
    assert not Read(encoded([*run_to("awaiting_policy"), obj]), "record").refused


def test_bare_events_have_no_place_and_no_time():
    read = Read(encoded([r["event"] for r in run_to("turn_concluded")]), "event")
    assert not read.refused
    assert not read.all("seq")
    assert not read.all("ts")
    assert (
        refusal_after("awaiting_policy", {"event": "run_finished", "run_id": "r"}, "event").reason
        == "illegal_transition"
    )


def test_versions_1_and_2_may_stand_in_one_file():
    lines = [{"v": 1 + i % 2, "record": r} for i, r in enumerate(run_to("turn_concluded"))]
    assert not Read(encoded(lines), "ledger").refused


def test_the_first_row_speaks_for_the_run_even_if_it_is_no_start():
    lines = encoded([{"voice_events": [VOICE]}, *({"v": 2, "record": r} for r in run_to("ready_for_context"))])
    read = Read(lines, "ledger")
    assert [row.get("end_rule") for row in read.rows.values()] == ["replayed", None]


def test_a_time_beyond_the_lakes_microseconds_is_unknown():
    read = Read(encoded([record(0, "run_started", agent_id="a", at=2**60)]), "record")
    assert not read.all("ts")


# sniffing


@pytest.mark.parametrize("name", SHAPES)
def test_samples_are_known_by_content(name):
    objs = [json.loads(line) for line in committed(name)[0]]
    assert WIRE.sniff(Sample(objs, 0)) == SHAPES[name]
    assert WIRE.sniff(Sample([{"torn": 1}, *objs], 3)) == SHAPES[name]


@pytest.mark.parametrize(
    ("obj", "shape"),
    [
        ({"v": 3, "record": record(0, "run_paused")}, "ledger"),
        ({"voice_events": [VOICE]}, "ledger"),
        (record(0, "run_paused"), "record"),
        ({"event": "run_started", "run_id": "r"}, "event"),
        ({"event": "run_paused", "run_id": "r"}, None),
        ({"format": "metaharness.event/1", "seq": 1, "run": "r", "event": "text", "text": ""}, None),
        ({"run_id": "r", "sequence": 0, "kind": "run_started"}, None),
        ({"v": 1, "event": {"event": "voice_spoken"}}, None),
    ],
)
def test_what_is_sniffed(obj, shape):
    assert WIRE.sniff(Sample([obj], 0)) == shape


# the ids used

IDS = st.one_of(
    st.integers(0, 40).map("t{}".format),
    st.integers(0, 12).map("{:03}".format),
    st.sampled_from(["call", "t١", "t" * 9 + "1", "1" * 13, "0", "00", "x-9"]),
)


@given(st.lists(IDS, max_size=60))
def test_used_ids_are_a_set_that_survives_json(names):
    used, plain = UsedIds(), set()
    for name in names:
        assert used.take(name, only_look=True) == (name not in plain)
        assert used.take(name) == (name not in plain)
        plain.add(name)
        used = msgspec.json.decode(msgspec.json.encode(used), type=UsedIds)


def test_counted_ids_stay_small():
    used = UsedIds()
    assert all(used.take(f"t{n}") for n in range(1, 100_001))
    assert len(msgspec.json.encode(used)) < 60
