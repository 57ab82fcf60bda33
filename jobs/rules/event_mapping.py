"""How the JSON of an event becomes an agent's input: a place in the event or a constant for each input, and no more.

Nothing is computed, so the mapping always ends, and what it gives is always in the event or in the mapping itself. A
place is a JSON Pointer (RFC 6901): `/issue/title`, `/items/0/id`, and nothing at all for the whole event.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 50  # inputs
LONGEST: Final = 500  # characters of a pointer
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Place:
    """A value of the event. Where it is `optional` and not there, the input is the agent's own."""

    pointer: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for each event."""

    value: Any


type Mapped = Mapping[str, Place | Constant]


class BadPlace(ValueError):
    """A pointer that is none; the message says what is wrong with it."""


class NotThere(ValueError):
    """What the event does not hold: `troubles` are (input, what is wrong)."""

    def __init__(self, *troubles: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {what}" for name, what in troubles))
        self.troubles = troubles


def as_json(mapped: Mapped) -> dict[str, Any]:
    """The mapping as it is kept."""
    return {
        name: {"value": one.value} if isinstance(one, Constant) else {"at": one.pointer, "optional": one.optional}
        for name, one in mapped.items()
    }


def from_json(kept: Mapping[str, Any]) -> dict[str, Place | Constant]:
    """The mapping that was kept."""
    return {
        str(name): Constant(one["value"]) if "value" in one else Place(str(one["at"]), one.get("optional") is True)
        for name, one in kept.items()
    }


def read_pointer(text: str) -> str:
    """The pointer that somebody typed. Raises `BadPlace`."""
    if len(text) > LONGEST:
        raise BadPlace(f"A place has at most {LONGEST} characters.")
    if text and not text.startswith("/"):
        raise BadPlace("A place in the event begins with a slash, such as /issue/title.")
    rest = text.replace("~0", "").replace("~1", "")
    if "~" in rest or "\0" in text:
        raise BadPlace("In a place ~ is written ~0, and a slash in a name ~1.")
    return text


def given(event: Any, mapped: Mapped) -> dict[str, Any]:
    """The input that an event gives. Raises `NotThere`, which names each input that it does not give."""
    found: dict[str, Any] = {}
    troubles: list[tuple[str, str]] = []
    for name, one in mapped.items():
        if isinstance(one, Constant):
            found[name] = one.value
            continue
        value, stops = _look_up(event, one.pointer)
        if value is not _NOTHING:
            found[name] = value
        elif not one.optional:
            troubles.append((name, f"the event has nothing at {one.pointer}: {stops}"))
    if troubles:
        raise NotThere(*troubles)
    return found


def _look_up(event: Any, pointer: str) -> tuple[Any, str]:
    """What stands at a place; else what there is instead where the way there ends."""
    at, way = event, ""
    for raw in pointer.split("/")[1:]:
        name = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping):
            if name not in at:
                return _NOTHING, f"{way or 'the event'} has no {raw}"
            at = at[name]
        elif isinstance(at, list):
            if not (name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 10):
                return _NOTHING, f"{way or 'the event'} is a list, and {raw} is no number of an item"
            if int(name) >= len(at):
                return _NOTHING, f"{way or 'the event'} has {len(at)} items"
            at = at[int(name)]
        else:
            return _NOTHING, f"{way or 'the event'} is neither an object nor a list"
        way = f"{way}/{raw}"
    return at, ""
