"""Whatever a person can change, by a page or a command, leaves an entry in the audit log (RULES A12).

Followed by name from each view that has an address and from each command of `oz0` to what it may come to do: what
comes to `db.write` must come to `audit.record` as well, or stand in `ELSEWHERE` with where it is kept instead.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.repo.tree import PRODUCT, Finding, Source, dotted, imported_names, sources

WRITES: Final = "base.db.write"
RECORDS: Final = "tenants.operations.audit.record"
URLS: Final = "studio/urls.py"
COMMANDS: Final = "studio/cli/"
COMMAND: Final = "command"
METHODS: Final = ("get", "post", "put", "patch", "delete")  # of a router of the API
ELSEWHERE: Final[Mapping[str, str]] = {
    "jobs.views.starting.new_job": "a start, and by whom, is the first event of the job's own journal",
    "jobs.api.jobs.start": "a start, and by whom, is the first event of the job's own journal",
    "studio.cli.jobs.start": "a start, and by whom, is the first event of the job's own journal",
    "studio.cli.sign_in_link.sign_in_link": "the sign-in itself is noted, when the link is used",
    "budgets.api.admission.check": "what was asked for and admitted, and by which key, is in the journal itself",
    "budgets.api.admission.confirm": "what was confirmed, by which key and by what, is in its receipt",
    "budgets.api.usage.tell": "what a program tells of its calls is kept as it was told",
    "budgets.api.pairs.renew": "that the pair was made is noted; its secrets change every quarter of an hour",
    "catalog.views.connections.begin": "a sign-in that only began; it is noted when it comes back",
}
# of an empty studio alone; that a token was used, and how often
NO_CHANGE: Final = frozenset(
    {
        "tenants.operations.sign_in.first_tenant",
        "tenants.operations.tokens.used",
        "tenants.operations.tokens.admit",
        "budgets.operations.keys.admit",
    }
)


def unaudited(tree: Path) -> list[Finding]:
    """Views and commands that change something and note it nowhere."""
    uses, places = _uses(tree)
    return [
        places[name].finding(node, f"`{name}` changes something and never comes to audit.record")
        for name, node in _entrances(tree)
        if name not in ELSEWHERE
        for reached in [_reached(name, uses)]
        if WRITES in reached and RECORDS not in reached
    ]


def _reached(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    found, to_see = set[str](), [name]
    while to_see:
        one = to_see.pop()
        if one not in found and one not in NO_CHANGE:
            found.add(one)
            to_see += uses.get(one, ())
    return found


def _uses(tree: Path) -> tuple[dict[str, set[str]], dict[str, Source]]:
    """What each function and class of the product names, and the file it stands in."""
    uses, places = dict[str, set[str]](), dict[str, Source]()
    for source in sources(tree, *PRODUCT):
        module = _module(source.place)
        names = imported_names(source.syntax)
        own = {node.name: f"{module}.{node.name}" for node in source.syntax.body if isinstance(node, _NAMED)}
        for node in source.syntax.body:
            if isinstance(node, _NAMED):
                key = own[node.name]
                uses[key] = {
                    used for part in ast.walk(node) if (used := dotted(part, {**names, **own})) is not None
                } - {key}
                places[key] = source
    return uses, places


_NAMED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _entrances(tree: Path) -> Iterator[tuple[str, ast.AST]]:
    """(name, its definition) of each view with an address, of each address of the API, and of each command."""
    addressed = set[str]()
    for source in sources(tree, "studio"):
        if source.place == URLS:
            names = imported_names(source.syntax)
            addressed = {used for part in ast.walk(source.syntax) if (used := dotted(part, names)) is not None}
    for source in sources(tree, *PRODUCT):
        module = _module(source.place)
        for node in source.syntax.body:
            if isinstance(node, ast.FunctionDef):
                name = f"{module}.{node.name}"
                commanded = source.place.startswith(COMMANDS) and _is_decorated(node, COMMAND)
                if name in addressed or commanded or ("/api/" in source.place and _is_decorated(node, *METHODS)):
                    yield name, node


def _is_decorated(node: ast.FunctionDef, *names: str) -> bool:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr in names:
            return True
    return False


def _module(place: str) -> str:
    return place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
