"""The statistics of `runlake compare`: pure functions on numpy arrays, one metric at a time, B against A.

The method is Harness Lab's published one (`harnesslab.experiments.stats`, "Statistics" of its guide):

* The task is the unit of evidence. Runs of a side are averaged within their task first, so that a task with five
  repetitions counts once; only tasks with a known figure on both sides are paired; the difference is B - A.
* Cluster bootstrap over tasks: seeded resamples of the tasks, each with all its runs, and the percentile interval of
  the mean difference. Its ends are the order statistics that leave the same number of resamples outside on both sides.
* Exact sign test over the tasks that are not ties. It depends on no resampling, so it stands beside the verdict, which
  the interval gives.
* A verdict needs five tasks; below that no interval over tasks is to be trusted.

What differs from it, and why:

* Ties and zeros are told by a tolerance relative to the figures (1e-9), not an absolute one: costs can be that small.
* The verdict has four values. *No difference shown* (the interval holds zero) is kept apart from *not decidable* (too
  few tasks, or the record cannot carry the answer). A metric without a good direction says higher or lower.
* A figure can be a lower bound: the true one may be higher, by nobody knows how much. Higher figures of B alone can
  only raise the difference, so that *B is higher* stands; higher figures of A alone can only lower it, so that *B is
  lower* stands. All else they could turn, and the verdict is *not decidable*.
* Runs without any task are compared unpaired: the runs are the clusters, each side is resampled by itself, five runs a
  side are needed, and there is no sign test.

Unknown is NaN and never a number: such runs are left out by the caller or here, before anything is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analytics.errors import UsageError

RESAMPLES, SEED, LEVEL = 2000, 0, 0.95
FEWEST = 5
TOLERANCE = 1e-9
CHUNK_VALUES = 1 << 20
PERCENTILES = (50, 90, 95, 99)

Verdict = Literal["better", "worse", "higher", "lower", "no difference shown", "not decidable"]
Better = Literal["lower", "higher"]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Settings:
    """How intervals are made: seeded resamples, and the share of them that an interval covers (0 to 1)."""

    resamples: int = RESAMPLES
    seed: int = SEED
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise UsageError(
                f"The level {self.level} is no share of resamples. Give one between 0 and 1, such as 0.95."
            )
        needed = math.ceil(2 / (1 - self.level) - TOLERANCE)
        if self.resamples < needed:
            raise UsageError(
                f"{self.resamples:,} resamples are too few for an interval of level {self.level}: at least one must "
                f"lie outside on each side. Give {needed:,} or more."
            )
        if self.seed < 0:
            raise UsageError(f"The seed {self.seed} is negative. Give 0 or more.")

    @property
    def outside(self) -> int:
        """How many resamples lie outside of the interval on each side."""
        return math.floor((1 - self.level) / 2 * self.resamples + TOLERANCE)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, the ends of its percentile interval, and the share of resamples in which it was above zero."""

    estimate: float
    low: float
    high: float
    share_above_zero: float


@dataclass(frozen=True, slots=True)
class Side:
    """The clusters of one side: their figures, and which of them are lower bounds. Both of shape (clusters,)."""

    values: Floats
    bounds: Truths

    @property
    def mean(self) -> float | None:
        """The mean over clusters; None without any."""
        return math.fsum(self.values) / self.values.size if self.values.size else None


@dataclass(frozen=True, slots=True)
class Effect:
    """B against A. `relative`: of the means, as a share of A's mean; None where that is or may be zero.

    `size`: the mean difference in standard deviations, of the differences (paired) or of the runs (unpaired, pooled);
    None where all are alike. `higher`, `lower`, `ties`: clusters by the sign of B - A (paired only).
    """

    difference: Interval
    relative: Interval | None
    size: float | None
    higher: int | None = None
    lower: int | None = None
    ties: int | None = None
    sign_test_p: float | None = None


def paired_effect(a: Side, b: Side, settings: Settings) -> Effect | None:
    """The effect over tasks: `a` and `b` hold the same tasks in the same order. None without any."""
    if a.values.size == 0:
        return None
    differences = snapped(b.values - a.values, np.maximum(np.abs(a.values), np.abs(b.values)))
    count = differences.size
    stacked = np.stack([differences, a.values, b.values])

    def draw(rng: np.random.Generator, many: int) -> Floats:
        chosen = rng.integers(0, count, size=(many, count))
        return np.asarray(np.stack([row[chosen].mean(axis=1) for row in stacked]))

    means = _resampled(draw, count, settings)
    higher, lower = int((differences > 0).sum()), int((differences < 0).sum())
    return Effect(
        _interval(math.fsum(differences) / count, snapped(means[0], np.abs(differences).max()), settings),
        _relative(a, b, means[1], means[2], settings),
        _in_deviations(math.fsum(differences) / count, _variance(differences)),
        higher, lower, count - higher - lower, sign_test(higher, lower),
    )  # fmt: skip


def unpaired_effect(a: Side, b: Side, settings: Settings) -> Effect | None:
    """The effect over runs, each side resampled by itself. None where a side has none."""
    if a.values.size == 0 or b.values.size == 0:
        return None

    def draw(rng: np.random.Generator, many: int) -> Floats:
        picked = [
            side.values[rng.integers(0, side.values.size, size=(many, side.values.size))].mean(axis=1)
            for side in (a, b)
        ]
        return np.asarray(np.stack(picked))

    means = _resampled(draw, a.values.size + b.values.size, settings)
    largest = float(max(np.abs(a.values).max(), np.abs(b.values).max()))
    estimate = float(snapped(np.array(_mean(b) - _mean(a)), largest))
    free = a.values.size + b.values.size - 2
    pooled = None
    if min(a.values.size, b.values.size) > 1:
        pooled = sum(_variance(side.values) * (side.values.size - 1) for side in (a, b)) / free
    return Effect(
        _interval(estimate, snapped(means[1] - means[0], largest), settings),
        _relative(a, b, means[0], means[1], settings),
        _in_deviations(estimate, pooled),
    )  # fmt: skip


def snapped(differences: Floats, scale: Floats | float) -> Floats:
    """Differences that are float noise against the figures they come from are zero."""
    return np.asarray(np.where(np.abs(differences) <= TOLERANCE * np.asarray(scale), 0.0, differences))


def _resampled(draw: Callable[[np.random.Generator, int], Floats], values_each: int, settings: Settings) -> Floats:
    """The drawn means, of shape (figures, resamples), in chunks that bound the memory."""
    rng = np.random.default_rng(settings.seed)
    step = max(1, CHUNK_VALUES // values_each)
    parts = [draw(rng, min(step, settings.resamples - done)) for done in range(0, settings.resamples, step)]
    return np.concatenate(parts, axis=1)


def _interval(estimate: float, resampled: Floats, settings: Settings) -> Interval:
    ordered = np.sort(resampled)
    out = settings.outside
    return Interval(estimate, float(ordered[out]), float(ordered[-1 - out]), float((resampled > 0).mean()))


def _relative(a: Side, b: Side, means_a: Floats, means_b: Floats, settings: Settings) -> Interval | None:
    """(mean of B - mean of A) / mean of A, where A's mean is above zero in every resample."""
    if means_a.min() <= 0 or _mean(a) <= 0:
        return None
    shares = snapped(means_b - means_a, np.maximum(np.abs(means_a), np.abs(means_b))) / means_a
    difference = float(snapped(np.array(_mean(b) - _mean(a)), max(abs(_mean(a)), abs(_mean(b)))))
    return _interval(difference / _mean(a), shares, settings)


def _mean(side: Side) -> float:
    return math.fsum(side.values) / side.values.size


def _variance(values: Floats) -> float:
    """Of a sample, with n - 1; 0 for one value."""
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _in_deviations(difference: float, variance: float | None) -> float | None:
    if not variance or math.sqrt(variance) <= TOLERANCE * abs(difference):
        return None
    return difference / math.sqrt(variance)


def sign_test(higher: int, lower: int) -> float | None:
    """The two-sided exact p-value of as uneven a split under chance; None where all are ties."""
    if higher + lower == 0:
        return None
    try:
        from scipy.stats import binomtest  # noqa: PLC0415 (0.5 s, and an extra)
    except ImportError:
        raise UsageError("The sign test of `runlake compare` needs scipy: pip install 'runlake[compare]'.") from None
    return float(binomtest(higher, higher + lower, 0.5).pvalue)


def judge(
    effect: Effect | None, a: Side, b: Side, better: Better | None, cluster: Literal["task", "run"],
    settings: Settings, *, flag: str | None = None,
) -> tuple[Verdict, str]:  # fmt: skip
    """The verdict, and the sentence that says what it rests on. `flag`: the column that tells lower bounds."""
    few = _too_few(a.values.size, b.values.size, cluster)
    if effect is None or few:
        return "not decidable", few
    interval, a_bounds, b_bounds = effect.difference, int(a.bounds.sum()), int(b.bounds.sum())
    sign = 1 if interval.low > 0 else -1 if interval.high < 0 else 0
    told = _told(a_bounds, b_bounds, cluster)
    if (a_bounds and sign >= 0) or (b_bounds and sign <= 0):
        remedy = f"; --where 'NOT {flag}' leaves such runs out" if flag else ""
        return "not decidable", f"{told}: the true figures may be higher and turn the difference{remedy}"
    percent = f"{settings.level * 100:g} %"
    if sign == 0:
        return "no difference shown", f"the {percent} interval of the difference holds 0"
    reason = f"the {percent} interval of the difference is {'above' if sign > 0 else 'below'} 0"
    if told:
        reason += f"; {told}, so the true difference may be larger still"
    if effect.sign_test_p is not None and effect.sign_test_p > 1 - settings.level + TOLERANCE:
        reason += f"; the sign test alone (p = {effect.sign_test_p:.2g}) does not show it"
    if better is None:
        return ("higher" if sign > 0 else "lower"), reason
    return ("better" if (sign > 0) == (better == "higher") else "worse"), reason


def _too_few(in_a: int, in_b: int, cluster: str) -> str:
    """Why there are too few clusters; empty where there are enough."""
    if min(in_a, in_b) >= FEWEST:
        return ""
    if cluster == "run":
        return f"a verdict needs {FEWEST} runs with a known figure a side; A has {in_a}, B {in_b}"
    have = f"only {in_a} have" if in_a > 1 else "only 1 has" if in_a else "none has"
    return f"a verdict needs {FEWEST} tasks with a known figure on both sides; {have}"


def _told(a_bounds: int, b_bounds: int, cluster: str) -> str:
    """Which figures are lower bounds; empty where none is."""
    sides = [(name, count) for name, count in (("A", a_bounds), ("B", b_bounds)) if count]
    return " and ".join(f"{name} has lower bounds in {count} {cluster}{'s'[: count != 1]}" for name, count in sides)


def within(values: Floats, bounds: Truths, tasks: Sequence[NDArray[np.intp]]) -> Side:
    """The mean of the runs of each task, in that order; one lower bound makes the mean one.

    `values` (known figures) and `bounds` have shape (runs,); a task is the places of its runs in them, at least one.
    """
    means = [math.fsum(values[places]) / places.size for places in tasks]
    marked = [bounds[places].any() for places in tasks]
    return Side(np.array(means, dtype=np.float64), np.array(marked, dtype=np.bool_))


def percentiles(values: Floats) -> dict[int, float | None]:
    """p50, p90, p95 and p99 of the runs, between neighbours by linear interpolation; None without any."""
    if values.size == 0:
        return dict.fromkeys(PERCENTILES)
    found = np.percentile(values, PERCENTILES)
    return {name: float(value) for name, value in zip(PERCENTILES, found, strict=True)}
