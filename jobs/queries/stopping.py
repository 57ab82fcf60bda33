"""What is being stopped waits for, who asked for it, and what it may have done (RULES L2, L6, U10)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from base.figures import duration, plural
from catalog.models import Tool, Transport
from jobs.models import Attempt, Call, Job, Turn
from jobs.queries.standstill import Standstill
from jobs.rules.states import CALL_FINAL, CallState, Effect, JobState, NodeState, TurnState
from jobs.rules.why import Why, sentence

GONE: Final = (NodeState.LOST, NodeState.GONE)
NAMED: Final = 3  # calls that are named in a job's head

RUNS_ON: Final = " A function that does not look out for it (a plain def) runs on, and what it does may still land."
ENDS_WITH_SERVER: Final = " Then the job's own server is ended with it."
CANNOT_BE_TOLD: Final = " This connection cannot tell its server to stop, so what it does may still land."
CONFIRMS: Final = " A server that confirms its stops is waited for longer."
MAY_HAVE_ACTED: Final = "It may have acted before it stopped."
MAY_STILL_LAND: Final = "It did not say that it stopped: what it does may still land."
NOTHING_MADE: Final = "Nothing was made."
WAS_MADE: Final = "It was made: its answer came before it stopped."


@dataclass(frozen=True, slots=True)
class Stopping:
    """`text`, then the clock (`until` counts down, `since` up), then `after`."""

    text: str
    until: datetime | None
    since: datetime | None
    after: str


def of_call(call: Call, last: Attempt | None, still: Standstill) -> Stopping:
    """Why a *cancelling* call has not ended. The node of its last attempt is loaded. Demands an open read."""
    asked = asked_by(call.reason, still.job)
    if last is None or last.stop_requested_at is None:
        return Stopping(f"{asked} It is being stopped.", None, None, "")
    if last.node.state in GONE:
        lost = "The node that made it was lost: it counts as ended when its full time limit has passed, in"
        return Stopping(f"{asked} {lost}", last.limit_at, None, "" if call.read_only else ". It may run on until then.")
    tool = call.function.tool if call.function else None
    if tool is None:
        return Stopping(f"{asked} Being stopped for", None, last.stop_requested_at, "")
    cleaned = min(last.stop_requested_at + timedelta(seconds=tool.cleanup), last.limit_at)
    wait = f"Its end is waited for, at first for its clean-up time of {duration(tool.cleanup)}:"
    after = "" if call.read_only else _truth(tool, can_cancel=_can_cancel(call))
    if still.now < cleaned:
        return Stopping(f"{asked} {wait}", cleaned, None, f" left.{after}")
    return Stopping(
        f"{asked} It has not ended since it was told to stop, for", None, last.stop_requested_at, f".{after}"
    )


def _truth(tool: Tool, *, can_cancel: bool) -> str:
    match Transport(tool.transport):
        case Transport.SANDBOX:
            return ENDS_WITH_SERVER
        case Transport.URL:
            return CONFIRMS + RUNS_ON if can_cancel else CANNOT_BE_TOLD
        case Transport.STDIO:
            return RUNS_ON


def _can_cancel(call: Call) -> bool:
    return call.function is not None and call.function.listing.can_cancel


def asked_by(reason: str, job: Job) -> str:
    """Who or what asked for the stop, as a sentence."""
    person = job.cancel_requested_by.get_username() if job.cancel_requested_by else ""
    match reason:
        case Why.CANCELLED | Why.STOPPED_BY_PERSON if person:
            return f"{person} stopped its job."
        case Why.UNKNOWN_OUTCOME:
            return "Another call of its job has an unknown outcome, which ends the job."
        case _:
            return sentence(reason)


def of_job(job: Job) -> str:
    """What a *cancelling* job waits for, as one sentence. Demands an open read."""
    calls = Call.objects.filter(job_id=job.pk, state=CallState.CANCELLING).order_by("activity")
    names = [f"{tool}.{function}" for tool, function in calls.values_list("tool_slug", "function_name")]
    waits = []
    if names:
        more = f" and {plural(len(names) - NAMED, 'more call')}" if len(names) > NAMED else ""
        waits.append(f"{plural(len(names), 'call')} to stop: {', '.join(names[:NAMED])}{more}")
    if Turn.objects.filter(job_id=job.pk, state=TurnState.ASKED).exists():
        waits.append("the model's answer, which is not used")
    return f"It waits for {' and for '.join(waits)}." if waits else ""


def what_it_may_have_done(job: Job) -> str:
    """How many calls of an ended job may have acted without an answer (RULES U10); nothing when none may."""
    if job.state not in (JobState.CANCELED, JobState.FAILED):
        return ""
    maybe = Call.objects.filter(job_id=job.pk, state__in=CALL_FINAL, effect=Effect.MAYBE, read_only=False).count()
    return f"{plural(maybe, 'call')} of it may have acted without an answer." if maybe else ""


def with_effect(call: Call, last: Attempt | None, text: str) -> str:
    """The text of a call that ended without an answer, with what it did (RULES U10)."""
    if call.read_only:
        return text
    match Effect(call.effect):
        case Effect.NONE:
            said = NOTHING_MADE
        case Effect.MADE:
            said = WAS_MADE
        case Effect.MAYBE:
            said = MAY_HAVE_ACTED if last is None or last.end_known else MAY_STILL_LAND
    return f"{text} {said}"
