"""Every row lock of the runtime, in one place and to be taken in this order (MACHINES 2):

tenant gate → job → call → attempt or hold → the job's event counter → the tenant's audit head.
"""

from uuid import UUID

from django.db import connection

from jobs.models import Attempt, Call, Hold, Job, Turn
from jobs.rules.states import CallState, JobState


class NoGate(RuntimeError):
    """A tenant without the row that keeps its claims and its switches apart: nothing of it may start."""


def gate_shared() -> None:
    """Hold the gate of the open write's tenant against changes of switches, policy and approvals."""
    _gate("SELECT version FROM tenants_gate FOR SHARE")


def gate_alone() -> None:
    """Take the gate alone: no claim of the tenant is under way, and none passes until this commits."""
    _gate("SELECT version FROM tenants_gate FOR UPDATE")


def _gate(lock: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(lock)
        if cursor.fetchone() is None:  # a lock of no row would let everything pass
            raise NoGate("this tenant has no gate: create its row in tenants_gate along with the tenant")


def job_shared(job_id: UUID) -> Job | None:
    """The job, held against cancel and settling while one of its calls is claimed."""
    return next(iter(Job.objects.raw("SELECT * FROM jobs_job WHERE id = %s FOR SHARE", [job_id])), None)


def job(job_id: UUID) -> Job | None:
    """The job, held alone."""
    return Job.objects.select_for_update(no_key=True).filter(pk=job_id).first()


def job_for_turn(job_id: UUID) -> Job | None:
    """The job when a turn of it is due and nobody else is at it."""
    found = Job.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=job_id, turn_due_at__isnull=False)
    return found.filter(state__in=[JobState.QUEUED, JobState.RUNNING]).first()


def call(call_id: UUID) -> Call | None:
    """The call, held alone."""
    return Call.objects.select_for_update(no_key=True).filter(pk=call_id).first()


def call_for_claim(call_id: UUID) -> Call | None:
    """The call when it may be claimed and nobody else is at it."""
    found = Call.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=call_id)
    return found.filter(state__in=[CallState.QUEUED, CallState.RETRYING]).first()


def attempt(attempt_id: UUID) -> Attempt | None:
    """The attempt, held alone."""
    return Attempt.objects.select_for_update(no_key=True).filter(pk=attempt_id).first()


def hold(hold_id: UUID) -> Hold | None:
    """The hold, held alone."""
    return Hold.objects.select_for_update(no_key=True).filter(pk=hold_id).first()


def turn(turn_id: UUID) -> Turn | None:
    """The turn, held alone. Turns are locked after their job, where calls are."""
    return Turn.objects.select_for_update(no_key=True).filter(pk=turn_id).first()


def counter(job_id: UUID, events: int) -> int:
    """Take the job's event counter for `events` more numbers; returns the last. Only the audit head is locked later."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_jobcounter SET events = events + %s WHERE job_id = %s RETURNING events",
            [events, job_id],
        )
        taken: int = cursor.fetchone()[0]
    return taken
