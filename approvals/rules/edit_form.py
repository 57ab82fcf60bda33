"""The form in which a person edits arguments: fields where the schema is simple, else one text of JSON (RULES A9)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from base.canonical import NotCanonical, parse
from base.visible import is_hidden

MOST: Final = 20  # fields
LONG: Final = 80  # characters, past which a text has several lines
YES, NO = "true", "false"
_TYPES: Final = ("string", "integer", "number", "boolean")


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. An optional one that is left empty is left out; `choices` are what a list of values offers."""

    name: str
    type: str
    text: str
    required: bool
    choices: tuple[str, ...] = ()

    @property
    def long(self) -> bool:
        """Whether its text needs several lines."""
        return self.type == "string" and (len(self.text) > LONG or "\n" in self.text)


def fields(schema: Mapping[str, Any], value: Any) -> tuple[Field, ...] | None:
    """The fields for arguments of this schema with the values that wait; None where only JSON says all of it."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not isinstance(value, Mapping):
        return None
    if not 0 < len(properties) <= MOST or not set(value) <= set(properties):
        return None
    required = schema.get("required", [])
    found = []
    for name, said in properties.items():
        field = _field(name, said, value, name in required)
        if field is None:
            return None
        found.append(field)
    return tuple(found)


def _field(name: str, said: Any, value: Mapping[str, Any], required: bool) -> Field | None:
    if not isinstance(said, Mapping) or said.get("type") not in _TYPES:
        return None
    kind, given = said["type"], value.get(name)
    fits = {"string": str, "boolean": bool}.get(kind, int | float)
    if given is not None and (not isinstance(given, fits) or isinstance(given, bool) is not (kind == "boolean")):
        return None
    if name in value and (given is None or (given == "" and not required)):
        return None  # null, or an empty text where leaving it empty means leaving it out
    if isinstance(given, str) and (given.startswith("\n") or any(is_hidden(one) for one in given if one not in "\n\t")):
        return None  # a field of a form would not keep it, or not show it
    listed = said.get("enum")
    choices: tuple[str, ...] = ()
    if isinstance(listed, list) and kind == "string" and all(isinstance(one, str) and one for one in listed):
        choices = tuple(listed)
    elif kind == "boolean":
        choices = (YES, NO)
    return Field(name, kind, _text(given), required, choices)


def _text(given: Any) -> str:
    if given is None:
        return ""
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**53:
        given = int(given)
    return given if isinstance(given, str) else json.dumps(given)


def typed(wanted: tuple[Field, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that the filled-in fields spell; what is no number stays a text, for the schema to refuse."""
    found: dict[str, Any] = {}
    for field in wanted:
        text = given.get(field.name, "")
        if field.type == "string":
            text = text.replace("\r\n", "\n")  # as browsers send the lines of a text
            if text or field.required:
                found[field.name] = text
        elif text.strip():
            found[field.name] = _number(text.strip())
    return found


def filled(wanted: tuple[Field, ...], given: Mapping[str, str]) -> tuple[Field, ...]:
    """The same fields with what a person typed into them."""
    return tuple(Field(one.name, one.type, given.get(one.name, ""), one.required, one.choices) for one in wanted)


def _number(text: str) -> Any:
    try:
        return parse(text)
    except NotCanonical:
        return text
