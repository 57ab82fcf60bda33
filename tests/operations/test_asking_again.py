"""After its time a call is asked for again, and a question can be given more of it (RULES A8; CASES A23, A25)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F

from approvals.operations import later
from approvals.operations.decide import MayNot
from base import db
from jobs.models import Call, Hold, Job
from jobs.operations import turns
from jobs.operations.asking_again import CannotAsk
from jobs.operations.holds import BadAnswer, Closed, Taken
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState, JobState
from jobs.rules.turns import TurnAnswer, Wanted
from jobs.rules.why import Why
from tenants.models import AuditEntry
from tests.builders import (
    World,
    a_held_call,
    a_job,
    a_policy,
    a_rule,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    cancelled,
    made,
    see,
    swept,
    the_hold,
    the_job,
    told,
)
from tests.operations.test_deciding import answer, person
from tests.operations.test_events import assert_told

pytestmark = pytest.mark.usefixtures("database")

type Ahead = Callable[[timedelta], None]


def an_expired_call(world: World, move_clock: Ahead, *, with_turn: bool = True) -> tuple[UUID, UUID]:
    """A call nobody approved in time, in a job that lives on; and its hold."""
    (call,) = a_turn(world, a_job(world), ("refund", {"of": 12}))
    hold = the_hold(world, call).pk
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=24, seconds=1))
    swept(lose_nodes=False)
    assert see(world, Call, call).reason == Why.EXPIRED
    return call, hold


def again(world: World, hold: UUID, role: str = "operator") -> Any:
    """The world's person asks again."""
    return later.ask_again(tenant=world.tenant, hold_id=hold, person=person(world.person, role))


def the_turn(world: World, job: UUID) -> Any:
    """The job's due turn, asked."""
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    return order


def said(world: World, order: Any, say: str) -> None:
    """The model answers with words alone."""
    turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=TurnAnswer(say, ()))


@pytest.mark.rule("A8")
def test_while_the_job_lives_a_new_call_is_asked_and_its_result_reaches_the_model_as_a_late_note(
    move_clock: Ahead,
) -> None:
    """CASES A25."""
    world = a_world()
    call, hold = an_expired_call(world, move_clock)
    job = the_job(world, call).pk
    order = the_turn(world, job)  # the model reads that it expired, and is answering
    assert "nobody answered" in order.past[0].calls[0].text
    asked = again(world, hold)
    assert (asked.job_id, asked.new_job, asked.state) == (job, False, CallState.HELD)
    new = see(world, Call, asked.call_id)
    assert (new.again_of_id, new.args_digest) == (call, see(world, Call, call).args_digest)
    assert new.key != see(world, Call, call).key
    said(world, order, "It expired.")
    assert the_job(world, call).state == JobState.WAITING  # not over: a call of it is open
    assert answer(world, the_hold(world, asked.call_id).pk, "approve") == Taken(CallState.QUEUED)
    made(world, asked.call_id, an_outcome(End.ANSWERED, text="refunded 12"))
    order = the_turn(world, job)
    assert order.notes == (
        "A person asked again for your call of shop__refund, which had expired. This is what came of it:\n\n"
        "refunded 12",
    )
    said(world, order, "So it was refunded after all.")
    assert the_job(world, call).state == JobState.COMPLETED
    with db.read(world.tenant):
        (entry,) = AuditEntry.objects.filter(verb="hold.ask_again")
    assert entry.actor == "pat"
    assert_told(world)


@pytest.mark.rule("A8")
def test_a_late_call_that_ends_while_the_model_answers_is_told_of_with_one_turn_more(move_clock: Ahead) -> None:
    world = a_world()
    call, hold = an_expired_call(world, move_clock)
    job = the_job(world, call).pk
    order = the_turn(world, job)
    asked = again(world, hold)
    answer(world, the_hold(world, asked.call_id).pk, "deny", note="no longer wanted")
    said(world, order, "It expired.")
    assert the_job(world, call).state == JobState.RUNNING
    order = the_turn(world, job)
    assert "no longer wanted" in order.notes[0]
    (call,) = a_turn_after(world, order)
    made(world, call, an_outcome(End.ANSWERED))
    order = the_turn(world, job)
    assert order.notes == () and len(order.past[-1].notes) == 1  # told once, and kept where it was told


def a_turn_after(world: World, order: Any) -> list[UUID]:
    """The model answers with one more call."""
    wanted = (Wanted("shop__look", {}),)
    turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=TurnAnswer("more", wanted))
    with db.read(world.tenant):
        return list(Call.objects.filter(turn_id=order.turn_id).values_list("pk", flat=True))


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("said_of_it", "ends"), [("approve", JobState.COMPLETED), ("deny", JobState.FAILED), ("stop", JobState.CANCELED)]
)
def test_after_its_job_has_ended_a_new_job_makes_that_one_call(
    move_clock: Ahead, said_of_it: str, ends: JobState
) -> None:
    world = a_world()
    call, hold = an_expired_call(world, move_clock)
    old = the_job(world, call).pk
    said(world, the_turn(world, old), "It expired.")
    assert see(world, Call, call).job_id == old and the_job(world, call).state == JobState.COMPLETED
    asked = again(world, hold)
    assert asked.new_job and asked.job_id != old
    assert again(world, hold).call_id == asked.call_id  # pressed twice, made once
    new = the_job(world, asked.call_id)
    assert (new.one_call, new.started_by_id, new.state) == (True, world.person, JobState.WAITING)
    answer(world, the_hold(world, asked.call_id).pk, said_of_it, note="no")
    if said_of_it == "approve":
        made(world, asked.call_id, an_outcome(End.ANSWERED, text="refunded 12"))
    new = the_job(world, asked.call_id)
    assert new.state == ends
    assert new.turns_made == 0
    if ends is JobState.COMPLETED:
        assert new.output == "refunded 12"
    assert "nobody answered" in told(world, call)  # the old one stays as it was
    assert_told(world)


@pytest.mark.rule("A8")
def test_what_waited_when_its_job_reached_its_limit_is_asked_for_again_in_a_job_of_its_own(move_clock: Ahead) -> None:
    world = a_world()
    waiting, begun = a_turn(world, a_job(world), "refund", "look")
    hold = the_hold(world, waiting).pk
    an_order(world, begun)
    with db.write(world.tenant):
        Job.objects.update(deadline_at=F("deadline_at") - timedelta(hours=1))  # before the question expires
    move_clock(timedelta(hours=23, minutes=30))
    swept()
    swept()
    assert see(world, Call, waiting).reason == Why.JOB_LIMIT
    asked = again(world, hold)
    assert asked.new_job and asked.state == CallState.HELD


@pytest.mark.rule("A8")
def test_it_is_judged_by_the_policy_of_today(move_clock: Ahead) -> None:
    world = a_world()
    call, hold = an_expired_call(world, move_clock)
    a_policy(world, a_rule("never", "refuse", function="refund"))
    asked = again(world, hold)
    assert asked.state == CallState.REFUSED
    assert see(world, Call, asked.call_id).reason == Why.POLICY_REFUSES
    assert call


@pytest.mark.rule("A8")
def test_only_what_expired_is_asked_for_again_by_who_may_and_not_while_its_job_stops(move_clock: Ahead) -> None:
    world = a_world()
    call, hold = an_expired_call(world, move_clock)
    with pytest.raises(MayNot, match="Operators do this"):
        again(world, hold, "viewer")
    _, denied = a_held_call(world)
    answer(world, denied, "deny", note="no")
    with pytest.raises(CannotAsk, match="only a call that waited for approval"):
        again(world, denied)
    other = a_turn(world, the_job(world, call).pk, "look")[0]
    an_order(world, other)
    cancelled(world, the_job(world, call).pk)
    with pytest.raises(CannotAsk, match="being stopped"):
        again(world, hold)


@pytest.mark.rule("A8")
def test_a_question_is_given_a_day_more_and_a_week_at_most(move_clock: Ahead) -> None:
    """CASES A23."""
    world = a_world()
    call, hold = a_held_call(world)
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    first = see(world, Hold, hold)
    move_clock(timedelta(hours=23))
    until = later.extend(tenant=world.tenant, hold_id=hold, person=person(world.person))
    assert until == see(world, Hold, hold).expires_at
    move_clock(timedelta(hours=2))
    swept(lose_nodes=False)
    assert see(world, Hold, hold).state == HoldState.OPEN  # the first time is over, the second is not
    for _ in range(6):
        move_clock(timedelta(hours=20))
        later.extend(tenant=world.tenant, hold_id=hold, person=person(world.person))
    assert see(world, Hold, hold).expires_at == first.opened_at + timedelta(days=7)
    with pytest.raises(BadAnswer, match="at most a week"):
        later.extend(tenant=world.tenant, hold_id=hold, person=person(world.person))
    with pytest.raises(MayNot):
        later.extend(tenant=world.tenant, hold_id=hold, person=person(world.person, "viewer"))
    move_clock(timedelta(days=1))
    gone = later.extend(tenant=world.tenant, hold_id=hold, person=person(world.person))
    assert isinstance(gone, Closed) and gone.state == HoldState.EXPIRED
    assert see(world, Call, call).reason == Why.EXPIRED
    with db.read(world.tenant):
        assert AuditEntry.objects.filter(verb="hold.extend").count() == 7
    assert_told(world)
