"""An agent as it is kept with its plugin's version, and read back: what is kept may be of another time or hand."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from catalog.rules.agents import AgentSpec, Limits, RehearsalCall, RehearsalTurn, RunBounds
from catalog.rules.findings import Finding, Severity
from catalog.rules.lint import FILES


class Unreadable(ValueError):
    """What is kept of an agent is not what this version writes. The message says why and what to do."""


def as_json(agent: AgentSpec) -> dict[str, Any]:
    """An agent as JSON, to keep with its plugin's version; `from_json` reads it back."""
    return asdict(agent) | {"input_order": list(agent.input)}  # which JSON in the database would lose


def from_json(definition: Any) -> AgentSpec:
    """The agent that `as_json` wrote, also after its lists went through JSON. Raises `Unreadable`.

    Every part is of its type: whoever has the agent can use it.
    """
    try:
        return _read_back(definition)
    except (AttributeError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise Unreadable(f"the kept agent file cannot be read any more ({why[:200]}); load its plugin again") from error


def unreadable_finding(name: str, why: str) -> Finding:
    """The error of an agent that cannot be read."""
    fix = "add the plugin's folder again with oz0 plugin add FOLDER, or upload its pack"
    return Finding(Severity.ERROR, FILES, "agents/", 0, name, f"agent {name} is unreadable: {why}", fix)


def _read_back(definition: Any) -> AgentSpec:
    kept = dict(_map("it", definition))
    for name in kept.keys() & {"name", "model", "instructions", "tool_loading", "file", "connection"}:
        _text(name, kept[name])
    if kept.get("on_unknown") is not None:
        _text("on_unknown", kept["on_unknown"])
    for name in ("harness", "functions", "skills"):
        kept[name] = tuple(_text(name, one) for one in _list(name, kept.get(name, ())))
    _map("input", kept.get("input", {}))
    for schema in _map("input_schema", kept.get("input_schema", {})).values():
        _map("input_schema", schema)
    limits = _map("limits", kept["limits"])
    usd = limits.get("usd", 0.0)
    if isinstance(usd, bool) or not isinstance(usd, int | float):
        raise TypeError("usd is no number")
    kept["limits"] = Limits(**{name: _count(name, most) for name, most in limits.items() if name != "usd"}, usd=usd)
    if "max_tokens" in kept:
        kept["max_tokens"] = _count("max_tokens", kept["max_tokens"])
    if "runs" in kept:
        kept["runs"] = RunBounds(**{name: _count(name, most) for name, most in _map("runs", kept["runs"]).items()})
    kept["rehearsal"] = tuple(_turn(_map("a turn", turn)) for turn in _list("rehearsal", kept["rehearsal"]))
    order = [_text("input_order", name) for name in _list("input_order", kept.pop("input_order", ()))]
    given = kept.get("input", {})
    kept["input"] = {name: given[name] for name in dict.fromkeys([*order, *given]) if name in given}
    return AgentSpec(**kept)


def _turn(turn: Mapping[str, Any]) -> RehearsalTurn:
    continues = turn.get("continues")
    return RehearsalTurn(
        say=_text("say", turn["say"]),
        calls=tuple(_call(_map("a call", call)) for call in _list("calls", turn["calls"])),
        continues=None if continues is None else _map("continues", continues),
    )


def _call(call: Mapping[str, Any]) -> RehearsalCall:
    tool, function = _text("tool", call["tool"]), _text("function", call["function"])
    return RehearsalCall(tool, function, _map("arguments", call["arguments"]))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is not text")
    return value


def _list(name: str, value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} is not a list")
    return value


def _map(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is not an object")
    return value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is not a whole number")
    return value
