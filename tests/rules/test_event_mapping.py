"""From an event's JSON to an agent's input: places and constants, total, and what is not there is named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules import event_mapping
from jobs.rules.event_mapping import BadPlace, Constant, NotThere, Place, read_pointer

EVENT = {"issue": {"title": "Late", "labels": ["a", "b"], "a/b": 1, "m~n": 2, "": 3}, "n": 0, "none": None}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", EVENT),
        ("/issue/title", "Late"),
        ("/issue/labels/1", "b"),
        ("/issue/a~1b", 1),
        ("/issue/m~0n", 2),
        ("/issue/", 3),
        ("/n", 0),
        ("/none", None),
    ],
)
def test_a_place_is_looked_up_as_rfc_6901_says(pointer: str, value: Any) -> None:
    assert event_mapping.given(EVENT, {"x": Place(read_pointer(pointer))}) == {"x": value}


def test_what_is_not_there_is_named_by_its_input_and_where_the_way_there_ends() -> None:
    mapped = {
        "title": Place("/issue/titel"),
        "label": Place("/issue/labels/7"),
        "first": Place("/issue/labels/01"),
        "deep": Place("/issue/title/x"),
        "maybe": Place("/issue/nothing", optional=True),
        "always": Constant([1]),
    }
    with pytest.raises(NotThere) as error:
        event_mapping.given(EVENT, mapped)
    assert dict(error.value.troubles) == {
        "title": "the event has nothing at /issue/titel: /issue has no titel",
        "label": "the event has nothing at /issue/labels/7: /issue/labels has 2 items",
        "first": "the event has nothing at /issue/labels/01: /issue/labels is a list, and 01 is no number of an item",
        "deep": "the event has nothing at /issue/title/x: /issue/title is neither an object nor a list",
    }
    left = {name: one for name, one in mapped.items() if name in ("maybe", "always")}
    assert event_mapping.given(EVENT, left) == {"always": [1]}


@given(JSON, st.text(max_size=12), st.booleans())
def test_whatever_comes_and_wherever_one_looks_it_ends_with_an_input_or_names_what_is_missing(
    event: Any, typed: str, optional: bool
) -> None:
    try:
        place = Place(read_pointer(typed), optional)
    except BadPlace:
        return
    mapped = {"x": place, "c": Constant(event)}
    assert event_mapping.from_json(event_mapping.as_json(mapped)) == mapped
    try:
        found = event_mapping.given(event, mapped)
    except NotThere as error:
        assert not optional and [name for name, _ in error.troubles] == ["x"]
    else:
        assert found["c"] == event


@pytest.mark.parametrize("text", ["issue", "#/a", "/a~b", "/a~2", "/" + "a" * 500, "/a\0"])
def test_a_place_that_is_none_is_refused_when_it_is_typed(text: str) -> None:
    with pytest.raises(BadPlace):
        read_pointer(text)
