"""What nobody else ends: lost nodes, overdue attempts and turns, limits, jobs that stand still."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db, ids
from catalog.models import Scope
from jobs.models import Attempt, Call, Event, Job, Node, Turn
from jobs.operations import judging, nodes, sweep, switches, turns, work
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from jobs.rules.states import AttemptState, CallState, JobState, NodeState, TurnState
from jobs.rules.turns import TurnAnswer
from tests.builders import (
    World,
    a_call,
    a_job,
    a_node,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    made,
    see,
    settle,
    swept,
    the_job,
)
from tests.races import Side

pytestmark = pytest.mark.usefixtures("database")

type Clock = Callable[[timedelta], None]


def node_state(node: object) -> str:
    """Where a node stands."""
    return Node.objects.get(pk=node).state  # type: ignore[misc]


@pytest.mark.rule("L8")
def test_a_node_is_lost_after_ten_silent_seconds_and_one_that_spoke_meanwhile_is_not(move_clock: Clock) -> None:
    silent, speaks = a_node("silent"), a_node("speaks")
    move_clock(timedelta(seconds=4))
    swept()
    assert node_state(silent) == NodeState.ALIVE
    move_clock(timedelta(seconds=7))
    nodes.beat(node_id=speaks, servers=[])
    assert not nodes.lose(node_id=speaks)
    swept()
    assert (node_state(silent), node_state(speaks)) == (NodeState.LOST, NodeState.ALIVE)
    with pytest.raises(nodes.NodeGone):
        nodes.beat(node_id=silent, servers=[])


@pytest.mark.rule("L8")
def test_a_sweeper_that_was_away_itself_declares_nobody_lost(move_clock: Clock) -> None:
    silent = a_node("silent")
    move_clock(timedelta(minutes=5))
    swept(lose_nodes=False)
    assert node_state(silent) == NodeState.ALIVE


@pytest.mark.rule("L5")
@pytest.mark.rule("L8")
def test_a_lost_nodes_attempts_end_only_when_their_full_timeout_has_passed_on_the_databases_clock(
    move_clock: Clock,
) -> None:
    world = a_world(timeout=60)
    read, plain = an_order(world, a_call(world, "look")), an_order(world, a_call(world, "note"))
    move_clock(timedelta(seconds=45))
    swept()
    assert node_state(world.node) == NodeState.LOST
    other = a_node("n2")
    for order in (read, plain):
        assert see(world, Attempt, order.attempt_id).state == AttemptState.OPEN
        assert see(world, Call, order.call_id).state == CallState.RUNNING
    assert work.start(tenant=world.tenant, call_id=read.call_id, node_id=other, attempt_id=ids.new()) is None
    move_clock(timedelta(seconds=16))
    swept()
    for order in (read, plain):
        attempt = see(world, Attempt, order.attempt_id)
        assert (attempt.state, attempt.reason) == (AttemptState.LOST, Reason.NODE_LOST)
        assert attempt.ended_at is not None and attempt.ended_at > attempt.limit_at
    assert see(world, Call, read.call_id).state == CallState.RETRYING
    assert see(world, Call, plain.call_id).state == CallState.UNKNOWN


@pytest.mark.rule("L5")
@pytest.mark.rule("L8")
def test_nodes_that_start_beside_a_living_one_make_no_second_attempt_of_what_it_is_making(move_clock: Clock) -> None:
    """CASES R09: a call is its node's for as long as that says that it lives."""
    world = a_world(timeout=60)
    order = an_order(world, a_call(world, "look"))
    for number in range(4):
        move_clock(timedelta(seconds=9))
        nodes.beat(node_id=world.node, servers=[])
        young = a_node(f"young {number}")
        swept()
        assert due.work(calls=5).calls == []
        assert work.start(tenant=world.tenant, call_id=order.call_id, node_id=young, attempt_id=ids.new()) is None
    assert settle(world, order, an_outcome(End.ANSWERED))
    row = see(world, Call, order.call_id)
    assert (row.state, row.attempts_made) == (CallState.SUCCEEDED, 1)


@pytest.mark.rule("L8")
@pytest.mark.rule("U4")
def test_an_overdue_attempt_of_a_living_node_is_closed_after_a_grace_and_the_node_is_not_blamed(
    move_clock: Clock,
) -> None:
    world = a_world(timeout=60)
    order = an_order(world, a_call(world, "note"))
    move_clock(timedelta(seconds=60))
    nodes.beat(node_id=world.node, servers=[])
    assert swept() == 0
    move_clock(timedelta(seconds=6))
    nodes.beat(node_id=world.node, servers=[])
    assert swept() == 1
    attempt = see(world, Attempt, order.attempt_id)
    assert (attempt.state, attempt.reason) == (AttemptState.LOST, Reason.TIME_LIMIT)
    assert see(world, Call, order.call_id).detail == "It ran past its time limit."
    assert node_state(world.node) == NodeState.ALIVE


@pytest.mark.rule("L8")
def test_five_sweepers_that_find_the_same_dead_attempt_close_it_once(move_clock: Clock) -> None:
    """CASES L14."""
    world = a_world()
    for attempts in (1, 2, 3):
        call = a_call(world, "look")
        for _ in range(attempts - 1):
            made(world, call, an_outcome(End.BUSY, retry_after=0.0))
            move_clock(timedelta(seconds=2))
        order = an_order(world, call)
        move_clock(timedelta(seconds=66))
        nodes.beat(node_id=world.node, servers=[])
        five = [Side(lambda o=order: sweep._close(world.tenant, o.attempt_id, 0.5)).start() for _ in range(5)]
        assert sorted(side.join() for side in five) == [False] * 4 + [True]
        row = see(world, Call, call)
        assert (row.state, row.attempts_made) == (CallState.RETRYING, attempts)
        with db.read(world.tenant):
            ended = Event.objects.filter(call=call, kind="attempt.ended")
            assert [event.data["number"] for event in ended.order_by("seq")] == list(range(1, attempts + 1))
        move_clock(timedelta(seconds=10))


@pytest.mark.rule("L8")
def test_of_five_whole_sweeps_at_once_the_work_is_done_once(move_clock: Clock) -> None:
    """CASES L14."""
    world = a_world()
    orders = [an_order(world, a_call(world, "look")) for _ in range(3)]
    move_clock(timedelta(seconds=90))
    five = [Side(swept).start() for _ in range(5)]
    assert sum(side.join() for side in five) + swept() == 4  # the node and its three attempts
    for order in orders:
        assert see(world, Call, order.call_id).attempts_made == 1
        assert see(world, Call, order.call_id).state == CallState.RETRYING


@pytest.mark.rule("G2")
def test_a_turn_lost_with_its_node_is_asked_again_under_the_same_number_and_its_late_answer_changes_nothing(
    move_clock: Clock,
) -> None:
    world = a_world()
    job = a_job(world)
    first = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert first is not None
    move_clock(timedelta(seconds=11))
    swept()
    assert see(world, Turn, first.turn_id).state == TurnState.LOST
    second = turns.start(tenant=world.tenant, job_id=job, node_id=a_node("n2"))
    assert second is not None
    assert (second.turn_id, second.number, second.asked) == (first.turn_id, 1, 2)
    late = TurnAnswer(say="too late")
    assert not turns.settle(tenant=world.tenant, turn_id=first.turn_id, asked=first.asked, outcome=late)
    assert see(world, Job, job).state == JobState.RUNNING
    assert turns.settle(tenant=world.tenant, turn_id=second.turn_id, asked=2, outcome=TurnAnswer(say="in time"))
    assert see(world, Job, job).output == "in time"
    with db.read(world.tenant):
        assert Turn.objects.filter(job_id=job).count() == 1


@pytest.mark.rule("G2")
def test_a_turn_past_its_limit_is_asked_again_also_when_its_node_lives(move_clock: Clock) -> None:
    world = a_world()
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    move_clock(timedelta(seconds=601))
    nodes.beat(node_id=world.node, servers=[])
    swept()
    again = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert again is not None and again.asked == 2


@pytest.mark.rule("L8")
def test_a_running_job_with_nothing_open_is_found_and_asked_its_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    call = a_call(world, "look")
    with monkeypatch.context() as patch:
        patch.setattr(judging, "judge", lambda job_id: None)  # what a defect of judging would leave behind
        made(world, call, an_outcome(End.ANSWERED))
    assert the_job(world, call).turn_due_at is None
    assert swept(lose_nodes=False) == 1
    assert the_job(world, call).turn_due_at is not None
    assert swept(lose_nodes=False) == 0
    a_turn(world, the_job(world, call).pk, say="On we go.")


@pytest.mark.rule("L2")
def test_a_cancelling_job_with_nothing_open_is_found_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.builders import cancelled

    world = a_world()
    order = an_order(world, a_call(world, "note"))
    cancelled(world, order.job_id)
    with monkeypatch.context() as patch:
        patch.setattr(judging, "judge", lambda job_id: None)
        settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Job, order.job_id).state == JobState.CANCELLING
    swept()
    assert see(world, Job, order.job_id).state == JobState.CANCELED


@pytest.mark.rule("L8")
def test_one_row_that_cannot_be_ended_keeps_no_other_waiting(
    move_clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when there are more of its kind than one sweep looks at: it is left alone for a minute."""
    world: World = a_world()
    poisoned, other = an_order(world, a_call(world, "look")), an_order(world, a_call(world, "look"))
    really, now = work.settle, [1000.0]
    sweeper = sweep.Sweeper(clock=lambda: now[0])

    def swept() -> int:
        return sweeper.sweep(dice=lambda: 0.5)

    def settle_all_but_one(**named: object) -> bool:
        if named["attempt_id"] == poisoned.attempt_id:
            raise ValueError("a defect of ours")
        return really(**named)  # type: ignore[arg-type]

    move_clock(timedelta(seconds=90))
    monkeypatch.setattr(work, "settle", settle_all_but_one)
    monkeypatch.setattr(sweep, "BATCH", 1)
    swept()
    assert "could not end" in caplog.text
    assert see(world, Attempt, other.attempt_id).state == AttemptState.OPEN
    swept()
    assert see(world, Attempt, other.attempt_id).state == AttemptState.LOST
    assert see(world, Attempt, poisoned.attempt_id).state == AttemptState.OPEN
    monkeypatch.undo()
    swept()
    assert see(world, Attempt, poisoned.attempt_id).state == AttemptState.OPEN
    now[0] += sweep.PUT_OFF
    swept()
    assert see(world, Attempt, poisoned.attempt_id).state == AttemptState.LOST


@pytest.mark.rule("L8")
def test_a_sweep_that_has_done_enough_leaves_the_rest_to_the_next(move_clock: Clock) -> None:
    world = a_world()
    orders = [an_order(world, a_call(world, "look")) for _ in range(3)]
    move_clock(timedelta(seconds=90))
    looks = iter([False, False, False, True])  # before switches, attempts, the first and the second of them
    assert sweep.Sweeper().sweep(dice=lambda: 0.5, enough=lambda: next(looks, True), lose_nodes=False) == 1
    assert swept() == 3  # the node and the two attempts left
    assert all(see(world, Call, order.call_id).state == CallState.RETRYING for order in orders)


@pytest.mark.rule("L7")
def test_a_switch_over_many_jobs_is_applied_a_few_at_a_time_and_to_all_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    calls = [a_call(world, "look") for _ in range(3)]
    with monkeypatch.context() as cut_short:
        cut_short.setattr(switches, "apply", lambda **_: 0)
        a_switch(world, Scope.TOOL, "shop")
    looks = iter([False, False, False, True])  # before the switches, this one, its first and its second job
    assert sweep.Sweeper().sweep(dice=lambda: 0.5, enough=lambda: next(looks, True), lose_nodes=False) == 1
    assert swept(lose_nodes=False) == 2
    assert {see(world, Call, call).state for call in calls} == {CallState.CANCELED}


@pytest.mark.rule("L7")
def test_a_switch_that_could_not_be_applied_is_tried_again_with_the_next_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    call = a_call(world, "look")
    sweeper = sweep.Sweeper()

    def fails(**_: object) -> int:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(switches, "apply", lambda **_: 0)
        a_switch(world, Scope.TOOL, "shop")
        broken.setattr(switches, "apply", fails)
        sweeper.sweep(dice=lambda: 0.5)
    assert see(world, Call, call).state == CallState.QUEUED
    sweeper.sweep(dice=lambda: 0.5)
    assert see(world, Call, call).state == CallState.CANCELED
