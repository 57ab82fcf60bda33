"""Clocks and dice: `rules` and `operations` take the time and every id as a value (STYLE 17)."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.repo.tree import APPS, Finding, Source, dotted, imported_names, sources

TIMELESS: Final = tuple(f"{app}/{room}" for app in APPS for room in ("rules", "operations"))
DATABASE_SIDE: Final = tuple(
    f"{app}/{room}" for app in APPS for room in ("rules", "operations", "queries", "models", "wake")
)
CLOCKS: Final = (
    "time",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "django.utils.timezone.now",
    "django.utils.timezone.localtime",
    "django.utils.timezone.localdate",
    "django.db.models.functions.Now",
)
DICE: Final = (
    "random",
    "secrets",
    "os.urandom",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid.uuid6",
    "uuid.uuid7",
    "uuid_utils",
    "base.ids.new",
)
SQL_CLOCK: Final = re.compile(
    r"(?<!oz0_)\bnow\(\)|\b(clock|statement|transaction)_timestamp\(\)|\bCURRENT_(TIMESTAMP|DATE)\b",
    re.IGNORECASE,
)


def process_clocks(tree: Path) -> list[Finding]:
    """Every clock or die that `rules` or `operations` read, and every clock of PostgreSQL that is not `oz0_now()`."""
    found = [finding for source in sources(tree, *TIMELESS) for finding in _in_python(source)]
    return found + [finding for source in sources(tree, *DATABASE_SIDE) for finding in _in_sql(source)]


@cache
def _in_python(source: Source) -> tuple[Finding, ...]:
    return tuple(_uses(source))


@cache
def _in_sql(source: Source) -> tuple[Finding, ...]:
    return tuple(_other_clocks(source))


def _uses(source: Source) -> Iterator[Finding]:
    names = imported_names(source.syntax)
    inner = {id(node.value) for node in ast.walk(source.syntax) if isinstance(node, ast.Attribute)}
    for node in ast.walk(source.syntax):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in inner:
            continue
        used = dotted(node, names)
        if used in CLOCKS or (used or "").startswith("time."):
            yield source.finding(node, f"`{used}` is this process's clock: take `now` from `db.write()` as a value")
        elif used is not None and any(used == die or used.startswith(f"{die}.") for die in DICE):
            yield source.finding(node, f"`{used}` throws dice: take the id or number as a value from the edge")


def _other_clocks(source: Source) -> Iterator[Finding]:
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(source.syntax):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation and SQL_CLOCK.search(text):
                yield source.finding(node, "SQL reads a clock that tests cannot move: use oz0_now()")
            case ast.keyword(arg="auto_now" | "auto_now_add", value=ast.Constant(value=True)):
                yield source.finding(
                    node,
                    f"`{node.arg}` is this process's clock: use db_default=OzNow() or the operation's now",
                )
