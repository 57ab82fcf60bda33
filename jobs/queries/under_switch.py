"""What a switch covers at this moment, counted in one statement, and what became of it (RULES L7, L11)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Q, QuerySet

from base import ids, prepared
from catalog.models import KillSwitch
from catalog.rules.switching import Mode, Scope
from jobs.models import Call
from jobs.queries.trace import name_of
from jobs.rules.covered import Covered
from jobs.rules.states import ASKING, JOB_FINAL, MOVING, CallState, Effect, JobState
from jobs.rules.why import Why

MOST: Final = 50  # calls that are named

_LIVE: Final = ", ".join(f"'{state}'" for state in sorted(MOVING | ASKING))
_OVER: Final = ", ".join(f"'{state}'" for state in sorted(JOB_FINAL))
_COVERS: Final = {
    Scope.TENANT: "%s = ''",
    Scope.AGENT: "j.agent_name = %s",
    Scope.TOOL: "c.tool_slug = %s",
    Scope.FUNCTION: "c.tool_slug || '.' || c.function_name = %s",
}
_CALLS: Final = f"""
SELECT count(*) FILTER (WHERE c.state = '{CallState.RUNNING}') AS running,
    count(*) FILTER (WHERE c.state = '{CallState.RUNNING}' AND NOT c.read_only) AS writing,
    count(*) FILTER (WHERE c.state = '{CallState.CANCELLING}') AS stopping,
    count(*) FILTER (WHERE c.state IN ('{CallState.QUEUED}', '{CallState.RETRYING}')) AS waiting,
    count(*) FILTER (WHERE c.state = '{CallState.HELD}') AS held,
    count(*) FILTER (WHERE c.state = '{CallState.UNKNOWN}') AS unknown,
    count(DISTINCT c.job_id) AS jobs
FROM jobs_call c JOIN jobs_job j ON j.id = c.job_id WHERE c.state IN ({_LIVE}) AND """  # noqa: S608 - only names of ours
_JOBS: Final = f"""
SELECT count(*) FROM jobs_job j
WHERE j.state NOT IN ({_OVER}, '{JobState.CANCELLING}') AND """  # noqa: S608 - only names of ours


def count(scope: Scope, target: str) -> Covered:
    """The work that a switch covers now. Demands an open read or write of its tenant."""
    covers = _COVERS[scope]
    if scope in (Scope.TOOL, Scope.FUNCTION):
        found = prepared.fetch_one(f"{_CALLS}{covers}", [target])
    else:
        sql = f"SELECT running, writing, stopping, waiting, held, unknown, ({_JOBS}{covers}) FROM ({_CALLS}{covers}) c"  # noqa: S608 - only names of ours
        found = prepared.fetch_one(sql, [target, target])
    assert found is not None  # noqa: S101 - an aggregate has a row
    return Covered(*found)


@dataclass(frozen=True, slots=True)
class Place:
    """Live calls of one tool by one agent, by how they stand."""

    agent: str
    tool: str
    running: int
    waiting: int
    asking: int


def places() -> list[Place]:
    """Where the live calls of the tenant are, for a list of what could be stopped. Demands an open read."""
    rows = Call.objects.filter(state__in=MOVING | ASKING).values_list("job__agent_name", "tool_slug")
    counted = rows.annotate(
        running=Count("pk", filter=Q(state__in=[CallState.RUNNING, CallState.CANCELLING])),
        waiting=Count("pk", filter=Q(state__in=[CallState.QUEUED, CallState.RETRYING])),
        asking=Count("pk", filter=Q(state__in=ASKING)),
    )
    return [Place(*row) for row in counted.order_by()]


@dataclass(frozen=True, slots=True)
class Stopped:
    """One call that a kill switch ended, or is ending."""

    shown_id: str
    shown_job: str
    name: str
    agent: str
    state: CallState
    effect: Effect
    read_only: bool
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a kill switch did so far. `calls` are the newest of those ended, those that may have acted first."""

    ended: int
    maybe: int
    refused: int
    calls: tuple[Stopped, ...]


def aftermath(switch: KillSwitch) -> Aftermath:
    """The calls that ended by a kill switch under this one while it was on. Demands an open read."""
    if switch.mode != Mode.KILL:
        return Aftermath(0, 0, 0, ())
    ended = _ended_under(switch)
    canceled = Q(state=CallState.CANCELED)
    counts = ended.aggregate(
        ended=Count("pk", filter=canceled),
        maybe=Count("pk", filter=canceled & Q(effect=Effect.MAYBE)),
        refused=Count("pk", filter=Q(state=CallState.REFUSED)),
    )
    rows = ended.filter(canceled).defer("arguments").select_related("job").order_by("-ended_at")
    acted = list(rows.filter(effect=Effect.MAYBE)[:MOST])
    others = list(rows.exclude(effect=Effect.MAYBE)[: MOST - len(acted)])
    return Aftermath(**counts, calls=tuple(_stopped(call) for call in (*acted, *others)))


def _ended_under(switch: KillSwitch) -> QuerySet[Call]:
    ended = Call.objects.filter(reason=Why.KILL_SWITCH, ended_at__gte=switch.on_at)
    if switch.off_at is not None:  # one that was told to stop may end after that
        ended = ended.filter(created_at__lte=switch.off_at)
    return covered(ended, switch)


def covered(calls: QuerySet[Call], switch: KillSwitch) -> QuerySet[Call]:
    """Those of these calls that are under the switch."""
    match Scope(switch.scope):
        case Scope.TENANT:
            return calls
        case Scope.AGENT:
            return calls.filter(job__agent_name=switch.target)
        case Scope.TOOL:
            return calls.filter(tool_slug=switch.target)
        case Scope.FUNCTION:
            tool, _, function = switch.target.partition(".")
            return calls.filter(tool_slug=tool, function_name=function)


def still_stopping(switch: KillSwitch) -> tuple[Stopped, ...]:
    """The calls under the switch that were told to stop and have not ended, at most 50. Demands an open read."""
    rows = covered(Call.objects.filter(state=CallState.CANCELLING), switch).defer("arguments").select_related("job")
    return tuple(map(_stopped, rows.order_by("pk")[:MOST]))


def _stopped(call: Call) -> Stopped:
    return Stopped(
        shown_id=ids.show(ids.CALL, call.pk),
        shown_job=ids.show(ids.JOB, call.job_id),
        name=name_of(call),
        agent=call.job.agent_name,
        state=CallState(call.state),
        effect=Effect(call.effect),
        read_only=call.read_only,
        ended_at=call.ended_at,
    )
