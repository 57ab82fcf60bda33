"""Routines as their pages show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from base import db, ids
from jobs.models import Routine, RoutineRun
from jobs.rules import schedule
from jobs.rules.schedule import Schedule
from jobs.rules.starters import Standing
from tenants.models import Role
from tenants.queries.seats import able_here

RUNS: Final = 30  # on a page
COMING: Final = 5  # due times shown


@dataclass(frozen=True, slots=True)
class RunRow:
    """What became of one due time. `shown_at` is that time as the clocks of the routine's zone show it."""

    came: str
    due_at: datetime
    shown_at: str
    skipped: int
    detail: str
    job: str
    job_state: str
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RoutineRow:
    """One routine. `trouble` says what will keep it from running, when that is known already."""

    shown_id: str
    name: str
    title: str
    agent: str
    given: Mapping[str, Any]
    cron: str
    zone: str
    in_words: str
    missed: str
    overlap: str
    standing: str
    because: str
    trouble: str
    person: str
    changed_at: datetime
    due_at: datetime | None
    shown_due: str
    last: RunRow | None


@dataclass(frozen=True, slots=True)
class RoutinePage:
    """One routine with its next due times and its last ones; `next_before` is None on the last page of those."""

    row: RoutineRow
    coming: tuple[str, ...]
    runs: tuple[RunRow, ...]
    next_before: str | None
    now: datetime


def routine_list(tenant: UUID) -> tuple[Sequence[RoutineRow], datetime]:
    """All routines of a tenant by name, each with its last due time; and the time."""
    with db.read(tenant) as now:
        last = RoutineRun.objects.filter(routine=OuterRef("pk")).order_by("-due_at")
        rows = list(_standing().annotate(last_run=Subquery(last.values("pk")[:1])).order_by("name"))
        runs = RoutineRun.objects.filter(pk__in=[row.last_run for row in rows if row.last_run])
        by_routine = {run.routine_id: run for run in runs.select_related("job")}
        able = able_here(Role.OPERATOR)
        return [_row(row, by_routine.get(row.pk), able) for row in rows], now


def routine_page(tenant: UUID, routine: UUID, *, before: UUID | None = None) -> RoutinePage | None:
    """One of them, also one that was removed; None when there is none."""
    with db.read(tenant) as now:
        row = Routine.objects.select_related("person").filter(pk=routine).first()
        if row is None:
            return None
        runs = RoutineRun.objects.filter(routine=row).select_related("job").order_by("-pk")
        found = list((runs.filter(pk__lt=before) if before else runs)[: RUNS + 1])
        plan = Schedule(row.cron, row.zone)
        on = row.standing == Standing.ON
        return RoutinePage(
            row=_row(row, found[0] if found else None, able_here(Role.OPERATOR)),
            coming=tuple(_at(plan, at) for at in plan.coming(now, COMING)) if on else (),
            runs=tuple(_run(run, plan) for run in found[:RUNS]),
            next_before=ids.show(ids.RUN, found[RUNS - 1].pk) if len(found) > RUNS else None,
            now=now,
        )


def last_zone(tenant: UUID) -> str:
    """The zone of the routine that was saved last: the next one is most often there as well."""
    with db.read(tenant):
        return Routine.objects.order_by("-changed_at").values_list("zone", flat=True).first() or "UTC"


def said_of(tenant: UUID, cron: str, zone: str) -> tuple[str, tuple[str, ...]]:
    """A schedule in words, and its next due times. Raises `BadSchedule`."""
    with db.read(tenant) as now:
        plan = schedule.read(cron, zone, now=now)
    return plan.in_words, tuple(_at(plan, at) for at in plan.coming(now, 3))


def _standing() -> QuerySet[Routine]:
    return Routine.objects.exclude(standing=Standing.REMOVED).select_related("person")


def _row(row: Routine, last: RoutineRun | None, able: set[int]) -> RoutineRow:
    plan, name = Schedule(row.cron, row.zone), row.person.get_username()
    lost = row.standing == Standing.ON and row.person_id not in able
    return RoutineRow(
        shown_id=ids.show(ids.ROUTINE, row.pk),
        name=row.name,
        title=row.title,
        agent=row.agent_name,
        given=row.input,
        cron=row.cron,
        zone=row.zone,
        in_words=plan.in_words,
        missed=row.missed,
        overlap=row.overlap,
        standing=row.standing,
        because=row.because,
        trouble=f"{name} may not start jobs any more: it stops when it is due, unless it is saved anew."
        if lost
        else "",
        person=name,
        changed_at=row.changed_at,
        due_at=row.due_at,
        shown_due=_at(plan, row.due_at) if row.due_at else "",
        last=_run(last, plan) if last else None,
    )


def _run(run: RoutineRun, plan: Schedule) -> RunRow:
    job = run.job
    return RunRow(
        came=run.came,
        due_at=run.due_at,
        shown_at=_at(plan, run.due_at),
        skipped=run.skipped,
        detail=run.detail,
        job=ids.show(ids.JOB, job.pk) if job else "",
        job_state=job.state if job else "",
        started_at=job.started_at if job else None,
        ended_at=job.ended_at if job else None,
    )


def _at(plan: Schedule, at: datetime) -> str:
    local = plan.local(at)
    name = local.tzname() or ""
    return f"{local:%a %d %b %Y, %H:%M} {name if name[:1].isalpha() else f'UTC{local:%:z}'}"
