"""What a result adds to its run: `modelUsage` runs on through a process, so a turn's share is a difference.

`result.usage` is the main chain of one turn only (in all of 71 captures with subagents its cache figures equal the
main messages alone), so it counts only where `modelUsage` is missing, and then as a lower bound.
"""

from __future__ import annotations

from typing import Any

from analytics.wires.claude_messages import Usage, usage_columns, whole
from analytics.wires.claude_stream_lines import ModelUsage, Result, number
from analytics.wires.claude_stream_state import Run, Totals

DUST = 1e-9  # a cost that is smaller by less did not fall
ROUNDING = 1e-4  # by how much costs differ that are rounded one by one
COUNTERS = {
    "input_tokens": "input",
    "cache_read_tokens": "read",
    "cache_write_tokens": "written",
    "output_tokens": "output",
}


def spent(o: Result, run: Run) -> list[dict[str, Any]]:
    """The usage rows of a result; moves the run's totals on. Each stands for all that was spent since the last one."""
    cost = number(o.total_cost_usd)
    said = o.model_usage if type(o.model_usage) is dict else {}
    usages = {name: usage for name, usage in said.items() if type(usage) is ModelUsage}
    made: list[dict[str, Any]] = []
    if usages:
        totals = {name: totals_of(usage) for name, usage in usages.items()}
        is_new = has_fallen(run, totals, cost)
        for name, now in totals.items():
            was = None if is_new else run.totals.get(name)
            if now != was:
                window = whole(usages[name].context_window)
                made.append(row(model=name, context_window_tokens=window, **growth(now, was)))
        if cost is not None:
            settle(made, less(cost, None if is_new else run.cost))
        run.totals = totals
    else:
        made += without_models(o, run, growth_of_cost(cost, run.cost))
    if cost is not None:
        run.cost = cost
    return made


def settle(made: list[dict[str, Any]], cost: float) -> None:
    """Make the costs of the models add up to the cost of the process: its total is rounded apart from theirs. Money
    that no model names has a row of its own.
    """
    priced = [one for one in made if one.get("cost_usd") is not None]
    rest = less(cost, sum(one["cost_usd"] for one in priced))
    if priced and abs(rest) < ROUNDING:
        largest = max(priced, key=lambda one: float(one["cost_usd"]))
        largest["cost_usd"] = less(largest["cost_usd"], -rest)
    elif rest > 0:
        made.append({"kind": "usage", "usage_scope": "cost", "cost_usd": rest})


def without_models(o: Result, run: Run, cost: float | None) -> list[dict[str, Any]]:
    """A result that names no model: the turn's main chain is known, and that nothing was spent if it says so.

    Where the process named models before, its next result contains this turn, too: then the turn's tokens are unknown
    for now, so that they are not counted twice.
    """
    said = usage_columns(o.usage)
    figures = {name: said.get(name) for name in COUNTERS}
    if type(o.model_usage) is dict and not any(figures.values()):
        return [row(cost_usd=cost, **said)] if said else []
    if run.totals:
        return [row(cost_usd=cost, usage_is_final=False)]
    if isinstance(o.usage, Usage):
        models = run.models or ([run.model] if run.model else [])
        model = models[0] if len(models) == 1 else None
        return [row(model=model, cost_usd=cost, usage_is_final=False, **said)]
    return [] if cost is None else [{"kind": "usage", "usage_scope": "cost", "cost_usd": cost}]


def row(**values: Any) -> dict[str, Any]:
    """A row that stands for a turn."""
    whole_turn = {"kind": "usage", "usage_scope": "turn_total", "usage_is_final": True, "input_includes_cache": False}
    return whole_turn | values


def totals_of(usage: ModelUsage) -> Totals:
    """A model's running figures, in our words."""
    return Totals(
        usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens,
        usage.web_search_requests, number(usage.cost_usd),
    )  # fmt: skip


def growth(now: Totals, was: Totals | None) -> dict[str, Any]:
    """What a model used since the result before."""
    made: dict[str, Any] = {}
    for column, name in COUNTERS.items():
        value, before = getattr(now, name), getattr(was, name, None)
        made[column] = value if value is None or before is None else value - before
    if now.cost is not None:
        made["cost_usd"] = less(now.cost, was.cost if was is not None else None)
    return made


def has_fallen(run: Run, totals: dict[str, Totals], cost: float | None) -> bool:
    """True: some figure is smaller than at the result before, so another process of the session has written this."""
    if cost is not None and run.cost is not None and cost < run.cost - DUST:
        return True
    for name, was in run.totals.items():
        now = totals.get(name)
        if now is None:
            return True
        for field in ("input", "read", "written", "output", "searches"):
            figure, before = getattr(now, field), getattr(was, field)
            if figure is not None and before is not None and figure < before:
                return True
        if now.cost is not None and was.cost is not None and now.cost < was.cost - DUST:
            return True
    return False


def growth_of_cost(cost: float | None, was: float | None) -> float | None:
    """What the process cost since the result before; all of it where the figure fell."""
    if cost is None:
        return None
    return cost if was is None or cost < was - DUST else less(cost, was)


def less(value: float, before: float | None) -> float:
    """The difference of two costs without the noise of binary fractions."""
    return value if before is None else round(value - before, 12)
