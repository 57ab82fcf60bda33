"""Faults of a function that says it only reads, and of the server as a process."""

from typing import Final

from catalog.rules.kinds import Kind, traits_of
from jobs.drills.observing import changes
from jobs.drills.stage import CannotMeasure, Stage, plural
from jobs.rules.drills import Fault, Finding, Verdict

CALLS: Final = 3
TO_END: Final = 10.0  # seconds a server has to leave by itself
HINT: Final = "say destructive_hint=False (it adds) or destructive_hint=True (it can overwrite) and not read_only_hint"
LEAVE: Final = "end when standard input ends, and leave SIGTERM its default: what is running is cleaned up in `finally`"


def begin(stage: Stage) -> None:
    """A first call, so that a server's own files are there before anything is compared."""
    made = stage.call(stage.key())
    if not made.answered:
        fix = "give `arguments:` that it can be called with, and `before:` what has to be there first"
        raise CannotMeasure(f"its call is answered with an error: {made.text[:300]}", fix)


def writes_nothing(stage: Stage) -> Finding:
    """Some calls of it; the control is a write that is seen."""
    before = stage.look(everything=True)
    for _ in range(CALLS):
        stage.call(stage.key())
    effects = changes(before, stage.look(everything=True))
    if effects:
        said = f"it says that it only reads, and {CALLS} calls of it had {plural(effects)}"
        return stage.failed(Fault.WRITES_NOTHING, said, HINT)
    return stage.proven(Fault.WRITES_NOTHING, f"{CALLS} calls of it: no effect", _seen_write(stage))


def _seen_write(stage: Stage) -> str:
    """That a write of the tool is seen where the reads were watched; of the drill's own when the tool only reads."""
    listed = {entry.name: entry for entry in stage.open().functions}
    kinds = {name: traits_of(entry.annotations, entry.meta).kind for name, entry in listed.items()}
    for name, how in stage.drill.functions.items():
        if how.skip or kinds.get(name) not in (Kind.WRITE, Kind.DESTRUCTIVE):
            continue
        for call in how.before:
            stage.call(stage.key(), stage.filled(call.arguments), function=call.function)
        before = stage.look(everything=True)
        made = stage.call(stage.key(), stage.filled(how.arguments), function=name)
        effects = changes(before, stage.look(everything=True))
        if made.answered and effects:
            return f"a call of {name} is seen there: {plural(effects)}"
    before = stage.look(everything=True)
    if stage.leave_a_mark() and (effects := changes(before, stage.look(everything=True))):
        return f"a mark that the drill left is seen there: {plural(effects)}"
    raise CannotMeasure(
        "nothing shows that an effect of it would be seen",
        "drill a function of the tool that writes too, or say in `effects:` where effects are seen",
    )


def server_ends(stage: Stage, fault: Fault, do: str) -> Finding:
    """The server, with no call open, when its input ends or SIGTERM comes."""
    listing = stage.open()
    server = stage.server
    stage.order(do)
    try:
        stage.until(lambda: stage.seen("ended", server), "its end", TO_END)
    except CannotMeasure:
        said = f"it was still there {TO_END:g} s later"
        return Finding(stage.tool.id, "", fault, Verdict.FAILED, said, fix=LEAVE)
    finally:
        stage.renew()
    took = stage.seen("ended", server)[-1]["at"] - stage.seen("did", server)[-1]["at"]
    control = f"until then it ran, and listed {len(listing.functions)} functions"
    return Finding(stage.tool.id, "", fault, Verdict.PROVEN, f"it ended {took:.1f} s later", control)
