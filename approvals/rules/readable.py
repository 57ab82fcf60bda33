"""Arguments as a person reads them: one line a value, with its place. The exact JSON stands beside it (RULES A3)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 40  # lines; what has more is shown as JSON alone
DEEPEST: Final = 4
LEAST: Final = 8  # characters that every value has in a short line


@dataclass(frozen=True, slots=True)
class Line:
    """One value. `text` is the text itself when it is `quoted`, else its JSON."""

    path: str
    text: str
    quoted: bool


def lines(value: Any) -> tuple[Line, ...]:
    """The values of an object, one a line; none when that would be no easier to read than its JSON."""
    if not isinstance(value, dict) or not value:
        return ()
    found = []
    for line in _lines("", value, 0):
        found.append(line)
        if len(found) > MOST:
            return ()
    return tuple(found)


def values_of(text: str) -> tuple[Line, ...]:
    """Every value of an object that is given as JSON, however many; none where it is no object."""
    value = json.loads(text)
    return tuple(_lines("", value, 0)) if isinstance(value, dict) and value else ()


def brief(text: str, room: int) -> tuple[tuple[str, str], ...]:
    """The names of an object's arguments with what they are, in about `room` characters, long values cut in the middle.

    `text` is JSON, or its beginning where it is long: that is cut as it is, under no name.
    """
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return (("", middle(text.removeprefix("{"), room)),)
    if not isinstance(value, dict):
        return (("", middle(text, room)),)
    pairs = [(name, one if isinstance(one, str) else _spelled(one)) for name, one in value.items()]
    left = room - sum(len(name) + 2 for name, _ in pairs)
    said: list[tuple[int, str, str]] = []
    for place, (name, one) in sorted(enumerate(pairs), key=lambda pair: len(pair[1][1])):  # short ones stay whole
        share = max(LEAST, left // (len(pairs) - len(said)))
        said.append((place, name, middle(one, share)))
        left -= min(len(one), share)
    return tuple((name, one) for _, name, one in sorted(said))


def middle(text: str, room: int) -> str:
    """`text` in at most `room` characters: its beginning and its end, with what is between left out."""
    if len(text) <= room:
        return text
    head = room // 2
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def _lines(path: str, value: Any, depth: int) -> Iterator[Line]:
    if isinstance(value, dict) and value and depth < DEEPEST:
        for name, member in value.items():
            yield from _lines(f"{path}.{name}" if path else str(name), member, depth + 1)
    elif isinstance(value, list) and value and depth < DEEPEST:
        for place, member in enumerate(value):
            yield from _lines(f"{path}[{place}]", member, depth + 1)
    elif isinstance(value, str):
        yield Line(path, value, True)
    else:
        yield Line(path, _spelled(value), False)


def _spelled(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)  # as it is written canonically, and sent
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
