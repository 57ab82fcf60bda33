"""Who may decide which kinds, no self-approval, and several who must approve (RULES A10; CASES A19, A30)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Decision
from approvals.operations import deciding_rules
from approvals.operations.decide import Counted, MayNot, Person, decide
from approvals.rules.deciding import BadRules, DecidingRules
from base import db
from jobs.models import Call, Event, Hold, Starter
from jobs.operations.holds import Closed, Taken
from jobs.rules.states import CallState, HoldState, JobState
from tenants.models import AuditEntry, Membership, Role, Tenant
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_person,
    a_policy,
    a_rule,
    a_world,
    an_order,
    an_unknown_call,
    see,
    swept,
    the_hold,
    the_job,
)
from tests.operations.test_deciding import ADMIN, person

pytestmark = pytest.mark.usefixtures("database")


def rules(world: World, *, roles: Any = None, approvers: Any = None, no_self: bool = False) -> None:
    """Who decides from now on."""
    deciding_rules.save(tenant=world.tenant, roles=roles or {}, approvers=approvers or {}, no_self=no_self, by=ADMIN)


def says(world: World, hold: Any, who: Person, said: str, note: str = "") -> Any:
    """One person's answer."""
    return decide(tenant=world.tenant, hold_id=hold, person=who, answer=said, note=note)


def people(world: World, *names: str, role: Role = Role.OPERATOR) -> list[Person]:
    """People of the workspace."""
    return [person(a_person(world.tenant, name, role), role) for name in names]


@pytest.mark.rule("A10")
def test_two_must_approve_and_the_call_runs_with_the_second_and_not_with_the_first_twice() -> None:
    world = a_world()
    rules(world, approvers={"destructive": 2})
    ann, bob = people(world, "ann", "bob")
    call, hold = a_held_call(world)
    assert says(world, hold, ann, "approve") == Counted(1, 2)
    assert says(world, hold, ann, "approve") == Counted(1, 2)
    row = see(world, Hold, hold)
    assert (row.state, row.approves, see(world, Call, call).state) == (HoldState.OPEN, "", CallState.HELD)
    assert says(world, hold, bob, "approve") == Taken(CallState.QUEUED)
    assert an_order(world, call).number == 1
    with db.read(world.tenant):
        assert Decision.objects.filter(hold_id=hold, answer="approve").count() == 2
        assert {one.data["have"] for one in Event.objects.filter(kind="hold.counted", call=call)} == {1}
        approved = AuditEntry.objects.filter(verb="hold.approve").order_by("seq")
        assert [entry.after["approved"] for entry in approved] == ["1 of 2", "1 of 2", "2 of 2"]


@pytest.mark.rule("A10")
@pytest.mark.parametrize("said", ["deny", "stop"])
@pytest.mark.parametrize("same", [False, True], ids=["another person", "who approved"])
def test_the_first_deny_or_stop_closes_it_whoever_approved_before(said: str, same: bool) -> None:
    world = a_world()
    rules(world, approvers={"destructive": 3})
    ann, bob = people(world, "ann", "bob")
    call, hold = a_held_call(world)
    says(world, hold, ann, "approve")
    closing = ann if same else bob
    assert isinstance(says(world, hold, closing, said, "no"), Taken)
    row = see(world, Hold, hold)
    assert (row.answer, row.answered_by_id) == (said, closing.decider.user_id)
    assert see(world, Call, call).state == (CallState.REFUSED if said == "deny" else CallState.CANCELED)
    late = says(world, hold, bob, "approve")
    assert isinstance(late, Closed) and late.answer == said


@pytest.mark.rule("A10")
def test_a_role_for_a_kind_holds_for_approving_denying_editing_and_running_again_and_not_for_stop() -> None:
    world = a_world()
    rules(world, roles={"destructive": "admin", "write": "author"})
    (olga,) = people(world, "olga")
    (vic,) = people(world, "vic", role=Role.AUTHOR)
    call, hold = a_held_call(world)
    for said in ("approve", "edit", "deny"):
        with pytest.raises(MayNot, match="is destructive this needs the role admin here; yours is operator"):
            says(world, hold, olga, said, "no")
    _, unknown = an_unknown_call(world)
    with pytest.raises(MayNot, match="is write this needs the role author"):
        says(world, unknown, olga, "again")
    assert isinstance(says(world, unknown, vic, "again"), Taken)
    assert says(world, hold, olga, "stop") == Taken(CallState.CANCELED)
    assert the_job(world, call).state == JobState.CANCELED


@pytest.mark.rule("A10")
@pytest.mark.parametrize("starter", [Starter.PERSON, Starter.API_KEY])
def test_who_started_a_job_also_through_a_key_approves_nothing_of_it(starter: Starter) -> None:
    """CASES A19."""
    world = a_world()
    rules(world, no_self=True)
    (ann,) = people(world, "ann")
    call = a_call(world, "refund", starter=starter)
    hold = the_hold(world, call).pk
    own = person(world.person, "admin")
    for said in ("approve", "edit"):
        with pytest.raises(MayNot, match="does not let people approve their own"):
            says(world, hold, own, said)
    assert says(world, hold, ann, "approve") == Taken(CallState.QUEUED)
    other = the_hold(world, a_call(world, "refund", starter=starter)).pk
    assert isinstance(says(world, other, own, "deny", "changed my mind"), Taken)  # saying no to one's own is no danger


@pytest.mark.rule("A10")
@pytest.mark.rule("U6")
def test_run_it_again_counts_as_an_approval_only_where_policy_asks_and_then_needs_as_many() -> None:
    world = a_world()
    rules(world, approvers={"write": 2})
    ann, bob = people(world, "ann", "bob")
    free, plain = an_unknown_call(world)
    assert says(world, plain, ann, "again") == Taken(CallState.QUEUED)
    asked, hold = an_unknown_call(world)
    a_policy(world, a_rule("careful", "ask", function="note"))
    assert says(world, hold, ann, "again") == Counted(1, 2)
    assert see(world, Call, asked).state == CallState.UNKNOWN
    a_policy(world, a_rule("careful", "ask", function="note", title="more careful"))  # another rule: Ann's is void
    assert says(world, hold, bob, "again") == Counted(1, 2)
    carl = people(world, "carl")[0]
    assert says(world, hold, carl, "again") == Taken(CallState.QUEUED)
    assert an_order(world, asked).number == 2
    assert free


@pytest.mark.rule("A10")
def test_an_approval_counts_only_while_whoever_gave_it_still_may() -> None:
    world = a_world()
    rules(world, approvers={"destructive": 2})
    ann, bob = people(world, "ann", "bob")
    _, hold = a_held_call(world)
    says(world, hold, ann, "approve")
    with db.write(world.tenant):
        Membership.objects.filter(user_id=ann.decider.user_id).update(role=Role.VIEWER)
    assert says(world, hold, bob, "approve") == Counted(1, 2)
    own = person(world.person, "admin")
    rules(world, approvers={"destructive": 2}, no_self=True)
    with pytest.raises(MayNot):
        says(world, hold, own, "approve")
    (carl,) = people(world, "carl")
    assert says(world, hold, carl, "approve") == Taken(CallState.QUEUED)


@pytest.mark.rule("A8")
@pytest.mark.rule("A10")
def test_an_approval_of_one_of_two_does_not_keep_the_question_from_expiring(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    rules(world, approvers={"destructive": 2})
    ann, bob = people(world, "ann", "bob")
    call, hold = a_held_call(world)
    says(world, hold, ann, "approve")
    move_clock(timedelta(hours=24, seconds=1))
    late = says(world, hold, bob, "approve")
    assert isinstance(late, Closed) and late.state == HoldState.EXPIRED
    swept(lose_nodes=False)
    assert see(world, Call, call).state == CallState.REFUSED


@pytest.mark.rule("A10")
@pytest.mark.rule("A12")
def test_the_rules_are_audited_refused_when_odd_and_read_with_caution() -> None:
    world = a_world()
    rules(world, roles={"destructive": "author"}, approvers={"destructive": 2}, no_self=True)
    rules(world, roles={"destructive": "author"}, approvers={"destructive": 2}, no_self=True)
    with db.read(world.tenant):
        (entry,) = AuditEntry.objects.filter(verb="deciding.changed")
    assert entry.before["destructive"] == {"role": "operator", "approvers": 1}
    assert entry.after["destructive"] == {"role": "author", "approvers": 2} and entry.after["no_self_approval"]
    odd: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"read": "viewer"}, {}),
        ({"other": "admin"}, {}),
        ({}, {"read": 0}),
        ({}, {"read": 6}),
    ]
    for roles, approvers in odd:
        with pytest.raises(BadRules):
            rules(world, roles=roles, approvers=approvers)
    cautious = DecidingRules.read({"deciding": {"roles": {"read": "nobody"}, "approvers": {"read": "1"}}})
    assert (cautious.role("read"), cautious.needed("read")) == ("admin", 2)
    assert DecidingRules.read({"deciding": 7, "no_self_approval": "no"}).no_self_approval
    with db.read(world.tenant):
        assert Tenant.objects.get(pk=world.tenant).settings["no_self_approval"] is True
