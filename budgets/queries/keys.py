"""Whom a shown secret belongs to."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from budgets.models import Key
from budgets.rules.words import KeyScope
from tenants.models import Role
from tenants.queries.seats import seats_of


@dataclass(frozen=True, slots=True)
class Holder:
    """A program with a live key, and what it may by now. `is_pair` says that a person has logged it in."""

    tenant: UUID
    project: UUID
    key: UUID
    name: str
    scope: KeyScope
    is_pair: bool
    now: datetime


def holder(token_hash: str) -> Holder | None:
    """Whose access this is the hash of; None when it counts for nothing, whatever the reason."""
    with db.read_as_bearer(token_hash) as now:
        row = Key.objects.filter(token_hash=token_hash).first()
    if row is None or (row.access_until is not None and row.access_until <= now):
        return None
    return _held(row, now)


def renewer(refresh_hash: str) -> Holder | None:
    """Whose pair this renews; None when it renews none."""
    with db.read_as_bearer(refresh_hash) as now:
        row = Key.objects.exclude(token_hash=refresh_hash).first()
    return None if row is None else _held(row, now)


def _held(row: Key, now: datetime) -> Holder | None:
    with db.read(row.tenant_id):
        if not Key.objects.live(now).filter(pk=row.pk).exists():
            return None
    scope, is_pair = KeyScope(row.scope), row.refresh_hash is not None
    if is_pair:  # it counts for no more than its person may do by now
        seat = next((place for place in seats_of(row.person_id) if place.tenant == row.tenant_id), None)
        if seat is None:
            return None
        scope = scope if seat.may(Role.OPERATOR) else KeyScope.READ_ONLY
    return Holder(row.tenant_id, row.project_id, row.pk, row.name, scope, is_pair, now)
