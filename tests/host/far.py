"""A world whose tool is a remote server of the test's own, listed by a running node and approved by a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Credential, Function, Tool, Transport
from catalog.operations import connections
from catalog.operations.approving import approve
from catalog.operations.connections import Given
from jobs.models import Call
from jobs.rules.states import CALL_FINAL
from jobs.tasks.host import CALL_SLOTS, Host
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_job, a_turn, a_world, see
from tests.servers.raw_http import RawServer
from tests.waiting import until


@contextmanager
def a_host(home: Path, settings: LazySettings, *, call_slots: int = CALL_SLOTS) -> Iterator[Host]:
    """A running node that leaves turns to the test."""
    settings.OZ0_HOME = home
    node = Host(name="here", call_slots=call_slots, turn_slots=0)
    node.start()
    yield node
    node.stop(grace=2)
    connection.close()


def listed_by(world: World, host: Host) -> dict[str, str]:
    """Have the node list the tool's server; the digests of its entries by their names."""
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="shop").pk
        before = set(Function.objects.filter(listing__current=True).values_list("pk", flat=True))
    host.measure(world.tenant, tool)

    def listed() -> dict[str, str]:
        with db.read(world.tenant):
            rows = Function.objects.filter(listing__current=True).exclude(pk__in=before)
            return dict(rows.values_list("name", "entry_digest"))

    until(lambda: bool(listed()), "the server was never listed", 30)
    return listed()


def a_far_world(host: Host, server: RawServer) -> World:
    """The world's tool is on `server`, and all that it lists is approved."""
    world = replace(a_world(), node=host.node_id)
    given = {"allowed": [f"127.0.0.1:{server.port}"], "given": Given(Credential.NONE), "actor": SYSTEM}
    connections.make(tenant=world.tenant, name="far", url=server.url, **given)
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(transport=Transport.URL, connection="far", argv=[])
    approve(tenant=world.tenant, tool="shop", shown=listed_by(world, host), actor=Actor("pat", "link", world.person))
    return world


def ended(world: World, function: str = "look") -> Call:
    """One call of this function, made by the node and over."""
    (call,) = a_turn(world, a_job(world), function)
    return over(world, call)


def over(world: World, call: UUID, seconds: float = 40) -> Call:
    """The call once it is over."""
    until(lambda: see(world, Call, call).state in CALL_FINAL, f"it never ended: {see(world, Call, call)}", seconds)
    return see(world, Call, call)
