"""A due call is judged once more at its claim, in the claim's own transaction."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Scope, Tool, Transport
from jobs.models import Attempt, Call, Hold
from jobs.operations import nodes, work
from jobs.operations.holds import Answer
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldKind
from jobs.rules.why import Why
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_node,
    a_policy,
    a_retrying_call,
    a_rule,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    answered,
    made,
    see,
    settle,
    swept,
    the_hold,
)
from tests.races import Side

pytestmark = pytest.mark.usefixtures("database")


def claim(world: World, call: object) -> object:
    """What a claim of the call hands out."""
    return work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())  # type: ignore[arg-type]


@pytest.mark.rule("L4")
@pytest.mark.rule("L5")
def test_a_claim_opens_one_attempt_with_its_limits_and_a_second_claim_gets_nothing() -> None:
    """CASES R03."""
    world = a_world(timeout=10)
    call = a_call(world, "note")
    order = an_order(world, call)
    assert claim(world, call) is None
    attempt = see(world, Attempt, order.attempt_id)
    assert (order.own_limit, order.timeout) == (9, 10)
    assert attempt.limit_at - attempt.started_at == timedelta(seconds=10)
    assert (order.number, see(world, Call, call).attempts_made) == (1, 1)


@pytest.mark.rule("L5")
def test_calls_of_one_moment_are_each_claimed_once_by_nodes_that_start_among_them() -> None:
    """CASES R07: nobody adopts what another has claimed, however alike their times are."""
    world = a_world()
    calls = a_turn(world, a_job(world), *["look"] * 12)
    with db.read(world.tenant):
        assert Call.objects.values("created_at", "due_at").distinct().count() == 1

    def starts_and_takes_what_is_due() -> list[UUID]:
        young = a_node("young")
        swept(lose_nodes=False)
        claims = [
            work.start(tenant=world.tenant, call_id=call, node_id=young, attempt_id=ids.new())
            for _, call in due.work(calls=20).calls
        ]
        return [order.call_id for order in claims if order is not None]

    nodes_ = [Side(starts_and_takes_what_is_due).start() for _ in range(3)]
    assert sorted(call for node in nodes_ for call in node.join()) == sorted(calls)
    with db.read(world.tenant):
        assert Attempt.objects.count() == len(calls)


def test_a_sandboxed_tool_makes_one_call_of_a_job_at_a_time_on_whatever_node() -> None:
    world = a_world()
    with db.write(world.tenant):
        Tool.objects.update(transport=Transport.SANDBOX, sandbox={})
    first, second = a_turn(world, a_job(world), "look", "look")
    others = a_call(world, "look")
    order = an_order(world, first)
    assert order.server.job == order.job_id
    assert work.start(tenant=world.tenant, call_id=second, node_id=a_node("two"), attempt_id=ids.new()) is None
    assert due.work(calls=9).calls == [(world.tenant, others)]
    assert due.work(calls=9, taken=[(order.server.tool_id, see(world, Call, others).job_id)]).calls == []
    assert claim(world, others) is not None  # another job's server is another one
    settle(world, order, an_outcome(End.ANSWERED))
    assert due.work(calls=9).calls == [(world.tenant, second)]
    assert claim(world, second) is not None


def test_a_claim_before_the_call_is_due_gets_nothing(move_clock: Callable[[timedelta], None]) -> None:
    """CASES R02."""
    world = a_world()
    call = a_retrying_call(world, "look", an_outcome(End.BUSY, retry_after=40.0))
    assert claim(world, call) is None
    move_clock(timedelta(seconds=41))
    assert claim(world, call) is not None


@pytest.mark.rule("L11")
def test_a_node_that_drains_or_is_gone_claims_nothing(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    call = a_call(world)
    lost, drained = a_node("lost"), a_node("drained")
    nodes.drain(node_id=drained)
    move_clock(timedelta(seconds=11))
    assert nodes.lose(node_id=lost)
    for node in (lost, drained):
        order = work.start(tenant=world.tenant, call_id=call, node_id=node, attempt_id=ids.new())
        assert order is None
    assert see(world, Call, call).state == CallState.QUEUED


@pytest.mark.rule("B6")
def test_a_queued_call_is_refused_when_the_policy_refuses_it_by_the_time_it_is_claimed() -> None:
    world = a_world()
    call = a_call(world, "note")
    a_policy(world, a_rule("stop", "refuse", function="note"))
    assert claim(world, call) is None
    row = see(world, Call, call)
    assert (row.state, row.reason, row.attempts_made) == (CallState.REFUSED, Why.POLICY_REFUSES, 0)


@pytest.mark.rule("B6")
def test_a_queued_call_is_held_when_the_policy_asks_by_the_time_it_is_claimed() -> None:
    world = a_world()
    call = a_call(world, "note")
    a_policy(world, a_rule("careful", "ask", function="note"))
    assert claim(world, call) is None
    assert see(world, Call, call).state == CallState.HELD
    assert the_hold(world, call).kind == HoldKind.APPROVE


@pytest.mark.rule("B6")
def test_a_further_attempt_that_the_policy_asks_about_is_held_as_a_retry_and_covered_once_approved(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    call = a_retrying_call(world)
    a_policy(world, a_rule("careful", "ask", function="look"))
    move_clock(timedelta(seconds=2))
    assert claim(world, call) is None
    hold = the_hold(world, call)
    assert hold.kind == HoldKind.RETRY
    answered(world, hold.pk, Answer.APPROVE)
    assert made(world, call, an_outcome(End.BROKEN)).state == CallState.RETRYING
    move_clock(timedelta(seconds=10))
    assert made(world, call, an_outcome(End.ANSWERED)).state == CallState.SUCCEEDED


@pytest.mark.rule("B6")
def test_a_further_attempt_that_the_policy_refuses_ends_the_call_by_what_it_may_have_done(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    read, keyed = a_retrying_call(world, "look"), a_retrying_call(world, "charge")
    a_policy(world, a_rule("stop", "refuse", tool="shop"))
    move_clock(timedelta(seconds=2))
    assert claim(world, read) is None
    assert claim(world, keyed) is None
    assert see(world, Call, read).state == CallState.FAILED
    assert see(world, Call, keyed).state == CallState.UNKNOWN
    assert the_hold(world, keyed).kind == HoldKind.UNKNOWN


@pytest.mark.rule("A4")
def test_an_approval_covers_the_call_it_was_given_for_and_no_other() -> None:
    """CASES A05."""
    world = a_world()
    one, other = a_turn(world, a_job(world), ("refund", {"of": 1}), ("refund", {"of": 1}))
    answered(world, the_hold(world, one).pk, Answer.APPROVE)
    assert claim(world, other) is None
    assert see(world, Call, other).state == CallState.HELD
    assert made(world, one, an_outcome(End.ANSWERED)).state == CallState.SUCCEEDED


@pytest.mark.rule("A4")
def test_an_approval_does_not_cover_a_call_just_like_it_that_the_same_rule_comes_to_ask_about() -> None:
    """CASES A01, A31."""
    world = a_world()
    asks = a_rule("refunds", "ask", function="refund")
    a_policy(world, asks)
    approved, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    a_policy(world, a_rule("refunds", "allow", function="refund"))
    other = a_call(world, "refund")
    a_policy(world, asks)
    assert claim(world, other) is None
    assert see(world, Call, other).state == CallState.HELD
    assert claim(world, approved) is not None


@pytest.mark.rule("A4")
def test_an_edit_of_the_rule_that_asked_voids_the_approval_and_asks_again() -> None:
    world = a_world()
    a_policy(world, a_rule("refunds", "ask", function="refund"))
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    a_policy(world, a_rule("refunds", "ask", function="refund", title="refunds, now of two people"))
    assert claim(world, call) is None
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.HELD, Why.POLICY_ASKS_AGAIN)
    answered(world, the_hold(world, call).pk, Answer.APPROVE)
    assert claim(world, call) is not None


@pytest.mark.rule("A4")
def test_an_edit_elsewhere_in_the_policy_leaves_an_approval_as_it_is() -> None:
    """CASES A09: an unrelated edit changes nothing."""
    world = a_world()
    a_policy(world, a_rule("refunds", "ask", function="refund"))
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    a_policy(world, a_rule("other", "refuse", function="export"), a_rule("refunds", "ask", function="refund"))
    assert claim(world, call) is not None


@pytest.mark.rule("A4")
def test_another_rule_that_asks_is_asked_about_anew() -> None:
    """CASES A09."""
    world = a_world()
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    a_policy(world, a_rule("by-amount", "ask", function="refund"))
    assert claim(world, call) is None
    assert the_hold(world, call).rule_id == "by-amount"


@pytest.mark.rule("A4")
@pytest.mark.rule("A11")
def test_a_rule_that_refuses_beats_an_approval_and_says_so() -> None:
    """CASES A09."""
    world = a_world()
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    a_policy(world, a_rule("never", "refuse", function="refund"))
    assert claim(world, call) is None
    row = see(world, Call, call)
    assert (row.state, row.rule_id) == (CallState.REFUSED, "never")
    assert "never" in row.detail


@pytest.mark.rule("L7")
def test_a_switch_that_came_after_an_approval_stops_the_call_at_its_claim() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    answered(world, hold, Answer.APPROVE)
    with db.read(world.tenant):
        assert Hold.objects.get(pk=hold).approves
    a_switch(world, Scope.FUNCTION, "shop.refund")
    assert claim(world, call) is None
    assert see(world, Call, call).reason == Why.KILL_SWITCH


def test_a_server_that_would_not_start_three_times_fails_the_call_and_a_good_start_in_between_counts_anew(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    plain, read = a_call(world, "note"), a_call(world, "look")

    def fails(call: object) -> Call:
        move_clock(timedelta(seconds=100))
        nodes.beat(node_id=world.node, servers=[])
        work.opening_failed(tenant=world.tenant, call_id=call, why="exit 1", jitter=0.5)  # type: ignore[arg-type]
        return see(world, Call, call)  # type: ignore[arg-type]

    assert fails(plain).state == CallState.QUEUED
    assert (fails(plain).openings_failed, see(world, Call, plain).detail) == (2, "exit 1")
    failed = fails(plain)
    assert (failed.state, failed.reason, failed.attempts_made) == (CallState.FAILED, Why.WOULD_NOT_START, 0)
    fails(read)
    fails(read)
    move_clock(timedelta(seconds=100))
    assert made(world, read, an_outcome(End.BROKEN)).openings_failed == 0
    assert fails(read).state == CallState.RETRYING


@pytest.mark.rule("B5")
def test_due_calls_are_found_fairly_between_tenants_and_waiting_ones_not_at_all(
    move_clock: Callable[[timedelta], None],
) -> None:
    busy, quiet = a_world("busy"), a_world("quiet")
    for _ in range(3):
        a_call(busy, "note")
    waiting = a_retrying_call(quiet, "look", an_outcome(End.BUSY, retry_after=40.0))
    found = due.work(calls=10).calls
    assert [tenant for tenant, _ in found] == [busy.tenant] * 3
    move_clock(timedelta(seconds=41))
    assert (quiet.tenant, waiting) in due.work(calls=2).calls
