"""Which rule of docs/rules.md is proven by which tests: `make rules` prints it.

A test proves a rule by carrying its number, `@pytest.mark.rule("U4")`, on itself, its class, its module, or a
parameter of it. It is read from the source, so the report needs no database and no test run.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.repo.tree import ROOT, Finding, Source, sources

PAGE: Final = "docs/rules.md"
RULE: Final = re.compile(r"^- \*\*(?P<number>[A-Z]+\d+)\*\* (?P<text>.+)$", re.MULTILINE)
SHOWN: Final = 90


def rules(page: str) -> dict[str, str]:
    """The rules of a page, number to text, in its order. Raises `ValueError` when a number stands twice."""
    found: dict[str, str] = {}
    for match in RULE.finditer(page):
        number = match["number"]
        if number in found:
            raise ValueError(f"rule {number} stands twice in {PAGE}: give one of the two a new number")
        found[number] = match["text"]
    return found


def proofs(tree: Path) -> dict[str, list[str]]:
    """The tests that carry each number: `{"U4": ["tests/rules/test_retry.py::test_…"]}`."""
    found: dict[str, list[str]] = {}
    for source in sources(tree, "tests"):
        for test, marker in _marked(source):
            for number in _numbers(marker):
                if (name := f"{source.place}::{test}") not in found.setdefault(number, []):
                    found[number].append(name)
    return found


def unknown_numbers(tree: Path) -> list[Finding]:
    """Markers that name no rule, and markers that carry no number that can be read from the source."""
    known = rules((tree / PAGE).read_text())
    found = []
    for source in sources(tree, "tests"):
        for _, marker in _marked(source):
            numbers = _numbers(marker)
            if not numbers or len(numbers) != len(marker.args) or marker.keywords:
                found.append(source.finding(marker, 'write the numbers out: @pytest.mark.rule("U4")'))
            found += [
                source.finding(marker, f"names no rule: {number} is not in {PAGE}")
                for number in numbers
                if number not in known
            ]
    return found


def report(page: Mapping[str, str], proven: Mapping[str, list[str]]) -> str:
    """Each rule with its tests, then the unproven ones, then `proven N of M`."""
    lines = []
    unproven = [number for number in page if not proven.get(number)]
    for number, text in page.items():
        if number not in unproven:
            lines += [f"{number}  {_short(text)}", *(f"      {test}" for test in proven[number])]
    if unproven:
        lines += ["", "not proven yet:", *(f"{number}  {_short(page[number])}" for number in unproven)]
    return "\n".join([*lines, "", f"proven {len(page) - len(unproven)} of {len(page)}"])


def differing(theirs: str, ours: str) -> list[str]:
    """Every rule of another page that does not stand in ours word for word; ours may have more."""
    own = rules(ours)
    return [
        f"{number} stands as\n  {own.get(number, '(not at all)')}\nand there as\n  {text}"
        for number, text in rules(theirs).items()
        if own.get(number) != text
    ]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"


def _marked(source: Source) -> Iterator[tuple[str, ast.Call]]:
    """Each use of the marker, with the test (or class, or `*` for the whole file) that carries it."""

    def within(body: list[ast.stmt], owner: str) -> Iterator[tuple[str, ast.Call]]:
        for node in body:
            match node:
                case ast.ClassDef(name=name, decorator_list=decorators, body=inner):
                    for decorator in decorators:
                        yield from ((f"{owner}{name}", call) for call in _markers(decorator))
                    yield from within(inner, f"{owner}{name}::")
                case (
                    ast.FunctionDef(name=name, decorator_list=decorators)
                    | ast.AsyncFunctionDef(name=name, decorator_list=decorators)
                ):
                    for decorator in decorators:
                        yield from ((f"{owner}{name}", call) for call in _markers(decorator))
                case _:
                    yield from ((f"{owner}*", call) for call in _markers(node))

    yield from within(source.syntax.body, "")


def _markers(node: ast.AST) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(attr="rule", value=ast.Attribute(attr="mark"))):
                yield inner


def _numbers(marker: ast.Call) -> list[str]:
    return [arg.value for arg in marker.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]


def main() -> int:
    """Print the report; 1 when a marker names no rule."""
    print(report(rules((ROOT / PAGE).read_text()), proofs(ROOT)))
    wrong = unknown_numbers(ROOT)
    for finding in wrong:
        print(finding, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
