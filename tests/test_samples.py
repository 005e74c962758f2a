"""The right answers of the sample streams (fixtures/samples), each beside the wrong one of a plausible shortcut.

`right` was derived by hand from the wires' field notes, and is what `expected.json` and the samples' notes say; `naive`
is what the shortcut named in the question gives, or nothing where no shortcut is known.
"""
# The answers read as a table, one row per question.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from helpers import SAMPLES, TWO_RUNS

from analytics import cli, open_lake

CLAUDE, CODEX, B10X, TORN = "night-0412/claude-a", "cx-7731", "bx-budget", "cl-torn"
FINISHED, LEDGER, CANCELED = "run_0001", "run_0002", "run_0003"
BLOCKED, LAB_CODEX, LAB_GENERIC = "run_0n1aclaude", "run_0n1bcodex", "run_0n1cgeneric"


@dataclass(frozen=True)
class Answer:
    """One question: the SQL, the rows that are right, the rows a shortcut gives."""

    question: str
    sql: str
    right: Any
    naive: Any = None


def metric(
    run: str, question: str, columns: str, right: tuple[Any, ...], naive: tuple[Any, ...] | None = None
) -> Answer:
    """An answer that stands in run_metrics."""
    sql = f"SELECT {columns} FROM run_metrics WHERE run_id = '{run}'"
    return Answer(f"{run}: {question}", sql, [right], None if naive is None else [naive])


def ask(run: str, question: str, sql: str, right: list[Any], naive: list[Any] | None = None) -> Answer:
    """An answer of another relation; `{run}` in the SQL is the run."""
    return Answer(f"{run}: {question}", sql.replace("{run}", f"'{run}'"), right, naive)


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


PARTS = "uncached_input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"
DECISIONS = """SELECT decision, count(*) FROM decisions
    WHERE run_id = {run} AND evidence = 'tool.decided' GROUP BY decision ORDER BY decision"""
DENIED = """SELECT call_id, decided_by FROM decisions
    WHERE run_id = {run} AND decision = 'deny' ORDER BY position"""
REFUSED = "SELECT line, reason FROM refusals WHERE path LIKE '%{file}' ORDER BY line"
UNFINISHED = """SELECT call_id FROM tool_calls
    WHERE run_id = {run} AND state IN ('unfinished', 'interrupted') ORDER BY position"""
LIMITS = "SELECT limit_id, status, used, unit, used_percent, resets_at FROM limit_samples WHERE run_id = {run} ORDER BY position"
SOURCE = """SELECT lines, event_lines, refused_lines, pending_bytes FROM sources WHERE path LIKE '%{file}'"""

ANSWERS = [
    # metaharness/claude-complete.jsonl
    ask(CLAUDE, "refused lines (not the one with an unknown field)",
        REFUSED.replace("{file}", "claude-complete.jsonl"), [], [(35, "malformed")]),
    metric(CLAUDE, "lines", "events, refused_lines", (37, 0)),
    metric(CLAUDE, "completeness, close reason, outcome", "completeness, close_reason, outcome",
           ("closed", "completed", "success")),
    ask(CLAUDE, "process", "SELECT status, exit_code FROM events WHERE run_id = {run} AND kind = 'stream.closed'",
        [("exited", 0)]),
    metric(CLAUDE, "tokens (not the sum of the usage lines)", PARTS, (26, 811, 55050, 18770), (38, 25, 55050, 54770)),
    metric(CLAUDE, "input is all of its parts", "input_tokens, tokens_are_lower_bound", (26 + 55050 + 18770, False), (26, False)),
    metric(CLAUDE, "requests (not usage lines)", "requests", (4,), (6,)),
    metric(CLAUDE, "cost", "round(cost_usd, 6)", (0.1842,), (0.1801,)),
    ask(CLAUDE, "the helper model stands beside the main loop",
        "SELECT model, is_side_call, uncached_input_tokens, output_tokens, cost_usd FROM usage WHERE run_id = {run} ORDER BY 2",
        [("claude-sonnet-5", False, 26, 811, 0.1801), ("claude-haiku-4-5", True, 920, 31, 0.0041)],
        [("claude-sonnet-5", False, 946, 842, 0.1842)]),
    ask(CLAUDE, "decisions", DECISIONS, [("abstain", 1), ("allow", 1), ("deny", 2), ("replace", 1)]),
    ask(CLAUDE, "denied calls, and by whom", DENIED, [("toolu_02", "embedder"), ("toolu_04", "deadline")]),
    metric(CLAUDE, "denials (not the vendor's list again)", "denied_calls, denials_are_lower_bound", (2, False), (4, False)),
    metric(CLAUDE, "calls, unfinished", "tool_calls, tool_calls_unfinished, unfinished_is_exact", (5, 0, True), (3, 0, True)),
    ask(CLAUDE, "rate limits are fractions", LIMITS,
        [("five_hour", "allowed", 0.42, "fraction", 42.0, at(1790000400)),
         ("five_hour", "allowed_warning", 0.91, "fraction", 91.0, at(1790000400)),
         ("seven_day", "allowed", 0.17, "fraction", 17.0, at(1790380800))],
        [("five_hour", "allowed", 0.42, "percent", 0.42, at(1790000400)),
         ("five_hour", "allowed_warning", 0.91, "percent", 0.91, at(1790000400)),
         ("seven_day", "allowed", 0.17, "percent", 0.17, at(1790380800))]),
    metric(CLAUDE, "opaque records, retries", "opaque_records, retries, rate_limit_samples", (1, 1, 3)),
    ask(CLAUDE, "the census agrees with the decisions; the vendor lists the same two",
        "SELECT decided_deny, census_denied, vendor_list, denied_calls FROM denial_reconciliation WHERE run_id = {run}",
        [(2, 2, 2, 2)]),
    # metaharness/codex-halted-unknown-event.jsonl
    ask(CODEX, "an unknown event costs its line, not the file", REFUSED.replace("{file}", "codex-halted-unknown-event.jsonl"),
        [(19, "unknown_event")], [(None, "unknown_event")]),
    metric(CODEX, "the marker counts physical lines", "events, refused_lines, completeness", (26, 1, "closed"),
           (26, 1, "inconsistent")),
    ask(CODEX, "close reason and process",
        "SELECT reason, status, attributes->>'signal' FROM events WHERE run_id = {run} AND kind = 'stream.closed'",
        [("steer-halt", "signaled", "9")]),
    metric(CODEX, "no end, so no outcome and no cost", "outcome, cost_usd", (None, None), ("success", 0.0)),
    metric(CODEX, "tokens: the last running total", "input_tokens, cache_read_tokens, uncached_input_tokens, output_tokens",
           (29000, 23000, 6000, 160), (43000, 33000, 10000, 250)),
    metric(CODEX, "without an end the running total is a lower bound", "tokens_are_lower_bound, requests", (True, None), (False, 3)),
    ask(CODEX, "decisions", DECISIONS, [("allow", 2), ("deny", 2)]),
    ask(CODEX, "denied by policy, and by abandonment", DENIED, [("exec-12", "embedder"), ("exec-14", "adapter")]),
    metric(CODEX, "calls (not the hook's view of them)", "tool_calls, tool_calls_unfinished", (3, 1), (7, 5)),
    ask(CODEX, "the unfinished call", UNFINISHED, [("call_Qc",)]),
    ask(CODEX, "of two results the last holds", "SELECT is_error, exit_code FROM tool_calls WHERE run_id = {run} AND call_id = 'call_Qa'",
        [(False, 0)], [(None, None)]),
    ask(CODEX, "rate limits are percents", LIMITS,
        [("codex", None, 38.5, "percent", 38.5, None), ("codex", None, 41.0, "percent", 41.0, None)],
        [("codex", None, 38.5, "fraction", 3850.0, None), ("codex", None, 41.0, "fraction", 4100.0, None)]),
    metric(CODEX, "one message on two lines", "messages, opaque_records", (1, 1), (2, 1)),
    # metaharness/two-runs-budget-and-torn.jsonl
    ask(B10X, "two runs in one file", REFUSED.replace("{file}", TWO_RUNS.name), [(20, "unknown_format")],
        [(20, "unknown_format"), (29, "not_json")]),
    ask(B10X, "the torn last line is pending", SOURCE.replace("{file}", TWO_RUNS.name), [(29, 27, 1, len(TWO_RUNS.read_bytes().split(b"\n")[-1]))]),
    metric(B10X, "completeness, judged alone", "events, completeness, close_reason, outcome, status",
           (18, "closed", "budget", "error", "budget-exhausted"), (18, "inconsistent", "budget", "error", "budget-exhausted")),
    metric(B10X, "tokens: the sum of the turns, cache inside", "input_tokens, cache_read_tokens, uncached_input_tokens, output_tokens",
           (920, 480, 440, 74), (None, None, None, None)),
    metric(B10X, "cost without a usage at the end", "cost_usd", (0.0125,)),
    ask(B10X, "no decision is recorded", DECISIONS, []),
    ask(B10X, "denials stand in warnings", DENIED, [("k1", "hook"), ("k2", "approval"), ("k3", "harness")], []),
    metric(B10X, "denials", "denied_calls, denials_are_lower_bound", (3, False), (0, False)),
    metric(B10X, "calls, unfinished", "tool_calls, tool_calls_unfinished", (3, 0)),
    ask(B10X, "withheld tools", "SELECT tool FROM tools_offered WHERE run_id = {run} AND withheld", [("run",)]),
    metric(B10X, "a harness that cannot speak of limits", "rate_limit_samples, auth_expired", (None, 0), (0, 0)),
    metric(TORN, "completeness, judged alone", "events, refused_lines, completeness, outcome, cost_usd",
           (9, 1, "truncated", None, None), (9, 1, "closed", "success", 0.0)),
    metric(TORN, "tokens: a lower bound", f"{PARTS}, tokens_are_lower_bound", (11, 4, 7000, 90, True), (11, 4, 7000, 90, False)),
    ask(TORN, "decisions", DECISIONS, [("allow", 1), ("deny", 1)]),
    ask(TORN, "denied calls", DENIED, [("toolu_9", "adapter")]),
    metric(TORN, "a cut stream may hold more denials", "denied_calls, denials_are_lower_bound", (1, True), (1, False)),
    metric(TORN, "calls (not requests)", "tool_calls, tool_calls_unfinished, unfinished_is_exact", (2, 1, False), (3, 1, False)),
    ask(TORN, "the unfinished call is undecided",
        "SELECT call_id, decision, state FROM tool_calls WHERE run_id = {run} AND state = 'unfinished'",
        [("toolu_10", None, "unfinished")]),
    ask(TORN, "withheld tools: the harness did not say", "SELECT bool_or(withheld) FROM tools_offered WHERE run_id = {run}",
        [(None,)], [(False,)]),
    metric(TORN, "auth expired", "auth_expired", (1,)),
    # platonic-core/recorded-events-finished.jsonl
    metric(FINISHED, "replay accepts all", "events, refused_lines, completeness, outcome", (38, 0, "closed", "finished")),
    ask(FINISHED, "phase", "SELECT phase, next_seq FROM run_phase WHERE run_id = {run}", [("finished", 38)]),
    metric(FINISHED, "tokens; an unknown usage makes them a lower bound", "input_tokens, output_tokens, tokens_are_lower_bound",
           (1267, 113, True), (1267, 113, False)),
    metric(FINISHED, "this wire knows no cache", "uncached_input_tokens, cache_read_tokens, cost_usd", (None, None, None), (1267, 0, 0.0)),
    ask(FINISHED, "responses, unknown and known zero",
        """SELECT count(*), count(*) FILTER (WHERE input_tokens IS NULL), count(*) FILTER (WHERE input_tokens = 0)
           FROM usage WHERE run_id = {run}""", [(6, 1, 1)], [(6, 0, 2)]),
    metric(FINISHED, "requests, failures", "requests, retries", (7, 1), (6, 1)),
    ask(FINISHED, "turns", "SELECT count(*) FROM turns WHERE run_id = {run}", [(6,)]),
    ask(FINISHED, "calls proposed by the model, and validated",
        """SELECT CAST(sum(CAST(attributes->>'proposed_calls' AS BIGINT)) AS BIGINT),
           (SELECT tool_calls FROM run_metrics WHERE run_id = {run}) FROM events WHERE run_id = {run} AND event = 'model_responded'""",
        [(6, 4)], [(6, 6)]),
    ask(FINISHED, "denials: policy and approval", "SELECT call_id, evidence FROM decisions WHERE run_id = {run} AND decision = 'deny' ORDER BY position",
        [("c2", "policy"), ("c3", "approval")]),
    metric(FINISHED, "a rejected batch is no denial", "denied_calls, warnings", (2, 1), (3, 1)),
    ask(FINISHED, "approvals", "SELECT call_id, state, answered_by FROM approvals WHERE run_id = {run} ORDER BY position",
        [("c3", "denied", "human:mara"), ("c4", "granted", "human:mara")]),
    ask(FINISHED, "started, failed, unfinished",
        """SELECT count(*) FILTER (WHERE started_at IS NOT NULL), count(*) FILTER (WHERE is_error),
           count(*) FILTER (WHERE state = 'unfinished') FROM tool_calls WHERE run_id = {run}""", [(2, 1, 0)], [(4, 1, 2)]),
    ask(FINISHED, "served models", "SELECT models FROM runs WHERE run_id = {run}",
        [(["vendor/model-5-2026-08-01", "vendor/small-2"],)]),
    # platonic-core/ledger-v2-uncommitted-tail.jsonl
    ask(LEDGER, "a whole JSON tail without its newline is not data", SOURCE.replace("{file}", "ledger-v2-uncommitted-tail.jsonl"),
        [(17, 16, 0, 219)], [(17, 17, 0, 0)]),
    ask(LEDGER, "records, and the line without a sequence number",
        "SELECT count(seq), count(*) - count(seq), max(seq) FROM events WHERE run_id = {run}", [(15, 1, 14)], [(16, 1, 15)]),
    metric(LEDGER, "completeness", "completeness, outcome", ("open", None), ("closed", "finished")),
    ask(LEDGER, "phase", "SELECT phase, next_seq FROM run_phase WHERE run_id = {run}", [("tool running", 15)], [("turn concluded", 16)]),
    metric(LEDGER, "tokens", "input_tokens, output_tokens, requests, tokens_are_lower_bound", (120, 15, 2, True), (120, 15, 2, False)),
    ask(LEDGER, "unfinished", UNFINISHED, [("c2",)], []),
    metric(LEDGER, "denials of an open run are a lower bound", "denied_calls, denials_are_lower_bound", (0, True), (0, False)),
    ask(LEDGER, "approvals", "SELECT call_id, state FROM approvals WHERE run_id = {run}", [("c2", "granted")]),
    ask(LEDGER, "identity", "SELECT attributes->>'profile_id' IS NOT NULL, attributes->>'agent_id' FROM runs WHERE run_id = {run}",
        [(True, None)]),
    # platonic-core/canceled-then-refused-lines.jsonl
    metric(CANCELED, "a good run before bad lines", "events, completeness, outcome, close_reason", (7, "closed", "canceled", "run canceled"),
           (7, "inconsistent", "failed", "run canceled")),
    metric(CANCELED, "tokens", "input_tokens, output_tokens", (90, 12)),
    metric(CANCELED, "a call that waits for approval did not start", "tool_calls, tool_calls_unfinished, tool_calls_not_started, denied_calls",
           (1, 0, 1, 0), (1, 1, 0, 0)),
    ask(CANCELED, "each bad line by its own rule", REFUSED.replace("{file}", "canceled-then-refused-lines.jsonl"),
        [(8, "illegal_transition"), (9, "sequence_mismatch"), (10, "unknown_event"), (11, "unknown_field"), (12, "foreign_run_id"),
         (13, "unknown_field"), (14, "blank_id"), (15, "not_a_record")],
        [(8, "illegal_transition")]),
    ask(CANCELED, "the tail is uncommitted, no error", SOURCE.replace("{file}", "canceled-then-refused-lines.jsonl"), [(16, 7, 8, 66)]),
    ask(CANCELED, "expected and found", "SELECT detail FROM refusals WHERE reason = 'sequence_mismatch'", [("expected 7, found 9",)]),
    ask(CANCELED, "approvals", "SELECT call_id, state FROM approvals WHERE run_id = {run}", [("c1", "waiting")]),
    # harness-lab/generic-stdout.jsonl
    ask("generic", "events and plain text",
        """SELECT count(*) FILTER (WHERE event <> 'plain_text'), list(line ORDER BY line) FILTER (WHERE event = 'plain_text')
           FROM events WHERE run_id LIKE 'generic-%'""", [(19, [1, 17, 19, 23])]),
    ask("generic", "nothing is refused, nothing pending", SOURCE.replace("{file}", "generic-stdout.jsonl"), [(23, 23, 0, 0)], [(23, 19, 4, 0)]),
    ask("generic", "tokens (reasoning is inside output)",
        f"SELECT {PARTS}, reasoning_tokens, total_tokens FROM run_metrics WHERE run_id LIKE 'generic-%'",
        [(2010, 135, 300, 7, 2, 2452)], [(2010, 135, 300, 7, 2, 2454)]),
    ask("generic", "requests", "SELECT requests FROM run_metrics WHERE run_id LIKE 'generic-%'", [(3,)]),
    ask("generic", "the agent's own calls, without the launcher", "SELECT tool_calls FROM run_metrics WHERE run_id LIKE 'generic-%'",
        [(6,)], [(7,)]),
    ask("generic", "shell commands", "SELECT count(*) FROM events WHERE run_id LIKE 'generic-%' AND event = 'command_started'", [(3,)]),
    ask("generic", "unfinished (Harness Lab's own rule says 1)",
        """SELECT call_id, state FROM tool_calls WHERE run_id LIKE 'generic-%' AND state IN ('unfinished', 'interrupted')
           ORDER BY position""", [("a3", "interrupted"), ("a5", "unfinished")], [("a5", "unfinished")]),
    ask("generic", "Harness Lab's published rule beside ours",
        "SELECT DISTINCT harness_lab_rule FROM tool_calls_unfinished WHERE run_id LIKE 'generic-%'", [(1,)], [(2,)]),
    ask("generic", "a command without an id cannot be paired",
        "SELECT count(*) FROM tool_calls WHERE run_id LIKE 'generic-%' AND call_id IS NULL AND state = 'undecidable'", [(1,)], [(0,)]),
    ask("generic", "parent_call_id on a line is not honoured",
        "SELECT count(*) FROM tool_calls WHERE run_id LIKE 'generic-%' AND parent_call_id IS NOT NULL", [(0,)], [(1,)]),
    ask("generic", "messages, errors, file changes",
        "SELECT messages, errors, file_changes FROM run_metrics WHERE run_id LIKE 'generic-%'", [(1, 1, 1)]),
    ask("generic", "a reasoning event is one, whatever it counts",
        "SELECT count(*) FROM events WHERE run_id LIKE 'generic-%' AND kind = 'reasoning'", [(1,)], [(3,)]),
    ask("generic", "denials", "SELECT denied_calls, denials_are_lower_bound FROM run_metrics WHERE run_id LIKE 'generic-%'",
        [(1, True)], [(0, False)]),
    ask("generic", "rate limits: this stream has none to tell", "SELECT rate_limit_samples FROM run_metrics WHERE run_id LIKE 'generic-%'",
        [(None,)], [(1,)]),
    ask("generic", "no end, no outcome", "SELECT completeness, outcome FROM run_metrics WHERE run_id LIKE 'generic-%'",
        [("undecidable", None)], [("truncated", None)]),
    # harness-lab/events-claude-blocked.jsonl
    metric(BLOCKED, "completeness", "events, completeness, status, outcome", (39, "closed", "blocked", "fail")),
    metric(BLOCKED, "tokens: only the final row", f"{PARTS}, total_tokens", (55, 405, 21480, 4390, 26330), (113, 440, 43860, 9480, 53893)),
    metric(BLOCKED, "cost", "cost_usd", (0.0931,)),
    metric(BLOCKED, "calls, unfinished (a synthetic interrupted finish)", "tool_calls, tool_calls_unfinished", (7, 1), (7, 0)),
    ask(BLOCKED, "the unfinished call", UNFINISHED, [("tu_6",)], []),
    ask(BLOCKED, "shell commands, calls of a subagent",
        """SELECT count(*) FILTER (WHERE event = 'command_started'), count(parent_call_id)
           FROM events WHERE run_id = {run} AND kind = 'tool.started'""", [(4, 1)]),
    metric(BLOCKED, "model requests", "requests", (7,), (8,)),
    metric(BLOCKED, "retries, errors", "retries, errors, opaque_records", (1, 1, 1)),
    metric(BLOCKED, "limit markers carry no values", "rate_limit_markers, rate_limit_samples, rate_limit_peak_percent",
           (2, None, None), (2, 2, 0.0)),
    ask(BLOCKED, "denied calls, of which hooks 2", DENIED,
        [("tu_2", "PreToolUse:Bash"), ("tu_5", "permission"), ("tu_7", "PreToolUse:Bash")], [("tu_5", "permission"), ("tu_5", "permission")]),
    metric(BLOCKED, "denials", "denied_calls", (3,), (2,)),
    # harness-lab/events-export-two-runs-torn.jsonl
    ask(LAB_CODEX, "refused", REFUSED.replace("{file}", "events-export-two-runs-torn.jsonl"), [(10, "unknown_event")],
        [(10, "unknown_event"), (26, "not_json")]),
    ask(LAB_CODEX, "the torn last line is pending", "SELECT lines, event_lines, pending_bytes > 0 FROM sources WHERE path LIKE '%two-runs-torn.jsonl'",
        [(26, 24, True)]),
    ask(LAB_CODEX, "times without a zone are UTC", "SELECT started_at FROM runs WHERE run_id = {run}",
        [(datetime(2026, 10, 15, 6, 0, 1, tzinfo=UTC),)]),
    metric(LAB_CODEX, "completeness", "events, completeness, status, outcome", (16, "closed", "completed", "pass")),
    ask(LAB_CODEX, "it passed with exit 1 and an error", "SELECT exit_code FROM events WHERE run_id = {run} AND kind = 'run.ended'", [(1,)]),
    metric(LAB_CODEX, "errors", "errors", (1,)),
    metric(LAB_CODEX, "tokens: the sum, whatever `cumulative` says", f"{PARTS}, reasoning_tokens", (3000, 350, 8000, 0, 60),
           (2000, 150, 4000, 0, 30)),
    metric(LAB_CODEX, "calls, unfinished", "tool_calls, tool_calls_unfinished", (3, 1)),
    ask(LAB_CODEX, "the unfinished call", UNFINISHED, [("x3",)]),
    metric(LAB_GENERIC, "a sequence number of a refused line leaves no gap", "events, refused_lines, completeness, outcome",
           (8, 1, "truncated", None), (8, 1, "inconsistent", None)),
    metric(LAB_GENERIC, "tokens", "uncached_input_tokens, output_tokens, tokens_are_lower_bound", (700, 20, True), (700, 20, False)),
    metric(LAB_GENERIC, "calls (not the launcher)", "tool_calls, tool_calls_unfinished", (3, 2), (4, 3)),
    ask(LAB_GENERIC, "an id opened again is another call",
        "SELECT call_id, call_occurrence, state FROM tool_calls WHERE run_id = {run} ORDER BY call_id, call_occurrence",
        [("g1", 1, "finished"), ("g1", 2, "unfinished"), ("g2", 1, "unfinished")], [("g1", 1, "finished"), ("g2", 1, "unfinished")]),
    ask(LAB_GENERIC, "Harness Lab's id-set rule (misses the reused id, counts the launcher)",
        "SELECT DISTINCT harness_lab_rule FROM tool_calls_unfinished WHERE run_id = {run}", [(2,)], [(3,)]),
    ask(LAB_GENERIC, "a finish that nobody started",
        """SELECT call_id FROM events AS e WHERE run_id = {run} AND kind = 'tool.finished'
           AND call_id NOT IN (SELECT call_id FROM tool_calls WHERE run_id = {run})""", [("g9",)]),
    metric(LAB_GENERIC, "limits", "rate_limit_samples", (None,), (0,)),
]  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """The sample streams, ingested once."""
    made = open_lake(tmp_path_factory.mktemp("samples") / "lake", create=True)
    report = made.ingest(SAMPLES)
    assert report.problems == []
    return made


@pytest.fixture(scope="module")
def tables(lake):
    """The relations that the questions ask, each taken once: to plan a view costs more than to read these few rows."""
    names = {name for name in lake.tables for answer in ANSWERS if re.search(rf"(FROM|JOIN) {name}\b", answer.sql)}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in sorted(names):
            connection.register(name, lake.sql(f"FROM {name}").to_arrow_table())
        yield connection


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.question)
def test_right_and_not_naive(tables, answer):
    got = tables.execute(answer.sql).fetchall()
    assert got == answer.right
    assert answer.naive is None or got != answer.naive


def test_the_answers_are_those_of_the_samples_own_checker(lake):
    """`expected.json` was derived by another program from the same rules."""
    expected = json.loads((SAMPLES / "expected.json").read_text())
    ours = {row["run_id"]: row for row in lake.sql("FROM run_metrics").pl().to_dicts()}
    seen = 0
    for answers in expected.values():
        for run_id, said in answers.get("runs", {}).items():
            row = ours[run_id]
            seen += 1
            if "physical_lines" in said:
                assert row["events"] == said["accepted"]
                assert row["events"] + row["refused_lines"] == said["physical_lines"]
                assert row["completeness"] == said["completeness"].replace("complete", "closed")
                assert row["close_reason"] == said["reason"]
                assert row["cost_usd"] == said["total_cost_usd"]
                assert row["tool_calls"] == said["distinct_calls"]
                assert row["tool_calls_unfinished"] == len(said["unfinished"])
                assert row["denied_calls"] == len(said["denied_calls"]) + said["denial_warnings"]
                assert row["opaque_records"] == said["opaque"]
                assert row["output_tokens"] == said["tokens"]["output_tokens"] != said["naive_usage_sum"][
                    "output_tokens"
                ] or (said["tokens"] == said["naive_usage_sum"])
            else:
                assert row["events"] == said["events"]
                assert row["outcome"] == said["outcome"]
                assert row["status"] == said["status"]
                assert row["tool_calls"] == said["tool_calls_without_launcher"]
                assert row["output_tokens"] == said["tokens"]["output_tokens"]
                assert row["uncached_input_tokens"] == said["tokens"]["input_tokens"]
                assert row["rate_limit_markers"] == said["rate_limit_markers"]
                assert row["errors"] == said["errors"]
    assert seen == 7


def test_nothing_is_wrong_with_the_lake(lake):
    found = {name: rel.fetchall() for name, rel in lake.check().items()}
    assert {name: rows for name, rows in found.items() if rows} == {}
    assert lake.sql("SELECT call_id FROM orphan_results").fetchall() == [("g9",)], "the one result nobody asked for"


def test_cut_before_its_end_the_run_has_a_lower_bound(tmp_path):
    """Without session.ended the six usage lines stand for four requests: one per id, the fullest."""
    lines = (SAMPLES / "metaharness/claude-complete.jsonl").read_bytes().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if b'"event":"session.ended"' in line)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:end]))
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "cut.jsonl")
    got = lake.sql(
        f"SELECT {PARTS}, tokens_are_lower_bound, completeness, denials_are_lower_bound FROM run_metrics"
    ).fetchall()
    assert got == [(26, 19, 55050, 18770, True, "truncated", True)]
    assert got[0][:4] != (38, 25, 55050, 54770)


def test_what_is_no_wire_of_ours_is_told(lake):
    """The vendor's own stream stands beside the samples; its wire is another's."""
    rows = lake.sql("SELECT path, status_reason FROM sources WHERE status = 'skipped'").fetchall()
    assert all(reason for _, reason in rows)


def test_the_command_line_says_the_same(lake, capsys):
    def run(*arguments: str) -> Any:
        assert cli.run([*arguments, "--lake", str(lake.path), "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    rows = {row["run_id"]: row for row in run("report", "run_metrics")}
    assert rows[CLAUDE]["output_tokens"] == 811
    assert rows[CODEX]["tool_calls"] == 3
    assert rows[TORN]["denials_are_lower_bound"] is True
    assert rows[B10X]["rate_limit_samples"] is None
    assert rows[LEDGER]["completeness"] == "open"
    assert rows[CODEX]["events"] == 26
    windows = {(row["limit_id"], row["wire"]): row for row in run("report", "rate_limit_windows")}
    assert windows["five_hour", "metaharness"]["peak_used_percent"] == 91.0
    assert windows["codex", "metaharness"]["resets_at"] is None
    assert windows["five_hour", "claude-stream"]["peak_used_percent"] == 93.0  # Harness Lab's own events have none
    assert run("sql", "SELECT count(*) AS n FROM refusals WHERE reason = 'blank_id'") == [{"n": 1}]
    denied = run("report", "denials", "--run", CLAUDE)
    assert sum(row["denied_calls"] for row in denied) == 2
