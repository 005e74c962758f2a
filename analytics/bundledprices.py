"""The prices that `genai-prices` brings along (the extra `runlake[cost]`), read offline: it is never asked to update.

Its rules are kept: of several prices of a model the last that has begun holds, a request above a step pays the step's
rate for all its tokens, and a kind of token without a rate of its own costs what the more general kind does. One is
not: written for 1 hour, without a rate for that, would cost as if for 5 minutes; here it has no price.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from analytics.errors import UsageError
from analytics.pricing import Price, Rates, Reason

# what tokens of text cost; in Rates' order: the keys of a rate, the most special first
_KEYS = (
    ("input_mtok",), ("cache_read_mtok", "input_mtok"), ("cache_write_5m_mtok", "cache_write_mtok", "input_mtok"),
    ("cache_write_1h_mtok",), ("output_mtok",),
)  # fmt: skip
# paid beside the tokens, or for tokens of another kind: no transcript counts them, so they are not in any amount
_BESIDE = ("audio", "image", "video", "document", "searches")
STANDARD_SPEEDS = (None, "", "standard")


class BundledPrices:
    """The price list of the installed genai-prices."""

    def __init__(self) -> None:
        try:
            from genai_prices import __version__, data_snapshot  # noqa: PLC0415 (0.3 s, and an extra)
        except ImportError:
            raise UsageError(
                "The prices of models need genai-prices. Install it with `pip install 'runlake[cost]'`, or give your "
                "own price list with --prices FILE.csv."
            ) from None
        self.name = f"genai-prices {__version__}"
        self._snapshot = data_snapshot.get_snapshot()
        self._price = cache(self._priced)
        self._model = cache(self._found)

    def price(self, model: str, speed: str | None, at: datetime | None) -> Price | Reason:
        """The price the list has for the model at that time."""
        return self._price(model, speed, at)

    def steps_of(self, model: str) -> frozenset[int]:
        """All steps of all prices of the model."""
        found = self._model(model)
        if found is None:
            return frozenset()
        variants = [variant.prices for variant in found[1].price_variants or ()]
        return frozenset(start for prices in (*_prices(found[1]), *variants) for start in _starts(prices) if start)

    def changes_by_the_hour(self, model: str) -> bool:
        """True: a price of the model has hours."""
        from genai_prices.types import TimeOfDateConstraint  # noqa: PLC0415 (loaded already)

        found = self._model(model)
        conditions = () if found is None else (found[1].prices, found[1].price_variants or ())
        return any(
            isinstance(one.constraint, TimeOfDateConstraint)
            for some in conditions
            if isinstance(some, list | tuple)
            for one in some
        )

    def _found(self, model: str) -> tuple[Any, Any] | None:
        """Provider and model. `openai/gpt-5` names its provider: the library reads that as LiteLLM writes it."""
        try:
            return self._snapshot.find_provider_model(model, None, "litellm" if "/" in model else None, None)
        except LookupError:
            return None

    def _priced(self, model: str, speed: str | None, at: datetime | None) -> Price | Reason:
        found = self._model(model)
        if found is None:
            return "unknown_model"
        if at is None:
            return "no_date"
        provider, info = found
        context = None if speed in STANDARD_SPEEDS else {"speed": speed}
        if context is not None and not any(
            variant.when == context and (variant.constraint is None or variant.constraint.active(at))
            for variant in info.price_variants or ()
        ):
            return "no_speed_price"
        prices = info.get_prices(at, context)
        given = {key for key, value in vars(prices).items() if value is not None}
        known = {key for keys in _KEYS for key in keys}
        if not {"input_mtok", "output_mtok"} <= given or any(
            key not in known and not any(word in key for word in _BESIDE) for key in given
        ):
            return "no_token_price"
        steps = tuple((start, _rates(prices, start)) for start in _starts(prices))
        return Price(f"{provider.id}/{info.id}" + (f" ({speed})" if context else ""), steps)


def _prices(info: Any) -> list[Any]:
    return [one.prices for one in info.prices] if isinstance(info.prices, list) else [info.prices]


def _starts(prices: Any) -> list[int]:
    """Where the steps of a price begin: 0, then its tiers."""
    tiers = (value.tiers for value in vars(prices).values() if hasattr(value, "tiers"))
    return sorted({0, *(tier.start for some in tiers for tier in some)})


def _rates(prices: Any, start: int) -> Rates:
    """The rates of a request whose input exceeds `start`."""

    def rate(keys: tuple[str, ...]) -> Decimal | None:
        value = next((value for key in keys if (value := getattr(prices, key)) is not None), None)
        if value is None or isinstance(value, Decimal):
            return value
        found: Decimal = next((tier.price for tier in reversed(value.tiers) if tier.start <= start), value.base)
        return found

    return Rates(*(rate(keys) for keys in _KEYS))
