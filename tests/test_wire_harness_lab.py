"""The Harness Lab wire on its own: lines in, event rows out. Each figure names the naive answer it avoids."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from analytics.refusals import NAMES
from analytics.schema import EVENT, KINDS, USAGE_SCOPES
from analytics.wires.base import Context, DocumentError, Refusal, Sample
from analytics.wires.harness_lab import WIRE

FIXTURES = Path(__file__).parent / "fixtures" / "harness-lab"
CLAUDE, CODEX, GENERIC = "run_0n1aclaude", "run_0n1bcodex", "run_0n1cgeneric"
FIGURES = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


def decode(line: bytes, ctx: Context):
    """One line as the block decoder treats it: an object for `read`, or a Refusal."""
    try:
        line.decode()
        return WIRE.decoder(ctx.shape).decode(line)
    except UnicodeDecodeError:
        refusal = Refusal("invalid_utf8")
    except msgspec.DecodeError as error:
        try:
            obj = json.loads(line)
        except ValueError:
            refusal = Refusal("not_json")
        else:
            good = isinstance(obj, dict)
            refusal = WIRE.explain(obj, str(error), ctx) if good else Refusal("not_an_object")
    accepted = WIRE.accept_text(line, refusal, ctx)
    return refusal if accepted is None else accepted


def rows_of(objs, numbers, ctx):
    """The rows of decoded lines as dicts without NULLs, and the refusals by line."""
    read = WIRE.read(objs, ctx)
    said = {
        name: column.to_pylist() if isinstance(column, pa.Array) else column for name, column in read.columns.items()
    }
    assert all(len(column) == read.n for column in said.values())
    made = []
    for i, number in enumerate(numbers):
        if i in read.refused:
            continue
        row = {name: column[i] for name, column in said.items() if column[i] is not None} | read.constants
        made.append(row | {"line": number, "part": 0})
        inherited = {name: row.get(name) for name in ("run_id", "run_id_origin", "seq", "ts", "ts_origin", "event")}
        parts = [values for at, values in read.parts if at == i]
        made += [inherited | values | {"line": number, "part": n} for n, values in enumerate(parts, 1)]
    return made, {numbers[i]: refusal for i, refusal in read.refused.items()}


class Read:
    """A source read in one go, or (step=1) line by line with the state through JSON each time."""

    def __init__(self, lines, shape, *, step=None):
        ctx = Context("src", shape, WIRE.new_state(shape))
        self.rows, self.refused = [], {}
        objs, numbers = [], []
        for number, line in enumerate(lines, 1):
            obj = decode(line, ctx)
            if isinstance(obj, Refusal):
                self.refused[number] = obj
                continue
            objs.append(obj)
            numbers.append(number)
        for at in range(0, len(objs), step or len(objs) or 1):
            chunk = slice(at, at + (step or len(objs)))
            rows, refused = rows_of(objs[chunk], numbers[chunk], ctx)
            self.rows += rows
            self.refused |= refused
            if step:
                ctx.state = WIRE.load_state(shape, msgspec.json.encode(ctx.state).decode())
        self.state = ctx.state
        names = {column.name for column in EVENT}
        assert {name for row in self.rows for name in row} <= names
        assert {row["kind"] for row in self.rows} <= set(KINDS)
        assert {row["usage_scope"] for row in self.rows if "usage_scope" in row} <= set(USAGE_SCOPES)
        assert {refusal.reason for refusal in self.refused.values()} <= NAMES

    def of(self, run_id, kind=None):
        return [row for row in self.rows if row["run_id"] == run_id and kind in (None, row["kind"])]

    def tokens(self, run_id, *scopes):
        kept = [row for row in self.of(run_id, "usage") if row["usage_scope"] in scopes]
        return [sum(row[name] for row in kept if name in row) for name in FIGURES]

    def calls(self, run_id):
        return {(row.get("call_id"), row.get("call_occurrence")): row for row in self.of(run_id, "tool.started")}

    def unfinished(self, run_id):
        """Interrupted calls and calls still open, in the order of their starts; a call without an id is neither."""
        ends = {(row.get("call_id"), row.get("call_occurrence")): row for row in self.of(run_id, "tool.finished")}
        return [
            call
            for call in self.calls(run_id)
            if call[0] is not None and (call not in ends or ends[call].get("status") == "interrupted")
        ]

    def denied(self, run_id):
        deny = [row for row in self.of(run_id) if row.get("decision") == "deny"]
        linked = {(row["call_id"], row["call_occurrence"]): row["evidence"] for row in deny if "call_id" in row}
        return linked, [row for row in deny if "call_id" not in row]


def lines_of(name):
    """Whole lines; what stands behind the last newline is pending."""
    return (FIXTURES / name).read_bytes().split(b"\n")[:-1]


def event(run_id="r", sequence=0, **values):
    return json.dumps({"kind": "system", "run_id": run_id, "sequence": sequence, "payload": {}} | values).encode()


def usage(name, source, sequence=0, **payload):
    return event(sequence=sequence, kind="usage", name=name, source=source, payload=payload)


@pytest.fixture(name="blocked")
def _blocked():
    return Read(lines_of("events-claude-blocked.jsonl"), "events")


@pytest.fixture(name="two")
def _two():
    return Read(lines_of("events-export-two-runs-torn.jsonl"), "events")


@pytest.fixture(name="stdout")
def _stdout():
    return Read(lines_of("generic-stdout.jsonl"), "generic")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("events-claude-blocked.jsonl", "events"),
        ("events-export-two-runs-torn.jsonl", "events"),
        ("generic-stdout.jsonl", "generic"),
        ("agent-stream-claude.sanitized.jsonl", None),  # the native stream is no shape of this wire
    ],
)
def test_shapes_are_told_by_content(name, shape):
    objects, others = [], 0
    for line in lines_of(name):
        try:
            objects.append(json.loads(line))
        except ValueError:
            others += 1
    assert WIRE.sniff(Sample(objects, others)) == shape


def test_other_kinds_of_lines_are_no_harness_lab():
    assert WIRE.sniff(Sample([{"kind": "Pod"}, {"kind": ["usage"]}, {"event": "usage"}], 0)) is None
    assert WIRE.sniff(Sample([], 9)) is None


class TestBlockedClaudeRun:
    """events-claude-blocked.jsonl"""

    def test_every_line_is_an_event_in_sequence(self, blocked):
        assert blocked.refused == {}
        assert [row["seq"] for row in blocked.of(CLAUDE) if row["part"] == 0] == list(range(39))
        assert blocked.rows[0]["end_rule"] == "sequenced"

    def test_status_and_outcome(self, blocked):
        (end,) = blocked.of(CLAUDE, "run.ended")
        assert (end["status"], end["outcome"], end["exit_code"], end["duration_ms"]) == ("blocked", "fail", 1, 64012)

    def test_tokens_are_the_final_row(self, blocked):
        assert blocked.tokens(CLAUDE, "final") == [55, 21_480, 4_390, 405, 0]
        naive = blocked.tokens(CLAUDE, "final", "snapshot", "delta", "cumulative")
        assert naive[:4] == [113, 43_860, 9_480, 440]  # the sum of all eight rows

    def test_cost_and_model_of_the_final_row(self, blocked):
        (final,) = [row for row in blocked.rows if row.get("usage_scope") == "final"]
        assert (final["cost_usd"], final["model"]) == (0.0931, "claude-sonnet-5")
        assert sum("cost_usd" in row for row in blocked.rows) == 1  # the result event repeats it

    def test_requests_are_the_distinct_messages(self, blocked):
        assert len({row["request_id"] for row in blocked.rows if row.get("requests") == 1}) == 7  # naive: 8 usage rows

    def test_calls(self, blocked):
        calls = blocked.calls(CLAUDE)
        assert len(calls) == 7
        assert sum(row["event"] == "command_started" for row in calls.values()) == 4
        assert [row["call_id"] for row in calls.values() if "parent_call_id" in row] == ["tu_4"]

    def test_a_synthetic_end_is_no_end(self, blocked):
        assert blocked.unfinished(CLAUDE) == [("tu_6", 1)]  # naive: 0, as every start has a finish

    def test_denials_are_distinct_calls(self, blocked):
        linked, unlinked = blocked.denied(CLAUDE)
        assert linked == {("tu_2", 1): "hook", ("tu_5", 1): "permission_notice", ("tu_7", 1): "hook"}
        assert unlinked == []  # naive: 2, the merged list [Bash, Bash], which has the one notice twice and no hook

    def test_hooks_name_themselves(self, blocked):
        hooks = [row for row in blocked.rows if row.get("evidence") == "hook"]
        assert {(row["decided_by"], row["tool"]) for row in hooks} == {("PreToolUse:Bash", "Bash")}
        assert hooks[0]["reason"] == "credential access is not allowed"

    def test_markers_without_values(self, blocked):
        kinds = Counter(row["kind"] for row in blocked.rows)
        assert (kinds["retry"], kinds["rate_limit"], kinds["opaque"]) == (1, 2, 1)
        assert not any(name.startswith("limit_") for row in blocked.rows for name in row)
        assert "limits" not in blocked.rows[0]["speaks"].split()  # unknown, not 0

    def test_cost_is_spoken_of_by_claude_only(self, blocked, two):
        assert "cost" in blocked.rows[0]["speaks"].split()
        assert not any("cost" in row.get("speaks", "").split() for row in two.rows)


class TestTwoRunsInOneFile:
    """events-export-two-runs-torn.jsonl"""

    def test_the_unknown_kind_is_refused_by_name(self, two):
        assert two.refused == {10: Refusal("unknown_event", "kind 'telemetry' is not known", GENERIC, 99)}

    def test_each_run_is_judged_alone(self, two):
        codex, generic = ([row["seq"] for row in two.of(run)] for run in (CODEX, GENERIC))
        assert (codex, generic) == (list(range(16)), list(range(8)))  # naive: a hole, 7 → 99
        assert [row["outcome"] for row in two.rows if row["kind"] == "run.ended"] == ["pass"]
        assert two.of(GENERIC, "run.ended") == []

    def test_a_passed_run_may_have_failed(self, two):
        (end,) = two.of(CODEX, "run.ended")
        assert (end["status"], end["exit_code"]) == ("completed", 1)
        assert end["message"].startswith("You've hit your usage limit")

    def test_times_without_a_zone_are_utc(self, two):
        assert two.rows[0]["ts"] == 1_792_044_001_000_000

    def test_cumulative_is_not_a_running_total(self, two):
        assert two.tokens(CODEX, "delta") == [3_000, 8_000, 0, 350, 60]  # naive: 1000 / 5000 / 0 / 150 / 20, the last
        assert two.tokens(CODEX, "cumulative") == [0] * 5
        assert not any("requests" in row for row in two.of(CODEX))  # codex does not say how many requests it made

    def test_unsaid_counters_are_unknown(self, two):
        (row,) = two.of(GENERIC, "usage")
        assert (row["input_tokens"], row["output_tokens"], row["model"]) == (700, 20, "tiny-1")
        assert "cache_read_tokens" not in row  # naive: 0

    def test_the_launcher_is_no_call(self, two):
        assert len(two.calls(CODEX)) == 3
        assert list(two.calls(GENERIC)) == [("g1", 1), ("g2", 1), ("g1", 2)]  # naive: 4, with generic-main
        assert [row["event"] for row in two.of(GENERIC, "system")] == ["command_started"]

    def test_unfinished(self, two):
        assert two.unfinished(CODEX) == [("x3", 1)]
        assert two.unfinished(GENERIC) == [("g2", 1), ("g1", 2)]  # naive: g2 and generic-main, by sets of ids

    def test_an_orphan_end_is_no_call(self, two):
        ends = {row["call_id"] for row in two.of(GENERIC, "tool.finished")}
        assert ends - {call for call, _ in two.calls(GENERIC)} == {"g9"}

    def test_an_exit_code_tells_of_success_where_no_status_does(self, two):
        ends = {row["call_id"]: row for row in two.of(CODEX, "tool.finished")}
        assert (ends["x1"]["is_error"], ends["x2"]["is_error"], "is_error" in ends["x3"]) == (False, False, False)

    def test_the_first_row_tells_the_adapter(self, two):
        starts = [json.loads(row["attributes"]) for row in two.rows if row["kind"] == "run.started"]
        assert [(said["adapter"], said["variant"]) for said in starts] == [
            ("codex", "codex-default"),
            ("generic", "mine"),
        ]


class TestGenericStdout:
    """generic-stdout.jsonl"""

    RUN = "generic-src"

    def test_text_is_kept_as_text(self, stdout):
        text = [row["line"] for row in stdout.rows if row["event"] == "plain_text"]
        assert text == [1, 17, 19, 23]
        assert len(stdout.rows) - len(text) == 19
        assert stdout.refused == {}
        assert stdout.rows[0]["text_chars"] == len("agent 4.1 booting")

    def test_no_run_id_no_clock_no_end(self, stdout):
        first = stdout.rows[0]
        assert (first["run_id"], first["run_id_origin"], first["end_rule"]) == (self.RUN, "source", "none")
        assert not any(name in row for row in stdout.rows for name in ("ts", "seq", "parent_call_id"))
        assert {"clock", "outcome", "limits", "cost"}.isdisjoint(first["speaks"].split())
        assert json.loads(first["attributes"]) == {"adapter": "generic"}

    def test_tokens(self, stdout):
        assert stdout.tokens(self.RUN, "delta") == [2010, 300, 7, 135, 2]
        assert sum(row["requests"] for row in stdout.of(self.RUN, "usage")) == 3
        assert {row["model"] for row in stdout.of(self.RUN, "usage")} == {"tiny-1"}

    def test_calls(self, stdout):
        starts = stdout.of(self.RUN, "tool.started")
        assert len(starts) == 6  # naive: 7, with Harness Lab's own launcher
        assert sum(row["event"] == "command_started" for row in starts) == 3
        assert stdout.unfinished(self.RUN) == [("a3", 1), ("a5", 1)]  # naive: 1, the larger of interrupted and open

    def test_folded_keys_are_the_payload(self, stdout):
        (start,) = [row for row in stdout.of(self.RUN, "tool.started") if row.get("call_id") == "a3"]
        assert start["tool"] == "edit"
        assert "parent_call_id" not in start  # the line has one, but it is not honoured

    def test_the_rest(self, stdout):
        kinds = Counter(row["kind"] for row in stdout.rows)
        assert [kinds[kind] for kind in ("message", "reasoning", "error", "file.changed")] == [1, 1, 1, 1]
        assert kinds["rate_limit"] == 0

    def test_the_denial_is_tied_to_its_call(self, stdout):
        assert stdout.denied(self.RUN) == ({("a4", 1): "permission_notice"}, [])  # Harness Lab's metric: 0

    @pytest.mark.parametrize(
        "line",
        [
            b'{"kind":"usage","payload":{"input_tokens":null,"output_tokens":3}}',
            b'{"kind":"usage","input_tokens":"many"}',
            b'{"kind":["usage"],"input_tokens":3}',
            b'{"kind":"tool_started","name":"read","call_id":17,"payload":{"tool":"read"}}',
            b'{"kind":"tool_finished","call_id":"zz","duration_ms":1.5,"payload":{"status":"completed"}}',
        ],
    )
    def test_a_poison_line_costs_only_itself(self, line):
        good = b'{"kind":"usage","output_tokens":3}'
        read = Read([good, line, good], "generic")
        assert [(n, r.reason, r.run_id) for n, r in read.refused.items()] == [(2, "malformed", self.RUN)]
        assert len(read.rows) == 2  # naive: 1, as upstream's reader dies at the poison

    @pytest.mark.parametrize(
        "line",
        [
            b'{"kind":"telemetry"}',
            b'{"kind":7}',
            b'{"note":1}',
            b"[1,2]",
            b"17",
            b'{"kind":"usage","output_tokens":3',
            b'{"kind":"usage","output_tokens":3} <-- here',
            b"\0\0\0\0",
            b"caf\xe9",
        ],
    )
    def test_what_is_no_event_is_text(self, line):
        read = Read([line], "generic")
        assert [(row["event"], row["kind"]) for row in read.rows] == [("plain_text", "system")]
        assert read.rows[0]["text_chars"] == len(line)

    def test_a_broken_byte_does_not_make_an_event_text(self):
        start = b'{"kind":"tool_started","call_id":"a"}'
        finish = b'{"kind":"tool_finished","call_id":"a","payload":{"status":"completed","output":"caf\xe9"}}'
        assert Read([start, finish], "generic").unfinished(self.RUN) == []  # upstream decodes with replacement

    def test_counters_are_what_int_makes_of_them(self):
        read = Read([b'{"kind":"usage","payload":{"input_tokens":"7","output_tokens":1.9}}'], "generic")
        assert read.tokens(self.RUN, "delta") == [7, 0, 0, 1, 0]

    def test_a_payload_that_is_no_object_is_passed_over(self):
        read = Read([b'{"kind":"usage","payload":[1],"input_tokens":5}'], "generic")
        assert read.rows[0]["input_tokens"] == 5

    def test_a_counter_beyond_64_bits(self):
        read = Read([b'{"kind":"usage","input_tokens":99999999999999999999}'], "generic")
        assert read.refused[1].reason == "number_out_of_range"


class TestStrictEnvelope:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"name": 17}, "malformed"),
            ({"duration_ms": 1.5}, "malformed"),
            ({"payload": ["not", "an", "object"]}, "malformed"),
            ({"call_id": 3}, "malformed"),
            ({"kind": "telemetry"}, "unknown_event"),
            ({"kind": "telemetry", "name": 17}, "unknown_event"),
            ({"kind": "plain_text"}, "unknown_event"),
            ({"sequence": 10**30}, "number_out_of_range"),
        ],
    )
    def test_refused_by_name_with_its_run(self, change, reason):
        refusal = Read([event(**({"sequence": 4} | change))], "events").refused[1]
        assert (refusal.reason, refusal.run_id) == (reason, "r")
        assert refusal.seq == (None if "sequence" in change else 4)

    def test_a_run_id_is_needed(self):
        line = json.dumps({"kind": "system", "sequence": 3}).encode()
        read = Read([line, event(run_id="")], "events")
        assert [(r.reason, r.run_id) for r in read.refused.values()] == [("malformed", None)] * 2

    def test_a_refused_line_moves_nothing(self):
        read = Read([event(kind="telemetry")], "events")
        assert (read.rows, read.state.runs) == ([], {})

    def test_loose_payload_keys_do_not_refuse_a_line(self):
        odd = {"tool": 3, "message": ["x"], "exit_code": "one", "input_tokens": {}, "launcher": 0, "text": None}
        kinds = ("error", "tool_started", "tool_finished", "assistant_message", "usage", "file_change", "run_started")
        read = Read([event(kind=kind, sequence=n, payload=odd) for n, kind in enumerate(kinds)], "events")
        assert read.refused == {}
        assert not any(name in row for row in read.rows for name in ("tool", "message", "exit_code", "input_tokens"))

    def test_a_whole_float_is_a_duration(self):
        assert Read([event(duration_ms=3.0)], "events").rows[0]["duration_ms"] == 3

    @pytest.mark.parametrize(
        ("texts", "wanted"),
        [
            (["2026-10-15T06:00:00Z", "2026-10-15T06:00:00.5", "2026-10-15T08:00:00+02:00"], [0, 500_000, 0]),
            (["2026-10-15T06:00:00", "2026-10-15T06:00:00.5Z", None], [0, 500_000, None]),
            (["soon", "2026-10-15T06:00:00Z"], [None, 0]),
        ],
    )
    def test_clock(self, texts, wanted):
        read = Read([event(sequence=n, timestamp=text) for n, text in enumerate(texts)], "events")
        base = 1_792_044_000_000_000
        assert [row.get("ts") for row in read.rows] == [None if w is None else base + w for w in wanted]
        assert [row.get("ts_origin") for row in read.rows] == [None if w is None else "harness" for w in wanted]


class TestUsage:
    def test_a_cut_claude_run_keeps_its_messages(self):
        rows = [
            usage("message_usage", "claude", n, input_tokens=5, output_tokens=2, message_id=f"m{n}") for n in (0, 1)
        ]
        read = Read(rows, "events")
        assert read.tokens("r", "snapshot") == [10, 0, 0, 4, 0]  # naive: 0, as Harness Lab itself has it

    def test_a_result_of_several_models_has_none(self):
        row = usage("result_usage", "claude", final=True, models=["a", "b"], output_tokens=1)
        assert "model" not in Read([row], "events").rows[0]

    def test_codex_turns_add_up(self):
        rows = [usage("turn_usage", "codex", n, input_tokens=5, raw_input_tokens=9) for n in (0, 1)]
        assert Read(rows, "events").tokens("r", "delta")[0] == 10

    def test_an_agent_of_the_generic_protocol_cannot_end_its_sum(self):
        rows = [usage("result_usage", "generic", n, output_tokens=4, final=True, total_cost_usd=9.0) for n in (0, 1)]
        read = Read(rows, "events")
        assert read.tokens("r", "delta")[3] == 8
        assert not any("cost_usd" in row for row in read.rows)


class TestCalls:
    @staticmethod
    def call(kind, call_id, sequence, source="generic", **payload):
        return event(kind=kind, call_id=call_id, sequence=sequence, source=source, payload=payload)

    def test_the_agent_may_take_the_launchers_id(self):
        read = Read(
            [
                self.call("command_started", "generic-main", 0, "runner", command="agent"),
                self.call("tool_started", "generic-main", 1),
                self.call("tool_finished", "generic-main", 2, "harnesslab", status="interrupted"),
                self.call("command_finished", "generic-main", 3, "harnesslab", status="interrupted"),
            ],
            "events",
        )
        assert [row["kind"] for row in read.rows] == ["system", "tool.started", "tool.finished", "system"]
        assert read.unfinished("r") == [("generic-main", 1)]

    def test_a_start_after_an_orphan_end_is_another_call(self):
        read = Read(
            [self.call("tool_finished", "a", 0, status="completed"), self.call("tool_started", "a", 1)], "events"
        )
        assert read.unfinished("r") == [("a", 2)]

    def test_two_open_calls_of_one_id_end_one_by_one(self):
        kinds = ("tool_started", "tool_started", "tool_finished", "tool_finished", "tool_finished")
        read = Read([self.call(kind, "a", n) for n, kind in enumerate(kinds)], "events")
        assert [row["call_occurrence"] for row in read.rows] == [1, 2, 2, 1, 2]

    def test_a_start_without_an_id_is_a_call_nobody_can_end(self):
        read = Read([event(kind="command_started")], "events")
        assert [row["kind"] for row in read.rows] == ["tool.started"]
        assert "call_id" not in read.rows[0]


class TestDenials:
    @staticmethod
    def notice(sequence, tool="Bash"):
        return event(sequence=sequence, source="claude", name="permission_denied", payload={"tool": tool})

    @staticmethod
    def result(sequence, names, source="claude"):
        return event(sequence=sequence, source=source, name="result", payload={"permission_denials": names})

    @pytest.mark.parametrize(
        ("notices", "merged", "denials", "vendor"),
        [
            (["Bash"], ["Bash", "Bash"], 1, []),
            (["Bash"], ["Bash"], 1, []),
            ([], ["Edit", "Bash"], 2, ["Edit", "Bash"]),
            (["Bash"], ["Bash", "Edit", "Bash", "Bash"], 3, ["Edit", "Bash"]),
            (["Bash", "Edit"], ["Bash", "Edit", "Edit"], 2, []),
            (["Bash"], [], 1, []),
            (["Bash"], None, 1, []),
        ],
    )
    def test_the_merged_list_holds_the_notices_twice(self, notices, merged, denials, vendor):
        lines = [self.notice(n, tool) for n, tool in enumerate(notices)]
        read = Read([*lines, self.result(len(lines), merged)], "events")
        assert len(read.denied("r")[1]) == denials
        parts = [row for row in read.rows if row["part"] > 0]
        assert [row["tool"] for row in parts] == vendor
        assert all((row["evidence"], row["decided_by"]) == ("vendor_list", "vendor") for row in parts)

    def test_a_list_that_an_agent_prints_is_no_vendors(self):
        assert Read([self.result(0, ["Bash"], "generic")], "events").denied("r") == ({}, [])

    def test_two_denials_mean_two_calls(self):
        starts = [event(kind="tool_started", sequence=n, call_id=f"c{n}", payload={"tool": "Bash"}) for n in (0, 1)]
        read = Read([*starts, self.notice(2), self.notice(3), self.notice(4)], "events")
        linked, unlinked = read.denied("r")
        assert (set(linked), len(unlinked)) == ({("c0", 1), ("c1", 1)}, 1)

    @pytest.mark.parametrize("status", ["declined", "denied", "rejected", "blocked"])
    def test_codex_says_it_in_the_status(self, status):
        start = event(kind="command_started", source="codex", call_id="x", name="shell")
        finish = event(kind="command_finished", source="codex", call_id="x", sequence=1, payload={"status": status})
        read = Read([start, finish], "events")
        assert read.denied("r")[0] == {("x", 1): "status"}
        assert (read.rows[1]["decided_by"], read.rows[1]["tool"], read.rows[1]["is_error"]) == ("vendor", "shell", True)

    def test_a_hook_that_lets_pass_denies_nothing(self):
        payload = {"hook_name": "PreToolUse:Bash", "decision": "deny", "blocked": False}
        assert [row["kind"] for row in Read([event(name="hook", payload=payload)], "events").rows] == ["system"]


class TestExportDocument:
    @staticmethod
    def document(**changes):
        two = [json.loads(line) for line in lines_of("events-export-two-runs-torn.jsonl")]
        runs = [
            {"id": run, "reproducibility": {"runner": runner}, "metrics": {}}
            for run, runner in ((CODEX, "codex"), (GENERIC, "generic"))
        ]
        for run in runs:
            run["events"] = [{k: v for k, v in e.items() if k != "run_id"} for e in two if e["run_id"] == run["id"]]
        return {"schema_version": "2", "experiment": {"id": "e"}, "runs": runs} | changes

    @staticmethod
    def read(doc, indent=2):
        data = json.dumps(doc, indent=indent).encode()
        ctx = Context("src", "export", WIRE.new_state("export"))
        elements = WIRE.document(data, ctx)
        good = [(n, e.obj) for n, e in enumerate(elements, 1) if not isinstance(e.obj, Refusal)]
        rows, refused = rows_of([o for _, o in good], [n for n, _ in good], ctx)
        refused |= {n: e.obj for n, e in enumerate(elements, 1) if isinstance(e.obj, Refusal)}
        return data, elements, rows, refused

    def test_sniffed_by_its_keys(self):
        assert WIRE.sniff(Sample([self.document()], 0, is_document=True)) == "export"
        assert WIRE.sniff(Sample([{"runs": []}], 0, is_document=True)) is None

    @pytest.mark.parametrize("indent", [None, 2])
    def test_elements_are_exact_slices_in_byte_order(self, indent):
        doc = self.document()
        data, elements, _, _ = self.read(doc, indent)
        slices = [json.loads(data[e.offset : e.offset + e.length]) for e in elements]
        assert slices == [event for run in doc["runs"] for event in run["events"]]
        assert [e.offset for e in elements] == sorted(e.offset for e in elements)

    def test_the_run_id_comes_from_the_parent(self, two):
        _, _, rows, refused = self.read(self.document())
        assert {row["run_id_origin"] for row in rows} == {"parent"}
        assert [(r.reason, r.run_id, r.seq) for r in refused.values()] == [("unknown_event", GENERIC, 99)]
        for run in (CODEX, GENERIC):
            flat = [row | {"line": 0, "run_id_origin": "wire"} for row in two.of(run)]
            assert [row | {"line": 0, "run_id_origin": "wire"} for row in rows if row["run_id"] == run] == flat

    def test_a_bad_element_costs_only_itself(self):
        doc = self.document()
        doc["runs"][0]["events"] += [17, {"kind": "system", "sequence": 16, "name": 17}]
        _, elements, rows, refused = self.read(doc)
        assert [(n, r.reason, r.run_id, r.seq) for n, r in sorted(refused.items())] == [
            (17, "not_an_object", CODEX, None),
            (18, "malformed", CODEX, 16),
            (23, "unknown_event", GENERIC, 99),
        ]
        assert len(rows) == len(elements) - 3

    @pytest.mark.parametrize(
        ("doc", "place"),
        [
            ({"schema_version": "2"}, "runs"),
            ({"schema_version": "2", "runs": [{"events": []}]}, "id"),
            ({"schema_version": "2", "runs": [{"id": "r", "events": 3}]}, "events"),
            ({"schema_version": "9", "runs": []}, "schema_version"),
        ],
    )
    def test_another_shape_is_named(self, doc, place):
        with pytest.raises(DocumentError, match=place):
            self.read(doc)

    def test_a_torn_document_is_named(self):
        with pytest.raises(DocumentError):
            WIRE.document(b'{"schema_version":"2","runs":[', Context("src", "export", WIRE.new_state("export")))

    def test_a_run_without_events_is_no_run(self):
        doc = self.document()
        doc["runs"] += [{"id": "r0", "events": []}, {"id": "r1", "events": None}, {"id": "r2"}]
        _, _, rows, _ = self.read(doc)
        assert {row["run_id"] for row in rows} == {CODEX, GENERIC}


class TestState:
    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("events-claude-blocked.jsonl", "events"),
            ("events-export-two-runs-torn.jsonl", "events"),
            ("generic-stdout.jsonl", "generic"),
        ],
    )
    @pytest.mark.parametrize("step", [1, 5])
    def test_reading_on_equals_reading_the_whole(self, name, shape, step):
        whole, resumed = Read(lines_of(name), shape), Read(lines_of(name), shape, step=step)
        assert resumed.rows == whole.rows
        assert resumed.refused == whole.refused
        assert resumed.state == whole.state

    def test_a_finished_run_leaves_nothing_behind(self, blocked, two):
        assert blocked.state.runs == {}
        assert set(two.state.runs) == {GENERIC}

    def test_without_run_started_the_source_tells_the_runner(self):
        lines = [event(source="runner", name="setup_command"), event(source="claude", sequence=1), event(sequence=2)]
        read = Read(lines, "events")
        assert [row.get("attributes") for row in read.rows] == [None, '{"adapter":"claude"}', None]
        assert [row.get("end_rule") for row in read.rows] == ["sequenced", None, None]
        assert "cost" in read.rows[1]["speaks"].split()

    def test_the_tail_of_generic_stdout_is_a_line(self):
        assert [WIRE.is_final_without_newline(shape) for shape in ("events", "export", "generic")] == [
            False,
            False,
            True,
        ]
        assert not any(WIRE.needs_newline(shape) for shape in ("events", "export", "generic"))
