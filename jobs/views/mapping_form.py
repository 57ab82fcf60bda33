"""The part of a hook's form that says where each input of an agent comes from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest

from base.text import pretty
from catalog.rules.agents import AgentSpec
from jobs.rules import event_mapping
from jobs.rules.event_mapping import BadPlace, Constant, Mapped, NotThere, Place

OWN, EVENT, ALWAYS = "own", "event", "always"
HOW: Final[Mapping[str, str]] = {OWN: "the agent's own", EVENT: "from the event", ALWAYS: "always"}
NO_JSON: Final = "This is not JSON: look for a missing quote, comma or bracket."


@dataclass(frozen=True, slots=True)
class Row:
    """One input: how it is filled in, by which place or value, and what is wrong with that."""

    name: str
    own: str
    how: str
    text: str
    optional: bool
    is_text: bool
    wrong: str = ""


def rows_of(spec: AgentSpec | None, mapped: Mapped) -> tuple[Row, ...]:
    """The rows of an agent's inputs, filled in with a mapping."""
    return tuple(_row(name, default, mapped.get(name)) for name, default in (spec.input if spec else {}).items())


def sent(request: HttpRequest, spec: AgentSpec | None) -> tuple[Row, ...]:
    """The same as a form sent them."""
    found = []
    for row in rows_of(spec, {}):
        how = request.POST.get(f"how:{row.name}", OWN)
        text = request.POST.get(f"text:{row.name}", "")[:10_000]
        optional = f"optional:{row.name}" in request.POST
        found.append(Row(row.name, row.own, how if how in HOW else OWN, text, optional, row.is_text))
    return tuple(found)


def read(rows: Sequence[Row]) -> tuple[dict[str, Place | Constant], dict[str, str]]:
    """The mapping that rows say, and what is wrong with which."""
    found: dict[str, Place | Constant] = {}
    wrong: dict[str, str] = {}
    for row in rows:
        try:
            if row.how == EVENT:
                found[row.name] = Place(event_mapping.read_pointer(row.text.strip()), row.optional)
            elif row.how == ALWAYS:
                found[row.name] = Constant(row.text.replace("\r\n", "\n") if row.is_text else json.loads(row.text))
        except BadPlace as error:
            wrong[row.name] = str(error)
        except (ValueError, RecursionError):
            wrong[row.name] = NO_JSON
    return found, wrong


def tried(mapped: Mapped, example: str) -> tuple[str, dict[str, str], str]:
    """What an example of an event gives: the input as JSON, else what is wrong by input, or with the example."""
    try:
        event = json.loads(example)
    except (ValueError, RecursionError):
        return "", {}, "The example is not JSON: look for a missing quote, comma or bracket."
    try:
        return pretty(event_mapping.given(event, mapped)), {}, ""
    except NotThere as error:
        return "", {name: f"{what[:1].upper()}{what[1:]}." for name, what in error.troubles}, ""


def _row(name: str, default: Any, one: Place | Constant | None) -> Row:
    is_text = isinstance(default, str)
    own = default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
    match one:
        case None:
            return Row(name, own, OWN, "", False, is_text)
        case Place(pointer, optional):
            return Row(name, own, EVENT, pointer, optional, is_text)
        case Constant(value):
            text = value if is_text and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return Row(name, own, ALWAYS, text, False, is_text)
