"""How deciding goes: times, counts and what they suggest, from what really happened."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from approvals.queries.insights import insights
from approvals.rules.insights import Answers, Unknown, of_all, of_function, of_unknown
from jobs.operations.holds import Answer
from tests.builders import World, a_held_call, a_node, a_world, an_unknown_call, answered, swept
from tests.pages.visitors import plain, text_of, visitor

URL = "/approvals/insights/"
type Ahead = Callable[[timedelta], None]


def asked(world: World) -> tuple[UUID, UUID]:
    """A held call, by a node that is alive however far the clock was moved."""
    return a_held_call(replace(world, node=a_node()))


def lost(world: World) -> tuple[UUID, UUID]:
    """An unknown call, alike."""
    return an_unknown_call(replace(world, node=a_node()))


def seen(**more: Any) -> Answers:
    fields = dict.fromkeys(("asked", "approved", "edited", "denied", "stopped", "expired", "withdrawn"), 0)
    return Answers(**{**fields, "median": None, "p90": None, **more})


def test_figures_are_of_the_days_in_the_address_and_count_what_happened(
    database: object, move_clock: Ahead, django_assert_max_num_queries: Any
) -> None:
    world = a_world()
    for minutes, answer in ((10, Answer.APPROVE), (10, Answer.APPROVE), (30, Answer.DENY)):
        _, hold = asked(world)
        move_clock(timedelta(minutes=minutes))
        answered(world, hold, answer, "no")
    asked(world)
    move_clock(timedelta(hours=25))
    swept()
    _, unknown = lost(world)
    answered(world, unknown, Answer.HAPPENED)
    lost(world)
    asked(world)
    found = insights(world.tenant, days=7)
    assert (found.all.asked, found.all.approved, found.all.denied, found.all.expired) == (4, 2, 1, 1)
    assert found.all.median == pytest.approx(600, abs=60)
    assert found.all.p90 == pytest.approx(1560, abs=90)
    assert (found.open, [one.name for one in found.agents]) == (2, ["clerk"])
    assert [(one.name, one.rule, one.answers.asked) for one in found.functions] == [
        ("shop.refund", found.rules[0].name, 4)
    ]
    ((one, _),) = found.unknown
    assert (one.tool, one.asked, one.happened, one.still_open) == ("shop", 2, 1, 1)
    assert (len(found.days), sum(one.count for one in found.days)) == (7, 4)
    client = visitor(world)
    with django_assert_max_num_queries(30):
        page = plain(text_of(client.get(f"{URL}?days=7")))
    assert "10 m 0" in page
    assert "last 7 days" in page
    move_clock(timedelta(days=10))
    assert insights(world.tenant, days=7).all.asked == 0
    assert insights(world.tenant, days=30).all.asked == 4
    assert "last 30 days" in plain(text_of(client.get(f"{URL}?days=12;")))


def test_an_empty_workspace_has_a_page(database: object) -> None:
    assert "No question was closed in these days" in plain(text_of(visitor(a_world()).get(URL)))


def test_what_is_always_approved_or_denied_or_edited_is_said_with_the_figures_and_a_few_are_no_habit() -> None:
    always = of_function("shop.refund", seen(asked=120, approved=120))
    assert always is not None
    assert always.says == "shop.refund was asked 120 times and approved 120: consider to allow it."
    assert always.where == "allow"
    never = of_function("shop.refund", seen(asked=30, approved=1, denied=25, stopped=4))
    assert never is not None
    assert (never.where, "denied in 29 of 30" in never.says) == ("refuse", True)
    edited = of_function("shop.refund", seen(asked=30, approved=20, edited=10))
    assert edited is not None
    assert edited.where == "agents"
    assert of_function("shop.refund", seen(asked=19, approved=19)) is None
    assert of_function("shop.refund", seen(asked=120, approved=119, denied=1)) is None
    assert [one.where for one in of_all(seen(asked=100, expired=40))] == ["notices"]
    assert "too quick" in of_all(seen(asked=100, approved=100, median=1.5, p90=3.0))[0].says
    assert of_all(seen(asked=100, approved=100, median=40.0, p90=90.0)) == []
    assert of_unknown(Unknown("shop", "It ran past its time limit.", 4, 4, 0, 0, 0)) is None
    many = of_unknown(Unknown("shop", "It ran past its time limit.", 40, 40, 0, 0, 0))
    assert many is not None
    assert "shop left 40 outcomes unknown, all alike (It ran past its time limit)" in many.says


def test_a_page_says_it_with_a_link_to_where_the_policy_is_changed(database: object) -> None:
    world = a_world()
    for _ in range(20):
        _, hold = asked(world)
        answered(world, hold, Answer.APPROVE)
    page = text_of(visitor(world).get(URL))
    assert "shop.refund was asked 20 times and approved 20: consider to allow it." in plain(page)
    assert 'href="/catalog/policy/waiting/?tool=shop&amp;q=refund"' in page
