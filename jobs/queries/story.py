"""What a person should know of a call at one look: one sentence, and the moment it counts to, if there is one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from base import figures
from jobs.models import Attempt, Call, Hold
from jobs.queries import stopping
from jobs.queries.standstill import Standstill
from jobs.rules.limits import MAX_ATTEMPTS
from jobs.rules.resume import sentence as how_it_began
from jobs.rules.states import CallState, Effect, HoldKind, HoldState
from jobs.rules.why import Why, sentence

EARLIER: Final = "an earlier one got no answer and may have acted."
ANSWERS: Final = {
    "approve": "approved",
    "edit": "edited and approved",
    "deny": "denied",
    "happened": "it happened, said",
    "again": "run again, said",
    "start_again": "program started again, said",
    "finished": "it is finished, said",
    "stop": "job stopped",
}


@dataclass(frozen=True, slots=True)
class Says:
    """`text`, then a clock, then `after`. Its words may be untrusted. `until` counts down, `since` up, if given."""

    text: str
    until: datetime | None = None
    since: datetime | None = None
    after: str = ""

    @property
    def letters(self) -> int:
        """About how long it is."""
        return len(self.text) + len(self.after) + (12 if self.until or self.since else 0)


def says_of(call: Call, attempts: list[Attempt], holds: list[Hold], still: Standstill) -> Says:
    """The sentence for a call's line. Demands an open read of its tenant."""
    last = attempts[-1] if attempts else None
    match CallState(call.state):
        case CallState.HELD:
            hold = next((hold for hold in holds if hold.closed_at is None), None)
            return (
                Says("waits for a person, expires in", until=hold.expires_at)
                if hold and hold.expires_at
                else Says("waits for a person")
            )
        case CallState.QUEUED:
            return Says(still.why(call))
        case CallState.RUNNING:
            return Says(_running(call, last), until=last.limit_at) if last else Says("")
        case CallState.RETRYING:
            why = sentence(last.reason) if last else ""
            coming = f"Attempt {len(attempts) + 1} of {MAX_ATTEMPTS}"
            if call.due_at is None or call.due_at <= still.now:
                return Says(f"{why} {coming} is due. {still.why(call)}".strip())
            return Says(f"{why} {coming} in".strip(), until=call.due_at)
        case CallState.UNKNOWN:
            return Says(f"{sentence(call.reason)} Asked: did it happen?")
        case CallState.CANCELLING:
            told = stopping.of_call(call, last, still)
            return Says(told.text, until=told.until, since=told.since, after=told.after)
        case CallState.CANCELED:
            return Says(stopping.with_effect(call, last, sentence(call.reason)))
        case CallState.SUCCEEDED | CallState.ERRORED if call.reason == Why.ANSWERED_HERE:
            return Says(f"{call.detail}: answered by the studio itself" if call.detail else "answered by the studio")
        case CallState.SUCCEEDED | CallState.HAPPENED:
            return Says(_how_it_went(attempts, holds))
        case CallState.REFUSED if call.reason == Why.DENIED:
            return Says(_who(holds, HoldState.ANSWERED) or sentence(call.reason))
        case CallState.FAILED:
            return Says(stopping.with_effect(call, last, call.detail or sentence(call.reason)))
        case CallState.ERRORED if call.effect == Effect.MAYBE and len(attempts) > 1:
            return Says(f"Attempt {len(attempts)} was answered with an error; {EARLIER}")
        case _:
            text = call.detail or sentence(call.reason)
            return Says(stopping.with_effect(call, last, text) if call.effect == Effect.MAYBE else text)


def answered(hold: Hold) -> str:
    """Who answered a hold, with what, after how long; nothing while it is open."""
    if hold.state == HoldState.EXPIRED:
        return "expired: nobody answered"
    if hold.state == HoldState.WITHDRAWN:
        return "withdrawn: no answer was needed any more"
    if hold.closed_at is None or hold.answered_by is None:
        return ""
    waited = figures.duration(hold.closed_at - hold.opened_at)
    return f"{ANSWERS.get(hold.answer, hold.answer)} by {hold.answered_by.get_username()} after {waited}"


def _running(call: Call, last: Attempt) -> str:
    of = f" of {last.total:g}" if last.total else ""
    parts = [
        f"attempt {last.number} of up to {MAX_ATTEMPTS if call.retry_safe else 1}",
        _began(last),
        f"progress {last.progress:g}{of}" if last.progress is not None else "",
        "limit in",
    ]
    return ", ".join(part for part in parts if part)


def _began(attempt: Attempt) -> str:
    return how_it_began(attempt.resumed_from, attempt.resumed_of, attempt.started_over_because)


def _how_it_went(attempts: list[Attempt], holds: list[Hold]) -> str:
    parts = [answered(hold) for hold in holds if hold.state == HoldState.ANSWERED]
    if len(attempts) > 1:
        parts.append(f"{len(attempts)} attempts: the first ended “{attempts[0].state.replace('_', ' ')}”")
        parts += [f"attempt {one.number} {_began(one)}" for one in attempts[-1:] if _began(one)]
    return " · ".join(parts)


def _who(holds: list[Hold], state: HoldState) -> str:
    return " · ".join(
        f"{answered(hold)}: {hold.note}" for hold in holds if hold.state == state and hold.kind != HoldKind.UNKNOWN
    )
