"""The figures of the overview: what needs a person, what runs, what failed, who works."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from base import db
from catalog.models import KillSwitch
from catalog.queries.switch_rows import SwitchRow, on_now
from catalog.rules.switching import Mode
from jobs.models import Attempt, Call, Job, Node
from jobs.queries.lists import MOST_COUNTED, JobRow, newest_jobs
from jobs.queries.questions import counted, open_questions
from jobs.rules.states import CallState, HoldKind, JobState, NodeState


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One worker process. `open` counts the attempts of this tenant that are being made there."""

    name: str
    state: NodeState
    slots: int
    open: int
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
    switches: tuple[SwitchRow, ...]

    @property
    def draining(self) -> int:
        """Nodes that finish what they have and take nothing new."""
        return sum(node.state is NodeState.DRAINING for node in self.nodes)

    @property
    def alive(self) -> int:
        """Nodes that take work."""
        return sum(node.state is NodeState.ALIVE for node in self.nodes)


def overview(tenant: UUID) -> Overview:
    """What the overview shows."""
    with db.read(tenant) as now:
        asking = open_questions()
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return Overview(
            now=now,
            asking=counted(asking),
            unknown=counted(open_questions(kind=HoldKind.UNKNOWN)),
            oldest=asking.order_by("opened_at").values_list("opened_at", flat=True).first(),
            running_jobs=Job.objects.filter(state=JobState.RUNNING)[:MOST_COUNTED].count(),
            running_calls=Call.objects.filter(state=CallState.RUNNING)[:MOST_COUNTED].count(),
            failed_today=Job.objects.filter(state=JobState.FAILED, ended_at__gte=today)[:MOST_COUNTED].count(),
            nodes=nodes(),
            newest=tuple(newest_jobs(8)),
            switches=on_now(),
        )


def nodes() -> tuple[NodeRow, ...]:
    """The nodes that live, and the one or two that were lost last. Demands an open read."""
    living = Node.objects.filter(state__in=[NodeState.ALIVE, NodeState.DRAINING]).order_by("started_at")[:50]
    lost = Node.objects.filter(state=NodeState.LOST).order_by("-ended_at")[:2]
    found = [*living, *lost]
    attempts = Attempt.objects.filter(ended_at__isnull=True, node__in=found).values_list("node").annotate(Count("pk"))
    made = dict(attempts.order_by())
    return tuple(
        NodeRow(node.name, NodeState(node.state), node.slots, made.get(node.pk, 0), node.started_at, node.heartbeat_at)
        for node in found
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """What the frame of every page counts. `waiting` stops at 1,001."""

    waiting: int
    nodes: int
    stopped: int
    paused: int


def frame(tenant: UUID) -> Frame:
    """Open questions, nodes alive, and the switches that are on."""
    with db.read(tenant):
        modes = list(KillSwitch.objects.filter(off_at__isnull=True).values_list("mode", flat=True))
        return Frame(
            waiting=counted(open_questions()),
            nodes=Node.objects.filter(state=NodeState.ALIVE).count(),
            stopped=modes.count(Mode.KILL),
            paused=modes.count(Mode.PAUSE),
        )
