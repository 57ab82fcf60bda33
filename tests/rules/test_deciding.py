"""Who may decide, and what "always allow" would allow, as rules alone (RULES A10, A11)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.rules import always, answers
from approvals.rules.always import About, Chosen
from approvals.rules.answers import Stand
from approvals.rules.deciding import ROLES, Decider, DecidingRules, Question, why_not_decide
from catalog.rules.conditions import Is
from catalog.rules.kinds import Kind
from catalog.rules.policy import Allow, Facts, Policy, judge
from catalog.rules.policy_rules import oddities
from jobs.rules.states import HoldKind

NOW = datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)
ANSWERS = ("approve", "edit", "deny", "stop", "happened", "again")


@pytest.mark.rule("A10")
@given(
    role=st.sampled_from(["viewer", *ROLES]),
    least=st.sampled_from(ROLES),
    own=st.booleans(),
    no_self=st.booleans(),
    kind=st.sampled_from([HoldKind.APPROVE, HoldKind.RETRY, HoldKind.UNKNOWN]),
    said=st.sampled_from(ANSWERS),
)
def test_nobody_below_the_least_role_and_nobody_who_started_it_lets_a_call_run(
    role: str, least: str, own: bool, no_self: bool, kind: HoldKind, said: str
) -> None:
    rules = DecidingRules({"destructive": least}, {}, no_self)
    question = Question(kind, 7 if own else 8, "destructive", rules)
    why = why_not_decide(Decider(7, role), question, said)
    lets_run = said in ("approve", "edit", "again")
    if lets_run and (role == "viewer" or ROLES.index(role) < ROLES.index(least) or (own and no_self)):
        assert why
    if role in ROLES and said in ("stop", "happened"):
        assert why is None
    if role == "admin" and not (own and no_self and lets_run):
        assert why is None


def about(asking: dict[str, Any] | None, **arguments: Any) -> About:
    """A destructive call of shop.refund by the clerk, and the rule that asked."""
    return About("destructive", "shop", "refund", "clerk", arguments, asking)


def facts(agent: str = "clerk", function: str = "refund", at: datetime = NOW, **arguments: Any) -> Facts:
    """A call as the policy looks at it."""
    return Facts(Kind.DESTRUCTIVE, "shop", function, agent, "person", True, at, arguments=arguments)


CONDITION = {"path": "/amount", "is": Is.AT_LEAST.value, "value": 10}


@pytest.mark.rule("A11")
@pytest.mark.parametrize("this_agent", [True, False])
@pytest.mark.parametrize("pins", [(), ("/amount",), ("/amount", "/to"), ("/gone",)])
@pytest.mark.parametrize(
    "asking",
    [
        None,
        {"id": "a", "effect": "ask", "kind": "destructive"},
        {"id": "a", "effect": "ask", "tool": "sh*", "agent": ["clerk", "temp"], "starter": "person"},
        {"id": "a", "effect": "ask", "arguments": [CONDITION], "open_world": True},
    ],
)
def test_the_rule_allows_the_call_it_is_made_from_and_nothing_wider_than_the_rule_that_asked(
    asking: dict[str, Any] | None, pins: tuple[str, ...], this_agent: bool
) -> None:
    given = {"amount": 20, "to": "A-1", "lines": [1]}
    chosen = Chosen(this_agent, pins, 7)
    rule = always.rule_of(about(asking, **given), chosen, until=always.end_of(chosen, NOW), taken=["a"])
    rules = [*([asking] if asking else []), rule]
    assert oddities(rules) == ()
    policy = Policy.read(rules)
    assert isinstance(judge(policy, facts(**given)), Allow)
    assert isinstance(judge(policy, facts(at=NOW + timedelta(days=7), **given)), Allow) is False
    others = [facts(function="export", **given), facts(agent="stranger", **given)]
    assert not isinstance(judge(policy, others[0]), Allow)
    if this_agent:
        assert not isinstance(judge(policy, others[1]), Allow)
    if "/amount" in pins:
        assert not isinstance(judge(policy, facts(amount=21, to="A-1")), Allow)
    refused = Policy.read([*rules, {"id": "no", "effect": "refuse", "function": "refund"}])
    assert not isinstance(judge(refused, facts(**given)), Allow)


@pytest.mark.rule("A11")
def test_it_has_an_id_of_its_own_and_no_rule_that_counts_is_beaten() -> None:
    chosen = Chosen(True, (), 1)
    first = always.rule_of(about(None), chosen, until=NOW, taken=[])
    second = always.rule_of(about(None), chosen, until=NOW, taken=[first["id"]])
    assert (first["id"], second["id"]) == ("always-shop-refund", "always-shop-refund-2")
    assert always.why_not(about({"id": "a", "effect": "ask", "repeated": 3}))
    assert not always.why_not(about({"id": "a", "effect": "ask"}))
    assert [pin.path for pin in always.pins({"a/b": 1, "c~d": "x", "list": [], "none": None})] == ["/a~1b", "/c~0d"]


@pytest.mark.rule("A10")
def test_each_answer_says_how_many_more_must_approve() -> None:
    alone, first, last = (answers.of_one(Stand(HoldKind.APPROVE, have=have, needed=n))[0].does for have, n in _STANDS)
    assert alone == "Exactly these arguments run, once, after policy is judged again."
    assert first.startswith("It does not run yet: then 1 of 3 approved: 2 more people must approve")
    assert last.startswith("You are approval 3 of 3. Exactly these arguments run")
    acted = answers.of_one(Stand(HoldKind.RETRY, acted=True))
    assert [option.answer for option in acted] == ["approve", "edit", "deny", "stop"] and acted[1].why_not


_STANDS = ((0, 1), (0, 3), (2, 3))
