"""A process that stands still, frozen or cut off, keeps from the others neither a row nor the sweep (RULES L8)."""

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from base import db
from catalog.models import KillSwitch, Scope
from jobs.operations import sweep
from jobs.queries import locks
from jobs.rules.limits import LEASE
from tests.builders import a_switch, a_tenant, a_world
from tests.races import PATIENCE, Side
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("database")
SHORT = 0.3  # seconds instead of a lease
ASK = "SELECT current_setting('idle_in_transaction_session_timeout')::interval, current_setting('idle_session_timeout')"


def limits() -> tuple[timedelta, str]:
    """How long this connection may stand still in a transaction, and outside of one."""
    with connection.cursor() as cursor:
        cursor.execute(ASK)
        return cursor.fetchone()


class Frozen:
    """A thread that stands still where it calls this, until it is thawed."""

    def __init__(self) -> None:
        self.stands = threading.Event()
        self.goes_on = threading.Event()

    def __call__(self) -> None:
        self.stands.set()
        assert self.goes_on.wait(PATIENCE), "nobody thawed it"


def test_every_transaction_ends_when_it_stands_still_for_a_lease() -> None:
    assert db.STANDSTILL == LEASE
    tenant = a_tenant()
    for transaction in (db.write(tenant), db.read(tenant), db.sweep(), db.durable()):
        with transaction:
            assert limits() == (timedelta(seconds=LEASE), "0")
    assert limits()[0] == timedelta(0)


@pytest.mark.rule("L7")
def test_a_switch_is_thrown_although_a_frozen_node_holds_the_gate() -> None:
    world, frozen = a_world(), Frozen()

    def stand_still() -> None:
        with db.write(world.tenant):
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{SHORT}s'")
            locks.gate_shared()
            frozen()

    node = Side(stand_still).start()
    assert frozen.stands.wait(PATIENCE)
    a_switch(world, Scope.TOOL, "shop")  # waits for the gate, and gets it
    with db.read(world.tenant):
        assert KillSwitch.objects.filter(off_at__isnull=True).count() == 1
    frozen.goes_on.set()
    with pytest.raises(OperationalError):  # as when the database goes away: it is tried again
        node.join()


@pytest.mark.rule("L8")
def test_another_sweeps_when_the_sweeper_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LEASE", SHORT)
    frozen = Frozen()

    def stand_still() -> None:
        with sweep._alone() as mine:
            assert mine
            frozen()

    node = Side(stand_still).start()
    assert frozen.stands.wait(PATIENCE)
    until(lambda: _sweeps_too()[0], "nobody ever sweeps again")
    frozen.goes_on.set()
    with pytest.raises(OperationalError):
        node.join()


def test_a_sweep_leaves_its_connection_as_it_was() -> None:
    with sweep._alone() as mine:
        assert mine
        assert limits()[1] == f"{LEASE:g}s"
        other = Side(_sweeps_too).start()
        assert other.join() == (False, "0")
    assert limits()[1] == "0"


def _sweeps_too() -> tuple[bool, str]:
    with sweep._alone() as mine:
        return mine, limits()[1]
