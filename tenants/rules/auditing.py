"""Who may read the audit log, and how its entries read (RULES A12)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

READING_ROLES: Final = frozenset({"admin"})
MOST_CHANGES: Final = 200  # lines of one entry
DEEPEST: Final = 6
_ABSENT: Final = object()
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def why_not_read(role: str) -> str | None:
    """Why a person of this role may not read the audit log; None when they may."""
    return None if role in READING_ROLES else f"Admins read the audit log; your role here is {role}."


@dataclass(frozen=True, slots=True)
class Change:
    """One place of what an entry says: what stood there before and after, as text; None where nothing did."""

    path: str
    was: str | None
    now: str | None

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return self.was == self.now


def changes(before: Any, after: Any) -> tuple[Change, ...]:
    """What an entry changed, a line for each place; of an entry that has only one side, that side."""
    found: list[Change] = []
    for path, was, now in _walk("", _ABSENT if before is None else before, _ABSENT if after is None else after, 0):
        if len(found) >= MOST_CHANGES:
            break
        found.append(Change(path, _told(was), _told(now)))
    return tuple(found)


def _walk(path: str, before: Any, after: Any, depth: int) -> Iterator[tuple[str, Any, Any]]:
    sides = [side for side in (before, after) if side is not _ABSENT]
    if not sides:
        return
    if depth < DEEPEST and all(isinstance(side, dict) and side for side in sides):
        for name in {key: None for side in sides for key in side}:
            place = f"{path}.{name}" if path else str(name)
            yield from _walk(place, _of(before, name), _of(after, name), depth + 1)
    else:
        yield path, before, after


def _of(side: Any, name: str) -> Any:
    return side.get(name, _ABSENT) if isinstance(side, dict) else _ABSENT


def _told(value: Any) -> str | None:
    if value is _ABSENT or value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def cell(value: Any) -> str:
    """A value for a cell of a table that a spreadsheet opens: never a formula, whatever it begins with."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def came_from(how: str) -> tuple[str, str]:
    """(how the actor signed in, where from) of an entry's `how`, such as `link, 127.0.0.1`."""
    method, comma, place = how.rpartition(", ")
    return (method, place) if comma else (how, "")
