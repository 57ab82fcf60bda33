"""Every row lock of the runtime, in one place and to be taken in this order (MACHINES 2):

tenant gate → job → call → attempt or hold → the job's event counter → the tenant's audit head.
"""

from typing import Final
from uuid import UUID

from base import prepared
from jobs.models import Attempt, Call, Hold, Job, Session, Turn
from jobs.queries.tables import ATTEMPTS, CALLS, HOLDS, JOBS, SESSIONS, TURNS
from jobs.rules.states import CallState, JobState, NodeState

_ALONE: Final = "FOR NO KEY UPDATE"
_CLAIMABLE: Final = f"AND state IN ('{CallState.QUEUED}', '{CallState.RETRYING}')"
_BY_LIVING: Final = f"AND EXISTS (SELECT FROM jobs_node n WHERE n.id = %s AND n.state = '{NodeState.ALIVE}')"
_TURN_DUE: Final = f"AND turn_due_at IS NOT NULL AND state IN ('{JobState.QUEUED}', '{JobState.RUNNING}')"


class NoGate(RuntimeError):
    """A tenant without the row that keeps its claims and its switches apart: nothing of it may start."""


def gate_shared() -> None:
    """Hold the gate of the open write's tenant against changes of switches, policy and approvals."""
    _gate("SELECT version FROM tenants_gate FOR SHARE")


def gate_alone() -> None:
    """Take the gate alone: no claim of the tenant is under way, and none passes until this commits."""
    _gate("SELECT version FROM tenants_gate FOR UPDATE")


def _gate(lock: str) -> None:
    if prepared.fetch_one(lock) is None:  # a lock of no row would let everything pass
        raise NoGate("this tenant has no gate: create its row in tenants_gate along with the tenant")


def job_shared(job_id: UUID) -> Job | None:
    """The job, held against cancel and settling while one of its calls is claimed."""
    return JOBS.get(job_id, "FOR SHARE")


def job(job_id: UUID) -> Job | None:
    """The job, held alone."""
    return JOBS.get(job_id, _ALONE)


def job_for_turn(job_id: UUID) -> Job | None:
    """The job when a turn of it is due and nobody else is at it."""
    return JOBS.get(job_id, f"{_TURN_DUE} {_ALONE} SKIP LOCKED")


def job_if_free(job_id: UUID) -> Job | None:
    """The job, held alone, when nobody else is at it."""
    return JOBS.get(job_id, f"{_ALONE} SKIP LOCKED")


def session(session_id: UUID) -> Session | None:
    """The harness session, held alone. Sessions are locked after their job, where calls are."""
    return SESSIONS.get(session_id, _ALONE)


def call(call_id: UUID) -> Call | None:
    """The call, held alone."""
    return CALLS.get(call_id, _ALONE)


def call_for_claim(call_id: UUID) -> Call | None:
    """The call when it may be claimed and nobody else is at it."""
    return CALLS.get(call_id, f"{_CLAIMABLE} {_ALONE} SKIP LOCKED")


def call_for_node(call_id: UUID, node_id: UUID) -> Call | None:
    """The same, when the node may take work."""
    return CALLS.get(call_id, f"{_CLAIMABLE} {_BY_LIVING} {_ALONE} SKIP LOCKED", [node_id])


def attempt(attempt_id: UUID) -> Attempt | None:
    """The attempt, held alone."""
    return ATTEMPTS.get(attempt_id, _ALONE)


def hold(hold_id: UUID) -> Hold | None:
    """The hold, held alone."""
    return HOLDS.get(hold_id, _ALONE)


def turn(turn_id: UUID) -> Turn | None:
    """The turn, held alone. Turns are locked after their job, where calls are."""
    return TURNS.get(turn_id, _ALONE)


def counter(job_id: UUID, events: int) -> int:
    """Take the job's event counter for `events` more numbers; returns the last. Only the audit head is locked later."""
    sql = "UPDATE jobs_jobcounter SET events = events + %s WHERE job_id = %s RETURNING events"
    taken = prepared.fetch_one(sql, [events, job_id])
    assert taken is not None  # noqa: S101 - the job's own counter was written with it
    last: int = taken[0]
    return last
