"""What of a job is not over, for the operations that every call goes through."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from base import prepared
from jobs.models import Driver, Job
from jobs.queries import paused
from jobs.rules.limits import KEY_LIFE
from jobs.rules.states import ASKING, MOVING, SESSION_FINAL, CallState, TurnState

_LIVE: Final = ", ".join(f"'{state}'" for state in sorted(MOVING | ASKING))
_OPEN: Final = f"""
SELECT ARRAY(SELECT DISTINCT c.state FROM jobs_call c WHERE c.job_id = %s AND c.state IN ({_LIVE})),
    EXISTS (SELECT FROM jobs_turn t WHERE t.job_id = %s AND t.state = '{TurnState.ASKED}')
"""  # noqa: S608 - only names of ours
_CLAIMABLE: Final = f"'{CallState.QUEUED}', '{CallState.RETRYING}'"
_DUE: Final = f"""
SELECT c.job_id, c.function_id FROM jobs_call c JOIN jobs_job j ON j.id = c.job_id
WHERE c.id = %s AND c.due_at <= %s AND c.function_id IS NOT NULL AND c.state IN ({_CLAIMABLE}) AND {paused.NOT_CALL}
"""  # noqa: S608 - only words of ours
_OVER: Final = ", ".join(f"'{state}'" for state in sorted(SESSION_FINAL))
_SESSION: Final = f"SELECT 1 FROM jobs_session WHERE job_id = %s AND state NOT IN ({_OVER})"  # noqa: S608 - only words of ours
_OLD: Final = "SELECT 1 FROM jobs_attempt WHERE call_id = %s AND number = 1 AND started_at < %s"
_AGAIN: Final = "SELECT 1 FROM jobs_hold WHERE call_id = %s AND answer = 'again' LIMIT 1"


def of(job_id: UUID) -> tuple[frozenset[CallState], bool]:
    """(the states that its calls which are not over are in, whether the model is being asked)."""
    found = prepared.fetch_one(_OPEN, [job_id, job_id])
    assert found is not None  # noqa: S101 - a SELECT without FROM has a row
    states, asked = found
    return frozenset(map(CallState, states)), asked


def has_session(job: Job) -> bool:
    """Whether a harness session of the job is open, so that its program may still run."""
    return job.driver == Driver.HARNESS and prepared.fetch_one(_SESSION, [job.pk]) is not None


@dataclass(frozen=True, slots=True)
class Due:
    """A due call of a function that is there."""

    job_id: UUID
    function_id: UUID


def due_call(call_id: UUID, now: datetime) -> Due | None:
    """Whose call this is and of what, when a node may claim it now: it is due and not paused."""
    found = prepared.fetch_one(_DUE, [call_id, now])
    return Due(*found) if found else None


def job_of_call(call_id: UUID) -> UUID | None:
    """The job that a call belongs to, for ever; None when this tenant has no such call."""
    found = prepared.fetch_one("SELECT job_id FROM jobs_call WHERE id = %s", [call_id])
    return found[0] if found else None


def job_and_call_of(attempt_id: UUID) -> tuple[UUID, UUID] | None:
    """The job and the call that an attempt belongs to, for ever; None when this tenant has no such attempt."""
    found = prepared.fetch_one("SELECT job_id, call_id FROM jobs_attempt WHERE id = %s", [attempt_id])
    return (found[0], found[1]) if found else None


def key_is_old(call_id: UUID, now: datetime) -> bool:
    """Whether a call was first made longer ago than a service surely knows its key (RULES U7)."""
    return prepared.fetch_one(_OLD, [call_id, now - KEY_LIFE]) is not None


def was_run_again(call_id: UUID) -> bool:
    """Whether a person had a call made once more that may have acted before (RULES U6)."""
    return prepared.fetch_one(_AGAIN, [call_id]) is not None
