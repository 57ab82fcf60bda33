"""Ending a job from outside: by a person, a kill switch, a limit or an unknown outcome (RULES L1–L3)."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from base import db, ids
from jobs.models import Attempt, Call, Driver, Hold, Job
from jobs.operations import events, moves, sessions
from jobs.queries import locks
from jobs.queries.started import started
from jobs.rules.reasons import Reason
from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.rules.why import Why
from tenants.operations import audit
from tenants.rules.who import Actor

STOPS: dict[Why, Reason] = {
    Why.KILL_SWITCH: Reason.STOPPED_SWITCH,
    Why.JOB_LIMIT: Reason.STOPPED_LIMIT,
    Why.SESSION_LOST: Reason.STOPPED_SESSION,
}


class AlreadyOver(ValueError):
    """The job was over before; the message says as what."""


def cancel_job(*, tenant: UUID, job_id: UUID, by: Actor) -> JobState:
    """Cancel a job: it shows `cancelling` until every call has really stopped (RULES L2). Returns its state after.

    Raises `AlreadyOver`, or `Job.DoesNotExist`.
    """
    with db.write(tenant) as now:
        job = locks.job(job_id)
        if job is None:
            raise Job.DoesNotExist
        if job.state in JOB_FINAL:
            raise AlreadyOver(f"this job is {job.state} already")
        before = job.state
        end(job, ends_as=JobState.CANCELED, reason=Why.CANCELLED, person=by.user_id, now=now)
        audit.record(
            by,
            "job.cancel",
            ids.show(ids.JOB, job_id),
            before={"state": before, "started_by": started(job).in_words},
            after={"state": job.state},
        )
    with db.read(tenant):
        return JobState(Job.objects.values_list("state", flat=True).get(pk=job_id))


def end(
    job: Job,
    *,
    ends_as: JobState,
    reason: Why,
    now: datetime,
    person: int | None = None,
    failure_kind: str = "",
    detail: str = "",
) -> None:
    """Begin to end a job. The caller holds it alone; no call of it starts once this has committed.

    A second request does not change how the job ends, but the first person who asks for its end is noted.
    """
    if job.state == JobState.CANCELLING:
        _note_who(job, person)
        return
    moves.job(
        job,
        JobState.CANCELLING,
        reason=reason,
        now=now,
        ends_as=ends_as,
        failure_kind=failure_kind,
        detail=detail,
        cancel_requested_at=now,
        cancel_requested_by_id=person,
    )
    stop_running(Call.objects.filter(job_id=job.pk), why=reason, now=now)
    moves.cancel_waiting_calls(job.pk, reason=reason, now=now)
    moves.withdraw(Hold.objects.filter(job_id=job.pk), now=now)
    if job.driver == Driver.HARNESS:
        sessions.end_with_job(job, reason=reason, now=now)
    events.judge_later(job.pk)


def fail_for_agent(job: Job, detail: str, *, now: datetime) -> None:
    """Begin to end a job whose agent cannot be used, FAILED. As for `end`, the caller holds it alone."""
    end(
        job,
        ends_as=JobState.FAILED,
        reason=Why.AGENT_ERROR,
        failure_kind=Why.AGENT_ERROR,
        detail=detail,
        now=now,
    )


def _note_who(job: Job, person: int | None) -> None:
    if person is not None and job.cancel_requested_by_id is None:
        job.cancel_requested_by_id = person
        job.save(update_fields=["cancel_requested_by"])
        events.record(job.pk, "job.cancel_asked", by=person)


def stop_running(calls: QuerySet[Call], *, why: Why, now: datetime) -> None:
    """Make these calls *cancelling*; the pulse of each node finds the stop request within a second."""
    reason = STOPS.get(why, Reason.STOPPED_CANCEL)
    for call in calls.select_for_update(no_key=True).filter(state=CallState.RUNNING).order_by("pk"):
        moves.call(call, CallState.CANCELLING, reason=why, now=now)
        Attempt.objects.filter(call_id=call.pk, ended_at__isnull=True).update(stop_requested_at=now, stop_reason=reason)
