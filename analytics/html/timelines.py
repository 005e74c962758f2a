"""The timelines of a page: the runs with the most to see, within a budget of bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from analytics import timeline
from analytics.render import duration, visible, visible_lines
from analytics.sqlfiles import quoted
from analytics.values import as_json

if TYPE_CHECKING:
    from analytics.api import Lake

MOST_RUNS = 60
MOST_STEPS = 240
TEXT_CHARS = 240
MOST_REQUESTS = 300
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
    requests = _requests(lake, runs)
    made = {
        run: _told(metrics[run], steps, requests[run])
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
    only = None if lake.has_few_events else run
    (metrics,) = _metrics(lake, [run], only)
    requests = _requests(lake, [run], only)[run]
    for _, steps in timeline.stories(lake, [run], limit=limit, text_chars=text_chars, run=run):
        return _told(metrics, steps, requests)
    return _told(metrics, iter([timeline.Story()]), requests)


def _metrics(lake: Lake, runs: list[str], run: str | None = None) -> list[dict[str, Any]]:
    named = ", ".join(map(quoted, runs))
    query = f"FROM run_metrics WHERE run_id IN ({named})"
    rows: list[dict[str, Any]] = lake.sql(query, run=run).to_arrow_table().to_pylist()
    return rows


def _told(
    metrics: dict[str, Any], steps: Iterator[timeline.Step | timeline.Story], requests: list[list[Any]]
) -> dict[str, Any]:
    """facts: label and text; steps: [offset, kind, facts, text, tone], or one text for what stands between them."""
    said: list[Any] = []
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
        summary = _summary(step)
    facts = [[name, text] for name, text in timeline.head(metrics) if name != "run"]
    if summary:
        facts.append(["seen", summary])
    return {
        "facts": facts, "steps": said, "end": timeline.end(metrics), "completeness": metrics["completeness"],
        "requests": requests,
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
    text = visible_lines(row["text"] or "")
    facts = timeline.facts(row, between=" · ")
    tone = "bad" if timeline.is_bad(row) else ""
    offset = timeline.offset(step.ms)
    yield [offset, row["kind"], facts or ("" if text else visible(row["event"] or "")), text, tone]


def _requests(lake: Lake, runs: list[str], run: str | None = None) -> dict[str, list[list[Any]]]:
    """The model requests of each run, in order: [ms after the first, input, of it from the cache, output]."""
    named = ", ".join(map(quoted, runs))
    query = f"""SELECT
        run_id, (epoch_us(ts) - epoch_us(min(ts) OVER (PARTITION BY run_id))) / 1000 AS ms, input_tokens,
        cache_read_tokens, output_tokens
    FROM usage
    WHERE run_id IN ({named}) AND NOT is_side_call AND input_tokens IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY ts NULLS LAST, source_id, line, part) <= {MOST_REQUESTS}
    ORDER BY run_id, ts NULLS LAST, source_id, line, part"""
    made: dict[str, list[list[Any]]] = defaultdict(list)
    for name, *figures in lake.sql(query, run=run).fetchall():
        made[name].append(figures)
    return made
