"""What nobody else will do in the journal: end what died, move on what time moves, and clear what is long over."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from base import db
from budgets.models import Item, Operation, Reservation
from budgets.operations import settling
from budgets.rules.words import OPEN, OperationState

ABANDONED: Final = timedelta(seconds=30)  # after which nobody executes an operation any more
KEPT: Final = timedelta(days=30)  # for which an operation can be looked at after its day


def abandoned(now: datetime) -> QuerySet[Operation]:
    """Operations whose executor is gone."""
    return Operation.objects.filter(standing=OperationState.RUNNING, touched_at__lt=now - ABANDONED).order_by(
        "touched_at"
    )


def interrupt(tenant: UUID, operation: UUID) -> int:
    """End an operation whose executor is gone. Its items are as they are: each ended in the transaction that made it.

    One that only stood still finds it ended under its lock, and makes no further check.
    """
    with db.write(tenant) as now:
        row = Operation.objects.select_for_update(no_key=True).filter(pk=operation).first()
        if row is None or row.standing != OperationState.RUNNING or row.touched_at >= now - ABANDONED:
            return 0
        return Operation.objects.filter(pk=operation).update(standing=OperationState.INTERRUPTED, ended_at=now)


def due(now: datetime) -> QuerySet[Reservation]:
    """Amounts whose authority or whose doubt has ended."""
    return Reservation.objects.filter(due_at__lte=now).order_by("due_at")


def move_on(tenant: UUID, reservation: UUID) -> int:
    """Move one of these on."""
    return settling.age(tenant=tenant, reservation=reservation)


def long_over(now: datetime) -> QuerySet[Operation]:
    """Operations that nobody looks at any more. What they reserved and spent stays."""
    return Operation.objects.filter(expires_at__lt=now - KEPT).order_by("expires_at")


def clear(tenant: UUID, operation: UUID) -> int:
    """Delete one of these with its checks, unless something of it is still open."""
    with db.write(tenant) as now:
        row = Operation.objects.select_for_update().filter(pk=operation, expires_at__lt=now - KEPT).first()
        mine = Reservation.objects.filter(operation_id=operation)
        if row is None or row.standing == OperationState.RUNNING or mine.filter(standing__in=sorted(OPEN)).exists():
            return 0
        Item.objects.filter(operation_id=operation).delete()
        mine.update(operation=None)
        row.delete()
        return 1
