"""The API's description (OpenAPI) made whole, and read back for the page that shows it."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from base.bounded_body import JOURNAL
from base.problem import KIND

METHODS: Final = ("get", "post")


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is sent or read. `type` says what it is in a few words."""

    name: str
    type: str
    needed: bool
    says: str


@dataclass(frozen=True, slots=True)
class Address:
    """One address and method, for people."""

    id: str
    method: str
    path: str
    summary: str
    says: str
    asked: tuple[Field, ...]
    body: tuple[Field, ...]
    answer: tuple[Field, ...]
    statuses: tuple[tuple[int, str], ...]


def completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The description as it was generated, with problems under their own media type and one name for the token."""
    found = deepcopy(dict(schema))
    schemes = found.setdefault("components", {}).get("securitySchemes", {})
    found["components"]["securitySchemes"] = {"token": next(iter(schemes.values()))}
    for path, _, operation in _operations(found):
        operation["security"] = [{"token": []}]
        for status, told in operation["responses"].items():
            told["description"] = HTTPStatus(int(status)).phrase
            content = told.get("content", {})
            failed = int(status) >= HTTPStatus.BAD_REQUEST and not path.startswith(JOURNAL)
            if failed and "application/json" in content:
                told["content"] = {KIND: content["application/json"]}
    return found


def read(schema: Mapping[str, Any]) -> tuple[Address, ...]:
    """Every address with what it takes and answers."""
    return tuple(_address(schema, *one) for one in _operations(schema))


def _operations(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


def _address(schema: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> Address:
    asked = [
        Field(one["name"], _type(schema, one["schema"]), one.get("required", False), _says(one, one["schema"]))
        for one in operation.get("parameters", ())
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    statuses = sorted(map(int, operation["responses"]))
    good = operation["responses"].get(statuses[0], operation["responses"].get(str(statuses[0]), {}))
    answer = good.get("content", {}).get("application/json", {}).get("schema", {})
    return Address(
        id=f"{method}{path}".replace("/", "-").replace("{", "").replace("}", ""),
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        says=_plain(operation.get("description", "")),
        asked=tuple(asked),
        body=_fields(schema, body),
        answer=_fields(schema, answer),
        statuses=tuple((status, HTTPStatus(status).phrase) for status in statuses),
    )


def _fields(schema: Mapping[str, Any], of: Mapping[str, Any]) -> tuple[Field, ...]:
    whole = _resolved(schema, of)
    needed = whole.get("required", ())
    return tuple(
        Field(name, _type(schema, one), name in needed, _says(one)) for name, one in whole.get("properties", {}).items()
    )


def _resolved(schema: Mapping[str, Any], of: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in of:
        of = schema["components"]["schemas"][of["$ref"].rpartition("/")[2]]
    return of


def _plain(text: str) -> str:
    """Without the marks of Markdown, which the page has no use for."""
    return text.replace("`", "")


def _says(*of: Mapping[str, Any]) -> str:
    return _plain(next((one["description"] for one in of if one.get("description")), ""))


def _type(schema: Mapping[str, Any], of: Mapping[str, Any]) -> str:
    """In a few words, without what a value may not be."""
    if "anyOf" in of:
        kinds = [_type(schema, one) for one in of["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    whole = _resolved(schema, of)
    if "enum" in whole:
        return ", ".join(str(one) for one in whole["enum"] if one != "")
    if whole.get("type") == "array":
        return f"list of {_type(schema, whole.get('items', {}))}"
    if whole.get("type") == "object" and "properties" in whole:
        return f"{{{', '.join(whole['properties'])}}}"
    return "moment" if whole.get("format") == "date-time" else str(whole.get("type", "anything"))
