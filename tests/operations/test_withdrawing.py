"""Taking back the approval of a remote entry, what waits by it, and whose approval counts for which server."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from catalog.models import Agent, Connection, EntryApproval, Function, Listing, Plugin, PluginVersion, Stage, Tool
from catalog.operations import approving, connections, listings
from catalog.operations.approving import ListingMoved
from catalog.operations.connections import Given
from catalog.queries import functions
from catalog.queries.listing_review import waiting
from catalog.queries.trust import approval_of, approved_entries, trusted_by
from catalog.rules.servers import MeasuredListing
from jobs.models import Call, Hold
from jobs.operations import work
from jobs.operations.listings_changed import word_withdrawn
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState
from jobs.rules.why import Why
from tenants.rules.who import SYSTEM, Actor
from tests.builders import (
    FUNCTIONS,
    World,
    a_call,
    a_policy,
    a_rule,
    a_tool,
    a_world,
    an_order,
    an_outcome,
    made,
    see,
    settle,
    the_hold,
)

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("C3")]
ASK_ALWAYS = a_rule("all", "ask")


def pat(world: World) -> Actor:
    """The world's own person, signed in."""
    return Actor("pat", "link, 127.0.0.1", world.person)


def a_remote_world(*approved: str) -> World:
    """A world whose tool is reached over a connection, with these of its entries approved."""
    world = a_world()
    connections.make(
        tenant=world.tenant, name="shop", url="https://shop.example/mcp", allowed=(), given=Given(), actor=SYSTEM
    )
    with db.write(world.tenant):
        Tool.objects.update(transport="url", connection="shop", url="", argv=[])
    measured_again(world)
    if approved:
        approve(world, *approved)
    return world


def measured_again(world: World, slug: str = "shop") -> None:
    """The tool's server lists what it did before."""
    with db.read(world.tenant):
        tool = Tool.objects.get(slug=slug, plugin_version__stage=Stage.CURRENT)
        kept = Listing.objects.get(tool=tool, current=True)
    same = MeasuredListing(kept.digest, kept.protocol, "shop", "1", FUNCTIONS)
    assert not listings.store(tenant=world.tenant, tool_id=tool.pk, measured=same)


def digest_of(world: World, name: str) -> str:
    with db.read(world.tenant):
        return Function.objects.values_list("entry_digest", flat=True).get(name=name, listing__current=True)


def approve(world: World, *names: str) -> None:
    shown = {name: digest_of(world, name) for name in names}
    approving.approve(tenant=world.tenant, tool="shop", shown=shown, actor=pat(world))


def withdraw(world: World, name: str) -> int:
    """As the tool's page does it; how many jobs are asked anew."""
    shown = digest_of(world, name)
    approving.withdraw(tenant=world.tenant, tool="shop", function=name, shown=shown, actor=pat(world))
    return word_withdrawn(tenant=world.tenant, tool="shop", function=name)


def answered(world: World, hold: UUID, said: str) -> object:
    person = Person(Decider(world.person, "operator"), pat(world))
    return decide(tenant=world.tenant, hold_id=hold, person=person, answer=said)


def claimed(world: World, call: UUID) -> bool:
    """Whether a node gets the call to make."""
    order = work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())
    return order is not None


def counts(world: World, name: str = "look") -> bool:
    """Whether the entry's word counts, however that is asked."""
    with db.read(world.tenant):
        current = Function.objects.filter(tool__plugin_version__stage=Stage.CURRENT, listing__current=True)
        entry = current.select_related("tool").get(name=name)
        one = approval_of(entry) is not None
        assert one == trusted_by(entry, approved_entries([entry.tool]))
        assert one == (name not in {row.after.name for row in waiting(entry.tool)})
        return one


# --- taking back -------------------------------------------------------------------------------------------------


@pytest.mark.rule("U1")
def test_a_function_whose_approval_is_taken_back_waits_for_a_person_again() -> None:
    world = a_remote_world("look")
    assert see(world, Call, a_call(world, "look")).state == CallState.QUEUED
    withdraw(world, "look")
    assert not counts(world)
    call = see(world, Call, a_call(world, "look"))
    assert (call.state, call.kind, call.retry_safe) == (CallState.HELD, "undeclared", False)


@pytest.mark.rule("A4")
def test_a_question_that_waits_by_it_is_void_and_asked_anew() -> None:
    world = a_remote_world("refund", "note")
    call = a_call(world, "refund")
    hold = the_hold(world, call).pk
    assert withdraw(world, "refund") == 1
    row, new = see(world, Call, call), the_hold(world, call)
    assert see(world, Hold, hold).state == HoldState.WITHDRAWN
    assert (row.state, row.reason, row.kind) == (CallState.HELD, Why.WORD_WITHDRAWN, "undeclared")
    assert new.pk != hold
    answered(world, new.pk, "approve")
    assert an_order(world, call).function == "refund"


@pytest.mark.rule("A4")
def test_an_approval_of_a_call_that_was_given_by_it_is_void_even_by_the_same_rule() -> None:
    world = a_remote_world("refund")
    a_policy(world, ASK_ALWAYS)
    call = a_call(world, "refund")
    hold = the_hold(world, call).pk
    answered(world, hold, "approve")
    assert see(world, Call, call).state == CallState.QUEUED
    withdraw(world, "refund")
    assert not claimed(world, call)
    assert see(world, Call, call).state == CallState.HELD
    assert the_hold(world, call).pk != hold


@pytest.mark.rule("A4")
def test_it_is_void_also_when_the_studio_dies_before_it_asks_anew_and_when_the_entry_is_approved_again() -> None:
    world = a_remote_world("refund")
    a_policy(world, ASK_ALWAYS)
    call = a_call(world, "refund")
    hold = the_hold(world, call).pk
    shown = digest_of(world, "refund")
    approving.withdraw(tenant=world.tenant, tool="shop", function="refund", shown=shown, actor=pat(world))
    approve(world, "refund")
    answered(world, hold, "approve")
    assert not claimed(world, call)
    assert see(world, Call, call).state == CallState.HELD
    assert the_hold(world, call).pk != hold


def test_an_approved_call_runs_when_nothing_was_taken_back() -> None:
    world = a_remote_world("refund", "look")
    a_policy(world, ASK_ALWAYS)
    call = a_call(world, "refund")
    answered(world, the_hold(world, call).pk, "approve")
    assert withdraw(world, "look") == 0
    assert claimed(world, call)


def test_a_call_in_the_queue_that_the_policy_let_through_is_held_when_it_is_claimed() -> None:
    world = a_remote_world("look")
    call = a_call(world, "look")
    assert withdraw(world, "look") == 1
    assert not claimed(world, call)
    assert see(world, Call, call).state == CallState.HELD


def test_questions_about_other_functions_are_left_alone() -> None:
    world = a_remote_world("refund", "look")
    call = a_call(world, "refund")
    hold = the_hold(world, call).pk
    withdraw(world, "look")
    assert see(world, Hold, hold).state == HoldState.OPEN


@pytest.mark.rule("U1")
def test_a_call_that_waits_to_be_retried_is_not_retried_by_a_word_that_counts_no_more(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_remote_world("charge")
    call = a_call(world, "charge")
    assert made(world, call, an_outcome(End.BROKEN)).state == CallState.RETRYING
    withdraw(world, "charge")
    move_clock(timedelta(seconds=60))
    assert not claimed(world, call)
    row = see(world, Call, call)
    assert row.state in (CallState.HELD, CallState.UNKNOWN)
    assert (row.effect, row.retry_safe) == ("maybe", False)


def test_a_running_call_is_let_end() -> None:
    world = a_remote_world("look")
    order = an_order(world, call := a_call(world, "look"))
    assert withdraw(world, "look") == 0
    settle(world, order, an_outcome(End.ANSWERED))
    assert see(world, Call, call).state == CallState.SUCCEEDED


# --- whose approval ----------------------------------------------------------------------------------------------


def moved(world: World, **change: Any) -> None:
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(**change)


def test_an_approval_counts_for_the_server_it_was_given_for() -> None:
    world = a_remote_world("look")
    assert counts(world)
    measured_again(world)
    assert counts(world)


@pytest.mark.parametrize("change", [{"connection": "other"}, {"url": "/other"}], ids=["connection", "address"])
def test_the_same_tool_reached_elsewhere_has_no_approval(change: dict[str, str]) -> None:
    world = a_remote_world("look")
    connections.make(
        tenant=world.tenant, name="other", url="https://shop.example/mcp", allowed=(), given=Given(), actor=SYSTEM
    )
    moved(world, **change)
    assert not counts(world)
    assert see(world, Call, a_call_by_name(world)).state == CallState.HELD


def a_call_by_name(world: World) -> UUID:
    """A call of an agent whose grant writes the function's whole name."""
    with db.write(world.tenant):
        agent = Agent.objects.get()
        agent.definition["functions"] = ["shop.look"]
        agent.save(update_fields=["definition"])
    return a_call(world, "look")


def test_a_connection_that_leads_to_another_server_takes_no_approval_with_it() -> None:
    world = a_remote_world("look")
    call = a_call(world, "look")
    change = {"tenant": world.tenant, "name": "shop", "allowed": (), "given": Given(), "actor": SYSTEM}
    connections.change(url="https://impostor.example/mcp", **change)
    assert not counts(world)
    assert not claimed(world, call)
    assert see(world, Call, call).state == CallState.HELD
    with pytest.raises(ListingMoved, match="changed since the server was listed"):
        approve(world, "look")
    measured_again(world)
    approve(world, "look")
    assert counts(world)


def test_another_plugin_with_a_tool_of_that_name_inherits_no_approval_and_no_grant_by_pattern() -> None:
    world = a_remote_world("look")
    with db.write(world.tenant) as now:
        old = PluginVersion.objects.get()
        agent = Agent.objects.get()
        PluginVersion.objects.update(stage=Stage.OLD)
        other = Plugin.objects.create(tenant_id=world.tenant, name="impostor")
        version = PluginVersion.objects.create(
            tenant_id=world.tenant, plugin=other, version="1", digest="d", manifest={}, folder="/", added_at=now
        )
        tool = Tool.objects.get(plugin_version=old)
        tool.pk, tool.plugin_version, tool._state.adding = ids.new(), version, True
        tool.save(force_insert=True)
        agent.plugin_version = version
        agent.save(update_fields=["plugin_version"])
    measured = MeasuredListing("same", "2026-07-28", "shop", "1", FUNCTIONS)
    listings.store(tenant=world.tenant, tool_id=tool.pk, measured=measured)
    assert not counts(world)
    with db.read(world.tenant):
        assert functions.granted(Agent.objects.get().pk) == {}
        assert EntryApproval.objects.filter(withdrawn_at__isnull=True).count() == 1, "the first plugin's own stands"


def test_a_new_version_of_the_plugin_with_the_same_server_keeps_its_approvals() -> None:
    world = a_remote_world("look")
    with db.write(world.tenant) as now:
        old = PluginVersion.objects.get()
        PluginVersion.objects.update(stage=Stage.OLD)
        version = PluginVersion.objects.create(
            tenant_id=world.tenant, plugin=old.plugin, version="2", digest="d2", manifest={}, folder="/", added_at=now
        )
        tool = Tool.objects.get(plugin_version=old)
        tool.pk, tool.plugin_version, tool._state.adding = ids.new(), version, True
        tool.save(force_insert=True)
    measured = MeasuredListing("same", "2026-07-28", "shop", "1", FUNCTIONS)
    listings.store(tenant=world.tenant, tool_id=tool.pk, measured=measured)
    assert counts(world)


def test_an_approval_from_before_servers_were_kept_with_it_counts_for_none() -> None:
    world = a_remote_world("look")
    with db.write(world.tenant):
        EntryApproval.objects.update(plugin="", connection="", address="")
    assert not counts(world)


def test_two_tools_on_one_connection_are_approved_apart() -> None:
    world = a_remote_world("look")
    a_tool(world.tenant, slug="store")
    with db.write(world.tenant):
        Tool.objects.filter(slug="store").update(transport="url", connection="shop", argv=[])
        assert Connection.objects.count() == 1
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="store")
        assert "look" in {row.after.name for row in waiting(tool)}
