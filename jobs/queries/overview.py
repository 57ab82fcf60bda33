"""The figures of the overview: what needs a person, what runs, what failed, who works."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from jobs.models import Call, Hold, Job, Node
from jobs.queries.lists import MOST_COUNTED, JobRow, newest_jobs
from jobs.rules.states import CallState, HoldKind, JobState, NodeState


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One worker process."""

    name: str
    state: NodeState
    slots: int
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts stop at 1,001."""

    now: datetime
    asking: int
    unknown: int
    oldest: datetime | None
    running_jobs: int
    running_calls: int
    failed_today: int
    nodes: tuple[NodeRow, ...]
    newest: tuple[JobRow, ...]

    @property
    def alive(self) -> int:
        """Nodes that take work."""
        return sum(node.state is NodeState.ALIVE for node in self.nodes)


def overview(tenant: UUID) -> Overview:
    """What the overview shows."""
    with db.read(tenant) as now:
        asking = Hold.objects.filter(closed_at__isnull=True)
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return Overview(
            now=now,
            asking=asking[:MOST_COUNTED].count(),
            unknown=asking.filter(kind=HoldKind.UNKNOWN)[:MOST_COUNTED].count(),
            oldest=asking.order_by("opened_at").values_list("opened_at", flat=True).first(),
            running_jobs=Job.objects.filter(state=JobState.RUNNING)[:MOST_COUNTED].count(),
            running_calls=Call.objects.filter(state=CallState.RUNNING)[:MOST_COUNTED].count(),
            failed_today=Job.objects.filter(state=JobState.FAILED, ended_at__gte=today)[:MOST_COUNTED].count(),
            nodes=nodes(),
            newest=tuple(newest_jobs(8)),
        )


def nodes() -> tuple[NodeRow, ...]:
    """The nodes that live, and the one or two that were lost last. Demands an open read."""
    living = Node.objects.filter(state__in=[NodeState.ALIVE, NodeState.DRAINING]).order_by("started_at")[:50]
    lost = Node.objects.filter(state=NodeState.LOST).order_by("-ended_at")[:2]
    return tuple(
        NodeRow(node.name, NodeState(node.state), node.slots, node.started_at, node.heartbeat_at)
        for node in [*living, *lost]
    )


def waiting_count(tenant: UUID) -> tuple[int, int]:
    """(open questions of the tenant, nodes alive), for the frame of every page. The first stops at 1,001."""
    with db.read(tenant):
        waiting = Hold.objects.filter(closed_at__isnull=True)[:MOST_COUNTED].count()
        return waiting, Node.objects.filter(state=NodeState.ALIVE).count()
