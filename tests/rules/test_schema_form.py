"""A schema as a form: what is asked of each place of a value, in words, whatever the schema's author wrote."""

from typing import Any

import pytest

from catalog.rules.schema_form import DEEPEST, MOST, Field, form_of, names_of


def only(schema: Any) -> Field:
    """The only field of a form."""
    (one,) = form_of({"type": "object", "properties": {"x": schema}}).fields
    return one


def every(one: Field) -> list[Field]:
    """A field and all that is under it."""
    return [one, *(more for part in (*one.fields, *one.shapes) for more in every(part))]


def test_what_must_be_there_comes_first_and_the_rest_keeps_its_order() -> None:
    form = form_of(
        {
            "type": "object",
            "properties": {"note": {"type": "string"}, "to": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["amount", "to", "ghost"],
        }
    )
    assert [(one.name, one.required) for one in form.fields] == [
        ("to", True),
        ("amount", True),
        ("note", False),
        ("ghost", True),
    ]
    assert names_of({"properties": {"b": {}, "a": {}}}) == ("b", "a")
    assert [names_of(odd) for odd in (None, [], {"properties": []}, "x")] == [()] * 4


@pytest.mark.parametrize(
    ("schema", "kind", "says"),
    [
        ({"type": "string", "format": "date"}, "text, date", ()),
        ({"type": ["integer", "null"]}, "whole number or null", ()),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text or null", ()),
        ({"type": "boolean"}, "true or false", ()),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, "list of text", ("at least 1 items",)),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "list of list of number", ()),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "whole number", ("1 to 9",)),
        ({"type": "string", "pattern": "^a", "maxLength": 3}, "text", ("at most 3 characters", 'matches "^a"')),
        ({"const": 3}, "always the same", ()),
        ({"enum": ["a"]}, "a choice", ()),
        ({}, "anything", ()),
        (False, "nothing", ("no value is allowed here",)),
        ("rubbish", "not a schema", ('the schema has "rubbish" here',)),
        ({"$ref": "https://elsewhere/x"}, "anything", ("refers to https://elsewhere/x, which is not in the schema",)),
    ],
)
def test_a_value_is_told_in_words(schema: Any, kind: str, says: tuple[str, ...]) -> None:
    one = only(schema)
    assert (one.type, one.says) == (kind, says)


def test_defaults_enums_examples_and_what_has_no_words_are_all_told() -> None:
    said = {"enum": ["a", "b\u202e"], "default": None, "examples": [1, 2, 3, 4], "deprecated": True}
    one = only(said | {"x-own": 1, "title": "T"})
    assert (one.values, one.default, one.examples) == (('"a"', '"b\u202e"'), "null", ("1", "2", "3"))
    assert (one.deprecated, one.rest, one.title) == (True, ("x-own",), "T")
    many = only({"enum": list(range(100))})
    assert (len(many.values), many.more_values) == (60, 40)


def test_objects_lists_and_shapes_have_forms_of_their_own() -> None:
    form = form_of(
        {
            "type": "object",
            "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}},
            "properties": {
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
                "first": {"anyOf": [{"$ref": "#/$defs/Line"}, {"type": "null"}], "description": "the first"},
                "pay": {"oneOf": [{"title": "Card", "properties": {"pan": {}}}, {"title": "Cash", "type": "object"}]},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    )
    lines, first, pay, tags = form.fields
    assert (lines.type, [one.name for one in lines.fields], lines.fields[0].fields[0].name) == (
        "list of object",
        ["each item"],
        "sku",
    )
    assert (first.type, first.description, first.fields[0].required) == ("object or null", "the first", True)
    assert (pay.type, pay.shapes_of) == ("one of these", "oneOf")
    assert [shape.title for shape in pay.shapes] == ["Card", "Cash"]
    assert [(one.name, one.type) for one in tags.fields] == [("any other name", "text")]


def test_a_schema_that_names_itself_ends_and_says_so() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N"}, "all": {"type": "array", "items": {"$ref": "#"}}},
    }
    told = every(form_of({"$defs": {"N": node}, "$ref": "#/$defs/N"}))
    assert any("the same again as #/$defs/N above" in one.says for one in told)
    lists: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}
    assert form_of(lists).type.startswith("list of")
    loop = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert form_of(loop).says == ("the same again as #/$defs/a above",)


def test_a_schema_without_end_is_cut_and_what_is_left_out_is_counted() -> None:
    wide = form_of({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(2 * MOST)}})
    assert len(every(wide)) == MOST
    assert wide.left_out == 2 * MOST - (MOST - 1)
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        deep = {"type": "object", "properties": {"x": deep, "y": deep}}
    told = every(form_of(deep))
    assert len(told) <= MOST + DEEPEST
    assert any(one.left_out for one in told)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        [],
        3,
        {"type": 3},
        {"type": "object", "properties": [], "required": "x"},
        {"properties": {"x": None}},
        {"type": "array", "items": [1]},
        {"enum": "no list", "oneOf": {}, "anyOf": []},
        {"required": [1, {}], "minimum": "x"},
        {"$ref": 5},
        {"$ref": "#/a/0/b", "a": []},
        {"type": "array", "prefixItems": 3},
    ],
)
def test_no_schema_however_odd_breaks_the_form(odd: Any) -> None:
    assert every(form_of(odd))
