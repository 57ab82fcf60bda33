"""Do a call's arguments fit its function's schema? Looked at before a call is judged (RULES A3, MACHINES 6)."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from base import canonical

REMEMBERED: Final = 256  # schemas whose checkers a process keeps
SHOWN: Final = 500  # characters of what a schema says of a value
MOST_TOLD: Final = 20  # places that are named at once


def canonical_value(arguments: Any) -> tuple[Any, str]:
    """The canonical value of arguments, JSON text or not, and its digest. Raises `canonical.NotCanonical`.

    It is what is validated, shown, digested and sent (MACHINES 6).
    """
    value = canonical.parse(arguments) if isinstance(arguments, str) else arguments
    spelled = canonical.canonical(value)
    return canonical.parse(spelled), canonical.digest_of_spelled(spelled)


def misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Where `value` breaks `schema`, or nothing.

    A schema that cannot be used is the server's to answer for: nothing is fetched for it, and it refuses no call.
    """
    try:
        checker = _checker(json.dumps(schema))
        error = next(iter(checker.iter_errors(value)), None) if checker is not None else None
    except (Unresolvable, RecursionError, TypeError):
        return ""
    return f"{error.json_path}: {error.message[:SHOWN]}" if error else ""


def misfits(value: Any, schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Where `value` breaks `schema`, at most 20 places: (its path such as `$.items[2].id`, what is wrong there)."""
    try:
        checker = _checker(json.dumps(schema))
        found = islice(checker.iter_errors(value), MOST_TOLD) if checker is not None else ()
        return tuple((error.json_path, error.message[:SHOWN]) for error in found)
    except (Unresolvable, RecursionError, TypeError):
        return ()


@lru_cache(REMEMBERED)
def _checker(schema: str) -> Any:
    """What checks values by a schema, by its very text; None for one that cannot be used."""
    plain = json.loads(schema)
    try:
        kind = validator_for(plain, default=Draft202012Validator)
        kind.check_schema(plain)
    except (SchemaError, Unresolvable, RecursionError, TypeError):
        return None
    return kind(plain, registry=Registry())


def unkeepable(value: Any) -> str:
    """Where a canonical value holds the character NUL, which PostgreSQL keeps in no text; or nothing."""
    return next(_with_nul(value, "$"), "")


def _with_nul(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield f"{path}: holds the character NUL, which cannot be kept"
    elif isinstance(value, Mapping):
        for key, member in value.items():
            if "\0" in key:
                yield f"{path}: a key holds the character NUL, which cannot be kept"
            else:
                yield from _with_nul(member, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for place, member in enumerate(value):
            yield from _with_nul(member, f"{path}[{place}]")
