"""What outside clients wait for: where their calls stand, and what they came to (RULES G5)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from base import db, prepared
from jobs.queries import history
from jobs.queries.tables import BODIES, CALLS
from jobs.rules.states import CALL_FINAL, JOB_FINAL, CallState

_STANDINGS: Final = """
SELECT c.id, c.state, newest.progress, newest.total
FROM jobs_call c LEFT JOIN LATERAL (
    SELECT a.progress, a.total FROM jobs_attempt a WHERE a.call_id = c.id ORDER BY a.number DESC LIMIT 1
) newest ON true
WHERE c.id = ANY(%s)
"""
_OVER: Final = ", ".join(f"'{state}'" for state in sorted(JOB_FINAL))
_OPEN_JOB: Final = f"""
SELECT id FROM jobs_job WHERE token_id = %s AND client_session = %s AND state NOT IN ({_OVER})
"""  # noqa: S608 - only words of ours
_MADE_BY: Final = """
AND (EXISTS (SELECT FROM jobs_job j WHERE j.id = job_id AND j.token_id = %s)
    OR EXISTS (SELECT FROM jobs_session s WHERE s.id = session_id AND s.token_id = %s))
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a call stands. `progress` and `total` are its newest attempt's (RULES P1)."""

    state: CallState
    progress: float | None = None
    total: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in CALL_FINAL


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call came to. `text` is what a model reads of it; `content` and `structured` are as its tool wrote them.

    They are empty where the tool's own answer is not the whole of it.
    """

    state: CallState
    text: str
    is_error: bool
    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in CALL_FINAL


def standings(calls: Collection[UUID]) -> Mapping[UUID, Standing]:
    """Where these calls, of whatever tenants, stand now."""
    with db.sweep():
        found = prepared.fetch(_STANDINGS, (list(calls),))
    return {call: Standing(CallState(state), progress, total) for call, state, progress, total in found}


def open_job(token_id: UUID, session: str) -> UUID | None:
    """The job that this token's calls belong to now: of its session with a handshake, or of all others (RULES G7)."""
    found = prepared.fetch_one(_OPEN_JOB, (token_id, session))
    return found[0] if found else None


def answered(tenant: UUID, token_id: UUID, call_id: UUID) -> Answered | None:
    """What a call of this token stands at or came to; None when the token has made no such call."""
    with db.read(tenant):
        call = CALLS.get(call_id, _MADE_BY, (token_id, token_id))
        if call is None:
            return None
        call.result_body = BODIES.get(call.result_body_id) if call.result_body_id else None
        text = history.text_for_model(call)
        body = call.result_body.data if call.result_body else None
        state = CallState(call.state)
        own = body is not None and text == body["text"]
        return Answered(
            state=state,
            text=text,
            is_error=state not in (CallState.SUCCEEDED, CallState.HAPPENED),
            content=tuple(body["content"]) if own and body else (),
            structured=body["structured"] if own and body else None,
        )
