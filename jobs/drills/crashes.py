"""Faults that take an attempt along: its reply, its server, or its server's input. The call is then made again."""

from collections.abc import Callable
from typing import Any, Final

from jobs.drills.observing import changes
from jobs.drills.stage import CannotMeasure, Made, NotApplicable, Stage, plural
from jobs.rules.drills import Fault, Finding
from jobs.rules.orders import End
from jobs.rules.reasons import Reason

SHORT: Final = 6.0  # seconds after which an attempt whose reply was dropped stops itself
LONG: Final = 20.0  # seconds that a call is made to last which is cut off long before
UNDER_WAY: Final = 0.3  # seconds after its request went out that a call is struck
FIX: Final = "write the effect and its key in one transaction, so that neither is there without the other"


def reply_dropped(stage: Stage) -> Finding:
    """The reply is lost on its way; the attempt reaches its limit and the call is made again."""
    return _struck(stage, Fault.REPLY_DROPPED, "reply", "drop", End.TIMED_OUT, acted=True, timeout=SHORT)


def killed_before(stage: Stage) -> Finding:
    """The server dies with the request on its way to it."""
    return _struck(stage, Fault.KILLED_BEFORE, "request", "kill", End.BROKEN, acted=False)


def killed_after(stage: Stage) -> Finding:
    """The server dies when the effect is there and the reply is not."""
    return _struck(stage, Fault.KILLED_AFTER, "reply", "kill", End.BROKEN, acted=True)


def killed_mid_way(stage: Stage) -> Finding:
    """The server dies while the call runs."""
    return _mid_way(stage, Fault.KILLED_MID_WAY, "kill")


def eof_mid_way(stage: Stage) -> Finding:
    """The server's input ends while the call runs."""
    return _mid_way(stage, Fault.EOF_MID_WAY, "eof")


def term_mid_way(stage: Stage) -> Finding:
    """The server gets SIGTERM while the call runs."""
    return _mid_way(stage, Fault.TERM_MID_WAY, "term")


def lasting(stage: Stage, seconds: float) -> tuple[dict[str, Any], Callable[[], None]]:
    """Arguments of a call that takes some seconds, and how to end that. Raises `CannotMeasure` or `NotApplicable`."""
    if stage.how.at_once:
        raise NotApplicable("its author says that its work is over at once (`at_once`)")
    if stage.how.lasts:
        return stage.arguments(stage.how.lasts), lambda: None
    if not stage.drill.trouble:
        raise CannotMeasure(
            "its calls are over too soon to be struck half-way",
            "name a `trouble:` file that its server obeys, give `lasts:` arguments, or say `at_once: true`",
        )
    stage.trouble(wait_before=seconds)
    return stage.arguments(), stage.trouble


def _struck(stage: Stage, fault: Fault, at: str, do: str, end: End, *, acted: bool, timeout: float = 0) -> Finding:
    """Strike at a message of the first attempt. The control is that it was cut off, and what had been done by then."""
    stage.open()
    before = stage.look()
    by_then: list[int] = []
    stage.order(do, at=at)
    made = stage.call(stage.key(), first_timeout=timeout, between=lambda: by_then.append(changes(before, stage.look())))
    effects = changes(before, stage.look())
    if made.outcomes[0].end is not end or not by_then:
        raise CannotMeasure(f"its first attempt was not cut off: {made.outcomes[0].wire.detail}")
    if acted and not stage.traits.read_only and not by_then[0]:
        raise CannotMeasure(
            "its effect was not there yet when it had answered", "answer a call when its effect is there"
        )
    control = f"the first attempt was cut off ({end}), with {plural(by_then[0])} by then"
    return _judged(stage, fault, made, effects, 0 if stage.traits.read_only else stage.one, control)


def _mid_way(stage: Stage, fault: Fault, do: str) -> Finding:
    stage.open()
    expected = _expected(stage)
    arguments, end_it = lasting(stage, LONG)
    try:
        before, struck = stage.look(), stage.server
        seen, reported = len(stage.seen("request")), len(stage.seen("progress"))
        key = stage.key()
        stage.order(do, at="progress")  # where it reports any; else some moments after its request
        call = stage.start(lambda: stage.call(key, arguments, between=end_it))
        stage.until(lambda: len(stage.seen("request", struck)) > seen or call.done(), "its call")
        stage.pause(UNDER_WAY)
        if not stage.seen("did", struck):
            stage.order(do)
        stage.until(lambda: stage.seen("did", struck), "the end of its server")
        open_then = stage.seen("did", struck)[-1]["open"]
        when = "at its first progress" if len(stage.seen("progress", struck)) > reported else "while it ran"
        made = call.result()
    finally:
        end_it()
    if not open_then:
        raise CannotMeasure("its call was over before it could be struck", "make it last longer")
    if made.last.reason == Reason.SERVER_ERROR:  # its last word for an open call; whether it acted is not said
        control = f"its call was struck {when}, and ended by the server: {made.text[:100]}"
        stage.renew()
        made = Made((*made.outcomes, *stage.call(key, arguments).outcomes))
    elif len(made.outcomes) == 1 and made.answered:
        control = f"its call was struck {when}, and was answered all the same"
    else:
        control = f"its call was struck {when}, and cut off ({made.outcomes[0].end})"
    effects = changes(before, stage.look())
    return _judged(stage, fault, made, effects, expected, control)


def _expected(stage: Stage) -> int:
    """How many effects one call has that lasts: its arguments may be others than those of the first call."""
    if not stage.how.lasts:
        return stage.one
    made, effects = stage.effects_of(lambda: stage.call(stage.key(), stage.arguments(stage.how.lasts)))
    if not made.answered or not effects:
        raise CannotMeasure(f"with its `lasts` arguments it does nothing that is seen: {made.text[:200]}")
    return effects


def _judged(stage: Stage, fault: Fault, made: Made, effects: int, expected: int, control: str) -> Finding:
    """Of a call that was made again: answered, and one effect; of a read: answered, and none."""
    tries = "1 attempt" if len(made.outcomes) == 1 else f"{len(made.outcomes)} attempts"
    if effects > expected:
        return stage.failed(fault, f"{plural(effects)} under one key, after {tries}", FIX, control)
    if not made.answered:
        return stage.failed(fault, f"made again, it was not answered but: {made.text[:300]}", FIX, control)
    if effects < expected:
        return stage.failed(fault, f"made again, it was answered as done, with {plural(effects)} in all", FIX, control)
    return stage.proven(fault, f"{tries} under one key: {plural(effects)}", control)
