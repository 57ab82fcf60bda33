"""Routines: each due time exactly once, whoever's node looks, and whatever was away (RULES G1, L7, A10)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from approvals.operations import deciding_rules
from approvals.operations.decide import MayNot, decide
from base import db
from catalog.models import Scope
from jobs.models import Event, Hold, Job, Routine, RoutineRun, Starter
from jobs.operations import cancel, intake, routines
from jobs.operations.routines import BadRoutine, Wanted
from jobs.rules.starters import Missed, Overlap, Ran, Standing
from jobs.rules.states import JobState
from tenants.models import AuditEntry, Membership, Role, User
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_person, a_switch, a_turn, a_world, see
from tests.builders import swept as swept_of_all
from tests.operations.test_deciding import ADMIN, person
from tests.races import Side

pytestmark = pytest.mark.usefixtures("database")

type Clock = Callable[[timedelta], None]
HOURLY = Wanted("nightly", "clerk", "0 * * * *", "UTC")


def swept() -> int:
    """One sweep by a node that loses no other, whatever the clock does."""
    return swept_of_all(lose_nodes=False)


def a_routine(world: World, person: int | None = None, **more: Any) -> UUID:
    """A routine of the world's agent, every hour unless something else is said."""
    wanted = {"name": "nightly", "agent": "clerk", "cron": "0 * * * *", "zone": "UTC", **more}
    who = person or world.person
    return routines.make(tenant=world.tenant, wanted=Wanted(**wanted), person=who, actor=Actor("pat", "test", who))


def due_now(world: World, routine: UUID, move_clock: Clock, late: timedelta = timedelta(seconds=1)) -> datetime:
    """Move the clock to just after the routine's due time, or further; returns that due time."""
    due = see(world, Routine, routine).due_at
    assert due is not None
    with db.read(world.tenant) as now:
        move_clock(due - now + late)
    return due


def runs(world: World, routine: UUID) -> list[tuple[str, datetime, int]]:
    with db.read(world.tenant):
        rows = RoutineRun.objects.filter(routine=routine).order_by("due_at")
        return [(row.came, row.due_at, row.skipped) for row in rows]


def jobs_of(world: World, routine: UUID) -> list[Job]:
    with db.read(world.tenant):
        return list(Job.objects.filter(routine=routine).order_by("pk"))


def ended(world: World, job: Job) -> None:
    cancel.cancel_job(tenant=world.tenant, job_id=job.pk, by=SYSTEM)


@pytest.mark.rule("G1")
def test_a_routine_starts_its_agent_when_it_is_due_as_its_persons_and_waits_for_the_next_time(
    move_clock: Clock,
) -> None:
    world = a_world()
    routine = a_routine(world, title="Sums of the night")
    assert swept() == 0
    due = due_now(world, routine, move_clock)
    assert swept() == 1
    (job,) = jobs_of(world, routine)
    assert (job.starter, job.started_by_id, job.title) == (Starter.ROUTINE, world.person, "Sums of the night")
    assert job.on_unknown == "fail"  # RULES U5: nobody is there to be asked
    assert runs(world, routine) == [(Ran.STARTED, due, 0)]
    assert see(world, Routine, routine).due_at == due + timedelta(hours=1)
    assert swept() == 0
    with db.read(world.tenant):
        started = Event.objects.get(job=job, kind="job.started")
    assert (started.data["starter"], started.data["routine"]) == ("routine", str(routine))


def test_two_nodes_that_look_at_the_same_moment_start_one_job(move_clock: Clock) -> None:
    world = a_world()
    routine = a_routine(world, overlap=Overlap.ALLOW)
    due = due_now(world, routine, move_clock)
    sides = [Side(lambda: routines.fire(tenant=world.tenant, routine=routine)) for _ in range(4)]
    for side in sides:
        side.start()
    assert sorted(side.join() for side in sides) == [0, 0, 0, 1]
    assert runs(world, routine) == [(Ran.STARTED, due, 0)]
    assert len(jobs_of(world, routine)) == 1


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        (Missed.SKIP, [(Ran.MISSED, 72, 72)]),
        (Missed.ONCE, [(Ran.STARTED, 72, 72)]),
        (Missed.ALL, [(Ran.STARTED, at, 49 if at == 49 else 0) for at in range(49, 73)]),
    ],
)
def test_three_days_without_a_node_are_caught_up_with_as_it_says(
    missed: Missed, expected: list[tuple[Ran, int, int]], move_clock: Clock
) -> None:
    world = a_world()
    routine = a_routine(world, missed=missed, overlap=Overlap.ALLOW)
    first = due_now(world, routine, move_clock, timedelta(days=3, minutes=20))
    swept()
    found = [(came, int((at - first) / timedelta(hours=1)), skipped) for came, at, skipped in runs(world, routine)]
    assert found == expected
    assert swept() == 0
    assert see(world, Routine, routine).due_at == first + timedelta(hours=73)


def test_while_its_last_job_runs_a_due_time_is_skipped_and_told_unless_they_may_overlap(move_clock: Clock) -> None:
    world = a_world()
    alone, beside = a_routine(world), a_routine(world, name="beside", overlap=Overlap.ALLOW)
    for _ in range(2):
        due_now(world, alone, move_clock)
        swept()
    assert [came for came, _, _ in runs(world, alone)] == [Ran.STARTED, Ran.OVERLAPPED]
    assert [came for came, _, _ in runs(world, beside)] == [Ran.STARTED, Ran.STARTED]
    ended(world, jobs_of(world, alone)[0])
    due_now(world, alone, move_clock)
    swept()
    assert [came for came, _, _ in runs(world, alone)] == [Ran.STARTED, Ran.OVERLAPPED, Ran.STARTED]


@pytest.mark.rule("A10")
def test_its_jobs_count_as_those_of_whoever_saved_it_last_so_nobody_approves_what_they_wrote(
    move_clock: Clock,
) -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    routine = a_routine(world)
    actor = Actor("vic", "test", vic)
    routines.change(tenant=world.tenant, routine=routine, wanted=HOURLY, person=vic, actor=actor)
    due_now(world, routine, move_clock)
    swept()
    (job,) = jobs_of(world, routine)
    assert job.started_by_id == vic
    a_turn(world, job.pk, "refund")
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={}, no_self=True, by=ADMIN)
    with db.read(world.tenant):
        hold = Hold.objects.get(job=job).pk
    with pytest.raises(MayNot, match="You started this job"):
        decide(tenant=world.tenant, hold_id=hold, person=person(vic, Role.OPERATOR), answer="approve", note="")
    decide(tenant=world.tenant, hold_id=hold, person=person(world.person), answer="approve", note="")
    with db.read(world.tenant):
        assert AuditEntry.objects.get(verb="hold.approve").before["started_by"] == "routine nightly, for vic"


@pytest.mark.rule("A12")
@pytest.mark.parametrize("how", ["left", "viewer", "account off"])
def test_when_its_person_has_left_or_may_start_nothing_it_stops_itself_and_says_so(how: str, move_clock: Clock) -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    routine = a_routine(world, vic)
    with db.write(world.tenant):
        mine = Membership.objects.filter(user_id=vic)
        if how == "left":
            mine.delete()
        elif how == "viewer":
            mine.update(role=Role.VIEWER)
        else:
            User.objects.filter(pk=vic).update(is_active=False)
    due_now(world, routine, move_clock)
    swept()
    row = see(world, Routine, routine)
    assert (row.standing, row.due_at, jobs_of(world, routine)) == (Standing.STOPPED, None, [])
    assert "vic" in row.because
    with db.read(world.tenant):
        told = AuditEntry.objects.get(verb="routine.stopped")
    assert (told.actor, "vic" in told.note) == ("oz0", True)
    pat = Actor("pat", "test", world.person)
    with pytest.raises(BadRoutine, match="vic"):
        routines.turn(tenant=world.tenant, routine=routine, on=True, actor=pat)
    routines.change(tenant=world.tenant, routine=routine, wanted=HOURLY, person=world.person, actor=pat)
    assert see(world, Routine, routine).standing == Standing.ON


@pytest.mark.rule("L7")
def test_under_a_kill_switch_a_due_time_is_refused_and_told_and_the_next_one_runs_when_it_is_lifted(
    move_clock: Clock,
) -> None:
    world = a_world()
    routine = a_routine(world)
    switch = a_switch(world, Scope.AGENT, "clerk")
    due_now(world, routine, move_clock)
    swept()
    with db.read(world.tenant):
        assert "kill switch" in RoutineRun.objects.get().detail
    assert jobs_of(world, routine) == []
    from jobs.operations import switches

    switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM)
    due_now(world, routine, move_clock)
    swept()
    assert [came for came, _, _ in runs(world, routine)] == [Ran.REFUSED, Ran.STARTED]


def test_a_paused_one_does_not_run_nor_catch_up_and_a_removed_one_is_gone(move_clock: Clock) -> None:
    world = a_world()
    routine = a_routine(world)
    pat = Actor("pat", "test", world.person)
    routines.turn(tenant=world.tenant, routine=routine, on=False, actor=pat)
    move_clock(timedelta(days=2))
    assert swept() == 0
    routines.turn(tenant=world.tenant, routine=routine, on=True, actor=pat)
    assert swept() == 0 and runs(world, routine) == []
    due_now(world, routine, move_clock)
    assert swept() == 1
    routines.remove(tenant=world.tenant, routine=routine, actor=pat)
    with pytest.raises(BadRoutine, match="no such"):
        routines.turn(tenant=world.tenant, routine=routine, on=True, actor=pat)
    assert a_routine(world) != routine  # its name is free again
    with db.read(world.tenant):
        verbs = list(AuditEntry.objects.filter(object="routine nightly").order_by("seq").values_list("verb", flat=True))
    assert verbs == ["routine.made", "routine.paused", "routine.resumed", "routine.removed", "routine.made"]


def test_run_now_is_the_persons_own_start_once_a_form_and_moves_no_due_time() -> None:
    world = a_world()
    routine = a_routine(world)
    due = see(world, Routine, routine).due_at
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    actor = Actor("vic", "test", vic)
    first, again = (
        routines.run_now(tenant=world.tenant, routine=routine, person=vic, once="form 1", actor=actor) for _ in "ab"
    )
    assert first == again
    (job,) = jobs_of(world, routine)
    assert (job.starter, job.started_by_id, job.on_unknown) == (Starter.PERSON, vic, "ask")
    assert see(world, Routine, routine).due_at == due
    assert [came for came, _, _ in runs(world, routine)] == [Ran.BY_HAND]
    a_switch(world, Scope.TENANT)
    with pytest.raises(intake.CannotStart, match="kill switch"):
        routines.run_now(tenant=world.tenant, routine=routine, person=vic, once="form 2", actor=actor)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("name", {"name": " "}),
        ("name", {"name": "nightly"}),
        ("cron", {"cron": "0 0 30 2 *"}),
        ("zone", {"zone": "Berlin"}),
        ("overlap", {"missed": Missed.ALL}),
        ("missed", {"missed": "twice"}),
    ],
)
def test_what_a_routine_cannot_be_is_said_beside_its_field(field: str, more: dict[str, str]) -> None:
    world = a_world()
    a_routine(world)
    with pytest.raises(BadRoutine) as refused:
        a_routine(world, **{"name": "another", **more})
    assert [name for name, _ in refused.value.troubles] == [field]


def test_an_input_that_its_agent_does_not_take_or_an_agent_that_is_not_there_is_refused_when_it_is_saved() -> None:
    world = a_world()
    with pytest.raises(BadRoutine, match="no input named 'month'"):
        a_routine(world, given={"month": 1})
    with pytest.raises(BadRoutine, match="no agent named"):
        a_routine(world, agent="nobody")
    viewer = a_person(world.tenant, "vera", Role.VIEWER)
    with pytest.raises(BadRoutine, match="viewer"):
        a_routine(world, viewer)


def test_one_that_cannot_be_started_for_an_error_of_ours_keeps_no_other_waiting(
    move_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_world()
    broken, whole = a_routine(world), a_routine(world, name="whole")
    real = intake.start_within

    def start(**more: Any) -> UUID:
        if more["routine"] == broken:
            raise RuntimeError("an error of ours")
        return real(**more)

    monkeypatch.setattr(intake, "start_within", start)
    due_now(world, whole, move_clock)
    swept()
    assert (len(runs(world, broken)), len(runs(world, whole))) == (0, 1)
    assert see(world, Routine, broken).due_at is not None
    assert see(world, Job, jobs_of(world, whole)[0].pk).state == JobState.QUEUED
