"""One retry layer: the same key, one attempt after the other, waits that hold no slot, and an honest end."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from django.db import IntegrityError

from base import db, ids
from jobs.models import Attempt, Call
from jobs.operations import moves, nodes, work
from jobs.operations.holds import Answer
from jobs.queries import due
from jobs.rules.limits import MAX_ATTEMPTS
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect, JobState
from jobs.rules.why import Why
from tests.builders import (
    World,
    a_call,
    a_policy,
    a_retrying_call,
    a_rule,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
    the_hold,
    the_job,
    told,
)

pytestmark = pytest.mark.usefixtures("database")

type Clock = Callable[[timedelta], None]


def used_up(world: World, call: UUID, outcome: Outcome, move_clock: Clock) -> list[str]:
    """Every attempt ends like this until none follows by itself; returns the keys that were sent."""
    keys = []
    while see(world, Call, call).state in (CallState.QUEUED, CallState.RETRYING):
        order = an_order(world, call)
        keys.append(order.key)
        settle(world, order, outcome)
        move_clock(timedelta(seconds=70))
        nodes.beat(node_id=world.node, servers=[])
    return keys


@pytest.mark.rule("K1")
@pytest.mark.rule("U2")
@pytest.mark.parametrize(
    ("function", "end", "finally_"),
    [
        ("look", End.BROKEN, CallState.FAILED),
        ("charge", End.TIMED_OUT, CallState.UNKNOWN),
        ("charge", End.NOT_MADE, CallState.FAILED),
        ("look", End.BUSY, CallState.ERRORED),
        ("charge", End.BUSY, CallState.ERRORED),
    ],
)
def test_four_attempts_carry_one_key_and_then_it_is_over_by_what_it_may_have_done(
    function: str, end: End, finally_: CallState, move_clock: Clock
) -> None:
    world = a_world()
    call = a_call(world, function)
    keys = used_up(world, call, an_outcome(end), move_clock)
    row = see(world, Call, call)
    assert (len(keys), set(keys)) == (MAX_ATTEMPTS, {row.key})
    assert row.state == finally_
    assert row.attempts_made == MAX_ATTEMPTS


@pytest.mark.rule("K1")
@pytest.mark.rule("U6")
def test_run_it_again_after_four_attempts_is_one_further_attempt_under_the_first_key(move_clock: Clock) -> None:
    """CASES R10."""
    world = a_world()
    call = a_call(world, "charge")
    (key,) = set(used_up(world, call, an_outcome(End.BROKEN), move_clock))
    answered(world, the_hold(world, call).pk, Answer.AGAIN)
    order = an_order(world, call)
    assert (order.key, order.number) == (key, MAX_ATTEMPTS + 1)
    settle(world, order, an_outcome(End.BROKEN))
    assert see(world, Call, call).state == CallState.UNKNOWN


@pytest.mark.rule("U6")
def test_run_it_again_is_one_further_attempt_also_where_the_allowance_was_not_used_up(move_clock: Clock) -> None:
    world = a_world()
    call = a_retrying_call(world, "charge")
    move_clock(timedelta(seconds=2))
    changed = an_outcome(End.NOT_MADE, reason=Reason.LISTING_CHANGED)
    assert made(world, call, changed).state == CallState.UNKNOWN
    answered(world, the_hold(world, call).pk, Answer.AGAIN)
    row = made(world, call, an_outcome(End.BROKEN))
    assert (row.state, row.attempts_made) == (CallState.UNKNOWN, 3)


@pytest.mark.rule("U7")
@pytest.mark.parametrize("age", [timedelta(hours=23, minutes=59), timedelta(hours=24, seconds=1)])
def test_a_write_that_may_have_acted_is_made_again_by_itself_only_while_its_key_is_surely_known(
    age: timedelta, move_clock: Clock
) -> None:
    """A retry that waited for a node or a pause, and an attempt whose end nobody saw in time."""
    world = a_world()
    waits, runs = a_retrying_call(world, "charge"), a_call(world, "charge")
    reads, busy = a_retrying_call(world, "look"), a_retrying_call(world, "charge", an_outcome(End.BUSY))
    order = an_order(world, runs)
    move_clock(age)
    nodes.beat(node_id=world.node, servers=[])
    settle(world, order, an_outcome(End.LOST))
    orders = [an_order(world, call) for call in (reads, busy)]  # nothing of these can have been written
    assert [order.number for order in orders] == [2, 2]
    if age < timedelta(hours=24):
        assert an_order(world, waits).number == 2
        assert see(world, Call, runs).state == CallState.RETRYING
        return
    assert work.start(tenant=world.tenant, call_id=waits, node_id=world.node, attempt_id=ids.new()) is None
    for call, reason in ((waits, Why.OLD_KEY), (runs, Reason.NODE_LOST)):
        row = see(world, Call, call)
        assert (row.state, row.reason, row.effect, row.attempts_made) == (CallState.UNKNOWN, reason, Effect.MAYBE, 1)
        assert "Nobody knows" in told(world, call)
        answered(world, the_hold(world, call).pk, Answer.AGAIN)
        assert (an_order(world, call).number, the_job(world, call).state) == (2, JobState.RUNNING)


@pytest.mark.rule("L5")
def test_the_next_attempt_starts_only_after_the_one_before_has_ended(move_clock: Clock) -> None:
    """CASES L13."""
    world = a_world()
    call = a_call(world, "look")
    for _ in range(MAX_ATTEMPTS):
        order = an_order(world, call)
        move_clock(timedelta(seconds=30))
        assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
        settle(world, order, an_outcome(End.TIMED_OUT))
        move_clock(timedelta(seconds=60))
        nodes.beat(node_id=world.node, servers=[])
    with db.read(world.tenant):
        attempts = list(Attempt.objects.filter(call_id=call).order_by("number"))
    assert [attempt.number for attempt in attempts] == [1, 2, 3, 4]
    for before, after in pairwise(attempts):
        assert before.ended_at is not None and before.ended_at <= after.started_at


@pytest.mark.rule("L5")
def test_postgresql_itself_refuses_a_second_open_attempt_of_a_call() -> None:
    world = a_world()
    order = an_order(world, a_call(world))
    with pytest.raises(IntegrityError, match="attempt_one_open"), db.write(world.tenant):
        second = Attempt.objects.get(pk=order.attempt_id)
        second.pk, second.number = ids.new(), 2
        moves.open_attempt(second)


@pytest.mark.rule("B2")
@pytest.mark.rule("B5")
def test_a_busy_call_waits_as_long_as_it_was_told_without_an_attempt_or_a_slot_and_its_job_runs_on(
    move_clock: Clock,
) -> None:
    """CASES B01."""
    world = a_world()
    call = a_retrying_call(world, "look", an_outcome(End.BUSY, retry_after=40.0))
    with db.read(world.tenant):
        assert not Attempt.objects.filter(ended_at__isnull=True).exists()
    assert the_job(world, call).state == JobState.RUNNING
    move_clock(timedelta(seconds=25))
    assert due.work(calls=5).calls == []
    move_clock(timedelta(seconds=16))
    nodes.beat(node_id=world.node, servers=[])
    assert due.work(calls=5).calls == [(world.tenant, call)]
    assert see(world, Call, call).reason == Reason.BUSY


@pytest.mark.rule("B3")
def test_a_busy_call_told_to_wait_longer_than_a_minute_is_over() -> None:
    """CASES B01."""
    world = a_world()
    row = made(world, a_call(world, "look"), an_outcome(End.BUSY, text="in 61 s", retry_after=61.0))
    assert (row.state, row.result_text, row.attempts_made) == (CallState.ERRORED, "in 61 s", 1)


@pytest.mark.rule("U10")
def test_a_keyed_write_that_may_have_acted_stays_a_question_through_busy_not_made_and_denied_attempts(
    move_clock: Clock,
) -> None:
    world = a_world()
    busy = a_retrying_call(world, "charge")
    denied = a_retrying_call(world, "charge")
    move_clock(timedelta(seconds=2))
    assert made(world, busy, an_outcome(End.BUSY, retry_after=100.0)).state == CallState.UNKNOWN
    a_policy(world, a_rule("ask-charges", "ask", function="charge"))
    assert work.start(tenant=world.tenant, call_id=denied, node_id=world.node, attempt_id=ids.new()) is None
    answered(world, the_hold(world, denied).pk, Answer.DENY, "not now")
    for call in (busy, denied):
        row = see(world, Call, call)
        assert (row.state, row.effect) == (CallState.UNKNOWN, Effect.MAYBE)
        assert the_hold(world, call).why
        assert "Nothing was done" not in told(world, call)


@pytest.mark.rule("U10")
def test_a_plain_write_run_again_and_answered_still_may_have_acted_twice() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    answered(world, hold, Answer.AGAIN)
    row = made(world, call, an_outcome(End.ANSWERED))
    assert (row.state, row.effect) == (CallState.SUCCEEDED, Effect.MAYBE)


@pytest.mark.rule("U3")
def test_a_plain_write_run_again_that_was_not_made_is_still_unknown_from_before() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    answered(world, hold, Answer.AGAIN)
    assert made(world, call, an_outcome(End.NOT_MADE)).state == CallState.UNKNOWN
