"""What is compared: the metrics, the runs of both sides, and the rows that say how B stands against A.

The runs come from the relation `comparable_runs`; the statistics are `analytics.comparison`. A run whose figure is
unknown is left out of that metric and counted; it is never taken as zero.
"""
# ruff: noqa: PLC0415 — numpy, Arrow and Polars are imported when something is compared

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from analytics.errors import UsageError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from analytics.api import Lake
    from analytics.comparison import Effect, Settings, Side

SHOWN_NAMES = 20
Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A numeric column of comparable_runs. `better` None: more is neither good nor bad.

    `flag`: the column that says that the figure is a lower bound; None where it cannot be one.
    """

    name: str
    better: Better | None
    flag: str | None
    is_main: bool = False


_COST, _TOKENS, _DENIALS, _COUNTS = (
    f"{what}_lower_bound" for what in ("cost_usd_is", "tokens_are", "denials_are", "counts_are")
)
METRICS = (
    Metric("success_rate", "higher", None, is_main=True),  # the wire's own outcome, 1 or 0
    Metric("completion_rate", "higher", None, is_main=True),  # closed 1, truncated or inconsistent 0
    Metric("cost_usd", "lower", _COST, is_main=True),
    Metric("duration_ms", "lower", None, is_main=True),
    Metric("total_tokens", "lower", _TOKENS, is_main=True),
    Metric("input_tokens", "lower", _TOKENS),
    Metric("uncached_input_tokens", "lower", _TOKENS),
    Metric("cache_read_tokens", None, _TOKENS),  # cheaper than uncached, dearer than none
    Metric("cache_write_tokens", None, _TOKENS),
    Metric("output_tokens", "lower", _TOKENS, is_main=True),
    Metric("reasoning_tokens", None, _TOKENS),
    Metric("requests", "lower", _COUNTS),
    Metric("tool_calls", None, _COUNTS, is_main=True),  # more work, or less of it by talk
    Metric("failed_calls", "lower", _COUNTS, is_main=True),
    Metric("denied_calls", None, _DENIALS, is_main=True),  # says as much of the policy as of the agent
    Metric("tool_calls_unfinished", "lower", None, is_main=True),  # of closed runs alone, so exact
    Metric("file_changes", None, _COUNTS),
    Metric("retries", "lower", _COUNTS),
    Metric("errors", "lower", _COUNTS),
    Metric("compactions", None, _COUNTS),
    Metric("rate_limit_rejections", "lower", _COUNTS),
)
BY_NAME = {metric.name: metric for metric in METRICS}
# what --by takes, and the column it is
GROUPINGS = {
    "variant": "variant", "model": "model", "adapter": "adapter", "wire": "wire", "version": "agent_version",
    "directory": "working_directory", "branch": "git_branch",
}  # fmt: skip


class Frame:
    """Rows as the other answers of a lake give them: `.pl()`, `.arrow()`, `.df()`, or plain dictionaries."""

    def __init__(self, rows: Sequence[dict[str, Any]], schema: dict[str, str]) -> None:
        self._rows, self._schema = list(rows), schema

    def arrow(self) -> pa.Table:
        """An Arrow table."""
        import pyarrow as pa

        kinds = {"text": pa.string(), "integer": pa.int64(), "fraction": pa.float64(), "truth": pa.bool_()}
        fields = pa.schema([(name, kinds[kind]) for name, kind in self._schema.items()])
        return pa.Table.from_pylist(self._rows, schema=fields)

    def pl(self) -> pl.DataFrame:
        """A Polars frame."""
        import polars as pl

        frame = pl.from_arrow(self.arrow())
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 (a table gives a frame)
        return frame

    def df(self) -> Any:
        """A pandas frame."""
        return self.arrow().to_pandas()

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary per row."""
        return [dict(row) for row in self._rows]


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A. `pairing`: "task", or "unpaired" where no run of either side names a task.

    `metrics`: a row per metric. `tasks`: a row per metric and task of either side.
    """

    by: str
    a: str
    b: str
    pairing: Literal["task", "unpaired"]
    a_runs: int
    b_runs: int
    settings: Settings
    metrics: Frame
    tasks: Frame

    def __str__(self) -> str:
        how = "paired by task" if self.pairing == "task" else "unpaired: no run of either names a task"
        return (
            f"B against A by {self.by}: A = {self.a} ({self.a_runs:,} runs), B = {self.b} ({self.b_runs:,} runs); "
            f"{how}; {self.settings.resamples:,} resamples, seed {self.settings.seed}, level {self.settings.level:g}"
        )


METRIC_COLUMNS = {
    "metric": "text", "verdict": "text", "a_mean": "fraction", "a_mean_is_lower_bound": "truth", "b_mean": "fraction",
    "b_mean_is_lower_bound": "truth", "difference": "fraction", "low": "fraction", "high": "fraction",
    "relative_percent": "fraction", "relative_low_percent": "fraction", "relative_high_percent": "fraction",
    "tasks": "integer", "b_higher": "integer", "b_lower": "integer", "ties": "integer", "sign_test_p": "fraction",
    "effect_size": "fraction", "share_above_zero": "fraction", "reason": "text",
    **{f"{side}_{what}": "integer" for what in ("runs", "unknown", "lower_bounds", "without_task", "without_partner")
       for side in "ab"},
    **{f"{side}_p{percent}": "fraction" for side in "ab" for percent in (50, 90, 95, 99)},
    "better_is": "text", "pairing": "text", "by": "text", "a": "text", "b": "text",
    "resamples": "integer", "seed": "integer", "level": "fraction",
}  # fmt: skip
TASK_COLUMNS = {
    "metric": "text", "task": "text", "a_mean": "fraction", "a_mean_is_lower_bound": "truth", "b_mean": "fraction",
    "b_mean_is_lower_bound": "truth", "difference": "fraction", "relative_percent": "fraction", "is_paired": "truth",
    "a_runs": "integer", "b_runs": "integer", "a_unknown": "integer", "b_unknown": "integer",
}  # fmt: skip


class _Runs:
    """The runs of one side: their figures by column, and their tasks."""

    def __init__(self, columns: dict[str, list[Any]], places: Sequence[int]) -> None:
        self.columns = {name: [values[place] for place in places] for name, values in columns.items()}
        self.tasks: list[str | None] = self.columns["task"]
        self.runs_by_task = Counter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def known(self, metric: Metric) -> Known:
        import numpy as np

        flags = self.columns[metric.flag] if metric.flag else [False] * len(self)
        values = self.columns[metric.name]
        places = [n for n, value in enumerate(values) if value is not None and math.isfinite(value)]
        by_task: dict[str, list[int]] = {}
        for at, place in enumerate(places):
            task = self.tasks[place]
            if task is not None:
                by_task.setdefault(task, []).append(at)
        return Known(
            np.array([values[place] for place in places], dtype=np.float64),
            np.array([flags[place] is True for place in places], dtype=np.bool_),
            {task: np.array(found, dtype=np.intp) for task, found in by_task.items()},
            unknown=len(self) - len(places),
        )


@dataclass(frozen=True, slots=True)
class Known:
    """The known figures of one metric on one side, which are lower bounds, and the places of each task's runs."""

    values: Any
    bounds: Any
    tasks: dict[str, Any]
    unknown: int

    def side(self, tasks: Sequence[str]) -> Side:
        """Its means within the tasks, in that order."""
        from analytics.comparison import within

        return within(self.values, self.bounds, [self.tasks[task] for task in tasks])

    def runs_of(self, tasks: Sequence[str]) -> Any:
        """The places of the runs of these tasks."""
        import numpy as np

        return np.concatenate([self.tasks[task] for task in tasks] or [np.array([], dtype=np.intp)])


def compare(
    lake: Lake, by: str, a: str, b: str, metrics: Sequence[str] | None, settings: Settings, *, where: str | None = None,
    **filters: Any,
) -> Comparison:  # fmt: skip
    """The runs whose `by` is `b` against those whose `by` is `a`. `metrics` None: the main ones."""
    if by not in GROUPINGS:
        raise UsageError.unknown_name("comparison by", by, list(GROUPINGS))
    for name in metrics or ():
        if name not in BY_NAME:
            raise UsageError.unknown_name("metric", name, list(BY_NAME))
    if a == b:
        raise UsageError(f"A and B are both {a!r}. Give two different values of {by}.")
    chosen = [BY_NAME[name] for name in dict.fromkeys(metrics)] if metrics else [m for m in METRICS if m.is_main]
    relation = lake.report("comparable_runs", where=where, **filters)
    flags = {metric.flag for metric in chosen if metric.flag}
    wanted = list(dict.fromkeys([GROUPINGS[by], "task", *(metric.name for metric in chosen), *sorted(flags)]))
    fetched = relation.select(*wanted).fetchall()
    columns = {name: [row[at] for row in fetched] for at, name in enumerate(wanted)}
    values = columns[GROUPINGS[by]]
    for value in (a, b):
        if value not in values:
            raise _no_such(by, value, values)
    sides = [_Runs(columns, [n for n, own in enumerate(values) if own == value]) for value in (a, b)]
    is_paired = any(task is not None for side in sides for task in side.tasks)
    rows, tasks = [], []
    for metric in chosen:
        row, of_tasks = (_paired if is_paired else _unpaired)(metric, sides[0], sides[1], settings)
        pairing = "task" if is_paired else "unpaired"
        rows.append(row | {
            "metric": metric.name, "better_is": metric.better, "pairing": pairing, "by": by, "a": a, "b": b,
            "resamples": settings.resamples, "seed": settings.seed, "level": settings.level,
        })  # fmt: skip
        tasks += of_tasks
    return Comparison(
        by, a, b, "task" if is_paired else "unpaired", len(sides[0]), len(sides[1]), settings,
        Frame(rows, METRIC_COLUMNS), Frame(tasks, TASK_COLUMNS),
    )  # fmt: skip


def _no_such(by: str, value: str, values: list[Any]) -> UsageError:
    """The nearest of the values that are there; all of them if they are few."""
    from difflib import get_close_matches

    known = sorted({str(own) for own in values if own is not None})
    if not values:
        return UsageError("There is no run to compare: the lake has none, or the filters leave none.")
    if not known:
        return UsageError(f"There is no run whose {by} is {value!r}: no record of these runs names a {by}.")
    near = get_close_matches(value, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(repr(name) for name in known[:SHOWN_NAMES])
    more = f", and {len(known) - SHOWN_NAMES:,} more" if len(known) > SHOWN_NAMES else ""
    return UsageError(f"There is no run whose {by} is {value!r}.{guess} Available: {listed}{more}.")


def _paired(metric: Metric, a: _Runs, b: _Runs, settings: Settings) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from analytics.comparison import judge, paired_effect

    known_a, known_b = a.known(metric), b.known(metric)
    shared = sorted(known_a.tasks.keys() & known_b.tasks.keys())
    side_a, side_b = known_a.side(shared), known_b.side(shared)
    effect = paired_effect(side_a, side_b, settings)
    verdict, reason = judge(effect, side_a, side_b, metric.better, "task", settings, flag=metric.flag)
    for name, runs in (("A", a), ("B", b)):
        if not any(task is not None for task in runs.tasks):
            reason += f"; no run of {name} names a task"
    row = {"verdict": verdict, "reason": reason, "tasks": len(shared)}
    for name, known, side in (("a", known_a, side_a), ("b", known_b, side_b)):
        used = known.runs_of(shared)
        row |= _side(name, side, known, used)
        of_tasks = sum(places.size for places in known.tasks.values())
        row[f"{name}_without_task"] = known.values.size - of_tasks
        row[f"{name}_without_partner"] = of_tasks - used.size
    named = sorted({task for side in (a, b) for task in side.tasks if task is not None})
    return row | _effect(effect), [_task(metric, task, (a, known_a), (b, known_b)) for task in named]


def _unpaired(metric: Metric, a: _Runs, b: _Runs, settings: Settings) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from analytics.comparison import Side, judge, unpaired_effect

    known_a, known_b = a.known(metric), b.known(metric)
    side_a, side_b = Side(known_a.values, known_a.bounds), Side(known_b.values, known_b.bounds)
    effect = unpaired_effect(side_a, side_b, settings)
    verdict, reason = judge(effect, side_a, side_b, metric.better, "run", settings, flag=metric.flag)
    row = {"verdict": verdict, "reason": f"unpaired, no run names a task: {reason}"}
    for name, known, side in (("a", known_a, side_a), ("b", known_b, side_b)):
        row |= _side(name, side, known, slice(None))
    return row | _effect(effect), []


def _side(name: str, side: Side, known: Known, used: Any) -> dict[str, Any]:
    """What one side's columns say; `used` are the runs that the comparison rests on."""
    from analytics.comparison import percentiles

    values = known.values[used]
    spread = {f"{name}_p{percent}": value for percent, value in percentiles(values).items()}
    return spread | {
        f"{name}_mean": side.mean, f"{name}_mean_is_lower_bound": bool(side.bounds.any()),
        f"{name}_runs": int(values.size), f"{name}_unknown": known.unknown,
        f"{name}_lower_bounds": int(known.bounds[used].sum()),
    }  # fmt: skip


def _effect(effect: Effect | None) -> dict[str, Any]:
    if effect is None:
        return {}
    row = {
        "difference": effect.difference.estimate, "low": effect.difference.low, "high": effect.difference.high,
        "share_above_zero": effect.difference.share_above_zero, "effect_size": effect.size, "b_higher": effect.higher,
        "b_lower": effect.lower, "ties": effect.ties, "sign_test_p": effect.sign_test_p,
    }  # fmt: skip
    if effect.relative is not None:
        row |= {
            "relative_percent": effect.relative.estimate * 100, "relative_low_percent": effect.relative.low * 100,
            "relative_high_percent": effect.relative.high * 100,
        }  # fmt: skip
    return row


def _task(metric: Metric, task: str, a: tuple[_Runs, Known], b: tuple[_Runs, Known]) -> dict[str, Any]:
    """One task of one metric: the means of its known runs on both sides."""
    from analytics.comparison import snapped

    row: dict[str, Any] = {"metric": metric.name, "task": task}
    for name, (runs, known) in (("a", a), ("b", b)):
        if task in known.tasks:
            side = known.side([task])
            row |= {f"{name}_mean": side.mean, f"{name}_mean_is_lower_bound": bool(side.bounds[0])}
        row[f"{name}_runs"] = len(known.tasks.get(task, ()))
        row[f"{name}_unknown"] = runs.runs_by_task[task] - row[f"{name}_runs"]
    mean_a, mean_b = row.get("a_mean"), row.get("b_mean")
    row["is_paired"] = mean_a is not None and mean_b is not None
    if mean_a is not None and mean_b is not None:
        row["difference"] = float(snapped(mean_b - mean_a, max(abs(mean_a), abs(mean_b))))
        row["relative_percent"] = row["difference"] / mean_a * 100 if mean_a > 0 else None
    return row
