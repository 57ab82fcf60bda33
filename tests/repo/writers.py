"""Who writes a state: one function may (STYLE 11)."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.repo.tree import APPS, Finding, Source, sources

MOVER: Final = "jobs/operations/moves.py"
STATE: Final = "state"
# The node and the MCP sessions have no rows: a `state` there is an attribute of an object of theirs.
WITHOUT_ROWS: Final = ("jobs/node/", "catalog/sessions/")
WRITES: Final = frozenset({"update", "bulk_update", "update_or_create", "insert", "save", "setattr"})
IN_SQL: Final = re.compile(rf"\bSET\b[^;]*?\b{STATE}\b\"?\s*=", re.IGNORECASE)
SAY: Final = f"writes a state outside the mover: call `move` of {MOVER}, which guards on seq and writes the event"


def other_writers(tree: Path) -> list[Finding]:
    """Every place but the mover that writes a state: by assignment, by a queryset's update, by SQL."""
    return [
        found
        for source in sources(tree, *APPS, "studio")
        if source.place != MOVER and not source.place.startswith(WITHOUT_ROWS) and "/migrations/" not in source.place
        for found in _writes_of(source)
    ]


@cache
def _writes_of(source: Source) -> tuple[Finding, ...]:
    return tuple(_writes(source))


def _writes(source: Source) -> Iterator[Finding]:
    for node in ast.walk(source.syntax):
        match node:
            case ast.Attribute(attr=attr, ctx=ast.Store()) if attr == STATE:
                yield source.finding(node, f"`.{STATE} =` {SAY}")
            case ast.Call() if _name(node) in WRITES and _names_state(node):
                yield source.finding(node, f"`{_name(node)}(…{STATE}…)` {SAY}")
            case ast.Constant(value=str(text)) if IN_SQL.search(text):
                yield source.finding(node, f"`SET {STATE}` {SAY}")


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _names_state(call: ast.Call) -> bool:
    """Whether the state is named as a keyword, or as a text among the arguments (`update_fields`, `**{…}`, setattr)."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(keyword.arg == STATE for keyword in call.keywords) or any(
        isinstance(inner, ast.Constant) and inner.value == STATE for argument in given for inner in ast.walk(argument)
    )
