"""A node in this process on a real server behind a real sign-in: what its calls carry, and when they are not made."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import httpx2
import pytest
from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Connection, Credential, Function, Listing, SignIn, Standing, Tool, Transport
from catalog.operations import connections, listings, signing_in
from catalog.operations.connections import Given
from jobs.models import Call
from jobs.rules.states import CallState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_job, a_node, a_turn, a_world, an_approval, see
from tests.servers.guarded import Guarded, a_guarded_server
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    """A running node that leaves turns to the test."""
    settings.OZ0_HOME = tmp_path
    node = Host(name="here", turn_slots=0)
    node.start()
    yield node
    node.stop(grace=2)
    connection.close()


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with a_guarded_server() as server:
        yield server


@pytest.fixture
def world(guarded: Guarded, host: Host) -> World:
    """The world's tool reached over a connection that is signed in, its entries approved."""
    world = replace(a_world(), node=host.node_id)
    made = connections.make(
        tenant=world.tenant,
        name="guarded",
        url=guarded.url,
        allowed=[guarded.place],
        given=Given(Credential.OAUTH),
        actor=SYSTEM,
    )
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(transport=Transport.URL, connection="guarded", argv=[])
    where = {
        "tenant": world.tenant,
        "connection": made,
        "nonce": "n" * 32,
        "actor": Actor("pat", "link", world.person),
    }
    address = signing_in.begin(**where, return_to="http://127.0.0.1:1/return")
    back = httpx2.get(address, follow_redirects=False).headers["location"]
    signing_in.finish(**where, given=dict(parse_qsl(urlsplit(back).query)))

    def listed() -> bool:
        with db.read(world.tenant):
            return Listing.objects.filter(current=True, server_name="guarded").exists()

    until(listed, "the server was never listed", 30)
    with db.write(world.tenant):
        an_approval(world.person, Function.objects.get(listing__current=True, name="look"))
    return world


def ended(world: World) -> Call:
    """One call of the server's one function, made by the node.

    Another asks for it: the clock may have been moved between this one's heartbeat and its sweep, which then takes it
    for silent until its next pulse.
    """
    (call,) = a_turn(replace(world, node=a_node("asking")), a_job(world), "look")
    until(lambda: see(world, Call, call).state in END, f"it never ended: {see(world, Call, call).state}", 40)
    return see(world, Call, call)


END = (CallState.SUCCEEDED, CallState.FAILED, CallState.ERRORED)


def test_the_pulse_refreshes_ahead_and_calls_carry_the_token_in_force(
    world: World, guarded: Guarded, move_clock: Callable[[timedelta], None]
) -> None:
    assert ended(world).state == CallState.SUCCEEDED
    (first,) = guarded.access
    move_clock(timedelta(minutes=55, seconds=1))
    until(lambda: len(guarded.access) == 2, "the pulse did not refresh the token")
    (newer,) = set(guarded.access) - {first}
    until(lambda: version(world) == 3, "the new token was not kept")
    guarded.bearers.clear()
    assert ended(world).state == CallState.SUCCEEDED
    assert newer in guarded.bearers and first not in guarded.bearers


def version(world: World) -> int:
    with db.read(world.tenant):
        return Connection.objects.get().credential_version


def test_a_call_whose_token_ran_out_is_not_made_although_the_session_is_live(
    world: World, guarded: Guarded, move_clock: Callable[[timedelta], None]
) -> None:
    assert ended(world).state == CallState.SUCCEEDED
    guarded.says["/token"] = (503, {})
    move_clock(timedelta(hours=1, seconds=1))
    guarded.bearers.clear()
    call = ended(world)
    assert (call.state, call.effect) == (CallState.FAILED, "none")
    assert "ran out" in call.detail
    assert guarded.bearers == []  # a session was live, and nothing was sent on it
    del guarded.says["/token"]
    move_clock(timedelta(minutes=5))
    until(lambda: version(world) == 3, "the token was never refreshed")
    assert ended(world).state == CallState.SUCCEEDED  # the control


def test_a_token_that_the_server_takes_no_more_is_refreshed_after_the_first_401(
    world: World, guarded: Guarded, move_clock: Callable[[timedelta], None]
) -> None:
    move_clock(timedelta(minutes=2))
    guarded.access.clear()
    until(lambda: ended(world).state == CallState.SUCCEEDED or version(world) == 3, "nothing was refreshed", 60)
    assert ended(world).state == CallState.SUCCEEDED
    with db.read(world.tenant):
        assert SignIn.objects.get().standing == Standing.IN


def test_a_401_at_the_opening_makes_the_refresh_due_too(
    world: World, guarded: Guarded, move_clock: Callable[[timedelta], None], host: Host
) -> None:
    move_clock(timedelta(minutes=2))
    guarded.access.clear()
    with db.write(world.tenant):
        Connection.objects.update(credential_version=7)  # a new session, which is refused at once
    listings.measure_again(tenant=world.tenant, tool_id=tool(world))
    until(lambda: version(world) == 8, "the refusal did not lead to a refresh")


def tool(world: World) -> UUID:
    with db.read(world.tenant):
        return Tool.objects.get(slug="shop").pk
