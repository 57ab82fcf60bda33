"""Checking a value against a JSON Schema that somebody else wrote: no network, no regular expressions, bounded work.

A server's schema may name remote schemas, carry patterns that take for ever, or branch without end. So references
leave the schema nowhere, `pattern` and `patternProperties` are not judged (the server judges its own input), and a
check that takes too many steps is given up.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

# The library takes longer to be read than most of lint takes, and most schemas need none of it: see `is_plain`.
if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

STEPS: Final = 20_000  # keywords of the schema looked at for one value
DEEPEST: Final = 60  # levels of a schema in which references are looked for
MANY: Final = 1_000  # items of a list among which equal ones are still looked for

type Keyword = Callable[[Any, Any, Any, Any], Iterator["ValidationError"] | None]
_left: ContextVar[list[int]] = ContextVar("schema_steps_left")


class CannotJudge(Exception):
    """The schema is not usable, or judging it takes too long. The message is one sentence of ours."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first place where a value breaks its schema. `what` quotes the value and the schema."""

    path: str  # `$.items[2].id`
    what: str


def misfit(value: Any, schema: Mapping[str, Any]) -> Misfit | None:
    """Where `value` breaks `schema`, None when it fits. Raises `CannotJudge`."""
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    plain = dict(schema)
    steps = _left.set([STEPS])
    try:
        kind = _bounded(validator_for(plain, default=Draft202012Validator))
        error = next(iter(kind(plain, registry=Registry()).iter_errors(value)), None)
    except _TooManySteps:
        raise CannotJudge("It would take too long to check the value against its schema.") from None
    except Exception as error:  # a schema can be wrong in as many ways as there are keywords
        raise CannotJudge(f"The schema cannot be used ({type(error).__name__}).") from error
    finally:
        _left.reset(steps)
    return None if error is None else Misfit(error.json_path, error.message[:500])


def schema_trouble(schema: Mapping[str, Any]) -> str | None:
    """Why nothing can be checked by a schema, in a few words; None when it can be used."""
    return None if is_plain(schema) else _trouble(schema)


def is_plain(schema: Any, depth: int = 0) -> bool:
    """Whether a schema says nothing but the words of `PLAIN`, each rightly: then it can be used.

    Most say no more, and to see so takes a hundredth of the time that holding one against the schema of schemas does.
    """
    if not isinstance(schema, dict) or depth > DEEPEST:
        return False
    return all(word in PLAIN and PLAIN[word](value, depth + 1) for word, value in schema.items())


def _is_type(value: Any, _: int) -> bool:
    return isinstance(value, str) and value in TYPES


def _is_text(value: Any, _: int) -> bool:
    return isinstance(value, str)


def _is_anything(_value: Any, _: int) -> bool:
    return True


def _is_number(value: Any, _: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any, _: int) -> bool:
    return type(value) is int and value >= 0


def _are_names(value: Any, _: int) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value) and len(set(value)) == len(value)


def _are_schemas(value: Any, depth: int) -> bool:
    return isinstance(value, dict) and all(is_plain(one, depth) for one in value.values())


def _is_choice(value: Any, depth: int) -> bool:
    return isinstance(value, list) and bool(value) and all(is_plain(one, depth) for one in value)


def _is_schema_or_flag(value: Any, depth: int) -> bool:
    return isinstance(value, bool) or is_plain(value, depth)


TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
PLAIN: Final[Mapping[str, Callable[[Any, int], bool]]] = {
    "type": _is_type,
    "title": _is_text,
    "description": _is_text,
    "default": _is_anything,
    "const": _is_anything,
    "enum": lambda value, _: isinstance(value, list),
    "properties": _are_schemas,
    "required": _are_names,
    "items": _is_schema_or_flag,
    "additionalProperties": _is_schema_or_flag,
    "anyOf": _is_choice,
    "minimum": _is_number,
    "maximum": _is_number,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
}


def _trouble(schema: Mapping[str, Any]) -> str | None:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    references = set(_references(schema, 0))
    outside = sorted(one for one in references if not one.startswith("#"))
    if outside:
        return f"it refers to {outside[0][:80]}, and references lead nowhere outside it"
    if references:
        resolver = Registry().with_resource("", DRAFT202012.create_resource(dict(schema))).resolver("")
        for reference in sorted(references):
            try:
                resolver.lookup(reference)
            except Exception:  # unresolvable in one of many ways
                return f"it refers to {reference[:80]}, which is not in it"
    try:
        misfit({}, schema)
    except CannotJudge as why:
        return str(why).rstrip(".").lower()
    kind = validator_for(dict(schema), default=Draft202012Validator)
    error = next(iter(kind(kind.META_SCHEMA).iter_errors(dict(schema))), None)
    return None if error is None else f"at {error.json_path}: {error.message[:120]}"


def _references(part: Any, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        return
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from _references(value, depth + 1)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value, depth + 1)


class _TooManySteps(Exception):
    """The budget of one check is spent."""


@functools.cache
def _bounded(kind: type["Validator"]) -> type["Validator"]:
    """The validator class with each keyword counted, and those left out that could run away."""
    from jsonschema.validators import extend

    keywords: dict[str, Keyword] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    for name in ("pattern", "patternProperties", "unevaluatedProperties"):
        keywords[name] = _passes
    for name, unless in (("additionalProperties", _has_patterns), ("uniqueItems", _is_long)):
        if name in keywords:
            keywords[name] = _unless(unless, keywords[name])
    bounded: type[Validator] = extend(kind, keywords)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return bounded


def _counted(check: Keyword) -> Keyword:
    def counted(validator: Any, keyword: Any, value: Any, schema: Any) -> "Iterator[ValidationError] | None":
        left = _left.get()
        left[0] -= 1
        if left[0] < 0:
            raise _TooManySteps
        return check(validator, keyword, value, schema)

    return counted


def _passes(_validator: Any, _keyword: Any, _value: Any, _schema: Any) -> None:
    return None


def _unless(unless: Callable[[Any, Any], bool], check: Keyword) -> Keyword:
    def judged(validator: Any, keyword: Any, value: Any, schema: Any) -> "Iterator[ValidationError] | None":
        return None if unless(value, schema) else check(validator, keyword, value, schema)

    return judged


def _has_patterns(_value: Any, schema: Any) -> bool:
    return "patternProperties" in schema  # which of the properties are additional is then a matter of patterns


def _is_long(value: Any, _schema: Any) -> bool:
    return isinstance(value, list) and len(value) > MANY
