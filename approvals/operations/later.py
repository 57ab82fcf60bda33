"""More time for a question, and asking again for a call whose time is over (RULES A8): by a person, into the audit."""

from datetime import datetime
from uuid import UUID

from approvals.operations.decide import MayNot, Person
from approvals.rules.deciding import DECIDING_ROLES
from base import db, ids
from jobs.models import Hold
from jobs.operations import asking_again, holds
from jobs.operations.asking_again import Asked
from jobs.operations.holds import Closed
from tenants.operations import audit


def why_not(role: str) -> str | None:
    """Why a person of this role may neither give more time nor ask again; None when they may."""
    return None if role in DECIDING_ROLES else f"Operators do this; your role here is {role}."


def extend(*, tenant: UUID, hold_id: UUID, person: Person) -> datetime | Closed:
    """Let a question wait a day more, a week at most; returns when it expires then.

    Raises `MayNot`, `BadAnswer`, `Hold.DoesNotExist`.
    """
    if forbidden := why_not(person.decider.role):
        raise MayNot(forbidden)
    with db.write(tenant):
        before = Hold.objects.values_list("expires_at", flat=True).get(pk=hold_id)
        until = holds.extend(hold_id=hold_id)
        if isinstance(until, datetime) and before is not None:
            audit.record(
                person.actor,
                "hold.extend",
                ids.show(ids.HOLD, hold_id),
                before={"expires_at": before.isoformat()},
                after={"expires_at": until.isoformat()},
            )
    return until


def ask_again(*, tenant: UUID, hold_id: UUID, person: Person) -> Asked:
    """Make the call anew whose question expired. Raises `MayNot`, `CannotAsk`, `Hold.DoesNotExist`."""
    if forbidden := why_not(person.decider.role):
        raise MayNot(forbidden)
    with db.write(tenant):
        call_id = Hold.objects.values_list("call_id", flat=True).get(pk=hold_id)
        asked = asking_again.ask_again(call_id=call_id, person=person.decider.user_id)
        if not asked.before:
            audit.record(
                person.actor,
                "hold.ask_again",
                ids.show(ids.HOLD, hold_id),
                before={"call": ids.show(ids.CALL, call_id)},
                after={"call": ids.show(ids.CALL, asked.call_id), "job": ids.show(ids.JOB, asked.job_id)},
            )
    return asked
