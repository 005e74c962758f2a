"""What runs cost: prices put on `usage_to_price`, beside the cost that the vendor's own records state.

DuckDB adds up the tokens that have one price (a run's, of one model, day and size of request); Python puts the price
on each sum, in exact decimals, and adds those up by what was asked for. The two costs are never mixed: ours is
priced_cost_usd, the vendor's vendor_cost_usd. What has no price is left out of the sum, which then is a lower bound.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from analytics.errors import UsageError
from analytics.pricing import EXACT, PARTS, Amount, Chain, PriceList, Reason, Usage, amount_of
from analytics.sqlfiles import quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from analytics.api import Lake

GROUPINGS: dict[str, tuple[str, ...]] = {
    "all": (), "model": ("model", "is_side_call"), "run": ("run_id", "wire", "is_counted"), "day": ("day",),
    "wire": ("wire",), "adapter": ("adapter",), "task": ("task",), "variant": ("variant",),
    "directory": ("directory",), "reason": ("reason",),
}  # fmt: skip

PLACES = 12  # a millionth of a millionth of a dollar: where an exact sum is rounded when it leaves
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROUNDED = Context(prec=60, rounding=ROUND_HALF_EVEN)
_TRUTHS = frozenset({"is_side_call", "is_counted"})
_SUMS = (
    "input_tokens", "uncached_input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens",
    "cache_write_unknown_tokens", "output_tokens",
)  # fmt: skip
_KEYS = (
    "run_id", "wire", "adapter", "task", "variant", "directory", "model", "speed", "day", "is_side_call", "missing",
    "is_only_cost", "is_request", "is_counted", "is_lower_bound", "run_has_cost",
)  # fmt: skip

Relation = Callable[[str], "duckdb.DuckDBPyRelation"]


@dataclass(slots=True)
class Sum:
    """What is added up of one group. `runs`: each run of it, and whether all of its usage here has a price."""

    runs: dict[str, bool] = field(default_factory=dict)
    runs_with_vendor_cost: set[str] = field(default_factory=set)
    tokens_seen: int | None = None
    tokens_are_lower_bound: bool = False
    tokens_priced: int = 0
    parts: tuple[Decimal, ...] | None = None
    is_lower_bound: bool = False
    vendor_cost: Decimal | None = None
    reasons: set[Reason] = field(default_factory=set)
    priced_as: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any], priced: Amount | Reason | None) -> None:
        """One row of usage; None: it is a cost alone, of a run whose tokens stand in other rows."""
        if row["cost"] is not None:
            self.vendor_cost = EXACT.add(self.vendor_cost or Decimal(0), row["cost"])
        if row["run_has_cost"]:
            self.runs_with_vendor_cost.add(row["run_id"])
        if priced is None:
            return
        self.runs.setdefault(row["run_id"], True)
        known = [row[name] for name in ("input_tokens", "output_tokens") if row[name] is not None]
        if known:
            self.tokens_seen = (self.tokens_seen or 0) + sum(known)
        self.tokens_are_lower_bound |= bool(row["is_lower_bound"]) or len(known) < 2
        if isinstance(priced, str):
            self.runs[row["run_id"]] = False
            self.is_lower_bound = True
            self.reasons.add(priced)
            return
        self.tokens_priced += sum(known)
        self.is_lower_bound |= priced.is_lower_bound or bool(row["is_lower_bound"])
        self.priced_as.add(priced.priced_as)
        before = self.parts or (Decimal(0),) * len(PARTS)
        self.parts = tuple(EXACT.add(a, b) for a, b in zip(before, priced.parts, strict=True))

    @property
    def priced_cost(self) -> Decimal | None:
        """The sum of the parts, exact; None where nothing has a price."""
        if self.parts is None:
            return None
        total = Decimal(0)
        for part in self.parts:
            total = EXACT.add(total, part)
        return total

    def row(self) -> dict[str, Any]:
        """The columns of the group, money rounded to PLACES."""
        seen = self.tokens_seen
        runs = len(self.runs.keys() | self.runs_with_vendor_cost)
        parts = self.parts or (None,) * len(PARTS)
        return {
            "runs": runs, "runs_priced": sum(self.runs.values()), "tokens_seen": seen,
            "tokens_seen_is_lower_bound": self.tokens_are_lower_bound,
            "tokens_priced": None if seen is None else self.tokens_priced,
            "priced_share": self.tokens_priced / seen if seen else None,
            "priced_cost_usd": rounded(self.priced_cost), "priced_cost_usd_is_lower_bound": self.is_lower_bound,
            "vendor_cost_usd": rounded(self.vendor_cost),
            "vendor_cost_usd_is_lower_bound": len(self.runs_with_vendor_cost) < runs,
            "runs_with_vendor_cost": len(self.runs_with_vendor_cost), "unpriced_reasons": sorted(self.reasons),
            "priced_as": sorted(self.priced_as),
            **{f"{name}_cost_usd": rounded(part) for name, part in zip(PARTS, parts, strict=True)},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Costs:
    """The rows of a cost report, the sum over all counted runs, and the name of the price list."""

    table: pa.Table
    total: Sum
    prices: str


def price_list(file: str | os.PathLike[str] | None = None) -> PriceList:
    """The lines of the file, then the prices of genai-prices. Without a file, genai-prices must be installed."""
    from analytics.bundledprices import BundledPrices  # noqa: PLC0415 (only a cost needs prices)

    if file is None:
        return BundledPrices()
    from analytics.pricefile import read_price_file  # noqa: PLC0415 (the same)

    own = read_price_file(file)
    try:
        return Chain((own, BundledPrices()))
    except UsageError:  # the extra is not installed: the file alone, and the report names it alone
        return own


def costs(lake: Lake, by: str | Sequence[str], prices: PriceList, **filters: Any) -> Costs:
    """The costs of the lake's runs that meet the filters (since, until, wire, run), grouped.

    Several groupings give one row per combination. Runs with is_counted false stand only where runs are listed.
    """
    groupings = [by] if isinstance(by, str) else list(by)
    for name in groupings:
        if name not in GROUPINGS:
            raise UsageError.unknown_name("grouping of cost by", name, list(GROUPINGS))
    columns = tuple(dict.fromkeys(column for name in groupings for column in GROUPINGS[name]))
    sums: dict[tuple[Any, ...], Sum] = {}
    total = Sum()
    for row in _usage(lambda query: lake.sql(query, **filters), prices):
        priced = _priced(row, prices)
        if row["is_counted"]:
            total.add(row, priced)
        elif "run_id" not in columns:
            continue
        row["reason"] = priced if isinstance(priced, str) else None
        sums.setdefault(tuple(row[column] for column in columns), Sum()).add(row, priced)
    rows = [dict(zip(columns, key, strict=True)) | one.row() for key, one in sums.items()]
    rows.sort(key=lambda row: _order(row, columns))
    return Costs(_table(rows, columns), total, prices.name)


def _usage(ask: Relation, prices: PriceList) -> Iterator[dict[str, Any]]:
    """Usage in sums that each have one price."""
    named = ask("SELECT DISTINCT model FROM stored_events WHERE usage_scope IS NOT NULL AND model IS NOT NULL")
    models = [model for (model,) in named.fetchall()]
    steps = {model: found for model in models if (found := sorted(prices.steps_of(model)))}
    hourly = [model for model in models if prices.changes_by_the_hour(model)]
    above = "0"
    for model, starts in steps.items():
        cases = " ".join(f"WHEN input_tokens > {start} THEN {start}" for start in reversed(starts))
        above = f"CASE WHEN model = {quoted(model)} THEN CASE {cases} ELSE 0 END ELSE {above} END"
    listed = ", ".join(map(quoted, hourly)) or "NULL"
    sums = ", ".join(f"CAST(sum({name}) AS DECIMAL(38, 0)) AS {name}" for name in _SUMS)
    query = f"""
        SELECT
            {", ".join(_KEYS)}, uncached_input_tokens IS NOT NULL AS has_split, {above} AS above,
            epoch_us(CASE
                WHEN model IN ({listed}) THEN date_trunc('minute', price_ts) ELSE date_trunc('day', price_ts)
            END) AS at_us, {sums}, sum(TRY_CAST(cost_usd AS DECIMAL(18, 10))) AS cost
        FROM usage_to_price
        GROUP BY ALL
    """
    answer = ask(query)
    names = answer.columns
    for values in answer.iter_rows(10_000):
        row = dict(zip(names, values, strict=True))
        for name in _SUMS:
            row[name] = None if row[name] is None else int(row[name])
        yield row


def _priced(row: dict[str, Any], prices: PriceList) -> Amount | Reason | None:
    if row["is_only_cost"]:
        return None
    if row["missing"] is not None:
        reasons: dict[str, Reason] = {"usage": "no_usage", "tokens": "no_tokens", "model": "no_model"}
        return reasons[row["missing"]]
    usage = Usage(
        model=row["model"], speed=row["speed"],
        at=None if row["at_us"] is None else _EPOCH + timedelta(microseconds=row["at_us"]),
        is_request=row["is_request"], above=row["above"], input=row["input_tokens"],
        uncached=row["uncached_input_tokens"] if row["has_split"] else None, cached=row["cache_read_tokens"] or 0,
        write_5m=row["cache_write_5m_tokens"] or 0, write_1h=row["cache_write_1h_tokens"] or 0,
        write_unknown=row["cache_write_unknown_tokens"] or 0, output=row["output_tokens"],
    )  # fmt: skip
    return amount_of(usage, prices)


def rounded(amount: Decimal | None) -> Decimal | None:
    """The amount to PLACES, half to even."""
    return None if amount is None else amount.quantize(Decimal(1).scaleb(-PLACES), context=_ROUNDED)


def _order(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[Any, ...]:
    """By day where days are asked for; else the dearest first, then what has most tokens. NULL stands last."""
    keys = tuple((row[column] is None, "" if row[column] is None else row[column]) for column in columns)
    if "day" in columns:
        place = columns.index("day")
        return (keys[place], *keys)
    cost, tokens = row["priced_cost_usd"], row["tokens_seen"]
    return (cost is None, -(cost or 0), -(tokens or 0), *keys)


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (only a cost that is asked for)

    money = pa.decimal128(38, PLACES)
    types: dict[str, pa.DataType] = {
        name: pa.bool_() if name in _TRUTHS else pa.date32() if name == "day" else pa.string() for name in columns
    }
    for name in Sum().row():
        if name.endswith("_is_lower_bound"):
            types[name] = pa.bool_()
        elif name.endswith("_usd"):
            types[name] = money
        elif name in ("unpriced_reasons", "priced_as"):
            types[name] = pa.list_(pa.string())
        else:
            types[name] = pa.float64() if name == "priced_share" else pa.int64()
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))
