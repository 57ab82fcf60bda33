"""What a definition costs, which to drop, and the finding of a budget that is passed."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base import tokens
from catalog.rules.agents import AgentSpec, Limits
from catalog.rules.budgets import (
    AgentCost,
    agent_finding,
    long_findings,
    plugin_finding,
    with_repeats,
)
from catalog.rules.budgets import agent_cost as cost_of
from catalog.rules.estimates import Cost, Definition, as_sent, drop_to_fit, estimate, shared
from catalog.rules.grants import model_name
from catalog.rules.platform import DISCOVERY, skill_definition
from catalog.rules.skills import IndexLine

INDEX = (IndexLine("shop/bill", "How to bill.", granted=True, manual_of=("shop",)),)
TITLE: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}}


def a_definition(name: str = "shop__look", says: str = "Looks.", schema: dict[str, Any] | None = None) -> Definition:
    return Definition(name, says, schema or TITLE)


def an_agent(**more: Any) -> AgentSpec:
    limits = Limits(tool_tokens=more.pop("budget", 8_000))
    return AgentSpec("clerk", model="rehearsal", limits=limits, file="agents/clerk.yaml", **more)


def agent_cost(agent: AgentSpec, granted: dict[str, Definition], index: tuple[IndexLine, ...] = ()) -> AgentCost:
    counted = dict(zip(granted, estimate(list(granted.values())), strict=True))
    return with_repeats(cost_of(agent, counted, index=index), list(granted.values()))


@pytest.mark.rule("T1")
def test_exactly_the_name_the_description_and_the_input_schema_are_counted_as_compact_json() -> None:
    assert as_sent(a_definition()) == (
        '{"name":"shop__look","description":"Looks.",'
        '"input_schema":{"properties":{"title":{"type":"string"}},"type":"object"}}'
    )
    assert as_sent(a_definition(says="見る")) == as_sent(a_definition()).replace("Looks.", "見る")
    assert estimate([a_definition()]) == tokens.counts([as_sent(a_definition())])


@pytest.mark.rule("T1")
@pytest.mark.parametrize(
    "more",
    [
        {"anyOf": [{"type": "object", "properties": {f"field_{n}": {"type": "string"}}} for n in range(200)]},
        {"properties": {"kind": {"enum": [f"kind number {n}" for n in range(200)]}}},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"title": "A thing", "default": "some default"}}},
        {"properties": {"a": {"type": "string", "title": "The title", "default": "the default", "examples": ["one"]}}},
    ],
    ids=["anyOf", "enum", "$ref and $defs", "title and default"],
)
def test_no_part_of_a_schema_is_left_out(more: dict[str, Any]) -> None:
    """CASES C07."""
    plain, whole = estimate([a_definition(), a_definition(schema=TITLE | {"not": more})])
    assert whole - plain >= tokens.counts([str(more)])[0] * 0.6


@pytest.mark.rule("T1")
@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("日本語で書かれた長い説明です。" * 20, 120, 260),
        ("🙂🚀" * 50, 100, 300),
        ("aGVsbG8gd29ybGQ=" * 40, 250, 500),
        ("    if x:\n        return y\n" * 40, 250, 500),
        ("<|endoftext|>", 3, 20),
        ("\ud800 alone", 2, 6),
        ("", 0, 0),
    ],
    ids=["japanese", "emoji", "base64", "code", "a reserved word", "a lone surrogate", "nothing"],
)
def test_any_content_is_counted_and_none_is_guessed_by_its_length(text: str, least: int, most: int) -> None:
    """CASES C06."""
    assert least <= tokens.counts([text])[0] <= most


def test_a_thousand_definitions_are_counted_in_half_a_second() -> None:
    many = [a_definition(f"shop__look_{n}", "Looks at the shelf and tells what is there. " * 10) for n in range(1000)]
    estimate(many[:1])
    began = time.perf_counter()
    estimate(many)
    assert time.perf_counter() - began < 0.5


@given(st.lists(st.integers(1, 3_000), max_size=40), st.integers(0, 20_000))
def test_what_is_dropped_makes_it_fit_and_no_one_of_it_is_dropped_in_vain(sizes: list[int], budget: int) -> None:
    costs = [Cost(f"t.f{at}", size) for at, size in enumerate(sizes)]
    dropped = drop_to_fit(costs, budget)
    left = sum(sizes) - sum(cost.tokens for cost in dropped)
    assert left <= budget
    assert len(set(dropped)) == len(dropped)
    assert all(left + cost.tokens > budget for cost in dropped)


@pytest.mark.rule("T4")
def test_a_lazy_agent_carries_the_two_discovery_tools_only_and_one_with_skills_the_skill_tool_too() -> None:
    granted = {f"shop.f{n}": a_definition(model_name("shop", f"f{n}")) for n in range(30)}
    eager = agent_cost(an_agent(), granted)
    lazy = agent_cost(an_agent(tool_loading="lazy"), granted)
    skilled = agent_cost(an_agent(skills=("bill",)), granted, INDEX)
    lazy_skilled = agent_cost(an_agent(tool_loading="lazy"), granted, INDEX)
    assert eager.tokens == sum(estimate(list(granted.values())))
    assert [cost.label for cost in lazy.carried] == ["oz.find", "oz.call"]
    assert lazy.tokens == sum(estimate(DISCOVERY))
    assert lazy.granted == eager.granted
    (skill,) = estimate([skill_definition(INDEX)])
    assert skilled.tokens == eager.tokens + skill
    assert [cost.label for cost in lazy_skilled.carried] == ["oz.find", "oz.call", "oz.skill"]
    assert lazy_skilled.tokens == lazy.tokens + skill


@pytest.mark.rule("T1")
def test_one_definition_costs_the_same_in_whatever_order_its_schema_was_kept() -> None:
    """The server's order, the sorted one of `oz0-listing.json`, and the database's (by length) are one."""
    path = {"type": "string", "description": "a path", "title": "Path"}
    count = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    schema = {"type": "object", "properties": {"path": path, "n": count}, "required": ["path"], "title": "x"}
    orders = [schema, dict(sorted(schema.items())), dict(sorted(schema.items(), key=lambda key: len(key[0])))]
    assert len({as_sent(a_definition(schema=one)) for one in orders}) == 1
    assert as_sent(a_definition(schema={"required": ["b", "a"]})) != as_sent(
        a_definition(schema={"required": ["a", "b"]})
    )


@pytest.mark.rule("M4")
def test_each_skill_of_the_index_costs_every_request_its_name_and_description() -> None:
    one, two = INDEX[0], IndexLine("shop/count", "How to count the shelf. " * 20, granted=False, manual_of=("shop",))
    first, both = (agent_cost(an_agent(), {}, index).tokens for index in ((one,), (one, two)))
    assert both - first >= tokens.counts([f"{two.name}: {two.description}"])[0] * 0.9
    assert f"- shop/count: {' '.join(two.description.split())}" in skill_definition((one, two)).description


@pytest.mark.rule("T3")
def test_the_finding_of_an_agent_over_its_budget_reads_like_this() -> None:
    granted = {
        f"shop.{name}": a_definition(f"shop__{name}", "word " * times)
        for name, times in (("look", 400), ("note", 300), ("charge", 900), ("refund", 10))
    }
    finding = agent_finding(agent_cost(an_agent(budget=1_000), granted))
    assert str(finding) == (
        "error[tools.budget]: agents/clerk.yaml: limits.tool_tokens: agent clerk: every model request would carry "
        "about 1,714 tokens of definitions and may carry 1,000; most of it: shop.charge (926), shop.look (426), "
        "shop.note (326)\n"
        "  fix: set tool_loading: lazy, which sends oz.find and oz.call and leaves the rest to be looked for; "
        "grant it fewer functions; say less in their descriptions and schemas; or allow more in limits.tool_tokens"
    )


@pytest.mark.rule("T3")
def test_the_finding_of_a_plugin_over_its_budget_reads_like_this() -> None:
    costs = [Cost("shop.a", 9_000), Cost("shop.b", 8_000), Cost("shop.c", 10), Cost("shop.d", 2)]
    assert str(plugin_finding("oz0-plugin.yaml", "shop", costs, 16_000)) == (
        "error[tools.budget]: oz0-plugin.yaml: tool_tokens: plugin shop: the definitions of its 4 functions come to "
        "about 17,012 tokens and may come to 16,000; most of it: shop.a (9,000), shop.b (8,000), shop.c (10)\n"
        "  fix: split it into plugins that are granted apart; drop functions; say less in descriptions and schemas "
        "(agents can set tool_loading: lazy); or allow more in tool_tokens"
    )
    assert plugin_finding("oz0-plugin.yaml", "shop", costs, 17_012) is None


@pytest.mark.rule("T3")
def test_budgets_left_unset_are_eight_and_sixteen_thousand_and_a_figure_equal_to_one_fits() -> None:
    from catalog.rules.manifest import Manifest

    assert AgentSpec("a").limits.tool_tokens == 8_000
    assert Manifest("p", "1", (), (), ()).tool_tokens == 16_000
    granted = {"shop.look": a_definition()}
    (exactly,) = estimate(list(granted.values()))
    assert agent_finding(agent_cost(an_agent(budget=exactly), granted)) is None
    assert agent_finding(agent_cost(an_agent(budget=exactly - 1), granted)) is not None


@pytest.mark.rule("T3")
def test_an_agent_of_142_functions_is_told_what_to_drop_so_that_the_rest_fits() -> None:
    """CASES C02."""
    granted = {
        f"big.f{n:03}": a_definition(f"big__f{n:03}", f"Does the thing number {n}. " + "More of it. " * n)
        for n in range(142)
    }
    cost = agent_cost(an_agent(), granted)
    assert cost.over
    left = set(granted) - {one.label for one in cost.drop}
    assert not agent_cost(an_agent(), {label: granted[label] for label in left}).over


@pytest.mark.rule("T3")
def test_the_finding_names_the_part_that_the_schemas_repeat() -> None:
    """CASES C01."""
    address = {"type": "object", "properties": {f"line_{n}": {"type": "string"} for n in range(30)}}
    granted = {
        f"shop.f{n}": a_definition(
            f"shop__f{n}", schema={"type": "object", "properties": {"to": address, "n": {"const": n}}}
        )
        for n in range(20)
    }
    assert shared([a_definition("a"), a_definition("b", schema={"type": "object"})]) is None
    finding = agent_finding(agent_cost(an_agent(budget=500), granted))
    assert finding is not None
    assert "20 definitions repeat the part at shop__f0: input_schema.properties.to, about " in finding.message


@pytest.mark.rule("T2")
def test_one_definition_past_1500_tokens_is_warned_about() -> None:
    costs = [Cost("shop.long", 1_501), Cost("shop.just_fits", 1_500)]
    (finding,) = long_findings("oz0-plugin.yaml", costs)
    assert (finding.severity, finding.code) == ("warning", "tools.tokens")
    assert finding.key == "shop.long"
    assert finding.message.startswith("its definition alone comes to about 1,501 tokens")
