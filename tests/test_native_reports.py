"""Public reports of wrong counts on Claude Code's transcripts, one row each: the wrong number and the right one."""
# The answers read as a table, one row per report.
# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest
from native_make import (
    DAY,
    HAIKU,
    NOT_GRANTED,
    OPUS,
    REJECTED,
    RULED_OUT,
    SONNET,
    Capture,
    Session,
    at,
    dump,
    epoch,
    model_usage,
    text,
    thought,
    tool,
    usage,
)
from native_read import Answers
from native_table import (
    Report,
    Table,
    by,
    counted_runs,
    each,
    limits,
    lower_bound,
    output_by_result,
    reasons,
    tools,
    total,
    totals,
    unfinished,
)

Files = dict[str, Any]


def growing(k: str) -> Files:
    """An answer on two rows; only the second has the final output."""
    one = Session(f"{k}-a").user()
    one.answer(f"{k}-m", usage(10, 9, read=100), thought(), stop=None, request=f"{k}-q")
    return {"s.jsonl": one.answer(f"{k}-m", usage(10, 159, read=100), text(), request=f"{k}-q")}


def days(k: str) -> Files:
    one = Session(f"{k}-a").user()
    for number, output in enumerate((120, 180)):
        one.answer(f"{k}-m{number}", usage(4, 1), thought(), stop=None)
        one.answer(f"{k}-m{number}", usage(4, output))
    return {"s.jsonl": one}


def other_fields_right(k: str) -> Files:
    one = Session(f"{k}-a").user()
    for output in (100, 180, 270):
        one.answer(f"{k}-m", usage(7, output, read=900, write=60), stop="end_turn" if output == 270 else None)
    return {"s.jsonl": one}


def blocks_on_rows(k: str) -> Files:
    one = Session(f"{k}-a").user()
    one.answer(f"{k}-m", usage(5, 2), tool(f"{k}-c1", "Bash"), stop=None)
    one.answer(f"{k}-m", usage(5, 2), tool(f"{k}-c2", "mcp__maps__tile"), stop=None)
    one.answer(f"{k}-m", usage(5, 90), tool(f"{k}-c3", "mcp__maps__legend"), stop="tool_use")
    for call in ("c1", "c2", "c3"):
        one.result(f"{k}-{call}")
    return {"s.jsonl": one}


def snapshots_of_a_subagent(k: str) -> Files:
    one = Session(f"{k}-a").user()
    sub = Session(f"{k}-a", agent="b7", start=10)
    for output in (1, 50, 120):
        sub.answer(f"{k}-m", usage(1000, output, read=5000, write=output), model=HAIKU, stop=None)
    return {"s.jsonl": one, f"{k}-a/subagents/agent-b7.jsonl": sub}


def two_blocks(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m1", usage(3, 80), thought(), stop=None)
    one.answer(f"{k}-m1", usage(3, 80), text()).user("go on")
    return {"s.jsonl": one.answer(f"{k}-m2", usage(3, 20))}


def every_line_the_same(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(6, 200, read=40), thought())
    return {"s.jsonl": one.answer(f"{k}-m", usage(6, 200, read=40), text())}


def history_twice_in_one_file(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m1", usage(2, 70)).answer(f"{k}-m2", usage(2, 30))
    one.rows += [dict(row) for row in one.rows]
    return {"s.jsonl": one.answer(f"{k}-m3", usage(2, 11))}


def no_request_ids(k: str) -> Files:
    one = Session(f"{k}-a").user()
    for output in (1, 30, 60):
        one.answer(f"{k}-m", usage(500, output, read=None, write=None), stop=None)
    return {"s.jsonl": one}


def no_request_ids_in_two_files(k: str) -> Files:
    one = no_request_ids(k)["s.jsonl"]
    return {"s.jsonl": one, "copy.jsonl": one.copy(f"{k}-b").answer(f"{k}-n", usage(90, 5))}


def request_id_on_some_rows(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(8, 4), thought(), stop=None, request=f"{k}-q")
    return {"s.jsonl": one.answer(f"{k}-m", usage(8, 44), text())}


def side_question(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 300, read=7000), request=f"{k}-q1")
    aside = one.copy(start=60, isSidechain=True, agentId="aside_question-1")
    for row in aside.rows:
        row["requestId"] = f"{k}-other"
    return {"s.jsonl": one, f"{k}-a/subagents/agent-aside.jsonl": aside.answer(f"{k}-n", usage(2, 25))}


def old_sidechains(k: str) -> Files:
    one = Session(f"{k}-a", version="1.0.60").user().answer(f"{k}-m", usage(5, 54))
    return {"s.jsonl": one.answer(f"{k}-n", usage(7, 46), isSidechain=True, model=HAIKU)}


def workflow(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 10))
    deep = Session(f"{k}-a", agent="w9", start=20).answer(f"{k}-n", usage(5, 400))
    return {f"{k}-a.jsonl": one, f"{k}-a/subagents/workflows/wf-1/agent-w9.jsonl": deep}


def compaction_mirror(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m1", usage(5, 200)).answer(f"{k}-m2", usage(5, 100))
    mirror = one.copy(start=60, isSidechain=True, agentId="acompact-1").answer(f"{k}-n", usage(5, 40))
    return {"s.jsonl": one, f"{k}-a/subagents/agent-acompact-1.jsonl": mirror}


def equal_progress(k: str) -> Files:
    one = Session(f"{k}-a", version="2.1.40").user().answer(f"{k}-m", usage(5, 10), tool(f"{k}-c"), stop="tool_use")
    for answer in ("n1", "n2"):
        one.progress("d3", f"{k}-{answer}", usage(3, 30, read=800), call=f"{k}-c")
    return {"s.jsonl": one.result(f"{k}-c")}


def copied_session(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(500, 20), request=f"{k}-q")
    return {"a.jsonl": one, "b.jsonl": one.copy(f"{k}-b").answer(f"{k}-n", usage(6, 3))}


def three_sessions(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 305))
    return {"a.jsonl": one, "b.jsonl": one.copy(f"{k}-b"), "c.jsonl": one.copy(f"{k}-c", start=900).user("and now?")}


def branch_on_another_day(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 250))
    return {"b.jsonl": one.copy(f"{k}-b", start=DAY).answer(f"{k}-n", usage(5, 30)), "a.jsonl": one}


def resumed_at_the_thirteenth_call(k: str) -> Files:
    one = Session(f"{k}-a").user()
    for number in range(12):
        one.calls(f"{k}-m{number}", usage(2, 10), f"toolu_{k}-c{number}")
    return {"a.jsonl": one, "b.jsonl": one.copy(f"{k}-b").calls(f"{k}-m12", usage(2, 10), f"toolu_{k}-c12")}


def never_final(k: str) -> Files:
    one = Session(f"{k}-a", version="2.1.20").user()
    return {"s.jsonl": one.answer(f"{k}-m1", usage(5, 3), stop=None).answer(f"{k}-m2", usage(5, 1), stop=None)}


def half_final(k: str) -> Files:
    one = Session(f"{k}-a", version="2.1.59").user().answer(f"{k}-m1", usage(174, 17), stop=None)
    return {"s.jsonl": one.answer(f"{k}-m2", usage(5, 400))}


def stub_and_capture(k: str) -> Files:
    """The session stores what the stream began with, the same run's capture tells the totals."""
    one, capture = Session(f"{k}-a", version="2.1.37").user(), Capture(f"{k}-a", version="2.1.37").init()
    for number, output in enumerate((1, 1, 2)):
        one.answer(f"{k}-m{number}", usage(5, output), stop=None)
        capture.answer(f"{k}-m{number}", usage(5, output))
    capture.ended(usage(15, 412), {SONNET: model_usage(15, 5 + 113 + 294)})
    return {"s.jsonl": one, "capture.jsonl": capture}


def hour_of_cache(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 10, write=1000, hour=780))
    return {"s.jsonl": one}


def split_without_the_rest(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 10, write=1000, hour=180, five=500))
    return {"s.jsonl": one}


def synthetic(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m", usage(5, 10), model=OPUS)
    one.answer(f"{k}-none", usage(0, 0), text("API Error"), model="<synthetic>", isApiErrorMessage=True)
    return {"s.jsonl": one}


def torn_lines(k: str) -> Files:
    """Two glued records, a line of NUL bytes, and a cut record before a whole one."""
    one = Session(f"{k}-a", version="2.1.12").user()
    one.answer(f"{k}-m1", usage(2, 40)).answer(f"{k}-m2", usage(2, 50)).answer(f"{k}-m3", usage(2, 60))
    lines = one.data.split(b"\n")
    snapshot = dump([{"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False}])
    data = [lines[0], lines[1] + snapshot.strip(), b"\0" * 40, lines[2][:150] + lines[2], lines[3], b""]
    return {"s.jsonl": b"\n".join(data)}


def stub_before_a_record(k: str) -> Files:
    one = Session(f"{k}-a", version="2.1.12").user().answer(f"{k}-m1", usage(2, 40)).answer(f"{k}-m2", usage(2, 55))
    lines = one.data.split(b"\n")
    return {"s.jsonl": b"\n".join([lines[0], lines[1][:200] + lines[2], b""])}


def lost_result(k: str) -> Files:
    one = Session(f"{k}-a").user()
    for call in ("c1", "c2", "c3"):
        one.answer(f"{k}-m", usage(5, 90), tool(f"{k}-{call}"), stop="tool_use" if call == "c3" else None)
    return {"s.jsonl": one.result(f"{k}-c1").result(f"{k}-c3")}


def character_fragments(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m1", usage(2, 40))
    one.row("assistant", message={str(n): letter for n, letter in enumerate('{"id"')}, requestId=f"{k}-q")
    return {"s.jsonl": one.answer(f"{k}-m2", usage(2, 33))}


def compacted(k: str) -> Files:
    one = Session(f"{k}-a").user().answer(f"{k}-m1", usage(10, 40, read=151_000, write=500))
    about = {"trigger": "auto", "preTokens": 151_510, "postTokens": 9_000}
    one.row("system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=about)
    return {"s.jsonl": one.answer(f"{k}-m2", usage(10, 40, read=8_800, write=290))}


def transcripts(k: str) -> Files:
    rows = [
        {"type": "user", "timestamp": at(0), "content": "sort the parcels"},
        {"type": "tool_use", "timestamp": at(1), "tool_name": "bash", "tool_input": {"command": "make"}},
        {"type": "tool_result", "timestamp": at(2), "tool_name": "bash", "tool_output": {"output": "ok"}},
    ]
    return {"transcripts/ses_1.jsonl": dump(rows)}


def one_model(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m", usage(10, 1))
    return {"c.jsonl": one.ended(usage(10, 20), {SONNET: model_usage(1000, 2000)})}


def stamped_early(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m1", usage(5, 680)).answer(f"{k}-m2", usage(5, 700))
    return {"c.jsonl": one.ended(usage(10, 63_082), {SONNET: model_usage(10, 63_082)})}


def two_results(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m1", usage(5, 2))
    one.ended(usage(5, 100), {SONNET: model_usage(5, 100, cost=0.2)}, cost=0.2).init().answer(f"{k}-m2", usage(7, 2))
    return {"c.jsonl": one.ended(usage(7, 150), {SONNET: model_usage(12, 250, cost=0.5)}, cost=0.5)}


def subagent_in_a_capture(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m1", usage(5, 2), tool(f"{k}-c", "Task"))
    one.answer(f"{k}-n", usage(40, 3), under=f"{k}-c", model=HAIKU).reply(f"{k}-c")
    models = {SONNET: model_usage(5, 60, cost=0.4), HAIKU: model_usage(40, 300, cost=0.1)}
    return {"c.jsonl": one.ended(usage(5, 60), models)}


def rows_and_result(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m", usage(5, 20)).answer(f"{k}-m", usage(5, 20))
    return {"c.jsonl": one.ended(usage(5, 120), {SONNET: model_usage(5, 120)})}


def denied_and_successful(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m", usage(5, 20), tool(f"{k}-c1")).reply(f"{k}-c1", "no", is_error=True)
    return {"c.jsonl": one.ended(usage(5, 20), {SONNET: model_usage(5, 20)}, denied=((f"{k}-c1", "Bash"),))}


def denied_in_text_only(k: str) -> Files:
    one = Capture(f"{k}-a").init().answer(f"{k}-m", usage(5, 20), tool(f"{k}-c1", "Read"), tool(f"{k}-c2", "Write"))
    one.reply(f"{k}-c1", "Permission to use Read has been denied.", is_error=True)
    one.reply(f"{k}-c2", NOT_GRANTED, is_error=True)
    return {"c.jsonl": one.ended(usage(5, 20), {SONNET: model_usage(5, 20)}, denied=((f"{k}-c2", "Write"),))}


def limited(*events: tuple[str, str, dict[str, Any]]) -> Any:
    """A capture with a limit event before each of its turns."""

    def make(k: str) -> Files:
        one = Capture(f"{k}-a").init()
        for number, (kind, status, more) in enumerate(events, 1):
            one.limit(kind, status, epoch(18_000), **more).answer(f"{k}-m{number}", usage(5, 20))
            one.ended(usage(5, 20), {SONNET: model_usage(5 * number, 20 * number)})
        return {"c.jsonl": one}

    return make


def context_at_the_end(a: Answers) -> tuple[int, int]:
    """Size of the last request's context, and how often it was compacted."""
    return max(a.usage, key=lambda row: row["ts"])["input_tokens"], sum(row["compactions"] for row in a.metrics)


def kept_and_lost(a: Answers) -> tuple[Any, int]:
    return a.total("output_tokens"), sum(row["refused_lines"] for row in a.metrics)


def models(a: Answers) -> list[str]:
    return sorted({name for row in a.runs for name in row["models"] or ()})


def verdict(a: Answers) -> tuple[str, int]:
    """What the run says of itself, and how many of its calls were refused."""
    return a.metrics[0]["outcome"], a.metrics[0]["denied_calls"]


BOTH = ("uncached_input_tokens", "output_tokens")
REPORTS = [
    Report(1, "ccusage #901", "first row of an answer kept", growing, total("output_tokens"), 9, 159),
    Report(2, "ccusage #888", "days low: first rows", days, by("day", "output_tokens"), {"2026-05-04": 2}, {"2026-05-04": 300}),
    Report(3, "ccusage #938", "only output low", other_fields_right,
           totals("cache_read_tokens", "cache_write_tokens", "output_tokens"), (900, 60, 100), (900, 60, 270)),
    Report(4, "codeburn PR #201", "calls of later rows lost", blocks_on_rows, tools,
           ["Bash"], ["Bash", "mcp__maps__legend", "mcp__maps__tile"]),
    Report(5, "splitrail #220", "distinct snapshots added up", snapshots_of_a_subagent, totals("cache_write_tokens", *BOTH),
           (171, 3000, 171), (120, 1000, 120)),
    Report(6, "splitrail PR #23", "rows counted as messages", two_blocks, total("requests"), 3, 2),
    Report(7, "tokscale #80", "every line counted", every_line_the_same, total("output_tokens"), 400, 200),
    Report(8, "claude-code #5034", "history repeated inside a file", history_twice_in_one_file,
           totals("requests", "output_tokens"), (5, 211), (3, 111)),
    Report(9, "ccusage PR #985", "no requestId: no key", no_request_ids, totals(*BOTH), (1500, 91), (500, 60)),
    Report(10, "TokenTracker PR #62", "no requestId: copies counted", no_request_ids_in_two_files, totals(*BOTH),
           (3090, 187), (590, 65)),
    Report(11, "tokscale PR #563", "requestId on some rows only", request_id_on_some_rows, totals(*BOTH), (16, 48), (8, 44)),
    Report(12, "ccusage #913", "side question with another requestId", side_question, totals("requests", "output_tokens"),
           (3, 625), (2, 325)),
    Report(13, "ccstats #85", "sidechains dropped", old_sidechains, totals(*BOTH), (5, 54), (12, 100)),
    Report(14, "cc-switch #2820", "deep subagent files missed", workflow, each("output_tokens"),
           {"a": 10}, {"a": 10, "a/w9": 400}),
    Report(15, "CodexBar 91146a28c", "compaction file mirrors the parent", compaction_mirror, each("output_tokens"),
           {"a": 300, "a/acompact-1": 340}, {"a": 300, "a/acompact-1": 40}),
    Report(16, "ccusage 93bd05ad", "equal progress rows dropped", equal_progress, totals("requests", *BOTH),
           (2, 8, 40), (3, 11, 70)),
    Report(17, "CodexBar #1002", "session inside the key", copied_session, totals("requests", *BOTH), (3, 1006, 43), (2, 506, 23)),
    Report(18, "ccusage #1762", "ids of several sessions counted in each", three_sessions, total("output_tokens"), 915, 305),
    Report(19, "ccusage #19", "branch counted again, on its own day", branch_on_another_day, by("day", "output_tokens"),
           {"2026-05-04": 250, "2026-05-05": 280}, {"2026-05-04": 250, "2026-05-05": 30}),
    Report(20, "claude-observability-plugin #33", "resumed copy is a new trace", resumed_at_the_thirteenth_call,
           each("tool_calls"), {"a": 12, "b": 13}, {"a": 12, "b": 1}),
    Report(21, "tokenjam #294", "key of session and uuid", every_line_the_same, total("requests"), 2, 1),
    Report(22, "claude-code #22671", "stream start taken as the output", never_final, lower_bound, (0, False), (2, True)),
    Report(23, "claude-code #25941", "stored output 1, 1, 2", stub_and_capture, total("output_tokens"), 4, 412),
    Report(24, "claude-code #22686", "stop_reason never written", never_final, total("requests_not_final"), 0, 2),
    Report(25, "ccusage #866", "stored output shown as final", half_final, lower_bound, (0, False), (1, True)),
    Report(26, "ccusage #899", "hour writes at the price of five minutes", hour_of_cache,
           totals("cache_write_tokens", "cache_write_1h_tokens"), (1000, 0), (1000, 780)),
    Report(27, "claude-relay-service PR #1081", "only the split billed", split_without_the_rest,
           totals("cache_write_tokens", "cache_write_1h_tokens"), (680, 180), (1000, 180)),
    Report(28, "splitrail #1", "<synthetic> is a model", synthetic, models, ["<synthetic>", OPUS], [OPUS]),
    Report(29, "claude-code #81843", "spliced lines dropped", torn_lines, total("output_tokens"), 60, 150),
    Report(30, "claude-code #52387", "record behind a stub dropped", stub_before_a_record, kept_and_lost, (None, 1), (55, 1)),
    Report(31, "claude-code #45286", "lost result not seen", lost_result, unfinished, set(), {"c2"}),
    Report(32, "claude-code #24663", "fragments end the reading", character_fragments, kept_and_lost, (40, 1), (73, 1)),
    Report(33, "ccstatusline PR #524", "context as before the compaction", compacted, context_at_the_end,
           (151_510, 1), (9_100, 1)),
    Report(35, "claude-agent-sdk-typescript #112", "usage of one turn taken", one_model, totals(*BOTH), (10, 20), (1000, 2000)),
    Report(36, "gptme-contrib PR #1304", "rows of a capture summed", stamped_early, total("output_tokens"), 1380, 63_082),
    Report(37, "dxos PR #13067", "running total taken as a turn's", two_results, output_by_result, [100, 250], [100, 150]),
    Report(38, "rust-code-agent-sdks #169", "subagents missing", subagent_in_a_capture, totals(*BOTH), (5, 60), (45, 360)),
    Report(39, "devswarm PR #371", "rows and result added", rows_and_result, total("output_tokens"), 140, 120),
    Report(40, "claude-code #76867", "success means nothing refused", denied_and_successful, verdict,
           ("success", 0), ("success", 1)),
    Report(41, "claude-code #82747", "only the list read", denied_in_text_only, reasons,
           {"c2": "listed"}, {"c1": "rule-denied", "c2": "not-granted"}),
    Report(42, "fabrik #1523", "an integer 1 is no fraction",
           limited(("five_hour", "allowed", {"utilization": 0.91}), ("five_hour", "rejected", {"utilization": 1})),
           limits("used_percent"), [(91.0,), (None,)], [(91.0,), (100.0,)]),
    Report(43, "agent-swarm PR #508", "reset taken as milliseconds", limited(("five_hour", "allowed", {})),
           limits("resets_at"), [(epoch(18_000) // 1000,)], [(epoch(18_000),)]),
    Report(44, "the-framework #517", "no limits in headless output",
           limited(("five_hour", "allowed", {}), ("seven_day", "allowed_warning", {})),
           limits("limit_id", "window_minutes"), None, [("five_hour", 300), ("seven_day", 10_080)]),
    Report(45, "hive PR #87", "field named rate_limit looked for", limited(("overage", "rejected", {})),
           limits("limit_id", "status", "used_percent"), None, [("overage", "rejected", None)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = Table(tmp_path_factory.mktemp("reports"), [*REPORTS, TRANSCRIPTS])
    yield made
    made.lake.close()


@pytest.mark.parametrize("report", REPORTS, ids=str)
def test_report(report, table):
    found = report.ask(table.answers(report))
    assert found == report.right, report.wrong
    assert found != report.naive


TRANSCRIPTS = Report(
    34, "tokscale #565", "another folder's rows taken for usage", transcripts, total("requests"), 1, None
)


def test_rows_of_the_transcripts_folder_are_no_usage(table):
    """`~/.claude/transcripts` repeats prompts and calls, without ids and without a token."""
    got = table.answers(TRANSCRIPTS)
    assert [row for row in got.usage if row["input_tokens"] is not None] == []
    assert got.total("requests") is None
    assert [row["status"] for row in table.files(TRANSCRIPTS)] != ["read"] or got.total("tool_calls") == 0


def test_sums_agree(table):
    assert table.all.sums_disagree() == []


def test_nothing_is_wrong_with_the_lake(table):
    assert {name: rows for name, found in table.lake.check().items() if (rows := found.fetchall())} == {}


def test_a_denial_has_one_kind_where_kind_and_text_agree(tmp_path):
    one = Session("s-1").user()
    one.answer("m-1", usage(5, 20), tool("c1"), tool("c2"), tool("c3"), tool("c4"), stop="tool_use")
    one.result("c1", REJECTED, is_error=True, toolDenialKind="user-rejected")
    one.result("c2", RULED_OUT, is_error=True)
    one.result("c3", f"notes.txt: {REJECTED}")
    one.result("c4", "Exit code 2", is_error=True)
    path = tmp_path / "s.jsonl"
    path.write_bytes(one.data)
    got = Answers.of(tmp_path, [path])
    assert got.denied() == {
        "c1": {"evidence": {"tool_denial_kind"}, "reasons": {"user-rejected"}},
        "c2": {"evidence": {"result_text"}, "reasons": {"rule-denied"}},
    }
    assert got.metrics[0]["denied_calls"] == 2
    assert counted_runs(got) == 1
