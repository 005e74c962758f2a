"""What tokens cost by a price list: rates in US dollars per million tokens, and the amount of a piece of usage.

Amounts are exact decimals; whoever shows them rounds. What has no price has a reason instead, never $0. Each part of
the input is charged once, at its own rate: what was not cached, what was read from a cache, what was written into one
for 5 minutes, for 1 hour. Reasoning is a part of the output and costs nothing beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Literal, Protocol

Reason = Literal[
    "no_usage", "no_tokens", "no_model", "no_date", "unknown_model", "no_price_then", "no_speed_price",
    "no_token_price", "no_token_split", "no_cached_price", "no_cache_write_price", "no_1h_price",
]  # fmt: skip

REASONS: dict[Reason, str] = {
    "no_usage": "The run records no usage.",
    "no_tokens": "The record of the usage leaves its input or its output out.",
    "no_model": "The record names no model.",
    "no_date": "No time is known of the usage nor of its run, and the price is one of a date.",
    "unknown_model": "The price list does not have the model.",
    "no_price_then": "The price list has the model, but not for that date.",
    "no_speed_price": "The usage is of another speed than standard, for which the price list has no price.",
    "no_token_price": "The model is not, or not only, paid by the token.",
    "no_token_split": "It is not known how much of the input was cached, and cached input costs something else.",
    "no_cached_price": "Input was read from a cache, and the price list has no price for that.",
    "no_cache_write_price": "Input was written into a cache, and the price list has no price for that.",
    "no_1h_price": "Input was written into a cache for 1 hour, and the price list has no price for that.",
}

# a sum that would not be exact is an error, not a rounded number
EXACT = Context(prec=200, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens; None = the price list has no such rate."""

    input: Decimal | None
    cached: Decimal | None
    write_5m: Decimal | None
    write_1h: Decimal | None
    output: Decimal | None


@dataclass(frozen=True, slots=True)
class Price:
    """The rates of a model at a time, by the size of a request.

    `steps`: (tokens, rates), rising from 0; the last whose tokens the input exceeds holds for the whole request.
    """

    name: str
    steps: tuple[tuple[int, Rates], ...]

    def of_request(self, above: int) -> Rates:
        """The rates of a request whose input exceeds `above` tokens, and no later step."""
        return [rates for start, rates in self.steps if start <= above][-1]

    def lowest(self) -> Rates:
        """The lowest of each rate, for a total whose requests are not known."""
        each = ([getattr(rates, field.name) for _, rates in self.steps] for field in fields(Rates))
        return Rates(*(None if None in rates else min(rates) for rates in each))


class PriceList(Protocol):
    """Where prices come from."""

    @property
    def name(self) -> str:
        """What the reader of a sum is told of it."""

    def price(self, model: str, speed: str | None, at: datetime | None) -> Price | Reason:
        """The price of a model at a time, or why there is none."""

    def steps_of(self, model: str) -> frozenset[int]:
        """The sizes of a request's input, in tokens, above which the price of the model may be another."""

    def changes_by_the_hour(self, model: str) -> bool:
        """True: the price of the model depends on the time of the day."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model and time, as one amount is put on them.

    `above`: the largest step (`PriceList.steps_of`) that the input of each request exceeds, else 0; of a total
    (`is_request` false) the largest that the total exceeds. `uncached` None: how the input is made up is not known.
    """

    model: str
    speed: str | None
    at: datetime | None
    is_request: bool
    above: int
    input: int
    uncached: int | None
    cached: int
    write_5m: int
    write_1h: int
    write_unknown: int
    output: int


@dataclass(frozen=True, slots=True)
class Amount:
    """US dollars, by what they were paid for. `is_lower_bound`: the price list can give a higher sum for the tokens."""

    uncached: Decimal
    cached: Decimal
    write_5m: Decimal
    write_1h: Decimal
    write_unknown: Decimal
    output: Decimal
    priced_as: str
    is_lower_bound: bool

    @property
    def parts(self) -> tuple[Decimal, ...]:
        """What the sum is made of, in the order of PARTS."""
        return self.uncached, self.cached, self.write_5m, self.write_1h, self.write_unknown, self.output


PARTS = (
    "uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown", "output",
)  # fmt: skip


def amount_of(usage: Usage, prices: PriceList) -> Amount | Reason:
    """What the usage costs, or why that is not known.

    A total over several requests that is larger than a step of its price does not say how large each was: it has the
    lowest rates, as a lower bound. So have tokens written into a cache, it is not known for how long.
    """
    price = prices.price(usage.model, usage.speed, usage.at)
    if isinstance(price, str):
        return price
    has_unknown_sizes = not usage.is_request and usage.above > 0 and len(price.steps) > 1
    rates = price.lowest() if has_unknown_sizes else price.of_request(usage.above)
    if rates.input is None or rates.output is None:
        return "no_token_price"
    uncached = usage.uncached
    written = usage.write_5m + usage.write_1h + usage.write_unknown
    if uncached is None:
        others = {rates.cached, rates.write_5m, rates.write_1h} - {None, rates.input}
        if others or usage.cached or written:
            return "no_token_split"
        uncached = usage.input
    elif uncached + usage.cached + written != usage.input:
        return "no_token_split"
    reason = _lacking(usage, rates)
    if reason is not None:
        return reason
    writes = [rate for rate in (rates.write_5m, rates.write_1h) if rate is not None]
    is_unsure = has_unknown_sizes or (usage.write_unknown > 0 and len(set(writes)) > 1)
    unknown = min(writes) if usage.write_unknown else None
    return Amount(
        _times(uncached, rates.input), _times(usage.cached, rates.cached), _times(usage.write_5m, rates.write_5m),
        _times(usage.write_1h, rates.write_1h), _times(usage.write_unknown, unknown),
        _times(usage.output, rates.output), price.name, is_unsure,
    )  # fmt: skip


def _lacking(usage: Usage, rates: Rates) -> Reason | None:
    if usage.cached and rates.cached is None:
        return "no_cached_price"
    if usage.write_1h and rates.write_1h is None:
        return "no_1h_price"
    if usage.write_5m and rates.write_5m is None:
        return "no_cache_write_price"
    if usage.write_unknown and rates.write_5m is None and rates.write_1h is None:
        return "no_cache_write_price"
    return None


def _times(tokens: int, rate: Decimal | None) -> Decimal:
    """Tokens at a rate per million. A rate that is not there is only asked for where there are no tokens."""
    if not tokens:
        return Decimal(0)
    assert rate is not None  # noqa: S101 (_lacking has seen to it)
    return EXACT.scaleb(EXACT.multiply(Decimal(tokens), rate), -6)


@dataclass(frozen=True, slots=True)
class Chain:
    """Several price lists; the first that has a price gives it."""

    lists: Sequence[PriceList]

    @property
    def name(self) -> str:
        """The names of all, the first first."""
        return ", then ".join(one.name for one in self.lists)

    def price(self, model: str, speed: str | None, at: datetime | None) -> Price | Reason:
        """The first price; where there is none, the reason of a list that knows the model."""
        reasons: list[Reason] = []
        for one in self.lists:
            found = one.price(model, speed, at)
            if isinstance(found, Price):
                return found
            reasons.append(found)
        return next((reason for reason in reasons if reason != "unknown_model"), "unknown_model")

    def steps_of(self, model: str) -> frozenset[int]:
        """Those of all lists."""
        return frozenset().union(*(one.steps_of(model) for one in self.lists))

    def changes_by_the_hour(self, model: str) -> bool:
        """True where it does in one of them."""
        return any(one.changes_by_the_hour(model) for one in self.lists)
