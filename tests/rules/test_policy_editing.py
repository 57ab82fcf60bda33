"""The steps of the policy's editor, and what changed between versions: pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.policy_diff import How, compare, merge
from catalog.rules.policy_editing import (
    BadDraft,
    arguments_of,
    fields_of,
    moved,
    put,
    read_draft,
    rule_of,
    spell,
    why_not_edit,
    without,
)
from catalog.rules.policy_rules import oddities


def rule(name: str, effect: str = "ask", **more: Any) -> dict[str, Any]:
    return {"id": name, "effect": effect, **more}


drafts = st.lists(
    st.builds(rule, st.sampled_from("abcdefgh"), st.sampled_from(["allow", "ask", "refuse"])),
    max_size=7,
    unique_by=lambda one: one["id"],
)


def names(rules: Any) -> list[str]:
    return [one["id"] for one in rules]


@given(drafts)
def test_a_draft_is_read_back_as_it_is_spelled_one_rule_a_line(rules: list[Any]):
    assert read_draft(spell(rules)) == rules
    assert len(spell(rules).splitlines()) == (len(rules) + 2 if rules else 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"id": "a"}', "list of rules"),
        ('[{"id": "a", "id": "b"}]', r"\$\[0\]\.id: the key is there twice"),
        ("[NaN]", "not a number that JSON has"),
        ("[", "not JSON"),
        ("[" + ",".join(["{}"] * 501) + "]", "up to 500 rules"),
        ("[" * 5000, "not JSON|deeper"),
        ('["\0"]', "NUL"),
        (" " * 1_000_001, "characters long"),
    ],
)
def test_what_is_no_list_of_rules_says_why(text: str, why: str):
    with pytest.raises(BadDraft, match=why):
        read_draft(text)


def test_the_steps_of_the_editor():
    rules = [rule("a"), rule("b"), rule("c")]
    assert names(moved(rules, 0, 1)) == ["b", "a", "c"]
    assert names(moved(rules, 0, -1)) == names(moved(rules, 7, 1)) == ["a", "b", "c"]
    assert names(without(rules, 1)) == ["a", "c"]
    assert names(put(rules, 1, rule("x"))) == ["a", "x", "c"]
    assert names(put(rules, None, rule("x"))) == ["a", "b", "c", "x"]
    assert names(rules) == ["a", "b", "c"]
    assert why_not_edit("admin") is None
    assert all("Admins" in (why_not_edit(role) or "") for role in ("viewer", "operator", "author"))


@pytest.mark.parametrize(
    "one",
    [
        rule("r", "refuse", kind=["write", "destructive"], tool="bill*", starter="api_key", open_world=True),
        rule("r", "wait", tool="billing", rate={"calls": 10, "seconds": 60}),
        rule("r", rate={"calls": 10, "seconds": 60, "of": "tenant"}, tainted=False, title="Ask when there are many"),
        rule("r", repeated=5, until="2027-01-01T00:00:00+00:00"),
        rule(
            "r",
            arguments=[
                {"path": "/amount", "is": "more_than", "value": 100},
                {"path": "/note", "is": "equals", "value": "100"},
                {"path": "/to", "is": "one_of", "value": ["a", 1, None]},
                {"path": "/sql", "is": "regex", "value": "(?i)\\bdrop\\b"},
                {"path": "/empty", "is": "equals", "value": ""},
                {"path": "/x", "is": "absent"},
            ],
        ),
    ],
)
def test_the_form_shows_a_rule_and_spells_it_again(one: dict[str, Any]):
    fields = fields_of(one)
    assert fields is not None
    assert rule_of(fields, arguments_of(one)) == one
    assert not oddities([one])


@pytest.mark.parametrize("odd", [7, rule("r", more=1), rule("r", arguments=7), rule("r", tool={}), rule("r", rate=7)])
def test_a_rule_that_the_form_cannot_show_whole_is_edited_as_text(odd: Any):
    assert fields_of(odd) is None


def test_what_changed_is_told_rule_by_rule():
    before = [rule("a"), rule("b", tool="x"), rule("c"), rule("d")]
    after = [rule("d"), rule("a"), rule("b", "allow", tool="y"), rule("n")]
    told = compare(before, after)
    assert [(one.how, one.name) for one in told] == [
        (How.MOVED, "d"),
        (How.CHANGED, "b"),
        (How.NEW, "n"),
        (How.GONE, "c"),
    ]
    assert [(field.field, field.before, field.after) for field in told[1].fields] == [
        ("effect", "ask", "allow"),
        ("tool", "x", "y"),
    ]
    assert compare("nonsense", [rule("a"), rule("a")])


@given(drafts, drafts)
def test_two_versions_differ_in_nothing_exactly_when_they_are_the_same(one: list[Any], other: list[Any]):
    assert (not compare(one, other)) == (one == other)


@given(drafts, drafts)
def test_changes_put_on_top_of_an_unchanged_version_are_the_draft_itself(base: list[Any], mine: list[Any]):
    merged = merge(base, mine, base)
    assert not merged.clashes
    assert sorted(names(merged.rules)) == sorted(names(mine))
    assert {one["id"]: one for one in merged.rules} == {one["id"]: one for one in mine}
    assert merge(base, base, mine).rules == tuple(mine)


@given(drafts, drafts, drafts)
def test_nothing_that_either_of_two_editors_wrote_is_lost_unless_it_is_named(
    base: list[Any], mine: list[Any], theirs: list[Any]
):
    merged = merge(base, mine, theirs)
    was, result = {one["id"]: one for one in base}, {one["id"]: one for one in merged.rules}
    assert len(result) == len(merged.rules)
    for one in mine:
        if was.get(one["id"]) != one:
            assert result[one["id"]] == one
    for one in theirs:
        if was.get(one["id"]) != one:
            assert result.get(one["id"]) == one or one["id"] in merged.clashes


def test_what_i_moved_and_added_keeps_its_place_among_their_rules():
    base = [rule("a"), rule("b"), rule("c")]
    theirs = [rule("a"), rule("t"), rule("b", "allow"), rule("c")]
    assert names(merge(base, [rule("c"), rule("a"), rule("b")], theirs).rules) == ["c", "t", "a", "b"]
    assert names(merge(base, [rule("a"), rule("b"), rule("m"), rule("c")], theirs).rules) == ["a", "t", "b", "m", "c"]
    clash = merge(base, [rule("a"), rule("b", "refuse"), rule("c")], theirs)
    assert clash.clashes == ("b",)
    assert clash.rules[2] == rule("b", "refuse")
