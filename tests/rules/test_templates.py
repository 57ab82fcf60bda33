"""Placeholders are replaced once, keep their type, and are checked before anything runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.templates import Allowed, Values, fill, fill_text, trouble

VALUES = Values(
    home="/srv/oz0",
    input={"order": "o-1", "amount": 500},
    defaults={"order": "o-0", "amount": 1, "note": "none"},
    results=("charged", "noted"),
    last="noted",
)


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("{{ home }}/demo", "/srv/oz0/demo"),
        ("{{input.order}}", "o-1"),
        ("{{ input.amount }}", 500),
        ("{{ input.amount }} cents", "500 cents"),
        ("{{ input.note }}", "none"),
        ("{{ input }}", {"order": "o-1", "amount": 500}),
        ("first {{ results.0 }}, then {{ last }}", "first charged, then noted"),
        ({"a": ["{{ input.order }}", 7]}, {"a": ["o-1", 7]}),
        ("{ home } $(ls) {% x %}", "{ home } $(ls) {% x %}"),
    ],
)
def test_a_placeholder_becomes_what_it_stands_for(written: Any, filled: Any):
    assert fill(written, VALUES) == filled


def test_a_job_without_input_runs_on_the_agents_own():
    bare = Values(defaults={"order": "o-0"})
    assert fill("{{ input }}", bare) == {"order": "o-0"}
    assert fill("{{ input.order }}", Values(input="just text", defaults={"order": "o-0"})) == "o-0"
    assert fill_text("{{ input }}", Values(input="just text")) == "just text"


@given(st.text(max_size=30), st.sampled_from(["{{ home }}", "{{ input }}", "{{ last }}", "{{ results.0 }}"]))
def test_what_is_put_in_is_never_read_again(inserted: str, tail: str):
    hostile = inserted + tail
    values = Values(home="H", input=hostile, results=(hostile,), last=hostile)
    assert fill("{{ input }}", values) == hostile
    assert fill("x{{ results.0 }}y{{ home }}", values) == f"x{hostile}yH"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ home }}", None),
        ("{{ input.order }}", None),
        ("{{ results.1 }} {{ last }}", None),
        ("{{ results.2 }}", "does not exist here"),
        ("{{ results.01 }}", "does not exist here"),
        ("{{ input.oder }}", "does not exist here"),
        ("{{ input.order.x }}", "does not exist here"),
        ("{{ settings }}", "does not exist here"),
        ("{{ home", "not closed"),
        ("home }}", "not closed"),
        ("{{ home | upper }}", "holds more than a name"),
    ],
)
def test_a_placeholder_is_checked_where_it_stands(text: str, why: str | None):
    found = trouble(text, Allowed(frozenset({"order"}), results=2))
    assert (found is None) if why is None else (why in str(found))


@given(st.text(alphabet="{} .homeinputlast0", max_size=30))
def test_a_text_without_trouble_is_filled_without_failing_and_leaves_no_placeholder(text: str):
    if trouble(text, Allowed(frozenset({"o"}), results=1)) is None:
        assert "{{" not in fill_text(text, Values(home="H", input="I", results=("R",), last="L"))
