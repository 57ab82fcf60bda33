"""Rates and repeats that the studio counts itself: right under concurrency, and judged before each attempt."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from catalog.rules.rates import Of, Rate
from jobs.models import Attempt, Call, Event, Job
from jobs.operations import holds, work
from jobs.queries import counts
from jobs.queries.standstill import Standstill
from jobs.rules.orders import End, Order
from jobs.rules.states import CallState, HoldKind
from jobs.rules.why import RATE_FULL
from tests.builders import (
    World,
    a_call,
    a_job,
    a_policy,
    a_retrying_call,
    a_rule,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    answered,
    made,
    see,
    settle,
    the_hold,
)
from tests.races import PATIENCE, Side

pytestmark = pytest.mark.usefixtures("database")

type Ahead = Callable[[timedelta], None]
MINUTE = {"calls": 2, "seconds": 60}


def claim(world: World, call: UUID) -> Order | None:
    """Try to begin an attempt of the call."""
    return work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())


def waiting(effect: str = "wait", name: str = "slowly", **more: Any) -> Mapping[str, Any]:
    """A rule on the tool's rate."""
    return a_rule(name, effect, tool="shop", **{"rate": MINUTE} | more)


def begun(world: World) -> list[datetime]:
    """When each attempt of the tenant began, in order."""
    with db.read(world.tenant):
        return sorted(Attempt.objects.values_list("started_at", flat=True))


@pytest.mark.rule("A2")
def test_over_a_rate_that_waits_a_call_stays_queued_until_there_is_room_and_says_why(move_clock: Ahead) -> None:
    world = a_world()
    a_policy(world, waiting(), a_rule("no", "refuse", function="export"))
    first, second, third = a_turn(world, a_job(world), "note", "look", "charge")
    settle(world, an_order(world, first), an_outcome(End.ANSWERED))
    an_order(world, second)
    assert claim(world, third) is None
    row = see(world, Call, third)
    assert (row.state, row.attempts_made) == (CallState.QUEUED, 0)
    assert row.due_at == begun(world)[0] + timedelta(seconds=60)
    assert row.detail == f"{RATE_FULL}rule “slowly”, 2 attempts of shop began within 60 s."
    with db.read(world.tenant) as now:
        said = [event.data["why"] for event in Event.objects.filter(call=third, kind="call.waits")]
        assert Standstill(Job.objects.get(pk=row.job_id), now).why(row) == row.detail
    assert said == ["rate"]
    move_clock(timedelta(seconds=61))
    assert claim(world, third) is not None


@pytest.mark.rule("B6")
def test_each_attempt_takes_from_the_rate_also_one_of_a_retry(move_clock: Ahead) -> None:
    world = a_world()
    retrying = a_retrying_call(world, "look")
    a_policy(world, waiting())
    an_order(world, a_call(world, "note"))  # the second attempt of this minute: the first was made before the rule
    move_clock(timedelta(seconds=30))
    assert claim(world, retrying) is None
    row = see(world, Call, retrying)
    assert (row.state, row.attempts_made) == (CallState.RETRYING, 1)
    move_clock(timedelta(seconds=31))
    assert claim(world, retrying) is not None


@pytest.mark.rule("A2")
@pytest.mark.parametrize(("effect", "state"), [("ask", CallState.HELD), ("refuse", CallState.REFUSED)])
def test_over_a_rate_that_asks_or_refuses_a_queued_call_is_held_or_refused_when_it_is_claimed(
    effect: str, state: CallState, move_clock: Ahead
) -> None:
    world = a_world()
    a_policy(world, waiting(effect, "many"))
    job = a_job(world)
    calls = a_turn(world, job, "note", "note", "note")
    assert [see(world, Call, call).state for call in calls] == [CallState.QUEUED] * 3
    an_order(world, calls[0])
    an_order(world, calls[1])
    assert claim(world, calls[2]) is None
    row = see(world, Call, calls[2])
    assert (row.state, row.rule_id) == (state, "many")
    if effect == "ask":
        hold = the_hold(world, calls[2])
        assert (hold.kind, "2 attempts of shop began within 60 s" in hold.why) == (HoldKind.APPROVE, True)
        answered(world, hold.pk, holds.Answer.APPROVE)
        an_order(world, calls[2])  # a person's approval stands over the rate
    late = a_world("late")
    a_policy(late, waiting(effect, "many"))
    for _ in range(2):
        an_order(late, a_call(late))
    assert see(late, Call, a_call(late)).state == state  # full when it is asked for


@pytest.mark.rule("A2")
def test_a_rate_is_of_one_tool_and_one_tenant_unless_it_is_of_the_whole_tenant() -> None:
    world, other = a_world(), a_world("other")
    for one in (world, other):
        a_policy(one, a_rule("each", "wait", rate={"calls": 1, "seconds": 60}))
    an_order(world, a_call(world))
    assert claim(world, a_call(world)) is None
    an_order(other, a_call(other))
    of_tool, of_all = Rate(Of.TOOL, 1, 60), Rate(Of.TENANT, 1, 60)
    with db.read(world.tenant) as now:
        assert list(counts.full([of_tool, of_all], "shop", now)) == [of_tool, of_all]
        assert list(counts.full([of_tool, of_all], "depot", now)) == [of_all]


@pytest.mark.rule("A2")
def test_a_call_that_a_person_must_approve_waits_for_both(move_clock: Ahead) -> None:
    world = a_world()
    a_policy(world, waiting(), a_rule("ask", "ask", function="note"))
    for name in ("look", "charge"):
        an_order(world, a_call(world, name))
    held = a_call(world, "note")
    answered(world, the_hold(world, held).pk, holds.Answer.APPROVE)
    assert claim(world, held) is None
    assert see(world, Call, held).state == CallState.QUEUED
    move_clock(timedelta(seconds=61))
    assert claim(world, held) is not None


def race(world: World, calls: list[UUID]) -> int:
    """Claim all of these calls at once; how many began."""
    sides = [Side(lambda call=call: claim(world, call)).start() for call in calls]
    return sum(side.join() is not None for side in sides)


@pytest.mark.rule("A2")
def test_claims_at_once_begin_no_more_attempts_than_the_rate_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    a_policy(world, waiting(rate={"calls": 3, "seconds": 60}))
    calls = [a_call(world) for _ in range(10)]
    assert race(world, calls) == 3
    assert len(begun(world)) == 3
    control = a_world("control")  # the same race without the lock, where all have counted before any goes on
    a_policy(control, waiting(rate={"calls": 3, "seconds": 60}))
    calls = [a_call(control) for _ in range(6)]
    monkeypatch.setattr(counts, "hold_rates", lambda rates, tool: None)
    counted, together = counts.full, threading.Barrier(len(calls))

    def counted_together(*given: Any) -> Any:
        found = counted(*given)
        together.wait(PATIENCE)
        return found

    monkeypatch.setattr(counts, "full", counted_together)
    assert race(control, calls) == 6


@pytest.mark.rule("A2")
def test_the_same_call_asked_for_again_and_again_in_one_job_asks_a_person() -> None:
    world = a_world()
    a_policy(world, a_rule("all", "allow", tool="shop"), a_rule("loop", "ask", repeated=3))
    job = a_job(world)
    calls = []
    for _ in range(3):
        calls += a_turn(world, job, ("note", {"text": "again", "n": 1}), ("note", {"text": "else", "n": len(calls)}))
        for call in calls[-2:]:
            if see(world, Call, call).state == CallState.QUEUED:
                made(world, call, an_outcome(End.ANSWERED))
    states = [see(world, Call, call).state for call in calls]
    assert states == [CallState.SUCCEEDED] * 4 + [CallState.HELD, CallState.SUCCEEDED]
    assert "the job asked for this same call 3 times" in the_hold(world, calls[4]).why
    answered(world, the_hold(world, calls[4]).pk, holds.Answer.APPROVE)
    an_order(world, calls[4])
    assert see(world, Call, a_call(world, "note", {"text": "again", "n": 1})).state == CallState.QUEUED  # another job
