"""A person edits the arguments of a waiting call and approves what then runs (RULES A9; CASES A02, A22)."""

from typing import Any
from uuid import UUID

import pytest

from approvals.models import Decision
from approvals.operations import deciding_rules
from approvals.operations.decide import AsksAnew, Counted, decide
from base import db, ids
from jobs.models import Call, Event, Hold
from jobs.operations import editing, work
from jobs.operations.holds import Answer, BadAnswer, Closed, Taken
from jobs.queries import history
from jobs.rules.orders import End
from jobs.rules.states import CallState, HoldState
from tenants.models import AuditEntry, Role
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_person,
    a_policy,
    a_rule,
    a_world,
    an_order,
    an_outcome,
    made,
    see,
    settle,
    the_hold,
    the_job,
    told,
)
from tests.operations.test_deciding import ADMIN, answer, person

pytestmark = pytest.mark.usefixtures("database")

SHIP = {"order": 7}


def edited(world: World, hold: UUID, arguments: Any, by: int | None = None) -> Any:
    """The world's own person, or another one, edits and approves."""
    who = person(by or world.person, "admin")
    return decide(tenant=world.tenant, hold_id=hold, person=who, answer="edit", arguments=arguments)


def a_held_shipment(world: World) -> tuple[UUID, UUID]:
    """A call with a schema that waits, and its hold."""
    a_policy(world, a_rule("careful", "ask", function="ship"))
    call = a_call(world, "ship", SHIP)
    return call, the_hold(world, call).pk


@pytest.mark.rule("A9")
@pytest.mark.rule("K7")
def test_what_was_edited_runs_under_the_first_key_and_the_model_is_told() -> None:
    world = a_world()
    call, hold = a_held_shipment(world)
    before = see(world, Call, call)
    assert edited(world, hold, {"order": 8}) == Taken(CallState.QUEUED)
    row = see(world, Call, call)
    assert row.args_digest != before.args_digest
    order = an_order(world, call)
    assert (order.arguments, order.key) == ({"order": 8}, before.key)
    settle(world, order, an_outcome(End.ANSWERED))
    job = the_job(world, call)
    assert see(world, Call, call).state == CallState.SUCCEEDED
    words = told(world, call)
    assert words.startswith("A person edited the arguments of this call") and '{"order": 8}' in words
    assert words.endswith("ok")
    with db.read(world.tenant):
        (turn,) = history.past_turns(job)
        assert turn.calls[0].arguments == SHIP  # what the model itself wrote
        assert Event.objects.filter(kind="call.edited", call=call).count() == 1
        kept = Hold.objects.get(pk=hold)
        assert kept.edit is not None and kept.edit.data == {"before": SHIP, "after": {"order": 8}}
        assert (kept.answer, kept.answered_by_id) == (Answer.EDIT, world.person)
        entry = AuditEntry.objects.get(verb="hold.edit")
        assert entry.before["arguments"] == before.args_digest and entry.after["arguments"] == row.args_digest


@pytest.mark.rule("A9")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": "eight"}, r"\$\.order: 'eight' is not of type 'integer'"),
        ({}, "'order' is a required property"),
        ("{not json", "not JSON"),
        ("[1]", "arguments are a JSON object"),
        ({"order": 2**60}, "loses digits"),
        ({"order": 1, "note": "a\0b"}, "NUL"),
        (SHIP, "nothing is different"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said_with_its_place_and_nothing_moves(arguments: Any, says: str) -> None:
    world = a_world()
    call, hold = a_held_shipment(world)
    with pytest.raises(BadAnswer, match=says):
        edited(world, hold, arguments)
    assert see(world, Call, call).state == CallState.HELD
    assert see(world, Hold, hold).state == HoldState.OPEN
    assert edited(world, hold, '{"order": 8}') == Taken(CallState.QUEUED)  # and text that fits is taken


@pytest.mark.rule("A9")
def test_every_place_that_does_not_fit_is_named() -> None:
    world = a_world()
    a_policy(world, a_rule("careful", "ask", function="ship"))
    call = a_call(world, "ship", SHIP)
    with pytest.raises(editing.BadArguments) as caught:
        edited(world, the_hold(world, call).pk, {"order": None, "x": 1e400})
    assert [path for path, _ in caught.value.troubles] == ["$.x"]
    with pytest.raises(editing.BadArguments) as caught:
        edited(world, the_hold(world, call).pk, {"orders": 1})
    assert caught.value.troubles == (("$", "'order' is a required property"),)


@pytest.mark.rule("A4")
@pytest.mark.rule("A9")
def test_edited_arguments_are_judged_and_another_asking_rule_asks_anew() -> None:
    """CASES A02."""
    world = a_world()
    a_policy(
        world,
        a_rule("careful", "ask", function="ship"),
        a_rule("big", "ask", function="ship", arguments=[{"path": "/order", "is": "at_least", "value": 100}]),
        a_rule("never", "refuse", function="ship", arguments=[{"path": "/order", "is": "at_least", "value": 1000}]),
    )
    call = a_call(world, "ship", SHIP)
    hold = the_hold(world, call).pk
    with pytest.raises(BadAnswer, match="the policy refuses the call with these arguments"):
        edited(world, hold, {"order": 5000})
    assert see(world, Call, call).state == CallState.HELD
    asked = edited(world, hold, {"order": 500})
    assert isinstance(asked, AsksAnew) and asked.have == 0
    new = the_hold(world, call)
    assert (new.pk, new.rule_id) == (asked.hold_id, "big")
    assert see(world, Hold, hold).approves == ""
    old = decide(tenant=world.tenant, hold_id=hold, person=person(a_person(world.tenant, "sam")), answer="approve")
    assert isinstance(old, Closed) and (old.answer, old.by) == (Answer.EDIT, world.person)
    assert see(world, Call, call).state == CallState.HELD
    assert answer(world, new.pk, "approve") == Taken(CallState.QUEUED)
    assert an_order(world, call).arguments == {"order": 500}


@pytest.mark.rule("A9")
@pytest.mark.rule("A10")
def test_an_edit_voids_the_approvals_given_before_and_is_the_editors_own() -> None:
    """CASES A22."""
    world = a_world()
    ann, bob = (a_person(world.tenant, name, Role.OPERATOR) for name in ("ann", "bob"))
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={"write": 2}, no_self=False, by=ADMIN)
    call, hold = a_held_shipment(world)
    assert decide(tenant=world.tenant, hold_id=hold, person=person(ann), answer="approve") == Counted(1, 2)
    asked = edited(world, hold, {"order": 8}, by=world.person)
    assert isinstance(asked, AsksAnew) and (asked.have, asked.needed) == (1, 2)
    assert see(world, Call, call).state == CallState.HELD
    assert isinstance(decide(tenant=world.tenant, hold_id=hold, person=person(bob), answer="approve"), Closed)
    again = decide(tenant=world.tenant, hold_id=asked.hold_id, person=person(world.person, "admin"), answer="approve")
    assert again == Counted(1, 2)  # the editor has approved already, and counts once
    assert decide(tenant=world.tenant, hold_id=asked.hold_id, person=person(bob), answer="approve") == Taken(
        CallState.QUEUED
    )
    assert an_order(world, call).arguments == {"order": 8}
    with db.read(world.tenant):
        given = list(Decision.objects.filter(hold_id=asked.hold_id).order_by("at").values_list("channel", "answer"))
        assert given == [("edit", "approve"), ("page", "approve")]


@pytest.mark.rule("A9")
@pytest.mark.rule("U10")
def test_what_may_have_acted_is_not_edited_any_more() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    answer(world, hold, "approve")
    made(world, call, an_outcome(End.BROKEN))
    answer(world, the_hold(world, call).pk, "again")
    a_policy(world, a_rule("other", "ask", function="refund"))
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    retry = the_hold(world, call)
    assert retry.kind == "retry"
    with pytest.raises(BadAnswer, match="an earlier attempt may have acted"):
        edited(world, retry.pk, {"n": 1})
