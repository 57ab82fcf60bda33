"""Which places of a value its JSON schema marks as secret, and taking them out and putting them back (RULES A14).

A schema marks a place by `"x-oz0-secret": true`, `"format": "password"` or `"writeOnly": true`; all below it counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from base.masking import SHOWN

DEEPEST: Final = 70  # levels of a value, more than any that is kept
MOST_STEPS: Final = 50_000  # places looked at; a value that needs more is secret as a whole
type Path = tuple[str | int, ...]


def marks(schema: Any) -> bool:
    """Whether anything in a schema marks something as secret."""
    if isinstance(schema, Mapping):
        return _is_mark(schema) or any(marks(part) for part in schema.values())
    return any(marks(part) for part in schema) if isinstance(schema, list) else False


def marked(value: Any, schema: Any) -> tuple[Path, ...]:
    """The places of `value` that the schema marks, none below another. The whole value when that cannot be told."""
    try:
        places = set(_places(value, schema, schema, (), set()))
    except (_TooMuch, RecursionError):
        return ((),)
    found = sorted(places, key=lambda path: (len(path), str(path)))
    kept: list[Path] = []
    for path in found:
        if not any(path[: len(above)] == above for above in kept):
            kept.append(path)
    return tuple(kept)


def replaced(value: Any, paths: tuple[Path, ...], by: Any = SHOWN) -> Any:
    """The value with the marker at these places."""
    return _with(value, dict.fromkeys(paths, by), ())


def put_back(value: Any, original: Any, paths: tuple[Path, ...]) -> Any:
    """A masked value with what `original` has at these places, where the marker still stands."""
    held = {path: _at(original, path) for path in paths if _at(value, path) == SHOWN}
    return _with(value, held, ())


def texts(value: Any, paths: tuple[Path, ...]) -> list[str]:
    """Every text and number at these places, to find it elsewhere."""
    return [text for path in paths for text in _leaves(_at(value, path))]


def mapped(value: Any, by: Callable[[str], str]) -> Any:
    """The value with every text in it, names of fields too, changed by `by`."""
    if isinstance(value, str):
        return by(value)
    if isinstance(value, Mapping):
        return {by(name) if isinstance(name, str) else name: mapped(part, by) for name, part in value.items()}
    return [mapped(part, by) for part in value] if isinstance(value, list | tuple) else value


class _TooMuch(Exception):
    """The schema or the value goes on and on."""


def _is_mark(schema: Mapping[str, Any]) -> bool:
    return schema.get("x-oz0-secret") is True or schema.get("writeOnly") is True or schema.get("format") == "password"


def _places(value: Any, schema: Any, root: Any, at: Path, seen: set[tuple[int, Path]]) -> Iterator[Path]:
    if not isinstance(schema, Mapping) or (id(schema), at) in seen:
        return
    seen.add((id(schema), at))
    if len(seen) > MOST_STEPS or len(at) > DEEPEST:
        raise _TooMuch
    if _is_mark(schema):
        yield at
        return
    for part in _alongside(schema, root):
        yield from _places(value, part, root, at, seen)
    if isinstance(value, Mapping):
        for name, part in value.items():
            for below in _of_property(schema, name):
                yield from _places(part, below, root, (*at, name), seen)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            for below in _of_item(schema, number):
                yield from _places(part, below, root, (*at, number), seen)


def _alongside(schema: Mapping[str, Any], root: Any) -> Iterator[Any]:
    """The schemas that say something of the same value: whether they all hold for it is not looked at."""
    for word in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(word)
        yield from parts if isinstance(parts, list) else ()
    yield from (schema[word] for word in ("if", "then", "else") if word in schema)
    dependent = schema.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, Mapping) else ()
    for word in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(word), str):
            yield _named(schema[word], root)


def _named(reference: str, root: Any) -> Any:
    """What a reference inside the document names; an unknown one marks nothing, as its schema is never valid."""
    found = root
    for part in reference.removeprefix("#").split("/"):
        if not part:
            continue
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if reference.startswith("#") else None


def _of_property(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    named = schema.get("properties")
    if isinstance(named, Mapping) and name in named:
        yield named[name]
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        for pattern, below in patterns.items():
            if marks(below) and _may_match(pattern, name):
                yield below
    yield from (schema[word] for word in ("additionalProperties", "unevaluatedProperties") if word in schema)


def _may_match(pattern: str, name: str) -> bool:
    """Whether a pattern fits a name; one that is not plainly simple is taken to, so that nothing slips."""
    simple = re.fullmatch(r"\^?[\w .-]*(?:\.\*)?\$?", pattern)
    return True if simple is None else re.search(pattern, name) is not None


def _of_item(schema: Mapping[str, Any], number: int) -> Iterator[Any]:
    first = schema.get("prefixItems")
    if isinstance(first, list) and number < len(first):
        yield first[number]
    items = schema.get("items")
    if isinstance(items, list):
        yield from items[number : number + 1]
    elif items is not None:
        yield items
    yield from (schema[word] for word in ("contains", "additionalItems", "unevaluatedItems") if word in schema)


def _at(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _with(value: Any, held: Mapping[Path, Any], at: Path) -> Any:
    if at in held:
        return held[at]
    if isinstance(value, Mapping):
        return {name: _with(part, held, (*at, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_with(part, held, (*at, number)) for number, part in enumerate(value)]
    return value


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
