"""How much there is to do in the whole studio, over all workspaces and of none by name: numbers for monitoring."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Max, Min, QuerySet, Sum

from base import db
from jobs.models import Attempt, Call, Hold, Job, Node
from jobs.rules.limits import LEASE
from jobs.rules.states import ASKING, JOB_FINAL, MOVING, CallState, HoldKind, JobState, NodeState

LIVE_JOBS: Final = tuple(state for state in JobState if state not in JOB_FINAL)
LIVE_CALLS: Final = tuple(state for state in CallState if state in MOVING | ASKING)
WORKING: Final = (NodeState.ALIVE, NodeState.DRAINING)
SILENT: Final = 30.0  # seconds without a message taken, several times the pause between two that are sent to prove it


@dataclass(frozen=True, slots=True)
class Working:
    """Whether work is done: nodes whose pulse is young, and when the broker's messages last reached one of them.

    `pulse` and `message` are seconds ago; None for never.
    """

    nodes: int
    slots: int
    pulse: float | None
    message: float | None

    @property
    def pulses(self) -> bool:
        """Whether a node claims what is due."""
        return self.pulse is not None and self.pulse <= LEASE

    @property
    def consumes(self) -> bool:
        """Whether messages reach a node, so that it does so at once."""
        return self.message is not None and self.message <= SILENT


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is not over, by state; ages are in seconds, 0 where there is none."""

    jobs: Mapping[JobState, int]
    calls: Mapping[CallState, int]
    holds: Mapping[HoldKind, int]
    oldest_hold: float
    due: int
    oldest_due: float
    attempts: int
    nodes: Mapping[NodeState, int]
    working: Working


def working() -> Working:
    """Whether work is done."""
    with db.sweep() as now:
        return _working(now)


def gauges() -> Gauges:
    """All of it, in one read."""
    with db.sweep() as now:
        due = Call.objects.filter(due_at__lte=now)
        oldest_due = due.aggregate(oldest=Min("due_at"))["oldest"]
        opened = Hold.objects.filter(closed_at__isnull=True)
        oldest_hold = opened.aggregate(oldest=Min("opened_at"))["oldest"]
        nodes = Node.objects.filter(state__in=WORKING)
        return Gauges(
            jobs=_by(Job.objects.filter(state__in=LIVE_JOBS), "state", LIVE_JOBS),
            calls=_by(Call.objects.filter(state__in=LIVE_CALLS), "state", LIVE_CALLS),
            holds=_by(opened, "kind", tuple(HoldKind)),
            oldest_hold=_age(oldest_hold, now) or 0.0,
            due=due.count(),
            oldest_due=_age(oldest_due, now) or 0.0,
            attempts=Attempt.objects.filter(ended_at__isnull=True).count(),
            nodes=_by(nodes, "state", WORKING),
            working=_working(now),
        )


def _working(now: datetime) -> Working:
    alive = Node.objects.filter(state=NodeState.ALIVE)
    young = alive.filter(heartbeat_at__gte=now - timedelta(seconds=LEASE))
    found = young.aggregate(nodes=Count("pk"), slots=Sum("slots"))
    last = alive.aggregate(pulse=Max("heartbeat_at"), message=Max("consumed_at"))
    return Working(
        nodes=found["nodes"],
        slots=found["slots"] or 0,
        pulse=_age(last["pulse"], now),
        message=_age(last["message"], now),
    )


def _by[State: (JobState, CallState, HoldKind, NodeState)](
    rows: QuerySet[Any], field: str, states: tuple[State, ...]
) -> Mapping[State, int]:
    found = dict(rows.order_by().values_list(field).annotate(Count("pk")))
    return {state: found.get(state.value, 0) for state in states}


def _age(since: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - since).total_seconds()) if since else None
