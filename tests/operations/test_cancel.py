"""A cancel reaches every call wherever it is, and the job is CANCELED only when all of them have really ended."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db, ids
from jobs.models import Attempt, Call, Hold, Job
from jobs.operations import cancel, nodes, work
from jobs.operations.holds import Answer
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect, HoldState, JobState
from jobs.rules.why import Why
from tenants.rules.who import Actor
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_retrying_call,
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

pytestmark = pytest.mark.usefixtures("database")


def a_queued_call(world: World) -> UUID:
    return a_call(world, "note")


def a_call_on_a_card(world: World) -> UUID:
    return a_held_call(world)[0]


def an_approved_call(world: World) -> UUID:
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    return call


def an_unknown_write(world: World) -> UUID:
    return an_unknown_call(world)[0]


@pytest.mark.rule("L3")
@pytest.mark.parametrize(
    "waiting", [a_queued_call, a_call_on_a_card, an_approved_call, a_retrying_call, an_unknown_write]
)
def test_a_call_that_no_node_is_at_ends_at_once_and_its_job_with_it(waiting: Callable[[World], UUID]) -> None:
    world = a_world()
    call = waiting(world)
    assert cancelled(world, the_job(world, call).pk) is JobState.CANCELED
    row = see(world, Call, call)
    assert (row.state, row.reason, row.due_at) == (CallState.CANCELED, Why.CANCELLED, None)
    with db.read(world.tenant):
        assert set(Hold.objects.values_list("state", flat=True)) <= {HoldState.WITHDRAWN, HoldState.ANSWERED}
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None


@pytest.mark.rule("L1")
@pytest.mark.rule("L2")
def test_a_running_call_is_asked_to_stop_and_the_job_is_cancelling_until_it_has() -> None:
    """CASES L01."""
    world = a_world()
    job = a_job(world)
    note, look, held = a_turn(world, job, "note", "look", "refund")
    first, second = an_order(world, note), an_order(world, look)
    assert cancelled(world, job) is JobState.CANCELLING
    assert see(world, Call, held).state == CallState.CANCELED
    for order in (first, second):
        attempt = see(world, Attempt, order.attempt_id)
        assert attempt.stop_requested_at is not None
        assert attempt.stop_reason == Reason.STOPPED_CANCEL
    asked = nodes.stop_requests([first.attempt_id])
    assert [(request.attempt_id, request.reason) for request in asked] == [(first.attempt_id, Reason.STOPPED_CANCEL)]
    settle(world, first, an_outcome(End.STOPPED))
    assert see(world, Job, job).state == JobState.CANCELLING
    settle(world, second, an_outcome(End.STOPPED))
    assert see(world, Job, job).state == JobState.CANCELED
    assert told(world, note).endswith("It may have acted before it stopped: check before doing it again.")
    assert "may have acted" not in told(world, look)


@pytest.mark.rule("L3")
@pytest.mark.parametrize(
    ("function", "number"),
    [("charge", 1), ("charge", 2), ("charge", 3), ("refund", 1)],
    ids=["attempt 1", "attempt 2", "attempt 3", "once approved"],
)
def test_a_cancel_reaches_the_attempt_that_is_being_made(
    function: str, number: int, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES L06; a job that continued as new is in `test_continuing.py`."""
    world = a_world()
    call = a_call(world, function)
    if function == "refund":
        answered(world, the_hold(world, call).pk, Answer.APPROVE)
    for _ in range(number - 1):
        made(world, call, an_outcome(End.BROKEN))
        move_clock(timedelta(seconds=9))
    order = an_order(world, call)
    assert order.number == number
    assert cancelled(world, order.job_id) is JobState.CANCELLING
    asked = nodes.stop_requests([order.attempt_id])
    assert [(one.attempt_id, one.reason) for one in asked] == [(order.attempt_id, Reason.STOPPED_CANCEL)]
    settle(world, order, an_outcome(End.STOPPED, went_out=False))
    row = see(world, Call, call)
    assert (row.state, row.effect) == (CallState.CANCELED, Effect.MAYBE if number > 1 else Effect.NONE)
    assert ("may have acted" in told(world, call)) is (number > 1)
    assert the_job(world, call).state == JobState.CANCELED


@pytest.mark.rule("L2")
@pytest.mark.parametrize(("is_error", "state"), [(False, CallState.SUCCEEDED), (True, CallState.ERRORED)])
def test_a_reply_that_wins_the_race_is_kept_and_the_job_still_ends_canceled(is_error: bool, state: CallState) -> None:
    world = a_world()
    call = a_call(world, "note")
    order = an_order(world, call)
    cancelled(world, order.job_id)
    settle(world, order, an_outcome(End.ANSWERED, text="done", is_error=is_error))
    assert see(world, Call, call).state == state
    assert told(world, call) == "done"
    assert the_job(world, call).state == JobState.CANCELED


@pytest.mark.rule("L2")
@pytest.mark.parametrize("end", [End.BUSY, End.NOT_MADE, End.TIMED_OUT, End.BROKEN, End.UNREADABLE, End.LOST])
def test_however_else_a_cancelled_attempt_ends_there_is_no_other_and_no_question(end: End) -> None:
    world = a_world()
    call = a_call(world, "charge")
    order = an_order(world, call)
    cancelled(world, order.job_id)
    settle(world, order, an_outcome(end))
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.CANCELED, Why.CANCELLED)
    assert the_job(world, call).state == JobState.CANCELED
    told_of = told(world, call)
    assert ("Nothing was done" in told_of) is (end in (End.BUSY, End.NOT_MADE))
    assert ("may have acted" in told_of) is (end not in (End.BUSY, End.NOT_MADE))


@pytest.mark.rule("L2")
@pytest.mark.rule("L5")
def test_a_cancelled_call_of_a_lost_node_is_over_only_when_its_full_timeout_has_passed(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world(timeout=60)
    call = a_call(world, "note")
    order = an_order(world, call)
    cancelled(world, order.job_id)
    move_clock(timedelta(seconds=45))
    swept()
    assert the_job(world, call).state == JobState.CANCELLING
    assert see(world, Attempt, order.attempt_id).state == "open"
    move_clock(timedelta(seconds=16))
    swept()
    assert the_job(world, call).state == JobState.CANCELED
    assert "may have acted" in told(world, call)


@pytest.mark.rule("L2")
def test_a_cancelled_call_of_a_living_node_is_waited_for_ten_minutes_past_its_timeout_and_no_longer(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world(timeout=60)
    call = a_call(world, "note")
    order = an_order(world, call)
    cancelled(world, order.job_id)
    move_clock(timedelta(seconds=60 + 590))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    assert the_job(world, call).state == JobState.CANCELLING
    move_clock(timedelta(seconds=20))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    assert the_job(world, call).state == JobState.CANCELED


@pytest.mark.rule("L3")
def test_no_call_starts_after_a_cancel_also_not_one_whose_turn_was_still_being_asked() -> None:
    from jobs.operations import turns
    from jobs.rules.turns import TurnAnswer, Wanted

    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    assert cancelled(world, job) is JobState.CANCELLING
    answer = TurnAnswer(say="", wanted=(Wanted("shop__note", {}),))
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=answer)
    assert see(world, Job, job).state == JobState.CANCELED
    with db.read(world.tenant):
        assert not Call.objects.filter(job_id=job).exists()


def test_a_job_that_has_not_begun_is_canceled_at_once_and_is_due_no_turn() -> None:
    world = a_world()
    job = a_job(world)
    assert cancelled(world, job) is JobState.CANCELED
    assert see(world, Job, job).turn_due_at is None


def test_a_job_that_is_over_cannot_be_cancelled_and_says_as_what_it_ended() -> None:
    world = a_world()
    job = a_job(world)
    a_turn(world, job, say="Done.")
    with pytest.raises(cancel.AlreadyOver, match="COMPLETED"):
        cancelled(world, job)
    with pytest.raises(Job.DoesNotExist):
        cancelled(world, ids.new())


def test_a_person_who_cancels_a_failing_job_is_noted_and_the_first_one_stays_noted() -> None:
    world = a_world(on_unknown="fail")
    sam = a_person(world.tenant, "sam")
    write, read = a_turn(world, a_job(world), "note", "look")
    running = an_order(world, read)
    made(world, write, an_outcome(End.BROKEN))
    job = the_job(world, write)
    assert (job.state, job.cancel_requested_by_id) == (JobState.CANCELLING, None)
    cancelled(world, job.pk)
    cancel.cancel_job(tenant=world.tenant, job_id=job.pk, by=Actor("sam", "link", sam))
    assert the_job(world, write).cancel_requested_by_id == world.person
    settle(world, running, an_outcome(End.STOPPED))
    assert the_job(world, write).state == JobState.FAILED
