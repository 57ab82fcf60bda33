"""Two people, or a person and something else, at one question at once, each on a connection of its own.

`make test` runs a sample; `make races RACES=2000` runs that many of the first kind, half of them and a quarter of them
of the others, and tells the figures. Afterwards every question is looked at: closed exactly once, by one of those who
answered, the loser told of the winner; and no attempt without a decision, or after a cancel, or against the policy.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from approvals.models import Decision
from approvals.operations import deciding_rules
from approvals.operations.decide import Counted, Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from base.prepared import Table
from catalog.operations import policies
from jobs.models import Attempt, Call, Event, Hold, Job
from jobs.operations import cancel, moves, work
from jobs.operations.holds import Closed
from jobs.queries import locks, tables
from jobs.rules.states import CallState, HoldState, JobState
from tenants.models import Role
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_held_call, a_job, a_person, a_rule, a_turn, a_world, an_order, see
from tests.races import PATIENCE, Pause, Side, told

pytestmark = pytest.mark.usefixtures("database")

RACES = int(os.environ.get("RACES", "24"))
OF_ONE_JOB = 25  # calls that wait in one job
LONG = max(300, RACES)  # seconds; at length they take minutes
ASKS = a_rule("refunds", "ask", function="refund")
REFUSES = a_rule("refunds", "refuse", function="refund")


@dataclass
class Pair:
    """Two threads that act on one thing after the other, each time together; what each got is kept."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def race(self, things: list[Any]) -> list[tuple[Any, Any]]:
        """Let both act on each of these; the pairs of what came of it. An error of either is raised."""
        together = threading.Barrier(2)
        sides = [Side(lambda act=act: self._run(act, things, together)).start() for act in (self.first, self.second)]
        for side in sides:
            assert side.ended.wait(LONG), "a race did not end"
        results = [side.join() for side in sides]
        return list(zip(*results, strict=True))

    def _run(self, act: Callable[[Any], Any], things: list[Any], together: threading.Barrier) -> list[Any]:
        found = []
        for thing in things:
            together.wait(PATIENCE)
            found.append(act(thing))
        return found


def someone(world: World, name: str) -> Person:
    """One of two operators."""
    user = a_person(world.tenant, name, Role.OPERATOR)
    return Person(Decider(user, "operator"), Actor(name, "test", user))


def says(world: World, who: Person, answer: str) -> Callable[[UUID], Any]:
    """What this person does with a question."""
    return lambda hold: decide(tenant=world.tenant, hold_id=hold, person=who, answer=answer, note="because")


def held_calls(world: World, count: int) -> list[UUID]:
    """The questions of so many calls that wait, many of them in one job."""
    calls: list[UUID] = []
    while len(calls) < count:
        calls += a_turn(world, a_job(world), *["refund"] * min(OF_ONE_JOB, count - len(calls)))
    with db.read(world.tenant):
        by_call = dict(Hold.objects.filter(call_id__in=calls).values_list("call_id", "pk"))
    return [by_call[call] for call in calls]


def troubles(world: World) -> list[str]:
    """What is wrong with any question or attempt of the tenant; nothing when all holds."""
    with db.read(world.tenant):
        rows = {row.pk: row for row in Hold.objects.select_related("call")}
        decisions = Counter(Decision.objects.values_list("hold_id", flat=True))
        closings = Counter(Event.objects.filter(kind="hold.closed").values_list("data__hold", flat=True))
        moved = Counter(
            Event.objects.filter(kind="call.moved", data__frm=CallState.HELD).values_list("call", flat=True)
        )
        unapproved = Attempt.objects.exclude(call__holds__approves__gt="").values_list("call_id", flat=True)
        found = [f"call {call} was attempted, and nobody approved it" for call in unapproved]
    for pk, hold in rows.items():
        closed = closings[str(pk)]
        if closed != (hold.state != HoldState.OPEN):
            found.append(f"hold {pk} is {hold.state} and was closed {closed} times")
        if decisions[pk] != (hold.state == HoldState.ANSWERED):
            found.append(f"hold {pk} is {hold.state} with {decisions[pk]} decisions")
        if hold.state == HoldState.ANSWERED and moved[hold.call_id] != 1:
            found.append(f"call {hold.call_id} left its hold {moved[hold.call_id]} times")
    return found


@pytest.mark.rule("A6")
@pytest.mark.timeout(LONG)
def test_of_two_people_who_answer_at_once_exactly_one_decides_and_the_other_reads_who() -> None:
    """CASES A10."""
    world = a_world()
    ann, bob = someone(world, "ann"), someone(world, "bob")
    asked = held_calls(world, RACES)
    pairs = Pair(says(world, ann, "approve"), says(world, bob, "deny")).race(asked)
    won: Counter[str] = Counter()
    for hold, (approved, denied) in zip(asked, pairs, strict=True):
        lost = [one for one in (approved, denied) if isinstance(one, Closed)]
        assert len(lost) == 1, (hold, approved, denied)
        winner, answer = (bob, "deny") if lost[0] is approved else (ann, "approve")
        assert (lost[0].answer, lost[0].by) == (answer, winner.decider.user_id) and lost[0].at is not None
        won[f"won by {answer}"] += 1
    told("two people", won)
    assert troubles(world) == []
    with db.read(world.tenant):
        assert Call.objects.filter(state=CallState.QUEUED).count() == won["won by approve"]
        assert Call.objects.filter(state=CallState.REFUSED).count() == won["won by deny"]


@pytest.mark.rule("A6")
@pytest.mark.rule("L3")
@pytest.mark.timeout(LONG)
def test_between_an_approval_and_a_cancel_whichever_commits_first_wins_and_nothing_starts_after_a_cancel() -> None:
    """CASES A21."""
    world = a_world()
    ann = someone(world, "ann")
    asked = [a_held_call(world) for _ in range(max(4, RACES // 2))]
    approve = says(world, ann, "approve")

    def approve_and_claim(pair: tuple[UUID, UUID]) -> Any:
        call, hold = pair
        ended = approve(hold)
        order = work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())
        return ended, order

    def stop(pair: tuple[UUID, UUID]) -> Any:
        with db.read(world.tenant):
            job = Call.objects.get(pk=pair[0]).job_id
        return cancel.cancel_job(tenant=world.tenant, job_id=job, by=SYSTEM)

    pairs = Pair(approve_and_claim, stop).race(asked)
    won: Counter[str] = Counter()
    for (call, hold), ((approved, order), _) in zip(asked, pairs, strict=True):
        row, question = see(world, Call, call), see(world, Hold, hold)
        with db.read(world.tenant):
            journal = list(Event.objects.filter(job_id=row.job_id).order_by("seq").values_list("kind", "data"))
            attempt = Attempt.objects.filter(call_id=call).first()
        stopped_at = next(at for at, (kind, data) in enumerate(journal) if data.get("to") == JobState.CANCELLING)
        started = [at for at, (kind, _) in enumerate(journal) if kind == "attempt.started"]
        assert all(at < stopped_at for at in started), journal
        if attempt is not None:
            won["approved, and being made when the cancel came"] += 1
            assert order is not None and attempt.stop_requested_at is not None
            assert row.state == CallState.CANCELLING
        else:
            won["cancelled first" if isinstance(approved, Closed) else "approved, and cancelled before it began"] += 1
            assert row.state == CallState.CANCELED
            assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
        if isinstance(approved, Closed):
            assert (approved.state, question.state) == (HoldState.WITHDRAWN, HoldState.WITHDRAWN)
    told("approve and cancel", won)
    assert troubles(world) == []


@pytest.mark.rule("A4")
@pytest.mark.rule("B6")
@pytest.mark.timeout(LONG)
def test_no_call_starts_against_a_policy_that_was_changed_while_it_was_approved() -> None:
    """CASES A09."""
    world = a_world()
    ann = someone(world, "ann")
    admin = Actor("pat", "test", world.person)
    number = policies.save(tenant=world.tenant, rules=[ASKS], seen=0, note="begin", by=admin)
    approve = says(world, ann, "approve")
    won: Counter[str] = Counter()
    for _ in range(max(4, RACES // 4)):
        call, hold = a_held_call(world)

        def approve_and_claim(_: Any, call: UUID = call, hold: UUID = hold) -> Any:
            approve(hold)
            return work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())

        def refuse(_: Any, seen: int = number) -> int:
            return policies.save(tenant=world.tenant, rules=[REFUSES], seen=seen, note="no more", by=admin)

        ((order, number),) = Pair(approve_and_claim, refuse).race([None])
        row = see(world, Call, call)
        if order is not None:
            won["began by the policy before"] += 1
            assert row.policy_number < number, (row.policy_number, number)
        else:
            won["refused by the new policy"] += 1
            work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())
            row = see(world, Call, call)
            assert (row.state, row.policy_number) == (CallState.REFUSED, number)
        number = policies.save(tenant=world.tenant, rules=[ASKS], seen=number, note="again", by=admin)
    told("approve and policy change", won)
    assert troubles(world) == []


@pytest.mark.rule("A10")
@pytest.mark.timeout(LONG)
def test_two_of_two_who_approve_at_once_are_counted_once_each() -> None:
    world = a_world()
    rules_save(world, {"destructive": 2})
    ann, bob = someone(world, "ann"), someone(world, "bob")
    asked = held_calls(world, max(4, RACES // 4))
    pairs = Pair(says(world, ann, "approve"), says(world, bob, "approve")).race(asked)
    for pair in pairs:
        assert sorted(isinstance(one, Counted) for one in pair) == [False, True], pair
    with db.read(world.tenant):
        assert set(Hold.objects.values_list("state", flat=True)) == {HoldState.ANSWERED}
        assert set(Counter(Decision.objects.values_list("hold_id", flat=True)).values()) == {2}


def rules_save(world: World, approvers: dict[str, int]) -> None:
    """So many people must approve."""
    deciding_rules.save(tenant=world.tenant, roles={}, approvers=approvers, no_self=False, by=SYSTEM)


def test_the_check_sees_two_closings_and_an_attempt_without_a_decision() -> None:
    world = a_world()
    (hold,) = held_calls(world, 1)
    says(world, someone(world, "ann"), "approve")(hold)
    assert troubles(world) == []
    bob = someone(world, "bob")
    with db.write(world.tenant) as now:
        Decision.objects.create(
            tenant_id=world.tenant, hold_id=hold, person_id=bob.decider.user_id, answer="deny", channel="page", at=now
        )
    assert troubles(world) == [f"hold {hold} is answered with 2 decisions"]
    call = see(world, Hold, hold).call_id
    an_order(world, call)
    with db.write(world.tenant):
        Hold.objects.update(approves="")
    assert f"call {call} was attempted, and nobody approved it" in troubles(world)


@pytest.mark.rule("A6")
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "guards taken away"])
def test_without_its_locks_and_its_guard_a_question_closes_twice(
    monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_world()
    (hold,) = held_calls(world, 1)
    ann, bob = someone(world, "ann"), someone(world, "bob")
    if not guarded:
        for name, table in (("job", tables.JOBS), ("call", tables.CALLS), ("hold", tables.HOLDS)):
            monkeypatch.setattr(locks, name, lambda key, table=table: table.get(key))
        real = Table.update
        monkeypatch.setattr(Table, "update", lambda self, key, fields, *_: real(self, key, fields))
        for one in [hold, *held_calls(world, 9)]:  # now and then the number of an event stops one of the two
            both = Pause(monkeypatch, moves, "hold", holds=2)  # each has seen the question open
            sides = [
                Side(lambda who=who, say=say, one=one: says(world, who, say)(one)).start()
                for who, say in _two(ann, bob)
            ]
            both.reached(2)
            both.go()
            for side in sides:
                side.ended.wait(PATIENCE)
        assert troubles(world) != []
        return
    sides = [Side(lambda who=who, say=say: says(world, who, say)(hold)).start() for who, say in _two(ann, bob)]
    for side in sides:
        side.join()
    assert troubles(world) == []
    assert see(world, Job, see(world, Hold, hold).job_id).state in (JobState.RUNNING, JobState.WAITING)


def _two(ann: Person, bob: Person) -> list[tuple[Person, str]]:
    return [(ann, "approve"), (bob, "deny")]
