"""The broker dies with calls waiting: all move, only not as soon; once it is back, empty, they move soon again."""

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from statistics import median
from uuid import UUID

import pytest
import redis

from base import db
from jobs import wake
from jobs.models import Turn
from jobs.rules.states import CallState, JobState
from studio.celery import QUEUES
from tests.faults.stand import PATIENCE, Services
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
TRIED = 6  # jobs whose wait for their first turn is measured


@pytest.fixture(autouse=True)
def _put_right(stand: Services) -> Iterator[None]:
    """What a test left running or dead is nothing that the next one finds."""
    yield
    stand.kill_nodes()
    if stand.broker.ask() is not None:
        stand.broker.start()


def waits(stand: Services, begin: Callable[[], UUID]) -> list[float]:
    """How long each of some jobs waited for its first turn, one after the other, by the database's clock."""
    found = []
    for _ in range(TRIED):
        job = begin()
        stand.until_over(job)
        assert stand.job(job).state == JobState.COMPLETED
        with db.read(stand.tenant):
            turn = Turn.objects.get(job_id=job, number=1)
        found.append((turn.asked_at - stand.job(job).created_at) / timedelta(seconds=1))
    return found


def left(broker: redis.Redis) -> int:
    """How many messages nobody has fetched."""
    return sum(broker.llen(queue) for queue in QUEUES)


def test_fifty_waiting_calls_move_without_the_broker_and_soon_again_when_it_is_back_empty(stand: Services) -> None:
    """CASES R02, R03."""
    stand.drill()
    node = stand.node()
    stand.until_listed()
    fifty = stand.start("fifty")
    until(lambda: len(stand.holds(fifty)) == 50, "the fifty calls were never held", PATIENCE)
    stand.broker.kill()
    for hold in stand.holds(fifty):
        stand.answer(hold, "approve")
    stand.until_over(fifty)
    assert [(call.state, call.attempts_made) for call in stand.calls(fifty)] == [(CallState.SUCCEEDED, 1)] * 50
    by_the_pulse = waits(stand, lambda: stand.start("one-charge"))

    stand.broker.start()
    with redis.Redis.from_url(stand.broker.url) as broker:
        assert broker.info("persistence")["rdb_last_load_keys_loaded"] == 0, "it came back with something in it"
        until(lambda: node.said("Connected to") == 2, "the node never found the broker again", PATIENCE)
        by_message = waits(stand, lambda: stand.start("one-charge"))
        published = broker.info("commandstats")["cmdstat_lpush"]["calls"]
        assert published >= TRIED, "messages were not sent again"
        until(lambda: left(broker) == 0, "messages were not received again")
        for _ in range(3):  # late and doubled messages, of what is over and of what is not
            for call in stand.calls(fifty):
                wake.call(tenant=stand.tenant, call_id=call.pk)
            wake.turn(tenant=stand.tenant, job_id=fifty)
        until(lambda: left(broker) == 0, "messages stayed in the broker")
    print(f"waited for a turn: {median(by_the_pulse):.3f} s by the pulse, {median(by_message):.3f} s by message")
    assert median(by_message) < median(by_the_pulse)
    assert max(call.attempts_made for call in stand.calls(fifty)) == 1


def test_without_a_pulse_that_claims_nothing_moves_while_the_broker_is_dead(stand: Services) -> None:
    """The control of the drill above: what moves the calls is the pulse."""
    stand.broker.kill()
    node = stand.node(without="claim")
    job = stand.start("one-charge")
    began = node.row.heartbeat_at
    until(lambda: node.row.heartbeat_at - began > timedelta(seconds=2.5), "the node's pulse stands still")
    assert stand.job(job).state == JobState.QUEUED
    node.kill()
    stand.node()
    stand.until_over(job)
    assert stand.job(job).state == JobState.COMPLETED


@pytest.mark.rule("L11")
def test_a_node_that_looks_for_its_broker_still_stops_in_order(stand: Services) -> None:
    node = stand.fresh_node().ready()
    until(lambda: node.said("Connected to"), "the node never found the broker", PATIENCE)
    stand.broker.kill()
    until(lambda: node.said("Cannot connect to"), "the node never missed the broker", PATIENCE)
    node.ask(signal.SIGTERM)
    assert node.ended(20) == 0
    assert node.row.state == "gone"
