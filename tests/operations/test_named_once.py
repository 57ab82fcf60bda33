"""Two people save something of one name in the same moment: the second is told that it is taken, and loses nothing."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
import pytest
from django.db import IntegrityError

from approvals.models import Way
from approvals.operations import channels
from approvals.rules.channels import BadChannel
from base import db, ids
from budgets.errors import BadProject
from budgets.operations import projects
from catalog.operations import connections
from catalog.operations.connections import BadConnection, Given
from jobs.operations import exporting, hooks, routines
from jobs.operations.hooks import BadHook
from jobs.operations.routines import BadRoutine
from studio.embedded import Postgres
from tenants.operations import audit
from tenants.rules.who import SYSTEM
from tests.builders import World, a_world
from tests.races import Pause, Side, until_blocked_or_ended
from tests.senders import STANDARD


def a_routine(world: World) -> None:
    wanted = routines.Wanted("nightly", "clerk", "0 * * * *", "UTC")
    routines.make(tenant=world.tenant, wanted=wanted, person=world.person, actor=SYSTEM)


def a_hook(world: World) -> None:
    wanted = hooks.Wanted("orders", "clerk")
    hooks.make(tenant=world.tenant, wanted=wanted, secret=STANDARD, person=world.person, actor=SYSTEM)


def a_channel(world: World) -> None:
    wanted = channels.Wanted("night shift", to=("a@b.example",))
    channels.make(tenant=world.tenant, way=Way.EMAIL, wanted=wanted, secret="", actor=SYSTEM)


def a_connection(world: World) -> None:
    given: dict[str, Any] = {"allowed": (), "given": Given(), "actor": SYSTEM}
    connections.make(tenant=world.tenant, name="archive", url="https://archive.example/", **given)


def a_budget(world: World) -> None:
    given: dict[str, Any] = {"zone": "UTC", "unconfirmed": "in_doubt", "actor": SYSTEM}
    projects.make(tenant=world.tenant, project=ids.new(), name="research", **given)


def a_collector(world: World) -> None:
    place: dict[str, Any] = {"url": "https://otlp.example/", "allowed": (), "header": "", "value": None}
    exporting.save(tenant=world.tenant, actor=SYSTEM, **place)


MAKERS: Final[list[tuple[Callable[[World], None], type[ValueError] | None]]] = [
    (a_routine, BadRoutine),
    (a_hook, BadHook),
    (a_channel, BadChannel),
    (a_connection, BadConnection),
    (a_budget, BadProject),
    (a_collector, None),  # there is one: the second changes it
]


@pytest.fixture
def admin(database: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection that sees who waits for whom."""
    with psycopg.connect(database.url_admin, autocommit=True) as connection_:
        yield connection_


@pytest.mark.parametrize("guarded", [pytest.param(True, id="guarded"), pytest.param(False, id="guard taken away")])
@pytest.mark.parametrize(("make", "taken"), MAKERS, ids=[make.__name__ for make, _ in MAKERS])
def test_who_comes_second_is_told_that_it_is_taken(
    admin: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[World], None],
    taken: type[ValueError] | None,
    guarded: bool,
) -> None:
    world = a_world()
    if not guarded:
        monkeypatch.setattr(db, "alone", lambda doing: None)
    saved = Pause(monkeypatch, audit, "record")  # the row is there, its transaction is not committed
    first = Side(lambda: make(world)).start()
    saved.reached()
    second = Side(lambda: make(world)).start()
    assert until_blocked_or_ended(admin, second), "the second did not wait for the first"
    saved.go()
    first.join()
    told = taken if guarded else IntegrityError
    if told is None:
        second.join()
    else:
        with pytest.raises(told):
            second.join()
