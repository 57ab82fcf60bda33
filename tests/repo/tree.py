"""Reading a source tree: which files belong to it, their syntax trees, and findings in them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
APPS: Final = ("approvals", "jobs", "catalog", "budgets", "tenants")
PRODUCT: Final = ("studio", *APPS, "base")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is not as it should be: where, and in a sentence what to do instead."""

    place: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its place in the tree (`jobs/rules/states.py`) and its syntax tree."""

    place: str
    syntax: ast.Module

    def finding(self, node: ast.AST, what: str) -> Finding:
        """A finding at a node of this file."""
        return Finding(self.place, getattr(node, "lineno", 1), what)


def tell(findings: list[Finding]) -> str:
    """The findings as a test's message, one a line."""
    return "\n" + "\n".join(str(finding) for finding in sorted(findings))


def files(tree: Path) -> Iterator[Path]:
    """Every file of the tree that Git would keep: what `.gitignore` names is passed over."""
    ignored = [
        line.strip().strip("/")
        for line in (tree / ".gitignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]

    def walk(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.name == ".git" or any(fnmatch(path.name, pattern) for pattern in ignored):
                continue
            if path.is_dir():
                yield from walk(path)
            else:
                yield path

    yield from walk(tree)


def sources(tree: Path, *rooms: str) -> Iterator[Source]:
    """The Python files below the given rooms (`"jobs"`, `"*/rules"`), or of the whole tree."""
    for path in files(tree):
        place = path.relative_to(tree).as_posix()
        if path.suffix == ".py" and (not rooms or any(_is_in(place, room) for room in rooms)):
            yield Source(place, _parse(path, path.stat().st_mtime_ns))


def _is_in(place: str, room: str) -> bool:
    return fnmatch(place, f"{room}/*") or fnmatch(place, f"{room}.py")


@cache
def _parse(path: Path, changed: int) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imported_names(syntax: ast.Module) -> dict[str, str]:
    """What each imported name of a module stands for: `{"now": "django.utils.timezone.now", "time": "time"}`."""
    names: dict[str, str] = {}
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """The full name an expression such as `timezone.now` stands for, or None when it is not an imported one."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value, names)
            return f"{owner}.{attr}" if owner else None
        case _:
            return None
