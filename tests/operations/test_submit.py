"""What becomes of a call the moment it is asked for."""

from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Agent, Listing, Scope
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Job, Starter
from jobs.operations import intake, turns
from jobs.operations.bodies import LARGE, arguments_of
from jobs.rules.states import CallState, HoldKind, JobState
from jobs.rules.turns import TurnAnswer
from jobs.rules.why import Why
from tenants.operations import vault
from tests.builders import (
    World,
    a_call,
    a_job,
    a_person,
    a_policy,
    a_rule,
    a_switch,
    a_turn,
    a_world,
    an_order,
    see,
    the_hold,
    told,
)
from tests.races import Pause, Side

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.rule("A2")
def test_reads_and_writes_are_queued_and_what_is_destructive_or_undeclared_asks() -> None:
    """CASES A27."""
    world = a_world()
    calls = a_turn(world, a_job(world), "look", "note", "charge", "refund", "export")
    rows = [see(world, Call, call) for call in calls]
    assert [row.state for row in rows] == [CallState.QUEUED] * 3 + [CallState.HELD] * 2
    assert [row.kind for row in rows] == ["read", "write", "write", "destructive", "undeclared"]


@pytest.mark.rule("A2")
@pytest.mark.rule("U9")
def test_what_the_policy_refuses_is_over_at_once_and_told_as_the_policys() -> None:
    world = a_world()
    a_policy(world, a_rule("no-notes", "refuse", function="note"))
    job = a_job(world)
    (call,) = a_turn(world, job, "note")
    row = see(world, Call, call)
    assert (row.state, row.reason, row.rule_id) == (CallState.REFUSED, Why.POLICY_REFUSES, "no-notes")
    assert "policy" in told(world, call)
    a_turn(world, job, say="I could not.")


@pytest.mark.rule("A2")
def test_a_rule_that_cannot_be_read_asks() -> None:
    """CASES A27: an unknown value of a rule asks."""
    world = a_world()
    a_policy(world, a_rule("odd", "perhaps", function="look"))
    call = a_call(world, "look")
    assert see(world, Call, call).state == CallState.HELD


@pytest.mark.rule("L7")
@pytest.mark.parametrize(("scope", "target"), [(Scope.TOOL, "shop"), (Scope.FUNCTION, "shop.note")])
def test_under_a_switch_new_calls_are_refused_and_the_job_goes_on(scope: Scope, target: str) -> None:
    world = a_world()
    job = a_job(world)
    a_switch(world, scope, target)
    (call,) = a_turn(world, job, "note")
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.REFUSED, Why.KILL_SWITCH)
    assert "kill switch" in told(world, call)
    a_turn(world, job, say="The shop is closed.")
    assert see(world, Job, job).state == JobState.COMPLETED


@pytest.mark.rule("A3")
def test_a_held_call_has_a_card_with_the_rule_its_version_and_its_end() -> None:
    world = a_world()
    a_policy(world, a_rule("ask-notes", "ask", function="note", title="Notes are read by a person"))
    call = a_call(world, "note", {"text": "hello"})
    hold = the_hold(world, call)
    assert (hold.kind, hold.rule_id, hold.policy_number) == (HoldKind.APPROVE, "ask-notes", 1)
    assert "Notes are read by a person" in hold.why
    assert hold.expires_at is not None and hold.expires_at > hold.opened_at
    assert see(world, Call, call).arguments == {"text": "hello"}


@pytest.mark.rule("A3")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "$: 'order' is a required property"),
        ({"order": "seven"}, "$.order"),
        ({"order": 2**53}, "$.order"),
        ('{"order": 1, "order": 2}', "$.order"),
        ('{"order": NaN}', "$.order"),
        ('{"order": "\\ud800"}', "$.order"),
        ('{"order": 1, "by": "a\\u0000b"}', "$.by"),
        ('{"order": 1', "not JSON"),
        ("[1]", "must be an object"),
        ({"order": 1, "tag": {"deep": [1, {"key": 2**60}]}}, "$.tag.deep[1].key"),
    ],
)
def test_arguments_that_do_not_fit_end_the_call_before_any_card_and_name_the_path(arguments: Any, named: str) -> None:
    world = a_world()
    a_policy(world, a_rule("ask-all", "ask", tool="shop"))
    job = a_job(world)
    (call,) = a_turn(world, job, ("ship", arguments))
    row = see(world, Call, call)
    assert (row.state, row.reason) == (CallState.ERRORED, Why.BAD_ARGUMENTS)
    assert named in row.detail
    assert told(world, call) == f"This call was not made: {row.detail}"
    with db.read(world.tenant):
        assert not row.holds.exists()
    a_turn(world, job, say="I see.")


def test_a_function_of_no_such_name_is_an_error_that_lists_those_there_are() -> None:
    world = a_world()
    row = see(world, Call, a_call(world, "rob\0bery"))
    assert (row.state, row.reason) == (CallState.ERRORED, Why.NO_SUCH_FUNCTION)
    assert "shop__charge" in row.detail
    assert "Never listed" not in row.detail


def test_a_function_of_a_tool_that_was_never_listed_is_an_error_that_names_the_tool() -> None:
    world = a_world()
    with db.write(world.tenant):
        Listing.objects.update(current=False)
    row = see(world, Call, a_call(world, "charge"))
    assert (row.state, row.reason) == (CallState.ERRORED, Why.NO_SUCH_FUNCTION)
    assert "there are: none. Never listed, as its server could not be started or reached: shop" in row.detail


def test_the_canonical_arguments_are_what_is_kept_digested_and_sent() -> None:
    world = a_world()
    written, plain = a_turn(
        world, a_job(world), ("ship", '{"weight": 1.50, "order": 7.0}'), ("ship", {"order": 7, "weight": 1.5})
    )
    order = an_order(world, written)
    assert order.arguments == {"order": 7, "weight": 1.5}
    assert isinstance(order.arguments["order"], int)
    assert see(world, Call, written).args_digest == see(world, Call, plain).args_digest


def test_large_arguments_are_kept_in_a_body_and_sent_whole() -> None:
    world = a_world()
    large = {"text": "é" * LARGE}
    call = a_call(world, "note", large)
    row = see(world, Call, call)
    assert row.arguments is None
    with db.read(world.tenant):
        assert arguments_of(row) == large
    assert an_order(world, call).arguments == large


@pytest.mark.rule("K2")
@pytest.mark.rule("K7")
def test_each_call_of_a_job_has_its_own_key_whatever_its_arguments_say() -> None:
    """CASES R01, R22: two calls alike are two calls, and no argument is the key."""
    world = a_world()
    job = a_job(world)
    calls = a_turn(world, job, ("note", {"oz0/idempotency_key": "mine"}), ("note", {}), ("note", {}))
    keys = [see(world, Call, call).key for call in calls]
    prefix, _, first = keys[0].rpartition("/")
    assert keys == [f"{prefix}/{n}" for n in (1, 2, 3)]
    assert (first, prefix.startswith("job_")) == ("1", True)


@pytest.mark.rule("U5")
@pytest.mark.parametrize(
    ("starter", "on_unknown"),
    [(Starter.PERSON, "ask"), (Starter.API_KEY, "fail"), (Starter.ROUTINE, "fail"), (Starter.EVENT, "fail")],
)
def test_who_started_a_job_decides_what_an_unknown_outcome_does_unless_the_agent_says(
    starter: Starter, on_unknown: str
) -> None:
    world = a_world()
    assert see(world, Job, a_job(world, starter=starter)).on_unknown == on_unknown
    says = a_world("other", on_unknown="ask" if on_unknown == "fail" else "fail")
    assert see(says, Job, a_job(says, starter=starter)).on_unknown != on_unknown


@pytest.mark.parametrize(
    ("agent", "given", "why"),
    [
        ("nobody", {}, "there is no agent named 'nobody'"),
        ("clerk", {"city": "Bergen"}, "no input named 'city'"),
    ],
)
def test_a_job_that_cannot_start_says_why(agent: str, given: dict[str, Any], why: str) -> None:
    world = a_world()
    with pytest.raises(intake.CannotStart, match=why):
        intake.start_job(
            tenant=world.tenant, agent=agent, given=given, starter=Starter.PERSON, person=world.person, title=""
        )


def start(world: World, **more: Any) -> UUID:
    """Start the clerk, as the world's person where nothing else is said."""
    named = {"given": {}, "starter": Starter.PERSON, "person": world.person, "start_key": "form 1"} | more
    return intake.start_job(tenant=world.tenant, agent="clerk", **named)


def test_one_start_key_of_one_starter_starts_one_job() -> None:
    """CASES R01, of a start's key."""
    world, other = a_world(), a_world("other")
    first = start(world)
    assert start(world) == first
    assert start(world, start_key="") != start(world, start_key="")
    further = [
        start(world, start_key="form 2"),
        start(world, person=None),
        start(world, person=None, starter=Starter.API_KEY),
        start(world, person=a_person(world.tenant, "ann")),
        start(other),
    ]
    assert len({first, *further}) == 6
    assert start(world, person=None) == further[1]


COMPOSED, DECOMPOSED = "\u00e9", "e\u0301"


@pytest.mark.parametrize(
    ("given", "title", "same"),
    [
        ({"n": 1, "text": COMPOSED}, "October", True),
        ({"text": COMPOSED, "n": 1.0}, "October", True),
        ({"n": 1, "text": COMPOSED, "size": 2}, "October", True),
        ({"n": 2, "text": COMPOSED}, "October", False),
        ({"n": "1", "text": COMPOSED}, "October", False),
        ({"n": 1, "text": DECOMPOSED}, "October", False),
        ({"n": 1, "text": COMPOSED, "size": 3}, "October", False),
        ({"n": 1}, "October", False),
        ({"n": 1, "text": COMPOSED}, "November", False),
    ],
    ids=["same", "reordered", "a default", "value", "type", "decomposed", "no default", "left out", "title"],
)
def test_a_start_key_that_comes_with_something_else_starts_nothing_and_is_not_answered_with_the_first_job(
    given: dict[str, Any], title: str, same: bool
) -> None:
    """CASES R11, of a form's key; also once the job's own input has changed, as it continued as new."""
    world = a_world()
    spec = AgentSpec("clerk", model="rehearsal", functions=("shop.*",), input={"n": 0, "text": "", "size": 2})
    with db.write(world.tenant):
        Agent.objects.update(definition=as_json(spec))
    first = start(world, given={"n": 1, "text": COMPOSED}, title="October")
    for _ in ("as it was started", "after it continued as new"):
        if same:
            assert start(world, given=given, title=title) == first
        else:
            with pytest.raises(intake.StartedOtherwise, match=ids.show(ids.JOB, first)):
                start(world, given=given, title=title)
        order = turns.start(tenant=world.tenant, job_id=first, node_id=world.node)
        if order is not None:
            anew = TurnAnswer(say="", continues={"n": 7})
            turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=anew)
    with db.read(world.tenant):
        assert [job.input["n"] for job in Job.objects.all()] == [7]


def test_a_start_key_knows_its_input_again_where_the_vaults_values_were_taken_out_of_it() -> None:
    world = a_world()
    spec = AgentSpec("clerk", model="rehearsal", functions=("shop.*",), input={"key": "", "note": ""})
    with db.write(world.tenant):
        Agent.objects.update(definition=as_json(spec))
        vault.put("connection crm", "sk-live-0123456789")
    given, title = {"key": "sk-live-0123456789"}, "with sk-live-0123456789"
    first = start(world, given=given, title=title)
    assert "sk-live" not in str(see(world, Job, first).input), "the control: it was taken out"
    assert start(world, given=given, title=title) == first
    for other in ({"given": {"key": "sk-live-9876543210"}}, {"given": given | {"note": "x"}}, {"title": "else"}):
        with pytest.raises(intake.StartedOtherwise):
            start(world, **{"given": given, "title": title} | other)
    with db.read(world.tenant):
        assert Job.objects.count() == 1


def test_two_starts_of_one_key_at_once_start_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES R19, of a start's key."""
    world = a_world()
    looked = Pause(monkeypatch, intake, "_started_with", after=True, holds=2)
    sides = [Side(lambda: start(world)).start() for _ in range(2)]
    looked.reached()
    looked.reached()
    looked.go()
    assert sides[0].join() == sides[1].join()
    with db.read(world.tenant):
        assert Job.objects.count() == 1


def test_a_job_of_an_agent_whose_kept_file_cannot_be_read_says_so_and_does_not_start() -> None:
    world = a_world()
    with db.write(world.tenant):
        Agent.objects.update(definition={"name": "clerk"})
    with pytest.raises(intake.CannotStart, match="load its plugin again"):
        start(world)
