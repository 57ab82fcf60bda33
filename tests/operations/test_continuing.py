"""A job that continues as new: its calls count from 1, under keys of their own, and all else of it is the same job."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Agent
from catalog.rules.agents import AgentSpec, Limits, RehearsalCall, RehearsalTurn
from catalog.rules.kept_agents import as_json
from jobs.agent import models
from jobs.models import Call, Event, Job
from jobs.operations import turns
from jobs.operations.holds import Answer, Taken
from jobs.queries import trace
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState
from jobs.rules.turns import TurnAnswer, TurnOrder, Wanted
from tests.builders import (
    World,
    a_job,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    answered,
    cancelled,
    made,
    see,
    settle,
    the_hold,
)
from tests.pages.visitors import job_url, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
ONE_MORE = ("look", {"of": 1})


def continued(world: World, job: UUID, given: Mapping[str, Any] | None = None, *, say: str = "") -> None:
    """The job's due turn, answered with "continue as new"."""
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None, "no turn of the job is due"
    answer = TurnAnswer(say=say, continues=given or {})
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=answer)


def a_continued_job(world: World) -> UUID:
    """A job with two calls in its first run, which has just continued as new."""
    job = a_job(world)
    for call in a_turn(world, job, ONE_MORE, "note"):
        made(world, call, an_outcome(End.ANSWERED))
    continued(world, job)
    return job


@pytest.mark.rule("K2")
def test_the_calls_of_each_run_count_from_one_under_keys_of_their_own() -> None:
    world = a_world()
    job = a_continued_job(world)
    (second,) = a_turn(world, job, ONE_MORE)
    made(world, second, an_outcome(End.ANSWERED))
    continued(world, job)
    (third,) = a_turn(world, job, ONE_MORE)
    shown = ids.show(ids.JOB, job)
    with db.read(world.tenant):
        keys = list(Call.objects.filter(job_id=job).order_by("run_number", "activity").values_list("key", flat=True))
    assert keys == [f"{shown}/1", f"{shown}/2", f"{shown}/anr1/1", f"{shown}/anr2/1"]
    assert an_order(world, third).key == f"{shown}/anr2/1"


def test_its_model_reads_nothing_of_the_runs_before_but_its_input_and_turns_are_numbered_on() -> None:
    world = a_world()
    job = a_continued_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    assert (order.number, order.past, order.given) == (3, (), {})


@pytest.mark.rule("U3")
def test_its_events_are_numbered_on_without_a_gap_and_say_that_it_continued() -> None:
    world = a_world()
    job = a_continued_job(world)
    a_turn(world, job, ONE_MORE)
    with db.read(world.tenant):
        events = list(Event.objects.filter(job_id=job).order_by("seq"))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.data["run"] for event in events if event.kind == "job.continued"] == [1]


def test_its_limit_of_turns_is_the_jobs_and_not_each_runs() -> None:
    world = a_world(limits=Limits(turns=3))
    job = a_continued_job(world)
    continued(world, job)
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is None
    row = see(world, Job, job)
    assert (row.state, row.failure_kind) == (JobState.FAILED, "limit_turns")
    assert "limits.turns" in row.detail


def test_its_limit_of_calls_is_the_jobs_and_not_each_runs() -> None:
    world = a_world(limits=Limits(calls=2))
    job = a_continued_job(world)
    assert a_turn(world, job, ONE_MORE) == []
    row = see(world, Job, job)
    assert (row.state, row.failure_kind) == (JobState.FAILED, "limit_calls")
    assert "limits.calls" in row.detail


def test_a_job_that_is_being_cancelled_does_not_continue() -> None:
    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    cancelled(world, job)
    turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=TurnAnswer(say="", continues={}))
    row = see(world, Job, job)
    assert (row.state, row.run_number) == (JobState.CANCELED, 0)


@pytest.mark.parametrize("where", ["queued", "running", "held", "unknown"])
@pytest.mark.rule("L3")
def test_a_cancel_reaches_its_call_wherever_that_stands(where: str) -> None:
    """CASES L06."""
    world = a_world()
    job = a_continued_job(world)
    (call,) = a_turn(world, job, {"held": "refund"}.get(where, "note"))
    order = an_order(world, call) if where in ("running", "unknown") else None
    if order is not None and where == "unknown":
        settle(world, order, an_outcome(End.BROKEN, went_out=True))
        assert see(world, Call, call).state == CallState.UNKNOWN
    cancelled(world, job)
    if order is not None and where == "running":
        settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Job, job).state == JobState.CANCELED
    assert see(world, Call, call).state == CallState.CANCELED


@pytest.mark.rule("A6")
def test_an_approval_in_each_run_lets_its_own_call_run() -> None:
    """CASES A15."""
    world = a_world()
    job = a_job(world)
    for _ in range(3):
        (call,) = a_turn(world, job, "refund")
        hold = the_hold(world, call)
        assert isinstance(answered(world, hold.pk, Answer.APPROVE), Taken)
        assert made(world, call, an_outcome(End.ANSWERED)).state == CallState.SUCCEEDED
        continued(world, job)
    assert see(world, Job, job).run_number == 3


def test_a_rehearsal_continues_with_the_input_that_it_names() -> None:
    world = a_world()
    look = RehearsalCall("shop", "look", {"from": "{{ input.after }}"})
    turn_by_turn = (
        RehearsalTurn("", (look,)),
        RehearsalTurn("One page.", (), {"after": "{{ last }}"}),
        RehearsalTurn("", (look,)),
        RehearsalTurn("It says: {{ results.0 }}"),
    )
    spec = AgentSpec(
        "clerk", model="rehearsal", functions=("shop.*",), input={"after": "0", "size": 2}, rehearsal=turn_by_turn
    )
    with db.write(world.tenant):
        Agent.objects.update(definition=as_json(spec))
    job = a_job(world)

    def turn() -> TurnOrder:
        order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
        assert order is not None
        assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=models.ask(order))
        return order

    def call(text: str) -> Call:
        with db.read(world.tenant):
            queued = Call.objects.get(job_id=job, state=CallState.QUEUED)
        made(world, queued.pk, an_outcome(End.ANSWERED, text=text))
        return queued

    turn()
    assert call("p-7").arguments == {"from": "0"}
    turn()
    assert dict(turn().given) == {"after": "p-7", "size": 2}
    assert call("p-9").arguments == {"from": "p-7"}
    turn()
    row = see(world, Job, job)
    assert (row.state, row.output, row.calls_made) == (JobState.COMPLETED, "It says: p-9", 2)
    assert trace.job_input(world.tenant, job) == {"after": "0", "size": 2}


def test_its_page_shows_one_run_at_a_time_and_leads_to_the_others() -> None:
    world = a_world()
    job = a_continued_job(world)
    a_turn(world, job, "export")
    client = visitor(world)
    newest = text_of(client.get(job_url(job)))
    assert "Trace of run 2 of 2" in newest
    assert "shop.export" in newest
    assert "shop.note" not in newest
    earlier = text_of(client.get(job_url(job, "?run=1")))
    assert "Trace of run 1 of 2" in earlier
    assert "shop.note" in earlier
    assert "shop.export" not in earlier
    with db.read(world.tenant):
        note = Call.objects.get(job_id=job, function_name="note")
    opened = text_of(client.get(job_url(job, f"?call={ids.show(ids.CALL, note.pk)}")))
    assert "Trace of run 1 of 2" in opened
    assert client.get(job_url(job, "?run=3")).status_code == 404


def test_a_turn_that_wants_calls_makes_them_and_does_not_continue() -> None:
    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    both = TurnAnswer(say="", wanted=(Wanted("shop__look", {}),), continues={})
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=both)
    row = see(world, Job, job)
    assert (row.run_number, row.calls_made) == (0, 1)
