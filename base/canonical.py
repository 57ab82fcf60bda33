"""JSON that has one spelling (RFC 8785), its digests, and the values that have none (MACHINES 6)."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import rfc8785

LARGEST_INTEGER: Final = 2**53 - 1
WITH_EXPONENT: Final = 1e21  # from here on canonical JSON writes an exponent
TOO_LARGE: Final = "an integer beyond 2^53-1 loses digits on the way: send it as text"
DEEPEST: Final = 64  # levels of lists and objects
Json = Any


class NotCanonical(ValueError):
    """A value without a canonical spelling. `path` says where (`$.items[2].id`), `what` says why."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path: Final = path
        self.what: Final = what


def canonical(value: Json) -> bytes:
    """The one spelling of `value`, UTF-8. Raises `NotCanonical`, naming the path, when it has none."""
    check(value)
    return rfc8785.dumps(_plain(value))


def digest(value: Json) -> str:
    """The SHA-256 of the canonical spelling, 64 hex digits. Raises `NotCanonical`."""
    return digest_of_spelled(canonical(value))


def digest_of_spelled(spelled: bytes) -> str:
    """The digest of a value by its canonical spelling."""
    return hashlib.sha256(spelled).hexdigest()


def digest_of_any(value: Json) -> str:
    """A digest also for what has no canonical spelling, such as a schema with a huge bound written by somebody else.

    Equal to `digest` for every value that has one. Any other is digested by another spelling, which differs from every
    canonical one, so that two different values never share a digest.
    """
    try:
        return digest(value)
    except NotCanonical:
        spelled = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(b"\x00not canonical\x00" + spelled.encode()).hexdigest()


def check(value: Json) -> None:
    """Refuse what canonical JSON cannot say exactly. Raises `NotCanonical` for the first such place.

    That is: integers beyond 2^53-1, numbers that are not finite, lone surrogates, keys that are no text, deeper
    nesting than 64 levels, and types JSON does not have.
    """
    for path, what in _problems(value, "$", 0):
        raise NotCanonical(path, what)


def parse(text: str | bytes) -> Json:
    """The value of a JSON text whose objects name no key twice and whose values are all canonical.

    Raises `NotCanonical` with the path of the key or value, `$` when the text is not JSON at all.
    """
    try:
        tree = json.loads(text, object_pairs_hook=_Members, parse_constant=_Constant)
    except UnicodeDecodeError as error:
        raise NotCanonical("$", f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise NotCanonical("$", f"nested deeper than {DEEPEST} levels") from error
    except ValueError as error:
        raise NotCanonical("$", f"not JSON: {error}") from error
    value = _unfolded(tree, "$", 0)
    check(value)
    return value


class _Members(list[tuple[str, Any]]):
    """An object's members as they were written, duplicates included."""


class _Constant(str):
    """`NaN`, `Infinity` or `-Infinity`, which JSON does not have."""

    __slots__ = ()


def _unfolded(tree: Json, path: str, depth: int) -> Json:
    if depth > DEEPEST:
        raise NotCanonical(path, f"nested deeper than {DEEPEST} levels")
    if isinstance(tree, _Constant):
        raise NotCanonical(path, f"{tree} is not a number that JSON has")
    if isinstance(tree, _Members):
        members: dict[str, Any] = {}
        for key, value in tree:
            here = _member(path, key)
            if key in members:
                raise NotCanonical(here, "the key is there twice")
            members[key] = _unfolded(value, here, depth + 1)
        return members
    if isinstance(tree, list):
        return [_unfolded(value, f"{path}[{index}]", depth + 1) for index, value in enumerate(tree)]
    return tree


def _problems(value: Json, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEEPEST:
        yield path, f"nested deeper than {DEEPEST} levels"
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            yield path, TOO_LARGE
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield path, f"{value} is not a number that JSON has"
        elif LARGEST_INTEGER < abs(value) < WITH_EXPONENT and value.is_integer():
            yield path, TOO_LARGE  # its canonical spelling is that of an integer
    elif isinstance(value, str):
        if not _is_text(value):
            yield path, "holds half a surrogate pair, which is not text"
    elif isinstance(value, Mapping):
        for key, member in value.items():
            if not isinstance(key, str):
                yield path, f"a key is {type(key).__name__}, not text"
            elif not _is_text(key):
                yield path, "a key holds half a surrogate pair, which is not text"
            else:
                yield from _problems(member, _member(path, key), depth + 1)
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _problems(member, f"{path}[{index}]", depth + 1)
    else:
        yield path, f"{type(value).__name__} is not a JSON value"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"


def _plain(value: Json) -> Json:
    """The same value out of plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return value
