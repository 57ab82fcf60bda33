"""Which places of a value a schema marks as secret, and that nothing of them is left elsewhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from base.masking import SHOWN
from jobs.rules.secrets import mapped, marked, marks, put_back, replaced, texts

pytestmark = pytest.mark.rule("A14")
SECRET = {"type": "string", "x-oz0-secret": True}
ONE = {"type": "object", "properties": {"name": {"type": "string"}, "token": SECRET}}


@pytest.mark.parametrize(
    ("schema", "value", "places"),
    [
        (ONE, {"name": "a", "token": "t"}, [("token",)]),
        (ONE, {"name": "a"}, []),
        ({"properties": {"p": {"format": "password"}}}, {"p": "x"}, [("p",)]),
        ({"properties": {"p": {"writeOnly": True}}}, {"p": {"deep": ["x"]}}, [("p",)]),
        ({"properties": {"p": {"x-oz0-secret": "yes"}}}, {"p": "x"}, []),
        ({"items": ONE}, [{"token": "a"}, {}, {"token": "b"}], [(0, "token"), (2, "token")]),
        ({"prefixItems": [{}, SECRET], "items": False}, ["a", "b"], [(1,)]),
        ({"additionalProperties": SECRET}, {"any": "x"}, [("any",)]),
        ({"patternProperties": {"^key_": SECRET}}, {"key_a": "x", "other": "y"}, [("key_a",)]),
        ({"patternProperties": {"(?=odd)": SECRET}}, {"whatever": "x"}, [("whatever",)]),
        ({"$ref": "#/$defs/one", "$defs": {"one": ONE}}, {"token": "x"}, [("token",)]),
        ({"anyOf": [{"type": "null"}, ONE]}, {"token": "x"}, [("token",)]),
        ({"allOf": [{"properties": {"a": {"items": ONE}}}]}, {"a": [{"token": "x"}]}, [("a", 0, "token")]),
        ({"if": {}, "then": ONE}, {"token": "x"}, [("token",)]),
        (SECRET, "whole", [()]),
        ({"$ref": "#"}, {"a": 1}, []),
        ({"properties": {"next": {"$ref": "#"}, "t": SECRET}}, {"next": {"next": {"t": "x"}}}, [("next", "next", "t")]),
    ],
)
def test_a_mark_is_found_wherever_a_schema_can_put_it(schema: Any, value: Any, places: list[Any]) -> None:
    assert list(marked(value, schema)) == places
    assert marks(schema) or not places or places == [()]
    masked = replaced(value, tuple(places))
    for path in places:
        at = masked
        for part in path:
            at = at[part]
        assert at == SHOWN
    assert put_back(masked, value, tuple(places)) == value


def test_of_a_value_that_is_too_much_to_look_through_all_is_hidden() -> None:
    endless: Any = {"items": {"anyOf": [{"title": str(n)} for n in range(300)]}}
    assert marked([1] * 400, endless) == ((),)
    assert marked([1] * 4, endless) == ()


JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, some.text(alphabet="abcXYZ0189", min_size=8, max_size=20))
def test_what_is_marked_is_gone_from_the_masked_value_and_the_rest_is_as_it_was(rest: Any, secret: str) -> None:
    value = {"rest": rest, "token": secret}
    paths = marked(value, ONE)
    masked = replaced(value, paths)
    assert masked == {"rest": rest, "token": SHOWN}
    assert texts(value, paths) == [secret]


def test_every_text_of_a_value_is_mapped_also_the_names_of_fields() -> None:
    assert mapped({"a": ["b", 1, None, {"c": True}]}, str.upper) == {"A": ["B", 1, None, {"C": True}]}
