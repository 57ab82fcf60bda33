"""The form in which a person fills in a JSON object by its schema: arguments they edit, the input of a job.

Fields where the schema is simple. What a field cannot say is left to one text of JSON: for the whole, or where a form
wants it so for that one field.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from base.canonical import NotCanonical, parse
from base.visible import is_hidden

MOST: Final = 20  # fields
LONG: Final = 80  # characters, past which a text has several lines
YES, NO = "true", "false"
LIST, JSON = "list", "JSON"
FIELD, FIELD_OF_JSON = "field:", "json:"  # how the names of a form's fields begin
_TYPES: Final = ("string", "integer", "number", "boolean")


@dataclass(frozen=True, slots=True)
class Field:
    """One value. An optional one that is left empty is left out; `choices` are what a list of values offers.

    A list has an item on each line, whose type is `items`. `says` is what the schema says the value is for.
    """

    name: str
    type: str
    text: str
    required: bool
    choices: tuple[str, ...] = ()
    items: str = ""
    says: str = ""

    @property
    def long(self) -> bool:
        """Whether its text needs several lines."""
        several = self.type == "string" and (len(self.text) > LONG or "\n" in self.text)
        return several or self.type in (LIST, JSON)

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        words = {"string": "text", "integer": "whole number", "boolean": "yes or no"}
        if self.type == LIST:
            return f"list of {words.get(self.items, self.items)}s, one on each line"
        return "one of these" if self.choices and self.type == "string" else words.get(self.type, self.type)


def fields(schema: Mapping[str, Any], value: Any, *, json_fields: bool = False) -> tuple[Field, ...] | None:
    """The fields for an object of this schema with the values that it has; None where only JSON says all of it.

    With `json_fields` a value that no field can say is a field of JSON beside the others.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not isinstance(value, Mapping):
        return None
    if not 0 < len(properties) <= MOST or not set(value) <= set(properties):
        return None
    required = schema.get("required", [])
    found = []
    for name, said in properties.items():
        field = _field(name, said, value, name in required)
        if field is None and json_fields:
            field = Field(name, JSON, json.dumps(value[name], indent=2) if name in value else "", required=False)
        if field is None:
            return None
        description = said.get("description") if isinstance(said, Mapping) else None
        found.append(replace(field, says=description if isinstance(description, str) else ""))
    return tuple(found)


def _field(name: str, said: Any, value: Mapping[str, Any], required: bool) -> Field | None:
    if isinstance(said, Mapping) and said.get("type") == "array":
        return _list(name, said, value)
    if not isinstance(said, Mapping) or said.get("type") not in _TYPES:
        return None
    kind, given = said["type"], value.get(name)
    if given is not None and not _is(given, kind):
        return None
    if name in value and (given is None or (given == "" and not required)):
        return None  # null, or an empty text where leaving it empty means leaving it out
    if isinstance(given, str) and not _is_kept(given):
        return None
    listed = said.get("enum")
    choices: tuple[str, ...] = ()
    if isinstance(listed, list) and kind == "string" and all(isinstance(one, str) and one for one in listed):
        choices = tuple(listed)
    elif kind == "boolean":
        choices = (YES, NO)
    return Field(name, kind, _text(given), required, choices)


def _list(name: str, said: Mapping[str, Any], value: Mapping[str, Any]) -> Field | None:
    """A list of texts or numbers, one on each line. One that has no item is only told from none in JSON."""
    items = said.get("items")
    kind = items.get("type") if isinstance(items, Mapping) else None
    given = value.get(name, [])
    if kind not in ("string", "integer", "number") or not isinstance(given, list) or (name in value and not given):
        return None
    if not all(_is(one, kind) and (not isinstance(one, str) or _is_line(one)) for one in given):
        return None
    return Field(name, LIST, "\n".join(_text(one) for one in given), required=False, items=kind)


def _is(given: Any, kind: str) -> bool:
    fits = {"string": str, "boolean": bool}.get(kind, int | float)
    return isinstance(given, fits) and isinstance(given, bool) is (kind == "boolean")


def _is_line(text: str) -> bool:
    return bool(text.strip()) and text == text.strip() and "\n" not in text and _is_kept(text)


def _is_kept(text: str) -> bool:
    """Whether a field of a form keeps a text as it is, and shows it."""
    return not text.startswith("\n") and not any(is_hidden(one) for one in text if one not in "\n\t")


def _text(given: Any) -> str:
    if given is None:
        return ""
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**53:
        given = int(given)
    return given if isinstance(given, str) else json.dumps(given)


def typed(wanted: tuple[Field, ...]) -> dict[str, Any]:
    """The object that filled-in fields spell; what is no number stays a text, for the schema to refuse."""
    found: dict[str, Any] = {}
    for field in wanted:
        text = field.text
        if field.type == "string":
            text = text.replace("\r\n", "\n")  # as browsers send the lines of a text
            if text or field.required:
                found[field.name] = text
        elif field.type == LIST and text.strip():
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            found[field.name] = lines if field.items == "string" else [_number(line) for line in lines]
        elif text.strip():
            found[field.name] = _number(text.strip())
    return found


def filled(wanted: tuple[Field, ...], sent: Mapping[str, str]) -> tuple[Field, ...]:
    """The same fields with what a person typed into them, from what their form sent: a field of JSON stays one."""
    return tuple(
        Field(one.name, JSON, sent[FIELD_OF_JSON + one.name], required=False, says=one.says)
        if FIELD_OF_JSON + one.name in sent
        else replace(one, text=sent.get(FIELD + one.name, ""))
        for one in wanted
    )


def is_json(text: str) -> bool:
    """Whether a field of JSON holds any, or nothing."""
    try:
        parse(text.strip() or "null")
    except NotCanonical:
        return False
    return True


def about(path: str, name: str) -> bool:
    """Whether what is wrong at a path, such as `$.lines[2].id`, is of the field of this name."""
    return path == f"$.{name}" or path.startswith((f"$.{name}.", f"$.{name}[")) or path.startswith(f"$['{name}']")


def beside(wanted: Sequence[Field], troubles: Sequence[tuple[str, str]]) -> list[tuple[Field, list[str]]]:
    """Each field with what is wrong with it; `troubles` are (path, what is wrong there)."""
    return [(one, [what for path, what in troubles if about(path, one.name)]) for one in wanted]


def _number(text: str) -> Any:
    try:
        return parse(text)
    except NotCanonical:
        return text
