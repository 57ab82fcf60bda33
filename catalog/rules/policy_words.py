"""A policy rule as a person reads it: what it does, and each condition in words."""

import json
from dataclasses import replace
from typing import Any, Final

from base.figures import duration, plural
from catalog.rules.conditions import ArgumentIs, Is, Patterns
from catalog.rules.policy_rules import Effect, Rule
from catalog.rules.rates import Of, Rate

LONGEST_VALUE: Final = 80  # characters of a value in a condition
DOES: Final = {Effect.ALLOW: "runs", Effect.ASK: "asks a person", Effect.REFUSE: "is refused", Effect.WAIT: "waits"}
_COMPARED: Final = {
    Is.EQUALS: "=",
    Is.DIFFERS: "≠",
    Is.AT_MOST: "≤",
    Is.AT_LEAST: "≥",
    Is.LESS_THAN: "<",
    Is.MORE_THAN: ">",
    Is.ONE_OF: "is one of",
    Is.CONTAINS: "contains",
    Is.MATCHES: "matches",
    Is.REGEX: "fits the expression",
    Is.PRESENT: "is given",
    Is.ABSENT: "is left out",
}


def conditions(rule: Rule) -> tuple[str, ...]:
    """Each condition of a rule but for its end; none means that the rule is about every call."""
    said = [
        f"{what} {_names(patterns)}"
        for what, patterns in (
            ("kind", rule.kind),
            ("tool", rule.tool),
            ("function", rule.function),
            ("agent", rule.agent),
            ("started by", rule.starter),
        )
        if patterns is not None
    ]
    if rule.open_world is not None:
        said.append("may reach outside" if rule.open_world else "says that it reaches only its own data")
    if rule.tainted is not None:
        said.append("the job read another plugin's manual" if rule.tainted else "the job read no other plugin's manual")
    said += [argument(condition) for condition in rule.arguments]
    if rule.rate is not None:
        said.append(rate(rule.rate))
    if rule.repeated is not None:
        said.append(f"the job asked for the same call {rule.repeated:,} times or more")
    return tuple(said)


def of_a_call(rule: Rule) -> tuple[str, ...]:
    """The conditions that only a call settles: not those on what it is a call of."""
    return conditions(replace(rule, kind=None, tool=None, function=None, open_world=None))


def argument(condition: ArgumentIs) -> str:
    """A condition on an argument, such as `/amount > 10000`."""
    said = f"{pointer(condition.path)} {_COMPARED[condition.how]}"
    return said if condition.how in (Is.PRESENT, Is.ABSENT) else f"{said} {value(condition.value)}"


def rate(full: Rate) -> str:
    """When a rate is full."""
    whose = "the tool" if full.of is Of.TOOL else "the whole workspace"
    return f"{plural(full.calls, 'attempt')} of {whose} began within {duration(full.seconds, round_one=True)}"


def pointer(path: tuple[str, ...]) -> str:
    """The JSON pointer of a path."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def value(raw: Any) -> str:
    """A JSON value on one line, cut."""
    text = json.dumps(raw, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _names(patterns: Patterns) -> str:
    return " or ".join(patterns.words)
