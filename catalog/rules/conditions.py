"""The conditions of a policy rule: whether one holds for a call, and whether one is narrower than another.

`holds` has three answers. `None` means the call does not settle it: the argument is of a type that the condition
cannot compare. The policy then leans to caution (`policy`). An argument that is missing settles it: it differs from
every value, and satisfies no other comparison.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import re2

from catalog.rules.grants import matches

MISSING: Final = object()


class Is(StrEnum):
    """How an argument is compared."""

    EQUALS = "equals"
    DIFFERS = "differs"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"
    LESS_THAN = "less_than"
    MORE_THAN = "more_than"
    ONE_OF = "one_of"
    CONTAINS = "contains"
    MATCHES = "matches"
    REGEX = "regex"
    PRESENT = "present"
    ABSENT = "absent"


_NUMERIC: Final = frozenset({Is.AT_MOST, Is.AT_LEAST, Is.LESS_THAN, Is.MORE_THAN})
_BARE: Final = frozenset({Is.PRESENT, Is.ABSENT})
REGEX_LONGEST: Final = 1_000  # characters of a regular expression
_REGEX_MEMORY: Final = 1 << 20  # bytes that one expression and its automaton may take
_REMEMBERED: Final = 1024  # expressions that a process keeps made


@dataclass(frozen=True, slots=True)
class Patterns:
    """Names, each a text where `*` stands for any letters; one that fits is enough."""

    words: tuple[str, ...]

    def holds(self, name: str) -> bool:
        """Whether a name fits."""
        for word in self.words:  # noqa: SIM110 - hundreds of rules are laid over thousands of functions
            if matches(word, name):
                return True
        return False

    def within(self, other: "Patterns") -> bool:
        """Whether every name that fits here surely fits there. A `*` can only be taken by a `*`, so this is sound."""
        return all(any(matches(wide, word) for wide in other.words) for word in self.words)


@dataclass(frozen=True, slots=True)
class ArgumentIs:
    """A condition on one argument. `path` is a JSON pointer such as `/amount`; `value` is JSON."""

    path: tuple[str, ...]
    how: Is
    value: Any = None

    def holds(self, arguments: Mapping[str, Any]) -> bool | None:
        """Whether it holds for these arguments; None when they do not settle it."""
        found = _at(arguments, self.path)
        if self.how is Is.PRESENT:
            return found is not MISSING
        if self.how is Is.ABSENT:
            return found is MISSING
        if found is MISSING:
            return self.how is Is.DIFFERS
        match self.how:
            case Is.EQUALS | Is.DIFFERS:
                if _type(found) != _type(self.value):
                    return None
                return (found == self.value) is (self.how is Is.EQUALS)
            case Is.ONE_OF:
                alike = [value for value in self.value if _type(value) == _type(found)]
                return found in alike if alike else None
            case Is.CONTAINS:
                return _contains(found, self.value)
            case Is.REGEX:
                return _expression(self.value).search(found) is not None if isinstance(found, str) else None
            case Is.MATCHES:
                return matches(self.value, found) if isinstance(found, str) else None
            case _:
                return _compared(self.how, found, self.value) if _type(found) == "number" else None


def read_argument(raw: Any) -> ArgumentIs:
    """The condition in `{"path": "/amount", "is": "at_most", "value": 100}`. Raises `ValueError` with what is odd."""
    if not isinstance(raw, Mapping):
        raise ValueError("an argument condition is a map of path, is and value")
    odd = set(raw) - {"path", "is", "value"}
    if odd:
        raise ValueError(f"an argument condition has no {sorted(odd, key=str)[0]}")
    path = raw.get("path")
    if not isinstance(path, str) or not path.startswith("/") or len(path) < 2:
        raise ValueError("path is a JSON pointer to the argument, such as /amount")
    how = raw.get("is")
    if how not in list(Is):
        raise ValueError(f"is takes one of {', '.join(Is)}")
    comparison = Is(how)
    if (comparison in _BARE) == ("value" in raw):
        raise ValueError(f"{comparison} takes {'no' if comparison in _BARE else 'a'} value")
    value = raw.get("value")
    if comparison in _NUMERIC and _type(value) != "number":
        raise ValueError(f"{comparison} takes a number")
    if comparison is Is.MATCHES and not isinstance(value, str):
        raise ValueError("matches takes a text, where * stands for any letters")
    if comparison is Is.REGEX:
        _check_expression(value)
    if comparison is Is.ONE_OF and not (isinstance(value, list) and value):
        raise ValueError("one_of takes a list of values")
    parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
    return ArgumentIs(parts, comparison, value)


def _check_expression(value: Any) -> None:
    if not isinstance(value, str) or not value or len(value) > REGEX_LONGEST:
        raise ValueError(f"regex takes a regular expression of up to {REGEX_LONGEST:,} characters")
    try:
        _expression(value)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else error
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(error)
        raise ValueError(
            f"regex cannot be read: {said[:200]}; it knows no look-around and no back-references"
        ) from error


@lru_cache(_REMEMBERED)
def _expression(pattern: str) -> Any:
    """An expression of RE2: its time grows with the text, whatever the expression is."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _REGEX_MEMORY
    return re2.compile(pattern, options)


def _contains(found: Any, part: Any) -> bool | None:
    """Whether a text has a text in it, or a list a value."""
    if isinstance(found, str):
        return part in found if isinstance(part, str) else None
    if isinstance(found, list):
        return any(_type(value) == _type(part) and value == part for value in found)
    return None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def _type(value: Any) -> str:
    match value:
        case bool():
            return "flag"
        case int() | float():
            return "number"
        case str():
            return "text"
        case None:
            return "null"
        case list() | tuple():
            return "list"
        case _:
            return "map"


def _compared(how: Is, found: float, bound: float) -> bool:
    match how:
        case Is.AT_MOST:
            return found <= bound
        case Is.AT_LEAST:
            return found >= bound
        case Is.LESS_THAN:
            return found < bound
        case _:
            return found > bound
