"""What is known of an operation. Reading starts nothing and renews nothing (RULES S4, S5)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db.models import Count, Sum

from base import db, ids
from budgets import errors
from budgets.models import Item, Operation, Reservation
from budgets.rules import identity
from budgets.rules.admission import Decision
from budgets.rules.words import ItemError, ItemState, OperationState, ReservationState

MOST_COUNTED: Final = 1_001


@dataclass(frozen=True, slots=True)
class ItemFound:
    """What is known of one check."""

    index: int
    state: ItemState
    decision: Decision | None
    error_code: ItemError | None
    checked_at: datetime | None
    reservation_expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What is known of an operation."""

    operation: UUID
    status: OperationState
    expires_at: datetime
    items: tuple[ItemFound, ...]


@dataclass(frozen=True, slots=True)
class InDoubt:
    """How many amounts of a workspace are in doubt, and what they come to in US dollars. It counts to 1,001."""

    amounts: int
    dollars: Decimal


def in_doubt(tenant: UUID) -> InDoubt:
    """What nobody has confirmed although its request may have gone out."""
    # only what is open has a time to move on, by which there is an index
    rows = Reservation.objects.filter(due_at__isnull=False, standing=ReservationState.IN_DOUBT)
    with db.read(tenant):
        found = rows[:MOST_COUNTED].aggregate(amounts=Count("pk"), dollars=Sum("amount", default=Decimal(0)))
    return InDoubt(**found)


def shown_project(project: UUID) -> str:
    """How a project is named to programs."""
    return ids.show(ids.PROJECT, project)


def look_up(*, tenant: UUID, project: UUID, operation: UUID) -> Batch:
    """What is known of a project's operation. Raises `InFuture`, `Expired`, `NotFound`, in this order."""
    with db.read(tenant) as now:
        check_time(operation, now)
        return history(project, operation)


def check_time(operation: UUID, now: datetime) -> None:
    """Raise `InFuture` or `Expired` by an id's own time, whatever there is of it."""
    if identity.is_in_future(operation, now):
        raise errors.InFuture(operation)
    if identity.is_expired(operation, now):
        raise errors.Expired(operation)


def history(project: UUID, operation: UUID, digest: str | None = None) -> Batch:
    """The same inside an open transaction. Raises `NotFound`, and `Conflict` when its checks have another digest."""
    row = Operation.objects.filter(pk=operation, project_id=project).first()
    if row is None:
        raise errors.NotFound(operation)
    if digest is not None and row.digest != digest:
        raise errors.Conflict(operation)
    items = Item.objects.filter(operation_id=operation).order_by("index").defer("asked")
    return Batch(operation, OperationState(row.standing), row.expires_at, tuple(_found(item) for item in items))


def _found(item: Item) -> ItemFound:
    return ItemFound(
        index=item.index,
        state=ItemState(item.standing),
        decision=None if item.result is None else Decision.from_json(item.result),
        error_code=ItemError(item.error_code) if item.error_code else None,
        checked_at=item.checked_at,
        reservation_expires_at=item.reservation_expires_at,
    )
