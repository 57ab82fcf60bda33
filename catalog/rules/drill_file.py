"""`oz0-drill.yaml`: how a plugin's functions are called for a drill, and how it is seen what they did (RULES D2).

A studio reads nothing of it. Texts in it may hold `{{ home }}`, a folder that each drilled function gets for itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from catalog.rules.fields import Fields, Notes
from catalog.rules.plugins import PluginSpec
from catalog.rules.problems import BadPlugin, Problem
from catalog.rules.templates import Allowed, texts_in, trouble

DRILL_FILE: Final = "oz0-drill.yaml"
LONGEST_KEPT: Final = 24 * 366 * 10  # hours


@dataclass(frozen=True, slots=True)
class Effects:
    """Where the effects are seen: one line of `file`, one row of `query` in the file `sqlite`, or one line that
    `program` prints, for each. With none of these every change of a file in the state folder is one.
    """

    file: str = ""
    sqlite: str = ""
    query: str = ""
    program: tuple[str, ...] = ()

    @property
    def declared(self) -> bool:
        """Whether the author said where."""
        return bool(self.file or self.sqlite or self.program)


@dataclass(frozen=True, slots=True)
class Before:
    """A call made once before a function is drilled, such as the charge that a refund is of."""

    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FunctionDrill:
    """How one function is called. `other` replaces arguments for a call that must not pass for the first one, `lasts`
    for a call that takes some seconds. `effect` are fields that a line must have to count.

    `busy` and `at_once` are the author's word that no service behind it can be busy, and that its work is over at
    once; `runs_on` and `skip` say in a sentence why it cannot be stopped, and why it is not drilled.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    lasts: Mapping[str, Any] = field(default_factory=dict)
    effect: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Before, ...] = ()
    busy: bool = True
    at_once: bool = False
    runs_on: str = ""
    skip: str = ""


@dataclass(frozen=True, slots=True)
class ToolDrill:
    """How one tool is drilled. `argv` replaces its program by the same server with stand-ins behind it; `trouble` is
    the file that server reads at every call; `keys_kept` is for how many hours it says it knows a key, 0 for ever.
    """

    id: str
    argv: tuple[str, ...] = ()
    trouble: str = ""
    effects: Effects = Effects()
    keys_kept: float = 0
    functions: Mapping[str, FunctionDrill] = field(default_factory=dict)


def read_drill(spec: PluginSpec, files: Mapping[str, bytes]) -> dict[str, ToolDrill]:
    """What the file says of each tool, nothing when there is no such file. Raises `BadPlugin` with every problem."""
    if DRILL_FILE not in files:
        return {}
    notes = Notes(DRILL_FILE)
    fields = notes.document(files[DRILL_FILE])
    if fields is None:
        raise BadPlugin(notes.problems)
    known = {tool.id: tool for tool in spec.tools}
    found: dict[str, ToolDrill] = {}
    for one in fields.maps("tools"):
        tool = _tool(one, known)
        if tool.id in found:
            one.note("id", f"the tool {tool.id} is here twice", "say everything about a tool in one place")
        found[tool.id] = tool
    fields.done()
    if notes.problems:
        raise BadPlugin(notes.problems)
    return found


def drill_problems(spec: PluginSpec, files: Mapping[str, bytes]) -> tuple[Problem, ...]:
    """What is wrong with the file, for lint."""
    try:
        read_drill(spec, files)
    except BadPlugin as error:
        return error.problems
    return ()


def _tool(fields: Fields, known: Mapping[str, Any]) -> ToolDrill:
    name = fields.text("id", longest=64)
    if name not in known:
        tools = ", ".join(sorted(known)) or "none"
        fields.note("id", f"{name or 'nothing'} is not a tool of this plugin", f"name one of its tools: {tools}")
    elif known[name].url:
        fields.note("id", f"{name} is a remote server, which a drill leaves alone", "take it out")
    trouble_file = fields.text("trouble", longest=1_000)
    kept = fields.number("keys_kept", 0, least=24, most=LONGEST_KEPT, unit="hours")
    if kept and not trouble_file:
        fix = "name the file that its server reads `clock` from, or leave keys_kept out"
        fields.note("keys_kept", "can be tried only where the server's clock can be told by `trouble`", fix)
    functions = fields.map("functions")
    tool = ToolDrill(
        id=name,
        argv=fields.texts("mcp"),
        trouble=trouble_file,
        effects=_effects(fields),
        keys_kept=kept,
        functions=_functions(functions) if functions is not None else {},
    )
    for key, words in (("mcp", tool.argv), ("trouble", (tool.trouble,))):
        _check(fields, key, words)
    fields.done()
    return tool


def _effects(fields: Fields) -> Effects:
    asked = fields.map("effects")
    if asked is None:
        return Effects()
    found = Effects(
        file=asked.text("file", longest=1_000),
        sqlite=asked.text("sqlite", longest=1_000),
        query=asked.text("query"),
        program=asked.texts("program"),
    )
    if sum(map(bool, (found.file, found.sqlite, found.program))) != 1 or bool(found.sqlite) != bool(found.query):
        fix = "write `file:`, or `sqlite:` with `query:`, or `program:`"
        fields.note("effects", "effects are seen in one way", fix)
    for key, words in (("file", (found.file,)), ("sqlite", (found.sqlite,)), ("program", found.program)):
        _check(asked, key, words)
    asked.done()
    return found


def _functions(fields: Fields) -> dict[str, FunctionDrill]:
    found = {}
    for name in fields.names():
        one = fields.map(name)
        if one is None:
            continue
        found[name] = FunctionDrill(
            arguments=_arguments(one, "arguments"),
            other=_arguments(one, "other"),
            lasts=_arguments(one, "lasts"),
            effect=_arguments(one, "effect"),
            before=tuple(_before(call) for call in one.maps("before")),
            busy=one.flag("busy") if one.has("busy") else True,
            at_once=one.flag("at_once"),
            runs_on=one.text("runs_on", longest=400),
            skip=one.text("skip", longest=400),
        )
        one.done()
    return found


def _before(fields: Fields) -> Before:
    call = Before(fields.text("function", longest=200), _arguments(fields, "arguments"))
    if not call.function:
        fields.need("function", "write `function:` and `arguments:`")
    fields.done()
    return call


def _arguments(fields: Fields, name: str) -> dict[str, Any]:
    item = fields.take(name)
    if item is None:
        return {}
    if not isinstance(item.value, dict):
        fields.note(name, "expected a map of names and values", f"write `{name}: {{name: value}}`")
        return {}
    found: dict[str, Any] = item.plain()
    _check(fields, name, texts_in(found))
    return found


def _check(fields: Fields, key: str, texts: Any) -> None:
    for text in texts:
        if why := trouble(text, Allowed()):
            fields.note(
                key, f"{why}, in {text!r}", "only {{ home }}, the drilled function's own folder, can stand here"
            )
