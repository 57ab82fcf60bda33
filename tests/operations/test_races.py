"""The races of MACHINES 2, on two real connections. Each is run with its guard, and fails as described without it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection

from base import db, ids
from jobs.models import Attempt, Call, Job
from jobs.operations import bodies, cancel, judging, moves, sweep, work
from jobs.queries import locks
from jobs.rules.orders import End
from jobs.rules.states import AttemptState, CallState
from jobs.tasks.host import Host
from studio.embedded import Postgres
from tenants.rules.who import SYSTEM
from tests.builders import World, a_call, a_job, a_turn, a_world, an_order, an_outcome, see, settle
from tests.races import PATIENCE, Pause, Side, until_blocked_or_ended

GUARDED = [pytest.param(True, id="guarded"), pytest.param(False, id="guard taken away")]


@pytest.fixture
def admin(database: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection that sees who waits for whom."""
    with psycopg.connect(database.url_admin, autocommit=True) as connection_:
        yield connection_


def claim(world: World, call: UUID) -> Side:
    """A claim of the call, begun."""
    return Side(lambda: work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())).start()


@pytest.mark.rule("L3")
@pytest.mark.parametrize("guarded", GUARDED)
def test_a_cancel_never_misses_a_call_that_is_being_claimed(
    admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_world()
    job = a_job(world)
    (call,) = a_turn(world, job, "note")
    if not guarded:
        monkeypatch.setattr(locks, "job_shared", lambda job_id: Job.objects.get(pk=job_id))
    claimed = Pause(monkeypatch, bodies, "arguments_of")  # the attempt is open, its transaction is not committed
    claiming = claim(world, call)
    claimed.reached()
    cancelling = Side(lambda: cancel.cancel_job(tenant=world.tenant, job_id=job, by=SYSTEM)).start()
    until_blocked_or_ended(admin, cancelling)
    claimed.go()
    assert claiming.join() is not None
    cancelling.join()
    with db.read(world.tenant):
        attempt = Attempt.objects.get(call_id=call)
    asked_to_stop = attempt.stop_requested_at is not None
    assert asked_to_stop is guarded
    assert (see(world, Call, call).state == CallState.CANCELLING) is guarded


@pytest.mark.parametrize("guarded", GUARDED)
def test_two_claims_of_one_job_do_not_deadlock_over_its_event_numbers(
    admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_world()
    first, second = a_turn(world, a_job(world), "note", "note")
    if not guarded:
        numbered = locks.counter

        def on_the_job_row(job_id: UUID, events: int) -> int:
            locks.job(job_id)
            return numbered(job_id, events)

        monkeypatch.setattr(locks, "counter", on_the_job_row)
    at_the_counter = Pause(monkeypatch, locks, "counter", holds=2)
    sides = [claim(world, first), claim(world, second)]
    at_the_counter.reached(2)
    at_the_counter.go()
    for side in sides:
        side.ended.wait(20)
    deadlocked = [side.error for side in sides if isinstance(side.error, DatabaseError)]
    assert bool(deadlocked) is not guarded
    if guarded:
        assert all(side.result is not None for side in sides)
    else:
        assert "deadlock" in str(deadlocked[0])


@pytest.mark.rule("L7")
@pytest.mark.parametrize("guarded", GUARDED)
def test_no_call_starts_after_a_kill_switch_has_committed(
    admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_world()
    call = a_call(world, "note")
    if not guarded:
        monkeypatch.setattr(locks, "gate_shared", lambda: None)
    judged = Pause(monkeypatch, moves, "open_attempt")
    claiming = claim(world, call)
    judged.reached()
    switching = Side(lambda: switch_on_by_plain_sql(world.tenant)).start()
    blocked = until_blocked_or_ended(admin, switching)
    committed_first = not blocked
    judged.go()
    claiming.join()
    switching.join()
    started_after_the_switch = committed_first and see(world, Call, call).state == CallState.RUNNING
    assert started_after_the_switch is not guarded


def switch_on_by_plain_sql(tenant: UUID) -> None:
    """What an operator does at a database prompt."""
    with db.write(tenant), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO catalog_killswitch (id, tenant_id, scope, target, reason, on_at) "
            "VALUES (%s, %s, 'tool', 'shop', '', oz0_now())",
            [ids.new(), tenant],
        )


@pytest.mark.rule("G2")
@pytest.mark.parametrize("guarded", GUARDED)
def test_two_last_calls_of_a_turn_settle_together_and_the_next_turn_is_due(
    admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_world()
    job = a_job(world)
    first, second = [an_order(world, call) for call in a_turn(world, job, "note", "note")]
    monkeypatch.setattr(locks, "job", lambda job_id: Job.objects.get(pk=job_id))  # so that only the counter guards
    if not guarded:
        monkeypatch.setattr(locks, "counter", lambda job_id, events: numbers_without_a_lock(job_id, events))
    judged = Pause(monkeypatch, judging, "judge", after=True)
    one = Side(lambda: settle(world, first, an_outcome(End.ANSWERED))).start()
    judged.reached()
    other = Side(lambda: settle(world, second, an_outcome(End.ANSWERED))).start()
    until_blocked_or_ended(admin, other)
    judged.go()
    one.join()
    other.join()
    with db.read(world.tenant):
        assert (Job.objects.get(pk=job).turn_due_at is not None) is guarded


_unlocked_numbers = iter(range(1_000, 100_000))


def numbers_without_a_lock(job_id: UUID, events: int) -> int:
    """Event numbers from nowhere."""
    return [next(_unlocked_numbers) for _ in range(max(events, 1))][-1]


@pytest.mark.rule("L9")
@pytest.mark.parametrize("guarded", GUARDED)
def test_an_attempt_is_closed_once_when_its_node_settles_while_the_sweep_finds_it_overdue(
    admin: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    move_clock: Callable[[timedelta], None],
    guarded: bool,
) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "look"))
    move_clock(timedelta(seconds=order.timeout + 60))
    with db.write(world.tenant):
        pass  # the node lives: only its attempt is overdue
    if not guarded:
        monkeypatch.setattr(locks, "job", lambda job_id: Job.objects.get(pk=job_id))
        monkeypatch.setattr(locks, "call", lambda call_id: Call.objects.get(pk=call_id))
        monkeypatch.setattr(locks, "attempt", lambda attempt_id: Attempt.objects.get(pk=attempt_id))
        close = moves.close_attempt

        def close_without_looking(row: Attempt, outcome: Any, *, now: Any) -> bool:
            return close(row, outcome, now=now) or True

        monkeypatch.setattr(moves, "close_attempt", close_without_looking)
    closing = Pause(monkeypatch, moves, "close_attempt", holds=1 if guarded else 2)
    settling = Side(lambda: settle(world, order, an_outcome(End.ANSWERED))).start()
    closing.reached()
    sweeping = Side(lambda: sweep.Sweeper().sweep(dice=lambda: 0.5, lose_nodes=False)).start()
    if guarded:
        assert until_blocked_or_ended(admin, sweeping)
    else:
        closing.reached()
    closing.go()
    if guarded:
        assert settling.join()
        sweeping.join()
        assert see(world, Attempt, order.attempt_id).state == AttemptState.ANSWERED
        assert see(world, Call, order.call_id).state == CallState.SUCCEEDED
    else:
        assert settling.ended.wait(PATIENCE)
        with pytest.raises(moves.Conflict):  # in whichever of the two came second
            sweeping.join()
            settling.join()


@pytest.mark.rule("L8")
def test_the_sweep_closes_an_overdue_attempt_of_a_living_node_and_its_late_outcome_changes_nothing(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "note"))
    move_clock(timedelta(seconds=order.timeout + 4))  # past the limit, within the grace
    sweep.Sweeper().sweep(dice=lambda: 0.5, lose_nodes=False)
    assert see(world, Attempt, order.attempt_id).state == AttemptState.OPEN
    move_clock(timedelta(seconds=2))
    sweep.Sweeper().sweep(dice=lambda: 0.5, lose_nodes=False)
    assert see(world, Attempt, order.attempt_id).state == AttemptState.LOST
    assert see(world, Call, order.call_id).state == CallState.UNKNOWN
    assert not settle(world, order, an_outcome(End.ANSWERED, text="it did happen"))
    assert see(world, Call, order.call_id).state == CallState.UNKNOWN
    assert see(world, Attempt, order.attempt_id).late["text"] == "it did happen"


@pytest.mark.rule("L11")
@pytest.mark.faults
def test_an_outcome_is_settled_once_through_a_restart_of_the_database(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_world()
    order = an_order(world, a_call(world, "note"))
    once = an_order(world, a_call(world, "note"))
    host = Host(name="n1")
    database.stop()
    unguarded = Side(lambda: settle(world, once, an_outcome(End.ANSWERED))).start()
    with pytest.raises(OperationalError):
        unguarded.join()
    held_up = Pause(monkeypatch, host._given_up, "wait", after=True)
    settling = Side(lambda: host.until_committed(lambda: settle(world, order, an_outcome(End.ANSWERED)))).start()
    held_up.reached()  # the first try has failed
    database.start()
    held_up.go()
    assert settling.join() is True
    connection.close()  # ours did not outlive the restart
    assert see(world, Call, order.call_id).state == CallState.SUCCEEDED
    assert see(world, Call, once.call_id).state == CallState.RUNNING
