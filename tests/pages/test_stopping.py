"""What a person sees of a stop: who asked, what it waits for on each kind of connection, what it may have done."""

import re
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Listing, Tool, Transport
from catalog.rules.switching import Scope
from jobs.models import Call
from jobs.operations import nodes, work
from jobs.operations.holds import Answer
from jobs.rules.orders import End, Order, Result
from jobs.rules.states import CallState, JobState
from studio.embedded import Postgres
from tests.builders import (
    World,
    a_call,
    a_job,
    a_retrying_call,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    cancelled,
    made,
    see,
    settle,
    swept,
    the_hold,
    the_job,
    told,
)
from tests.pages.visitors import hold_url, job_url, plain, text_of, visitor


def call_of(world: World, call: UUID) -> str:
    """The words of a call's own page."""
    return plain(text_of(visitor(world).get(f"/calls/{ids.show(ids.CALL, call)}/")))


def job_of(world: World, call: UUID) -> str:
    """The words of its job's page, with the call opened in it."""
    job = see(world, Call, call).job_id
    return plain(text_of(visitor(world).get(job_url(job, f"?call={ids.show(ids.CALL, call)}"))))


def being_stopped(world: World, function: str = "note") -> Order:
    """A running call whose job a person has stopped."""
    order = an_order(world, a_call(world, function))
    cancelled(world, order.job_id)
    return order


def reached_by(world: World, transport: Transport, *, can_cancel: bool = True) -> None:
    """The world's tool, reached in this way from now on."""
    with db.write(world.tenant):
        limits = {"memory_mb": 256} if transport is Transport.SANDBOX else None
        Tool.objects.filter(slug="shop").update(transport=transport, sandbox=limits, cleanup=300)
        Listing.objects.filter(tool__slug="shop").update(can_cancel=can_cancel)


LAND = "runs on, and what it does may still land"
TRUTHS = [
    (Transport.STDIO, True, LAND),
    (Transport.SANDBOX, True, "the job's own server is ended with it"),
    (Transport.URL, True, "A server that confirms its stops is waited for longer."),
    (Transport.URL, False, "This connection cannot tell its server to stop"),
]


@pytest.mark.rule("L2")
@pytest.mark.rule("L6")
@pytest.mark.parametrize(("transport", "can_cancel", "truth"), TRUTHS)
def test_a_call_that_is_being_stopped_says_who_asked_what_it_waits_for_and_the_truth_about_its_connection(
    database: Postgres,
    move_clock: Callable[[timedelta], None],
    transport: Transport,
    can_cancel: bool,
    truth: str,
) -> None:
    """CASES L03."""
    world = a_world(timeout=900)
    order = being_stopped(world)
    reached_by(world, transport, can_cancel=can_cancel)
    for page in (call_of(world, order.call_id), job_of(world, order.call_id)):
        assert "pat-acme stopped its job. Its end is waited for, at first for its clean-up time of 5 m 00 s:" in page
        assert truth in page
    assert "Being stopped by pat-acme for" in job_of(world, order.call_id)
    assert "It waits for 1 call to stop: shop.note." in job_of(world, order.call_id)
    move_clock(timedelta(seconds=301))
    page = call_of(world, order.call_id)
    assert "It has not ended since it was told to stop, for 5 m" in page
    assert truth in page


@pytest.mark.rule("L6")
def test_of_a_read_nothing_can_land(database: Postgres) -> None:
    world = a_world()
    page = call_of(world, being_stopped(world, "look").call_id)
    assert "Its end is waited for" in page
    assert LAND not in page


@pytest.mark.rule("L2")
@pytest.mark.rule("L5")
def test_a_stopped_call_of_a_lost_node_counts_down_to_its_full_limit(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world(timeout=900)
    order = being_stopped(world)
    move_clock(timedelta(seconds=11))
    assert nodes.lose(node_id=world.node)
    page = call_of(world, order.call_id)
    assert "counts as ended when its full time limit has passed, in 14 m" in page
    assert "It may run on until then." in page
    move_clock(timedelta(seconds=900))
    swept()
    row = see(world, Call, order.call_id)
    assert row.state == CallState.CANCELED
    assert "It did not say that it stopped: what it does may still land." in call_of(world, order.call_id)


@pytest.mark.rule("L1")
def test_each_way_of_being_stopped_is_named(database: Postgres) -> None:
    """CASES L15."""
    world = a_world()
    by_switch = an_order(world, a_call(world, "note"))
    a_switch(world, Scope.FUNCTION, "shop.note")
    assert "A kill switch stopped it." in call_of(world, by_switch.call_id)
    other = a_world("other", on_unknown="fail")
    broke, runs = a_turn(other, a_job(other), "note", "note")
    order = an_order(other, runs)
    made(other, broke, an_outcome(End.BROKEN))
    assert "Another call of its job has an unknown outcome, which ends the job." in call_of(other, order.call_id)
    assert "It ends FAILED when every call" in job_of(other, order.call_id)
    third = a_world("third")
    unknown, beside = a_turn(third, a_job(third), "note", "note")
    order = an_order(third, beside)
    made(third, unknown, an_outcome(End.BROKEN))
    answered(third, the_hold(third, unknown).pk, Answer.STOP)
    assert "pat-third stopped its job." in call_of(third, order.call_id)


ENDS = [
    (End.STOPPED, {}, "It may have acted before it stopped.", "may have acted", "1 call of it may have acted"),
    (End.STOPPED, {"end_known": False}, "what it does may still land", "may have acted", "1 call of it may have acted"),
    (End.NOT_MADE, {}, "Nothing was made.", "nothing made", ""),
]


@pytest.mark.rule("L2")
@pytest.mark.rule("U10")
@pytest.mark.parametrize(("end", "more", "said", "effect", "of_job"), ENDS)
def test_canceled_says_whether_it_may_have_acted_and_so_does_its_job(
    database: Postgres, end: End, more: dict[str, bool], said: str, effect: str, of_job: str
) -> None:
    """CASES L03."""
    world = a_world()
    order = being_stopped(world)
    settle(world, order, an_outcome(end, **more))
    assert the_job(world, order.call_id).state == JobState.CANCELED
    page = job_of(world, order.call_id)
    assert said in page and said in call_of(world, order.call_id)
    assert f"effect {effect}" in page
    assert (of_job in page) if of_job else ("may have acted" not in page)
    assert "Stopped by pat-acme" in page


@pytest.mark.rule("L9")
def test_a_reply_that_came_after_the_end_is_shown_as_one_that_was_not_used(database: Postgres) -> None:
    """CASES L02 B, U09."""
    world = a_world()
    reply = Result("entry 12 was made", is_error=False)

    def comes_late(order: Order) -> None:
        work.keep_late_reply(tenant=world.tenant, attempt_id=order.attempt_id, result=reply)

    stopped = being_stopped(world)
    settle(world, stopped, an_outcome(End.STOPPED, end_known=False))
    assert "late reply" not in call_of(world, stopped.call_id)
    comes_late(stopped)
    page = call_of(world, stopped.call_id)
    assert "A late reply came, and was not used" in page and "entry 12 was made" in page
    assert see(world, Call, stopped.call_id).state == CallState.CANCELED
    assert "effect may have acted" in page

    open_, answered_ = an_order(world, a_call(world, "note")), an_order(world, a_call(world, "note"))
    for order in (open_, answered_):
        settle(world, order, an_outcome(End.BROKEN))
    hold = the_hold(world, open_.call_id).pk
    answered(world, the_hold(world, answered_.call_id).pk, Answer.AGAIN)
    for order in (open_, answered_):
        comes_late(order)
    card = plain(text_of(visitor(world).get(hold_url(hold))))
    assert "A late reply came: evidence only" in card and "entry 12 was made" in card
    assert "A late reply came, and was not used" in call_of(world, answered_.call_id)
    assert see(world, Call, open_.call_id).state == CallState.UNKNOWN
    assert see(world, Call, answered_.call_id).state == CallState.QUEUED


@pytest.mark.rule("U10")
def test_the_effect_is_named_on_every_final_call(database: Postgres) -> None:
    world = a_world()
    happened, hold = an_unknown_call(world)
    answered(world, hold, Answer.HAPPENED)
    done = made(world, a_call(world, "note"), an_outcome(End.ANSWERED)).pk
    failed = made(world, a_call(world, "note"), an_outcome(End.NOT_MADE)).pk
    read = made(world, a_call(world, "look"), an_outcome(End.ANSWERED)).pk
    stopped = being_stopped(world)
    settle(world, stopped, an_outcome(End.ANSWERED))  # its reply won the race
    (wrong,) = a_turn(world, a_job(world), ("ship", {}))
    told = {
        happened: "effect made",
        done: "effect made",
        failed: "effect nothing made",
        read: "effect none: it only reads",
        stopped.call_id: "effect made",
        wrong: "effect nothing made",
    }
    assert {call: words for call, words in told.items() if words not in call_of(world, call)} == {}
    assert "Nothing was made." in call_of(world, failed)


@pytest.mark.rule("B5")
def test_a_busy_call_says_why_it_waits_and_counts_down_to_its_next_attempt(database: Postgres) -> None:
    world = a_world()
    call = a_retrying_call(world, "look", an_outcome(End.BUSY, retry_after=60.0))
    for page in (call_of(world, call), job_of(world, call)):
        assert re.search(r"asked to be called again later. Attempt 2 of 4 in (1 m 0)?\d+ s", page)
        assert "The service asked to wait 1 m 00 s" in page
    html = text_of(visitor(world).get(f"/calls/{ids.show(ids.CALL, call)}/"))
    assert re.search(r"Attempt 2 of 4 in</bdi> <span data-countdown=\"[0-9.]+\">", html)


@pytest.mark.rule("U10")
def test_the_error_of_a_second_try_is_shown_and_told_as_that_and_not_as_if_nothing_had_happened(
    database: Postgres,
) -> None:
    """CASES U05."""
    world = a_world()
    call, hold = an_unknown_call(world)  # a delete that had landed, without a key: the second finds nothing to delete
    answered(world, hold, Answer.AGAIN)
    row = made(world, call, an_outcome(End.ANSWERED, text="there is no such order", is_error=True))
    assert (row.state, row.effect) == (CallState.ERRORED, "maybe")
    page = call_of(world, call)
    assert "Attempt 2 was answered with an error; an earlier one got no answer and may have acted." in page
    assert "effect may have acted" in page
    assert told(world, call).startswith("there is no such order\n\nThis was the answer to a further attempt.")
    assert "may have acted" in told(world, call)
