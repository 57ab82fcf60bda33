"""Rows read and written by prepared statements are the ORM's own rows."""

import threading
from typing import Any

import psycopg
import pytest
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, connections, models

from base import db, ids, prepared
from base.prepared import TOGETHER
from catalog.models import Function, KillSwitch, Scope
from catalog.queries import functions, switches
from jobs.models import Body, Event
from jobs.queries import due, tables
from jobs.rules.orders import End
from studio.embedded import Postgres
from tenants.operations import tokens
from tenants.operations.invitations import hash_of
from tenants.queries.seats import seats_of
from tenants.queries.tokens import bearer
from tenants.rules.bearers import DRAWN, written
from tenants.rules.who import SYSTEM
from tests.builders import a_call, a_held_call, a_switch, a_world, an_order, an_outcome, settle

pytestmark = pytest.mark.usefixtures("database")
BODIES: prepared.Table[Body] = prepared.Table(Body)
ODD = {"text": 'ü "\\ %s 🙂', "none": None, "many": [1, 2.5, True]}


def attributes(row: models.Model) -> dict[str, Any]:
    """All that a row holds."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_every_row_of_a_job_is_read_as_the_orm_reads_it() -> None:
    world = a_world()
    settle(world, an_order(world, a_call(world, "look", {"q": ODD})), an_outcome(End.ANSWERED))
    a_held_call(world)
    with db.read(world.tenant):
        for table in (tables.JOBS, tables.TURNS, tables.CALLS, tables.ATTEMPTS, tables.HOLDS, tables.EVENTS):
            rows = list(table.model._default_manager.all())
            assert rows
            for row in rows:
                found = table.get(row.pk)
                assert found is not None
                assert attributes(found) == attributes(row)
        assert tables.JOBS.get(ids.new()) is None


def test_a_function_is_read_with_its_tool_and_version() -> None:
    world = a_world()
    with db.read(world.tenant):
        row = Function.objects.select_related("tool__plugin_version").get(name="ship")
        found = functions.entry(row.pk)
        assert attributes(found) == attributes(row)
        assert attributes(found.tool) == attributes(row.tool)
        assert attributes(found.tool.plugin_version) == attributes(row.tool.plugin_version)
        with pytest.raises(Function.DoesNotExist):
            functions.entry(ids.new())


def test_a_switch_is_read_as_the_orm_reads_it() -> None:
    world = a_world()
    a_switch(world, Scope.TOOL, "shop", "an incident")
    with db.read(world.tenant):
        found = switches.over_call(agent="clerk", tool="shop", function="look")
        assert found is not None
        assert attributes(found) == attributes(KillSwitch.objects.get())


def test_what_is_written_is_what_the_orm_reads_however_many_rows() -> None:
    world = a_world()
    rows = [Body(tenant_id=world.tenant, data=ODD, size=place) for place in range(TOGETHER + 1)]
    with db.write(world.tenant):
        BODIES.insert(*rows)
        assert BODIES.update(rows[0].pk, {"data": ["%s"]}, "size = %s", [0])
        assert not BODIES.update(rows[1].pk, {"size": 7}, "size = %s", [0])
    with db.read(world.tenant):
        kept = {row.pk: row.data for row in Body.objects.all()}
    assert kept == {row.pk: ODD for row in rows} | {rows[0].pk: ["%s"]}


def test_an_error_of_the_database_is_djangos() -> None:
    world = a_world()
    body = Body(tenant_id=world.tenant, data=1, size=1)
    with pytest.raises(IntegrityError), db.write(world.tenant):
        BODIES.insert(body)
        BODIES.insert(body)
    with db.read(world.tenant):
        assert not Body.objects.exists()


def test_a_connection_that_is_closed_on_the_way_is_said_to_be_gone() -> None:
    world = a_world()
    with pytest.raises(db.GONE, match="closed"), db.read(world.tenant):
        connection.close()
        prepared.fetch("SELECT 1")


def test_a_connection_that_the_server_ended_is_said_to_be_gone(database: Postgres) -> None:
    world = a_world()
    with pytest.raises(db.GONE), db.read(world.tenant):
        mine = prepared.fetch_one("SELECT pg_backend_pid()")
        with psycopg.connect(database.url_admin, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 10000)", mine)
        prepared.fetch("SELECT 1")
    with db.read(world.tenant):
        assert prepared.fetch("SELECT 1") == [(1,)]


def test_outside_of_a_transaction_a_statement_says_what_to_do() -> None:
    world = a_world()
    a_call(world)
    with pytest.raises(RuntimeError, match=r"call it inside `db\.write`"):
        prepared.fetch("SELECT 1")
    with db.read(world.tenant):
        assert prepared.fetch_one("SELECT count(*) FROM jobs_event") == (Event.objects.count(),)


def test_a_token_with_its_person_takes_one_look_and_due_work_of_every_kind_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    call, token = a_call(world, "look"), written("a" * DRAWN)
    (seat,) = seats_of(world.person)
    tokens.make(seat=seat, token=token, name="ours", scopes=["read"], agent="", days=None, actor=SYSTEM)
    durable, looks = db.durable, 0

    def counted(*stands_under: str) -> Any:
        nonlocal looks
        looks += 1
        return durable(*stands_under)

    monkeypatch.setattr(db, "durable", counted)
    found = bearer(hash_of(token))
    assert found is not None and found.seat == seat
    due_now = due.work(calls=9, turns=9, sessions=9)
    assert (due_now.calls, due_now.turns, due_now.sessions) == ([(world.tenant, call)], [], [])
    assert looks == 2
    assert due.work(calls=0).calls == [] and looks == 2, "a node without a free slot asks nothing"


def test_a_connection_is_proven_once_in_a_moment_and_again_when_something_failed_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world()
    at, proven = 100.0, 0

    def used(seconds: float) -> int:
        nonlocal at
        at += seconds
        db.fresh()
        with db.read(world.tenant):
            return proven

    def is_usable() -> bool:
        nonlocal proven
        proven += 1
        return True

    connection.close()
    with db.read(world.tenant):
        monkeypatch.setattr(db, "_proven", threading.local())
        monkeypatch.setattr(db, "boot_time", lambda: at)
        monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "is_usable", is_usable)
    first = used(0)
    assert [used(0.06), used(0.06), used(0.06)] == [first, first + 1, first + 1]
    connection.errors_occurred = True
    assert used(0) == first + 2
