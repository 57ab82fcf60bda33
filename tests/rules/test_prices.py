"""What the list of prices remembers of the names that clients ask for: a bounded part (RULES S9)."""

import gc
import tracemalloc
from datetime import UTC, datetime
from functools import lru_cache

import pytest

from budgets.rules import prices

NOW = datetime(2026, 11, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "invented {}"), ("openai", "gpt-4o-{}"), ("nobody {}", "gpt-4o"), ("litellm", "openai/gpt-4o-mini-{}")],
)
def test_names_that_somebody_invents_fill_no_memory(provider: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (prices._listed.cache_info().maxsize or 10**9) <= 1_024
    monkeypatch.setattr(prices, "_listed", lru_cache(1)(prices._listed.__wrapped__))

    def ask(number: int) -> None:
        drawn = f"{number:064}" if "{}" in provider else f"{number:02000}"
        prices.is_known(provider.format(drawn), model.format(drawn), NOW)

    for number in range(2):
        ask(number)
    tracemalloc.start()
    try:
        for number in range(2, 82):
            ask(number)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 12_000


def test_a_name_has_the_same_price_however_often_it_is_asked_for() -> None:
    first = prices._price("openai", "gpt-4o", 4_000, 0, 0, NOW)
    assert first is not None and first > 0
    hits = prices._listed.cache_info().hits
    assert prices._price("openai", "gpt-4o", 4_000, 0, 0, NOW) == first
    assert prices._listed.cache_info().hits == hits + 1
    assert prices._price(None, "gpt-4o", 4_000, 0, 0, NOW) == first  # of whatever provider has it
    assert prices._price("nobody", "gpt-4o", 4_000, 0, 0, NOW) is None
