"""A pause: nothing new starts on any path, what runs ends by itself, and lifted, all of it goes on (RULES L11)."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db
from catalog.models import KillSwitch
from catalog.rules.switching import Mode, Scope
from jobs.models import Attempt, Call, Event, Hold, Job, Turn
from jobs.operations import switches, turns
from jobs.operations.holds import Answer
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState, JobState, TurnState
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
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    cancelled,
    see,
    settle,
    swept,
    the_job,
)
from tests.operations.test_every_way_in import PATHS, nodes_still_alive
from tests.operations.test_switches import SCOPES, claim

pytestmark = pytest.mark.usefixtures("database")


def paused(world: World, scope: Scope = Scope.TENANT, target: str = "") -> UUID:
    """A pause, on."""
    return a_switch(world, scope, target, mode=Mode.PAUSE)


def lifted(world: World, switch: UUID) -> None:
    """The pause, lifted."""
    assert switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM) is not None


def under_way(world: World) -> tuple[int, int]:
    """(open attempts, models being asked)."""
    with db.read(world.tenant):
        asked = Turn.objects.filter(state=TurnState.ASKED).count()
        return Attempt.objects.filter(ended_at__isnull=True).count(), asked


@pytest.mark.rule("L11")
@pytest.mark.parametrize("path", [path for path in PATHS if path != "ask again"])  # which waits for a person first
def test_no_path_starts_work_while_the_tenant_is_paused_and_the_work_is_due_once_it_is_lifted(
    path: str, database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES L18."""
    world, free = a_world("stopped"), a_world("free")
    act, control = PATHS[path](world, move_clock), PATHS[path](free, move_clock)
    before = under_way(world)
    switch = paused(world)
    nodes_still_alive(world, free)
    act()
    assert control() is not None
    started = (after - was for after, was in zip(under_way(world), before, strict=True))
    assert max(started) <= 0
    assert world.tenant not in {tenant for tenant, _ in (*due.work(calls=50).calls, *due.work(turns=50).turns)}
    lifted(world, switch)
    assert world.tenant in {tenant for tenant, _ in (*due.work(calls=50).calls, *due.work(turns=50).turns)}


@pytest.mark.rule("L11")
@pytest.mark.parametrize(("scope", "target"), SCOPES)
def test_what_runs_ends_by_itself_and_what_waits_goes_on_afterwards(scope: Scope, target: str) -> None:
    world = a_world()
    running, waiting = an_order(world, a_call(world, "note")), a_call(world, "note")
    held, hold = a_held_call(world)
    switch = paused(world, scope, target)
    assert see(world, Attempt, running.attempt_id).stop_requested_at is None
    assert swept() == 0
    settle(world, running, an_outcome(End.ANSWERED))
    assert see(world, Call, running.call_id).state == CallState.SUCCEEDED
    assert claim(world, waiting) is None
    row = see(world, Call, waiting)
    assert (row.state, row.reason, row.attempts_made) == (CallState.QUEUED, Why.SUBMITTED, 0)
    assert see(world, Hold, hold).state == HoldState.OPEN
    assert the_job(world, held).state == JobState.WAITING
    lifted(world, switch)
    assert claim(world, waiting) is not None


@pytest.mark.rule("L11")
def test_a_pause_takes_no_place_of_what_may_start() -> None:
    world, other = a_world("one"), a_world("two")
    for _ in range(5):
        a_call(world, "note")
    a_job(world)
    paused(world)
    free = a_call(other, "note")
    turn = a_job(other)
    assert due.work(calls=1).calls == [(other.tenant, free)]
    assert due.work(turns=1).turns == [(other.tenant, turn)]


@pytest.mark.rule("L11")
@pytest.mark.parametrize(("scope", "target"), [(Scope.TOOL, "shop"), (Scope.FUNCTION, "shop.note")])
def test_a_tools_pause_keeps_neither_models_nor_other_tools_from_work(scope: Scope, target: str) -> None:
    world = a_world()
    job = a_job(world)
    paused(world, scope, target)
    note, look = a_turn(world, job, "note", "look")
    assert claim(world, note) is None
    assert (claim(world, look) is None) is (scope is Scope.TOOL)


@pytest.mark.rule("L11")
def test_questions_are_answered_under_a_pause_and_what_they_let_run_waits() -> None:
    world = a_world()
    held, approval = a_held_call(world)
    unknown, question = an_unknown_call(world)
    switch = paused(world, Scope.TOOL, "shop")
    answered(world, approval, Answer.APPROVE)
    answered(world, question, Answer.AGAIN)
    for call in (held, unknown):
        assert see(world, Call, call).state == CallState.QUEUED
        assert claim(world, call) is None
    lifted(world, switch)
    assert all(claim(world, call) is not None for call in (held, unknown))


@pytest.mark.rule("L3")
@pytest.mark.rule("L11")
def test_a_job_is_cancelled_under_a_pause_as_at_any_time(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    call = a_retrying_call(world, "look")
    paused(world)
    move_clock(timedelta(seconds=2))
    nodes_still_alive(world)
    assert claim(world, call) is None
    assert cancelled(world, the_job(world, call).pk) == JobState.CANCELED
    assert see(world, Call, call).state == CallState.CANCELED


@pytest.mark.rule("L7")
@pytest.mark.rule("L11")
@pytest.mark.parametrize("first", [Mode.PAUSE, Mode.KILL])
def test_where_both_are_on_the_kill_switch_counts_and_each_is_lifted_by_itself(first: Mode) -> None:
    world = a_world()
    call = a_call(world, "note")
    second = Mode.KILL if first is Mode.PAUSE else Mode.PAUSE
    on = {mode: a_switch(world, Scope.TOOL, "shop", mode=mode) for mode in (first, second)}
    assert see(world, Call, call).reason == Why.KILL_SWITCH
    (refused,) = a_turn(world, a_job(world), "note")
    assert see(world, Call, refused).state == CallState.REFUSED
    lifted(world, on[Mode.KILL])
    (waits,) = a_turn(world, a_job(world), "note")
    assert claim(world, waits) is None
    lifted(world, on[Mode.PAUSE])
    assert claim(world, waits) is not None


def test_what_a_switch_found_is_counted_in_the_transaction_that_turns_it_on() -> None:
    world = a_world()
    an_order(world, a_call(world, "note"))
    an_order(world, a_call(world, "look"))
    a_held_call(world)
    an_unknown_call(world)
    a_job(world)
    with db.read(world.tenant):
        events = Event.objects.count()
    switch = paused(world)
    with db.read(world.tenant):
        found = KillSwitch.objects.get(pk=switch).found
        assert Event.objects.count() == events  # a pause moves nothing
        assert Job.objects.count() == 5
    assert found == {"running": 2, "writing": 1, "stopping": 0, "waiting": 0, "held": 1, "unknown": 1, "jobs": 5}


def test_a_switch_lifted_twice_is_lifted_once() -> None:
    world = a_world()
    switch = paused(world)
    lifted(world, switch)
    assert switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM) is None


def test_a_paused_agents_turn_is_asked_once_it_is_lifted() -> None:
    world = a_world()
    job = a_job(world)
    switch = paused(world, Scope.AGENT, "clerk")
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is None
    lifted(world, switch)
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is not None
