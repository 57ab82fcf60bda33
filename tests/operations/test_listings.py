"""A listing changes, is approved by a person, and what that does to calls that wait."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from base.canonical import digest_of_any
from catalog.models import Agent, EntryApproval, Function, Listing, Tool, Transport
from catalog.operations import approving, listings
from catalog.operations.approving import BadApproval, ListingMoved, approve
from catalog.queries import functions
from catalog.rules.estimates import Definition, estimate
from catalog.rules.listing import listing
from catalog.rules.servers import ListedFunction, MeasuredListing
from jobs.models import Call, Hold
from jobs.operations import work
from jobs.operations.holds import BadAnswer
from jobs.operations.listings_changed import ask_anew, word_withdrawn
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, HoldState
from jobs.rules.why import Why
from tenants.models import AuditEntry, Gate
from tenants.operations import audit
from tenants.rules.who import Actor
from tests.builders import (
    FUNCTIONS,
    World,
    a_call,
    a_function,
    a_held_call,
    a_tool,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    made,
    see,
    settle,
    the_hold,
)

pytestmark = pytest.mark.usefixtures("database")


def pat(world: World) -> Actor:
    """The world's own person, signed in."""
    return Actor("pat", "link, 127.0.0.1", world.person)


def tool_of(world: World) -> UUID:
    with db.read(world.tenant):
        return Tool.objects.values_list("pk", flat=True).get()


def listed(world: World, entries: Sequence[ListedFunction]) -> bool:
    """The tool's server was found to list these, as a node's measuring does it."""
    measured = MeasuredListing(digest_of_any(sorted(f.digest for f in entries)), "2026-07-28", "s", "1", tuple(entries))
    fresh = listings.store(tenant=world.tenant, tool_id=tool_of(world), measured=measured)
    ask_anew(tenant=world.tenant, tool_id=tool_of(world))
    return fresh


def described(name: str, **other: Any) -> tuple[ListedFunction, ...]:
    """The usual functions, one of them described otherwise."""
    raw = {"name": name, "inputSchema": {"type": "object"}, "description": "Another.", **other}
    (entry,) = listing([raw], protocol="", server_name="", server_version="").functions
    return tuple(entry if function.name == name else function for function in FUNCTIONS)


def make_remote(world: World) -> None:
    """Let the tool's server be a remote one, before anything is asked of it."""
    with db.write(world.tenant):
        Tool.objects.update(transport=Transport.URL, connection="shop", url="https://shop.example/mcp")


def shown(world: World, *names: str) -> dict[str, str]:
    with db.read(world.tenant):
        current = Function.objects.filter(listing__current=True, name__in=names)
        return dict(current.values_list("name", "entry_digest"))


def approvals(world: World) -> dict[str, bool]:
    """Whether the approval of each function stands."""
    with db.read(world.tenant):
        rows = EntryApproval.objects.order_by("approved_at").values_list("function", "withdrawn_at")
        return {function: withdrawn is None for function, withdrawn in rows}


def withdrawn(world: World, name: str, actor: Actor | None = None) -> None:
    """The approval of an entry is taken back, as the tool's page does it."""
    digest = shown(world, name)[name]
    by = actor or pat(world)
    approving.withdraw(tenant=world.tenant, tool="shop", function=name, shown=digest, actor=by, note="it lied")
    word_withdrawn(tenant=world.tenant, tool="shop", function=name)


def answered(world: World, hold: UUID, said: str) -> object:
    return decide(
        tenant=world.tenant, hold_id=hold, person=Person(Decider(world.person, "operator"), pat(world)), answer=said
    )


# --- what is kept ------------------------------------------------------------------------------------------------


@pytest.mark.rule("T1")
def test_each_function_is_kept_with_what_its_definition_costs() -> None:
    world = a_world()
    with db.read(world.tenant):
        rows = list(Function.objects.all())
    assert len(rows) == len(FUNCTIONS)
    for row in rows:
        (cost,) = estimate([Definition(row.model_name, row.description, row.input_schema)])
        assert row.tokens == cost


def test_figures_missing_from_an_older_version_are_filled_in_by_the_next_measuring() -> None:
    world = a_world()
    with db.write(world.tenant):
        Function.objects.update(tokens=None)
    with db.read(world.tenant):
        kept = Listing.objects.get()
    same = MeasuredListing(kept.digest, kept.protocol, "s", "1", FUNCTIONS)
    assert not listings.store(tenant=world.tenant, tool_id=tool_of(world), measured=same)
    with db.read(world.tenant):
        assert not Function.objects.filter(tokens__isnull=True).exists()


@pytest.mark.rule("C2")
def test_every_listing_is_kept_with_its_digest_and_time_and_order_alone_makes_no_new_one() -> None:
    world = a_world()
    assert listed(world, described("note"))
    assert not listed(world, tuple(reversed(described("note"))))
    with db.read(world.tenant):
        rows = list(Listing.objects.order_by("pk"))
    assert [row.current for row in rows] == [False, True]
    assert rows[0].digest != rows[1].digest
    assert rows[0].measured_at < rows[1].measured_at


@pytest.mark.rule("C1")
def test_a_name_that_no_provider_takes_is_left_out_and_named() -> None:
    world = a_world()
    long_name = "x" * 60
    listed(world, (*FUNCTIONS, a_function("a.b", {}), a_function(long_name, {})))
    with db.read(world.tenant):
        tool = Tool.objects.get()
        kept = set(Function.objects.filter(listing__current=True).values_list("name", flat=True))
    assert kept == {function.name for function in FUNCTIONS}
    assert "a.b" in tool.down_reason
    assert long_name in tool.down_reason


# --- approving ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("C3")
@pytest.mark.rule("A12")
def test_a_person_approves_exactly_what_they_were_shown_and_it_is_in_the_audit_log() -> None:
    world = a_world()
    make_remote(world)
    entries = shown(world, "look", "note")
    assert approve(tenant=world.tenant, tool="shop", shown=entries, actor=pat(world)) == ("look", "note")
    assert approve(tenant=world.tenant, tool="shop", shown=entries, actor=pat(world)) == ()
    assert approvals(world) == {"look": True, "note": True}
    with db.read(world.tenant):
        (entry,) = AuditEntry.objects.filter(verb="listing.approved")
    assert (entry.actor, entry.object, entry.after) == ("pat", "tool shop", entries)
    assert audit.first_broken(world.tenant) is None


@pytest.mark.rule("C3")
def test_nothing_is_approved_when_one_entry_is_not_what_was_shown() -> None:
    world = a_world()
    make_remote(world)
    entries = shown(world, "look", "note")
    listed(world, described("note"))
    with pytest.raises(ListingMoved, match="describes note otherwise"):
        approve(tenant=world.tenant, tool="shop", shown=entries, actor=pat(world))
    assert approvals(world) == {}
    with pytest.raises(ListingMoved, match="gone"):
        approve(tenant=world.tenant, tool="shop", shown={"gone": "0" * 64}, actor=pat(world))


@pytest.mark.rule("C3")
@pytest.mark.parametrize(
    ("tool", "entries", "told"), [("shop", {}, "nothing was chosen"), ("shap", {"look": "x"}, "no tool 'shap'")]
)
def test_an_approval_of_nothing_or_of_no_tool_is_refused(tool: str, entries: dict[str, str], told: str) -> None:
    world = a_world()
    make_remote(world)
    with pytest.raises(BadApproval, match=told):
        approve(tenant=world.tenant, tool=tool, shown=entries, actor=pat(world))


def test_a_plugins_own_server_needs_no_approval_and_a_program_gives_none() -> None:
    world = a_world()
    with pytest.raises(BadApproval, match="its word counts"):
        approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=pat(world))
    make_remote(world)
    with pytest.raises(BadApproval, match="signed-in person"):
        approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=Actor("key", "api key", None))


@pytest.mark.rule("C3")
@pytest.mark.rule("U1")
@pytest.mark.parametrize(
    "change",
    [
        {"description": "What look does!"},
        {"title": "Look"},
        {"annotations": {"readOnlyHint": True, "openWorldHint": True}},
        {"outputSchema": {"type": "object"}},
        {"_meta": {"x": 1}},
    ],
)
def test_any_change_of_an_entry_ends_its_approval_with_the_same_commit_and_coming_back_does_not_renew_it(
    change: dict[str, Any],
) -> None:
    """CASES C15."""
    world = a_world()
    make_remote(world)
    entries = shown(world, "look", "note")
    approve(tenant=world.tenant, tool="shop", shown=entries, actor=pat(world))
    with db.read(world.tenant):
        gate = Gate.objects.get().version
    plain = {"description": "What look does.", "annotations": {"readOnlyHint": True}}
    listed(world, described("look", **(plain | change)))
    assert approvals(world) == {"look": False, "note": True}
    with db.read(world.tenant):
        assert Gate.objects.get().version > gate
    listed(world, FUNCTIONS)
    assert approvals(world) == {"look": False, "note": True}


@pytest.mark.rule("C3")
def test_another_entry_that_changes_leaves_an_approval_alone() -> None:
    world = a_world()
    make_remote(world)
    approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=pat(world))
    listed(world, (*described("note"), a_function("brand_new", {})))
    assert approvals(world) == {"look": True}


@pytest.mark.rule("C3")
@pytest.mark.rule("A12")
def test_an_approval_can_be_taken_back() -> None:
    world = a_world()
    make_remote(world)
    approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=pat(world))
    withdrawn(world, "look")
    assert approvals(world) == {"look": False}
    with pytest.raises(ListingMoved, match="no approval of look as you were shown it stands any more"):
        withdrawn(world, "look")
    with db.read(world.tenant):
        (entry,) = AuditEntry.objects.filter(verb="listing.withdrawn")
    assert (entry.actor, entry.object, entry.before) == ("pat", "tool shop", shown(world, "look"))
    assert entry.note == "it lied"


@pytest.mark.rule("A5")
def test_a_program_takes_no_approval_back() -> None:
    world = a_world()
    make_remote(world)
    approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=pat(world))
    with pytest.raises(BadApproval, match="signed-in person"):
        withdrawn(world, "look", actor=Actor("key", "api key", None))
    assert approvals(world) == {"look": True}


@pytest.mark.rule("C3")
def test_a_pattern_never_grants_an_entry_of_a_remote_listing_that_nobody_approved() -> None:
    world = a_world()

    def granted() -> set[str]:
        with db.read(world.tenant):
            return set(functions.granted(Agent.objects.get().pk))

    assert len(granted()) == len(FUNCTIONS)
    make_remote(world)
    assert granted() == set()
    approve(tenant=world.tenant, tool="shop", shown=shown(world, "look"), actor=pat(world))
    assert granted() == {"shop__look"}
    listed(world, (*described("look"), a_function("look_more", {"readOnlyHint": True})))
    assert granted() == {"shop__look"}, "it was granted; its word counts no more, and the new one is not granted"
    with db.write(world.tenant):
        agent = Agent.objects.get()
        agent.definition["functions"] = ["shop.look_more"]
        agent.save(update_fields=["definition"])
    assert granted() == {"shop__look_more"}, "a grant that writes the whole name is a person's own word"


# --- what waits --------------------------------------------------------------------------------------------------


@pytest.mark.rule("C3")
@pytest.mark.rule("A4")
def test_a_question_about_an_entry_that_changed_is_void_and_asked_anew() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    listed(world, described("refund", annotations={"destructiveHint": True}))
    old, new, row = see(world, Hold, hold), the_hold(world, call), see(world, Call, call)
    assert (old.state, row.state, row.reason) == (HoldState.WITHDRAWN, CallState.HELD, Why.ENTRY_CHANGED)
    assert new.pk != hold
    assert new.binding != old.binding
    assert row.entry_digest == shown(world, "refund")["refund"]
    answered(world, new.pk, "approve")
    assert an_order(world, call).entry_digest == row.entry_digest


@pytest.mark.rule("C3")
@pytest.mark.rule("A4")
def test_an_approval_given_before_the_change_is_void_and_the_call_is_asked_anew_when_it_is_claimed() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    answered(world, hold, "approve")
    listed(world, described("refund", annotations={"destructiveHint": True}))
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    assert see(world, Call, call).state == CallState.HELD
    assert the_hold(world, call).pk != hold


@pytest.mark.rule("C3")
def test_an_answer_that_comes_before_the_question_was_asked_anew_approves_nothing_and_asks_anew() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    entries = described("refund", annotations={"destructiveHint": True})
    measured = MeasuredListing("other", "2026-07-28", "s", "1", entries)
    listings.store(tenant=world.tenant, tool_id=tool_of(world), measured=measured)  # and its node died here
    with pytest.raises(BadAnswer, match="asked anew"):
        answered(world, hold, "approve")
    assert see(world, Hold, hold).state == HoldState.WITHDRAWN
    assert the_hold(world, call).pk != hold


@pytest.mark.rule("C3")
@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (tuple(f for f in FUNCTIONS if f.name != "refund"), Why.TOOL_GONE),
        (described("refund", inputSchema={"type": "object", "required": ["of"]}), Why.ENTRY_CHANGED),
    ],
    ids=["the function is gone", "the arguments fit no more"],
)
def test_a_waiting_call_that_can_be_asked_no_more_is_refused_and_says_why(
    entries: tuple[ListedFunction, ...], reason: Why
) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    listed(world, entries)
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.REFUSED, reason)
    assert see(world, Hold, hold).state == HoldState.WITHDRAWN


@pytest.mark.rule("C3")
def test_questions_about_entries_that_did_not_change_are_left_alone() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    seq = see(world, Call, call).seq
    listed(world, (*described("note"), a_function("brand_new", {})))
    assert see(world, Hold, hold).state == HoldState.OPEN
    assert see(world, Call, call).seq == seq


def test_asking_anew_twice_asks_once() -> None:
    world = a_world()
    call, _ = a_held_call(world)
    listed(world, described("refund", annotations={"destructiveHint": True}))
    new = the_hold(world, call).pk
    assert ask_anew(tenant=world.tenant, tool_id=tool_of(world)) == 0
    assert the_hold(world, call).pk == new


@pytest.mark.rule("U10")
def test_an_unknown_call_keeps_its_question_and_is_not_run_again_under_another_description() -> None:
    world = a_world()
    _, question = an_unknown_call(world)
    listed(world, described("note", annotations={"destructiveHint": False}))
    with pytest.raises(BadAnswer, match="cannot be run again as it was"):
        answered(world, question, "again")
    answered(world, question, "happened")


@pytest.mark.rule("C3")
@pytest.mark.parametrize("reason", [Reason.LISTING_CHANGED, Reason.FUNCTION_GONE])
def test_a_session_that_lists_something_else_has_the_tool_measured_again(reason: Reason) -> None:
    world = a_world()
    call = a_call(world, "note")
    row = made(world, call, an_outcome(End.NOT_MADE, reason=reason))
    assert row.state == CallState.FAILED
    with db.read(world.tenant):
        assert Tool.objects.get().measure_due_at is not None


def test_an_ordinary_end_has_nothing_measured_again() -> None:
    world = a_world()
    settle(world, an_order(world, a_call(world, "note")), an_outcome(End.NOT_MADE))
    with db.read(world.tenant):
        assert Tool.objects.get().measure_due_at is None


@pytest.mark.rule("C1")
@pytest.mark.parametrize("order", [("north", "south"), ("south", "north")])
def test_two_tools_with_a_function_of_one_name_keep_their_names_in_whatever_order_they_came(
    order: tuple[str, str],
) -> None:
    """CASES C10."""
    world = a_world()
    for slug in order:
        a_tool(world.tenant, (a_function("search", {"readOnlyHint": True}),), slug=slug)
    with db.read(world.tenant):
        found = set(Function.objects.filter(name="search").values_list("model_name", "tool__slug"))
    assert found == {("north__search", "north"), ("south__search", "south")}
