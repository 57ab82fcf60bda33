"""What people see of a client outside: its job, and two calls that look like one made twice (RULES G6, G7)."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from base import ids
from jobs.models import Call
from studio.embedded import Postgres
from tests.builders import a_client, a_world, asked, see, the_hold
from tests.pages.visitors import job_url, text_of, visitor


def words_of(response: Any) -> str:
    """What stands on a page, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", "", text_of(response)).split())


@pytest.mark.rule("G6")
def test_two_identical_calls_are_shown_as_near_duplicates_on_trace_call_and_card(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    client = a_client(world)
    first, second = asked(client, "refund"), asked(client, "refund", "n:2")
    asked(client, "look", "n:3")
    move_clock(timedelta(seconds=5))
    late = asked(client, "refund", "n:4")
    page = visitor(world)
    trace = words_of(page.get(job_url(see(world, Call, first).job_id)))
    assert trace.count("same as call 1") == 1 and "same as call 2" not in trace
    for call, other in ((first, 2), (second, 1)):
        shown = words_of(page.get(f"/calls/{ids.show(ids.CALL, call)}/"))
        assert f"the same function and arguments as call {other} of this job" in shown
        card = words_of(page.get(f"/approvals/{ids.show(ids.HOLD, the_hold(world, call).pk)}/"))
        assert f"the same as call {other} of its job" in card
    assert "same function and arguments as" not in words_of(page.get(f"/calls/{ids.show(ids.CALL, late)}/"))


def test_a_clients_job_says_whose_it_is_and_when_it_ends(database: Postgres) -> None:
    world = a_world()
    job = see(world, Call, asked(a_client(world, name="my editor"), "look")).job_id
    page = visitor(world).get(job_url(job))
    assert "token my editor" in words_of(page)
    assert "Its calls come from a client outside; ends in" in words_of(page)
    assert "Run again" not in words_of(page)
