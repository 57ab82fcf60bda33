"""`agents/*.yaml`: who runs, with what instructions, functions and limits; and the rehearsal of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from catalog.rules.fields import Fields, Notes
from catalog.rules.grants import SEPARATOR, covers, grant_trouble, model_name
from catalog.rules.manifest import RESERVED_TOOL
from catalog.rules.model_names import REHEARSAL, model_trouble
from catalog.rules.platform import OWN_NAMES
from catalog.rules.schemas import CannotJudge, misfit, schema_trouble
from catalog.rules.templates import Allowed, Values, fill, fill_text, texts_in, trouble

DEFAULT_MAX_TOKENS: Final = 8_192


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job of the agent may use. `tool_tokens` bounds each model request; `minutes` counts from the start.

    `tokens` bounds what its requests and their answers have together, `usd` what they cost; 0 sets no bound.
    """

    tool_tokens: int = 8_000
    turns: int = 50
    calls: int = 200
    minutes: int = 1_440
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class RunBounds:
    """How long one run of a job may become, before it continues as new (RULES G3); 0 sets no bound.

    `tokens` is what its conversation would send in one request, `turns` the answers in it.
    """

    tokens: int = 100_000
    turns: int = 0


@dataclass(frozen=True, slots=True)
class RehearsalCall:
    """One call a rehearsal's turn makes. `arguments` may hold placeholders (`templates`)."""

    tool: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RehearsalTurn:
    """What the model would answer: some words, some calls made side by side, or both. The last turn has no calls.

    One with `continues` has no calls either: the job continues as new, with its input changed by that.
    """

    say: str = ""
    calls: tuple[RehearsalCall, ...] = ()
    continues: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent. It has a `model`, or a `harness`: a program that is the agent; or it is `outside`.

    One that is outside runs elsewhere and only calls its functions here, by a token that is bound to it (RULES G4).

    A model is asked over `connection`, by default the one called as its provider, for at most `max_tokens` an answer.
    `on_unknown` is `ask`, `fail`, or None where the starter decides (RULES U5). `input` holds the names a job may be
    started with and their defaults, `input_schema` JSON Schemas of some of them; `rehearsal` is filled only when
    `model` is `rehearsal`. `runs` bounds what is asked of a model. `file` is where in its plugin it was read,
    empty when nobody knows.
    """

    name: str
    model: str = ""
    harness: tuple[str, ...] = ()
    instructions: str = ""
    functions: tuple[str, ...] = ()
    limits: Limits = Limits()
    tool_loading: str = "eager"
    on_unknown: str | None = None
    skills: tuple[str, ...] = ()
    input: Mapping[str, Any] = field(default_factory=dict)
    rehearsal: tuple[RehearsalTurn, ...] = ()
    file: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    connection: str = ""
    max_tokens: int = DEFAULT_MAX_TOKENS
    outside: bool = False
    runs: RunBounds = RunBounds()


def read_agent(notes: Notes, content: bytes) -> AgentSpec | None:
    """The agent in these bytes; what is wrong with it goes into `notes`. None when nothing can be read at all."""
    fields = notes.document(content)
    if fields is None:
        return None
    functions = _functions(fields)
    inputs = _input(fields)
    loading = fields.word("tool_loading", ("eager", "lazy"), "eager")
    agent = AgentSpec(
        name=fields.name("name", "write `name: my-agent`"),
        model=fields.text("model", longest=200),
        harness=fields.texts("harness"),
        instructions=fields.text("instructions"),
        functions=functions,
        limits=_limits(fields.map("limits")),
        tool_loading=loading,
        on_unknown=fields.word("on_unknown", ("ask", "fail"), "") or None,
        skills=fields.texts("skills", longest=130),
        input=inputs,
        rehearsal=_rehearsal(fields, _Callable(functions, loading == "lazy"), frozenset(inputs)),
        file=notes.file,
        input_schema=_input_schema(fields, inputs),
        connection=fields.text("connection", longest=64),
        max_tokens=fields.count("max_tokens", DEFAULT_MAX_TOKENS, most=1_000_000),
        outside=fields.flag("outside"),
        runs=_runs(fields),
    )
    _one_mind(fields, agent)
    fields.done()
    return agent


def fill_turn(turn: RehearsalTurn, values: Values) -> RehearsalTurn:
    """A rehearsal's turn with every placeholder replaced by what this job has."""
    return RehearsalTurn(
        say=fill_text(turn.say, values),
        calls=tuple(RehearsalCall(call.tool, call.function, fill(call.arguments, values)) for call in turn.calls),
        continues=None if turn.continues is None else fill(turn.continues, values),
    )


def _one_mind(fields: Fields, agent: AgentSpec) -> None:
    if fields.has("model") + fields.has("harness") + agent.outside != 1:
        fields.note(
            "model",
            "an agent has either `model` or `harness`, or is `outside: true`",
            "write `model: rehearsal`, or a model's name",
        )
    if (agent.model == REHEARSAL) != fields.has(REHEARSAL):
        fields.note(
            REHEARSAL,
            "`model: rehearsal` and a `rehearsal` list belong together",
            "write both, or take both out",
        )
    if fields.has("continue_as_new") and agent.model in ("", REHEARSAL):
        fields.note(
            "continue_as_new",
            "bounds the conversation with a model, and this agent asks none",
            "take it out: a rehearsal has it in a turn, and a program asks for it itself",
        )
    if agent.model and (trouble := model_trouble(agent.model)) is not None:
        fields.note("model", *trouble)


def _functions(fields: Fields) -> tuple[str, ...]:
    entries = fields.texts("functions", longest=140)
    for entry in entries:
        why = grant_trouble(entry)
        if why:
            fields.note(
                "functions",
                f"{entry!r} grants nothing: {why}",
                "write tool.function, tool.* or tool.prefix_*",
            )
    return tuple(entry for entry in entries if grant_trouble(entry) is None)


def _limits(fields: Fields | None) -> Limits:
    if fields is None:
        return Limits()
    limits = Limits(
        tool_tokens=fields.count("tool_tokens", 8_000, most=1_000_000),
        turns=fields.count("turns", 50, most=10_000),
        calls=fields.count("calls", 200, most=100_000),
        minutes=fields.count("minutes", 1_440, most=525_600),
        tokens=fields.count("tokens", 0, most=10_000_000_000),
        usd=fields.number("usd", 0.0, least=0.01, most=1_000_000, unit="dollars"),
    )
    fields.done()
    return limits


def _runs(fields: Fields) -> RunBounds:
    named = fields.map("continue_as_new")
    if named is None:
        return RunBounds()
    usual = RunBounds()
    bounds = RunBounds(
        tokens=named.count("tokens", usual.tokens, least=0, most=100_000_000),
        turns=named.count("turns", usual.turns, least=0, most=10_000),
    )
    named.done()
    return bounds


def _input(fields: Fields) -> dict[str, Any]:
    named = fields.map("input")
    if named is None:
        return {}
    found: dict[str, Any] = {}
    for name in named.names():
        item = named.take(name)
        if item is None or not _is_input_name(name):
            named.note(name, "is not a name", "use letters, digits, _ and -")
            continue
        found[name] = item.plain()
    return found


def _input_schema(fields: Fields, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of some inputs: a JSON Schema by name, which the input's own default fits."""
    named = fields.map("input_schema")
    found: dict[str, Any] = {}
    for name in named.names() if named else ():
        item = named.take(name) if named else None
        schema = item.plain() if item else None
        if named is None:
            continue
        if name not in inputs:
            takes = ", ".join(sorted(inputs)) or "none"
            named.note(name, "is no input of the agent", f"name it in `input:` with its default; there are: {takes}")
        elif not isinstance(schema, dict):
            named.note(name, "is not a JSON Schema", "write a map, such as {type: integer, minimum: 1}")
        elif trouble := schema_trouble(schema):
            named.note(name, f"cannot be used as a JSON Schema: {trouble}", "write one such as {enum: [slow, fast]}")
        elif (wrong := _misfit(inputs[name], schema)) is not None:
            named.note(name, f"does not take the input's own default: {wrong}", "mend the default or the schema")
        else:
            found[name] = schema
    return found


def _misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    try:
        wrong = misfit(value, schema)
    except CannotJudge as error:
        return str(error)
    return None if wrong is None else wrong.what


def _is_input_name(name: str) -> bool:
    return 0 < len(name) <= 64 and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)


def _rehearsal(fields: Fields, may_call: "_Callable", inputs: frozenset[str]) -> tuple[RehearsalTurn, ...]:
    turns: list[RehearsalTurn] = []
    before = 0
    written = fields.maps(REHEARSAL)
    for at, turn in enumerate(written):
        allowed = Allowed(inputs, before)
        say = turn.text("say")
        _templated(turn, "say", [say], allowed)
        calls = tuple(_call(call, may_call, allowed) for call in turn.maps("call"))
        continues = _continues(turn, inputs, allowed)
        if not say and not calls and continues is None:
            turn.notes.add(
                turn.line, turn.path, "a turn says nothing and calls nothing", "write `say:`, `call:` or both"
            )
        last = at == len(written) - 1
        if last and turn.has("call"):
            turn.note("call", "the last turn still calls", "end with a turn that only says something")
        if last and turn.has("continue_as_new"):
            turn.note("continue_as_new", "nothing comes after the last turn", "write the next run's turns after it")
        if not last and not turn.has("call") and continues is None:
            turn.note(
                "say",
                "a turn without calls ends the job, so later turns never come",
                "give it calls or make it the last",
            )
        turn.done()
        before = 0 if continues is not None else before + len(calls)
        turns.append(RehearsalTurn(say, calls, continues))
    if fields.has(REHEARSAL) and not turns:
        fields.note(REHEARSAL, "has no turns", "write at least one turn, such as `- say: Done.`")
    return tuple(turns)


def _continues(turn: Fields, inputs: frozenset[str], allowed: Allowed) -> dict[str, Any] | None:
    """The input that a turn's `continue_as_new` goes on with; None where it has none."""
    if not turn.has("continue_as_new"):
        return None
    if turn.has("call"):
        turn.note("continue_as_new", "a turn that calls does not end its run", "give it a turn of its own, after this")
    fields = turn.map("continue_as_new")
    values: dict[str, Any] = {}
    for name in fields.names() if fields else ():
        item = fields.take(name) if fields else None
        values[name] = item.plain() if item else None
        if fields and name not in inputs:
            takes = ", ".join(sorted(inputs)) or "none"
            fields.note(name, "is no input of the agent", f"name it in `input:` too; there are: {takes}")
        elif fields:
            _templated(fields, name, texts_in(values[name]), allowed)
    return values


@dataclass(frozen=True, slots=True)
class _Callable:
    """What the calls of a rehearsal may name: what the agent is granted, and the platform's own."""

    grants: tuple[str, ...]
    lazy: bool

    def trouble(self, named: str) -> tuple[str, str] | None:
        """Why a call cannot name this, and the fix; None when it can."""
        tool, dot, function = named.partition(".")
        if tool == RESERVED_TOOL:
            if model_name(tool, function) not in OWN_NAMES:
                return f"the platform has no function {named}", "its own are oz.skill, oz.find and oz.call"
            if not self.lazy and named != "oz.skill":
                return f"{named} comes with `tool_loading: lazy`", "write that, or call the function itself"
            return None
        if dot and any(covers(grant, tool, function) for grant in self.grants):
            return None
        return f"{named} is not among the agent's functions", "name it as tool.function, and grant it in `functions`"

    def through(self, named: str) -> tuple[str, str] | None:
        """The same for a function that is called through `oz.call`."""
        label = named.replace(SEPARATOR, ".", 1)
        if label.startswith(f"{RESERVED_TOOL}."):
            return f"{label} is the platform's own", "call it itself, not through oz.call"
        return self.trouble(label)


def _call(fields: Fields, may_call: _Callable, allowed: Allowed) -> RehearsalCall:
    named = fields.text("function", longest=140)
    if not named:
        fields.need("function", "write `function: tool.function`")
    arguments = fields.map("arguments")
    values: dict[str, Any] = {}
    if arguments is not None:
        for key in arguments.names():
            item = arguments.take(key)
            values[key] = item.plain() if item else None
            _templated(arguments, key, texts_in(values[key]), allowed)
    fields.done()
    tool, _, function = named.partition(".")
    trouble = may_call.trouble(named) if named else None
    if trouble is not None:
        fields.note("function", *trouble)
    inner = values.get("function")
    if arguments is not None and named == "oz.call" and isinstance(inner, str) and "{{" not in inner:
        trouble = may_call.through(inner)
        if trouble is not None:
            arguments.note("function", *trouble)
    return RehearsalCall(tool, function, values)


def _templated(fields: Fields, name: str, texts: list[str], allowed: Allowed) -> None:
    for text in texts:
        why = trouble(text, allowed)
        if why:
            fields.note(name, why, f"what can stand here: {allowed.words()}")
