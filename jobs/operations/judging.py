"""Is a job's turn complete, does it wait for a person, is it over? Judged once its counter is locked."""

from datetime import datetime
from uuid import UUID

from base import db
from jobs import wake
from jobs.models import Call, Driver, Job, Session
from jobs.operations import moves, runs, sessions
from jobs.queries import locks, open_work
from jobs.queries.tables import JOBS
from jobs.rules.limits import CLIENT_IDLE
from jobs.rules.states import JOB_FINAL, MOVING, CallState, JobState, SessionState
from jobs.rules.why import Why, sentence


def judge(job_id: UUID) -> None:
    """Move a job on when the last thing it waited for has ended. The caller holds the job and its counter."""
    job = locks.job(job_id)
    if job is None or job.state in JOB_FINAL or job.state == JobState.QUEUED:
        return
    now = db.must_write()
    live, asked = open_work.of(job_id)
    moving = asked or not MOVING.isdisjoint(live)
    if job.state == JobState.CANCELLING:
        if not live and not asked and not open_work.has_session(job):
            moves.job(job, JobState(job.ends_as), reason=job.reason, now=now)
    elif moving:
        if job.state == JobState.WAITING:
            moves.job(job, JobState.RUNNING, reason="", now=now)
    elif live:
        if job.state == JobState.RUNNING:
            moves.job(job, JobState.WAITING, reason="", now=now)
    elif job.one_call:
        _end_with_its_call(job, now)
    elif job.driver == Driver.OUTSIDE:
        _wait_for_its_client(job, now)
    elif job.driver == Driver.HARNESS:
        _follow_its_session(job, now)
    elif job.turn_due_at is None:
        _ask_the_model(job, now)


def _end_with_its_call(job: Job, now: datetime) -> None:
    """A job that was made for one call ends as that does; no model reads of it (RULES A8)."""
    call = Call.objects.filter(job_id=job.pk).latest("activity")
    if job.state == JobState.WAITING:
        moves.job(job, JobState.RUNNING, reason="", now=now)
    if call.state in (CallState.SUCCEEDED, CallState.HAPPENED):
        moves.job(job, JobState.COMPLETED, reason=Why.DONE, now=now, output=call.result_text)
        return
    kind = "refused" if call.state == CallState.REFUSED else "call_failed"
    detail = f"{call.model_name}: {call.detail or sentence(call.reason)}"
    moves.job(job, JobState.FAILED, reason=Why.CALL_ENDED, now=now, failure_kind=kind, detail=detail)


def _wait_for_its_client(job: Job, now: datetime) -> None:
    """Nothing of an outside client's job is open: its next call comes, or it ends after a while (RULES G7)."""
    if job.state == JobState.WAITING:
        moves.job(job, JobState.RUNNING, reason="", now=now)
    job.idle_at = now + CLIENT_IDLE
    JOBS.update(job.pk, {"idle_at": job.idle_at})


def _follow_its_session(job: Job, now: datetime) -> None:
    """No call of a harness job is open: it ends with its program, or waits for a person where that was lost (K6).

    Where the program asked for it, the job continues as new instead, with the first session of its next run (G3).
    """
    session = Session.objects.filter(job_id=job.pk).latest("run_number", "number")
    if session.state == SessionState.ASKING:
        if job.state == JobState.RUNNING:
            moves.job(job, JobState.WAITING, reason="", now=now)
        return
    if job.state == JobState.WAITING:
        moves.job(job, JobState.RUNNING, reason="", now=now)
    if session.state == SessionState.ENDED and session.continues is not None and session.reason == Why.DONE:
        runs.begin_next(job, session.continues.get("input", {}))
        sessions.begin(job, now=now)
    elif session.state == SessionState.ENDED:
        moves.job(job, JobState.COMPLETED, reason=session.reason, now=now, output=session.output)


def _ask_the_model(job: Job, now: datetime) -> None:
    if job.state == JobState.WAITING:
        moves.job(job, JobState.RUNNING, reason="", now=now)
    job.turn_due_at = now
    JOBS.update(job.pk, {"turn_due_at": now})
    tenant, job_id = job.tenant_id, job.pk
    db.after_commit(lambda: wake.turn(tenant=tenant, job_id=job_id))
