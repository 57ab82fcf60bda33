"""Do a call's arguments fit its function's schema? Looked at before a call is judged (RULES A3, MACHINES 6)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

SHOWN: Final = 500  # characters of what a schema says of a value


def misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Where `value` breaks `schema`, or nothing.

    A schema that cannot be used is the server's to answer for: nothing is fetched for it, and it refuses no call.
    """
    plain = dict(schema)
    try:
        kind = validator_for(plain, default=Draft202012Validator)
        kind.check_schema(plain)
        error = next(iter(kind(plain, registry=Registry()).iter_errors(value)), None)
    except (SchemaError, Unresolvable, RecursionError, TypeError):
        return ""
    return f"{error.json_path}: {error.message[:SHOWN]}" if error else ""


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
