""" "Always allow": the rule that lets calls like this one run, exactly and with an end (RULES A11).

It fits only what the rule that asked fits too, so it is narrower than that one and beats it and no other. A rule that
refuses beats it, as does any other rule that asks and is not wider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

DAYS: Final = (1, 7, 30, 90)
USUAL_DAYS: Final = 7
MOST_PINS: Final = 20
_INHERITED: Final = ("starter", "open_world", "tainted")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a person chose: for this agent alone or for every one, with which arguments exactly as here, how long."""

    this_agent: bool
    pins: tuple[str, ...]
    days: int


@dataclass(frozen=True, slots=True)
class About:
    """The call a rule is made from, and the rule that asked about it; None when that was a default."""

    kind: str
    tool: str
    function: str
    agent: str
    arguments: Any
    asking: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Pin:
    """An argument that the rule can demand to be as it is here. `path` is a JSON pointer."""

    path: str
    value: Any


def pins(arguments: Any) -> tuple[Pin, ...]:
    """The arguments that have one plain value: texts, numbers, flags."""
    if not isinstance(arguments, Mapping):
        return ()
    plain = [(name, value) for name, value in arguments.items() if isinstance(value, str | int | float | bool)]
    return tuple(Pin("/" + name.replace("~", "~0").replace("/", "~1"), value) for name, value in plain[:MOST_PINS])


def why_not(about: About) -> str:
    """Why no rule that allows can beat the one that asked; empty when one can."""
    if about.asking is None:
        return ""
    counts = [key for key in ("rate", "repeated") if key in about.asking]
    if counts:
        return "The rule that asked counts calls, and no rule that allows beats one that counts: change that rule."
    return ""


def rule_of(about: About, chosen: Chosen, *, until: datetime, taken: Sequence[str]) -> dict[str, Any]:
    """The rule, with an id that is not among those `taken`."""
    asking = about.asking or {}
    rule: dict[str, Any] = {
        "id": _id(about, taken),
        "title": f"Always allow {about.tool}.{about.function}"[:200],
        "effect": "allow",
        "kind": about.kind,
        "tool": about.tool,
        "function": about.function,
    }
    if chosen.this_agent:
        rule["agent"] = about.agent
    elif "agent" in asking:
        rule["agent"] = asking["agent"]
    rule |= {key: asking[key] for key in _INHERITED if key in asking}
    values = {pin.path: pin.value for pin in pins(about.arguments)}
    conditions = [*asking.get("arguments", [])]
    conditions += [{"path": path, "is": "equals", "value": values[path]} for path in chosen.pins if path in values]
    if conditions:
        rule["arguments"] = conditions
    rule["until"] = until.isoformat()
    return rule


def end_of(chosen: Chosen, now: datetime) -> datetime:
    """When a rule of so many days ends: a full minute."""
    return (now + timedelta(days=chosen.days)).replace(second=0, microsecond=0)


def _id(about: About, taken: Sequence[str]) -> str:
    base = f"always-{about.tool}-{about.function}"[:90]
    if base not in taken:
        return base
    return next(name for at in range(2, len(taken) + 3) if (name := f"{base}-{at}") not in taken)
