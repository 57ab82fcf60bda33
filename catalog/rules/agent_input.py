"""What a job of an agent may be started with, as a JSON Schema: what its file says of its inputs, or their defaults."""

from collections.abc import Mapping
from typing import Any

from catalog.rules.agents import AgentSpec


def schema_of(agent: AgentSpec) -> dict[str, Any]:
    """The schema of the whole input. An input without one of its own takes what its default is one of.

    A text can be empty; anything else that is left out is the agent's own.
    """
    properties = {name: _of(agent.input_schema.get(name), default) for name, default in agent.input.items()}
    texts = [name for name, default in agent.input.items() if isinstance(default, str)]
    return {"type": "object", "properties": properties, "required": texts, "additionalProperties": False}


def asked_of(agent: AgentSpec) -> dict[str, Any]:
    """The schema of what every start is held to, whoever starts: what the file itself says."""
    return {"type": "object", "properties": dict(agent.input_schema)}


def _of(schema: Mapping[str, Any] | None, default: Any) -> dict[str, Any]:
    if schema is None:
        return _like(default)
    typed = {} if "type" in schema else {"type": kind} if (kind := _kind(schema, default)) else {}
    return {**typed, **schema}


def _kind(schema: Mapping[str, Any], default: Any) -> str:
    """The type that a schema leaves unsaid, where all its values have one."""
    values = schema.get("enum", [default])
    kinds = {_like(value).get("type", "") for value in values} if isinstance(values, list) else {""}
    return kinds.pop() if len(kinds) == 1 else ""


def _like(default: Any) -> dict[str, Any]:
    match default:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case str() | None:
            return {"type": "string"}
        case list():
            kinds = {_like(one)["type"] for one in default} or {"string"}
            one = kinds.pop() if len(kinds) == 1 else ""
            return {"type": "array", "items": {"type": one}} if one in ("string", "number") else {"type": "array"}
        case _:
            return {"type": "object"}
