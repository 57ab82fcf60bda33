"""The only writer of states. Every move is checked against the tables, guards on `seq`, and leaves an event."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from base.prepared import Table
from jobs.models import END_STATES, Attempt, Call, Hold, Job, Node, Session, Turn
from jobs.operations import events
from jobs.queries.tables import ATTEMPTS, CALLS, HOLDS, JOBS, SESSIONS, TURNS
from jobs.rules.orders import Outcome, Progress
from jobs.rules.resume import sentence
from jobs.rules.states import (
    CALL_FINAL,
    CALL_MOVES,
    CALL_STARTS,
    HOLD_MOVES,
    JOB_FINAL,
    JOB_MOVES,
    NODE_MOVES,
    SESSION_FINAL,
    SESSION_MOVES,
    TURN_MOVES,
    CallState,
    HoldState,
    ImpossibleMove,
    JobState,
    NodeState,
    SessionState,
    TurnState,
    check,
)


class Conflict(RuntimeError):
    """A row changed between reading and moving it: a lock is missing somewhere. Never retried by hope."""


def begin_call(row: Call, state: CallState, *, reason: str, now: datetime, detail: str = "") -> None:
    """Write a new call in its first state."""
    if state not in CALL_STARTS:
        raise ImpossibleMove(f"a call does not begin as {state.value}")
    row.state, row.reason, row.detail = state, reason, detail
    row.due_at = now if state is CallState.QUEUED else None
    row.ended_at = now if state in CALL_FINAL else None
    CALLS.insert(row)


def call(
    row: Call, to: CallState, *, reason: str, now: datetime, due_at: datetime | None = None, **fields: Any
) -> None:
    """Move a call. `due_at` goes with queued and retrying only; the other fields are saved with the move."""
    old = CallState(row.state)
    check(CALL_MOVES, old, to)
    fields |= {"state": to, "reason": reason, "due_at": due_at, "seq": row.seq + 1}
    if to in CALL_FINAL:
        fields["ended_at"] = now
    _guarded(CALLS, row, fields)
    events.record(row.job_id, "call.moved", call=row.pk, frm=old, to=to, reason=reason, effect=row.effect)


def job(row: Job, to: JobState, *, reason: str, now: datetime, **fields: Any) -> None:
    """Move a job. A job that is ending or over is due no turn."""
    old = JobState(row.state)
    check(JOB_MOVES, old, to)
    fields |= {"state": to, "reason": reason, "seq": row.seq + 1}
    fields["waiting_since"] = now if to is JobState.WAITING else None
    if row.waiting_since is not None and row.deadline_at is not None:  # people may take their time (limits.minutes)
        fields["deadline_at"] = row.deadline_at + (now - row.waiting_since)
    if to not in (JobState.QUEUED, JobState.RUNNING):
        fields["turn_due_at"] = None
    if to in JOB_FINAL:
        fields["ended_at"] = now
    _guarded(JOBS, row, fields)
    events.record(row.pk, "job.moved", frm=old, to=to, reason=reason)


def begin_turn(row: Turn) -> None:
    """Write a new turn, asked."""
    TURNS.insert(row)
    about: dict[str, Any] = {"summary": True} if row.sums_up else {}
    events.record(row.job_id, "turn.asked", turn=row.number, **about)


def turn(row: Turn, to: TurnState, *, now: datetime, **fields: Any) -> None:
    """Move a turn."""
    old = TurnState(row.state)
    check(TURN_MOVES, old, to)
    fields |= {"state": to, "seq": row.seq + 1, "ended_at": None if to is TurnState.ASKED else now}
    _guarded(TURNS, row, fields)
    events.record(row.job_id, "turn.moved", turn=row.number, frm=old, to=to)


def begin_session(row: Session) -> None:
    """Write a new harness session, which a node may start."""
    SESSIONS.insert(row)
    events.record(row.job_id, "session.begun", session=row.number, to=SessionState.STARTING)


def session(
    row: Session, to: SessionState, *, reason: str, now: datetime, due_at: datetime | None = None, **fields: Any
) -> None:
    """Move a harness session. `due_at` goes with starting only; the other fields are saved with the move."""
    old = SessionState(row.state)
    check(SESSION_MOVES, old, to)
    fields |= {"state": to, "reason": reason, "due_at": due_at, "seq": row.seq + 1}
    if to in SESSION_FINAL:
        fields["ended_at"] = now
    _guarded(SESSIONS, row, fields)
    which = {"session": row.number, "incarnation": row.incarnation}
    events.record(row.job_id, "session.moved", call=None, frm=old, to=to, reason=reason, **which)


def hold(row: Hold, to: HoldState, *, now: datetime, **fields: Any) -> None:
    """Close a hold; it closes exactly once (RULES A6)."""
    check(HOLD_MOVES, HoldState(row.state), to)
    fields |= {"state": to, "closed_at": now}
    if not HOLDS.update(row.pk, fields, "closed_at IS NULL"):
        raise Conflict(f"Hold {row.pk} was closed while it was being moved to {to}")
    _mirror(row, fields)
    events.record(
        row.job_id, "hold.closed", call=row.call_id, hold=str(row.pk), to=to, answer=row.answer, by=row.answered_by_id
    )


def withdraw(holds: QuerySet[Hold], *, now: datetime) -> None:
    """Withdraw those of these holds that are open. Their job must be held alone, and their calls locked or final."""
    for row in holds.select_for_update(no_key=True).filter(closed_at__isnull=True).order_by("pk"):
        hold(row, HoldState.WITHDRAWN, now=now)


def node(row: Node, to: NodeState, *, now: datetime) -> bool:
    """Move a node; False when another already did."""
    check(NODE_MOVES, NodeState(row.state), to)
    ended = {} if to is NodeState.DRAINING else {"ended_at": now}
    return Node.objects.filter(pk=row.pk, state=row.state).update(state=to, **ended) == 1


def open_attempt(row: Attempt) -> None:
    """Write a new attempt, open. PostgreSQL refuses a second open one of the same call."""
    ATTEMPTS.insert(row)
    how = sentence(row.resumed_from, row.resumed_of, row.started_over_because)
    events.record(
        row.job_id,
        "attempt.started",
        call=row.call_id,
        attempt=str(row.pk),
        number=row.number,
        node=str(row.node_id),
        **({"how": how} if how else {}),
    )


def close_attempt(row: Attempt, outcome: Outcome, *, now: datetime) -> bool:
    """Close an attempt with how it ended; False when it was closed before."""
    wire = outcome.wire
    fields = {
        "state": END_STATES[outcome.end],
        "ended_at": now,
        "reason": outcome.reason,
        "end_known": outcome.end_known,
        "retry_after": outcome.retry_after,
        "wire": {
            "connected": wire.connected,
            "went_out": wire.went_out,
            "status": wire.status,
            "ended": wire.ended,
            "detail": wire.detail,
        },
    }
    if outcome.progress is not None:
        fields |= progress_fields(outcome.progress)
    if not ATTEMPTS.update(row.pk, fields, "ended_at IS NULL"):
        return False
    _mirror(row, fields)
    events.record(
        row.job_id,
        "attempt.ended",
        call=row.call_id,
        attempt=str(row.pk),
        number=row.number,
        end=outcome.end,
        reason=outcome.reason,
    )
    return True


def progress_fields(progress: Progress) -> dict[str, Any]:
    """The fields of an attempt that keep its progress and where another could go on (RULES P1, P5)."""
    fields: dict[str, Any] = {"progress": progress.value, "total": progress.total, "odd_token": progress.odd_token}
    if progress.resume is not None:
        point = progress.resume
        fields |= {"resume_token": point.token, "resume_progress": point.progress, "resume_total": point.total}
    return fields


def cancel_waiting_calls(job_id: UUID, *, reason: str, now: datetime, session: UUID | None = None) -> list[UUID]:
    """End at once every call of a job, or of its `session`, that no node is at; returns their ids.

    The job must be held alone.
    """
    whose = {"job_id": job_id} if session is None else {"session_id": session}
    rows = Call.objects.select_for_update(no_key=True).filter(**whose, state__in=_WAITING).order_by("pk")
    ended = []
    for row in rows:
        call(row, CallState.CANCELED, reason=reason, now=now)
        ended.append(row.pk)
    return ended


_WAITING = [CallState.HELD, CallState.QUEUED, CallState.RETRYING, CallState.UNKNOWN]


def _guarded(table: "Table[Any]", row: Any, fields: dict[str, Any]) -> None:
    if not table.update(row.pk, fields, "seq = %s", [row.seq]):
        raise Conflict(f"{type(row).__name__} {row.pk} changed while it was being moved to {fields['state']}")
    _mirror(row, fields)


def _mirror(row: Any, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(row, name, value)
