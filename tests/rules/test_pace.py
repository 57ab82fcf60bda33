"""How often a token may ask, in arithmetic."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tenants.rules.pace import WINDOW, pace

NOW = datetime(2026, 10, 1, tzinfo=UTC)


def asked(limit: int, gaps: list[float]) -> tuple[list[datetime], list[datetime]]:
    """When a token that asks after each of these gaps of seconds is answered, and when it is refused."""
    until, now = None, NOW
    answered, refused = [], []
    for gap in gaps:
        now += timedelta(seconds=gap)
        found = pace(until, now, limit=limit)
        (answered if found.allowed else refused).append(now)
        assert found.until <= now + WINDOW
        assert 0 <= found.left < limit
        until = found.until
    return answered, refused


@given(st.integers(1, 50), st.lists(st.floats(0, 5), max_size=150))
def test_never_more_than_the_limit_at_once_and_that_number_a_minute_after(limit: int, gaps: list[float]) -> None:
    answered, _ = asked(limit, gaps)
    for first in range(len(answered)):
        for last in range(first, len(answered)):
            over = answered[last] - answered[first]
            # the part of a microsecond that a share is cut by
            assert last - first + 1 <= limit + over / (WINDOW // limit) + 1e-6


@given(st.integers(1, 10_000))
def test_a_token_that_has_not_asked_for_a_minute_may_ask_its_whole_number_at_once(limit: int) -> None:
    first = pace(None, NOW, limit=limit)
    assert first.allowed and first.left == limit - 1
    answered, refused = asked(min(limit, 300), [0.0] * (min(limit, 300) + 1))
    assert (len(answered), len(refused)) == (min(limit, 300), 1)


@given(st.integers(1, 200))
def test_who_waits_as_long_as_was_said_is_answered(limit: int) -> None:
    until = None
    for _ in range(limit):
        until = pace(until, NOW, limit=limit).until
    refused = pace(until, NOW, limit=limit)
    assert not refused.allowed and 0 < refused.wait <= 60
    assert pace(until, NOW + timedelta(seconds=refused.wait), limit=limit).allowed


def test_who_keeps_to_the_pace_is_never_refused() -> None:
    _, refused = asked(10, [6.0] * 100)
    assert refused == []
