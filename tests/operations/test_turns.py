"""The model's turns and the limits of an agent."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db, ids
from catalog.models import Agent
from catalog.rules.agents import Limits
from jobs.agent import models, rehearsal
from jobs.models import Call, Job, Turn
from jobs.operations import holds, nodes, turns
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState, TurnState
from jobs.rules.turns import TurnAnswer, TurnFailed, Wanted
from jobs.rules.why import Why
from tests.builders import (
    World,
    a_held_call,
    a_job,
    a_node,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    answered,
    made,
    see,
    settle,
    swept,
    the_job,
)

pytestmark = pytest.mark.usefixtures("database")


def asked(world: World, job: object) -> object:
    """What a node that claims the job's turn is given."""
    return turns.start(tenant=world.tenant, job_id=job, node_id=world.node)  # type: ignore[arg-type]


@pytest.mark.rule("G2")
def test_a_due_turn_is_claimed_once() -> None:
    world = a_world()
    job = a_job(world)
    assert due.work(turns=5).turns == [(world.tenant, job)]
    assert asked(world, job) is not None
    assert asked(world, job) is None
    assert due.work(turns=5).turns == []


@pytest.mark.rule("G2")
def test_the_next_turn_reads_what_was_said_asked_and_answered_in_order() -> None:
    world = a_world()
    job = a_job(world)
    calls = a_turn(world, job, ("look", {"for": "tea"}), ("note", {}), say="Let me look.")
    made(world, calls[1], an_outcome(End.ANSWERED, text="noted"))
    made(world, calls[0], an_outcome(End.ANSWERED, text="x" * 20_000))
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    (past,) = order.past
    assert past.say == "Let me look."
    assert [call.model_name for call in past.calls] == ["shop__look", "shop__note"]
    assert past.calls[0].arguments == {"for": "tea"}
    assert [len(call.text) for call in past.calls] == [20_000, 5]
    assert order.number == 2


@pytest.mark.rule("G2")
def test_a_waiting_job_is_due_no_turn_and_holds_no_worker() -> None:
    world = a_world()
    job = a_job(world)
    a_turn(world, job, "refund")
    assert see(world, Job, job).state == JobState.WAITING
    assert due.work(turns=5).turns == []
    assert due.work(calls=5).calls == []


@pytest.mark.parametrize(
    ("outcome", "kind", "reason"),
    [
        (TurnFailed("no key"), "model_error", Why.MODEL_ERROR),
        (TurnFailed("no such turn", agents_fault=True), "agent_error", Why.AGENT_ERROR),
    ],
)
def test_a_turn_that_failed_fails_the_job_with_its_words(outcome: TurnFailed, kind: str, reason: Why) -> None:
    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=outcome)
    row = see(world, Job, job)
    assert (row.state, row.failure_kind, row.reason, row.detail) == (JobState.FAILED, kind, reason, outcome.error)
    assert not turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=TurnAnswer(say="late"))
    assert see(world, Turn, order.turn_id).state == TurnState.FAILED


def test_a_model_whose_words_no_database_keeps_still_gets_its_turn_settled() -> None:
    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    odd = TurnAnswer(say="a\0b\ud800", wanted=(Wanted("shop__look\0", {}, "id\0"), Wanted("shop__look", {})))
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=odd)
    with db.read(world.tenant):
        states = list(Call.objects.order_by("activity").values_list("state", flat=True))
    assert states == [CallState.ERRORED, CallState.QUEUED]


def test_an_agents_limit_of_turns_fails_the_job() -> None:
    world = a_world(limits=Limits(turns=1))
    job = a_job(world)
    (call,) = a_turn(world, job, "look")
    made(world, call, an_outcome(End.ANSWERED))
    assert asked(world, job) is None
    row = see(world, Job, job)
    assert (row.state, row.failure_kind) == (JobState.FAILED, "limit_turns")
    assert "limits.turns" in row.detail


def test_an_agents_limit_of_calls_fails_the_job_before_any_of_them_starts() -> None:
    world = a_world(limits=Limits(calls=3))
    job = a_job(world)
    for call in a_turn(world, job, "look", "look"):
        made(world, call, an_outcome(End.ANSWERED))
    assert a_turn(world, job, "look", "look") == []
    row = see(world, Job, job)
    assert (row.state, row.failure_kind) == (JobState.FAILED, "limit_calls")
    assert "limits.calls" in row.detail


@pytest.mark.rule("L2")
def test_an_agents_limit_of_minutes_stops_what_runs_and_then_fails_the_job(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world(limits=Limits(minutes=1), timeout=600)
    job = a_job(world)
    note, look = a_turn(world, job, "note", "look")
    order = an_order(world, note)
    move_clock(timedelta(seconds=20))
    nodes.beat(node_id=world.node, servers=[])
    assert swept() == 0
    move_clock(timedelta(seconds=41))
    nodes.beat(node_id=world.node, servers=[])
    assert swept() == 1
    assert see(world, Job, job).state == JobState.CANCELLING
    assert see(world, Call, look).state == CallState.CANCELED
    settle(world, order, an_outcome(End.STOPPED))
    row = see(world, Job, job)
    assert (row.state, row.failure_kind, row.reason) == (JobState.FAILED, "limit_minutes", Why.JOB_LIMIT)
    assert "limits.minutes" in row.detail


def test_an_agents_limit_of_minutes_does_not_run_while_only_a_person_is_waited_for(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world(limits=Limits(minutes=10))
    call, hold = a_held_call(world)
    job = the_job(world, call).pk
    first = see(world, Job, job).deadline_at
    move_clock(timedelta(minutes=30))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    assert see(world, Job, job).state == JobState.WAITING
    answered(world, hold, holds.Answer.APPROVE)
    moved = see(world, Job, job).deadline_at
    assert first is not None and moved is not None
    assert timedelta(minutes=29) < moved - first < timedelta(minutes=31)
    move_clock(timedelta(minutes=9))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    assert see(world, Job, job).state == JobState.RUNNING
    move_clock(timedelta(minutes=2))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    assert see(world, Job, job).failure_kind == "limit_minutes"


@pytest.mark.rule("L11")
def test_a_draining_node_is_given_no_turn() -> None:
    world = a_world()
    job = a_job(world)
    nodes.drain(node_id=world.node)
    assert asked(world, job) is None
    assert turns.start(tenant=world.tenant, job_id=job, node_id=a_node("n2")) is not None


def test_a_turn_nobody_knows_is_not_settled() -> None:
    world = a_world()
    assert not turns.settle(tenant=world.tenant, turn_id=ids.new(), asked=1, outcome=TurnAnswer(say=""))


def test_a_job_whose_agents_kept_file_cannot_be_read_any_more_fails_at_its_next_turn_and_says_why() -> None:
    world = a_world()
    job = a_job(world)
    with db.write(world.tenant):
        Agent.objects.update(definition={"name": "clerk"})
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is None
    ended = see(world, Job, job)
    assert (ended.state, ended.reason) == (JobState.FAILED, Why.AGENT_ERROR)
    assert "load its plugin again" in ended.detail


def test_an_error_of_ours_while_asking_fails_the_turn_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    world = a_world()
    order = turns.start(tenant=world.tenant, job_id=a_job(world), node_id=world.node)
    assert order is not None
    monkeypatch.setattr(rehearsal, "ask", breaks)
    outcome = models.ask(order)
    assert outcome == TurnFailed("an error in the studio, which its log has in full: ZeroDivisionError")
    assert "could not be asked" in caplog.text
