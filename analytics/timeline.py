"""What happened in a run, step by step: the same for the terminal and for a page.

A step is all that stands at one position: what was said, called or decided, with the figures of that line. A call's
step says what became of the call. Between steps stand the beginnings of turns and long silences.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from analytics.sqlfiles import quoted

if TYPE_CHECKING:
    from analytics.api import Lake

SILENCE_MS = 60_000

# rows of one position are one step: a model's answer has its text in transcript and its figures in events
_QUERIES = (
    """SELECT run_id, position, ts, turn_id, kind, event, tool, call_id, model, decision, decided_by, status, is_error,
        exit_code, reason, duration_ms, {text} AS text
    FROM transcript WHERE run_id IN ({runs})""",
    """SELECT run_id, position, ts, turn_id, kind, event, model, usage_scope, input_tokens, cache_read_tokens,
        output_tokens, cost_usd, limit_id, limit_used, limit_unit, limit_resets_at, limit_status
    FROM events WHERE run_id IN ({runs}) AND kind IN ('usage', 'rate_limit') AND is_shadow IS NOT TRUE""",
    """SELECT run_id, position, state AS call_state, decision AS call_decision, is_error AS call_error,
        exit_code AS call_exit_code, duration_ms AS call_ms
    FROM tool_calls WHERE run_id IN ({runs}) AND position IS NOT NULL""",
    """SELECT r.run_id, coalesce(p.piece, 0) * 1000000000000000 + r.line * 1000000 + r.part AS position,
        'refused' AS kind, 'line ' || r.line AS event, r.reason AS status, r.detail AS reason
    FROM refusals AS r LEFT JOIN run_pieces AS p USING (source_id, run_id)
    WHERE r.run_id IN ({runs}) AND r.line IS NOT NULL""",
)


@dataclass(slots=True)
class Step:
    """One step. `ms` from the run's first time; `silence_ms` before it, if long; `turn` where another one begins."""

    row: dict[str, Any]
    ms: float | None = None
    silence_ms: float | None = None
    turn: str | None = None


@dataclass(slots=True)
class Story:
    """The steps of a run, or the first and the last of them where there are more than a limit."""

    first: list[Step] = field(default_factory=list)
    last: deque[Step] = field(default_factory=deque)
    left_out: int = 0
    turns: int = 0
    silences: int = 0
    longest_silence_ms: float = 0


def stories(
    lake: Lake, runs: Sequence[str], *, limit: int = 0, text_chars: int | None = None, run: str | None = None
) -> Iterator[tuple[str, Iterator[Step | Story]]]:
    """Each run that has steps, with its steps to be shown at once and, last of all, the story with the rest.

    `run`: all of them are of this run; over a large lake the queries then read its pieces alone.
    """
    if lake.has_few_events:  # what the queries build on is kept once for all of them, without the filter
        run = None
    names = ", ".join(map(quoted, runs))
    text = "text" if text_chars is None else f"left(text, {text_chars})"
    queries = (query.format(runs=names, text=text) + "\nORDER BY run_id, position" for query in _QUERIES)
    by_place = itemgetter("run_id", "position")
    merged = heapq.merge(*(_rows(lake, query, run) for query in queries), key=by_place)
    for name, rows in groupby(merged, key=itemgetter("run_id")):
        yield name, told(_joined(rows), limit)


def _rows(lake: Lake, query: str, run: str | None) -> Iterator[dict[str, Any]]:
    for batch in lake.sql(query, run=run).to_arrow_reader(4096):
        yield from batch.to_pylist()


def _joined(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps in order; what no query said of a step is None."""
    for _, same in groupby(rows, key=itemgetter("position")):
        step: defaultdict[str, Any] = defaultdict(lambda: None)
        for row in same:
            step.update((name, value) for name, value in row.items() if value is not None)
        if step["kind"] is not None:
            yield step


def told(rows: Iterable[dict[str, Any]], limit: int = 0) -> Iterator[Step | Story]:
    """The first steps as they come, then the story: how many were left out, and the last steps. Limit 0: all."""
    early = limit - limit // 3 if limit else 0
    story = Story(last=deque(maxlen=max(limit - early, 0) if limit else None))
    start = before = turn = None
    for count, row in enumerate(rows, 1):
        step = Step(row)
        ts = row["ts"]
        if ts is not None:
            start = start or ts
            step.ms = (ts - start).total_seconds() * 1000
            silence = (ts - before).total_seconds() * 1000 if before else 0
            before = ts
            if silence >= SILENCE_MS:
                step.silence_ms = silence
                story.silences += 1
                story.longest_silence_ms = max(story.longest_silence_ms, silence)
        if row["turn_id"] is not None and row["turn_id"] != turn:
            turn = step.turn = row["turn_id"]
            story.turns += 1
        if not limit or count <= early:
            yield step
        else:
            story.left_out += len(story.last) == story.last.maxlen
            story.last.append(step)
    yield story


def offset(milliseconds: float | None) -> str:
    """How long after the first time of the run."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if abs(seconds) < 600:
        return f"{seconds:+.2f} s"
    minutes = int(seconds / 60)
    return f"{minutes:+d} m {int(abs(seconds) - abs(minutes) * 60):02d} s"


def is_bad(row: dict[str, Any]) -> bool:
    """True: something failed, was denied, refused or rejected."""
    return bool(
        row["is_error"] or row["call_error"] or row["kind"] in ("refused", "error") or row["decision"] == "deny"
        or row["call_state"] in ("denied", "unfinished", "interrupted") or "reject" in (row["limit_status"] or "")
    )  # fmt: skip


def facts(row: dict[str, Any], between: str = "  ") -> str:
    """What a step says but for its text, the most telling first."""
    from analytics.render import dollars, duration, moment, number, visible  # noqa: PLC0415 (rich: 20 ms)
    from analytics.values import iso  # noqa: PLC0415

    parts: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("{}", row["event"] if row["kind"] == "refused" else None, str), ("{}", row["tool"], visible),
        ("[{}]", row["call_id"], visible), ("{}", row["model"], visible), ("{}", row["decision"], visible),
        ("by {}", row["decided_by"], visible), ("{}", row["limit_id"], visible), ("{}", _share(row), str),
        ("{}", row["limit_status"], visible), ("resets {}", row["limit_resets_at"], lambda time: moment(iso(time))),
        ("{}", row["status"], visible), ("exit {}", row["exit_code"], str),
        ("{}", "failed" if row["is_error"] else None, str), ("{}", row["usage_scope"], visible),
        ("in {}", row["input_tokens"], number), ("cached {}", row["cache_read_tokens"], number),
        ("out {}", row["output_tokens"], number), ("{}", row["cost_usd"], dollars),
        ("{}", row["duration_ms"], duration), ("→ {}", _became(row), str), ("{}", row["reason"], visible),
    ]  # fmt: skip
    return between.join(form.format(show(value)) for form, value, show in parts if value is not None)


def _became(row: dict[str, Any]) -> str | None:
    """What became of a call, on the step that opens it."""
    from analytics.render import duration, visible  # noqa: PLC0415

    state = row["call_state"]
    if state is None:
        return None
    words = {"unfinished": "no result", "not_started": "not started", "undecidable": "result not known"}
    said = [words.get(state, state)]
    if row["call_decision"] is not None and row["call_decision"] != "deny":
        said.insert(0, visible(row["call_decision"]))
    if row["call_error"]:
        said.append("failed")
    if row["call_exit_code"] is not None:
        said.append(f"exit {row['call_exit_code']}")
    if row["call_ms"] is not None and state == "finished":
        said.append(duration(row["call_ms"]))
    return ", ".join(said)


def _share(row: dict[str, Any]) -> str | None:
    from analytics.render import number  # noqa: PLC0415

    used = row["limit_used"]
    if used is None:
        return None
    return f"{number(used * 100 if row['limit_unit'] == 'fraction' else used)} %"


def head(m: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a run is and used, from its row of run_metrics: label and text."""
    from analytics.render import UNKNOWN, dollars, duration, moment, visible  # noqa: PLC0415
    from analytics.values import iso  # noqa: PLC0415

    def time(value: datetime | None) -> str:
        return UNKNOWN if value is None else moment(iso(value))

    def count(name: str, flag: str) -> str:
        value = m[name]
        return UNKNOWN if value is None else f"{'≥ ' if m[flag] else ''}{value:,}"

    yield "run", visible(m["run_id"])
    setting = [m["wire"], m["adapter"], m["task"], m["variant"]]
    said = [visible(word) for word in setting if word] + (
        [f"repetition {m['repetition']}"] if m["repetition"] is not None else []
    )
    yield "of", ", ".join(said)
    lasted = UNKNOWN if m["duration_ms"] is None else duration(m["duration_ms"])
    yield "time", f"{time(m['started_at'])} to {time(m['ended_at'])}, {lasted}"
    why = visible(m["completeness_reason"] or UNKNOWN)
    yield "outcome", f"{visible(m['outcome'] or UNKNOWN)}; {m['completeness']}: {why}"
    tokens = [f"{count(f'{side}_tokens', 'tokens_are_lower_bound')} {side}" for side in ("input", "output")]
    cost = UNKNOWN if m["cost_usd"] is None else dollars(m["cost_usd"])
    yield "tokens", f"{', '.join(tokens)}; cost {cost}"
    open_ = UNKNOWN if m["tool_calls_unfinished"] is None else f"{m['tool_calls_unfinished']:,}"
    open_ += " unfinished" if m["unfinished_is_exact"] is not False else " open so far"
    yield "calls", f"{m['tool_calls']:,}, {count('denied_calls', 'denials_are_lower_bound')} denied, {open_}"
    if m["refused_lines"]:
        yield "refused", f"{m['refused_lines']:,} {'line' if m['refused_lines'] == 1 else 'lines'}"


def end(m: dict[str, Any]) -> str:
    """The last line says whether this is all there was."""
    from analytics.render import visible  # noqa: PLC0415

    why = visible(m["completeness_reason"] or "")
    return {
        "closed": f"the run ended here ({why})",
        "open": f"no end yet ({why}): the run may go on",
        "truncated": f"cut here ({why}): what followed is not known",
        "inconsistent": f"the end does not fit what was read ({why})",
    }.get(m["completeness"], f"the last line; whether the run ended cannot be known ({why})")
