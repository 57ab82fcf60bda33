"""What a call costs, in US dollars to the last digit: the one door to the list of prices."""

from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from genai_prices import Usage
from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import ModelInfo, Provider

from budgets.rules.checks import Check, Used
from budgets.rules.words import PLACES

REHEARSAL: Final = "rehearsal"  # the model of drills and examples, which costs nothing
UNSAID_OUTPUT: Final = 4_096  # tokens of an answer whose length nobody has estimated
_STEP: Final = Decimal(1).scaleb(-PLACES)
_REMEMBERED: Final = 1_024  # names, of up to 2,048 characters


def estimate(check: Check, at: datetime) -> Decimal | None:
    """The most that a check's call costs as estimated, by its model or the dearest of its fallbacks.

    None when one of these has no known price.
    """
    output = UNSAID_OUTPUT if check.estimated_output_tokens is None else check.estimated_output_tokens
    asked = (check.estimated_input_tokens, output, 0, at)
    amounts = [_price(check.provider, check.model, *asked)]
    for name in check.fallback_models:
        amounts.append(_first(_price(check.provider, name, *asked), _price(None, name, *asked)))
    return _dearest(amounts)


def cost(used: Used, at: datetime) -> Decimal | None:
    """What a call has cost; None when its model has no known price."""
    cached = min(used.cached_input_tokens, used.input_tokens)
    return _price(used.provider, used.model, used.input_tokens, used.output_tokens, cached, at)


def is_known(provider: str, model: str, at: datetime) -> bool:
    """Whether a model has a price."""
    return _price(provider, model, 0, 0, 0, at) is not None


def _first(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return other if one is None else one


def _dearest(amounts: Iterable[Decimal | None]) -> Decimal | None:
    most = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        most = max(most, amount)
    return most


def _price(provider: str | None, model: str, given: int, answered: int, cached: int, at: datetime) -> Decimal | None:
    """Of whatever provider has such a model, when none is named."""
    if provider == REHEARSAL:
        return Decimal(0)
    found = _listed(provider, model)
    if found is None:
        return None
    whose, named = found
    usage = Usage(input_tokens=given, output_tokens=answered, cache_read_tokens=cached)
    price = named.calc_price(usage, whose, genai_request_timestamp=at)
    return price.total_price.quantize(_STEP, rounding=ROUND_CEILING)


@lru_cache(_REMEMBERED)
def _listed(provider: str | None, model: str) -> tuple[Provider, ModelInfo] | None:
    """Where the list has a model. The list remembers every name it was ever asked for: this one is asked once."""
    try:
        return DataSnapshot(get_snapshot().providers, from_auto_update=False).find_provider_model(
            model, None, provider, None
        )
    except LookupError:
        return None
