"""A harness session beside its job: begun with it, stopped with it, and what a person answers when it was lost (K6).

Its job must be held alone; sessions are locked where calls are.
"""

from datetime import datetime
from typing import Any

from base import db
from jobs import wake
from jobs.models import Job, Session
from jobs.operations import events, moves
from jobs.queries import locks
from jobs.rules.states import SESSION_FINAL, SessionState
from jobs.rules.why import Why
from tenants.operations import tokens


def begin(job: Job, *, now: datetime) -> None:
    """Have the job's program started, as the first session of its run."""
    row = Session(tenant_id=job.tenant_id, job=job, run_number=job.run_number, due_at=now, created_at=now)
    moves.begin_session(row)
    _wake(row)


def start_again(row: Session, *, reason: Why, now: datetime, due_at: datetime) -> None:
    """Have the program started once more, as the next incarnation of the same session (RULES K4).

    The caller has seen that every open attempt of the one before has ended and its token is dead (RULES K6).
    """
    fields: dict[str, Any] = {"incarnation": row.incarnation + 1, "node_id": None, "token_id": None, "started_at": None}
    moves.session(row, SessionState.STARTING, reason=reason, now=now, due_at=due_at, **fields)
    _wake(row)


def finish(row: Session, *, reason: Why, now: datetime, **fields: Any) -> None:
    """End the session with its token; its job ends with it once nothing of it is open."""
    end_token(row)
    moves.session(row, SessionState.ENDED, reason=reason, now=now, **fields)
    events.judge_later(row.job_id)


def end_with_job(job: Job, *, reason: str, now: datetime) -> None:
    """The job is being ended: its session's token counts no more, and one without a program is over at once.

    A program that runs is stopped by its node, whose pulse finds that the job is ending. One that was lost is over
    when its attempts are (`harness.settle`).
    """
    row = open_one(job)
    if row is None:
        return
    end_token(row)
    if row.state in (SessionState.STARTING, SessionState.ASKING):
        moves.session(row, SessionState.STOPPED, reason=reason, now=now)


def open_one(job: Job) -> Session | None:
    """The job's session that is not over, held alone."""
    found = Session.objects.filter(job_id=job.pk).exclude(state__in=SESSION_FINAL).values_list("pk", flat=True).first()
    row = locks.session(found) if found is not None else None
    return None if row is None or row.state in SESSION_FINAL else row


def end_token(row: Session) -> None:
    """Let the session's token count no more, from the commit on."""
    if row.token_id is not None:
        tokens.end_of_session(row.token_id)


def _wake(row: Session) -> None:
    tenant, session_id = row.tenant_id, row.pk
    db.after_commit(lambda: wake.session(tenant=tenant, session_id=session_id))
