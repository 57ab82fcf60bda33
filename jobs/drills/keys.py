"""Faults that a kept key makes harmless: the same call again, at once, later, after a restart; and another call."""

import time
from concurrent.futures import wait
from typing import Final

from catalog.rules.kinds import traits_of
from jobs.drills.observing import changes
from jobs.drills.stage import CannotMeasure, Made, NotApplicable, Stage, plural
from jobs.rules.drills import Fault, Finding

LATER: Final = 2.0  # seconds after the first call
DAY: Final = 24 * 3600
AT_ONCE: Final = 4
OTHERS: Final = 3  # other functions of the tool that are called under a known key

KEEP: Final = "write the effect and its key in one transaction, and answer a known key from that record"
DURABLE: Final = "keep the keys on disk, in the same transaction as the effect; memory is gone with the process"
LONGER: Final = "keep keys for at least 24 hours"
WHOLE: Final = (
    "keep function and arguments with the key, and refuse a known key that comes with others, as an error, before "
    "anything is done"
)


def begin(stage: Stage) -> None:
    """The first call, by which the others are judged. Raises `CannotMeasure` when it does nothing that is seen."""
    stage.first_key, stage.first_at = stage.key(), time.monotonic()
    made, effects = stage.effects_of(lambda: stage.call(stage.first_key))
    if not made.answered:
        fix = "give `arguments:` that it can be called with, and `before:` what has to be there first"
        raise CannotMeasure(f"its call is answered with an error: {made.text[:300]}", fix)
    if not effects:
        raise CannotMeasure(
            "one call of it has no effect that is seen",
            "say in `effects:` (and `effect:` of the function) where what it does can be seen",
        )
    stage.one, stage.first_text = effects, made.text


def repeated(stage: Stage) -> Finding:
    """The same call again."""
    return _again(stage, Fault.REPEATED, KEEP)


def repeated_later(stage: Stage) -> Finding:
    """The same call some seconds after the first."""
    stage.pause(max(0.0, stage.first_at + LATER - time.monotonic()))
    return _again(stage, Fault.REPEATED_LATER, LONGER)


def repeated_after_restart(stage: Stage) -> Finding:
    """The same call to a server that was started anew: by now by a fault before this one, or else for it."""
    if stage.starts == 1:
        stage.renew()
    return _again(stage, Fault.REPEATED_AFTER_RESTART, DURABLE)


def repeated_after_a_day(stage: Stage) -> Finding:
    """The same call when the server's clock says that a day has gone; the control: in time the key is forgotten."""
    kept = stage.drill.keys_kept
    if not kept:
        raise NotApplicable("its drill file does not say that its clock can be told (`keys_kept`)")
    key = stage.key()
    try:
        stage.call(key)
        stage.trouble(clock=DAY - 60)
        made, effects = stage.effects_of(lambda: stage.call(key))
        if effects or not made.answered:
            return _judged(stage, Fault.REPEATED_AFTER_A_DAY, made, effects, LONGER, "")
        stage.trouble(clock=kept * 3600 + 3600)
        _, forgotten = stage.effects_of(lambda: stage.call(key))
    finally:
        stage.trouble()
    if not forgotten:
        raise CannotMeasure(
            f"{kept:g} hours later its key was still known, so nothing shows that its clock was told",
            "add `clock` of the trouble file to the server's time, or leave `keys_kept` out if keys are kept for ever",
        )
    control = f"told that {kept + 1:g} hours had gone it acts again: {plural(forgotten)}"
    return stage.proven(Fault.REPEATED_AFTER_A_DAY, "1 call under one key a day later: no further effect", control)


def another_call(stage: Stage) -> Finding:
    """Other arguments under a known key, and another function of the tool under it: acted or refused, never 'done'."""
    others = [name for name, how in stage.drill.functions.items() if name != stage.function and not how.skip]
    keyed = [name for name in others if _honours(stage, name)][:OTHERS]
    if not stage.how.other and not keyed:
        if not stage.how.arguments:
            raise NotApplicable("it takes no arguments, and no other function of the tool honours a key")
        raise CannotMeasure("the drill file gives no other arguments for it", "give `other:`, such as another text")
    controls = []
    if stage.how.other:
        control, acted = stage.effects_of(lambda: stage.call(stage.key(), stage.arguments(stage.how.other)))
        if not acted:
            raise CannotMeasure(
                f"a call with its `other` arguments has no effect that is seen: {control.text[:200]}",
                "give `other:` arguments of a call that acts",
            )
        controls.append(f"under a key of their own the other arguments act: {plural(acted)}")
        made, effects = stage.effects_of(lambda: stage.call(stage.first_key, stage.arguments(stage.how.other)))
        if made.answered and not effects:
            said = f"other arguments under a known key were answered as done, and nothing was done: {made.text[:200]}"
            return stage.failed(Fault.ANOTHER_CALL, said, WHOLE, controls[0])
    for name in keyed:
        how = stage.drill.functions[name]
        before = stage.look(everything=True)
        fresh = stage.call(stage.key(), stage.filled(how.arguments), function=name)
        acted = changes(before, before := stage.look(everything=True))
        if not fresh.answered or not acted:
            continue
        controls.append(f"under a key of its own {name} acts: {plural(acted)}")
        made = stage.call(stage.first_key, stage.filled(how.arguments), function=name)
        if made.answered and not changes(before, stage.look(everything=True)):
            said = (
                f"{name} under a key of {stage.function} was answered as done, and nothing was done: {made.text[:200]}"
            )
            return stage.failed(Fault.ANOTHER_CALL, said, WHOLE, controls[-1])
    if not controls:
        raise CannotMeasure("no other call of the tool acts by itself", "give `other:` arguments")
    return stage.proven(Fault.ANOTHER_CALL, "other calls under its key were refused or made", "; ".join(controls))


def at_once(stage: Stage) -> Finding:
    """Some calls under one key side by side; the control is as many under keys of their own."""
    many = min(AT_ONCE, stage.tool.slots)
    if many < 2:
        raise NotApplicable("the tool takes one call at a time (`slots: 1`)")
    control = _together(stage, [stage.key() for _ in range(many)])
    if control < many * stage.one:
        said = f"{many} calls at once under keys of their own made {plural(control)} instead of {many * stage.one}"
        return stage.failed(Fault.AT_ONCE, said, "let writers wait for each other: lock, or one transaction each")
    effects = _together(stage, [stage.key()] * many)
    told = f"{many} calls at once under keys of their own made {plural(control)}"
    if effects != stage.one:
        said = f"{plural(effects)} under one key, from {many} calls at once"
        return stage.failed(Fault.AT_ONCE, said, "look up the key and write inside one lock or transaction", told)
    return stage.proven(Fault.AT_ONCE, f"{many} calls under one key at once: {plural(effects)}", told)


def _together(stage: Stage, keys: list[str]) -> int:
    stage.open()
    before = stage.look()
    calls = [stage.start(lambda key=key: stage.call(key)) for key in keys]  # type: ignore[misc]
    wait(calls)
    for call in calls:
        call.result()
    return changes(before, stage.look())


def _again(stage: Stage, fault: Fault, fix: str) -> Finding:
    made, effects = stage.effects_of(lambda: stage.call(stage.first_key))
    if effects or not made.answered:
        return _judged(stage, fault, made, effects, fix, "")
    return _judged(stage, fault, made, effects, fix, stage.another())


def _judged(stage: Stage, fault: Fault, made: Made, effects: int, fix: str, control: str) -> Finding:
    """Of a repeat, which must do nothing more and be answered as the first was."""
    if effects:
        return stage.failed(fault, f"{plural(stage.one + effects)} under one key: its repeat acted again", fix, control)
    if not made.answered:
        said = f"its repeat was not answered as the first call was, but: {made.text[:300]}"
        return stage.failed(fault, said, fix, control)
    if fault is not Fault.REPEATED_AFTER_A_DAY and made.text != stage.first_text:
        said = f"its repeat was answered otherwise than the first call: {made.text[:200]!r}"
        return stage.failed(fault, said, "answer a known key with what was answered then", control)
    return stage.proven(fault, f"2 calls under one key: {plural(stage.one)}, one answer", control)


def _honours(stage: Stage, function: str) -> bool:
    listed = {entry.name: entry for entry in stage.open().functions}
    return function in listed and traits_of(listed[function].annotations, listed[function].meta).honours_key
