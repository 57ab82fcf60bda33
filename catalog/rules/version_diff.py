"""What is another in one version of a plugin than in the one before: tools, functions, agents, skills and files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from base.canonical import digest_of_any

KINDS: Final = ("tool", "function", "agent", "skill", "file")


@dataclass(frozen=True, slots=True)
class Changed:
    """One thing that is `new`, `gone` or `changed`; of a change the fields, where it has some."""

    kind: str
    name: str
    how: str
    fields: tuple[str, ...] = ()


def changes(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> tuple[Changed, ...]:
    """All that differs, by kind and name. Each version gives its things by kind, and each thing's value by name."""
    return tuple(one for kind in KINDS for one in _of_kind(kind, before.get(kind, {}), after.get(kind, {})))


def _of_kind(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Changed]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield Changed(kind, name, "new")
        elif name not in after:
            yield Changed(kind, name, "gone")
        elif digest_of_any(before[name]) != digest_of_any(after[name]):
            yield Changed(kind, name, "changed", _fields(before[name], after[name]))


def _fields(before: Any, after: Any) -> tuple[str, ...]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return ()
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if digest_of_any(before.get(name)) != digest_of_any(after.get(name)))
