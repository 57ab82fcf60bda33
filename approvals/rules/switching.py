"""What turning a switch does, told before and after, and who may (RULES L7, L11).

A kill switch cannot be taken back for what it stopped, so admins throw it. A pause loses nothing, so whoever is on
duty may. The text that forbids is the text that explains a disabled button (STYLE 21).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from base.figures import plural
from catalog.rules.switching import Mode, Scope
from jobs.rules.covered import Covered

PAUSING_ROLES: Final = frozenset({"operator", "author", "admin"})
KILLING_ROLES: Final = frozenset({"admin"})
OF_JOBS: Final = frozenset({Scope.AGENT, Scope.TENANT})


@dataclass(frozen=True, slots=True)
class Line:
    """One thing a switch does: in words before it is turned on, and as it was done then (empty: nothing to tell)."""

    will: str
    did: str = ""


def why_not_switch(role: str, mode: Mode) -> str | None:
    """Why a person of this role may not turn a switch of this mode on or off; None when they may."""
    if mode is Mode.PAUSE:
        return None if role in PAUSING_ROLES else f"Operators pause; your role here is {role}."
    return None if role in KILLING_ROLES else f"Admins throw and lift kill switches; your role here is {role}."


def lines(scope: Scope, mode: Mode, seen: Covered) -> tuple[Line, ...]:
    """What turning it on does to the work that is there, and to what comes later."""
    match mode:
        case Mode.KILL:
            then = _jobs_end(seen) if scope in OF_JOBS else _jobs_go_on()
            return (*_stopped(seen), *_unknown(scope, seen), then)
        case Mode.PAUSE:
            return (*_paused(seen), *(_jobs_stand(seen) if scope in OF_JOBS else ()), _NOTHING_LOST)
        case never:
            assert_never(never)


def goes_on(scope: Scope, mode: Mode, seen: Covered) -> str:
    """What lifting it lets go on."""
    if mode is Mode.KILL:
        return (
            "New jobs can start. Those it cancelled stay CANCELED."
            if scope in OF_JOBS
            else ("New calls are made again. Those it stopped stay CANCELED.")
        )
    due = [plural(seen.waiting, "waiting call")] if seen.waiting else []
    due += [plural(seen.jobs, "job")] if scope in OF_JOBS and seen.jobs else []
    return (
        f"What waits goes on within a second: {', '.join(due)}."
        if due
        else "What comes starts again; nothing waits now."
    )


_NOTHING_LOST: Final = Line("Nothing is refused and nothing is lost; a job's limit of minutes runs on.")


def _stopped(seen: Covered) -> Iterator[Line]:
    if seen.running:
        calls, acted = plural(seen.running, "running call"), _may_have_acted(seen)
        yield Line(f"Stops {calls}.{acted}", f"Told {calls} to stop.{acted}")
    else:
        yield Line("Stops no call: none runs now.", "Stopped no call: none was running.")
    if seen.stopping:
        yield Line(f"Leaves {plural(seen.stopping, 'call')} to end that had to stop before.")
    if seen.waiting:
        calls = f"{plural(seen.waiting, 'call')} waiting to run or to be tried again"
        yield Line(f"Ends {calls}.", f"Ended {calls}.")
    if seen.held:
        asked = f"{plural(seen.held, 'question')} whether a call may run"
        yield Line(f"Withdraws {asked}.", f"Withdrew {asked}.")


def _may_have_acted(seen: Covered) -> str:
    if not seen.writing:
        return ""
    which = "It is" if seen.running == 1 else f"{seen.writing:,} of them {'is' if seen.writing == 1 else 'are'}"
    return f" {which} not read-only and may have acted by then."


def _unknown(scope: Scope, seen: Covered) -> Iterator[Line]:
    if not seen.unknown:
        return
    outcomes = plural(seen.unknown, "unknown outcome")
    if scope in OF_JOBS:
        yield Line(f"Closes {outcomes} with the jobs: nobody is asked any more.", f"Closed {outcomes} with the jobs.")
    else:
        yield Line(f"Leaves {outcomes} to be answered, but not to be run again.", f"Left {outcomes} to be answered.")


def _jobs_end(seen: Covered) -> Line:
    jobs = plural(seen.jobs, "job")
    after = "each CANCELED once all of its calls have really stopped"
    return Line(f"Cancels {jobs}, {after}. None starts until it is lifted.", f"Cancelled {jobs}, {after}.")


def _jobs_go_on() -> Line:
    return Line("Lets jobs go on; the model reads that a kill switch is on. New calls are refused.")


def _paused(seen: Covered) -> Iterator[Line]:
    open_now = seen.running + seen.stopping
    if open_now:
        calls = plural(open_now, "running call")
        yield Line(f"Lets {calls} run to the end.", f"Let {calls} run to the end.")
    else:
        yield Line("No call runs now; none starts.", "No call was running.")
    if seen.waiting:
        calls = plural(seen.waiting, "call")
        yield Line(f"Holds {calls} waiting to run or to be tried again, and all that come.", f"Held {calls} back.")
    else:
        yield Line("Holds all calls that come until it is lifted.")
    if asked := seen.held + seen.unknown:
        yield Line(f"Leaves {plural(asked, 'question')} open; what is let run waits then.", "")


def _jobs_stand(seen: Covered) -> Iterator[Line]:
    jobs = f"Holds {plural(seen.jobs, 'job')} before the next turn; those" if seen.jobs else "Jobs"
    yield Line(f"{jobs} that are started wait.", f"Held {plural(seen.jobs, 'job')} back." if seen.jobs else "")
