"""The calls of one function or one tool, newest first, without any body."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from base import db, ids
from jobs.models import Call
from jobs.rules.states import CALL_FINAL, CallState, Effect

NEWEST: Final = 20
LIVE_MOST: Final = 50


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call: where it stands, what it may have done, and whose it is."""

    shown_id: str
    function: str
    state: CallState
    effect: Effect
    attempts: int
    job: str
    title: str
    agent: str
    created_at: datetime
    ended_at: datetime | None


def newest_calls(tenant: UUID, functions: Sequence[UUID]) -> tuple[CallRow, ...]:
    """The newest calls of these listed rows of a function."""
    with db.read(tenant):
        return tuple(map(_row, _calls().filter(function__in=functions).order_by("-pk")[:NEWEST]))


def live_calls(tenant: UUID, tool: str) -> tuple[CallRow, ...]:
    """The calls of a tool that have not ended, oldest first: what runs, what waits, and what nobody knows."""
    with db.read(tenant):
        live = [state for state in CallState if state not in CALL_FINAL]
        found = _calls().filter(tool_slug=tool, state__in=live).order_by("pk")
        return tuple(map(_row, found[:LIVE_MOST]))


def _calls() -> QuerySet[Call]:
    return Call.objects.select_related("job").only(
        *("id", "function_name", "state", "effect", "attempts_made", "created_at", "ended_at"),
        *("job__id", "job__title", "job__agent_name"),
    )


def _row(call: Call) -> CallRow:
    return CallRow(
        shown_id=ids.show(ids.CALL, call.pk),
        function=call.function_name,
        state=CallState(call.state),
        effect=Effect(call.effect),
        attempts=call.attempts_made,
        job=ids.show(ids.JOB, call.job_id),
        title=call.job.title,
        agent=call.job.agent_name,
        created_at=call.created_at,
        ended_at=call.ended_at,
    )
