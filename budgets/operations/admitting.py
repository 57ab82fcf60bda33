"""Operations: claimed once, and their checks made one after another, each in a transaction of its own (RULES S1–S3).

The transaction that reserves also writes the item's end. So whatever ends this process, each item is `completed` with
all that it reserved, or nothing of it was ever done and it is `unattempted`: the journal always knows which.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import psycopg.errors

from base import db, prepared
from budgets import errors
from budgets.models import Item, Limit, Operation, Project, Reservation
from budgets.operations import tallies
from budgets.queries.journal import Batch, check_time, history, shown_project
from budgets.rules import busy, identity, prices
from budgets.rules.admission import Cap, decide
from budgets.rules.checks import Check, digest_of
from budgets.rules.periods import starts
from budgets.rules.words import AUTHORITY, LIFETIME, ItemError, ItemState, LimitMode, OperationState, Period

log = logging.getLogger(__name__)

PATIENCE: Final = "10s"  # for which one check waits for others of its project
ROLLED_BACK: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.QueryCanceled)
_CLAIM: Final = """
INSERT INTO budgets_operation (id, tenant_id, project_id, key_id, digest, size, standing, expires_at, claimed_at,
    touched_at, of_job, of_turn)
VALUES (%s, %s, %s, %s, %s, %s, 'running', %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_TAKE: Final = "SELECT standing FROM budgets_operation WHERE id = %s FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class Asking:
    """Checks under an id of their caller's. A `key` is what they came by; the studio's own loop names job and turn."""

    tenant: UUID
    project: UUID
    operation: UUID
    checks: Sequence[Check]
    key: UUID | None = None
    of_job: UUID | None = None
    of_turn: UUID | None = None


def submit(asking: Asking) -> Batch:
    """Claim an operation and make its checks; whoever comes second only reads what is known by now.

    Raises `InFuture`, `Expired`, `NotFound` and `Conflict`, in this order, having changed nothing; `Busy` when nothing
    was accepted; `OutcomeUnavailable` when the database went away and only the journal will tell.
    """
    found = claim(asking)
    if found is not None:
        return found
    try:
        execute(asking)
        with db.read(asking.tenant):
            return history(asking.project, asking.operation)
    except db.GONE as error:
        raise errors.OutcomeUnavailable(asking.operation) from error


def claim(asking: Asking) -> Batch | None:
    """Write an operation down with all its items unattempted; None for who did, who alone may then `execute` it.

    Everybody else gets what is known of it. Raises as `submit`.
    """
    digest, sent = digest_of(asking.checks), False
    try:
        with db.write(asking.tenant, named="admit_batch") as now:
            check_time(asking.operation, now)
            sent = prepared.change(_CLAIM, _row(asking, digest, now)) == 0  # somebody has: an earlier one was accepted
            if sent:
                return history(asking.project, asking.operation, digest)
            Item.objects.bulk_create(
                Item(tenant_id=asking.tenant, operation_id=asking.operation, index=index, asked=check.as_json())
                for index, check in enumerate(asking.checks)
            )
            sent = True
    except db.GONE as error:
        if sent:
            raise errors.OutcomeUnavailable(asking.operation) from error
        raise errors.Busy(busy.NO_DATABASE, asking.operation) from error
    return None


def execute(asking: Asking) -> None:
    """Make the checks of a claimed operation in their order, until one has no result or the sweep has ended it."""
    with db.read(asking.tenant) as now:
        project = Project.objects.get(pk=asking.project)
    for index, check in enumerate(asking.checks):
        try:
            amount = prices.estimate(check, now)  # before anything is locked
            goes_on = _make(asking, project, index, check, amount)
        except Exception as error:
            if isinstance(error, db.GONE) and not isinstance(error.__cause__, ROLLED_BACK):
                raise  # nobody here knows whether it was kept: the journal does
            log.warning("check %d of operation %s failed, with no effect", index, asking.operation, exc_info=error)
            _fail(asking, index)
            return
        if not goes_on:
            return


def _row(asking: Asking, digest: str, now: datetime) -> list[Any]:
    expires_at = identity.time_of(asking.operation) + LIFETIME
    whose = [asking.operation, asking.tenant, asking.project, asking.key]
    return [*whose, digest, len(asking.checks), expires_at, now, now, asking.of_job, asking.of_turn]


def _make(asking: Asking, project: Project, index: int, check: Check, amount: Decimal | None) -> bool:
    """Make one check. False when there is no going on: it was the last, it failed, or the operation was ended."""
    with db.write(asking.tenant, named="admit_check") as began:
        prepared.fetch_one("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])
        if prepared.fetch_one(_TAKE, [asking.operation]) != (OperationState.RUNNING,):
            return False
        counted_at = identity.time_of(asking.operation)
        periods = starts(counted_at, project.zone)
        used = tallies.lock(project.pk, periods)
        now = max(began, db.later())
        reservation = identity.reservation_id(asking.operation, index, now)
        decision = decide(
            amount, _caps(project.pk), used, project=shown_project(project.pk), reservation=str(reservation)
        )
        if decision is None:
            _end_item(asking, index, ItemState.FAILED, error_code=ItemError.CHECK_FAILED, checked_at=now)
            _end(asking, OperationState.INTERRUPTED, now)
            return False
        ends: dict[str, Any] = {}
        if decision.reservation_id is not None and amount is not None:
            Reservation.objects.create(
                pk=reservation,
                tenant_id=asking.tenant,
                project=project,
                operation_id=asking.operation,
                index=index,
                amount=amount,
                counted_at=counted_at,
                checked_at=now,
                due_at=now + AUTHORITY,
                model=check.model,
                provider=check.provider,
                of_job=asking.of_job,
                of_turn=asking.of_turn,
            )
            tallies.add(project.pk, periods, reserved=amount)
            ends = {"reservation_id": reservation, "reservation_expires_at": now + AUTHORITY}
        _end_item(
            asking,
            index,
            ItemState.COMPLETED,
            result=decision.as_json(),
            checked_at=now,
            estimate=amount,
            **ends,
        )
        last = index == len(asking.checks) - 1
        _end(asking, OperationState.FINISHED if last else OperationState.RUNNING, now)
        return not last


def _fail(asking: Asking, index: int) -> None:
    """Note that a check failed whose transaction was rolled back, and so has had no effect."""
    with db.write(asking.tenant) as now:
        if prepared.fetch_one(_TAKE, [asking.operation]) == (OperationState.RUNNING,):
            _end_item(asking, index, ItemState.FAILED, error_code=ItemError.CHECK_FAILED, checked_at=now)
            _end(asking, OperationState.INTERRUPTED, now)


def _end_item(asking: Asking, index: int, standing: ItemState, **what: Any) -> None:
    Item.objects.filter(operation_id=asking.operation, index=index).update(standing=standing, **what)


def _end(asking: Asking, standing: OperationState, now: datetime) -> None:
    over = standing is not OperationState.RUNNING
    Operation.objects.filter(pk=asking.operation).update(
        standing=standing, touched_at=now, ended_at=now if over else None
    )


def _caps(project: UUID) -> list[Cap]:
    rows = Limit.objects.filter(project_id=project)
    return [Cap(Period(row.period), row.amount, LimitMode(row.mode)) for row in rows]
