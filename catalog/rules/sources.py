"""Where a plugin's Python sources define its functions, and how those meet a cancel: read, never run (RULES D5)."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

LARGEST = 1_000_000  # bytes of a source that is still looked at
ASKS = frozenset({"check_cancelled", "cancel_requested"})
BLOCKS = frozenset({"time.sleep", "requests.get", "requests.post", "subprocess.run", "urllib.request.urlopen"})

WHOLE = frozenset({"read", "read_text", "read_bytes", "readlines", "fetchall", "getvalue"})
AS_LONG = frozenset({"decode", "splitlines", "strip", "replace", "lower"})  # leave a text about as long as it was
MADE_OF = frozenset({"str", "list", "tuple", "dumps", "loads", "b64encode"})


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """One function that a source offers as a tool.

    `asks` is whether it looks for its cancellation. `unbounded` are the lines of shields that have no end, `blocking`
    those of calls that stop a whole server while an `async` function waits in them; `shields` are the seconds of those
    that do end. `wholes` are lines that return all that something holds, however much that is, and what reads it.
    """

    name: str
    file: str
    line: int
    is_async: bool
    asks: bool
    unbounded: tuple[int, ...] = ()
    blocking: tuple[tuple[int, str], ...] = ()
    shields: tuple[tuple[int, float], ...] = ()
    wholes: tuple[tuple[int, str], ...] = ()


def functions(files: Mapping[str, bytes]) -> dict[str, SourceFunction]:
    """The functions with a `….tool(…)` decorator, by the name they are listed under; a name met twice is left out."""
    found: dict[str, SourceFunction] = {}
    twice: set[str] = set()
    for path, content in files.items():
        if not path.endswith(".py") or len(content) > LARGEST or b".tool" not in content:
            continue
        for one in _of_source(path, content):
            twice |= {one.name} & found.keys()
            found[one.name] = one
    return {name: one for name, one in found.items() if name not in twice}


def _of_source(path: str, content: bytes) -> Iterator[SourceFunction]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    numbers = {
        target.id: float(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, int | float)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorator = next((one for one in node.decorator_list if _is_tool(one)), None)
            if decorator is not None:
                yield _function(path, node, decorator, numbers)


def _is_tool(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Attribute) and called.attr == "tool"


def _function(
    path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr, numbers: Mapping[str, float]
) -> SourceFunction:
    inside = [part for statement in node.body for part in ast.walk(statement)]
    is_async = isinstance(node, ast.AsyncFunctionDef)
    shields = list(_shields(inside, numbers))
    return SourceFunction(
        name=_listed_name(decorator) or node.name,
        file=path,
        line=node.lineno,
        is_async=is_async,
        asks=any(isinstance(part, ast.Attribute | ast.Name) and _last(part) in ASKS for part in inside),
        unbounded=tuple(line for line, seconds in shields if seconds is None),
        blocking=tuple(_blocking(inside)) if is_async else (),
        shields=tuple((line, seconds) for line, seconds in shields if seconds is not None and seconds > 0),
        wholes=tuple(_wholes(inside)),
    )


def _listed_name(decorator: ast.expr) -> str:
    if not isinstance(decorator, ast.Call):
        return ""
    given = [word.value for word in decorator.keywords if word.arg == "name"] or decorator.args[:1]
    first = given[0] if given else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _shields(inside: Iterable[ast.AST], numbers: Mapping[str, float]) -> Iterator[tuple[int, float | None]]:
    """The line of each shielded scope and its seconds: None without a limit, 0 when the limit cannot be read here."""
    for part in inside:
        if not isinstance(part, ast.Call):
            continue
        words = {word.arg: word.value for word in part.keywords}
        shield = words.get("shield")
        if not (isinstance(shield, ast.Constant) and shield.value is True):
            continue
        if _last(part.func) == "CancelScope":
            yield part.lineno, 0.0 if "deadline" in words else None
        elif _last(part.func) in ("move_on_after", "fail_after"):
            delay = part.args[0] if part.args else words.get("delay")
            yield part.lineno, _seconds(delay, numbers)


def _seconds(delay: ast.expr | None, numbers: Mapping[str, float]) -> float | None:
    match delay:
        case ast.Constant(value=None) | None:
            return None
        case ast.Constant(value=int() | float() as seconds):
            return float(seconds)
        case ast.Name(id=name):
            return numbers.get(name, 0.0)
        case _:
            return 0.0


def _blocking(inside: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for part in inside:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = ast.unparse(part.func)
            if name in BLOCKS:
                yield part.lineno, name


def _wholes(inside: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for part in inside:
        if isinstance(part, ast.Return) and part.value is not None and (what := _read_whole(part.value)):
            yield part.lineno, what


def _read_whole(node: ast.expr) -> str:
    """What reads all of something, where that is what an expression comes to; one that is cut is not."""
    match node:
        case ast.Await(value=inner):
            return _read_whole(inner)
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=[], keywords=[]) if name in WHOLE:
            return f"{ast.unparse(of)[-40:]}.{name}()"
        case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in AS_LONG:
            return _read_whole(of)
        case ast.Call(func=func, args=[first, *_]) if _last(func) in MADE_OF:
            return _read_whole(first)
        case _:
            return ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
