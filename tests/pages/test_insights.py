"""How deciding goes: times, counts and what they suggest, from what really happened."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from approvals.queries.insights import insights
from approvals.rules.insights import Answers, Habit, Unknown, of_all, of_function, of_unknown
from jobs.operations.holds import Answer
from tests.builders import (
    World,
    a_held_call,
    a_node,
    a_person,
    a_policy,
    a_rule,
    a_world,
    an_unknown_call,
    answered,
    swept,
)
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


HABIT = Habit(frozenset({"write"}), people=2, days=3)


@pytest.mark.parametrize(
    ("habit", "median"),
    [
        (replace(HABIT, days=2), 40.0),  # a morning or two
        (replace(HABIT, people=1, days=6), 40.0),
        (replace(HABIT, kinds=frozenset({"write", "destructive"})), 40.0),
        (replace(HABIT, kinds=frozenset({"undeclared"})), 40.0),  # it may destroy
        (HABIT, 2.0),  # nobody read them
    ],
)
def test_what_was_approved_at_one_sitting_unread_or_destroys_is_no_reason_to_ask_less(
    habit: Habit, median: float
) -> None:
    assert of_function("shop.refund", seen(asked=120, approved=120, median=median), habit) is None


def test_what_is_always_approved_or_denied_or_edited_is_said_with_the_figures_and_a_few_are_no_habit() -> None:
    always = of_function("shop.refund", seen(asked=120, approved=120, median=40.0), HABIT)
    assert always is not None
    assert always.says == (
        "shop.refund was asked 120 times and approved 120, by 2 people on 3 days: consider to allow it."
    )
    assert always.where == "allow"
    never = of_function("shop.refund", seen(asked=30, approved=1, denied=25, stopped=4), HABIT)
    assert never is not None
    assert (never.where, "denied in 29 of 30" in never.says) == ("refuse", True)
    edited = of_function("shop.refund", seen(asked=30, approved=20, edited=10), HABIT)
    assert edited is not None
    assert edited.where == "agents"
    assert of_function("shop.refund", seen(asked=19, approved=19, median=40.0), HABIT) is None
    assert of_function("shop.refund", seen(asked=120, approved=119, denied=1, median=40.0), HABIT) is None
    assert [one.where for one in of_all(seen(asked=100, expired=40))] == ["notices"]
    assert "too quick" in of_all(seen(asked=100, approved=100, median=1.5, p90=3.0))[0].says
    assert of_all(seen(asked=100, approved=100, median=40.0, p90=90.0)) == []
    assert of_unknown(Unknown("shop", "It ran past its time limit.", 4, 4, 0, 0, 0)) is None
    many = of_unknown(Unknown("shop", "It ran past its time limit.", 40, 40, 0, 0, 0))
    assert many is not None
    assert "shop left 40 outcomes unknown, all alike (It ran past its time limit)" in many.says


def test_a_page_says_it_with_a_link_to_where_the_policy_is_changed(database: object, move_clock: Ahead) -> None:
    world = a_world()
    a_policy(world, a_rule("writes", "ask", kind=["write", "destructive"]))
    ann = replace(world, person=a_person(world.tenant, "ann"))
    client = visitor(world)
    for who in (world, ann, world):
        for function in ("note", "refund"):
            for _ in range(7):
                here = replace(who, node=a_node())
                _, hold = a_held_call(here, function)
                move_clock(timedelta(minutes=1))
                answered(here, hold, Answer.APPROVE)
        assert "consider to allow it" not in text_of(client.get(URL)) or who is world
        move_clock(timedelta(days=1))
    page = text_of(client.get(URL))
    assert "shop.note was asked 21 times and approved 21, by 2 people on 3 days: consider to allow it." in plain(page)
    assert "shop.refund was asked" not in plain(page)
    assert 'href="/catalog/policy/waiting/?tool=shop&amp;q=note"' in page
    assert "questions on the busiest day" in plain(page)
