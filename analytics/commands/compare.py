"""`runlake compare --by variant A B`: does B differ from A, by how much, and may one say so."""
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.commands import options
from analytics.commands.options import (
    FormatOption,
    FormulasOption,
    LakeOption,
    OutOption,
    Output,
    SinceOption,
    UntilOption,
    VersionOption,
    WhereOption,
    WireOption,
    emit,
    opened,
)

# what of a metric's row a terminal and a pull request show; data formats have all
SHOWN = (
    "metric", "verdict", "difference", "low", "high", "relative_percent", "a_mean", "a_mean_is_lower_bound", "b_mean",
    "b_mean_is_lower_bound", "tasks", "sign_test_p", "a_runs", "b_runs", "a_unknown", "b_unknown", "reason",
    "a_p50", "b_p50", "a_p90", "b_p90", "a_p95", "b_p95", "a_p99", "b_p99",
)  # fmt: skip


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="What B is measured against: a value of --by.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other value. Figures say B minus A.")],
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="WHAT", help="variant, model, adapter, wire, version (of the agent), directory or branch."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this one; may be repeated.", show_default=False),
    ] = None,
    tasks: Annotated[  # noqa: FBT002
        bool, typer.Option("--tasks", help="Instead a row per metric and task: the means of both sides.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            help="Also draw it, as .svg or .html (light or dark, as its reader has it) or .png.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", metavar="N", help="How many times tasks are drawn.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Where drawing begins: same seed, same answer.")] = 0,
    level: Annotated[float, typer.Option("--level", metavar="SHARE", help="What the interval covers.")] = 0.95,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    where: WhereOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Compares two values of something, metric by metric, with an interval and a verdict about B against A.

    Runs are averaged within their task, tasks that both sides have are paired, and the tasks are drawn again and again
    (cluster bootstrap): the interval is that of the mean difference. A verdict (better, worse, no difference shown, not
    decidable) needs five tasks; metrics without a good direction say higher or lower. Each verdict stands alone: of 20
    metrics that do not differ, one will seem to. The exact sign test over the tasks stands beside it.

    Where no run names a task, the runs themselves are drawn (unpaired, five a side). Runs whose figure is unknown are
    left out and counted. Where figures are lower bounds (cut runs; agents with runs of their own) that could turn the
    difference, it is not decidable; --where 'NOT tokens_are_lower_bound' leaves such runs out (cost_usd_is_…,
    denials_are_… and counts_are_… alike: the columns are those of comparable_runs).

    Lower is better: cost_usd, duration_ms, total_tokens, output_tokens, failed_calls, tool_calls_unfinished,
    input_tokens, uncached_input_tokens, requests, retries, errors, rate_limit_rejections. Higher is better:
    success_rate (the wire's outcome), completion_rate (closed, not cut). Neither: tool_calls, denied_calls,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, file_changes, compactions.
    """
    output = Output(format_, out, formulas)
    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire}
    with opened(lake, at) as source:
        if picture is not None:
            from analytics.comparison_picture import check_picture

            check_picture(picture)
        made = source.compare(by, a, b, metric, resamples=resamples, seed=seed, level=level, where=where, **filters)
        options.tell_left_out(source, **filters)
    options.say(f"{made}.")
    rows = (made.tasks if tasks else made.metrics).arrow()
    if not tasks and output.chosen in ("table", "md"):
        rows = rows.select(list(SHOWN))
    emit(rows, output)
    if picture is not None:
        from analytics.comparison_picture import draw

        for note in draw(made, picture):
            options.say(note)
