"""A job's harness session as its page shows it: where its program runs, or why it does not."""

from dataclasses import dataclass
from datetime import datetime

from jobs.models import Job, Session
from jobs.rules.states import SessionState
from jobs.rules.why import sentence


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session. `starts` counts its incarnations (RULES K4); `why` may hold untrusted text.

    `errors` is the end of its program's standard error, untrusted, once that has ended.
    """

    number: int
    starts: int
    state: SessionState
    node: str
    since: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    why: str
    created_at: datetime
    continues: bool  # its program asked that the job continues as new when it has ended
    note: str  # what the program of the run before left for it
    errors: str


def session_of(job: Job, run: int) -> SessionLine | None:
    """The newest session of a job's run; None when the job has none. Demands an open read."""
    row = Session.objects.filter(job_id=job.pk, run_number=run).select_related("node").order_by("-number").first()
    if row is None:
        return None
    return SessionLine(
        number=row.number,
        starts=row.incarnation,
        state=SessionState(row.state),
        node=row.node.name if row.node else "",
        since=row.started_at,
        ended_at=row.ended_at,
        exit_code=row.exit_code,
        why=row.detail or (sentence(row.reason) if row.reason else ""),
        created_at=row.created_at,
        continues=row.continues is not None,
        note=_note_of(job, run - 1),
        errors=row.errors,
    )


def _note_of(job: Job, run: int) -> str:
    row = Session.objects.filter(job_id=job.pk, run_number=run).order_by("-number").first() if run >= 0 else None
    return str(row.continues.get("note", "")) if row is not None and row.continues else ""
