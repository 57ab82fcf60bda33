"""A whole drill: which faults apply to a function by what it declares, and each of them put to it."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from base.folders import keep
from catalog.rules.drill_file import ToolDrill
from catalog.rules.kinds import Kind
from catalog.rules.manifest import ToolSpec
from catalog.rules.plugins import PluginSpec
from jobs.drills import busy, crashes, keys, reading, stopping
from jobs.drills.observing import CannotObserve
from jobs.drills.stage import CannotMeasure, NotApplicable, Stage
from jobs.node import Node
from jobs.rules.drills import Drilled, Fault, Finding, Verdict

SIDE_BY_SIDE: Final = 4  # functions drilled at once, when nobody says: a drill waits more than it works

type Script = Callable[[Stage], Finding | list[Finding]]

KEYED: Final[Mapping[Fault, Script]] = {
    Fault.REPEATED: keys.repeated,
    Fault.REPEATED_LATER: keys.repeated_later,
    Fault.ANOTHER_CALL: keys.another_call,
    Fault.AT_ONCE: keys.at_once,
    Fault.BUSY_ASKED_ONCE: busy.asked_once,
    Fault.BUSY_NOT_KEPT: busy.not_kept,
    Fault.CANCELLED: stopping.cancelled,
    Fault.CANCELLED_LATE: stopping.cancelled_late,
    Fault.REPLY_DROPPED: crashes.reply_dropped,
    Fault.KILLED_BEFORE: crashes.killed_before,
    Fault.KILLED_AFTER: crashes.killed_after,
    Fault.KILLED_MID_WAY: crashes.killed_mid_way,
    Fault.EOF_MID_WAY: crashes.eof_mid_way,
    Fault.TERM_MID_WAY: crashes.term_mid_way,
    Fault.REPEATED_AFTER_RESTART: keys.repeated_after_restart,
    Fault.REPEATED_AFTER_A_DAY: keys.repeated_after_a_day,  # last: it lets the server forget every key
}
READ: Final[Mapping[Fault, Script]] = {
    Fault.WRITES_NOTHING: reading.writes_nothing,
    Fault.BUSY_ASKED_ONCE: busy.asked_once,
    Fault.KILLED_AFTER: crashes.killed_after,
}
PLAIN: Final[Mapping[Fault, Script]] = {
    Fault.BUSY_ASKED_ONCE: busy.asked_once,
    Fault.CANCELLED: stopping.cancelled,
}
OF_FUNCTIONS: Final = tuple(fault for fault in Fault if fault not in (Fault.EOF, Fault.TERM))


def drill(
    spec: PluginSpec,
    drills: Mapping[str, ToolDrill],
    files: Mapping[str, bytes],
    *,
    only: Collection[str] = (),
    side_by_side: int = SIDE_BY_SIDE,
) -> Drilled:
    """Drill a plugin's own servers, or of them `only` these functions (`tool.function`). Takes some minutes.

    The servers run in a copy of the plugin's files and on state folders that are gone afterwards.
    """
    node = Node()
    node.start()
    findings: list[Finding] = []
    try:
        with tempfile.TemporaryDirectory(prefix="oz0-drill-", ignore_cleanup_errors=True) as where:
            plugin = Path(where) / "plugin"
            keep(files, plugin)
            with ThreadPoolExecutor(side_by_side, thread_name_prefix="oz0-drill") as pool:
                try:
                    findings += _all(node, spec, drills, plugin, only, pool)
                except BaseException:  # so that the rest ends too, and at once
                    pool.shutdown(wait=False, cancel_futures=True)
                    node.shutdown(0)
                    raise
            node.shutdown(0)
    finally:
        node.shutdown(0)
    return Drilled.of(spec.name, findings)


def _all(
    node: Node,
    spec: PluginSpec,
    drills: Mapping[str, ToolDrill],
    plugin: Path,
    only: Collection[str],
    pool: ThreadPoolExecutor,
) -> list[Finding]:
    found: list[Finding] = []
    running = []
    for tool in spec.tools:
        if tool.url:
            found += _aside(tool, "a remote server: a drill would act on what others use")
            continue
        drill = drills.get(tool.id, ToolDrill(tool.id))
        running += [pool.submit(part) for part in _parts(node, tool, drill, plugin, only)]
    for done in running:
        found += done.result()
    return found


def _parts(
    node: Node, tool: ToolSpec, drill: ToolDrill, plugin: Path, only: Collection[str]
) -> Iterator[Callable[[], list[Finding]]]:
    """One piece of work for the tool's server, and one for each of its functions."""
    folder = Path(tempfile.mkdtemp(prefix=f"{tool.id}-", dir=plugin.parent))

    def staged(function: str) -> Stage:
        return Stage(node, tool=tool, drill=drill, function=function, plugin=plugin, folder=folder / (function or "_"))

    try:
        first = staged("")
        listed = [entry.name for entry in first.open().functions]
    except CannotMeasure as error:
        why, fix = str(error), error.fix
        yield lambda: [Finding(tool.id, "", Fault.EOF, Verdict.NOT_MEASURED, why, fix=fix)]
        return
    unknown = sorted(set(drill.functions) - set(listed))
    wanted = [name for name in listed if not only or f"{tool.id}.{name}" in only]
    if not only:
        yield lambda: [
            *(_odd(tool, name) for name in unknown),
            reading.server_ends(first, Fault.EOF, "eof"),
            reading.server_ends(first, Fault.TERM, "term"),
        ]
    for name in wanted:
        yield lambda name=name: _drilled(staged(name))  # type: ignore[misc]


def _drilled(stage: Stage) -> list[Finding]:
    """Every fault for one function, each with its verdict."""
    try:
        scripts, why_others = _scripts(stage)
    except CannotMeasure as error:
        return [_unmeasured(stage, Fault.REPEATED, error)]
    found: dict[Fault, Finding] = {}
    try:
        if scripts:
            for call in stage.how.before:
                made = stage.call(stage.key(), stage.filled(call.arguments), function=call.function)
                if not made.answered:
                    raise CannotMeasure(f"{call.function}, called before, is answered with an error: {made.text[:300]}")
            (reading if stage.traits.read_only else keys).begin(stage)
        for fault, script in scripts.items():
            found |= _put(stage, fault, script)
    except (CannotMeasure, CannotObserve) as error:
        found |= {fault: _unmeasured(stage, fault, error) for fault in scripts if fault not in found}
    finally:
        stage.close()
    for fault in OF_FUNCTIONS:
        found.setdefault(fault, _not_applicable(stage, fault, why_others.get(fault, why_others[None])))
    return list(found.values())


def _put(stage: Stage, fault: Fault, script: Script) -> dict[Fault, Finding]:
    try:
        result = script(stage)
    except NotApplicable as why:
        return {fault: _not_applicable(stage, fault, str(why))}
    except (CannotMeasure, CannotObserve) as error:
        return {fault: _unmeasured(stage, fault, error)}
    return {one.fault: one for one in (result if isinstance(result, list) else [result])}


def _scripts(stage: Stage) -> tuple[Mapping[Fault, Script], dict[Fault | None, str]]:
    """The faults that test what the function declares, and why the others do not apply to it."""
    listing = stage.open()
    traits = stage.traits
    if stage.how.skip:
        return {}, {None: f"its author leaves it out: {stage.how.skip}"}
    if traits.kind is Kind.UNDECLARED:
        return {}, {None: "it does not say what it does, so it promises nothing"}
    entry = next(one for one in listing.functions if one.name == stage.function)
    if stage.function not in stage.drill.functions and (not traits.read_only or entry.input_schema.get("required")):
        raise CannotMeasure(  # a write is never made, wherever it may land, unless its author says that it may be
            "the drill file does not say that it may be called, and with which arguments",
            f"write `{stage.function}: {{arguments: {{…}}}}` under `functions:` of the tool in oz0-drill.yaml",
        )
    if traits.read_only:
        return READ, {None: "it says that it only reads"}
    others: dict[Fault | None, str] = {
        None: "it does not say that it honours the key, so it is never made again",
        Fault.WRITES_NOTHING: "it writes",
        Fault.CANCEL_ACKNOWLEDGED: "it does not say when a cancelled call has ended",
    }
    return (KEYED if traits.honours_key else PLAIN), others


def _unmeasured(stage: Stage, fault: Fault, error: CannotMeasure | CannotObserve) -> Finding:
    fix = error.fix if isinstance(error, CannotMeasure) else "mend `effects:` in oz0-drill.yaml"
    return Finding(stage.tool.id, stage.function, fault, Verdict.NOT_MEASURED, str(error), fix=fix)


def _not_applicable(stage: Stage, fault: Fault, why: str) -> Finding:
    return Finding(stage.tool.id, stage.function, fault, Verdict.NOT_APPLICABLE, why)


def _aside(tool: ToolSpec, why: str) -> list[Finding]:
    return [Finding(tool.id, "", Fault.EOF, Verdict.NOT_APPLICABLE, why)]


def _odd(tool: ToolSpec, name: str) -> Finding:
    said = "the drill file names it, and the server does not list it"
    return Finding(tool.id, name, Fault.REPEATED, Verdict.NOT_MEASURED, said, fix="name a function that is listed")
