"""Public reports of wrong counts on Codex's transcripts, one row each: the wrong number and the right one."""
# The answers read as a table, one row per report.
# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from native_make import CODEX_REJECTED, DAY, Exec, Rollout, Tokens, dump, epoch, window
from native_read import Answers
from native_table import Report, Table, counted_runs, each, limits, tools, total, totals

Files = dict[str, Any]


def steps(one: Rollout, *, again: bool = False) -> Rollout:
    """Two turns of a request each: 1,000 + 100 and 300 + 40."""
    for given, output in ((1000, 100), (300, 40)):
        one.turn().spend(given, 0, output)
        if again:
            one.again()
    return one


def repeated_once(k: str) -> Files:
    return {"r.jsonl": Rollout(f"{k}-a").turn().spend(1000, 0, 100).again().spend(300, 0, 40)}


def two_turns_repeated(k: str) -> Files:
    one = Rollout(f"{k}-a")
    for given, output in ((1400, 100), (1700, 100)):
        one.turn().spend(given, 0, output).again()
    return {"r.jsonl": one}


def one_repeated(k: str) -> Files:
    return {"r.jsonl": Rollout(f"{k}-a").turn().spend(100, 0, 10).again()}


def parent(k: str) -> Rollout:
    """Three requests: 1,000, 2,000 and 3,000 tokens given."""
    one = Rollout(f"{k}-p").turn(f"{k}-t1").spend(1000, 500, 10).call(f"{k}-c1").output(f"{k}-c1").spend(2000, 1500, 20)
    return one.done(f"{k}-t1").turn(f"{k}-t2").spend(3000, 2500, 30).done(f"{k}-t2")


def fork(k: str, name: str, of: Rollout, start: float, **meta: Any) -> Rollout:
    """A file that replays another, with new times."""
    return Rollout(f"{k}-{name}", start=start, **(meta or {"forked_from_id": of.thread})).replay(of)


def spawned(of: str) -> dict[str, Any]:
    """What a child says of its parent inside `source` alone."""
    return {"source": {"subagent": {"thread_spawn": {"parent_thread_id": of, "depth": 1}}}}


def spawn_replay(k: str) -> Files:
    one = parent(k)
    child = fork(k, "b", one, 100, **spawned(one.thread)).turn(f"{k}-t3").spend(400, 0, 5)
    return {"p.jsonl": one, "b.jsonl": child}


def branch_copies(k: str) -> Files:
    one = parent(k)
    made = {name: fork(k, name, one, start) for name, start in (("b", 100), ("c", DAY))}
    for name, child in made.items():
        child.turn(f"{k}-{name}1").spend(70, 0, 1)
    return {"p.jsonl": one} | {f"{name}.jsonl": child for name, child in made.items()}


def mere_copies(k: str) -> Files:
    one = parent(k)
    return {"p.jsonl": one} | {f"{n}.jsonl": fork(k, f"f{n}", one, 100 * n) for n in range(1, 5)}


def inherited_total(k: str) -> Files:
    """The first event of a child holds its parent's running total; only its `last` is the child's."""
    one = Rollout(f"{k}-p").turn(f"{k}-t1").spend(5000, 0, 10)
    child = Rollout(f"{k}-b", start=100, parent_thread_id=f"{k}-p").turn(f"{k}-t2")
    child.count((3_157_908_247, 0, 900, 0), (9035, 0, 100, 0)).spend(748_286, 0, 50)
    return {"b.jsonl": child, "p.jsonl": one}


def lost_event(k: str) -> Files:
    """One event repeats, and one was never written: the total moves by more than `last`."""
    one = Rollout(f"{k}-a").turn().spend(1000, 0, 10).again().again()
    return {"r.jsonl": one.count((4000, 0, 40, 0), (1200, 0, 10, 0))}


def children_without_a_parent(k: str) -> Files:
    """The parent's file is gone; five children replay the same two requests and add one each."""
    made = {}
    for n in range(5):
        child = Rollout(f"{k}-b{n}", start=100 + n, parent_thread_id=f"{k}-gone").meta(f"{k}-gone")
        child.turn(f"{k}-t").spend(2000, 0, 20).spend(4000, 0, 30).turn(f"{k}-u{n}").spend(10 + n, 0, 1)
        made[f"b{n}.jsonl"] = child
    return made


def fork_of_a_fork(k: str) -> Files:
    one = parent(k)
    second = fork(k, "b", one, 100).turn(f"{k}-t3").spend(500, 0, 5)
    third = fork(k, "c", second, 200).turn(f"{k}-t4").spend(50, 0, 1)
    return {"c.jsonl": third, "p.jsonl": one, "b.jsonl": second}


def equal_totals(k: str) -> Files:
    """Two children whose first totals are both 1,000 tokens, of other parts."""
    first = Rollout(f"{k}-b", start=1, parent_thread_id=f"{k}-p").turn(f"{k}-t1").spend(900, 0, 100)
    return {
        "b.jsonl": first,
        "c.jsonl": Rollout(f"{k}-c", start=2, parent_thread_id=f"{k}-p").turn(f"{k}-t2").spend(800, 0, 200),
    }


def replaying_and_fresh_children(k: str) -> Files:
    """One child replays its parent, which it names in `source` alone; another begins with an equal request of its own."""
    one = parent(k)
    replaying = fork(k, "b", one, 100, **spawned(one.thread)).turn(f"{k}-t3").spend(60, 0, 1)
    fresh = Rollout(f"{k}-c", start=101, **spawned(one.thread)).turn(f"{k}-t4").spend(1000, 500, 10)
    return {"b.jsonl": replaying, "c.jsonl": fresh, "p.jsonl": one}


def one_session_id(k: str) -> Files:
    """`session_id` is the root's in each of the threads."""
    made = {"p.jsonl": Rollout(f"{k}-p", session_id=f"{k}-p").turn(f"{k}-t").spend(100, 0, 1)}
    for n in (1, 2):
        child = Rollout(f"{k}-b{n}", start=n, session_id=f"{k}-p", parent_thread_id=f"{k}-p")
        made[f"b{n}.jsonl"] = child.turn(f"{k}-u{n}").spend(200 * n, 0, 2)
    return made


def resumed_task(k: str) -> Files:
    return {"a.jsonl": Exec(f"{k}-a").turn().done(1000, 0, 10), "b.jsonl": Exec(f"{k}-a").turn().done(1800, 0, 15)}


def cached_inside(k: str) -> Files:
    return {"r.jsonl": Rollout(f"{k}-a").turn().spend(1000, 800, 50, 20)}


def archived(k: str) -> Files:
    one = steps(Rollout(f"{k}-a"))
    return {"sessions/r.jsonl": one, "archived_sessions/r.jsonl": one.cut(4)}


def estimate(k: str) -> Files:
    """Behind a compaction, `last.total_tokens` guesses the new context, above the model's window."""
    one = Rollout(f"{k}-a").turn().spend(4000, 0, 40)
    return {"r.jsonl": one.count(one.total, (0, 0, 0, 0), total_tokens=4_280_000).spend(500, 0, 5)}


def null_limits(k: str) -> Files:
    return {"r.jsonl": Rollout(f"{k}-a").turn().limits(None).spend(100, 0, 1)}


def relative_resets(k: str) -> Files:
    """The same reset, told by two rows ten minutes apart."""
    one = Rollout(f"{k}-a", version="0.44.0").turn()
    one.clock = 0
    one.spend(100, 0, 1, limits={"primary": window(5, 299, seconds=18_000)})
    one.clock = 600
    return {"r.jsonl": one.spend(100, 0, 1, limits={"primary": window(7, 299, seconds=17_400)})}


def null_windows(k: str) -> Files:
    gauge = {"limit_id": f"{k}-codex", "primary": window(20, 300, epoch(9000)), "secondary": None}
    premium = {"limit_id": f"{k}-premium", "primary": None, "secondary": None, "credits": {"balance": "3"}}
    return {"r.jsonl": Rollout(f"{k}-a").turn().limits(gauge).limits(premium).spend(100, 0, 1)}


def weekly_primary(k: str) -> Files:
    gauge = {"limit_id": f"{k}-codex", "primary": window(41, 10_079, epoch(90_000)), "secondary": None}
    return {"r.jsonl": Rollout(f"{k}-a").turn().spend(100, 0, 1, limits=gauge)}


def compressed(k: str) -> Files:
    return {"r.jsonl.zst": pa.compress(steps(Rollout(f"{k}-a")).data, codec="zstd", asbytes=True)}


def pages(k: str) -> Files:
    """Two pages of a thread: ordinals begin again, and the second page repeats the last total of the first."""
    first = Rollout(f"{k}-a", history_mode="paginated").turn(f"{k}-t1").spend(1000, 0, 100)
    base = {"history_mode": "paginated", "history_base": {"thread_id": f"{k}-a"}}
    second = Rollout(f"{k}-a", start=7200, **base)
    second.rows.append({**first.rows[-1], "timestamp": second.rows[0]["timestamp"]})
    second.total = first.total
    second.turn(f"{k}-t2").spend(300, 0, 40)
    for one in (first, second):
        for ordinal, row in enumerate(one.rows):
            row["ordinal"] = ordinal
    return {"r_2.jsonl": second, "r_1.jsonl": first}


def like_exec(k: str) -> Files:
    return {"r.jsonl": steps(Rollout(f"{k}-a").turn(f"{k}-t").call(f"{k}-c").output(f"{k}-c"))}


def exec_turns(*turns: Tokens) -> Any:
    """One capture with a turn for each of the thread's running totals."""

    def make(k: str) -> Files:
        one = Exec(f"{k}-a")
        for number, (given, cached, output, _) in enumerate(turns):
            one.turn().say(f"item_{number}").done(given, cached, output)
        return {"e.jsonl": one}

    return make


def two_captures(k: str) -> Files:
    return {
        "a.jsonl": Exec(f"{k}-a").turn().done(772_000, 0, 90),
        "b.jsonl": Exec(f"{k}-a").turn().done(812_000, 0, 99),
    }


def before_items(k: str) -> Files:
    """What `--json` printed until September 2025: configuration, prompt, then events by `msg`."""

    def said(kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": "0", "msg": {"type": kind, **fields}}

    def counted(given: int, cached: int, output: int) -> dict[str, Any]:
        figures = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": output,
                   "reasoning_output_tokens": 0, "total_tokens": given + output}  # fmt: skip
        info = {"total_token_usage": figures, "last_token_usage": figures, "model_context_window": 272_000}
        return said("token_count", info=info)

    rows = [
        {"workdir": "/work", "model": "gpt-5", "provider": "openai", "approval": "never", "sandbox": "read-only"},
        {"prompt": "sort the parcels"},
        said("task_started", model_context_window=272_000),
        said("exec_command_begin", call_id=f"{k}-c", command=["make"], cwd="/work"),
        said("exec_command_end", call_id=f"{k}-c", stdout="ok", stderr="", exit_code=0),
        counted(500, 100, 20),
        said("agent_message", message="done"),
        counted(1200, 600, 45),
        said("task_complete", last_agent_message="done"),
    ]
    return {"e.jsonl": dump(rows)}


def declined(k: str) -> Files:
    one = Exec(f"{k}-a").turn().command("item_0", status="declined", exit_code=-1)
    return {"e.jsonl": one.command("item_1", status="failed", exit_code=2).done(100, 0, 1)}


def thread_totals(a: Answers) -> tuple[Any, list[str], int]:
    """A total, how it is called, and how many rows take it for the size of a context."""
    gauges = a.lake.sql("SELECT run_id FROM events WHERE context_tokens IS NOT NULL").fetchall()
    runs = {row["run_id"] for row in a.metrics}
    return (
        a.total("input_tokens"),
        sorted({row["usage_source"] for row in a.usage}),
        sum(run in runs for (run,) in gauges),
    )


def resets(a: Answers) -> set[int]:
    return {row["resets_at"] // 60 * 60 for row in a.samples}


def wires(a: Answers) -> list[tuple[str, int]]:
    return [(row["wire"], row["tool_calls"]) for row in a.metrics]


def turns_and_totals(a: Answers) -> tuple[int, Any]:
    return len(a.turns), a.total("input_tokens")


def refused_and_failed(a: Answers) -> tuple[int, int]:
    """Distinct calls that were refused, and failed calls that were not."""
    failed = [row for row in a.calls if row["is_error"] and row["state"] != "denied"]
    return a.total("denied_calls"), len(failed)


def by_process(a: Answers) -> list[Any]:
    return sorted(a.by_run("input_tokens").values())


IN, OUT = "input_tokens", "output_tokens"
REPORTS = [
    Report(46, "ccusage #884", "repeated totals counted", repeated_once, total("total_tokens"), 2540, 1440),
    Report(47, "ccusage #1288", "two turns, two re-emits", two_turns_repeated, total("total_tokens"), 6600, 3300),
    Report(48, "tokscale PR #300", "last of every event summed", one_repeated, total("total_tokens"), 220, 110),
    Report(49, "ccusage #950", "replay of a spawned child counted", spawn_replay, each(IN), {"p": 6000, "b": 6400}, {"p": 6000, "b": 400}),
    Report(50, "ccusage #988", "branch copies counted", branch_copies, totals("requests", IN), (11, 18_140), (5, 6140)),
    Report(51, "ccusage #1349", "files that only copy", mere_copies, totals("requests", IN, "tool_calls"), (15, 30_000, 5), (3, 6000, 1)),
    Report(52, "CodexBar #3524", "first event holds the parent's total", inherited_total, each(IN),
           {"p": 5000, "b": 3_158_656_533}, {"p": 5000, "b": 757_321}),
    Report(53, "CodexBar #2037", "last of every event summed, a lost one missing", lost_event, totals("requests", IN), (4, 4200), (2, 4000)),
    Report(54, "tokscale #679", "children of a lost parent", children_without_a_parent, totals("requests", IN), (15, 30_060), (7, 6060)),
    Report(55, "waku #38", "fork of a fork", fork_of_a_fork, each(IN), {"p": 6000, "b": 6500, "c": 6550}, {"p": 6000, "b": 500, "c": 50}),
    Report(56, "codeburn #413", "key of the total alone", equal_totals, totals("requests", IN), (1, 900), (2, 1700)),
    Report(57, "codeburn #1380", "parent named in source alone", replaying_and_fresh_children, each(IN),
           {"p": 6000, "b": 6060, "c": 1000}, {"p": 6000, "b": 60, "c": 1000}),
    Report(58, "cc-switch #5184", "keyed by session_id: children overwritten", one_session_id, counted_runs, 1, 3),
    Report(59, "multica #5568", "resumed task charged the thread's total", resumed_task, by_process, [1000, 1800], [800, 1000]),
    Report(60, "CodexBar PR #1797", "cached added to input", cached_inside, totals(IN, "uncached_input_tokens", "cache_read_tokens"),
           (1800, 1000, 800), (1000, 200, 800)),
    Report(61, "ccusage 3c2e5aeb", "archived copy counted", archived, totals("requests", "total_tokens"), (3, 2540), (2, 1440)),
    Report(62, "codex #24089", "estimate of the context taken for usage", estimate, total("total_tokens"), 4_284_545, 4545),
    Report(63, "codex #14880", "null limits shown as none used", null_limits, limits("used_percent"), [(0.0,)], None),
    Report(64, "codex #4761", "relative reset moves", relative_resets, resets, {epoch(17_400), epoch(18_000)}, {epoch(18_000)}),
    Report(65, "aya #103", "null windows show stale 20 %", null_windows, limits("limit_id", "used_percent"),
           [("r65-codex", 20.0), ("r65-premium", 20.0)], [("r65-codex", 20.0)]),
    Report(66, "orca PR #8633", "week in the primary slot shown as 5 h", weekly_primary, limits("window_minutes"), [(300,)], [(10_080,)]),
    Report(67, "codex-trace #101", "compressed file skipped", compressed, total("total_tokens"), None, 1440),
    Report(68, "yepanywhere #122", "page 2 on its own", pages, totals("requests", "total_tokens"), (3, 2540), (2, 1440)),
    Report(69, "yoetz #418", "read with the grammar of exec", like_exec, wires, [("codex-exec", 0)], [("codex-rollout", 1)]),
    Report(70, "codex #17539", "thread's total taken for a context", exec_turns((6_900_000, 6_000_000, 9, 0)), thread_totals,
           (6_900_000, ["cumulative"], 1), (6_900_000, ["cumulative"], 0)),
    Report(71, "gitmoot #661", "running totals added up", exec_turns((16_504, 0, 20, 0), (85_681, 0, 40, 0), (103_779, 0, 45, 0)),
           totals(IN, OUT), (205_964, 105), (103_779, 45)),
    Report(72, "talon PR #575", "resumed process shown with all before it", two_captures, by_process, [772_000, 812_000], [40_000, 772_000]),
    Report(73, "lionagi PR #2117", "10/5 and 30/15 make 40/20", exec_turns((10, 0, 5, 0), (30, 0, 15, 0)), totals(IN, OUT), (40, 20), (30, 15)),
    Report(74, "watt-mind factory PR #388", "turns summed", exec_turns((7, 1, 2, 0), (9, 2, 3, 0), (20, 9, 4, 0)),
           totals(IN, "cache_read_tokens", OUT), (36, 12, 9), (20, 9, 4)),
    Report(75, "codex #5028", "format before items unknown", before_items, totals(IN, "cache_read_tokens", OUT, "tool_calls"),
           (None, None, None, 0), (1200, 600, 45, 1)),
    Report(76, "codex #13217", "turns have no ids", exec_turns((7, 1, 2, 0), (9, 2, 3, 0)), turns_and_totals, (1, 9), (2, 9)),
    Report(77, "codex PR #7101", "declined looks like failed", declined, refused_and_failed, (0, 2), (1, 1)),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = Table(tmp_path_factory.mktemp("reports"), REPORTS)
    yield made
    made.lake.close()


@pytest.mark.parametrize("report", REPORTS, ids=str)
def test_report(report, table):
    found = report.ask(table.answers(report))
    assert found == report.right, report.wrong
    assert found != report.naive


def test_sums_agree(table):
    assert table.all.sums_disagree() == []


def test_nothing_is_wrong_with_the_lake(table):
    assert {name: rows for name, found in table.lake.check().items() if (rows := found.fetchall())} == {}


def test_a_rejected_command_is_denied_and_an_aborted_one_is_not(tmp_path):
    one = Rollout("t-1").turn("u-1").call("c1").output("c1", CODEX_REJECTED).call("c2")
    one.output("c2", "aborted by user after 29.7s").call("c3").output("c3", "Operation not permitted").call("c4")
    path = tmp_path / "r.jsonl"
    path.write_bytes(one.data)
    got = Answers.of(tmp_path, [path])
    assert got.denied() == {"c1": {"evidence": {"output_text"}, "reasons": {"rejected-by-user"}}}
    assert {row["call_id"]: row["state"] for row in got.calls} == {
        "c1": "denied", "c2": "interrupted", "c3": "finished", "c4": "unfinished",
    }  # fmt: skip
    assert tools(got) == ["exec_command"] * 4
    assert got.metrics[0]["completeness"] == "open"
