"""Questions whether a call may run: approved, denied, stopped, expired, withdrawn."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db
from jobs.models import Call, Hold, Job
from jobs.operations.holds import Answer, BadAnswer, Closed, Taken
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState, JobState
from jobs.rules.why import Why
from tests.builders import (
    a_held_call,
    a_job,
    a_turn,
    a_world,
    an_outcome,
    answered,
    cancelled,
    made,
    see,
    swept,
    the_hold,
    the_job,
    told,
)

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.rule("A7")
def test_an_approved_call_is_due_in_the_answers_own_transaction_and_its_job_runs_again() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    assert the_job(world, call).state == JobState.WAITING
    assert answered(world, hold, Answer.APPROVE) == Taken(CallState.QUEUED)
    row = see(world, Call, call)
    assert (row.state, row.due_at is not None, row.reason) == (CallState.QUEUED, True, Why.APPROVED)
    assert the_job(world, call).state == JobState.RUNNING
    assert made(world, call, an_outcome(End.ANSWERED)).state == CallState.SUCCEEDED


@pytest.mark.rule("A9")
@pytest.mark.rule("U9")
def test_denying_takes_a_reason_and_the_model_reads_it() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    for note in ("", "   "):
        with pytest.raises(BadAnswer, match="takes a reason"):
            answered(world, hold, Answer.DENY, note)
        assert see(world, Hold, hold).state == HoldState.OPEN
    assert answered(world, hold, Answer.DENY, "over the limit") == Taken(CallState.REFUSED)
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.REFUSED, Why.DENIED)
    assert told(world, call).startswith("A person denied this call. Their reason: over the limit")
    a_turn(world, the_job(world, call).pk, say="I will ask first.")


@pytest.mark.rule("A8")
@pytest.mark.rule("U9")
def test_an_expired_hold_is_expired_and_not_denied_and_the_job_lives_on(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=23, minutes=59))
    swept(lose_nodes=False)
    assert see(world, Hold, hold).state == HoldState.OPEN
    move_clock(timedelta(minutes=2))
    swept(lose_nodes=False)
    row, closed = see(world, Call, call), see(world, Hold, hold)
    assert (closed.state, closed.answer, closed.answered_by_id) == (HoldState.EXPIRED, "", None)
    assert (row.state, row.reason) == (CallState.REFUSED, Why.EXPIRED)
    assert "nobody answered" in told(world, call)
    assert "denied" not in told(world, call)
    assert the_job(world, call).state == JobState.RUNNING
    late = answered(world, hold, Answer.APPROVE)
    assert isinstance(late, Closed) and late.state == HoldState.EXPIRED
    assert see(world, Call, call).state == CallState.REFUSED


@pytest.mark.rule("A8")
def test_an_approval_that_comes_after_its_time_expires_the_hold_also_while_no_node_sweeps(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    move_clock(timedelta(hours=24, seconds=1))
    late = answered(world, hold, Answer.APPROVE)
    assert isinstance(late, Closed) and (late.state, late.by) == (HoldState.EXPIRED, None)
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.REFUSED, Why.EXPIRED)
    assert the_job(world, call).state == JobState.RUNNING


@pytest.mark.rule("A9")
def test_stop_on_a_card_cancels_the_job_with_all_its_other_cards() -> None:
    world = a_world()
    one, other, running = a_turn(world, a_job(world), "refund", "export", "look")
    assert answered(world, the_hold(world, one).pk, Answer.STOP) == Taken(CallState.CANCELED)
    with db.read(world.tenant):
        assert not Hold.objects.filter(closed_at__isnull=True).exists()
        assert Hold.objects.get(call_id=other).state == HoldState.WITHDRAWN
    assert see(world, Call, running).state == CallState.CANCELED
    assert (the_job(world, one).state, the_job(world, one).cancel_requested_by_id) == (JobState.CANCELED, world.person)
    assert told(world, one).startswith("A person stopped the job.")


@pytest.mark.rule("A6")
@pytest.mark.rule("L3")
def test_after_a_cancel_an_approval_moves_nothing_and_reads_that_the_hold_was_withdrawn() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    cancelled(world, the_job(world, call).pk)
    closed = answered(world, hold, Answer.APPROVE)
    assert isinstance(closed, Closed)
    assert (closed.state, closed.by) == (HoldState.WITHDRAWN, None)
    assert see(world, Call, call).state == CallState.CANCELED


@pytest.mark.rule("A6")
def test_deciding_one_of_two_alike_calls_leaves_the_other_where_it_is() -> None:
    """CASES A11."""
    world = a_world()
    one, other = a_turn(world, a_job(world), ("refund", {"of": 1}), ("refund", {"of": 1}))
    answered(world, the_hold(world, other).pk, Answer.APPROVE)
    assert see(world, Call, one).state == CallState.HELD
    assert see(world, Call, other).state == CallState.QUEUED
