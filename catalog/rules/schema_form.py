"""A JSON Schema as a person reads a form: its fields in order, what each takes, and what else is asked of it.

The schema is somebody else's. Whatever is in it, this ends: references are followed inside the schema only and never
twice on one way down, and past `MOST` fields or `DEEPEST` levels the rest is counted, not shown. What has no words
here is named, so that nobody takes the form for all that the schema says.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

DEEPEST: Final = 12  # levels of a form
MOST: Final = 400  # fields of a form
VALUES: Final = 60  # values of an enum that are told
LONGEST: Final = 200  # characters of a value

# keywords that have no words of their own because they are told by what is around them, or say nothing of the value
_SILENT: Final = frozenset(
    [
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "enum",
        "const",
        "default",
        "examples",
        "example",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "$ref",
        "additionalProperties",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "contentEncoding",
        "contentMediaType",
        "nullable",
    ]
)


@dataclass(frozen=True, slots=True)
class Field:
    """One place of a value. `name` is empty for what has none: an item of a list, or one of several shapes.

    `says` are sentences of ours about the value, `values` what it may only be, `rest` keywords that have no words
    here. `default` is JSON text or None.
    """

    name: str
    type: str
    required: bool = False
    title: str = ""
    description: str = ""
    default: str | None = None
    values: tuple[str, ...] = ()
    more_values: int = 0
    says: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    deprecated: bool = False
    fields: tuple["Field", ...] = ()
    shapes: tuple["Field", ...] = ()
    shapes_of: str = ""  # `oneOf`, `anyOf` or `allOf`, where there are shapes
    rest: tuple[str, ...] = ()
    left_out: int = 0  # fields under it that are not shown


@dataclass(slots=True)
class _Budget:
    left: int = MOST


@dataclass(frozen=True, slots=True)
class _Way:
    """Where in the schema a field stands: what is followed above it, and how deep."""

    whole: Mapping[str, Any]
    budget: _Budget
    above: frozenset[str] = field(default_factory=frozenset)
    depth: int = 0


def form_of(schema: Any) -> Field:
    """The form of a whole schema. Anything that is no object is told as such."""
    return _field("", schema, _Way(schema if isinstance(schema, Mapping) else {}, _Budget()), required=False)


def names_of(schema: Any) -> tuple[str, ...]:
    """The names of the fields at the top, in order."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return tuple(str(name) for name in properties) if isinstance(properties, Mapping) else ()


def _field(name: str, schema: Any, way: _Way, *, required: bool) -> Field:
    way.budget.left -= 1
    if schema is True or schema == {}:
        return Field(name, "anything", required)
    if schema is False:
        return Field(name, "nothing", required, says=("no value is allowed here",))
    if not isinstance(schema, Mapping):
        return Field(name, "not a schema", required, says=(f"the schema has {_text(schema)} here",))
    plain = _plain(schema, way)
    merged = plain.schema
    way = replace(way, above=plain.above, depth=way.depth + 1)
    kind, shapes = _shapes(merged, way)
    inner = _fields(merged, way)
    values = merged.get("enum") if isinstance(merged.get("enum"), list) else None
    if "const" in merged:
        values = [merged["const"]]
    return Field(
        name=name,
        type=f"{_type(merged, way)} or null" if plain.null else _type(merged, way),
        required=required,
        title=_string(merged.get("title")),
        description=_string(merged.get("description")),
        default=_text(merged["default"]) if "default" in merged else None,
        values=tuple(_text(value) for value in (values or ())[:VALUES]),
        more_values=max(0, len(values or ()) - VALUES),
        says=(*plain.told, *_says(merged)),
        examples=tuple(_text(one) for one in _examples(merged)),
        deprecated=merged.get("deprecated") is True,
        fields=inner,
        shapes=shapes,
        shapes_of=kind,
        rest=tuple(sorted(str(key) for key in merged if key not in _SILENT)),
        left_out=_all(merged) - len(inner),
    )


@dataclass(frozen=True, slots=True)
class _Plain:
    """A schema with its references put in. `told` says what could not be, `null` that the value may be null too."""

    schema: Mapping[str, Any]
    above: frozenset[str]
    told: tuple[str, ...] = ()
    null: bool = False


def _plain(schema: Mapping[str, Any], way: _Way) -> _Plain:
    """The schema as one object: references inside it followed, a choice of one thing taken, `or null` taken apart."""
    found = _Plain(schema, way.above)
    for _ in range(DEEPEST):
        now = found.schema
        if isinstance(reference := now.get("$ref"), str):
            rest = {key: value for key, value in now.items() if key != "$ref"}
            if reference in found.above:
                return replace(found, schema=rest, told=(f"the same again as {reference[:80]} above",))
            named = _at(way.whole, reference)
            if not isinstance(named, Mapping):
                return replace(found, schema=rest, told=(f"refers to {reference[:80]}, which is not in the schema",))
            found = replace(found, schema={**named, **rest}, above=found.above | {reference})
            continue
        key = next((key for key in ("oneOf", "anyOf", "allOf") if isinstance(now.get(key), list)), None)
        parts = [part for part in now[key] if part != {"type": "null"}] if key else []
        if (
            key is None
            or len(parts) != 1
            or not isinstance(parts[0], Mapping)
            or (key == "allOf" and len(now[key]) > 1)
        ):
            return found
        rest = {one: value for one, value in now.items() if one != key}
        found = replace(found, schema={**parts[0], **rest}, null=found.null or len(now[key]) > 1)
    return found


def _at(whole: Mapping[str, Any], reference: str) -> Any:
    """What a reference inside the schema names, None when it names nothing there."""
    if reference == "#":
        return whole
    if not reference.startswith("#/"):
        return None
    found: Any = whole
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isascii() and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def _fields(schema: Mapping[str, Any], way: _Way) -> tuple[Field, ...]:
    """What is inside: an object's properties, those that must be there first; a list's items."""
    found = []
    for name, inner, required in _inside(schema):
        if way.budget.left <= 0 or way.depth >= DEEPEST:
            break
        found.append(_field(name, inner, way, required=required))
    return tuple(found)


def _all(schema: Mapping[str, Any]) -> int:
    return sum(1 for _ in _inside(schema))


def _inside(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    properties, required = schema.get("properties"), schema.get("required")
    wanted = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    if isinstance(properties, Mapping):
        yield from ((str(name), properties[name], True) for name in properties if name in wanted)
        yield from ((str(name), properties[name], False) for name in properties if name not in wanted)
        wanted -= properties.keys()
    yield from ((name, {"description": ""}, True) for name in sorted(wanted))
    for at, inner in enumerate(schema["prefixItems"] if isinstance(schema.get("prefixItems"), list) else ()):
        yield f"item {at + 1}", inner, False
    items = schema.get("items")
    if isinstance(items, Mapping) and _has_inside(items):
        yield "each item", items, False
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) and more:
        yield "any other name", more, False


def _has_inside(items: Mapping[str, Any]) -> bool:
    """Whether a list's items need lines of their own: else the list's type says all of them."""
    return bool(set(items) - {"type", "title"})


def _shapes(schema: Mapping[str, Any], way: _Way) -> tuple[str, tuple[Field, ...]]:
    for kind in ("oneOf", "anyOf", "allOf"):
        parts = schema.get(kind)
        if isinstance(parts, list) and parts:
            found = []
            for part in parts:
                if way.budget.left <= 0 or way.depth >= DEEPEST:
                    break
                found.append(_field("", part, way, required=False))
            return kind, tuple(found)
    return "", ()


def _type(schema: Mapping[str, Any], way: _Way) -> str:
    """What a value is, in a few words."""
    told = schema.get("type")
    if isinstance(told, list):
        return " or ".join(_word(one) for one in told) or "nothing"
    if told is None:
        told = "object" if "properties" in schema else "array" if "items" in schema else None
    if told is None and "const" in schema:
        return "always the same"
    if told is None and isinstance(schema.get("enum"), list):
        return "a choice"
    if told is None:
        shapes = {"oneOf": "one of these", "anyOf": "any of these", "allOf": "all of these"}
        return next((word for key, word in shapes.items() if isinstance(schema.get(key), list)), "anything")
    if told == "array" and isinstance(items := schema.get("items"), Mapping):
        inner = _plain(items, way)
        deeper = replace(way, above=inner.above, depth=way.depth + 1)
        word = _type(inner.schema, deeper) if way.depth < DEEPEST and not inner.told else "anything"
        return f"list of {word}"
    shown = _word(told)
    style = schema.get("format")
    return f"{shown}, {style}" if isinstance(style, str) and style else shown


def _word(told: Any) -> str:
    words = {"array": "list", "boolean": "true or false", "integer": "whole number", "string": "text"}
    return words.get(told, told) if isinstance(told, str) else _text(told)


def _says(schema: Mapping[str, Any]) -> Iterator[str]:
    """What else is asked of the value, a few words each."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        yield f"{_text(least)} to {_text(most)}"
    elif least is not None:
        yield f"at least {_text(least)}"
    elif most is not None:
        yield f"at most {_text(most)}"
    for key, words in _WORDS.items():
        if key in schema:
            yield words.format(_text(schema[key]))
    if schema.get("uniqueItems") is True:
        yield "no item twice"
    if schema.get("additionalProperties") is False and isinstance(schema.get("properties"), Mapping):
        yield "no other names"
    if isinstance(schema.get("not"), Mapping | bool):
        yield f"but not {_text(schema['not'])}"
    if schema.get("readOnly") is True:
        yield "only read"
    if schema.get("writeOnly") is True:
        yield "only written: never shown again"
    if schema.get("nullable") is True:
        yield "or null"


_WORDS: Final = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} names",
    "maxProperties": "at most {} names",
    "contentEncoding": "encoded as {}",
    "contentMediaType": "holds {}",
}


def _examples(schema: Mapping[str, Any]) -> list[Any]:
    many = schema.get("examples")
    return many[:3] if isinstance(many, list) else [schema["example"]] if "example" in schema else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else _text(value)


def _text(value: Any) -> str:
    """A value as JSON, cut."""
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = str(type(value).__name__)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
