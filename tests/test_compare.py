"""Comparing two variants: intervals and verdicts reasoned out beforehand, and what a comparison must not pretend."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import re
import statistics
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from comparison_corpus import lab_run, six_tasks, write_runs
from queries_lake import Lake
from queries_native import CODE, answer, begun, harness, recorded, run as native
from scipy import stats

from analytics import open_lake
from analytics.cli import run
from analytics.commands.compare import SHOWN, compare as command
from analytics.comparison import (
    Effect,
    Interval,
    Settings,
    Side,
    judge,
    paired_effect,
    percentiles,
    sign_test,
    unpaired_effect,
    within,
)
from analytics.comparison_runs import METRICS
from analytics.errors import UsageError
from analytics.relations import relations

MANY = Settings(resamples=20_000)
# Monte-Carlo error between two 2.5 % ends of 20,000 draws each, in standard errors of the mean difference. One end has
# sqrt(0.025 * 0.975 / 20,000) / 0.0584 = 0.019 (0.0584 is the normal density there), two have 0.027; four times that
NOISE = 0.107


def side(*values, bounds=()):
    return Side(np.array(values, dtype=float), np.array([n in bounds for n in range(len(values))], dtype=bool))


def ends(interval):
    return interval.low, interval.high


# the interval


def test_an_interval_by_hand():
    """B - A is 1, 1, 1, 1, -4. The mean of five draws is 1 - k, k of Bin(5, 1/5) the times that -4 is drawn.

    P(k >= 4) = 0.0067 and P(k >= 3) = 0.0579, so the 2.5 % end is k = 3; P(k = 0) = 0.33, so the other is 1.
    """
    effect = paired_effect(side(10, 10, 10, 10, 10), side(11, 11, 11, 11, 6), Settings())
    assert effect.difference.estimate == 0
    assert ends(effect.difference) == (-2, 1)
    assert effect.difference.share_above_zero == pytest.approx(0.8**5, abs=0.04)
    assert (effect.relative.estimate, *ends(effect.relative)) == pytest.approx((0, -0.2, 0.1))
    assert (effect.higher, effect.lower, effect.ties) == (4, 1, 0)
    assert effect.sign_test_p == pytest.approx(2 * (1 + 5) / 32)
    assert effect.size == 0


def test_an_interval_by_enumeration():
    """All 5^5 resamples of 1 … 5: 56 have a sum of 8 or less (1.8 %), 126 of 9 or less (4.0 %)."""
    sums = [sum(drawn) for drawn in itertools.product(range(1, 6), repeat=5)]
    assert (sum(s <= 8 for s in sums), sum(s <= 9 for s in sums)) == (56, 126)
    effect = paired_effect(side(0, 0, 0, 0, 0), side(1, 2, 3, 4, 5), MANY)
    assert effect.difference.estimate == 3
    assert ends(effect.difference) == pytest.approx((9 / 5, 21 / 5))
    assert effect.difference.share_above_zero == 1
    assert effect.size == pytest.approx(3 / math.sqrt(2.5))
    assert effect.relative is None, "nothing is a share of zero"


@pytest.fixture(scope="module")
def made_up():
    rng = np.random.default_rng(20260301)
    a = rng.lognormal(3, 0.6, 30)
    return a, a * rng.lognormal(0.1, 0.4, 30)


def test_scipy_finds_the_same_paired_interval(made_up):
    a, b = made_up
    found = paired_effect(side(*a), side(*b), MANY)
    other = stats.bootstrap((b - a,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(5))
    assert ends(found.difference) == pytest.approx(tuple(other.confidence_interval), abs=NOISE * other.standard_error)
    assert found.difference.estimate == pytest.approx(np.mean(b) - np.mean(a))

    def relative(x, y, axis=-1):
        return y.mean(axis=axis) / x.mean(axis=axis) - 1

    other = stats.bootstrap(
        (a, b), relative, paired=True, vectorized=True, n_resamples=20_000, method="percentile",
        rng=np.random.default_rng(6),
    )  # fmt: skip
    assert ends(found.relative) == pytest.approx(tuple(other.confidence_interval), abs=NOISE * other.standard_error)


def test_scipy_finds_the_same_unpaired_interval(made_up):
    a, b = made_up[0][:12], made_up[1]

    def difference(x, y, axis=-1):
        return y.mean(axis=axis) - x.mean(axis=axis)

    found = unpaired_effect(side(*a), side(*b), MANY)
    other = stats.bootstrap(
        (a, b), difference, vectorized=True, n_resamples=20_000, method="percentile", rng=np.random.default_rng(7)
    )
    assert ends(found.difference) == pytest.approx(tuple(other.confidence_interval), abs=NOISE * other.standard_error)
    pooled = math.sqrt((11 * np.var(a, ddof=1) + 29 * np.var(b, ddof=1)) / 40)
    assert found.size == pytest.approx((np.mean(b) - np.mean(a)) / pooled)
    assert (found.sign_test_p, found.higher, found.ties) == (None, None, None)


def test_the_published_method_finds_the_same_interval(made_up):
    """Harness Lab's way with the standard library: resampled means in order, as many outside on both sides."""
    a, b = made_up
    differences, draws = list(b - a), random.Random(3)
    means = sorted(statistics.fmean(draws.choices(differences, k=30)) for _ in range(2000))
    found = paired_effect(side(*a), side(*b), Settings())
    spread = statistics.stdev(means)
    assert ends(found.difference) == pytest.approx((means[50], means[1949]), abs=0.25 * spread)


def test_as_many_resamples_lie_outside_on_both_sides():
    assert Settings().outside == 50
    assert Settings(resamples=1000, level=0.9).outside == 50
    assert Settings(resamples=40).outside == 1
    assert Settings(resamples=2000, level=0.999).outside == 1


def test_the_same_seed_gives_the_same_interval_and_another_seed_another(made_up):
    a, b = (side(*values) for values in made_up)
    assert paired_effect(a, b, Settings()) == paired_effect(a, b, Settings())
    assert ends(paired_effect(a, b, Settings(seed=1)).difference) != ends(paired_effect(a, b, Settings()).difference)


def test_changed_about_the_interval_is_mirrored(made_up):
    a, b = (side(*values) for values in made_up)
    there, back = paired_effect(a, b, Settings()).difference, paired_effect(b, a, Settings()).difference
    assert (back.estimate, *ends(back)) == pytest.approx((-there.estimate, -there.high, -there.low))


def test_memory_is_bounded_and_chunks_do_not_change_the_answer(made_up, monkeypatch):
    a, b = (side(*values) for values in made_up)
    whole = paired_effect(a, b, Settings())
    monkeypatch.setattr("analytics.comparison.CHUNK_VALUES", 300)
    assert ends(paired_effect(a, b, Settings()).difference) == ends(whole.difference)


def test_equal_figures_are_ties_and_no_difference():
    effect = paired_effect(side(3, 4, 5, 6, 7), side(3, 4, 5, 6, 7), Settings())
    assert (effect.difference, effect.ties) == (Interval(0, 0, 0, 0), 5)
    assert (effect.sign_test_p, effect.size) == (None, None)
    assert judge(effect, side(3, 4, 5, 6, 7), side(3, 4, 5, 6, 7), "lower", "task", Settings())[0] == (
        "no difference shown"
    )


def test_float_noise_is_a_tie():
    """0.1 + 0.2 is not 0.3; and resampled means of 0.1, 0.2, -0.3 that cancel are zero."""
    effect = paired_effect(side(*[0.3] * 5), side(*[0.1 + 0.2] * 5), Settings())
    assert (effect.difference, effect.ties) == (Interval(0, 0, 0, 0), 5)
    effect = paired_effect(side(1, 1, 1), side(1.1, 1.2, 0.7), Settings())
    assert effect.difference.estimate == pytest.approx(0, abs=1e-15)
    tiny = paired_effect(side(*[1e-12] * 5), side(*[2e-12] * 5), Settings())
    assert tiny.higher == 5, "small is not noise"


def test_one_task_and_none():
    effect = paired_effect(side(2), side(3), Settings())
    assert (effect.difference, effect.size) == (Interval(1, 1, 1, 1), None)
    assert paired_effect(side(), side(), Settings()) is None
    assert unpaired_effect(side(1, 2), side(), Settings()) is None


def test_one_run_of_a_side_has_no_spread_to_measure_by():
    assert unpaired_effect(side(1), side(2, 3, 4), Settings()).size is None


@pytest.mark.parametrize(
    ("higher", "lower", "p"),
    [(5, 0, 2 / 32), (0, 6, 2 / 64), (4, 1, 12 / 32), (3, 3, 1), (9, 1, 22 / 1024), (1, 0, 1), (0, 0, None)],
)
def test_the_sign_test_is_exact(higher, lower, p):
    assert sign_test(higher, lower) == (p if p is None else pytest.approx(p))


def test_percentiles_stand_between_neighbours():
    assert percentiles(np.array([40.0, 10, 30, 20])) == pytest.approx({50: 25, 90: 37, 95: 38.5, 99: 39.7})
    assert set(percentiles(np.array([])).values()) == {None}


def test_a_task_with_five_repetitions_counts_once():
    made = within(
        np.array([1.0, 3, 9, 9, 9, 9, 9]), np.array([False, True, *[False] * 5]), [np.array([0, 1]), np.arange(2, 7)]
    )
    assert (made.values.tolist(), made.bounds.tolist()) == ([2, 9], [True, False])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"level": 1.0}, "no share"), ({"level": 0.0}, "no share"), ({"level": math.nan}, "no share"),
        ({"resamples": 39}, "40 or more"), ({"resamples": 0}, "40 or more"), ({"seed": -1}, "negative"),
        ({"resamples": 1999, "level": 0.999}, "2,000 or more"),
    ],
)  # fmt: skip
def test_settings_that_give_no_interval_are_refused(settings, said):
    with pytest.raises(UsageError, match=said):
        Settings(**settings)


# the verdict

ABOVE, BELOW, AROUND = (1.0, 2.0), (-2.0, -1.0), (-1.0, 1.0)
KINDS = {
    # interval, A has lower bounds, B has, lower is better
    "above": (ABOVE, False, False, "worse"),
    "below": (BELOW, False, False, "better"),
    "around": (AROUND, False, False, "no difference shown"),
    "touching zero": ((0.0, 1.0), False, False, "no difference shown"),
    "above, and B truly higher still": (ABOVE, False, True, "worse"),
    "above, but A may be higher": (ABOVE, True, False, "not decidable"),
    "below, and A truly higher still": (BELOW, True, False, "better"),
    "below, but B may be higher": (BELOW, False, True, "not decidable"),
    "both may be higher": (BELOW, True, True, "not decidable"),
    "around, but A may be higher": (AROUND, True, False, "not decidable"),
    "around, but B may be higher": (AROUND, False, True, "not decidable"),
}


def effect_of(interval, p=0.01):
    return Effect(Interval(sum(interval) / 2, *interval, 0.5), None, None, 6, 0, 0, p)


@pytest.mark.parametrize(("interval", "a_bound", "b_bound", "verdict"), KINDS.values(), ids=KINDS)
def test_a_lower_bound_decides_only_what_it_cannot_turn(interval, a_bound, b_bound, verdict):
    a, b = side(*range(6), bounds=[2] if a_bound else []), side(*range(6), bounds=[3] if b_bound else [])
    assert judge(effect_of(interval), a, b, "lower", "task", Settings())[0] == verdict
    opposite = {"worse": "better", "better": "worse"}
    assert judge(effect_of(interval), a, b, "higher", "task", Settings())[0] == opposite.get(verdict, verdict)
    neutral = {"worse": "higher", "better": "lower"}
    found, reason = judge(effect_of(interval), a, b, None, "task", Settings(), flag="tokens_are_lower_bound")
    assert found == neutral.get(verdict, verdict)
    assert ("lower bounds" in reason) == (a_bound or b_bound)
    assert ("--where 'NOT tokens_are_lower_bound'" in reason) == (verdict == "not decidable")


def test_raising_a_lower_bound_never_turns_a_verdict_that_was_given(made_up):
    """Whatever the true figures of B's marked tasks are, B stays higher."""
    a, b = side(*made_up[0]), Side(made_up[0] + 5, np.arange(30) < 4)
    assert judge(paired_effect(a, b, Settings()), a, b, None, "task", Settings())[0] == "higher"
    for more in (0.1, 10, 1e6):
        true = side(*(b.values + more * b.bounds))
        assert judge(paired_effect(a, true, Settings()), a, true, None, "task", Settings())[0] == "higher"


@pytest.mark.parametrize(("tasks", "words"), [(0, "none has"), (1, "only 1 has"), (4, "only 4 have")])
def test_below_five_tasks_there_is_no_verdict(tasks, words):
    a, b = side(*[1.0] * tasks), side(*[9.0] * tasks)
    verdict, reason = judge(paired_effect(a, b, Settings()), a, b, "lower", "task", Settings())
    assert verdict == "not decidable"
    assert "needs 5 tasks" in reason
    assert words in reason


def test_five_tasks_suffice_and_the_sign_test_speaks_beside():
    a, b = side(*[1.0] * 5), side(*[9.0] * 5)
    verdict, reason = judge(paired_effect(a, b, Settings()), a, b, "lower", "task", Settings())
    assert verdict == "worse"
    assert "the sign test alone (p = 0.062) does not show it" in reason


def test_five_runs_a_side_are_needed_without_tasks():
    few, enough = side(1, 2, 3, 4), side(11, 12, 13, 14, 15)
    verdict, reason = judge(unpaired_effect(few, enough, Settings()), few, enough, "lower", "run", Settings())
    assert verdict == "not decidable"
    assert "A has 4, B 5" in reason


# through a lake

HOSTILE = "</script><b>\x1b[31m'; DROP VIEW runs; --"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """six_tasks; a third variant; a run without a cost; a task of one side; a run without a task."""
    folder = tmp_path_factory.mktemp("compare")
    more = [
        lab_run("other", "t1", usd=900.0), lab_run(HOSTILE, "t1", usd=1.0), lab_run("base", "t1", 7, tokens=100),
        lab_run("lean", "t9", usd=50.0), lab_run("lean", None, usd=60.0),
    ]  # fmt: skip
    made = open_lake(folder / "lake", create=True)
    made.ingest(write_runs(folder / "in", *six_tasks(), *more))
    return made


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """six_tasks, and in task t3 a run of base that was cut."""
    folder = tmp_path_factory.mktemp("cut")
    made = open_lake(folder / "lake", create=True)
    made.ingest(write_runs(folder / "in", *six_tasks(), lab_run("base", "t3", 5, tokens=300, is_cut=True)))
    return made


@pytest.fixture(scope="module")
def taskless(tmp_path_factory):
    """Five runs a side, without tasks. The dollars of B are those of A and 10."""
    folder = tmp_path_factory.mktemp("taskless")
    runs = [lab_run("plain", None, n, usd=float(n + 1)) for n in range(5)]
    runs += [lab_run("rich", None, n, usd=float(n + 11)) for n in range(5)]
    made = open_lake(folder / "lake", create=True)
    made.ingest(write_runs(folder / "in", *runs))
    return made


@pytest.fixture
def cli(capfd, monkeypatch, lake):
    def go(*arguments, at=lake):
        monkeypatch.setenv("RUNLAKE_LAKE", str(at.path))
        capfd.readouterr()
        code = run(["compare", *map(str, arguments)])
        said = capfd.readouterr()
        return code, said.out, said.err

    return go


COST = ("--by", "variant", "base", "lean", "--metric", "cost_usd")


def test_a_comparison_by_hand(lake):
    """Within tasks base - lean is 1, 2, 1, 1, 1, 1. The mean of six draws is -1 - k/6, k of Bin(6, 1/6).

    P(k >= 4) = 0.009 and P(k >= 3) = 0.062, so the low end is -1.5; P(k = 0) = 0.33, so the high end is -1. Lean is
    half of base in every task. The runs of base cost 1, 3, 4, 2, 2, 2, 2.
    """
    (row,) = lake.compare(by="variant", a="base", b="lean", metrics=["cost_usd"]).metrics.to_dicts()
    hand = {
        "a_mean": 14 / 6, "b_mean": 7 / 6, "difference": -7 / 6, "low": -1.5, "high": -1, "relative_percent": -50,
        "relative_low_percent": -50, "relative_high_percent": -50, "effect_size": -7 / math.sqrt(6),
        "sign_test_p": 2 / 64, "share_above_zero": 0, "a_p50": 2, "a_p90": 3.4, "a_p95": 3.7, "a_p99": 3.94,
    }  # fmt: skip
    assert {name: row[name] for name in hand} == pytest.approx(hand)
    counts = {
        "tasks": 6, "b_higher": 0, "b_lower": 6, "ties": 0, "a_runs": 7, "b_runs": 10, "a_unknown": 1, "b_unknown": 0,
        "a_without_task": 0, "b_without_task": 1, "a_without_partner": 0, "b_without_partner": 1, "a_lower_bounds": 0,
        "b_lower_bounds": 0,
    }  # fmt: skip
    assert {name: row[name] for name in counts} == counts
    assert (row["verdict"], row["better_is"], row["pairing"]) == ("better", "lower", "task")
    assert (row["a_mean_is_lower_bound"], row["reason"]) == (False, "the 95 % interval of the difference is below 0")


def test_the_other_way_round_it_is_worse(lake):
    (row,) = lake.compare("variant", "lean", "base", ["cost_usd"]).metrics.to_dicts()
    assert (row["verdict"], row["difference"], row["low"], row["high"]) == ("worse", pytest.approx(7 / 6), 1, 1.5)
    assert row["relative_percent"] == pytest.approx(100)


def test_tasks_are_shown_one_by_one(lake):
    rows = {row["task"]: row for row in lake.compare("variant", "base", "lean", ["cost_usd"]).tasks.to_dicts()}
    assert sorted(rows) == ["t1", "t2", "t3", "t4", "t5", "t6", "t9"]
    assert (rows["t1"]["a_mean"], rows["t1"]["b_mean"], rows["t1"]["difference"]) == (2, 1, -1)
    assert (rows["t1"]["a_runs"], rows["t1"]["b_runs"], rows["t1"]["a_unknown"]) == (2, 5, 1)
    assert (rows["t9"]["is_paired"], rows["t9"]["b_mean"]) == (False, 50)
    assert rows["t9"].get("a_mean") is None


def test_a_metric_without_a_good_direction_says_higher(lake):
    row = lake.compare("variant", "base", "lean", ["tool_calls"]).metrics.to_dicts()[0]
    assert (row["verdict"], row["better_is"]) == ("higher", None)


def test_equal_runs_show_no_difference(lake):
    rows = lake.compare("variant", "base", "lean", ["duration_ms", "success_rate"]).metrics.to_dicts()
    assert [row["verdict"] for row in rows] == ["no difference shown"] * 2
    assert [row["ties"] for row in rows] == [6, 6]


def test_an_unknown_metric_of_all_runs_is_not_decidable(lake):
    (row,) = lake.compare("variant", "base", "lean", ["rate_limit_rejections"]).metrics.pl().to_dicts()
    assert (row["verdict"], row["a_unknown"], row["b_unknown"]) == ("not decidable", 8, 12)
    assert (row["a_mean"], row["difference"], row["low"], row["a_p50"]) == (None, None, None, None)
    assert "none has" in row["reason"]


def test_three_tasks_give_numbers_but_no_verdict(sample_lake):
    (row,) = sample_lake.compare("variant", "claude-plain", "claude-skills", ["cost_usd"]).metrics.to_dicts()
    assert row["tasks"] == 3
    assert row["high"] < 0
    assert row["verdict"] == "not decidable"
    assert "needs 5 tasks" in row["reason"]


def test_what_a_cut_run_can_turn_is_not_decidable(cut):
    rows = {row["metric"]: row for row in cut.compare("variant", "base", "lean").metrics.to_dicts()}
    tokens = rows["total_tokens"]
    assert (tokens["verdict"], tokens["a_mean_is_lower_bound"], tokens["a_lower_bounds"]) == ("better", True, 1)
    assert "A has lower bounds in 1 task, so the true difference may be larger still" in tokens["reason"]
    calls = rows["tool_calls"]
    assert calls["low"] > 0
    assert (calls["verdict"], calls["a_lower_bounds"]) == ("not decidable", 1)
    without = cut.compare("variant", "base", "lean", ["tool_calls"], where="NOT counts_are_lower_bound")
    assert [(row["verdict"], row["a_runs"]) for row in without.metrics.to_dicts()] == [("higher", 7)]
    assert rows["completion_rate"]["a_mean"] == pytest.approx(5.5 / 6)


def test_a_terminal_marks_lower_bounds(cli, cut):
    code, out, _ = cli("--by", "variant", "base", "lean", "--metric", "total_tokens", at=cut)
    assert code == 0
    assert "≥ 241.6667" in out, "t1 200, t2 400, t3 (200 + 300) / 2, then 200, 200, 200: 1450 / 6"
    assert "116.6667" in out
    assert "≥ 116.6667" not in out


def test_without_tasks_runs_are_compared_unpaired(taskless, cli):
    made = taskless.compare("variant", "plain", "rich", ["cost_usd"], resamples=20_000)
    (row,) = made.metrics.to_dicts()
    assert (row["pairing"], row["verdict"], row["difference"]) == ("unpaired", "worse", 10)
    assert row.get("sign_test_p") is None
    assert row.get("tasks") is None
    assert row["reason"].startswith("unpaired, no run names a task: ")
    other = stats.bootstrap(
        (np.arange(11.0, 16), np.arange(1.0, 6)), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        vectorized=True, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1),
    )  # fmt: skip
    assert (row["low"], row["high"]) == pytest.approx(
        tuple(other.confidence_interval), abs=0.201
    )  # means lie 0.2 apart
    assert made.tasks.to_dicts() == []
    assert "unpaired: no run of either names a task" in cli("--by", "variant", "plain", "rich", at=taskless)[2]


def test_a_side_without_tasks_is_not_paired_with_one_that_has_them(tmp_path):
    made = open_lake(tmp_path / "lake", create=True)
    runs = [lab_run("a", f"t{n}", usd=1.0) for n in range(5)] + [lab_run("b", None, n, usd=2.0) for n in range(5)]
    made.ingest(write_runs(tmp_path / "in", *runs))
    (row,) = made.compare("variant", "a", "b", ["cost_usd"]).metrics.to_dicts()
    assert (row["verdict"], row["tasks"], row["b_without_task"]) == ("not decidable", 0, 5)
    assert "no run of B names a task" in row["reason"]


def test_what_is_compared_counts_work_once(tmp_path):
    """A harness run stands for its session, and a session for the agents that it started."""
    shown = Lake(
        tmp_path / "shown",
        [harness("h", "night", recorded("x1", 5), session_id="s"), native(CODE, "f", "s", answer("m1", 5, ts=10))],
    )
    assert [row["run_id"] for row in shown.rows("FROM comparable_runs")] == ["night"]
    family = [
        native(CODE, "f", "s", answer("m1", 5, ts=10)),
        native(CODE, "g", "s/x", answer("m3", 9, ts=15), session="", parent="s", agent="x"),
        native(CODE, "k", "u", begun(), answer("m9", 7, ts=50)),
    ]
    made = Lake(tmp_path / "family", family)
    assert made.by_run("comparable_runs", "agent_runs", "output_tokens", "tokens_are_lower_bound") == {
        "s": (1, 5, True), "u": (0, 7, False),
    }  # fmt: skip


def test_runs_by_model_and_by_where(lake):
    with pytest.raises(UsageError, match=r"model is 'larch-6'.* Did you mean 'larch-5'"):
        lake.compare("model", "larch-5", "larch-6")
    (row,) = lake.compare("variant", "base", "lean", ["cost_usd"], where="task <> 't2'").metrics.to_dicts()
    assert (row["tasks"], row["difference"], row["low"], row["high"]) == (5, -1, -1, -1)


def test_time_filters_reach_the_runs(tmp_path):
    made = open_lake(tmp_path / "lake", create=True)
    made.ingest(write_runs(tmp_path / "in", *(
        lab_run(variant, f"t{n}", day, usd=usd, day=day)
        for day, prices in enumerate([{"a": 1.0, "b": 9.0}, {"a": 5.0, "b": 2.0}])
        for variant, usd in prices.items()
        for n in range(5)
    )))  # fmt: skip
    (early,) = made.compare("variant", "a", "b", ["cost_usd"], until="2026-03-01").metrics.to_dicts()
    (late,) = made.compare("variant", "a", "b", ["cost_usd"], since="2026-03-02").metrics.to_dicts()
    assert [(row["verdict"], row["difference"]) for row in (early, late)] == [("worse", 8), ("better", -3)]


# the command


def test_every_format_says_the_same(cli, tmp_path):
    (row,) = json.loads(cli(*COST, "--format", "json")[1])
    assert row["low"] == -1.5
    assert json.loads(cli(*COST, "--format", "jsonl")[1]) == row
    (read,) = csv.DictReader(io.StringIO(cli(*COST, "--format", "csv")[1]))
    assert (read["verdict"], float(read["low"]), read["a_without_task"]) == ("better", -1.5, "0")
    assert set(read) == set(row)
    code, out, _ = cli(*COST, "-o", tmp_path / "c.parquet")
    assert (code, out) == (0, "")
    assert pl.read_parquet(tmp_path / "c.parquet").to_dicts() == [row]
    assert f"| cost_usd | better | {row['difference']} | -1.5 |" in cli(*COST, "--format", "md")[1]
    code, out, err = cli(*COST)
    assert code == 0
    assert set(row) >= set(SHOWN)
    assert err == (
        "B against A by variant: A = base (8 runs), B = lean (12 runs); paired by task; 2,000 resamples, seed 0, "
        "level 0.95.\n"
    )


def test_tasks_go_out_instead_of_metrics(cli):
    rows = json.loads(cli(*COST, "--metric", "tool_calls", "--tasks", "--format", "json")[1])
    assert [row["metric"] for row in rows] == ["cost_usd"] * 7 + ["tool_calls"] * 7
    assert rows[6] | {"a_mean": None, "is_paired": False} == rows[6]


def test_the_switches_of_the_statistics(cli):
    (row,) = json.loads(cli(*COST, "--resamples", 4000, "--seed", 7, "--level", 0.8, "--format", "json")[1])
    assert (row["resamples"], row["seed"], row["level"]) == (4000, 7, 0.8)
    assert (row["low"], row["high"]) == pytest.approx((-1 - 2 / 6, -1))  # P(k >= 3) = 0.06, P(k >= 2) = 0.26
    assert cli(*COST, "--level", "1.5")[0] == 2
    assert cli(*COST, "--resamples", "10")[0] == 2


WRONG = {
    "the same value twice": (["--by", "variant", "base", "base"], "A and B are both 'base'"),
    "a grouping that is none": (["--by", "varient", "base", "lean"], "Did you mean 'variant'?"),
    "a metric that is none": (["--by", "variant", "base", "lean", "--metric", "cost"], "Did you mean 'cost_usd'?"),
    "no such value": (["--by", "variant", "base", "leam"], "Did you mean 'lean'?"),
    "neither": (["--by", "variant", "x", "y"], "There is no run whose variant is 'x'"),
    "a grouping that no record names": (["--by", "branch", "x", "y"], "no record of these runs names a branch"),
    "nothing is left": (["--by", "variant", "base", "lean", "--since", "2030-01-01"], "no run to compare"),
    "a condition that fails": (["--by", "variant", "base", "lean", "--where", "nope > 1"], "nope"),
    "no second value": (["--by", "variant", "base"], "B"),
    "no grouping": (["base", "lean"], "--by"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_compared_is_bad_usage(cli, arguments, said):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_an_empty_lake_has_nothing_to_compare(cli, tmp_path):
    code, out, err = cli("--by", "variant", "a", "b", at=open_lake(tmp_path / "lake", create=True))
    assert (code, out) == (2, "")
    assert "There is no run to compare" in err


def test_a_hostile_name_is_a_name(cli, tmp_path):
    code, out, err = cli("--by", "variant", "base", HOSTILE, "--metric", "cost_usd", "--picture", tmp_path / "p.html")
    assert code == 0
    assert "\x1b" not in out + err
    assert "not decidable" in out
    assert "</script><b>" not in (tmp_path / "p.html").read_text()
    assert "\x1b" not in cli("--by", "variant", "base", "x")[2]


def test_without_scipy_the_extra_is_named(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    code, out, err = cli(*COST)
    assert (code, out) == (2, "")
    assert "pip install 'runlake[compare]'" in err


def test_the_help_says_every_metric_with_its_direction():
    text = " ".join(command.__doc__.split())
    lower, higher, neither = re.search(
        r"Lower is better: (.*?)\. Higher is better: (.*?)\. Neither: (.*)", text
    ).groups()
    for metric in METRICS:
        place = {"lower": lower, "higher": higher, None: neither}[metric.better]
        assert re.search(rf"\b{metric.name}\b", place), metric.name


def test_every_figure_of_a_comparable_run_is_a_metric(lake):
    types = dict(zip(*(lake.table("comparable_runs").columns, lake.table("comparable_runs").types), strict=True))
    numbers = {name for name, kind in types.items() if str(kind) in ("BIGINT", "DOUBLE", "INTEGER")}
    assert numbers - {"repetition", "agent_runs"} == {metric.name for metric in METRICS}
    flags = {name for name in types if name.endswith("_lower_bound")}
    assert {metric.flag for metric in METRICS} - {None} == flags


# the picture


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_a_picture_is_drawn(cli, tmp_path, suffix):
    pytest.importorskip("vl_convert")
    code, out, err = cli("--by", "variant", "base", "lean", "--picture", tmp_path / f"p{suffix}", "--format", "csv")
    assert code == 0
    assert out.startswith("metric,verdict")
    data = (tmp_path / f"p{suffix}").read_bytes()
    if suffix == ".png":
        assert data.startswith(b"\x89PNG")
        return
    text = data.decode()
    for word in ("lean against base", "cost_usd", "interval of the mean", "each task"):
        assert word in text
    assert "Not in the picture" in err
    assert "output_tokens" in err.split("Not in the picture")[1]
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", text), "nothing is loaded from elsewhere"


def test_every_colour_of_the_picture_has_a_dark_one(cli, tmp_path):
    pytest.importorskip("vl_convert")
    from analytics.comparison_picture import COLOURS, DARK, INK

    assert cli("--by", "variant", "base", "lean", "--picture", tmp_path / "p.svg")[0] == 0
    drawn = re.findall(r'(?:fill|stroke)="(?!none|transparent)([^"]+)"', (tmp_path / "p.svg").read_text())
    assert set(drawn) <= {*COLOURS.values(), *INK.values()} <= DARK.keys()
    assert len(set(DARK.values())) == len(DARK)
    assert not DARK.keys() & set(DARK.values()), "no rule undoes another"


COLOURS_SEEN = """
const svg = document.querySelector('svg'), of = (e, name) => e && getComputedStyle(e)[name];
const text = [...svg.querySelectorAll('text')].find((one) => one.textContent === 'cost_usd');
const ground = document.documentElement.nodeName === 'svg' ? of(svg.querySelector('rect, path'), 'fill')
    : of(svg, 'backgroundColor');
return [of(text, 'fill'), ground, of(svg.querySelector('.mark-symbol.role-mark path'), 'fill')]
"""


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_the_picture_is_dark_where_its_reader_is(browser, cli, tmp_path, suffix):
    picture = tmp_path / f"p{suffix}"
    assert cli("--by", "variant", "base", "lean", "--picture", picture)[0] == 0
    browser.kept = None
    seen = []
    for scheme in ("light", "dark"):
        browser.look("", scheme)
        browser.driver.get(picture.as_uri())
        browser.wait("return document.querySelectorAll('.mark-symbol.role-mark path').length > 5")
        seen.append(browser.js(COLOURS_SEEN))
    light, dark = seen
    assert (light[0], dark[0]) == ("rgb(31, 35, 40)", "rgb(230, 233, 237)")
    assert (light[1], dark[1]) == ("rgb(255, 255, 255)", "rgb(15, 19, 24)")
    assert light[2] != dark[2]
    assert browser.console() == []


@pytest.mark.parametrize("width", [36, 60, 80])
def test_a_narrow_terminal_cuts_no_verdict(cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = cli("--by", "variant", "base", "lean")
    head, _, *rows = out.splitlines()
    assert code == 0
    assert all(len(line) <= width for line in out.splitlines() if width > 36), "a name and a verdict take 36 or more"
    assert not [line for line in rows if "…" in line]
    assert all(re.search("better|worse|higher|lower|no difference shown|not decidable", line) for line in rows) == (
        "verdict" in head
    )
    assert ("low" in head.split() and "high" in head.split()) == (width == 80)
    assert "do not fit" in err


def test_the_picture_shows_the_figures(lake):
    pytest.importorskip("altair")
    from analytics.comparison_picture import chart_of

    chart = chart_of(lake.compare("variant", "base", "lean", ["cost_usd", "tool_calls"])).to_dict()
    rows = [row for data in chart["datasets"].values() for row in data] if "datasets" in chart else _values(chart)
    intervals = {row["metric"]: row for row in rows if "low" in row}
    assert (intervals["cost_usd"]["percent"], intervals["cost_usd"]["verdict"]) == (pytest.approx(-50), "better")
    # base made 2 calls a run, but none in one of the three of t1: (4 / 3 + 5 * 2) / 6 = 34 / 18; lean made 3
    assert intervals["tool_calls"]["percent"] == pytest.approx((3 / (34 / 18) - 1) * 100)
    assert sorted(row["task"] for row in rows if row.get("task")) == sorted([f"t{n}" for n in range(1, 7)] * 2)


def _values(chart):
    """All inline rows of a chart."""
    if isinstance(chart, dict):
        own = chart.get("data", {}).get("values", []) if isinstance(chart.get("data"), dict) else []
        return own + [row for value in chart.values() for row in _values(value)]
    return [row for value in chart for row in _values(value)] if isinstance(chart, list) else []


def test_a_picture_of_nothing_says_so(cli, tmp_path):
    pytest.importorskip("vl_convert")
    code, _, _ = cli("--by", "variant", "base", "lean", "--metric", "failed_calls", "--picture", tmp_path / "p.svg")
    assert code == 0
    assert "No metric has a relative difference to show." in (tmp_path / "p.svg").read_text()


def test_a_picture_needs_a_known_suffix_and_the_extra(cli, tmp_path, monkeypatch):
    code, out, err = cli(*COST, "--picture", tmp_path / "p.gif")
    assert (code, out) == (2, "")
    assert ".svg, .png, .html" in err
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    code, out, err = cli(*COST, "--picture", tmp_path / "p.svg")
    assert (code, out) == (2, "")
    assert "pip install 'runlake[report]'" in err


# the distribution of run figures


def test_the_distribution_of_run_figures(tmp_path):
    """Dollars 10, 20, 30, 40, and a run that does not say: percentiles between neighbours."""
    runs = [lab_run("a", "t", n, usd=usd) for n, usd in enumerate([40.0, 10.0, None, 30.0, 20.0])]
    runs += [lab_run("b", "t", 0, tokens=7, is_cut=True)]
    made = open_lake(tmp_path / "lake", create=True)
    made.ingest(write_runs(tmp_path / "in", *runs))
    rows = {
        row["variant"]: row for row in made.report("run_distribution", where="measure = 'cost_usd'").pl().to_dicts()
    }
    hand = {"min_value": 10, "p50": 25, "p90": 37, "p95": 38.5, "p99": 39.7, "max_value": 40, "mean_value": 25}
    assert {name: rows["a"][name] for name in hand} == pytest.approx(hand)
    assert (rows["a"]["runs"], rows["a"]["runs_unknown"], rows["a"]["is_lower_bound"]) == (4, 1, False)
    assert (rows["b"]["runs"], rows["b"]["runs_unknown"], rows["b"]["p50"]) == (0, 1, None)
    for by in ("measure", "wire", "model"):
        (row,) = made.report("run_distribution", by, where="measure = 'total_tokens'").pl().to_dicts()
        assert (row["runs"], row["min_value"], row["p50"], row["is_lower_bound"]) == (6, 7, 100, True)


@pytest.mark.parametrize("order", ["value", "value DESC"])
@pytest.mark.parametrize("name", ["run_distribution", "report_run_distribution_by_measure"])
def test_a_mean_is_the_same_in_whichever_order_the_runs_come(name, order):
    """Added up as binary fractions, 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1, and threads bring the runs as they like."""
    costs = "SELECT value FROM (VALUES (0.1::DOUBLE), (0.2::DOUBLE), (0.3::DOUBLE)) AS v(value)"
    with duckdb.connect() as con:
        con.execute("SET threads = 1")
        con.execute(
            "CREATE TABLE run_figures AS SELECT 'w' AS wire, 'm' AS model, 'v' AS variant, 1 AS place,"
            f" 'cost_usd' AS measure, value, false AS is_lower_bound FROM ({costs} ORDER BY {order})"
        )
        assert con.sql(relations()[name].query).pl()["mean_value"].to_list() == [0.6 / 3]
