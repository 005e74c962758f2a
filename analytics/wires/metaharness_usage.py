"""How usage of `metaharness.event/1` adds up: by the adapter of its run, split by model where the figures allow."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from analytics.wires import metaharness_lines as lines
from analytics.wires.base import Rows
from analytics.wires.metaharness_lines import Event, Usage

WINDOW_MINUTES = {
    "five_hour": 300,
    "seven_day": 10080,
    "seven_day_opus": 10080,
    "seven_day_sonnet": 10080,
    "seven_day_overage_included": 10080,
}
SPEAKS = {
    "claude": "tokens cost limits decisions results clock outcome",
    "codex": "tokens limits decisions results clock outcome",
    "b10x": "tokens cost decisions results outcome",
}


class Run(Struct):
    """What the lines so far say of one run: it decides how later lines are read."""

    adapter: str | None = None
    shown: str | None = None  # where no session.started is in this source: the adapter its usage events can only be of
    model: str | None = None
    models: list[str] = []
    tools: dict[str, str] = {}  # requested calls without a result yet: id → tool
    last_text: dict[str, str] = {}  # codex: per event, the digest of a text not yet shown twice

    @property
    def read_as(self) -> str | None:
        """The adapter to read the run's lines by."""
        return self.adapter or self.shown


def final_usage(rows: Rows, i: int, o: lines.SessionEnded, run: Run) -> None:
    """The run's total, split by model where the vendor's per-model figures add up to it exactly."""
    by_model = o.model_usage or {}
    main = run.models or ([run.model] if run.model else [])
    if not main and len(by_model) == 1:
        main = list(by_model)
    sides = {name: usage for name, usage in by_model.items() if name not in main}
    costs = [usage.cost_usd for usage in by_model.values() if usage.cost_usd is not None]
    costs_add_up = (
        o.total_cost_usd is not None and len(costs) == len(by_model) > 0
        and abs(sum(costs) - o.total_cost_usd) < 1e-6
    )  # fmt: skip
    includes_cache = includes_cache_of(o, run)
    split = o.usage is not None and len(main) > 1 and adds_up([by_model.get(name) for name in main], o.usage)
    if split:
        for name in main:
            part_usage(
                rows, i, name, by_model[name], includes_cache=includes_cache, is_side=False, with_cost=costs_add_up
            )
        cost = None if costs_add_up else o.total_cost_usd
    else:
        model = main[0] if len(main) == 1 else None
        cost = o.total_cost_usd
        if costs_add_up and all(name in by_model for name in main):
            cost = sum(by_model[name].cost_usd or 0.0 for name in main)
        if o.usage is not None:
            rows.put(i, model=model, usage_scope="final", input_includes_cache=includes_cache, **figures(o.usage))
    if o.usage is None or split:
        costs_add_up = costs_add_up and split
        if not costs_add_up:
            cost = o.total_cost_usd
        if cost is not None:
            rows.put(i, usage_scope="cost")
    rows.put(i, cost_usd=cost)
    for name, usage in sides.items():
        part_usage(rows, i, name, usage, includes_cache=includes_cache, is_side=True, with_cost=costs_add_up)


def includes_cache_of(o: lines.SessionEnded, run: Run) -> bool | None:
    """Whether input contains the cache; without a session.started only what the record itself shows is said."""
    if run.read_as is not None:
        return run.read_as != "claude" if run.read_as in SPEAKS else None
    is_claude = o.model_usage is not None or (o.usage is not None and o.usage.cache_creation_input_tokens is not None)
    return False if is_claude else None  # of the known adapters only claude fills these


def part_usage(
    rows: Rows, i: int, model: str, usage: Usage, *, includes_cache: bool | None, is_side: bool, with_cost: bool
) -> None:
    """One model's share of a run's total, as a row of its own."""
    values: dict[str, Any] = {"kind": "usage", "model": model, "usage_scope": "final", "is_side_call": is_side}
    values |= figures(usage) | {"input_includes_cache": includes_cache}
    values["cost_usd"] = usage.cost_usd if with_cost else None
    rows.parts.append((i, values))


def shown_by(o: Event) -> str | None:
    """Which adapter writes a usage or limit event like this; None: any may.

    Codex names neither request nor model of a usage, only Claude names the request and has windows of these names.
    """
    if type(o) is lines.RateLimit:
        return "claude" if o.info.window in WINDOW_MINUTES else None
    if type(o) is not lines.UsageEvent:
        return None
    if o.request_id is not None or o.usage.cache_creation_input_tokens is not None:
        return "claude"
    return "codex" if o.model is None else "b10x"


def figures(usage: Usage) -> dict[str, Any]:
    """A Usage object as event columns."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens,
        "cache_write_tokens": usage.cache_creation_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.thinking_tokens,
    }


def adds_up(parts: list[Usage | None], total: Usage) -> bool:
    """True: every part is there, and each figure that the total knows is the sum of the parts'."""
    if any(part is None for part in parts):
        return False
    fields = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    rows = [figures(part) for part in parts if part is not None]
    whole = figures(total)
    return all(whole[f] is None or whole[f] == sum(row[f] or 0 for row in rows) for f in fields)
