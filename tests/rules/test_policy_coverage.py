"""What a policy comes to for the functions there are: who waits and why, what no rule names, and the way out."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.kinds import Kind, undeclared
from catalog.rules.policy import Allow, Ask, Facts, Policy, Refuse, judge
from catalog.rules.policy_coverage import Entry, Outlook, cover
from catalog.rules.policy_fixes import Way, fixes, why
from tests.rules.test_policy import conditions, effects

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
CHARGE = Entry("billing", "charge", Kind.WRITE, False)
DROP = Entry("billing", "drop", Kind.DESTRUCTIVE, True)
ODD = Entry("shop", "odd", Kind.UNDECLARED, True)
LOOK = Entry("shop", "look", Kind.READ, False)
EVERY = [CHARGE, DROP, ODD, LOOK]


def rule(effect: str, name: str = "r", **said: Any) -> dict[str, Any]:
    return {"id": name, "effect": effect, **said}


def look(entry: Entry, *rules: Any) -> Outlook:
    return cover(Policy.read(list(rules)), [entry], ["clerk"], NOW).outlooks[0]


def test_without_rules_the_defaults_decide_and_no_function_is_named():
    found = cover(Policy(), EVERY, [], NOW)
    assert [outlook.waits for outlook in found.outlooks] == [False, True, True, False]
    assert found.unnamed == found.outlooks


@pytest.mark.rule("A2")
@given(
    st.lists(st.tuples(effects, conditions), max_size=4),
    st.sampled_from(EVERY),
    st.booleans(),
    st.sampled_from(["person", "api_key"]),
    st.integers(0, 200),
    st.booleans(),
)
def test_where_nothing_is_told_of_some_calls_every_call_fares_as_was_told(
    said: list[Any], entry: Entry, tainted: bool, starter: str, amount: int, full: bool
):
    policy = Policy.read([rule(effect, f"r{at}", **more) for at, (effect, more) in enumerate(said)])
    outlook = cover(policy, [entry], ["clerk"], NOW).outlooks[0]
    one = Facts(entry.kind, entry.tool, entry.function, "clerk", starter, entry.open_world, NOW, tainted)
    rates = {read.rate: NOW for read in policy.rules if read.rate} if full else {}
    facts = Facts(
        **{name: getattr(one, name) for name in one.__slots__} | {"arguments": {"amount": amount}, "full": rates}
    )
    if not outlook.sometimes:
        assert type(judge(policy, facts)) is type(outlook.verdict)
    if isinstance(outlook.verdict, Refuse):
        assert isinstance(judge(policy, facts), Refuse)


def test_what_only_a_call_has_makes_a_rule_hold_sometimes():
    big = rule("ask", "big", tool="billing", arguments=[{"path": "/amount", "is": "more_than", "value": 100}])
    assert [one.id for one in look(CHARGE, big).sometimes] == ["big"]
    assert look(CHARGE, big).may_wait and not look(CHARGE, big).waits
    assert look(CHARGE, big, rule("allow", "ours", tool="billing", function="charge")).verdict.rule.id == "ours"
    mine = rule("allow", "mine", tool="billing", agent="clerk")
    assert look(DROP, mine).waits
    assert [one.id for one in look(DROP, mine).sometimes] == ["mine"]
    assert not look(DROP, mine, rule("refuse", "no")).sometimes
    slow = rule("wait", "slow", rate={"calls": 1, "seconds": 1})
    assert (look(LOOK, slow).sometimes, look(LOOK, slow).named) == ((), False)


def test_a_rule_that_is_about_nothing_says_why():
    rules = [
        rule("ask", "gone-tool", tool="biling"),
        rule("ask", "gone-function", tool="billing", function="chrage"),
        rule("ask", "gone-agent", agent="nobody"),
        rule("ask", "over", until=(NOW - timedelta(days=1)).isoformat()),
        rule("ask", "never", tool="shop", kind="destructive"),
        rule("ask", "fine", tool="billing"),
    ]
    found = cover(Policy.read(rules), EVERY, ["clerk"], NOW)
    assert [reach.idle for reach in found.reaches] == [
        "there is no tool biling",
        "its tool has no function chrage",
        "there is no agent nobody",
        "it ended on 2026-11-28",
        "no function is all that it asks for",
        "",
    ]
    assert found.reaches[5].functions == 2
    assert cover(Policy.read(rules), [], [], NOW).reaches[0].idle == "the catalog lists no function yet"


def test_what_a_call_passes_by_leaving_it_out_is_named():
    big = rule("refuse", "big", arguments=[{"path": "/amount", "is": "more_than", "value": 100}])
    none = rule("ask", "none", arguments=[{"path": "/amount", "is": "absent"}])
    unlike = rule("ask", "unlike", arguments=[{"path": "/to", "is": "differs", "value": "us"}])
    assert [reach.slips for reach in cover(Policy.read([big, unlike]), EVERY, [], NOW).reaches] == [("/amount",), ()]
    assert [reach.slips for reach in cover(Policy.read([big, none]), EVERY, [], NOW).reaches] == [(), ()]


@pytest.mark.rule("C4")
def test_what_holds_a_function_is_said_with_what_to_paste():
    trouble = undeclared({})
    outlook = look(ODD)
    assert "it has no annotations" in why(outlook, trouble)
    ways = fixes(Policy(), outlook, trouble, NOW)
    assert [fix.way for fix in ways] == [Way.DECLARE, Way.RULE]
    assert "read_only_hint=True" in ways[0].paste
    unapproved = undeclared({}, trusted=False)
    assert [fix.way for fix in fixes(Policy(), outlook, unapproved, NOW, trusted=False)] == [Way.APPROVE, Way.RULE]
    assert "may destroy" in why(look(DROP), None)


@pytest.mark.parametrize(
    "holds",
    [
        [],
        [rule("ask", "all")],
        [rule("ask", "all", tool="billing", open_world=True)],
        [rule("ask", "all", kind=["write", "destructive"])],
    ],
)
def test_the_rule_to_paste_lets_the_function_run(holds: list[Any]):
    outlook = look(DROP, *holds)
    assert isinstance(outlook.verdict, Ask)
    (fix,) = fixes(Policy.read(holds), outlook, None, NOW)
    assert fix.way is Way.RULE
    assert isinstance(look(DROP, *holds, json.loads(fix.paste)).verdict, Allow)
    assert not isinstance(look(DROP, *holds, json.loads(fix.paste), rule("refuse", "no")).verdict, Allow)


def test_where_no_rule_can_stand_over_it_the_rule_itself_is_to_be_changed():
    exact = [rule("ask", "exact", tool="billing", function="drop")]
    assert [fix.way for fix in fixes(Policy.read(exact), look(DROP, *exact), None, NOW)] == [Way.MEND]
    odd = [rule("perhaps", "odd", tool="billing")]
    (fix,) = fixes(Policy.read(odd), look(DROP, *odd), None, NOW)
    assert (fix.way, "effect is one of" in fix.says) == (Way.MEND, True)
    assert "cannot be read" in why(look(DROP, *odd), None)
