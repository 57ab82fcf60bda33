"""A person answers, through the one decision path."""

import pytest

from approvals.models import Decision
from approvals.operations.decide import MayNot, Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from catalog.models import Scope
from jobs.models import Call, Event, Job
from jobs.operations import switches
from jobs.operations.holds import Answer, BadAnswer, Closed, Taken
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState
from tenants.models import AuditEntry
from tenants.operations import audit
from tenants.rules.who import SYSTEM, Actor
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_person,
    a_switch,
    a_turn,
    a_world,
    an_outcome,
    an_unknown_call,
    cancelled,
    made,
    see,
    the_job,
)

pytestmark = pytest.mark.usefixtures("database")


ADMIN = Actor("the admin", "link, 127.0.0.1", None)


def person(user_id: int, role: str = "operator") -> Person:
    """A person as their session says."""
    return Person(Decider(user_id, role), Actor("pat", "link, 127.0.0.1", user_id))


def answer(world: World, hold: object, said: str, **more: str) -> Taken | Closed:
    """The answer of the world's own person."""
    return decide(tenant=world.tenant, hold_id=hold, person=person(world.person), answer=said, **more)  # type: ignore[arg-type]


@pytest.mark.rule("A6")
def test_the_first_answer_wins_and_the_second_reads_who_said_what_and_when() -> None:
    world = a_world()
    other = a_person(world.tenant, "sam")
    call, hold = a_held_call(world)
    assert answer(world, hold, "approve") == Taken(CallState.QUEUED)
    late = decide(tenant=world.tenant, hold_id=hold, person=person(other), answer="deny", note="no")
    assert isinstance(late, Closed)
    assert (late.answer, late.by) == (Answer.APPROVE, world.person)
    assert late.at is not None
    assert see(world, Call, call).state == CallState.QUEUED
    with db.read(world.tenant):
        assert Decision.objects.count() == 1


@pytest.mark.rule("A5")
@pytest.mark.parametrize("said", ["", "null", "false", "0", "approve ", "APPROVE", "yes", "happened"])
def test_an_odd_answer_moves_nothing(said: str) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    with pytest.raises(BadAnswer):
        answer(world, hold, said)
    assert see(world, Call, call).state == CallState.HELD


@pytest.mark.rule("A5")
def test_a_viewer_decides_nothing_but_may_say_what_happened_to_their_own_write() -> None:
    world = a_world()
    viewer = person(world.person, "viewer")
    _, held = a_held_call(world)
    with pytest.raises(MayNot, match="Operators decide"):
        decide(tenant=world.tenant, hold_id=held, person=viewer, answer="approve")
    call, unknown = an_unknown_call(world)
    with pytest.raises(MayNot):
        decide(tenant=world.tenant, hold_id=unknown, person=viewer, answer="again")
    decide(tenant=world.tenant, hold_id=unknown, person=viewer, answer="happened")
    assert see(world, Call, call).state == CallState.HAPPENED


@pytest.mark.rule("A12")
def test_every_decision_is_in_a_log_whose_hashes_hold_and_break_when_an_entry_changes(
    database: object, django_db_blocker: object
) -> None:
    """CASES A17."""
    import psycopg

    world = a_world()
    _, hold = a_held_call(world)
    answer(world, hold, "deny", note="not this month")
    call, unknown = an_unknown_call(world)
    answer(world, unknown, "happened", note="line 7")
    with db.read(world.tenant):
        entries = list(AuditEntry.objects.order_by("seq"))
    assert [entry.verb for entry in entries] == ["hold.deny", "hold.happened"]
    assert (entries[0].actor, entries[0].how, entries[0].note) == ("pat", "link, 127.0.0.1", "not this month")
    assert entries[0].after["shown"]
    assert audit.first_broken(world.tenant) is None
    with psycopg.connect(database.url_admin, autocommit=True) as admin:  # type: ignore[attr-defined]
        admin.execute("SET session_replication_role = replica")  # else a trigger refuses
        admin.execute("UPDATE tenants_auditentry SET note = 'forged' WHERE seq = 1")
    assert audit.first_broken(world.tenant) == 1


@pytest.mark.rule("A12")
@pytest.mark.rule("G1")
def test_a_cancel_and_a_switch_are_in_the_log_with_who_and_why_and_a_start_is_in_its_jobs_own_journal() -> None:
    world = a_world()
    job = the_job(world, a_call(world)).pk
    cancelled(world, job)
    switch = a_switch(world, Scope.TOOL, "shop", reason="writes twice")
    switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM)
    with db.read(world.tenant):
        log = list(AuditEntry.objects.order_by("seq").values_list("verb", "actor", "object", "note"))
        start = Event.objects.get(job_id=job, kind="job.started")
    assert log == [
        ("job.cancel", "pat", ids.show(ids.JOB, job), ""),
        ("switch.on", SYSTEM.name, "tool shop", "writes twice"),
        ("switch.off", SYSTEM.name, "tool shop", ""),
    ]
    assert (start.data["starter"], start.data["person"]) == ("person", world.person)


@pytest.mark.rule("A6")
@pytest.mark.rule("U6")
def test_each_answer_to_an_unknown_write_does_what_it_says() -> None:
    world = a_world()
    happened, first = an_unknown_call(world)
    again, second = an_unknown_call(world)
    stopped, third = an_unknown_call(world)
    answer(world, first, "happened", note="entry 12")
    answer(world, second, "again")
    answer(world, third, "stop")
    assert see(world, Call, happened).state == CallState.HAPPENED
    key = see(world, Call, again).key
    row = made(world, again, an_outcome(End.ANSWERED))
    assert (row.state, row.key, row.attempts_made) == (CallState.SUCCEEDED, key, 2)
    assert see(world, Call, stopped).state == CallState.CANCELED
    with db.read(world.tenant):
        assert Job.objects.get(calls=stopped).state == JobState.CANCELED
        job = Job.objects.get(calls=happened)
    assert job.state == JobState.RUNNING
    a_turn(world, job.pk, say="Noted.")
