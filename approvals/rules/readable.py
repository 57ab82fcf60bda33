"""Arguments as a person reads them: one line a value, with its place. The exact JSON stands beside it (RULES A3)."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 40  # lines; what has more is shown as JSON alone
DEEPEST: Final = 4
LEAST: Final = 12  # characters that every value has in a short line
NAME: Final = 60  # characters of a file's name

_BEGUN: Final = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*'  # a text of JSON, but for its end
_MEMBER: Final = re.compile(rf'[{{,]\s*({_BEGUN}")\s*:\s*')
_FILE: Final = re.compile(r"\S*[/\\]([^\s/\\]+[/\\]?)")


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


def required_of(names: Any) -> tuple[str, ...]:
    """The `required` of a schema, as far as they are names: of its properties the order that PostgreSQL keeps."""
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def in_order(value: Any, names: Sequence[str]) -> Any:
    """An object with the members `names` first, in their order; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {name: value[name] for name in names if name in value} | value


def brief(text: str, room: int, names: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """An object's arguments, those of `names` first, with what they are, in about `room` characters.

    Short values stay whole. A path keeps its last part, a list of files their names, a longer text its beginning and
    how many characters more there are. `text` is JSON, or its beginning where it is long: then the arguments that are
    whole are told, and how the one after them begins.
    """
    value = _beginning(text)
    if not isinstance(value, dict):
        return (("", _cut(text, room)),)
    pairs = list(in_order(value, names).items())
    left = room - sum(len(name) + 2 for name, _ in pairs)
    said: list[tuple[int, str, str]] = []
    for place, (name, one) in sorted(
        enumerate(pairs), key=lambda pair: len(_told(pair[1][1]))
    ):  # short ones stay whole
        short = _shortened(one, max(LEAST, left // (len(pairs) - len(said))))
        said.append((place, name, short))
        left -= len(short)
    return tuple((name, one) for _, name, one in sorted(said))


class _Begun(str):
    """A text of which only the beginning is known."""

    __slots__ = ()


def _beginning(text: str) -> Any:
    """The value that `text` is as JSON; of an object that is cut off, its members as far as they go."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return dict(_members(text)) or None


def _members(text: str) -> Iterator[tuple[str, Any]]:
    """The members of an object that is cut off; the last one's value may be a text that is."""
    at = 0
    while member := _MEMBER.match(text, at):
        try:
            value, at = json.JSONDecoder().raw_decode(text, member.end())
        except ValueError:
            begun = re.match(_BEGUN, text[member.end() :])
            yield json.loads(member[1]), _Begun(json.loads(f'{begun[0]}"') if begun else text[member.end() :])
            return
        yield json.loads(member[1]), value


def _told(value: Any) -> str:
    return value if isinstance(value, str) else _spelled(value)


def _shortened(value: Any, room: int) -> str:
    """The value in about `room` characters, with what tells it from others like it."""
    text = _told(value)
    if isinstance(value, _Begun):
        return f"{text[:room]}…"
    if len(text) <= room:
        return text
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return _listed(value, room)
    file = _FILE.fullmatch(text)
    if file and isinstance(value, str):
        name = middle(file[1], NAME)
        head = text[: max(0, room - len(name) - 2)]
        return f"{head}…/{name}"
    return _cut(text, room) if any(map(str.isspace, text)) else middle(text, room)


def _listed(texts: Sequence[str], room: int) -> str:
    """The first of these texts, at least one, and how many more there are."""
    said: list[str] = []
    for text in texts:
        short = _spelled(_shortened(text, room // 2))
        if said and sum(map(len, said)) + len(short) > room:
            break
        said.append(short)
    more = len(texts) - len(said)
    return f"[{', '.join(said)}{f', +{more:,} more' if more else ''}]"


def _cut(text: str, room: int) -> str:
    """The beginning of a text, and how many characters more it has."""
    kept = text[: max(LEAST, room - len(f"… +{len(text):,} characters"))].rstrip()
    more = f"… +{len(text) - len(kept):,} characters"
    return text if len(text) <= len(kept) + len(more) else kept + more


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
