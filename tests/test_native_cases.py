"""Thirty small cases of native transcripts with their right answers, each a corpus of its own.

`fixtures/native/expected.json` says per case what is right, run by run and over the corpus, and names wrong ways with
the values they give: `naive`. Each case is read alone; and all cases into one lake: at once in the given order; the
last file of each first, one file of a case at a time, then all once more, then copies of all; and while the files
grow. No answer may depend on that.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES
from native_read import PARTS, Answers, added

NATIVE = FIXTURES / "native"
CASES: dict[str, Any] = json.loads((NATIVE / "expected.json").read_text())
FIGURES = ("requests", *PARTS)
SLACK = 60  # seconds by which resets of one window may differ beyond the spread a case names

# the capture a run is: a thread's processes are told apart by the file alone
EXEC_FILES = {
    "019e7853-8500-740f-a995-351156804ea4": "ce-resumed-two-files/a-first.jsonl",
    "019e7853-8500-740f-a995-351156804ea4#2": "ce-resumed-two-files/b-resumed.jsonl",
    "019e7853-8500-740f-a995-351156804ea4#3": "ce-resumed-two-files/c-resumed.jsonl",
}


class Case:
    """A case and what a lake says of its runs; `wrong` gathers what is not as expected."""

    def __init__(self, name: str, got: Answers, *, is_alone: bool) -> None:
        self.name, self.said, self.is_alone = name, CASES[name], is_alone
        self.wrong: list[Any] = []
        if not is_alone:
            own = {row["run_id"] for row in got.events if f"/native/{name}/" in row["path"]}
            got = got.only(own.__contains__)
        self.got = got
        self.ids = {run["run_key"]: self.run_id(run) for run in self.said["runs"]}

    def expect(self, what: str, right: Any, found: Any) -> None:
        if right != found:
            self.wrong.append((what, "right", right, "found", found))

    def run_id(self, run: dict[str, Any]) -> str | None:
        """Our name of a run: the same, but that of a process of a capture is found by file and place in it."""
        file = run.get("file") or EXEC_FILES.get(run["run_key"])
        if file is None:
            return run["run_key"]
        here = [row for row in self.got.events if row["path"].endswith(f"/native/{file}")]
        in_order = list(dict.fromkeys(row["run_id"] for row in here if row["run_id"].startswith(base(run))))
        processes = list(dict.fromkeys(row["run_id"] for row in here))
        place = run.get("process", 1) - 1
        return processes[place] if place < len(processes) and processes[place] in in_order else None

    def runs(self) -> list[tuple[str, dict[str, Any]]]:
        """The runs we have, beside what is said of them."""
        return [
            (name, run) for run in self.said["runs"] if (name := self.ids[run["run_key"]]) and name in self.got.metric
        ]


def base(run: dict[str, Any]) -> str:
    """The session or thread of a process."""
    return run.get("session_id") or run["run_key"].split("#")[0]


def is_thread_total(case: Case, name: str, run: dict[str, Any]) -> bool:
    """A resumed capture alone may show the thread's total, if it is called a running total."""
    total = run.get("thread_total")
    if total is None:
        return False
    rows = [row for row in case.got.usage if row["run_id"] == name]
    return bool(
        rows
        and {row["usage_source"] for row in rows} == {"cumulative"}
        and case.got.metric[name]["input_tokens"] == total["input_tokens"]
        and case.got.metric[name]["output_tokens"] == total["output_tokens"]
    )


def check_runs(case: Case) -> None:
    """None is missing and none is invented; what belongs to no named run (a journal, a loose line) holds no figure."""
    known = set(case.ids.values())
    case.expect("runs", dict.fromkeys(known, True), {name: name in case.got.metric for name in known})
    for row in case.got.metrics:
        if row["run_id"] not in known and any(row[figure] for figure in (*FIGURES, "tool_calls")):
            case.wrong.append(("a run nobody made", row["run_id"], {name: row[name] for name in FIGURES}))
    for name, run in case.runs():
        parent = run.get("parent_run") or run.get("parent") or run.get("forked_from")
        case.expect(f"{name} wire", run["wire"], case.got.metric[name]["wire"])
        if parent:
            case.expect(f"{name} parent", parent, case.got.run[name]["parent_run_id"])
        if "parent_missing" in run.get("flags", ()):
            named = case.got.run[name]["parent_run_id"]
            case.expect(f"{name} names a parent that is not there", True, bool(named) and named not in case.got.run)
        case.expect(f"{name} is counted", True, case.got.metric[name]["is_counted"])
        case.expect(f"{name} models", run["models"], case.got.run[name]["models"] or [])


def check_figures(case: Case) -> None:
    for name, run in case.runs():
        row = case.got.metric[name]
        figures = ("tool_calls", "completeness")
        if not is_thread_total(case, name, run):
            figures += (*FIGURES, "tokens_are_lower_bound")
        for figure in figures:
            case.expect(f"{name} {figure}", run[figure], row[figure])
        if run.get("requests_not_final") is not None:
            case.expect(f"{name} requests_not_final", run["requests_not_final"], row["requests_not_final"])
        case.expect(f"{name} denied_calls", len(run["denied"]), row["denied_calls"])
        if run["limit_windows"] is None:
            case.expect(f"{name} limits: nothing known", None, row["rate_limit_samples"])
        if "cost_usd" in run:
            cost = None if run["cost_usd"] is None else pytest.approx(run["cost_usd"], abs=1e-9)
            case.expect(f"{name} cost_usd", cost, row["cost_usd"])


def check_calls(case: Case) -> None:
    for name, run in case.runs():
        open_calls = case.got.states("unfinished", name)
        if run["wire"] == "codex-exec":  # ids of items start again in each process
            open_calls = {f"{run['run_key']}:{call}" for call in open_calls}
        case.expect(f"{name} unfinished", set(run["unfinished"]), open_calls)
        case.expect(f"{name} interrupted", set(run["interrupted"]), case.got.states("interrupted", name))
        denied = case.got.denied(name)
        case.expect(f"{name} denied", {call_id(one, run) for one in run["denied"]}, set(denied))
        case.expect(f"{name} state denied", set(denied), case.got.states("denied", name))
        tools = {row["call_id"]: row["tool"] for row in case.got.calls if row["run_id"] == name}
        for one in run["denied"]:
            found = denied.get(call_id(one, run))
            if found is None:
                continue
            case.expect(f"{one['call_id']} evidence", set(one["evidence"]), found["evidence"])
            kinds = found["reasons"] - {"listed"} or found["reasons"]
            case.expect(f"{one['call_id']} kind", {one["kind"]}, kinds)
            case.expect(f"{one['call_id']} tool", one["tool"], tools.get(call_id(one, run)))


def call_id(denied: dict[str, Any], run: dict[str, Any]) -> str:
    return denied["call_id"].removeprefix(f"{run['run_key']}:")


def is_window(window: dict[str, Any], limit: Any, minutes: Any, resets: Any) -> bool:
    if (window["limit_id"], window["window_minutes"]) != (limit, minutes):
        return False
    if window["resets_at"] is None or resets is None:
        return window["resets_at"] is None and resets is None
    return abs(resets - window["resets_at"]) <= window["resets_at_spread_s"] + SLACK


def check_samples(case: Case) -> None:
    """A run's windows by its samples."""
    for name, run in case.runs():
        samples = [row for row in case.got.samples if row["run_id"] == name]
        windows = run["limit_windows"] or []
        case.expect(f"{name} samples", sum(one["samples"] for one in windows), len(samples))
        for window in windows:
            own = [r for r in samples if is_window(window, r["limit_id"], r["window_minutes"], r["resets_at"])]
            peaks = [row["used_percent"] for row in own if row["used_percent"] is not None]
            said = [row["status"] for row in own if row["status"] is not None]
            found = (len(own), max(peaks, default=None), said[-1] if said else None)
            right = (window["samples"], window["peak_used_percent"], window.get("last_status"))
            case.expect(f"{name} window {window['limit_id']} {window['resets_at']}", right, found)


def check_windows(case: Case) -> None:
    """Windows are the account's."""
    windows = case.said["corpus"]["limit_windows"] or []
    if case.is_alone:
        case.expect("windows of the account", len(windows), len(case.got.windows))
    for window in windows:
        label = f"window {window['limit_id']} {window['window_minutes']} {window['resets_at']}"
        own = [
            row for row in case.got.windows if is_window(window, row["limit_id"], row["window_minutes"], row["resets"])
        ]
        right = [(window["samples"], window["peak_used_percent"], window.get("last_status"), len(window["runs"]))]
        names = ("samples", "peak_used_percent", "last_status", "runs")
        case.expect(label, right, [tuple(row[name] for name in names) for row in own])


def check_lines(case: Case) -> None:
    """What is refused, kept beside it, pending, or text; and nothing else is refused."""
    refused = {(row["path"].split("/native/")[-1], row["line"]) for row in case.got.refusals}
    refused = {(file, line) for file, line in refused if file in case.said["files"]}
    kept = {(row["path"].split("/native/")[-1], row["line"]) for row in case.got.events}
    text = {(row["path"].split("/native/")[-1], row["line"]) for row in case.got.events if row["event"] == "plain_text"}
    pending = {row["path"].split("/native/")[-1] for row in case.got.files if row["pending_bytes"]}
    may_be: set[tuple[str, int]] = set()
    for run in case.said["runs"]:
        for one in run["refused_lines"]:
            place = (one["file"], one["line"])
            may_be.add(place)
            if one.get("pending"):
                case.expect(f"pending end of {one['file']}", (True, False), (place[0] in pending, place in refused))
            elif not one.get("optional"):
                case.expect(f"refused line {place}", True, place in refused)
            if one.get("records_kept"):
                case.expect(f"record kept on line {place}", True, place in kept)
        for one in run.get("plain_text_lines", ()):
            place = (one["file"], one["line"])
            may_be.add(place)
            case.expect(f"plain text {place} is accounted for", True, place in text or place in refused)
        for line in run.get("lines_with_two_records", ()):
            here = [row for row in case.got.events if row["run_id"] == run["run_key"] and row["line"] == line]
            case.expect(f"two records on line {line}", True, len({row["event"] for row in here}) > 1)
    journal = {(file, line) for file, line in refused if file.endswith("journal.jsonl")}
    case.expect("refused beyond that", set(), refused - may_be - journal)


def check_corpus(case: Case) -> None:
    """The corpus is the sum of its runs; by model and by day it is the same, where the lake has nothing else."""
    corpus = case.said["corpus"]
    if any(is_thread_total(case, name, run) for name, run in case.runs()):
        return
    for figure in (*FIGURES, "tool_calls"):
        case.expect(f"corpus {figure}", corpus[figure], case.got.total(figure))
    if "input_tokens_with_cached" in corpus:
        case.expect("corpus input", corpus["input_tokens_with_cached"], case.got.total("input_tokens"))
    case.expect("corpus denied", corpus["denied"], case.got.total("denied_calls") or 0)
    if case.is_alone:
        case.wrong += case.got.sums_disagree()
        check_groups(case, "model", case.got.by_model)
        check_groups(case, "day", case.got.by_day)


def check_groups(case: Case, by: str, rows: list[dict[str, Any]]) -> None:
    """What each model or day is said to have used; other rows know no figure."""
    said = case.said["corpus"].get(f"by_{by}") or {}
    found = {str(row[by]): row for row in rows if any(row[figure] for figure in PARTS)}
    if said:
        case.expect(f"by {by}", set(said), set(found))
    for name in said.keys() & found.keys():
        right = {figure: value for figure, value in said[name].items() if figure in found[name]}
        case.expect(f"{by} {name}", right, {figure: found[name][figure] for figure in right})


def check_usage(case: Case) -> None:
    """Usage row by row: requests by model and by day, and what they used; and the calls of the corpus."""
    corpus = case.said["corpus"]
    if not any(is_thread_total(case, name, run) for name, run in case.runs()):
        for by in ("model", "day"):
            kept: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
            for row in case.got.usage:
                kept[row[by]].append(row)
            rows: list[dict[str, Any]] = []
            for name, own in kept.items():
                rows.append({by: name} | {figure: added(row[figure] for row in own) for figure in PARTS})
                single = [row for row in own if row["usage_source"] in ("snapshot", "delta")]
                rows[-1] |= {"requests": len(single)} if single else {}
            check_groups(case, by, rows)
    case.expect("corpus unfinished", corpus["unfinished"], len(case.got.states("unfinished")))
    case.expect("corpus interrupted", corpus["interrupted"], len(case.got.states("interrupted")))


def check_particulars(case: Case) -> None:
    """What only some cases ask."""
    for name, run in case.runs():
        row, events = case.got.metric[name], [e for e in case.got.events if e["run_id"] == name]
        usage = [u for u in case.got.usage if u["run_id"] == name]
        observed = [u for u in case.got.observed if u["run_id"] == name]
        if "compactions" in run:
            case.expect(f"{name} compactions", run["compactions"], row["compactions"])
            last = max(usage, key=lambda u: u["ts"])
            case.expect(f"{name} context at the end", run["context_tokens_at_end"], last["input_tokens"])
        if "synthetic_rows" in run:
            case.expect(f"{name} errors", run["synthetic_rows"], row["errors"])
            case.expect(f"{name} retries", run["api_retry_rows"], row["retries"])
            limited = [e for e in events if e["kind"] == "error" and e["reason"] == "rate_limit"]
            case.expect(f"{name} hit limits", run["rate_limit_error_rows"], len(limited))
        if "results" in run:
            case.expect(f"{name} results", run["results"], sum(e["kind"] == "run.ended" for e in events))
        if "subtype" in run:
            outcome = "error" if run["is_error"] else run["subtype"]
            case.expect(f"{name} outcome", (run["subtype"], outcome), (row["status"], row["outcome"]))
        if run.get("failed"):
            case.expect(f"{name} failed", "error", row["outcome"])
        if "output_by_request" in run:
            fullest: dict[str, int] = {}
            for seen in observed:
                if seen["usage_scope"] == "snapshot":
                    fullest[seen["request_id"]] = max(fullest.get(seen["request_id"], 0), seen["output_tokens"])
            case.expect(f"{name} output by request", run["output_by_request"], list(fullest.values()))
        if "output_by_result" in run:
            by_line: defaultdict[int, int] = defaultdict(int)
            for used in usage:
                by_line[used["line"]] += used["output_tokens"]
            case.expect(f"{name} output by result", run["output_by_result"], [by_line[n] for n in sorted(by_line)])
        if "web_search_calls" in run:
            searches = sum(e["event"].endswith("web_search_call") for e in events)
            case.expect(f"{name} searches", run["web_search_calls"], searches)
            running = [e["call_id"] for e in events if e["kind"] == "tool.finished" and e["status"] == "running"]
            case.expect(f"{name} still running", True, len(running) >= run["still_running"])
            case.expect(f"{name} finished", True, set(running) <= case.got.states("finished", name))
        if isinstance(run.get("turns"), dict):
            turns = [turn for turn in case.got.turns if turn["run_id"] == name]
            ended = [e["status"] for e in events if e["kind"] == "turn.ended"]
            found = {"completed": len(ended) - sum(word != "completed" for word in ended)}
            found |= {"aborted": len(ended) - found["completed"], "open": len(turns) - len(ended)}
            case.expect(f"{name} turns", run["turns"], found)
        elif "turns" in run:
            totals = [(u["input_tokens"], u["cache_read_tokens"], u["output_tokens"]) for u in observed]
            totals = [total for total in totals if total[0] is not None]
            case.expect(f"{name} ended turns", len(run["turns"]), len(totals))
            for before, after, turn in zip(totals, totals[1:], run["turns"][1:], strict=False):
                case.expect(f"{name} a turn", list(turn.values()), [b - a for a, b in zip(before, after, strict=True)])
        if "replayed_events" in run:
            counters = sum(e["event"].endswith("token_count") and e["part"] == 0 for e in events)
            case.expect(f"{name} replayed events", run["replayed_events"], counters - row["requests"])
        if "cache_write_5m_tokens" in run and run["cache_write_5m_tokens"] is not None:
            rest = row["cache_write_tokens"] - row["cache_write_1h_tokens"]
            case.expect(f"{name} cache writes of five minutes", run["cache_write_5m_tokens"], rest)
    orphans = case.said["corpus"].get("orphan_results")
    orphans = orphans or sum(run.get("orphan_outputs", 0) for run in case.said["runs"])
    if orphans:
        case.expect("results without a call", orphans, len(case.got.rows("FROM orphan_results")))
    for thread, total in case.said["corpus"].get("thread_totals", {}).items():
        own = [row for row in case.got.metrics if row["run_id"].startswith(thread)]
        figures = {name: added(row[name] for row in own) for name in ("input_tokens", "output_tokens")}
        case.expect(f"{thread} total", {name: total[name] for name in figures}, figures)


def check_naive(case: Case) -> None:
    """Each wrong way gives another value than ours, in at least one figure where it is another value at all."""
    got = case.got
    ways: dict[str, Callable[[], Any]] = {
        "cached_input_tokens": lambda: got.total("cache_read_tokens"),
        "denied": lambda: got.total("denied_calls"),
        "unfinished": lambda: len(got.states("unfinished")),
        "limit_windows": lambda: len(got.windows) or None,
        "runs": lambda: len(case.ids),
        "threads": lambda: len({base(run) for run in case.said["runs"]}),
        "models": lambda: sorted({row["model"] for row in got.usage if row["model"]}),
    }
    for figure in (*FIGURES, "tool_calls", "cost_usd", "input_tokens"):
        ways[figure] = lambda figure=figure: got.total(figure)
    if any(is_thread_total(case, name, run) for name, run in case.runs()):
        ways = {figure: ways[figure] for figure in ("tool_calls", "runs")}
    for way, naive in case.said["naive"].items():
        for figure, value in naive.items():
            if figure in ways:
                ours = ways[figure]()
                if case.said["corpus"].get(figure, ours) != value and ours == value:
                    case.wrong.append(("as the naive way", way, figure, value))


# of a lake of its own, the relations that are the whole lake's; row by row a case is looked at among others
ALONE = (check_figures, check_windows, check_corpus, check_naive)
CHECKS = (check_runs, check_calls, check_samples, check_lines, check_usage, check_particulars, *ALONE)


def check(case: Case, checks: tuple[Callable[[Case], None], ...]) -> None:
    for one in checks:
        one(case)
    problems = "\n".join(map(str, case.wrong))
    assert not problems, f"{case.name}: {case.said['why']}\n{problems}"


@pytest.mark.parametrize("name", CASES)
def test_alone_in_the_given_order(name, tmp_path):
    got = Answers.of(tmp_path, [NATIVE / file for file in CASES[name]["files"]])
    check(Case(name, got, is_alone=True), ALONE)
    got.lake.close()


def reversed_batches() -> list[list[Path]]:
    """One file of each case at a time, the last ones first."""
    batches: list[list[Path]] = []
    for case in CASES.values():
        for place, file in enumerate(reversed(case["files"])):
            batches += [[]] * (place == len(batches))
            batches[place] = [*batches[place], NATIVE / file]
    return batches


def grown(folder: Path, part: float) -> None:
    """The files as they were when only a part of each was written; a compressed one is written at once."""
    for case in CASES.values():
        for file in case["files"]:
            data = (NATIVE / file).read_bytes()
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if file.endswith(".zst") else data[: int(len(data) * part)])


@pytest.fixture(scope="module", params=["as given", "reversed and twice", "while they grow"])
def together(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    if request.param == "while they grow":
        got = Answers.of(folder)
        for part in (0.3, 0.55, 0.8, 1.0):
            grown(folder / "native", part)
            got.lake.ingest(folder / "native")
    elif request.param == "as given":
        got = Answers.of(folder, [NATIVE / file for case in CASES.values() for file in case["files"]])
    else:
        shutil.copytree(NATIVE, folder / "copies")
        got = Answers.of(folder, *reversed_batches(), [NATIVE], [folder / "copies"])
    yield got
    got.lake.close()


@pytest.mark.parametrize("name", CASES)
def test_among_others(name, together):
    check(Case(name, together, is_alone=False), CHECKS)


def test_all_together(together):
    """Sums agree over all cases, and windows of limits are those of the cases."""
    assert together.sums_disagree() == []
    windows = [window for case in CASES.values() for window in case["corpus"]["limit_windows"] or ()]
    assert len(together.windows) == len(windows)
    for figure in ("requests", "output_tokens", "tool_calls"):
        totals = {name: case["corpus"][figure] for name, case in CASES.items()}
        assert together.total(figure) == added(totals.values()) + resumed_alone(together, figure)


def resumed_alone(got: Answers, figure: str) -> int:
    """What the thread total of the capture that was resumed elsewhere adds, if it is shown as one."""
    (run,) = CASES["ce-resumed-alone"]["runs"]
    return 0 if figure == "tool_calls" else got.metric[run["run_key"]][figure] or 0


def test_every_case_has_a_wrong_way_that_gives_another_value():
    """A case that no naive reader gets wrong would test nothing."""
    assert [
        name
        for name, case in CASES.items()
        if not any(
            figure != "note" and case["corpus"].get(figure, "another figure") != value
            for naive in case["naive"].values()
            for figure, value in naive.items()
        )
    ] == []


def test_processes_of_a_thread_are_numbered_by_their_running_total(together):
    """Captures have no times: the first process is the one whose total is the lowest, whatever its file is called."""
    case = Case("ce-resumed-two-files", together, is_alone=False)
    assert case.ids == {run["run_key"]: run["run_key"] for run in case.said["runs"]}
