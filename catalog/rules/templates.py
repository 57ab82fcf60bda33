"""The one small template language of plugin files: `{{ input.order_id }}` is replaced, and nothing else happens.

There are no expressions, filters or loops. What is put in is never read again, so a value that looks like a
placeholder stays text. Which names may stand where is checked when the file is read; filling cannot fail.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

HOME: Final = "home"  # the studio's state folder
INPUT: Final = "input"  # what the job was started with
RESULTS: Final = "results"  # results.N: what the model read of the rehearsal's N-th call, from 0
LAST: Final = "last"  # what the model read of the turn before, all calls of it

_PLACE: Final = re.compile(r"\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")
_NAMES: Final = re.compile(r"(home|last|input(\.[A-Za-z0-9_-]+)?|results\.(0|[1-9][0-9]{0,3}))\Z")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which placeholders may stand in a text: `inputs` are the names of the agent's `input:`, None for no input at all.

    `results` is how many calls came before.
    """

    inputs: frozenset[str] | None = None
    results: int = 0

    def words(self) -> str:
        """The allowed placeholders, for a fix."""
        words = ["{{ home }}"]
        if self.inputs is not None:
            words += ["{{ input }}", *(f"{{{{ input.{name} }}}}" for name in sorted(self.inputs))]
        if self.results:
            words += [
                "{{ last }}",
                "{{ results.0 }}" + (f" to {{{{ results.{self.results - 1} }}}}" if self.results > 1 else ""),
            ]
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Values:
    """What placeholders stand for: the job's `input`, and the agent's `defaults` for what that leaves out."""

    home: str = ""
    input: Any = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[str] = ()
    last: str = ""


def trouble(text: str, allowed: Allowed) -> str | None:
    """Why a text's placeholders cannot stand there, or None when they all can."""
    rest = _PLACE.sub("", text)
    if "{{" in rest or "}}" in rest:
        return "a placeholder is not closed or holds more than a name"
    for name in _PLACE.findall(text):
        if not _known(name, allowed):
            return f"{{{{ {name} }}}} does not exist here"
    return None


def texts_in(value: Any) -> list[str]:
    """Every text of a JSON value, the keys of its maps left out."""
    match value:
        case str():
            return [value]
        case list() | tuple():
            return [text for item in value for text in texts_in(item)]
        case dict():
            return [text for item in value.values() for text in texts_in(item)]
        case _:
            return []


def fill(value: Any, values: Values) -> Any:
    """A JSON value with its placeholders replaced. A text that is one placeholder becomes the value with its type."""
    match value:
        case str():
            whole = _PLACE.fullmatch(value)
            if whole:
                return _value(whole[1], values)
            return _PLACE.sub(lambda found: _as_text(_value(found[1], values)), value)
        case list() | tuple():
            return [fill(item, values) for item in value]
        case Mapping():
            return {key: fill(item, values) for key, item in value.items()}
        case _:
            return value


def fill_text(text: str, values: Values) -> str:
    """A text with its placeholders replaced, always text."""
    return _as_text(fill(text, values))


def _known(name: str, allowed: Allowed) -> bool:
    if not _NAMES.match(name):
        return False
    root, _, rest = name.partition(".")
    if root == INPUT:
        return allowed.inputs is not None and (not rest or rest in allowed.inputs)
    if root == LAST:
        return allowed.results > 0
    if root == RESULTS:
        return int(rest) < allowed.results
    return True


def _value(name: str, values: Values) -> Any:
    root, _, rest = name.partition(".")
    if root == HOME:
        return values.home
    if root == LAST:
        return values.last
    if root == RESULTS:
        return values.results[int(rest)] if rest.isdigit() and int(rest) < len(values.results) else ""
    if not rest:
        return values.input if values.input not in (None, {}) else dict(values.defaults)
    given = values.input if isinstance(values.input, Mapping) else {}
    return given[rest] if rest in given else values.defaults.get(rest, "")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
