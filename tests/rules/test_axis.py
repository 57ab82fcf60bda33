"""The trace's axis of time: nothing leaves it, nothing overtakes, only idle time is folded."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from jobs.rules.axis import FOLD_WIDTH, lay_out

moments = st.floats(0, 100_000, allow_nan=False)
spans = st.lists(st.tuples(moments, moments).map(lambda pair: (min(pair), max(pair))), max_size=12)


@given(spans, st.floats(0, 200_000), st.lists(moments, min_size=2, max_size=8))
@example([(0.0, 33555.0)], 41943.25167450044, [41944.0, 41943.25167450044])  # in these rounding went past 100
@example([(0.0, 1.7035020528655878)], 16386.0, [0.0, 16386.0])
def test_places_rise_with_time_and_stay_between_0_and_100(
    busy: list[tuple[float, float]], end: float, at: list[float]
) -> None:
    axis = lay_out(busy, start=0.0, end=end)
    places = [axis.x(moment) for moment in sorted(at)]
    assert all(0 <= place <= 100 for place in places)
    assert places == sorted(places)


@given(spans, st.floats(1, 200_000))
def test_no_fold_covers_working_time(busy: list[tuple[float, float]], end: float) -> None:
    for fold in lay_out(busy, start=0.0, end=end).folds:
        assert not [(left, right) for left, right in busy if left < fold.end and right > fold.start and left < right]


def test_three_hours_of_waiting_between_two_attempts_become_one_fold() -> None:
    axis = lay_out([(0, 10), (10_900, 10_910)], start=0.0, end=10_910)
    (fold,) = axis.folds
    assert (fold.start, fold.end, fold.width) == (10, 10_900, FOLD_WIDTH)
    assert abs(axis.x(10) - (100 - FOLD_WIDTH) / 2) < 0.01


def test_short_waits_are_drawn_as_they_are() -> None:
    assert lay_out([(0, 10), (28, 34)], start=0.0, end=34).folds == ()


@given(spans, st.floats(1, 200_000))
def test_ticks_are_few_apart_and_never_inside_a_fold(busy: list[tuple[float, float]], end: float) -> None:
    axis = lay_out(busy, start=0.0, end=end)
    ticks = axis.ticks()
    assert len(ticks) <= 6
    assert all(right.x - left.x > 6 for left, right in pairwise(ticks))
    assert not [tick for tick in ticks for fold in axis.folds if fold.start < tick.at < fold.end]
