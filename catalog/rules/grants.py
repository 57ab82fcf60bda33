"""Which functions an agent may call, and the names the model calls them by (RULES C1, C6)."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.rules.manifest import tool_id_trouble
from catalog.rules.problems import Problem

MODEL_NAME_LONGEST: Final = 64
SEPARATOR: Final = "__"

_FUNCTION: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
_PATTERN: Final = re.compile(r"[A-Za-z0-9_*-]+\Z")


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A function of a tool, by their own names."""

    tool: str
    function: str

    def __str__(self) -> str:
        return f"{self.tool}.{self.function}"


def model_name(tool: str, function: str) -> str:
    """What the model calls a function. Only names without `name_trouble` can be sent."""
    return f"{tool}{SEPARATOR}{function}"


def from_model_name(name: str) -> Name | None:
    """The function a model's name means, or None when it cannot be one. The inverse of `model_name`.

    A tool's id has no two underscores and does not end with one, so the first two are the separator.
    """
    tool, separator, function = name.partition(SEPARATOR)
    if not separator or len(name) > MODEL_NAME_LONGEST or tool_id_trouble(tool) or not _FUNCTION.match(function):
        return None
    return Name(tool, function)


def name_trouble(tool: str, function: str) -> str | None:
    """Why a provider would refuse a function's name, or None when it can be sent (RULES C1)."""
    if not _FUNCTION.match(function):
        return "providers take only letters, digits, _ and - in a name"
    longer = len(model_name(tool, function)) - MODEL_NAME_LONGEST
    if longer > 0:
        return (
            f"{model_name(tool, function)} is {longer} longer than the {MODEL_NAME_LONGEST} characters providers take"
        )
    return None


def listing_problems(tool: str, functions: Iterable[str]) -> tuple[Problem, ...]:
    """What is wrong with the names of one tool's listing. They are refused by name, never changed (RULES C1)."""
    counted = Counter(list(functions))
    problems = [
        Problem(tool, 0, function, f"cannot be sent to a model: {why}", "rename the function in its server")
        for function in counted
        if (why := name_trouble(tool, function))
    ]
    problems += [
        Problem(
            tool,
            0,
            function,
            f"is listed {count} times",
            "give each function of the server a name of its own",
        )
        for function, count in counted.items()
        if count > 1
    ]
    return tuple(sorted(problems))


def grant_trouble(grant: str) -> str | None:
    """Why a text cannot be a grant, or None. A grant is `tool.function`, where `*` stands for any letters."""
    tool, dot, pattern = grant.partition(".")
    if not dot:
        return "it has no dot between tool and function"
    if "*" in tool:
        return "the tool is named whole, so that a new tool is never granted by itself"
    why = tool_id_trouble(tool)
    if why:
        return f"{tool!r} cannot be a tool's id: {why}"
    if not _PATTERN.match(pattern):
        return "the function is written with letters, digits, _, - and *"
    return None


def covers(grant: str, tool: str, function: str) -> bool:
    """Whether a grant gives this function."""
    owner, _, pattern = grant.partition(".")
    return owner == tool and matches(pattern, function)


def granted(
    grants: Iterable[str], available: Iterable[Name], *, unseen: Container[Name] = frozenset()
) -> tuple[Name, ...]:
    """The functions of `available` that an agent's grants give, each once, sorted.

    `unseen` are entries of remote listings that no person ever approved: a pattern does not give them, so that a new
    one is never granted by itself; a grant that writes the whole name does (RULES C3).
    """
    return granted_among(grants, by_tool(available), unseen=unseen)


def by_tool(available: Iterable[Name]) -> Mapping[str, Mapping[str, Name]]:
    """The functions by tool and name, to look many agents' grants up in."""
    found: dict[str, dict[str, Name]] = {}
    for name in available:
        found.setdefault(name.tool, {})[name.function] = name
    return found


def granted_among(
    grants: Iterable[str], available: Mapping[str, Mapping[str, Name]], *, unseen: Container[Name] = frozenset()
) -> tuple[Name, ...]:
    """The same as `granted`, of functions `by_tool`: what it takes grows with what the grants name alone."""
    found: set[Name] = set()
    for grant in grants:
        owner, _, pattern = grant.partition(".")
        functions = available.get(owner, {})
        if "*" in pattern:
            found.update(
                name for function, name in functions.items() if matches(pattern, function) and name not in unseen
            )
        elif pattern in functions:
            found.add(functions[pattern])
    return tuple(sorted(found, key=lambda name: (name.tool, name.function)))


def giving(grants: Iterable[str], name: Name, *, unseen: bool = False) -> tuple[str, ...]:
    """The grants that give this function, in their order. One that is `unseen` is given by its whole name alone."""
    return tuple(grant for grant in grants if covers(grant, name.tool, name.function) and not (unseen and "*" in grant))


def idle_grants(grants: Iterable[str], available: Iterable[Name]) -> tuple[str, ...]:
    """The grants that give nothing, in their order: a misspelt name, or a tool that is not here."""
    names = tuple(available)
    return tuple(grant for grant in grants if not any(covers(grant, name.tool, name.function) for name in names))


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern, where `*` stands for any letters and every other sign for itself, is the whole text."""
    if "*" not in pattern:
        return pattern == text
    first, *middle = pattern.split("*")
    last = middle.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
