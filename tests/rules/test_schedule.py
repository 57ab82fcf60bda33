"""When a routine is due: expressions, zones, days of 23 and 25 hours, and what is done of what was missed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules import schedule
from jobs.rules.schedule import BadSchedule, Schedule, due, read
from jobs.rules.starters import Missed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type]  # parts of a date


def clocks(cron: str, after: datetime, count: int, zone: str = BERLIN) -> list[str]:
    """The next due times as the clocks there show them."""
    found = read(cron, zone, now=after)
    return [f"{found.local(at):%d %H:%M %z}" for at in found.coming(after, count)]


def test_a_time_of_day_that_a_day_leaves_out_comes_when_its_clock_goes_on_and_once() -> None:
    """In Berlin the clocks go from 02:00 to 03:00 on 29 March 2026."""
    before = utc(2026, 3, 28, 0)
    assert clocks("30 2 * * *", before, 3) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]
    assert clocks("0,30 2 * * *", utc(2026, 3, 28, 12), 2) == ["29 03:00 +0200", "30 02:00 +0200"]
    assert clocks("*/20 * * * *", utc(2026, 3, 29, 0, 30), 3) == ["29 01:40 +0100", "29 03:00 +0200", "29 03:20 +0200"]


def test_a_time_of_day_that_a_day_has_twice_comes_once_and_every_hour_comes_in_each() -> None:
    """On 25 October 2026 they go from 03:00 back to 02:00."""
    before = utc(2026, 10, 24, 12)
    assert clocks("30 2 * * *", before, 2) == ["25 02:30 +0200", "26 02:30 +0100"]
    assert clocks("0 * * * *", utc(2026, 10, 24, 23, 30), 3) == ["25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100"]
    in_the_second_one = utc(2026, 10, 25, 1, 5)
    assert clocks("15 2 * * *", in_the_second_one, 1) == ["26 02:15 +0100"]


@given(
    st.sampled_from(["30 2 * * *", "*/7 * * * *", "15 */3 * * *", "0 1-3 * * *", "0,59 0,2,3 * * SUN", "0 0 L * *"]),
    st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "UTC"]),
    st.integers(0, 3 * 366 * 24 * 3600),
)
def test_due_times_only_ever_grow_and_do_not_depend_on_where_one_looks_from(cron: str, zone: str, seconds: int) -> None:
    after = utc(2025, 1, 1) + timedelta(seconds=seconds)
    found = read(cron, zone, now=after)
    coming = found.coming(after, 6)
    assert [*coming] == sorted({*coming}) and coming[0] > after
    between = after + (coming[0] - after) / 2
    assert found.coming(between, 6) == coming


@given(st.text(alphabet="0123456789*/-,L#W? SUNMOJAx", max_size=24), st.sampled_from(["UTC", BERLIN, "Nowhere", ""]))
def test_whatever_is_typed_is_read_or_refused_in_words(cron: str, zone: str) -> None:
    try:
        found = read(cron, zone, now=NOW)
    except BadSchedule as error:
        assert str(error)
    else:
        assert found.next(NOW) is not None and found.in_words


@pytest.mark.parametrize(
    ("cron", "zone", "why"),
    [
        ("@daily", "UTC", "five parts"),
        ("0 0 0 * * *", "UTC", "five parts"),
        ("61 * * * *", "UTC", "its minute cannot be read"),
        ("0 0 30 2 *", "UTC", "day-of-month"),
        ("0 0 * * *", "Berlin", "name of a time zone"),
        ("0 0 * * *", "../etc/passwd", "name of a time zone"),
    ],
)
def test_what_cannot_be_read_or_never_comes_is_refused_by_its_part(cron: str, zone: str, why: str) -> None:
    with pytest.raises(BadSchedule, match=why):
        read(cron, zone, now=NOW)


HOURLY = Schedule("0 * * * *", "UTC")
NOON = utc(2026, 5, 1, 12)


def test_on_time_it_runs_once_whatever_is_done_of_what_is_missed() -> None:
    for missed in Missed:
        plan = due(HOURLY, NOON, missed, now=NOON + timedelta(seconds=2))
        assert (plan.runs, plan.missed, plan.skipped, plan.next) == ((NOON,), None, 0, NOON + timedelta(hours=1))


def test_after_three_days_without_a_node_it_skips_runs_the_last_or_runs_all_up_to_a_bound() -> None:
    now = NOON + timedelta(days=3, minutes=30)
    last = NOON + timedelta(days=3)
    skip, once, every = (due(HOURLY, NOON, missed, now=now) for missed in (Missed.SKIP, Missed.ONCE, Missed.ALL))
    assert (skip.runs, skip.missed, skip.skipped) == ((), last, 73)
    assert (once.runs, once.skipped) == ((last,), 72)
    assert (len(every.runs), every.runs[-1], every.skipped) == (schedule.MOST_AT_ONCE, last, 73 - 24)
    assert skip.next == once.next == every.next == last + timedelta(hours=1)


def test_what_comes_every_minute_is_caught_up_with_in_a_moment_after_a_year() -> None:
    plan = due(Schedule("* * * * *", BERLIN), utc(2025, 1, 1), Missed.ONCE, now=NOW)
    assert (plan.runs, plan.more, plan.next) == ((NOW,), True, NOW + timedelta(minutes=1))
