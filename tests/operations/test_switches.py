"""Kill switches: nothing starts after the commit, on whatever path; what runs is stopped, and that is a known end."""

from uuid import UUID

import psycopg
import pytest

from base import db, ids
from catalog.models import KillSwitch, Scope
from jobs.models import Attempt, Call, Hold, Job
from jobs.operations import switches, work
from jobs.operations.holds import Answer, BadAnswer
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect, HoldState, JobState
from jobs.rules.why import Why
from studio.embedded import Postgres
from tenants.rules.who import SYSTEM
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_retrying_call,
    a_switch,
    a_tool,
    a_turn,
    a_world,
    an_agent,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
    swept,
    the_job,
    told,
)

pytestmark = pytest.mark.usefixtures("database")

SCOPES = [
    (Scope.TENANT, ""),
    (Scope.AGENT, "clerk"),
    (Scope.TOOL, "shop"),
    (Scope.FUNCTION, "shop.note"),
]
OF_JOBS = SCOPES[:2]
OF_CALLS = SCOPES[2:]


def by_plain_sql(database: Postgres, world: World, scope: Scope, target: str) -> None:
    """The switch, turned on by a line of SQL and by nothing of ours."""
    with psycopg.connect(database.url_app) as sql:
        sql.execute("SELECT set_config('oz0.tenant', %s, true)", [str(world.tenant)])
        sql.execute(
            "INSERT INTO catalog_killswitch (id, tenant_id, scope, target, reason, on_at) "
            "VALUES (gen_random_uuid(), %s, %s, %s, 'by hand', oz0_now())",
            [world.tenant, scope, target],
        )


def claim(world: World, call: UUID) -> object:
    """What a claim of the call hands out."""
    return work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())


# --- what runs ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("L7")
@pytest.mark.rule("U8")
@pytest.mark.parametrize(("scope", "target"), SCOPES)
def test_a_running_call_is_stopped_and_ends_canceled_by_the_switch_however_it_ends(scope: Scope, target: str) -> None:
    world = a_world()
    ends = [End.ANSWERED, End.STOPPED, End.TIMED_OUT, End.BUSY, End.NOT_MADE]
    calls = a_turn(world, a_job(world), *["note"] * len(ends))
    orders = [an_order(world, call) for call in calls]
    a_switch(world, scope, target)
    for order, end in zip(orders, ends, strict=True):
        attempt = see(world, Attempt, order.attempt_id)
        assert attempt.stop_requested_at is not None
        assert attempt.stop_reason == Reason.STOPPED_SWITCH
        assert see(world, Call, order.call_id).state == CallState.CANCELLING
        settle(world, order, an_outcome(end, text="the answer that came"))
        row = see(world, Call, order.call_id)
        assert (row.state, row.reason) == (CallState.CANCELED, Why.KILL_SWITCH)
        assert ("may have acted" in told(world, row.pk)) is (end not in (End.BUSY, End.NOT_MADE))
        if end is End.ANSWERED:
            assert (row.effect, row.result_text) == (Effect.MADE, "the answer that came")
    with db.read(world.tenant):
        assert not Hold.objects.exists()


@pytest.mark.rule("L7")
@pytest.mark.parametrize(("scope", "target"), OF_CALLS)
def test_a_tools_or_functions_switch_ends_waits_withdraws_holds_and_lets_the_job_go_on(
    scope: Scope, target: str
) -> None:
    world = a_world()
    note, look = a_turn(world, a_job(world), "note", "look")
    waits = a_retrying_call(world, "look") if scope is Scope.TOOL else note
    held = a_held_call(world, "refund") if scope is Scope.TOOL else None
    a_switch(world, scope, target)
    assert see(world, Call, note).reason == Why.KILL_SWITCH
    assert see(world, Call, waits).state == CallState.CANCELED
    if held is not None:
        assert see(world, Hold, held[1]).state == HoldState.WITHDRAWN
        assert see(world, Call, held[0]).state == CallState.CANCELED
    assert see(world, Call, look).state == (CallState.CANCELED if scope is Scope.TOOL else CallState.QUEUED)
    assert the_job(world, note).state == JobState.RUNNING
    assert "kill switch" in told(world, note)


@pytest.mark.rule("L7")
@pytest.mark.parametrize(("scope", "target"), OF_JOBS)
def test_an_agents_or_tenants_switch_cancels_its_jobs_wherever_they_stand(scope: Scope, target: str) -> None:
    world = a_world()
    queued = a_job(world)
    held, _ = a_held_call(world)
    unknown, _ = an_unknown_call(world)
    running = an_order(world, a_call(world, "look"))
    a_switch(world, scope, target)
    for job in (see(world, Job, queued), the_job(world, held), the_job(world, unknown)):
        assert (job.state, job.reason, job.detail) == (JobState.CANCELED, Why.KILL_SWITCH, "an incident")
    assert see(world, Job, running.job_id).state == JobState.CANCELLING
    settle(world, running, an_outcome(End.STOPPED))
    assert see(world, Job, running.job_id).state == JobState.CANCELED


@pytest.mark.rule("L7")
def test_another_tools_agents_or_tenants_work_is_left_alone() -> None:
    world, other = a_world("one"), a_world("two")
    mine, theirs = an_order(world, a_call(world)), an_order(other, a_call(other))
    a_tool(world.tenant, slug="warehouse")
    an_agent(world.tenant, "night-clerk")
    a_switch(world, Scope.TOOL, "warehouse")
    a_switch(world, Scope.AGENT, "night-clerk")
    a_switch(world, Scope.FUNCTION, "shop.refund")
    a_switch(other, Scope.TENANT)
    assert see(world, Call, mine.call_id).state == CallState.RUNNING
    assert see(other, Call, theirs.call_id).state == CallState.CANCELLING


def test_whether_a_write_happened_is_still_asked_under_a_tools_switch_but_it_is_not_run_again() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    a_switch(world, Scope.TOOL, "shop")
    with pytest.raises(BadAnswer, match="kill switch"):
        answered(world, hold, Answer.AGAIN)
    answered(world, hold, Answer.HAPPENED)
    assert see(world, Call, call).state == CallState.HAPPENED


# --- by plain SQL ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("L7")
def test_fifty_queued_calls_and_a_switch_by_plain_sql_none_of_them_starts(database: Postgres) -> None:
    """CASES L17."""
    world = a_world()
    calls = a_turn(world, a_job(world), *["note"] * 50)
    by_plain_sql(database, world, Scope.TOOL, "shop")
    assert len(due.work(calls=100).calls) == 50
    assert [claim(world, call) for call in calls] == [None] * 50
    with db.read(world.tenant):
        assert not Attempt.objects.exists()
        assert set(Call.objects.values_list("state", "reason")) == {(CallState.CANCELED, Why.KILL_SWITCH)}


@pytest.mark.rule("L7")
@pytest.mark.parametrize(("scope", "target"), SCOPES)
def test_the_sweep_stops_what_runs_under_a_switch_by_plain_sql(database: Postgres, scope: Scope, target: str) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "note"))
    by_plain_sql(database, world, scope, target)
    swept()
    assert see(world, Attempt, order.attempt_id).stop_reason == Reason.STOPPED_SWITCH
    assert swept(lose_nodes=False) == 0
    settle(world, order, an_outcome(End.ANSWERED))
    assert see(world, Call, order.call_id).reason == Why.KILL_SWITCH


@pytest.mark.rule("L7")
def test_between_two_calls_of_one_job_the_second_is_refused() -> None:
    """CASES L19, of a model that is asked turn by turn."""
    world = a_world()
    job = a_job(world)
    (first,) = a_turn(world, job, "note")
    made(world, first, an_outcome(End.ANSWERED))
    a_switch(world, Scope.FUNCTION, "shop.note")
    (second,) = a_turn(world, job, "note")
    assert see(world, Call, second).state == CallState.REFUSED


# --- on and off -----------------------------------------------------------------------------------------------------


def test_a_switch_turned_off_lets_new_work_start_and_leaves_stopped_what_was_stopped() -> None:
    world = a_world()
    stopped = a_call(world, "note")
    switch = a_switch(world, Scope.TOOL, "shop")
    switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM)
    assert see(world, Call, stopped).state == CallState.CANCELED
    assert claim(world, a_call(world, "note")) is not None
    assert switches.apply(tenant=world.tenant, switch_id=switch) == 0
    with db.read(world.tenant):
        assert KillSwitch.objects.get(pk=switch).off_at is not None


@pytest.mark.parametrize(
    ("scope", "target", "why"),
    [(Scope.TENANT, "shop", "no target"), (Scope.TOOL, "", "names one"), (Scope.AGENT, "clerk", "on already")],
)
def test_a_switch_that_makes_no_sense_or_is_on_already_is_refused(scope: Scope, target: str, why: str) -> None:
    world = a_world()
    a_switch(world, Scope.AGENT, "clerk")
    with pytest.raises(switches.BadSwitch, match=why):
        a_switch(world, scope, target)


@pytest.mark.rule("L7")
@pytest.mark.parametrize(
    ("scope", "target"),
    [
        (Scope.TOOL, "shopp"),
        (Scope.TOOL, "shop.note"),
        (Scope.FUNCTION, "shop"),
        (Scope.FUNCTION, "shop.nothing"),
        (Scope.AGENT, "nobody"),
    ],
)
def test_a_switch_over_nothing_is_refused_by_name_instead_of_being_on_and_stopping_nothing(
    scope: Scope, target: str
) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "note"))
    with pytest.raises(switches.BadSwitch, match=target):
        a_switch(world, scope, target)
    assert see(world, Call, order.call_id).state == CallState.RUNNING
    with db.read(world.tenant):
        assert not KillSwitch.objects.exists()
