"""Checking a value against a JSON Schema that somebody else wrote: no network, no regular expressions, bounded work.

A server's schema may name remote schemas, carry patterns that take for ever, or branch without end. So references
leave the schema nowhere, `pattern` and `patternProperties` are not judged (the server judges its own input), and a
check that takes too many steps is given up.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.jsonschema import DRAFT202012

STEPS: Final = 20_000  # keywords of the schema looked at for one value
DEEPEST: Final = 60  # levels of a schema in which references are looked for
MANY: Final = 1_000  # items of a list among which equal ones are still looked for

type Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
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
def _bounded(kind: type[Validator]) -> type[Validator]:
    """The validator class with each keyword counted, and those left out that could run away."""
    keywords: dict[str, Keyword] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    for name in ("pattern", "patternProperties", "unevaluatedProperties"):
        keywords[name] = _passes
    for name, unless in (("additionalProperties", _has_patterns), ("uniqueItems", _is_long)):
        if name in keywords:
            keywords[name] = _unless(unless, keywords[name])
    bounded: type[Validator] = extend(kind, keywords)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return bounded


def _counted(check: Keyword) -> Keyword:
    def counted(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:
        left = _left.get()
        left[0] -= 1
        if left[0] < 0:
            raise _TooManySteps
        return check(validator, keyword, value, schema)

    return counted


def _passes(_validator: Any, _keyword: Any, _value: Any, _schema: Any) -> None:
    return None


def _unless(unless: Callable[[Any, Any], bool], check: Keyword) -> Keyword:
    def judged(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:
        return None if unless(value, schema) else check(validator, keyword, value, schema)

    return judged


def _has_patterns(_value: Any, schema: Any) -> bool:
    return "patternProperties" in schema  # which of the properties are additional is then a matter of patterns


def _is_long(value: Any, _schema: Any) -> bool:
    return isinstance(value, list) and len(value) > MANY
