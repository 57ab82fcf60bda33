"""A listing that was read while its connection changed is another server's: it is not kept, shown or approved."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

import psycopg
import pytest

from base import db
from base.clock import boot_time
from catalog.models import Connection, Function, Tool
from catalog.operations import approving, connections, listings
from catalog.operations.approving import ListingMoved
from catalog.operations.connections import Given
from catalog.queries.trust import approval_of
from catalog.rules.estimates import Definition, estimate
from catalog.rules.listing import listing_digest
from catalog.rules.servers import ListedFunction, MeasuredListing, ServerSpec
from jobs.node.node import Node
from jobs.queries import locks
from jobs.tasks import measuring
from studio.embedded import Postgres
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_tool, a_world
from tests.catalogs import REMOTE, entries
from tests.races import Pause, Side, until_blocked_or_ended

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("C3")]
SEARCH, FETCH, PURGE = REMOTE


class Answering:
    """A node whose measuring finds these entries, after `meanwhile` happened."""

    def __init__(self, found: tuple[ListedFunction, ...], meanwhile: Callable[[], None] = lambda: None) -> None:
        self.found = found
        self.meanwhile = meanwhile
        self.asked = ""

    def measure(self, spec: ServerSpec) -> MeasuredListing:
        """As `Node.measure` does it."""
        assert spec.remote is not None
        self.asked = spec.remote.url
        self.meanwhile()
        return measured(self.found)


def measured(found: tuple[ListedFunction, ...]) -> MeasuredListing:
    return MeasuredListing(listing_digest(found), "2025-06-18", "far", "1", found)


def measure(world: World, node: Answering) -> str:
    """Which address was asked."""
    measuring.measure(cast(Node, node), tenant=world.tenant, tool_id=tool_of(world).pk)
    return node.asked


def a_far_tool() -> World:
    """A world with a remote tool `far` on a connection, listed once."""
    world = a_world()
    made = {"url": "https://first.example/mcp", "allowed": (), "given": Given(), "actor": SYSTEM}
    connections.make(tenant=world.tenant, name="far", **cast(Any, made))
    a_tool(world.tenant, entries(SEARCH), slug="far")
    with db.write(world.tenant):
        Tool.objects.filter(slug="far").update(transport="url", connection="far", url="", argv=[])
    measure(world, Answering(entries(SEARCH)))
    return world


def move(world: World) -> None:
    """The connection leads to another server from now on."""
    changed = {"url": "https://second.example/mcp", "allowed": (), "given": Given(), "actor": SYSTEM}
    connections.change(tenant=world.tenant, name="far", **cast(Any, changed))


def tool_of(world: World) -> Tool:
    with db.read(world.tenant):
        return Tool.objects.get(slug="far")


def listed(world: World) -> dict[str, str]:
    with db.read(world.tenant):
        rows = Function.objects.filter(tool__slug="far", listing__current=True)
        return dict(rows.values_list("name", "entry_digest"))


def test_what_the_old_server_listed_while_the_connection_moved_is_not_kept_and_the_new_one_is_asked() -> None:
    world = a_far_tool()
    before = listed(world)
    assert tool_of(world).measure_due_at is None
    asked = measure(world, Answering(entries(FETCH, PURGE), meanwhile=lambda: move(world)))
    assert asked == "https://first.example:443/mcp"
    assert listed(world) == before
    assert tool_of(world).measure_due_at is not None
    assert measure(world, Answering(entries(FETCH))) == "https://second.example:443/mcp"
    assert set(listed(world)) == {"fetch"}
    assert tool_of(world).measure_due_at is None


def test_a_connection_that_moves_while_the_tokens_of_what_was_read_are_counted_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_far_tool()
    before = listed(world)

    def slowly(definitions: Sequence[Definition]) -> list[int]:
        move(world)
        return estimate(definitions)

    monkeypatch.setattr("catalog.operations.listings.estimate", slowly)
    measure(world, Answering(entries(FETCH, PURGE)))
    assert listed(world) == before
    assert tool_of(world).measure_due_at is not None


def test_nobody_approves_the_old_servers_words_for_the_new_one() -> None:
    world = a_far_tool()
    measure(world, Answering(entries(FETCH), meanwhile=lambda: move(world)))
    person = Actor("pat", "link", world.person)
    with pytest.raises(ListingMoved, match="the connection was changed"):
        approving.approve(tenant=world.tenant, tool="far", shown=listed(world), actor=person)
    measure(world, Answering(entries(FETCH)))
    assert approving.approve(tenant=world.tenant, tool="far", shown=listed(world), actor=person) == ("fetch",)
    with db.read(world.tenant):
        assert approval_of(Function.objects.select_related("tool").get(tool__slug="far", listing__current=True))


@pytest.mark.parametrize(("read_ago", "kept"), [(5.0, True), (15.0, False)])
def test_a_listing_that_a_session_read_before_the_connection_changed_is_not_kept(
    move_clock: Callable[[timedelta], None], read_ago: float, kept: bool
) -> None:
    world = a_far_tool()
    move(world)
    move_clock(timedelta(seconds=10))
    found = entries(FETCH)
    assert (
        listings.store(
            tenant=world.tenant, tool_id=tool_of(world).pk, measured=measured(found), began=boot_time() - read_ago
        )
        is kept
    )
    assert (set(listed(world)) == {"fetch"}) is kept


def test_a_listing_that_was_read_earlier_never_takes_the_place_of_a_later_one() -> None:
    world = a_far_tool()
    later = lambda: measure(world, Answering(entries(FETCH))) and None  # noqa: E731
    measure(world, Answering(entries(PURGE), meanwhile=later))
    assert set(listed(world)) == {"fetch"}


def test_a_tool_that_is_asked_for_again_while_it_is_measured_is_measured_again() -> None:
    world = a_far_tool()
    again = lambda: listings.measure_again(tenant=world.tenant, tool_id=tool_of(world).pk)  # noqa: E731
    measure(world, Answering(entries(FETCH), meanwhile=again))
    assert set(listed(world)) == {"fetch"}
    assert tool_of(world).measure_due_at is not None
    measure(world, Answering(entries(FETCH)))
    assert tool_of(world).measure_due_at is None


@pytest.fixture
def admin(database: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection that sees who waits for whom."""
    with psycopg.connect(database.url_admin, autocommit=True) as connection_:
        yield connection_


@pytest.mark.parametrize("guarded", [True, False])
def test_a_measuring_that_begins_while_the_connection_is_being_changed_asks_the_new_server(
    admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    world = a_far_tool()
    if not guarded:
        monkeypatch.setattr(locks, "gate_shared", lambda: None)
    changed = Pause(monkeypatch, connections, "measure_again")  # written, not committed
    changing = Side(lambda: move(world)).start()
    changed.reached()
    measuring_ = Side(lambda: measure(world, Answering(entries(FETCH)))).start()
    until_blocked_or_ended(admin, measuring_)
    changed.go()
    changing.join()
    asked = measuring_.join()
    assert asked == f"https://{'second' if guarded else 'first'}.example:443/mcp"


def test_the_time_of_a_change_is_from_when_no_claim_was_under_way(admin: psycopg.Connection[Any]) -> None:
    world = a_far_tool()
    with db.write(world.tenant):
        locks.gate_shared()
        changing = Side(lambda: move(world)).start()
        assert until_blocked_or_ended(admin, changing)
        claimed = db.later()
    changing.join()
    with db.read(world.tenant):
        assert Connection.objects.get(name="far").changed_at > claimed
