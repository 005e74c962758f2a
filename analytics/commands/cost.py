"""`runlake cost`: what runs cost by list price, beside what their vendor says."""
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.commands import options
from analytics.commands.options import (
    FormatOption,
    FormulasOption,
    LakeOption,
    OutOption,
    Output,
    RunOption,
    SinceOption,
    UntilOption,
    VersionOption,
    WhereOption,
    WireOption,
    emit,
    opened,
)

if TYPE_CHECKING:
    from analytics.cost import Costs

PricesOption = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", help="A CSV price list that stands before genai-prices.", show_default=False
    ),
]


def cost(
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="WHAT",
            help="all, model (unless told), run, day, wire, adapter, task, variant, directory, or reason; several "
            "give one row per combination.",
        ),
    ] = None,
    prices: PricesOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    where: WhereOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:  # fmt: skip
    """What runs cost by the list price of their model and day, beside the cost their vendor's records state.

    Prices come from the genai-prices package as installed, without a network (pip install 'runlake[cost]'). The
    columns of a --prices file are model (a name, * and ? allowed), valid_from, valid_until, and US dollars per million
    tokens: input, cached_input, cache_write_5m, cache_write_1h and output, each with _usd_per_mtok behind it. What has
    no price is left out of the sum, with its reason; searches and tool fees are in no sum.
    """
    from analytics.cost import costs, price_list

    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
    listed = price_list(prices)
    with opened(lake, at, one_by_one=True) as source:
        found = costs(source, by or "model", listed, **filters)
        options.tell_left_out(source, **filters)
        emit(source.over(found.table, where), Output(format_, out, formulas), are_few=False)
    options.say(_told(found))


def _told(found: Costs) -> str:
    """The sum and how much of the runs it covers, in one line."""
    from analytics.render import UNKNOWN, dollars

    total = found.total.row()

    def money(name: str) -> str:
        value = total[name]
        return UNKNOWN if value is None else f"{'≥ ' if total[f'{name}_is_lower_bound'] else ''}{dollars(value)}"

    share = UNKNOWN if total["priced_share"] is None else f"{total['priced_share'] * 100:.4g} %"
    why = f"; unpriced: {', '.join(total['unpriced_reasons'])}" if total["unpriced_reasons"] else ""
    return (
        f"By list price {money('priced_cost_usd')}, for {share} of the tokens, {total['runs_priced']:,} of "
        f"{total['runs']:,} runs wholly ({found.prices}){why}. By the vendors' own records {money('vendor_cost_usd')}, "
        f"in {total['runs_with_vendor_cost']:,} of {total['runs']:,} runs."
    )
