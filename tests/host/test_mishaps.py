"""What a host does when its own work is cut: nothing is forgotten, told twice or tried without end."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection

from base import db
from jobs.models import Attempt, Event, Job, Node, Turn
from jobs.operations import nodes, turns, work
from jobs.rules.orders import End, Result
from jobs.rules.states import JobState, NodeState, TurnState
from jobs.tasks.host import Host
from tests.builders import a_call, a_job, a_world, an_order, an_outcome, see, settle
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("database")


@contextmanager
def running() -> Iterator[Host]:
    """A running node."""
    node = Host(name="here")
    node.start()
    try:
        yield node
    finally:
        node.stop(grace=0)
        connection.close()


def unseen(act: Any, times: int) -> Any:
    """The act, whose first commits are made and not seen: the connection breaks in between."""
    left = [times]

    def acts(*given: Any, **words: Any) -> Any:
        found = act(*given, **words)
        left[0] -= 1
        if left[0] >= 0:
            raise OperationalError("the connection broke")
        return found

    return acts


@pytest.mark.rule("G2")
def test_a_turn_whose_claim_was_committed_unseen_is_asked_at_once_and_not_after_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    monkeypatch.setattr(turns, "start", unseen(turns.start, 1))
    job = a_job(world)

    def over() -> bool:
        with db.read(world.tenant):
            return Job.objects.get(pk=job).state == JobState.FAILED  # its rehearsal has no turn

    with running():
        until(over, "nobody was asked")
    with db.read(world.tenant):
        (turn,) = Turn.objects.filter(job_id=job)
    assert (turn.number, turn.asked, turn.state) == (1, 2, TurnState.FAILED)


def test_a_turn_that_was_not_claimed_or_is_another_nodes_is_not_given_back() -> None:
    world = a_world()
    job = a_job(world)
    assert not turns.give_back(tenant=world.tenant, job_id=job, node_id=world.node)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    assert not turns.give_back(tenant=world.tenant, job_id=job, node_id=UUID(int=1))
    assert see(world, Turn, order.turn_id).state == TurnState.ASKED


@pytest.mark.rule("L9")
def test_an_outcome_that_was_committed_unseen_is_no_late_reply_to_itself() -> None:
    world = a_world()
    order = an_order(world, a_call(world, "look"))
    host = Host(name="here")
    settled = unseen(lambda: settle(world, order, an_outcome(End.ANSWERED)), 1)
    assert host.until_committed(settled) is False
    assert see(world, Attempt, order.attempt_id).late is None
    with db.read(world.tenant):
        assert not Event.objects.filter(job_id=order.job_id, kind="attempt.late").exists()


@pytest.mark.rule("L9")
def test_a_reply_after_the_sweep_has_closed_its_attempt_is_kept_as_evidence() -> None:
    """The control of the test above."""
    world = a_world()
    order = an_order(world, a_call(world, "look"))
    settle(world, order, an_outcome(End.LOST))
    settle(world, order, an_outcome(End.ANSWERED))
    late = see(world, Attempt, order.attempt_id).late
    assert late is not None and late["text"] == "ok"


@pytest.mark.rule("L9")
def test_a_late_reply_that_comes_while_the_database_is_away_is_kept_once_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "look"))
    settle(world, order, an_outcome(End.LOST))
    monkeypatch.setattr(work, "tenant_of_attempt", unseen(work.tenant_of_attempt, 3))
    Host(name="here")._keep_late(order.attempt_id, Result(text="late", is_error=False))
    late = see(world, Attempt, order.attempt_id).late
    assert late is not None and late["text"] == "late"


def test_work_that_fails_by_an_error_of_ours_is_tried_again_with_the_pulse_and_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    a_call(world, "look")
    tries = []

    def fails(**_: Any) -> None:
        tries.append(1)
        raise RuntimeError("a bug")

    monkeypatch.setattr(work, "server_needed", fails)
    with running() as host:
        row = Node.objects.filter(pk=host.node_id)
        began = row.get().heartbeat_at
        until(lambda: row.get().heartbeat_at - began > timedelta(seconds=2.5), "the pulse stands still")
        assert 1 <= len(tries) <= 6


def test_a_host_told_to_stop_while_the_database_is_away_ends_its_attempts_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host(name="here")
    host.start()
    stopped = []
    shutdown, drain = host.node.shutdown, nodes.drain

    def noted(grace: float) -> None:
        stopped.append(grace)
        shutdown(grace)

    def away_until_then(*, node_id: UUID) -> None:
        if not stopped:
            raise OperationalError("nobody there")
        drain(node_id=node_id)

    monkeypatch.setattr(host.node, "shutdown", noted)
    monkeypatch.setattr(nodes, "drain", away_until_then)
    host.stop(grace=0)
    assert Node.objects.get(pk=host.node_id).state == NodeState.GONE
    connection.close()


@pytest.mark.rule("L11")
def test_a_host_that_is_declared_lost_while_it_stops_registers_anew_and_leaves_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host(name="here")
    host.start()
    first, shutdown = host.node_id, host.node.shutdown

    def lost_meanwhile(grace: float) -> None:
        shutdown(grace)
        until(lambda: Node.objects.get(pk=first).state == NodeState.DRAINING, "it never drained")
        Node.objects.filter(pk=first).update(state=NodeState.LOST, ended_at=Node.objects.get(pk=first).heartbeat_at)
        until(lambda: host.node_id != first, "it never registered anew")

    monkeypatch.setattr(host.node, "shutdown", lost_meanwhile)
    host.stop(grace=0)
    assert Node.objects.get(pk=host.node_id).state == NodeState.GONE
    connection.close()
