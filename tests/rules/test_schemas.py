"""Checking against schemas of strangers: right where it can be judged, bounded where it cannot."""

import time
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from catalog.rules import schemas
from catalog.rules.schemas import CannotJudge, Misfit, misfit

BOOK = {"type": "object", "properties": {"isbn": {"type": "string"}, "copies": {"type": "integer", "minimum": 1}}}


def test_a_value_that_fits_has_no_misfit() -> None:
    assert misfit({"isbn": "x", "copies": 2}, BOOK | {"required": ["isbn"], "additionalProperties": False}) is None


@pytest.mark.parametrize(
    ("value", "path"), [({"copies": 0}, "$.copies"), ({"isbn": 7}, "$.isbn"), ([], "$"), ({"copies": True}, "$.copies")]
)
def test_the_first_misfit_is_named_by_its_path(value: Any, path: str) -> None:
    found = misfit(value, BOOK)
    assert isinstance(found, Misfit)
    assert found.path == path


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "#/nowhere"},
        {"type": "strng"},
        {"properties": 7},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_leads_elsewhere_or_nowhere_cannot_be_used(schema: dict[str, Any]) -> None:
    with pytest.raises(CannotJudge, match=r"cannot be used|too long"):
        misfit({"a": 1}, schema)


def test_patterns_are_not_judged_however_slow_they_would_be() -> None:
    """CASES S15."""
    slow = {"pattern": "^(a+)+$"}
    began = time.process_time()
    assert misfit({"a": "a" * 5000 + "b"}, {"properties": {"a": slow}}) is None
    assert misfit({"a" * 5000 + "b": 1}, {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}) is None
    assert misfit({"a": 1}, {"properties": {"pattern": {"type": "string"}, "a": {"type": "string"}}}) is not None
    assert time.process_time() - began < 1


def test_a_schema_that_branches_without_end_is_given_up_soon() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    began = time.process_time()
    with pytest.raises(CannotJudge, match="too long"):
        misfit(1, {"$ref": "#/$defs/l0", "$defs": levels | {"l40": {}}})
    assert time.process_time() - began < 3


def test_a_long_list_of_odd_items_takes_no_square_of_its_length() -> None:
    began = time.process_time()
    assert misfit([{"n": n} for n in range(20_000)], {"type": "array", "uniqueItems": True}) is None
    assert time.process_time() - began < 1
    assert misfit([{"n": 1}, {"n": 1}], {"uniqueItems": True}) is not None


WORDS = st.sampled_from([*schemas.PLAIN, "$ref", "pattern", "oneOf", "format", "strange"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([*schemas.TYPES, "#", "strng", ""]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=12,
)


@hypothesis.given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_what_is_plain_can_be_used_by_the_schema_of_schemas_too(schema: dict[str, Any]) -> None:
    if schemas.is_plain(schema):
        assert schemas._trouble(schema) is None


PLAINLY = {
    "type": "object",
    "title": "Look",
    "properties": {
        "words": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 9, "description": "which"},
        "page": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["words"],
    "additionalProperties": False,
}


def test_what_most_servers_list_is_plain_and_nothing_that_cannot_be_used_is() -> None:
    assert schemas.is_plain(PLAINLY)
    for word, odd in (
        ("type", "strng"),
        ("type", ["object", "object"]),
        ("properties", {"a": {"type": 1}}),
        ("required", ["a", "a"]),
        ("required", 3),
        ("anyOf", []),
        ("minLength", -1),
        ("minimum", True),
        ("items", [{}]),
        ("title", 7),
        ("$ref", "#/nowhere"),
    ):
        assert not schemas.is_plain(PLAINLY | {word: odd}), (word, odd)
