"""The arithmetic of time limits."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules.limits import after_wait, backoff, own_limit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
jitters = st.floats(0, 1, exclude_max=True)


@pytest.mark.rule("L4")
@pytest.mark.parametrize(("timeout", "stops_at"), [(60, 58), (20, 18), (10, 9), (1, 0.9), (3600, 3598), (19.9, 17.91)])
def test_an_attempt_stops_itself_two_seconds_early_or_a_tenth_when_that_is_smaller(
    timeout: float, stops_at: float
) -> None:
    assert own_limit(timeout) == pytest.approx(stops_at)


@pytest.mark.rule("L5")
@given(st.floats(0.01, 3600))
def test_an_attempts_own_limit_is_always_before_its_timeout_which_keeps_attempts_apart(timeout: float) -> None:
    assert 0 < own_limit(timeout) < timeout
    assert timeout - own_limit(timeout) <= 2.0 + 1e-9


@pytest.mark.rule("B2")
@given(st.integers(1, 400), jitters)
def test_backing_off_never_waits_longer_than_a_minute_and_a_half(failures: int, jitter: float) -> None:
    assert timedelta(seconds=0.5) <= backoff(NOW, failures=failures, jitter=jitter) - NOW <= timedelta(seconds=90)


@pytest.mark.rule("B2")
@given(st.floats(0, 60), jitters)
def test_a_wait_that_was_asked_for_is_never_cut_short(wait: float, jitter: float) -> None:
    assert after_wait(NOW, wait=wait, jitter=jitter) - NOW >= timedelta(seconds=wait)
