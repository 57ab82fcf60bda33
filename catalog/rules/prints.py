"""Which `print(...)` of a plugin's Python sources wrote a line that came where only the protocol may (CASES I02)."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 500_000  # bytes of one source
LEAST: Final = 3  # characters of its text that a print must share with the line to be found by them


@dataclass(frozen=True, slots=True)
class Printed:
    """A `print` without `file=`: where it stands, and the texts that are always in what it writes."""

    file: str
    line: int
    texts: tuple[str, ...]


def prints(files: Mapping[str, bytes]) -> tuple[Printed, ...]:
    """Every `print` to standard output, by file and line."""
    found = []
    for path, content in sorted(files.items()):
        if path.endswith(".py") and len(content) <= LARGEST and b"print" in content:
            found += list(_of_source(path, content))
    return tuple(found)


def printed_by(line: str, candidates: tuple[Printed, ...]) -> Printed | None:
    """The one that shares most with the line; the only one there is where none says anything of its own."""
    sharing = [one for one in candidates if one.texts and all(text in line for text in one.texts)]
    if sharing:
        return max(sharing, key=lambda one: sum(map(len, one.texts)))
    silent = [one for one in candidates if not one.texts]
    return silent[0] if len(silent) == 1 == len(candidates) else None


def _of_source(path: str, content: bytes) -> Iterator[Printed]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_print(node):
            yield Printed(path, node.lineno, tuple(_texts(node)))


def _is_print(node: ast.Call) -> bool:
    to_stdout = not any(word.arg == "file" for word in node.keywords)
    return isinstance(node.func, ast.Name) and node.func.id == "print" and to_stdout


def _texts(node: ast.Call) -> Iterator[str]:
    for argument in node.args:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for text in part.value.splitlines():
                    if len(text.strip()) >= LEAST:
                        yield text.strip()
