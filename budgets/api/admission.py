"""Asking for calls and settling them: batches, and confirmations."""

from threading import BoundedSemaphore
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Router
from ninja.responses import Status

from budgets import errors
from budgets.api.door import Takes, holder_of
from budgets.api.shapes import BatchIn, BatchOut, ConfirmIn, DecisionOut, ItemOut, answers
from budgets.operations import admitting, settling
from budgets.queries import journal
from budgets.queries.journal import Batch, ItemFound
from budgets.rules import busy
from budgets.rules.identity import CANONICAL_V7

router = Router(tags=["budgets"])
AT_ONCE: Final = 64  # operations that one web process executes
_room: Final = BoundedSemaphore(AT_ONCE)


@router.post(
    "/budgets/check/batches",
    response=answers(BatchOut, 404, 409, 410, 413, 415),
    auth=Takes(writes=True),
    url_name="api-budget-batches",
    summary="Ask for calls",
)
def check(request: HttpRequest, batch: BatchIn) -> Any:
    """Claim an operation and make its checks. The same id again only tells what became of them, and resumes nothing."""
    holder, operation = holder_of(request), UUID(batch.operation_id)
    asking = admitting.Asking(
        tenant=holder.tenant,
        project=holder.project,
        operation=operation,
        checks=[one.as_check() for one in batch.checks],
        key=holder.key,
    )
    if not _room.acquire(blocking=False):
        raise errors.Busy(busy.TOO_MANY, operation)
    try:
        return _batch(admitting.submit(asking))
    finally:
        _room.release()


@router.get(
    "/budgets/check/batches/{plain:operation_id}",
    response=answers(BatchOut, 404, 410),
    auth=Takes(),
    url_name="api-budget-batch",
    summary="Look an operation up",
)
def look_up(request: HttpRequest, operation_id: Annotated[str, Path(pattern=CANONICAL_V7)]) -> Any:
    """What is known of an operation of this project. It starts, resumes and renews nothing; any key of it will do."""
    holder = holder_of(request)
    return _batch(journal.look_up(tenant=holder.tenant, project=holder.project, operation=UUID(operation_id)))


@router.post(
    "/budgets/confirm",
    response=answers(None, 404, 409, 410, 413, 415, status=204),
    auth=Takes(writes=True),
    url_name="api-budget-confirm",
    summary="Confirm a call",
)
def confirm(request: HttpRequest, used: ConfirmIn) -> Any:
    """Settle one reservation by what its call has used. Within an hour the same again is the same: another is 409."""
    holder = holder_of(request)
    settling.confirm(
        tenant=holder.tenant,
        project=holder.project,
        reservation=UUID(used.reservation_id),
        used=used.as_used(),
        by=f"key {holder.name}",
    )
    return Status(204, None)


def _batch(found: Batch) -> BatchOut:
    return BatchOut(
        operation_id=str(found.operation),
        status=found.status,
        expires_at=found.expires_at,
        items=[_item(item) for item in found.items],
    )


def _item(item: ItemFound) -> ItemOut:
    return ItemOut(
        index=item.index,
        state=item.state,
        result=None if item.decision is None else DecisionOut.model_validate(item.decision.as_json()),
        error_code=item.error_code,
        checked_at=item.checked_at,
        reservation_expires_at=item.reservation_expires_at,
    )
