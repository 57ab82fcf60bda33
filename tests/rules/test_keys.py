"""The idempotency key's spelling."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules.keys import activity_key, session_key

JOB = "job_01k6f4n7qzej9ta3gk1fy33rxa"


@pytest.mark.rule("K2")
def test_a_key_is_the_job_and_the_activity_and_after_continuing_as_new_also_how_often() -> None:
    assert activity_key(JOB, run_number=0, activity=7) == f"{JOB}/7"
    assert activity_key(JOB, run_number=3, activity=7) == f"{JOB}/anr3/7"


@pytest.mark.rule("K2")
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 500)), unique=True, min_size=2))
def test_no_two_calls_of_a_job_share_a_key(places: list[tuple[int, int]]) -> None:
    """CASES R18: and each is of letters that any server can take."""
    keys = {activity_key(JOB, run_number=run, activity=activity) for run, activity in places}
    assert len(keys) == len(places)
    assert all(re.fullmatch(r"[a-z0-9_/]+", key) for key in keys)


@pytest.mark.rule("K3")
def test_a_sessions_key_is_its_number_the_function_the_beginning_of_the_digest_and_the_count() -> None:
    digest = "0123456789abcdef" * 4
    where = {"session": 1, "function": "charge", "digest": digest, "k": 2}
    assert session_key(JOB, run_number=0, **where) == f"{JOB}/s1/charge#{digest[:32]}/2"
    assert session_key(JOB, run_number=3, **where) == f"{JOB}/r3/s1/charge#{digest[:32]}/2"
