"""Which progress counts (RULES P1)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules.orders import Progress
from jobs.rules.progress import next_progress, share_done

ODD = st.one_of(st.none(), st.booleans(), st.just("9"), st.floats(), st.integers(), st.just([1]))
NOTE = st.fixed_dictionaries({"progress": ODD}, optional={"total": ODD, "message": st.just("words")})


@pytest.mark.rule("P1")
@given(st.lists(NOTE))
def test_kept_progress_never_falls_and_is_always_a_finite_number(notes: list[dict[str, object]]) -> None:
    last: Progress | None = None
    for note in notes:
        new = next_progress(last, note)
        assert new is None or math.isfinite(new.value)
        assert new is None or new.total is None or (math.isfinite(new.total) and new.total > 0)
        assert last is None or (new is not None and new.value >= last.value)
        last = new


@pytest.mark.rule("P1")
def test_progress_that_rises_is_kept_with_its_total() -> None:
    first = next_progress(None, {"progress": 1, "total": 4})
    assert next_progress(first, {"progress": 2, "total": 4, "message": "words"}) == Progress(2.0, 4.0)


@pytest.mark.parametrize(
    ("progress", "total", "share"),
    [(2.0, 4.0, 50.0), (0.0, 4.0, 0.0), (5.0, 4.0, 100.0), (-1.0, 4.0, 0.0), (2.0, None, 0.0), (None, 4.0, 0.0)],
)
def test_the_share_that_a_bar_shows_stays_between_nothing_and_all(
    progress: float | None, total: float | None, share: float
) -> None:
    assert share_done(progress, total) == share
