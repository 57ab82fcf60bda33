"""Faults of cancelling: before the effect, after it, and what still lands once the server said that it has ended."""

import time
from concurrent.futures import Future
from typing import Any, Final

from jobs.drills.crashes import lasting
from jobs.drills.observing import changes
from jobs.drills.stage import CannotMeasure, NotApplicable, Stage, plural
from jobs.rules.drills import Fault, Finding
from jobs.rules.orders import End, Order, Outcome
from jobs.rules.reasons import Reason

LASTS: Final = 4.0  # seconds to its effect, of a call that is cancelled
HELD_BACK: Final = 20.0  # seconds that an answer is held back for a late cancel
SOON: Final = 0.5  # seconds to its effect, of the control
UNDER_WAY: Final = 0.3
TO_STOP: Final = 2.0  # seconds, at most, that a cancelled function has to notice
AFTERWARDS: Final = 2.0  # seconds watched past the end that the call would have had

STOP: Final = (
    "let an `async` function await while it works, and a `def` one call anyio.from_thread.check_cancelled() between "
    "pieces; or say `runs_on:` in the drill file when it cannot be stopped"
)
TRUE: Final = "say that a cancelled call has ended only when its function has returned, its threads and tasks included"
KEEP: Final = "keep the key with the effect also when the call is cancelled before it could answer"


def cancelled(stage: Stage) -> list[Finding]:
    """Cancel a call half-way, and watch until long after it would have acted."""
    if stage.how.runs_on:
        raise NotApplicable(f"its author says that it cannot be stopped: {stage.how.runs_on}")
    seconds, whole = _left_alone(stage)
    control = f"left alone, the same call acts: {plural(whole)}"
    arguments, end_it = lasting(stage, LASTS)
    seconds = seconds if stage.how.lasts else LASTS
    try:
        before = stage.look()
        call, order, began = _begun(stage, stage.key(), arguments)
        stage.pause(min(UNDER_WAY, seconds / 4))
        stage.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        cut = time.monotonic()
        stage.pause(min(stage.tool.cleanup, TO_STOP))
        stopped = stage.look()
        acknowledged = _acknowledged(stage, cut)
        stage.pause(max(0.0, began + seconds + AFTERWARDS - time.monotonic()))
        after = stage.look()
        outcome = call.result()
    finally:
        end_it()
    if outcome.end is not End.STOPPED and cut - began >= seconds:
        raise CannotMeasure("it was over before it could be cancelled", "make its calls last longer")
    acknowledged = acknowledged or _acknowledged(stage, cut)
    late, in_all = changes(stopped, after), changes(before, after)
    found = []
    if late or in_all >= whole:
        said = f"cancelled {cut - began:.1f} s into the call it acted all the same: {plural(in_all)}"
        found.append(stage.failed(Fault.CANCELLED, said, STOP, control))
    else:
        said = f"cancelled {cut - began:.1f} s into the call: {plural(in_all)}, and none later"
        found.append(stage.proven(Fault.CANCELLED, said, control))
    if acknowledged and late:
        said = f"it said that the cancelled call had ended, and acted after that: {plural(late)}"
        found.append(stage.failed(Fault.CANCEL_ACKNOWLEDGED, said, TRUE, control))
    elif acknowledged:
        said = "it said when the cancelled call had ended, and nothing landed after that"
        found.append(stage.proven(Fault.CANCEL_ACKNOWLEDGED, said, control))
    return found


def cancelled_late(stage: Stage) -> Finding:
    """Cancel a call whose effect is there and whose answer is not, then have it run again under its key."""
    stage.open()
    key = stage.key()
    if stage.drill.trouble:
        stage.trouble(wait_after=HELD_BACK)
    else:
        stage.order("drop", at="reply")
    try:
        before = stage.look()
        call, order, _ = _begun(stage, key, stage.arguments())
        stage.until(lambda: call.done() or changes(before, stage.look()) >= stage.one, "its effect")
        if call.done():
            fix = "let the stand-in behind it obey `wait_after` of the trouble file"
            raise CannotMeasure("its answer came with its effect, so it could not be cancelled in between", fix)
        stage.pause(UNDER_WAY)
        stage.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        outcome = call.result()
    finally:
        stage.trouble()
    made = stage.call(key)
    effects = changes(before, stage.look())
    control = f"{plural(stage.one)} had been made when it was cancelled ({outcome.end})"
    if effects > stage.one:
        said = f"{plural(effects)} under one key: run again after the cancel it acted again"
        return stage.failed(Fault.CANCELLED_LATE, said, KEEP, control)
    if not made.answered:
        said = f"run again after the cancel it was not answered but: {made.text[:300]}"
        return stage.failed(Fault.CANCELLED_LATE, said, KEEP, control)
    if effects < stage.one:
        said = "run again after the cancel it was answered as done, and its effect was gone"
        return stage.failed(Fault.CANCELLED_LATE, said, KEEP, control)
    return stage.proven(Fault.CANCELLED_LATE, f"cancelled after its effect and run again: {plural(effects)}", control)


def _left_alone(stage: Stage) -> tuple[float, int]:
    """How long the call takes when nobody cancels it, and how many effects it then has: the control."""
    arguments, end_it = lasting(stage, SOON)
    began = time.monotonic()
    try:
        made, effects = stage.effects_of(lambda: stage.call(stage.key(), arguments))
    finally:
        end_it()
    seconds = time.monotonic() - began
    if not made.answered or not effects:
        raise CannotMeasure(f"left alone, it does nothing that is seen: {made.text[:200]}", "see `effects:`")
    if stage.how.lasts and seconds < TO_STOP + 1:
        fix = f"give `lasts:` arguments of a call that takes {TO_STOP + 2:g} s or more"
        raise CannotMeasure(f"its longest call takes {seconds:.1f} s, too short to cancel it half-way", fix)
    return seconds, effects


def _begun(stage: Stage, key: str, arguments: dict[str, Any]) -> "tuple[Future[Outcome], Order, float]":
    """An attempt whose request has reached the server, its order, and when that was."""
    orders: list[Order] = []
    seen = len(stage.seen("request"))
    call = stage.start(lambda: stage.attempt(key, arguments, began=orders.append))
    stage.until(lambda: len(stage.seen("request")) > seen or call.done(), "its call")
    if not orders:
        raise CannotMeasure(f"it could not be called: {call.exception()}")
    return call, orders[0], time.monotonic()


def _acknowledged(stage: Stage, cut: float) -> bool:
    """Whether the server has said, since then, that the request is over: by an error, or by its own notification."""
    replies = [one for one in stage.seen("reply") if one["error"]]
    return any(one["at"] >= cut for one in (*replies, *stage.seen("stopped")))
