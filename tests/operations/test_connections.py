"""Connections, their credentials in the vault, trust in remote entries, and what attempts keep for resuming."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings

from base import db, ids
from catalog.models import Connection, Credential, EntryApproval, Function, Tool, Transport
from catalog.operations import connections, listings, plugins
from catalog.operations.connections import BadConnection, Given
from catalog.rules.problems import BadPlugin
from catalog.rules.servers import MeasuredListing
from jobs.models import Attempt, Call
from jobs.operations import nodes, work
from jobs.operations.servers import server_of
from jobs.rules.orders import End, Order, Progress, ResumePoint
from jobs.rules.states import CallState
from tenants.models import AuditEntry, Secret
from tenants.operations import vault
from tenants.rules.who import SYSTEM
from tests.builders import (
    KEY_META,
    World,
    a_call,
    a_function,
    a_tenant,
    a_world,
    an_approval,
    an_order,
    an_outcome,
    made,
    see,
    settle,
)

pytestmark = pytest.mark.usefixtures("database")
URL = "https://mcp.example.org/mcp"
BEARER = Given(Credential.BEARER, "s3cret-value")


def make(tenant: UUID, name: str = "archive", **more: Any) -> UUID:
    fields: dict[str, Any] = {"url": URL, "allowed": [], "given": Given(), "actor": SYSTEM}
    return connections.make(tenant=tenant, name=name, **{**fields, **more})


def change(tenant: UUID, name: str = "archive", **more: Any) -> None:
    fields: dict[str, Any] = {"url": URL, "allowed": [], "given": Given(), "actor": SYSTEM}
    connections.change(tenant=tenant, name=name, **{**fields, **more})


# --- the vault ---------------------------------------------------------------------------------------------------


def test_a_secret_is_sealed_bound_to_its_tenant_and_name_and_opens_after_the_studios_own_was_replaced(
    settings: LazySettings,
) -> None:
    tenant, other = a_tenant(), a_tenant("other")
    with db.write(tenant):
        assert vault.put("a", "s3cret") == 1
        assert vault.put("a", "s3cret") == 2
    with db.read(tenant):
        assert vault.get(tenant, "a") == "s3cret"
        row = Secret.objects.get(name="a")
        assert b"s3cret" not in bytes(row.ciphertext)
    with db.write(other):
        Secret.objects.create(tenant_id=other, name="a", ciphertext=row.ciphertext, changed_at=row.changed_at)
    with db.read(other), pytest.raises(vault.NoSecret):
        vault.get(other, "a")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    assert vault.seal_again(tenant=tenant, actor=SYSTEM) == 1
    settings.SECRET_KEY_FALLBACKS = []
    with db.read(tenant):
        assert vault.get(tenant, "a") == "s3cret"
    with db.read(tenant), pytest.raises(vault.NoSecret, match="enter it again"):
        vault.get(tenant, "b")


# --- connections -------------------------------------------------------------------------------------------------


@pytest.mark.rule("A12")
def test_a_connection_is_audited_without_its_secret_and_its_version_grows_with_each_change() -> None:
    tenant = a_tenant()
    make(tenant, given=BEARER, allowed=["LOCALHOST:8801"])
    change(tenant, given=Given(Credential.BEARER), allowed=["localhost:8801", ""])
    change(tenant, given=Given(Credential.HEADER, "other-s3cret", header="X-Api-Key"))
    with db.read(tenant):
        row = Connection.objects.get()
        assert (row.allowed, row.credential, row.header, row.credential_version) == ([], "header", "X-Api-Key", 3)
        noted = list(AuditEntry.objects.order_by("seq").values_list("verb", "before", "after"))
        assert vault.get(tenant, connections.secret_name(row)) == "other-s3cret"
    assert [verb for verb, _, _ in noted] == ["connection.made", "connection.changed", "connection.changed"]
    assert noted[0][2]["allowed"] == ["localhost:8801"]
    assert "s3cret" not in str(noted)
    connections.remove(tenant=tenant, name="archive", actor=SYSTEM)
    with db.read(tenant):
        assert (Connection.objects.count(), Secret.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    "more",
    [
        {"url": "http://user@host/"},
        {"url": "javascript:alert(1)"},
        {"url": "http://2130706433/"},
        {"allowed": ["127.0.0.1"]},
        {"allowed": ["*:80"]},
        {"name": "Not A Name"},
        {"name": ""},
        {"given": Given(Credential.BEARER)},
        {"given": Given(Credential.BEARER, "two\r\nlines")},
        {"given": Given(Credential.HEADER, "v")},
        {"given": Given(Credential.HEADER, "v", header="Host")},
        {"given": Given(Credential.HEADER, "v", header="X: Y")},
        {"given": Given(Credential.HEADER, "v", header="Mcp-Session-Id")},
    ],
)
def test_a_connection_that_cannot_be_is_refused_and_leaves_nothing(more: dict[str, Any]) -> None:
    tenant = a_tenant()
    with pytest.raises(BadConnection):
        make(tenant, **more)
    with db.read(tenant):
        assert (Connection.objects.count(), Secret.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)


def test_a_credential_never_follows_its_connection_to_another_server() -> None:
    tenant = a_tenant()
    make(tenant, given=BEARER)
    with pytest.raises(BadConnection, match="enter its credential anew"):
        change(tenant, url="https://elsewhere.example.org/", given=Given(Credential.BEARER))
    change(tenant, url="https://elsewhere.example.org/", given=BEARER)


@pytest.mark.parametrize(
    "url", ["https://evil.example.org/mcp", "//evil.example.org/mcp", "http://mcp.example.org/mcp"]
)
def test_a_tool_at_another_origin_gets_no_credential(url: str) -> None:
    world = a_remote_world()
    with db.write(world.tenant):
        Tool.objects.update(url=url)
        tool = Tool.objects.select_related("plugin_version").get()
        remote = server_of(tool).remote
    assert remote is not None
    assert "is not on the server of connection" in remote.trouble
    assert remote.headers == {}


def test_a_connection_in_use_is_not_removed() -> None:
    world = a_remote_world()
    with pytest.raises(BadConnection, match="shop still uses it"):
        connections.remove(tenant=world.tenant, name="archive", actor=SYSTEM)


def test_the_generation_found_first_is_pinned_until_someone_asks_again() -> None:
    world = a_remote_world()
    with db.write(world.tenant):
        tool = Tool.objects.get()
        connections.keep_protocol(tool, "2026-07-28")
        connections.keep_protocol(tool, "2025-11-25")
        assert Connection.objects.get().protocol == "2026-07-28"
    change(world.tenant, given=BEARER)
    with db.read(world.tenant):
        assert Connection.objects.get().protocol == "2026-07-28"
    change(world.tenant, given=BEARER, ask_again=True)
    with db.read(world.tenant):
        assert Connection.objects.get().protocol == ""


def test_a_server_spec_carries_the_credential_and_shows_it_nowhere() -> None:
    world = a_remote_world()
    with db.read(world.tenant):
        spec = server_of(Tool.objects.select_related("plugin_version").get())
    assert spec.remote is not None
    assert spec.remote.headers == {"Authorization": "Bearer s3cret-value"}
    assert "s3cret" not in repr(spec)


# --- trust and resuming ------------------------------------------------------------------------------------------


def a_remote_world() -> World:
    """A world whose tool `shop` is a remote server."""
    world = a_world()
    make(world.tenant, given=BEARER)
    with db.write(world.tenant):
        tool = Tool.objects.get()
        tool.transport, tool.url, tool.connection, tool.argv = Transport.URL, "/mcp", "archive", []
        tool.save()
    look = a_function("look", {"readOnlyHint": True}, {"oz0/resume": True})
    charge = a_function("charge", {"destructiveHint": False, "idempotentHint": True}, KEY_META)
    measured = MeasuredListing("another", "2026-07-28", "shop", "1", (look, charge))
    listings.store(tenant=world.tenant, tool_id=tool.pk, measured=measured)
    return world


def approve(world: World, name: str) -> None:
    with db.write(world.tenant):
        an_approval(world.person, Function.objects.get(name=name, listing__current=True))


@pytest.mark.rule("U1")
@pytest.mark.rule("A1")
def test_a_remote_entrys_word_counts_only_while_its_exact_approval_stands() -> None:
    world = a_remote_world()
    approve(world, "look")
    with db.write(world.tenant) as now:
        EntryApproval.objects.update(withdrawn_at=now)
    unapproved = see(world, Call, a_call(world, "look"))
    assert (unapproved.state, unapproved.kind, unapproved.retry_safe) == (CallState.HELD, "undeclared", False)
    approve(world, "look")
    call = a_call(world, "look")
    approved = see(world, Call, call)
    assert (approved.state, approved.kind, approved.read_only, approved.retry_safe) == ("queued", "read", True, True)
    with db.write(world.tenant) as now:
        EntryApproval.objects.update(withdrawn_at=now)
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    held = see(world, Call, call)
    assert (held.state, held.kind, held.retry_safe) == (CallState.HELD, "undeclared", False)


def reported(world: World, order: Order, progress: Progress) -> None:
    with db.write(world.tenant):
        nodes.keep_progress(attempt_id=order.attempt_id, progress=progress)


@pytest.fixture
def next_order(move_clock: Callable[[timedelta], None]) -> Callable[[World, UUID, Order], Order]:
    """The order after one that broke."""

    def go(world: World, call: UUID, before: Order) -> Order:
        settle(world, before, an_outcome(End.BROKEN))
        move_clock(timedelta(minutes=2))
        return an_order(world, call)

    return go


@pytest.mark.rule("P2")
@pytest.mark.rule("P3")
@pytest.mark.rule("P5")
def test_the_third_attempt_carries_the_token_of_the_first_when_the_second_said_nothing(
    next_order: Callable[[World, UUID, Order], Order],
) -> None:
    """CASES P03."""
    world = a_remote_world()
    approve(world, "look")
    call = a_call(world, "look")
    first = an_order(world, call)
    assert first.resume is None
    reported(world, first, Progress(3, 4, ResumePoint("t2", 2, 4)))
    second = next_order(world, call, first)
    third = next_order(world, call, second)
    assert second.resume == third.resume == ResumePoint("t2", 2, 4)
    assert second.server.remote is not None and first.server.remote is not None
    row = see(world, Attempt, third.attempt_id)
    assert (row.resumed_from, row.resumed_of, row.started_over_because) == (2, 4, "")


@pytest.mark.rule("P5")
def test_a_token_is_never_sent_to_another_server(next_order: Callable[[World, UUID, Order], Order]) -> None:
    """CASES P09."""
    world = a_remote_world()
    approve(world, "look")
    call = a_call(world, "look")
    first = an_order(world, call)
    reported(world, first, Progress(2, 4, ResumePoint("t2", 2, 4)))
    change(world.tenant, url="https://elsewhere.example.org/mcp", given=BEARER)
    approve(world, "look")  # what that server says of itself is approved as well
    second = next_order(world, call, first)
    assert second.resume is None
    assert see(world, Attempt, second.attempt_id).started_over_because == "other_connection"


@pytest.mark.rule("P3")
def test_a_busy_answer_keeps_the_place_too(move_clock: Callable[[timedelta], None]) -> None:
    world = a_remote_world()
    approve(world, "look")
    call = a_call(world, "look")
    progress = Progress(1, 4, ResumePoint("t1", 1, 4))
    made(world, call, an_outcome(End.BUSY, progress=progress, retry_after=3.0))
    move_clock(timedelta(seconds=10))
    assert an_order(world, call).resume == ResumePoint("t1", 1, 4)


@pytest.mark.rule("P3")
@pytest.mark.rule("P4")
def test_a_plugins_own_server_never_gets_a_token(next_order: Callable[[World, UUID, Order], Order]) -> None:
    """CASES P09."""
    world = a_world()
    call = a_call(world, "look")
    first = an_order(world, call)
    reported(world, first, Progress(2, 4, ResumePoint("t2", 2, 4)))
    second = next_order(world, call, first)
    assert second.resume is None
    assert see(world, Attempt, second.attempt_id).started_over_because == "shared_session"


def test_a_remote_tool_of_a_plugin_needs_its_connection(tmp_path: Path, settings: LazySettings) -> None:
    settings.OZ0_HOME = tmp_path
    tenant = a_tenant()
    folder = Path(__file__).parent.parent.parent / "examples" / "archive"
    with pytest.raises(BadPlugin, match="there is no connection archive yet"):
        plugins.register(tenant=tenant, folder=folder, home=tmp_path, actor=SYSTEM)
    make(tenant)
    plugins.register(tenant=tenant, folder=folder, home=tmp_path, actor=SYSTEM)
    with db.read(tenant):
        assert Tool.objects.get().connection == "archive"
