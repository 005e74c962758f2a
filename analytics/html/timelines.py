"""The timelines of a page: the runs with the most to see, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from analytics import timeline
from analytics.render import duration, visible
from analytics.values import as_json

if TYPE_CHECKING:
    from analytics.api import Lake

MOST_RUNS = 60
MOST_STEPS = 240
TEXT_CHARS = 240
BUDGET_BYTES = 2_400_000

# the runs with the most to see: what failed, was denied, cut or refused counts before sheer length
_MOST_TO_SEE = f"""SELECT run_id FROM run_metrics
ORDER BY
    CASE WHEN completeness IN ('truncated', 'inconsistent') THEN 20 ELSE 0 END
    + 5 * least(coalesce(denied_calls, 0), 10) + 5 * least(coalesce(tool_calls_unfinished, 0), 10)
    + 2 * least(coalesce(failed_calls, 0), 20) + 5 * least(coalesce(refused_lines, 0), 5)
    + 10 * least(coalesce(rate_limit_rejections, 0), 3) + ln(1 + coalesce(events, 0)) DESC,
    run_id
LIMIT {MOST_RUNS}"""


def chosen(lake: Lake, filters: dict[str, Any]) -> list[str]:
    """The ids of the runs that get a timeline, the one with the most to see first."""
    return [row[0] for row in lake.sql(_MOST_TO_SEE, **filters).fetchall()]


def timelines(lake: Lake, runs: list[str], *, limit: int = MOST_STEPS) -> dict[str, dict[str, Any]]:
    """The timelines of the runs as JSON, in the order given, until the budget is spent."""
    if not runs:
        return {}
    metrics = {row["run_id"]: row for row in _metrics(lake, runs)}
    made = {
        run: _told(metrics[run], steps)
        for run, steps in timeline.stories(lake, runs, limit=limit, text_chars=TEXT_CHARS)
        if run in metrics
    }
    kept: dict[str, dict[str, Any]] = {}
    spent = 0
    for run in runs:
        if run not in made:
            continue
        spent += len(as_json(made[run]))
        if kept and spent > BUDGET_BYTES:
            break
        kept[run] = made[run]
    return kept


def one(lake: Lake, run: str, *, limit: int, text_chars: int) -> dict[str, Any]:
    """The timeline of one run, on a page of its own."""
    (metrics,) = lake.runs(run=run).to_arrow_table().to_pylist()
    for _, steps in timeline.stories(lake, [run], limit=limit, text_chars=text_chars, run=run):
        return _told(metrics, steps)
    return _told(metrics, iter([timeline.Story()]))


def _metrics(lake: Lake, runs: list[str]) -> list[dict[str, Any]]:
    from analytics.sqlfiles import quoted  # noqa: PLC0415

    named = ", ".join(map(quoted, runs))
    rows: list[dict[str, Any]] = lake.sql(f"FROM run_metrics WHERE run_id IN ({named})").to_arrow_table().to_pylist()
    return rows


def _told(metrics: dict[str, Any], steps: Iterator[timeline.Step | timeline.Story]) -> dict[str, Any]:
    """facts: label and text; steps: [offset, kind, facts, text, tone], or one text for what stands between them."""
    said: list[Any] = []
    requests: list[dict[str, Any]] = []
    turns = 0
    summary = ""
    for step in steps:
        if isinstance(step, timeline.Step):
            turns += step.turn is not None
            said += _lines(step, turns)
            continue
        if step.left_out:
            said.append(["left", f"{step.left_out:,} steps left out"])
        turns = step.turns - sum(late.turn is not None for late in step.last)
        for late in step.last:
            turns += late.turn is not None
            said += _lines(late, turns)
        requests = step.requests
        summary = _summary(step)
    facts = [[name, text] for name, text in timeline.head(metrics)]
    if summary:
        facts.append(["seen", summary])
    return {
        "facts": facts, "steps": said, "end": timeline.end(metrics), "completeness": metrics["completeness"],
        "requests": [_figures(request) for request in requests if request["input_tokens"] is not None],
    }  # fmt: skip


def _summary(story: timeline.Story) -> str:
    parts = []
    if story.turns:
        parts.append(f"{story.turns:,} {'turn' if story.turns == 1 else 'turns'}")
    if story.silences:
        longest = duration(story.longest_silence_ms)
        parts.append(f"{story.silences:,} {'silence' if story.silences == 1 else 'silences'}, the longest {longest}")
    return "; ".join(parts)


def _lines(step: timeline.Step, turn: int) -> Iterator[list[Any]]:
    if step.silence_ms is not None:
        yield ["gap", f"{duration(step.silence_ms)} of silence"]
    if step.turn is not None:
        yield ["turn", f"Turn {turn}", visible(step.turn)]
    row = step.row
    text = visible(row["text"] or "")
    facts = timeline.facts(row)
    tone = "bad" if timeline.is_bad(row) else ""
    offset = timeline.offset(step.ms)
    yield [offset, row["kind"], facts or ("" if text else visible(row["event"] or "")), text, tone]


def _figures(request: dict[str, Any]) -> list[Any]:
    """[offset in ms, input, of it from the cache, output, what the figures are of]."""
    return [request[name] for name in ("ms", "input_tokens", "cache_read_tokens", "output_tokens", "usage_scope")]
