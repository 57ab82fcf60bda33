"""Routines: agents started by the clock. Each due time is run, skipped or refused exactly once, and noted.

The sweep of whatever node is up finds them; the row's lock, its `due_at` and the note of the due time keep that true
with several nodes, and after days without one. A start passes the same gate as a person's (RULES L7).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db, ids
from base.zones import is_zone
from jobs.models import Job, Routine, RoutineRun, Starter
from jobs.operations import intake, masking
from jobs.queries import locks
from jobs.rules import schedule
from jobs.rules.permits import why_not_start
from jobs.rules.schedule import BadSchedule, Schedule
from jobs.rules.starters import LONGEST_NAME, MOST, Missed, Overlap, Ran, Standing
from jobs.rules.states import JOB_FINAL
from tenants.models import Role, User
from tenants.operations import audit
from tenants.queries.seats import may_here
from tenants.rules.who import SYSTEM, Actor

KEPT: Final = timedelta(days=30)  # that a due time is remembered which started nothing


class BadRoutine(intake.Troubled):
    """A routine that cannot be so."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a routine shall be."""

    name: str
    agent: str
    cron: str
    zone: str
    missed: str = Missed.ONCE
    overlap: str = Overlap.SKIP
    title: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


def make(*, tenant: UUID, wanted: Wanted, person: int, actor: Actor) -> UUID:
    """Add a routine whose jobs count as this person's. Raises `BadRoutine`."""
    with db.write(tenant) as now:
        db.alone("names a routine")
        if Routine.objects.exclude(standing=Standing.REMOVED).count() >= MOST:
            raise BadRoutine(f"There are {MOST} routines already: remove one first.")
        row = Routine(tenant_id=tenant, standing=Standing.ON)
        _fill(row, wanted, person, now)
        row.save(force_insert=True)
        audit.record(actor, "routine.made", f"routine {row.name}", after=_shown(row))
    return row.pk


def change(*, tenant: UUID, routine: UUID, wanted: Wanted, person: int, actor: Actor) -> None:
    """Change a routine; its jobs count as this person's from now on, since they are as this person wants them.

    One that the studio had stopped goes on with it. Raises `BadRoutine`.
    """
    with db.write(tenant) as now:
        row = _locked(routine)
        before = _shown(row)
        if row.standing == Standing.STOPPED:
            row.standing, row.because = Standing.ON, ""
        _fill(row, wanted, person, now)
        row.save()
        audit.record(actor, "routine.changed", f"routine {row.name}", before=before, after=_shown(row))


def turn(*, tenant: UUID, routine: UUID, on: bool, actor: Actor) -> None:
    """Pause a routine, or let it go on with the next due time from now: what came meanwhile was not missed.

    Raises `BadRoutine`, also where its person may start nothing any more: then whoever may saves it anew.
    """
    with db.write(tenant) as now:
        row = _locked(routine)
        if (row.standing == Standing.ON) == on:
            return
        if on and (why_not := _why_nobody(row)):
            raise BadRoutine(why_not)
        row.standing, row.because = Standing.ON if on else Standing.PAUSED, ""
        row.due_at = _schedule(row).next(now) if on else None
        if on and row.due_at is None:
            raise BadRoutine("Its schedule has no due time any more: change it.")
        row.save(update_fields=["standing", "because", "due_at"])
        audit.record(actor, "routine.resumed" if on else "routine.paused", f"routine {row.name}")


def remove(*, tenant: UUID, routine: UUID, actor: Actor) -> str:
    """Remove a routine; its name. The jobs that it has started stay, and run on. Raises `BadRoutine`."""
    with db.write(tenant):
        row = _locked(routine)
        before = _shown(row)
        row.standing, row.because, row.due_at = Standing.REMOVED, "", None
        row.save(update_fields=["standing", "because", "due_at"])
        audit.record(actor, "routine.removed", f"routine {row.name}", before=before)
        return row.name


def run_now(*, tenant: UUID, routine: UUID, person: int, once: str, actor: Actor) -> UUID:
    """Start its job now, as this person's own: they are there to answer for it. Its due times stay as they are.

    `once` is what makes a form that is sent twice start one job. Raises `BadRoutine`, `CannotStart`.
    """
    with db.write(tenant) as now:
        locks.gate_shared()
        row = _locked(routine)
        key = f"{row.pk.hex}:{once[:24]}"
        before = Job.objects.filter(starter=Starter.PERSON, started_by_id=person, start_key=key).first()
        if once and before is not None:
            return before.pk
        job = intake.start_within(
            agent=row.agent_name,
            given=row.input,
            starter=Starter.PERSON,
            person=person,
            title=row.title or row.name,
            start_key=key if once else "",
            routine=row.pk,
        )
        _note(row, now, Ran.BY_HAND, now, job=job)
        audit.record(actor, "routine.run", f"routine {row.name}", after={"job": ids.show(ids.JOB, job)})
        return job


def fire(*, tenant: UUID, routine: UUID) -> int:
    """Do what a routine whose due time has come is to do now; how many due times were dealt with."""
    with db.write(tenant) as now:
        locks.gate_shared()  # before the routine, since its start takes it too (MACHINES 2)
        row = Routine.objects.select_for_update(no_key=True).filter(pk=routine).first()
        if row is None or row.due_at is None or row.due_at > now:
            return 0
        if why := _why_nobody(row):
            _stop(row, why)
            return 1
        plan = schedule.due(_schedule(row), row.due_at, Missed(row.missed), now=now)
        skipped = plan.skipped
        if plan.missed is not None and not plan.runs:
            _note(row, plan.missed, Ran.MISSED, now, skipped=skipped - 1, detail=_missed_words(plan.more))
        for at in plan.runs:
            _run(row, at, now, skipped)
            skipped = 0
        if plan.next is None:
            _stop(row, "Its schedule has no due time any more.")
        else:
            row.due_at = plan.next
            row.save(update_fields=["due_at"])
        RoutineRun.objects.filter(routine=row, job__isnull=True, at__lt=now - KEPT).delete()
        return max(1, len(plan.runs))


def _run(row: Routine, at: datetime, now: datetime, skipped: int) -> None:
    if RoutineRun.objects.filter(routine=row, due_at=at).exists():
        return  # the clock was set back: it was dealt with
    live = Job.objects.filter(routine=row).exclude(state__in=JOB_FINAL)
    if row.overlap == Overlap.SKIP and live.exists():
        _note(row, at, Ran.OVERLAPPED, now, skipped=skipped)
        return
    try:
        job = intake.start_within(
            agent=row.agent_name,
            given=row.input,
            starter=Starter.ROUTINE,
            person=row.person_id,
            title=row.title or row.name,
            start_key=f"{row.pk.hex}:{at:%Y%m%d%H%M}",
            routine=row.pk,
        )
    except intake.CannotStart as error:
        _note(row, at, Ran.REFUSED, now, skipped=skipped, detail=str(error))
    else:
        _note(row, at, Ran.STARTED, now, skipped=skipped, job=job)


def _note(
    row: Routine,
    at: datetime,
    came: Ran,
    now: datetime,
    *,
    skipped: int = 0,
    detail: str = "",
    job: UUID | None = None,
) -> None:
    RoutineRun.objects.create(
        tenant_id=row.tenant_id,
        routine=row,
        due_at=at,
        came=came,
        job_id=job,
        skipped=skipped,
        detail=masking.text(detail),
        at=now,
    )


def _missed_words(more: bool) -> str:
    return "There were more before, too many to count." if more else ""


def _stop(row: Routine, why: str) -> None:
    row.standing, row.because, row.due_at = Standing.STOPPED, why, None
    row.save(update_fields=["standing", "because", "due_at"])
    audit.record(SYSTEM, "routine.stopped", f"routine {row.name}", note=why)


def _why_nobody(row: Routine) -> str:
    """Why its person may not start jobs any more; nothing when they may (RULES A10)."""
    if may_here(row.person_id, Role.OPERATOR):
        return ""
    name = User.objects.values_list("username", flat=True).get(pk=row.person_id)
    return f"Its jobs count as those of {name}, who has left or may not start jobs any more: save it as your own."


def _locked(routine: UUID) -> Routine:
    found = Routine.objects.select_for_update(no_key=True).filter(pk=routine).first()
    if found is None or found.standing == Standing.REMOVED:
        raise BadRoutine("There is no such routine any more.")
    return found


def _schedule(row: Routine) -> Schedule:
    return Schedule(row.cron, row.zone)


def _fill(row: Routine, wanted: Wanted, person: int, now: datetime) -> None:
    """Set what was asked for. Raises `BadRoutine`."""
    db.alone("names a routine")
    name = " ".join(wanted.name.split())
    taken = Routine.objects.filter(name=name).exclude(pk=row.pk).exclude(standing=Standing.REMOVED)
    if why_not := why_not_start(operator=may_here(person, Role.OPERATOR)):
        raise BadRoutine(why_not)
    if not 0 < len(name) <= LONGEST_NAME:
        raise _bad("name", f"Give it a name of up to {LONGEST_NAME} characters.")
    if taken.exists():
        raise _bad("name", f"There is a routine named {name} already.")
    if wanted.missed not in set(Missed):
        raise _bad("missed", "Choose what it does about due times that were missed.")
    if wanted.overlap not in set(Overlap):
        raise _bad("overlap", "Choose what it does while its last job still runs.")
    if wanted.missed == Missed.ALL and wanted.overlap == Overlap.SKIP:
        raise _bad("overlap", "To run each due time that was missed, let its jobs run beside each other.")
    try:
        found = schedule.read(wanted.cron, wanted.zone, now=now)
    except BadSchedule as error:
        said = f"{str(error)[:1].upper()}{str(error)[1:]}."
        raise _bad("cron" if is_zone(wanted.zone) else "zone", said) from error
    try:
        intake.check(wanted.agent, wanted.given)
    except intake.CannotStart as error:
        raise BadRoutine(str(error), *error.troubles) from error
    scheduled = row.cron, row.zone
    row.name, row.agent_name, row.title = masking.text(name), wanted.agent, masking.text(wanted.title.strip()[:200])
    row.cron, row.zone, row.missed, row.overlap = found.cron, found.zone, wanted.missed, wanted.overlap
    row.input = masking.value(dict(wanted.given))
    row.person_id, row.changed_at = person, now
    come = row.due_at if row.due_at is not None and row.due_at <= now and scheduled == (row.cron, row.zone) else None
    row.due_at = (come or found.next(now)) if row.standing == Standing.ON else None  # what is due is dealt with still


def _bad(field: str, what: str) -> BadRoutine:
    return BadRoutine(what, (field, what))


def _shown(row: Routine) -> dict[str, Any]:
    names = ("name", "agent_name", "title", "input", "cron", "zone", "missed", "overlap")
    counts_as = User.objects.values_list("username", flat=True).get(pk=row.person_id)
    return {name: getattr(row, name) for name in names} | {"counts_as": counts_as}
