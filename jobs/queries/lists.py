"""The list of jobs: rows without any body, fifty at a time, found by key and never by counting (CASES T06)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from base import db, ids
from catalog.models import Agent, Function
from jobs.models import Call, Hold, Job
from jobs.queries.started import WITH, Started, started
from jobs.rules.states import JOB_FINAL, JobState
from jobs.rules.why import Why, sentence

PAGE: Final = 50
MOST_COUNTED: Final = 1_001
OVER: Final = "over"  # a view without a tab
VIEWS: Final[Mapping[str, tuple[str, tuple[JobState, ...]]]] = {
    "all": ("All", ()),
    "live": ("Live", tuple(state for state in JobState if state not in JOB_FINAL)),
    "waiting": ("Waiting", (JobState.WAITING,)),
    "failed": ("Failed", (JobState.FAILED,)),
    "done": ("Completed", (JobState.COMPLETED,)),
    "stopped": ("Canceled", (JobState.CANCELED,)),
}


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a list shows. `newest` pins its top, so that rows stay where they are while jobs arrive."""

    view: str = "all"
    agent: str = ""
    words: str = ""
    function: str = ""  # `tool.function` that a job called
    state: str = ""
    starter: str = ""
    before: UUID | None = None
    newest: UUID | None = None
    most: int = PAGE


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job in a list."""

    id: UUID
    shown_id: str
    title: str
    agent: str
    state: JobState
    why: str
    failure_kind: str
    started: Started
    calls: int
    asks: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def starter(self) -> str:
        """The kind of what started it."""
        return self.started.starter

    @property
    def started_by(self) -> str:
        """The person that it counts as."""
        return self.started.person


@dataclass(frozen=True, slots=True)
class JobsPage:
    """A page of jobs. `newer` counts jobs above the pinned top, to 1,001; `next_before` is None on the last page."""

    rows: tuple[JobRow, ...]
    now: datetime
    newer: int
    next_before: str | None
    top: str | None
    agents: tuple[str, ...]


def jobs_page(tenant: UUID, wanted: JobFilter) -> JobsPage:
    """One page of the tenant's jobs, newest first."""
    with db.read(tenant) as now:
        fitting = _fitting(wanted)
        page = fitting
        if wanted.before is not None:
            page = page.filter(pk__lt=wanted.before)
        if wanted.newest is not None:
            page = page.filter(pk__lte=wanted.newest)
        found = list(page.select_related(*WITH).defer("input", "output").order_by("-pk")[: wanted.most + 1])
        newer = fitting.filter(pk__gt=wanted.newest)[:MOST_COUNTED].count() if wanted.newest is not None else 0
        asks = _asks([job.pk for job in found])
        agents = tuple(Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:200])
    rows = tuple(_row(job, asks.get(job.pk, 0)) for job in found[: wanted.most])
    return JobsPage(
        rows=rows,
        now=now,
        newer=newer,
        next_before=rows[-1].shown_id if len(found) > wanted.most else None,
        top=ids.show(ids.JOB, wanted.newest) if wanted.newest else (rows[0].shown_id if rows else None),
        agents=agents,
    )


def newest_jobs(count: int) -> list[JobRow]:
    """The newest jobs, for a page that has a read of its own open."""
    found = list(Job.objects.select_related(*WITH).defer("input", "output").order_by("-pk")[:count])
    asks = _asks([job.pk for job in found])
    return [_row(job, asks.get(job.pk, 0)) for job in found]


def _fitting(wanted: JobFilter) -> QuerySet[Job]:
    jobs = Job.objects.all()
    states = VIEWS.get(wanted.view, VIEWS["all"])[1]
    if wanted.view == OVER:
        jobs = jobs.filter(state__in=JOB_FINAL)
    elif states:
        jobs = jobs.filter(state__in=states)
    if wanted.state:
        jobs = jobs.filter(state=wanted.state)
    if wanted.starter:
        jobs = jobs.filter(starter=wanted.starter)
    if wanted.agent:
        jobs = jobs.filter(agent_name=wanted.agent)
    if wanted.function:
        tool, _, name = wanted.function.partition(".")
        rows = Function.objects.filter(tool__slug=tool, name=name)
        jobs = jobs.filter(pk__in=Call.objects.filter(function__in=rows).values("job"))
    for word in wanted.words.split()[:6]:
        jobs = jobs.filter(Q(title__icontains=word) | Q(agent_name__icontains=word))
    return jobs


def _asks(job_ids: list[UUID]) -> dict[UUID, int]:
    """Open questions by job."""
    open_holds = Hold.objects.filter(job_id__in=job_ids, closed_at__isnull=True)
    return dict(open_holds.values_list("job_id").annotate(Count("pk")))


def _row(job: Job, asks: int) -> JobRow:
    return JobRow(
        id=job.pk,
        shown_id=ids.show(ids.JOB, job.pk),
        title=job.title,
        agent=job.agent_name,
        state=JobState(job.state),
        why=why_it_ended(job),
        failure_kind=job.failure_kind,
        started=started(job),
        calls=job.calls_made,
        asks=asks,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
    )


def why_it_ended(job: Job) -> str:
    """One sentence for a job that did not complete; nothing for the others."""
    if job.state == JobState.FAILED or (job.state == JobState.CANCELLING and job.ends_as == JobState.FAILED):
        return job.detail or sentence(job.failure_kind or job.reason)
    if job.state in (JobState.CANCELED, JobState.CANCELLING):
        if job.reason == Why.CANCELLED:
            return "It was cancelled."
        why = sentence(job.reason)
        return f"{why} {job.detail}".strip() if job.reason == Why.KILL_SWITCH else why
    return ""
