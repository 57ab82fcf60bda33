"""What lint finds in single functions: hints, key, cancelling, schemas, and the tool's manual (RULES A1, U1, D5, M4).

Each check takes what it needs and gives findings at the function's own source line, where that is known.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from base import tokens
from catalog.rules.answers import LARGEST as LARGEST_ANSWER
from catalog.rules.findings import Finding, Severity
from catalog.rules.kinds import KEY, Kind, traits_of, undeclared
from catalog.rules.manifest import MANIFEST, ToolSpec
from catalog.rules.schemas import schema_trouble
from catalog.rules.servers import ListedFunction
from catalog.rules.skills import SkillSpec
from catalog.rules.sources import SourceFunction

UNDECLARED: Final = "tools.undeclared"
ANNOTATIONS: Final = "tools.annotations"
PROMISE: Final = "tools.key"
CANCEL: Final = "tools.cancel"
SCHEMA: Final = "tools.schema"
MANUAL: Final = "tools.manual"
ANSWER: Final = "tools.answer"

ALIKE: Final = 3  # functions from which on the same hints for all of them look pasted
MANUAL_LONG: Final = 2_000  # tokens of a tool's manual that lint warns about (RULES M4)
HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
WRITING: Final = re.compile(
    r"add|append|apply|archive|cancel|clear|close|commit|create|delete|deploy|drop|edit|execute|insert|merge|modify|move"
    r"|patch|pay|post|publish|purge|push|put|refund|remove|rename|replace|reset|save|send|set|update|upload|write"
)
OWN_KEYS: Final = frozenset({"idempotency_key", "idempotencykey", "idempotency-key", "idempotency"})

type Sources = Mapping[str, SourceFunction]


def function_findings(tool: ToolSpec, functions: Sequence[ListedFunction], sources: Sources) -> Iterator[Finding]:
    """Everything about the functions of one tool, apart from names and tokens."""
    for function in functions:
        yield from _undeclared(tool, function, sources)
        yield from _annotations(tool, function, sources)
        yield from _key(tool, function, sources)
        yield from _cancel(tool, function, sources)
        yield from _schema(tool, function, sources)
        yield from _answer(tool, function, sources)
    yield from _alike(tool, functions)
    yield from _left_out(tool, functions)


def manual_findings(tool: ToolSpec, skills: Iterable[SkillSpec]) -> Iterator[Finding]:
    """A warning for a manual that costs its reader more than 2,000 tokens (RULES M4)."""
    own = [skill for skill in skills if skill.name in tool.manual]
    counted = sum(tokens.counts([f"{skill.description}\n{skill.text}" for skill in own]))
    if counted > MANUAL_LONG:
        what = (
            f"its manual ({', '.join(skill.name for skill in own)}) comes to about {counted:,} tokens, more than "
            f"{MANUAL_LONG:,}, and every agent that is granted a function of the tool may read it"
        )
        fix = "keep what to call first, what to check and what never to do; leave the rest to the descriptions"
        yield Finding(Severity.WARNING, MANUAL, MANIFEST, 0, f"{tool.id}.manual", what, fix)


def _undeclared(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    """A function whose calls would wait for a person, because nobody knows what it does (RULES C4, A1)."""
    found = undeclared(function.annotations)
    if found is not None:
        what = f"calls of it wait for a person: {found.reason}"
        yield _at(Severity.WARNING, UNDECLARED, tool, function.name, sources, what, found.fix)


def _annotations(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    hints = function.annotations
    if hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
        what = (
            "it says that it only reads and that it can delete or overwrite; its calls run freely, as those of a read"
        )
        fix = "keep the hint that is true: read_only_hint=True, or destructive_hint=True"
        yield _at(Severity.ERROR, ANNOTATIONS, tool, function.name, sources, what, fix)
    odd = [name for name in ("idempotentHint", "openWorldHint") if name in hints and not isinstance(hints[name], bool)]
    if odd:
        what = f"{' and '.join(odd)} is neither true nor false, so it counts as left out"
        yield _at(Severity.WARNING, ANNOTATIONS, tool, function.name, sources, what, "write True or False")


def _key(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    traits = traits_of(function.annotations, function.meta)
    said = function.meta.get(KEY)
    if traits.idempotent and not traits.honours_key and not traits.read_only and said is None:
        what = (
            "it says idempotent_hint=True, not that it honours the key: the hint alone makes nothing safe to repeat, "
            "since an attempt that timed out may already have acted, so a failed call is not made again"
        )
        fix = (
            f'keep what was done under the call\'s _meta["{KEY}"], answer a known key from that record, and say '
            f'so with meta={{"{KEY}": True}}'
        )
        yield _at(Severity.WARNING, PROMISE, tool, function.name, sources, what, fix)
    if said is not None and not isinstance(said, bool):
        what = f'its _meta says "{KEY}" with something other than true, so it counts as not said'
        yield _at(Severity.WARNING, PROMISE, tool, function.name, sources, what, f'write meta={{"{KEY}": True}}')
    properties = function.input_schema.get("properties")
    own = [name for name in properties if name.lower() in OWN_KEYS] if isinstance(properties, Mapping) else []
    if own:
        what = f"its argument {own[0]} is filled in by a model, which may write another one at each attempt"
        fix = f'take the argument out and read the call\'s _meta["{KEY}"], which stays the same'
        yield _at(Severity.WARNING, PROMISE, tool, function.name, sources, what, fix)


def _cancel(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    """By its source: a `def` that never asks, a shield without an end, a wait that stops the server (RULES D5)."""
    source = sources.get(function.name)
    if source is None:
        return
    writes = traits_of(function.annotations, function.meta).kind is not Kind.READ
    if writes and not source.is_async and not source.asks and tool.sandbox is None:
        what = "a `def` function runs in a thread and cannot be stopped: what it does after a cancel still lands"
        fix = "make it `async`, or call anyio.from_thread.check_cancelled() between pieces of its work"
        yield _at(Severity.WARNING, CANCEL, tool, function.name, sources, what, fix)
    for line in source.unbounded:
        what = "a shield without a limit cannot be ended by anything"
        fix = "write `with anyio.move_on_after(5, shield=True):`"
        yield _at(Severity.WARNING, CANCEL, tool, function.name, sources, what, fix, line)
    for line, seconds in source.shields:
        if seconds > tool.cleanup:
            what = f"its clean-up may take {seconds:g} s and the tool's `cleanup` is {tool.cleanup:g} s"
            fix = f"shorten the shield, or write `cleanup: {seconds + 1:g}` in {MANIFEST}"
            yield _at(Severity.WARNING, CANCEL, tool, function.name, sources, what, fix, line)
    for line, name in source.blocking:
        what = f"{name} in an `async` function stops the whole server while it waits, cancels included"
        fix = "await something, or hand it to a thread: `await anyio.to_thread.run_sync(...)`"
        yield _at(Severity.WARNING, CANCEL, tool, function.name, sources, what, fix, line)


def _schema(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    named = {"input schema": function.input_schema}
    if function.output_schema is not None:
        named["output schema"] = function.output_schema
    for which, schema in named.items():
        why = schema_trouble(schema)
        if why is None and schema.get("type") != "object":
            why = 'its type is not "object", which MCP asks for and providers insist on'
        if why is not None:
            fix = "mend the schema; arguments and answers cannot be checked by it as it is"
            yield _at(Severity.ERROR, SCHEMA, tool, function.name, sources, f"its {which} cannot be used: {why}", fix)
    joined = [word for word in ("oneOf", "anyOf", "allOf") if word in function.input_schema]
    if joined:
        what = f"its input schema begins with {joined[0]}, which some providers refuse"
        fix = "put one object at the top, and the choice into a property of it"
        yield _at(Severity.WARNING, SCHEMA, tool, function.name, sources, what, fix)


def _answer(tool: ToolSpec, function: ListedFunction, sources: Sources) -> Iterator[Finding]:
    """By its source: an answer that is as large as what it reads (CASES I05)."""
    source = sources.get(function.name)
    for line, what in source.wholes if source is not None else ():
        said = (
            f"it answers with all that {what} gives: of more than {LARGEST_ANSWER // 2**20} MiB nothing is kept, "
            "although the call was made, and a model reads all of less"
        )
        fix = "answer with a part of bounded size and with how to ask for the next, such as `offset` and `limit`"
        yield _at(Severity.WARNING, ANSWER, tool, function.name, sources, said, fix, line)


def _alike(tool: ToolSpec, functions: Sequence[ListedFunction]) -> Iterator[Finding]:
    """A warning for hints that were pasted: all the same, where they cannot all be true."""
    said = {tuple(function.annotations.get(hint) for hint in HINTS) for function in functions}
    if len(functions) < ALIKE or len(said) != 1 or said == {(None, None, None, None)}:
        return
    kind = traits_of(functions[0].annotations, functions[0].meta).kind
    doubted = [function.name for function in functions if any(map(WRITING.fullmatch, _words(function.name)))]
    if kind is Kind.READ and not doubted:
        return
    which = f", also {', '.join(doubted[:3])}" if kind is Kind.READ else ""
    what = f"all its {len(functions)} functions say the same of themselves ({kind}){which}"
    fix = "say of each function what it does: reads, adds, or can delete or overwrite"
    yield Finding(Severity.WARNING, ANNOTATIONS, MANIFEST, 0, tool.id, what, fix)


def _left_out(tool: ToolSpec, functions: Sequence[ListedFunction]) -> Iterator[Finding]:
    """A warning for reads that leave `destructiveHint` out, which other catalogs turn away (CASES C17)."""
    bare = [
        function.name
        for function in functions
        if function.annotations.get("readOnlyHint") is True and "destructiveHint" not in function.annotations
    ]
    if bare:
        more = f" and {len(bare) - 3} more" if len(bare) > 3 else ""
        what = f"destructiveHint is left out by {', '.join(bare[:3])}{more}, and other catalogs turn such a tool away"
        yield Finding(Severity.WARNING, ANNOTATIONS, MANIFEST, 0, tool.id, what, "add destructive_hint=False to a read")


def _words(name: str) -> set[str]:
    spaced = "".join(f" {char}" if char.isupper() else char for char in name)
    return {word.lower() for word in spaced.replace("_", " ").replace("-", " ").split()}


def _at(
    severity: Severity,
    code: str,
    tool: ToolSpec,
    function: str,
    sources: Sources,
    what: str,
    fix: str,
    line: int = 0,
) -> Finding:
    """A finding of one function, at its source line when that is known."""
    source = sources.get(function)
    file, first = (source.file, source.line) if source is not None else (MANIFEST, 0)
    return Finding(severity, code, file, line or first, f"{tool.id}.{function}", what, fix)
