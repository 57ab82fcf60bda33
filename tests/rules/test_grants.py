"""Grants give exactly what they name, and the names the model uses lead back to the functions."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.conditions import Patterns
from catalog.rules.grants import (
    Name,
    from_model_name,
    grant_trouble,
    granted,
    idle_grants,
    listing_problems,
    matches,
    model_name,
    name_trouble,
)
from catalog.rules.manifest import tool_id_trouble

letters = st.sampled_from("ab_-1")
tools = st.text(letters, min_size=1, max_size=6).filter(lambda tool: tool_id_trouble(tool) is None)
functions = st.text(letters, min_size=1, max_size=8)
patterns = st.text(st.sampled_from("ab*"), max_size=6)

AVAILABLE = (
    *(Name("repo", function) for function in ("git_add", "git_commit", "git_log")),
    *(Name("billing", function) for function in ("charge", "note")),
)


@pytest.mark.rule("C1")
@given(tools, functions)
def test_the_name_the_model_sees_leads_back_to_the_function(tool: str, function: str):
    """CASES C11."""
    assert from_model_name(model_name(tool, function)) == Name(tool, function)


@pytest.mark.rule("C1")
@given(st.sets(st.tuples(tools, functions), max_size=20))
def test_two_functions_never_share_a_name(pairs: set[tuple[str, str]]):
    assert len({model_name(tool, function) for tool, function in pairs}) == len(pairs)


@pytest.mark.parametrize(
    "name", ["", "charge", "billing_charge", "__charge", "billing__", "oz__skill", "a__b" + "b" * 61]
)
def test_what_is_no_functions_name_leads_nowhere(name: str):
    assert from_model_name(name) is None


@pytest.mark.rule("C1")
@pytest.mark.parametrize("function", ["get.pr", "get/pr", "get pr", "größe", "", "a\n"])
def test_a_name_with_other_letters_is_refused(function: str):
    """CASES C11."""
    assert name_trouble("repo", function) is not None


@pytest.mark.rule("C1")
def test_a_name_is_refused_from_the_65th_character_and_never_cut():
    """CASES C09."""
    assert name_trouble("repo", "f" * 58) is None
    assert "1 longer than the 64" in str(name_trouble("repo", "f" * 59))


@pytest.mark.rule("C1")
def test_a_listing_names_each_function_that_cannot_be_sent_and_each_listed_twice():
    problems = listing_problems("repo", ["git_log", "git.show", "git_add", "git_add"])
    assert [(problem.key, problem.message.partition(":")[0]) for problem in problems] == [
        ("git.show", "cannot be sent to a model"),
        ("git_add", "is listed 2 times"),
    ]
    assert all(problem.fix for problem in problems)
    assert listing_problems("repo", ["git_log", "git_add"]) == ()


@pytest.mark.parametrize("tool", ["oz", "OZ", "a__b", "a_", "_a", "a.b", "", "t" * 49])
def test_a_tool_id_that_would_confuse_names_is_refused(tool: str):
    assert tool_id_trouble(tool) is not None


def test_an_agent_is_granted_what_its_globs_name_and_nothing_else():
    assert granted(["repo.git_*t", "billing.note"], AVAILABLE) == (Name("billing", "note"), Name("repo", "git_commit"))
    assert granted(["repo.*"], AVAILABLE) == AVAILABLE[:3]
    assert granted([], AVAILABLE) == ()
    assert granted(["repo.git"], AVAILABLE) == ()


def test_a_grant_that_gives_nothing_is_named():
    assert idle_grants(["repo.git_*", "repo.git_psuh", "shop.*"], AVAILABLE) == ("repo.git_psuh", "shop.*")


@pytest.mark.parametrize("grant", ["repo", "*.*", "*.git_log", "re*.git_log", "repo.", "repo.git?log", "oz.skill"])
def test_a_grant_that_is_not_one_is_refused_with_the_reason(grant: str):
    assert grant_trouble(grant)


@given(patterns, st.text(st.sampled_from("ab"), max_size=8))
def test_a_star_stands_for_any_letters(pattern: str, text: str):
    assert matches(pattern, text) is bool(re.match(fnmatch.translate(pattern), text))


@given(patterns, patterns, st.text(st.sampled_from("ab"), max_size=8))
def test_a_pattern_within_another_fits_nothing_the_other_does_not(one: str, other: str, text: str):
    if Patterns((one,)).within(Patterns((other,))) and matches(one, text):
        assert matches(other, text)
