"""What the policy says of a call: defaults, precedence, and how it leans when it cannot tell."""

import time
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.kinds import Kind
from catalog.rules.policy import (
    DEFAULTS,
    Allow,
    Ask,
    Facts,
    Needed,
    Policy,
    Refuse,
    Verdict,
    counts_needed,
    fit_of,
    judge,
    narrower,
    waits,
)
from catalog.rules.policy_explained import Part, explain, passed_over
from catalog.rules.policy_rules import oddities, read_rules
from catalog.rules.policy_words import conditions as in_words
from catalog.rules.rates import Of, Rate

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def call(kind: Kind = Kind.WRITE, **changed: Any) -> Facts:
    known: dict[str, Any] = {
        **{"tool": "billing", "function": "charge", "agent": "clerk", "starter": "person"},
        **{"open_world": False, "at": NOW, "arguments": {"amount": 100, "account": "A-77"}},
    }
    return Facts(kind=kind, **(known | changed))


def verdict(rules: Any, facts: Facts | None = None) -> Verdict:
    return judge(Policy.read(rules), facts or call())


def rule(effect: str, name: str = "r", **conditions: Any) -> dict[str, Any]:
    return {"id": name, "effect": effect, **conditions}


effects = st.sampled_from(["allow", "ask", "refuse"])
names = st.sampled_from(["*", "billing", "bill*", "other", "charge", "ch*e", "clerk"])
conditions = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3),
        "tool": names,
        "function": st.lists(names, min_size=1, max_size=2),
        "agent": names,
        "starter": st.sampled_from(["person", "api_key"]),
        "open_world": st.booleans(),
        "tainted": st.booleans(),
        "arguments": st.lists(
            st.fixed_dictionaries(
                {"path": st.sampled_from(["/amount", "/gone"]), "is": st.just("at_most"), "value": st.integers(0, 200)}
            ),
            max_size=2,
        ),
        "rate": st.just({"calls": 3, "seconds": 60}),
        "repeated": st.integers(2, 4),
    },
)
RATE = Rate(Of.TOOL, 3, 60)
rules = st.lists(st.tuples(effects, conditions), max_size=5).map(
    lambda found: [rule(effect, f"r{at}", **said) for at, (effect, said) in enumerate(found)]
)
calls = st.builds(
    call,
    st.sampled_from(list(Kind)),
    open_world=st.booleans(),
    tainted=st.booleans(),
    starter=st.sampled_from(["person", "api_key"]),
    arguments=st.fixed_dictionaries({"amount": st.integers(0, 200)}),
    full=st.sampled_from([{}, {RATE: NOW + timedelta(seconds=7)}]),
    repeats=st.integers(1, 5),
)


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("kind", "said", "name"),
    [
        (Kind.READ, Allow, "default-read"),
        (Kind.WRITE, Allow, "default-write"),
        (Kind.DESTRUCTIVE, Ask, "default-destructive"),
        (Kind.UNDECLARED, Ask, "default-undeclared"),
    ],
)
def test_without_rules_reads_and_writes_run_and_the_rest_waits(kind: Kind, said: type[Verdict], name: str):
    found = verdict([], call(kind))
    assert isinstance(found, said)
    assert found.rule.id == name


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("fits", "misses"),
    [
        ({"kind": "write"}, {"kind": ["read", "destructive"]}),
        ({"tool": "bill*"}, {"tool": "bill"}),
        ({"function": ["note", "charge"]}, {"function": "note"}),
        ({"agent": "cl*"}, {"agent": "auditor"}),
        ({"starter": "person"}, {"starter": ["api_key", "routine", "event"]}),
        ({"open_world": False}, {"open_world": True}),
        ({"tainted": False}, {"tainted": True}),
        (
            {"arguments": [{"path": "/amount", "is": "more_than", "value": 99}]},
            {"arguments": [{"path": "/amount", "is": "more_than", "value": 100}]},
        ),
    ],
)
def test_a_rule_looks_at_kind_tool_function_agent_starter_reach_taint_and_arguments(
    fits: dict[str, Any], misses: dict[str, Any]
):
    assert isinstance(verdict([rule("refuse", **fits)]), Refuse)
    assert isinstance(verdict([rule("refuse", **misses)]), Allow)


@pytest.mark.rule("A11")
@given(rules, calls, conditions)
def test_a_refusing_rule_that_fits_beats_every_other(others: list[Any], facts: Facts, said: dict[str, Any]):
    if isinstance(verdict([rule("refuse", "no", **said)], facts), Refuse):
        for at in range(len(others) + 1):
            assert isinstance(verdict([*others[:at], rule("refuse", "no", **said), *others[at:]], facts), Refuse)


@pytest.mark.rule("A11")
@given(rules, calls)
def test_an_exact_allow_beats_wider_asks_but_no_refusal(others: list[Any], facts: Facts):
    narrow = rule(
        "allow",
        "narrow",
        **{"kind": facts.kind, "tool": "billing", "function": "charge", "agent": "clerk", "starter": facts.starter},
        **{"open_world": facts.open_world, "tainted": facts.tainted},
    )
    wider = [other for other in others if not (other.get("arguments") or {"rate", "repeated"} & other.keys())]
    alone = [(other, verdict([other], facts)) for other in wider]
    fitting = [(other, said) for other, said in alone if said.rule.id == other["id"]]
    equal = [said for other, said in fitting if not narrower(*read_rules([narrow, other]))]
    found = verdict([*wider, narrow], facts)
    if any(isinstance(said, Refuse) for _, said in fitting):
        assert isinstance(found, Refuse)
    else:
        assert isinstance(found, Ask if any(isinstance(said, Ask) for said in equal) else Allow)


@pytest.mark.rule("A11")
def test_narrower_beats_wider_in_both_directions():
    asks = rule("ask", "wide", tool="billing")
    allows = rule("allow", "narrow", tool="billing", function="charge")
    assert isinstance(verdict([asks, allows]), Allow)
    assert isinstance(
        verdict([rule("allow", "wide", tool="billing"), rule("ask", "narrow", tool="bill*", function="charge")]), Ask
    )
    assert isinstance(verdict([rule("allow", "wide"), rule("ask", "narrow", tool="billing")]), Ask)


@pytest.mark.rule("A11")
def test_where_neither_rule_is_narrower_asking_wins():
    by_agent = rule("allow", "by-agent", agent="clerk")
    by_tool = rule("ask", "by-tool", tool="billing")
    for order in permutations([by_agent, by_tool]):
        found = verdict(list(order))
        assert isinstance(found, Ask)
        assert found.rule.id == "by-tool"


@pytest.mark.rule("A11")
@given(rules, calls, st.randoms(use_true_random=False))
def test_the_order_of_rules_names_the_rule_but_never_changes_the_answer(others: list[Any], facts: Facts, dice: Any):
    shuffled = list(others)
    dice.shuffle(shuffled)
    assert type(verdict(others, facts)) is type(verdict(shuffled, facts))


@given(conditions, conditions, calls)
def test_a_narrower_rule_fits_only_calls_the_wider_one_fits(one: dict[str, Any], other: dict[str, Any], facts: Facts):
    first, second = read_rules([rule("refuse", "one", **one), rule("refuse", "other", **other)])
    assert not (narrower(first, second) and narrower(second, first))
    if narrower(first, second) and isinstance(judge(Policy((first,)), facts), Refuse):
        assert not isinstance(judge(Policy((second,)), facts), Allow) or facts.kind in (
            Kind.DESTRUCTIVE,
            Kind.UNDECLARED,
        )
        assert isinstance(judge(Policy((second,)), facts), Refuse)


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    "odd",
    [
        "nonsense",
        {"id": "r", "effect": "permit"},
        {"id": "r"},
        {"id": "r", "effect": "allow", "kind": "reading"},
        {"id": "r", "effect": "allow", "tools": "billing"},
        {"id": "r", "effect": "allow", "tool": "bill?ng"},
        {"id": "r", "effect": "allow", "tool": []},
        {"id": "r", "effect": "allow", "starter": "cron"},
        {"id": "r", "effect": "allow", "tainted": "no"},
        {"id": "r", "effect": "allow", "arguments": {"path": "/amount"}},
        {"id": "r", "effect": "allow", "arguments": [{"path": "amount", "is": "equals", "value": 1}]},
        {"id": "r", "effect": "allow", "arguments": [{"path": "/amount", "is": "under", "value": 1}]},
        {"id": "r", "effect": "allow", "arguments": [{"path": "/amount", "is": "at_most", "value": "1"}]},
        {"id": "r", "effect": "allow", "until": "tomorrow"},
        {"id": "", "effect": "allow"},
        {"id": "r", "effect": "allow", "arguments": [{"path": "/sql", "is": "regex", "value": "(a"}]},
        {"id": "r", "effect": "allow", "arguments": [{"path": "/sql", "is": "regex", "value": "(?=a)a"}]},
        {"id": "r", "effect": "allow", "arguments": [{"path": "/sql", "is": "regex", "value": "a" * 1001}]},
        {"id": "r", "effect": "wait"},
        {"id": "r", "effect": "wait", "rate": {"calls": 0, "seconds": 60}},
        {"id": "r", "effect": "ask", "rate": {"calls": 1, "seconds": 60, "of": "agent"}},
        {"id": "r", "effect": "ask", "rate": {"calls": 1, "minutes": 1}},
        {"id": "r", "effect": "ask", "rate": "10/min"},
        {"id": "r", "effect": "allow", "rate": {"calls": 1, "seconds": 60}},
        {"id": "r", "effect": "ask", "repeated": 1},
        {"id": "r", "effect": "allow", "repeated": 5},
    ],
)
def test_a_rule_that_cannot_be_read_asks_and_no_allow_beats_it(odd: Any):
    narrow = rule("allow", "narrow", tool="billing", function="charge", agent="clerk", starter="person")
    found = verdict([narrow, odd])
    assert isinstance(found, Ask)
    assert "cannot be read" in found.rule.why
    assert oddities([odd])


@pytest.mark.rule("A2")
def test_what_can_be_read_of_an_odd_rule_still_narrows_it():
    odd = rule("permit", tool="shop")
    assert isinstance(verdict([odd]), Allow)
    assert isinstance(verdict([odd], call(tool="shop")), Ask)


@pytest.mark.rule("A2")
@pytest.mark.parametrize("policy", [None, "allow", {"rules": []}, 7, [{}] * 501])
def test_a_policy_that_is_no_list_of_rules_asks_for_everything(policy: Any):
    assert isinstance(verdict(policy, call(Kind.READ)), Ask)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["id", "effect", "tool", "arguments", "until", "x"]), inner, max_size=4)
        ),
        max_leaves=8,
    )
)
def test_reading_a_policy_never_fails_and_what_is_saved_reads_without_doubt(raw: Any):
    judge(Policy.read(raw), call())
    if not oddities(raw):
        assert all(not read.odd for read in read_rules(raw))


@pytest.mark.parametrize(
    ("effect", "said"),
    [("allow", Ask), ("ask", Ask), ("refuse", Ask)],
)
@pytest.mark.parametrize("arguments", [{"amount": [100]}, {"amount": "100"}, {"amount": None}, {"amount": True}])
def test_a_call_that_leaves_a_condition_open_is_asked_about(
    effect: str, said: type[Verdict], arguments: dict[str, Any]
):
    rules = [rule("ask", "all"), rule(effect, "small", arguments=[{"path": "/amount", "is": "at_most", "value": 500}])]
    assert isinstance(verdict(rules, call(arguments=arguments)), said)
    alone = verdict(rules[1:], call(arguments=arguments))
    assert isinstance(alone, Allow if effect == "allow" else Ask)
    assert effect != "allow" or alone.rule.id == "default-write"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"is": "equals", "value": 100}, True),
        ({"is": "differs", "value": 100}, False),
        ({"is": "at_least", "value": 100}, True),
        ({"is": "less_than", "value": 100}, False),
        ({"is": "one_of", "value": [1, 100]}, True),
        ({"is": "one_of", "value": [1, 2]}, False),
        ({"is": "present"}, True),
        ({"is": "absent"}, False),
        ({"path": "/to/0", "is": "matches", "value": "*@example.com"}, True),
        ({"path": "/to/1", "is": "absent"}, True),
        ({"path": "/a~1b", "is": "equals", "value": "slash"}, True),
        ({"path": "/to/0", "is": "contains", "value": "@example"}, True),
        ({"path": "/to/0", "is": "contains", "value": "@elsewhere"}, False),
        ({"path": "/to", "is": "contains", "value": "a@example.com"}, True),
        ({"path": "/to", "is": "contains", "value": "a@example"}, False),
        ({"path": "/to/0", "is": "regex", "value": "(?i)@EXAMPLE\\.(com|org)$"}, True),
        ({"path": "/to/0", "is": "regex", "value": "^b"}, False),
    ],
)
def test_each_way_to_compare_an_argument(condition: dict[str, Any], holds: bool):
    facts = call(arguments={"amount": 100, "to": ["a@example.com"], "a/b": "slash"})
    found = verdict([rule("refuse", arguments=[{"path": "/amount"} | condition])], facts)
    assert isinstance(found, Refuse if holds else Allow)


MISSING = {
    "equals": 100,
    "differs": 100,
    "at_most": 100,
    "at_least": 100,
    "less_than": 100,
    "more_than": 100,
    "one_of": [100],
    "contains": "a",
    "matches": "*",
    "regex": ".*",
}


@pytest.mark.rule("A2")
@pytest.mark.parametrize("effect", ["ask", "refuse"])
@pytest.mark.parametrize("way", MISSING)
def test_a_missing_argument_differs_from_every_value_and_satisfies_no_other_comparison(effect: str, way: str):
    for path in ("/gone", "/account/deep", "/account/0", "/list/7"):
        one = rule(effect, arguments=[{"path": path, "is": way, "value": MISSING[way]}])
        found = verdict([one], call(arguments={"account": "A-77", "list": []}))
        assert isinstance(found, Allow) is (way != "differs"), path
    left_out = rule(effect, arguments=[{"path": "/gone", "is": "absent"}])
    assert not isinstance(verdict([left_out]), Allow)


def test_an_expression_is_found_in_time_that_grows_with_the_text_and_not_with_its_traps():
    trap = rule("refuse", arguments=[{"path": "/text", "is": "regex", "value": "(a+)+(a|b)*(a+a+)+$"}])
    began = time.perf_counter()
    assert isinstance(verdict([trap], call(arguments={"text": "a" * 200_000 + "c"})), Allow)
    assert time.perf_counter() - began < 5  # an engine that goes back on its steps takes longer than the universe has


@pytest.mark.rule("A2")
@pytest.mark.parametrize(("effect", "said"), [("ask", Ask), ("refuse", Refuse)])
def test_a_rule_with_a_rate_holds_only_while_the_rate_is_full(effect: str, said: type[Verdict]):
    policy = Policy.read([rule(effect, tool="billing", rate={"calls": 3, "seconds": 60})])
    room, full = call(), call(full={RATE: NOW + timedelta(seconds=7)})
    assert counts_needed(policy, room) == Needed(frozenset({RATE}))
    assert counts_needed(policy, call(tool="shop")) == Needed()
    assert isinstance(judge(policy, room), Allow)
    assert isinstance(judge(policy, full), said)
    assert judge(policy, full).rule.why == "3 attempts of billing began within 60 s"
    assert waits(policy, full) is None


@pytest.mark.rule("A2")
def test_a_rule_that_waits_says_nothing_of_whether_and_keeps_a_call_until_the_last_full_rate_has_room():
    slow = rule("wait", "slow", tool="billing", rate={"calls": 3, "seconds": 60})
    slower = rule("wait", "slower", rate={"calls": 9, "seconds": 3600, "of": "tenant"})
    policy = Policy.read([slow, slower, rule("refuse", "no", function="drop")])
    assert waits(policy, call()) is None
    until = {RATE: NOW + timedelta(seconds=7), Rate(Of.TENANT, 9, 3600): NOW + timedelta(minutes=9)}
    found = waits(policy, call(full=until))
    assert found is not None
    assert (found.rule.id, found.until) == ("slower", NOW + timedelta(minutes=9))
    assert judge(policy, call(full=until)).rule.id == "default-write"
    assert isinstance(judge(policy, call(function="drop", full=until)), Refuse)


@pytest.mark.rule("A2")
def test_the_same_call_asked_for_too_often_in_a_job_asks():
    policy = Policy.read([rule("allow", "all"), rule("ask", "loop", repeated=3)])
    assert counts_needed(policy, call()) == Needed(repeats=True)
    assert [type(judge(policy, call(repeats=count))) for count in (1, 2, 3, 9)] == [Allow, Allow, Ask, Ask]
    assert "asked for this same call 3 times" in judge(policy, call(repeats=3)).rule.why


@given(rules, calls)
def test_what_is_told_of_a_verdict_is_the_verdict_and_every_rule_has_its_part(others: list[Any], facts: Facts):
    policy = Policy.read([*others, rule("wait", "slow", rate={"calls": 3, "seconds": 60})])
    told = explain(policy, facts)
    assert (told.verdict, told.wait) == (judge(policy, facts), waits(policy, facts))
    assert [one.rule for one in told.told[: len(policy.rules)]] == list(policy.rules)
    assert [one.rule.id for one in told.told if one.part is Part.DECIDES] == [told.verdict.rule.id]
    for one in told.told:
        assert one.why
        assert (one.part is Part.PASSED) == (fit_of(one.rule, facts) is None) == bool(passed_over(one.rule, facts))
        in_words(one.rule)
    assert len(told.told) == len(policy.rules) or told.verdict.rule.id in {one.id for one in DEFAULTS}


def test_why_a_rule_was_passed_over_is_a_sentence_of_its_first_condition_that_does_not_hold():
    said = {
        "It is for tool shop; this call's is billing.": rule("ask", tool="shop"),
        "/gone is left out, and the rule wants /gone > 5.": rule(
            "ask", arguments=[{"path": "/gone", "is": "more_than", "value": 5}]
        ),
        "It does not hold that /amount > 500.": rule(
            "ask", arguments=[{"path": "/amount", "is": "more_than", "value": 500}]
        ),
        "It ended on 2026-11-29 11:00 UTC.": rule("ask", until=(NOW - timedelta(hours=1)).isoformat()),
        "The job asked for this same call 1 of 5 times.": rule("ask", repeated=5),
    }
    assert [passed_over(read_rules([one])[0], call()) for one in said.values()] == list(said)
    told = explain(Policy.read([rule("ask", "wide"), rule("allow", "narrow", tool="billing")]), call())
    assert [one.why for one in told.told] == ["It fits, but “narrow” is narrower.", "Every condition of it holds."]


@pytest.mark.rule("A11")
def test_a_rule_with_an_end_counts_until_then():
    always = rule("allow", tool="billing", until=(NOW + timedelta(seconds=1)).isoformat())
    assert verdict([always], call(Kind.DESTRUCTIVE)).rule.id == "r"
    late = call(Kind.DESTRUCTIVE, at=NOW + timedelta(seconds=1))
    assert verdict([always], late).rule.id == "default-destructive"


def test_the_named_rules_digest_is_of_its_content_without_its_id():
    first = verdict([rule("ask", "one", tool="billing")]).rule
    renamed = verdict([rule("ask", "two", tool="billing")]).rule
    edited = verdict([rule("ask", "one", tool="bill*")]).rule
    moved = verdict([rule("allow", "zero", kind="read"), rule("ask", "one", tool="billing")]).rule
    assert first.digest == renamed.digest == moved.digest
    assert first.digest != edited.digest
    assert len(first.digest) == 64


def test_a_policy_with_two_rules_of_one_id_cannot_be_saved():
    assert oddities([rule("ask", "a"), rule("allow", "a")]) == ("rule 2 (a): another rule before it has this id",)
