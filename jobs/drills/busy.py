"""Faults of a busy service: asked once for each attempt, and not remembered under the key (RULES B1, B7)."""

from typing import Final

from jobs.drills.observing import changes
from jobs.drills.stage import CannotMeasure, NotApplicable, Stage, plural
from jobs.rules.drills import Fault, Finding
from jobs.rules.orders import End

WAITING: Final = 5  # busy answers that lie ready for one attempt

ONCE: Final = "ask the service once and answer with `busy(...)`; the platform makes the call again, after the wait"
SAY: Final = (
    'answer with an error result whose _meta says "oz0/retryable": True, and "oz0/retry_after" when it is known'
)
KEPT: Final = "keep nothing under the key when nothing was done: a busy answer is not the call's answer"


def asked_once(stage: Stage) -> Finding:
    """One attempt while the service is busy."""
    if not stage.how.busy:
        raise NotApplicable("its author says that no service behind it can be busy (`busy: false`)")
    if not stage.drill.trouble:
        raise NotApplicable("its drill file names no `trouble:` file by which a service behind it can be made busy")
    stage.open()
    stage.trouble(busy={"calls": WAITING, "retry_after": 1})
    try:
        before = stage.look()
        outcome = stage.attempt(stage.key())
        effects, asked = changes(before, stage.look()), WAITING - stage.busy_left()
    finally:
        stage.trouble()
    if not asked:
        raise CannotMeasure(
            "it never looked at `busy` of the trouble file",
            "let the stand-in behind it take one off `busy.calls` each time it is asked, or say `busy: false`",
        )
    control = f"{WAITING} busy answers lay ready, and {asked} {'was' if asked == 1 else 'were'} taken"
    if asked > 1:
        said = f"the service was asked {asked} times in one attempt: it tries again inside itself"
        return stage.failed(Fault.BUSY_ASKED_ONCE, said, ONCE, control)
    if outcome.end is not End.BUSY:
        text = outcome.result.text if outcome.result is not None else outcome.wire.detail
        said = f"a busy service was not told as busy ({outcome.end}): {text[:200]}"
        return stage.failed(Fault.BUSY_ASKED_ONCE, said, SAY, control)
    if effects:
        said = f"it said that the service is busy, and acted: {plural(effects)}"
        return stage.failed(Fault.BUSY_ASKED_ONCE, said, "say busy only when nothing was done", control)
    return stage.proven(Fault.BUSY_ASKED_ONCE, "1 attempt asked a busy service once, and said so", control)


def not_kept(stage: Stage) -> Finding:
    """The attempt after a busy one, under the same key."""
    if not stage.how.busy or not stage.drill.trouble:
        raise NotApplicable("no service behind it can be made busy")
    stage.open()
    stage.trouble(busy={"calls": 1, "retry_after": 1})
    try:
        before = stage.look()
        made = stage.call(stage.key(), insist=True)
        effects = changes(before, stage.look())
    finally:
        stage.trouble()
    if made.outcomes[0].end is not End.BUSY:
        raise CannotMeasure(f"its first attempt was not busy: {made.outcomes[0].wire.detail}")
    control = "its first attempt was answered as busy, which is how a kept answer would look too"
    if not made.answered:
        said = f"after one busy answer its next {len(made.outcomes) - 1} attempts were answered: {made.text[:200]}"
        return stage.failed(Fault.BUSY_NOT_KEPT, said, KEPT, control)
    if effects != stage.one:
        said = f"after a busy answer its call was answered as done, with {plural(effects)}"
        return stage.failed(Fault.BUSY_NOT_KEPT, said, KEPT, control)
    return stage.proven(Fault.BUSY_NOT_KEPT, f"busy, then made under the same key: {plural(effects)}", control)
