"""Projects for tests, and the recount that their counts are compared with."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from base import db, ids
from budgets.models import Item, Limit, Operation, Project, Reservation, Tally
from budgets.operations import admitting
from budgets.queries.journal import Batch, look_up
from budgets.rules.checks import Check, Used
from budgets.rules.words import LimitMode, Period, ReservationState
from tests.builders import a_tenant

CENT = Decimal("0.01")
NOTHING = Decimal(0)
HARD = LimitMode.HARD_DENY
PRICED = {"model": "gpt-4o", "provider": "openai"}


@dataclass(frozen=True)
class Ledger:
    """A project of a tenant."""

    tenant: UUID
    project: UUID


def a_ledger(*limits: tuple[Period, Decimal | str | int, LimitMode], slug: str = "acme", **project: Any) -> Ledger:
    """A project with these limits, in a tenant of its own."""
    return another(a_tenant(slug), *limits, **project)


def another(tenant: UUID, *limits: tuple[Period, Decimal | str | int, LimitMode], **project: Any) -> Ledger:
    """One more project of a tenant."""
    project = {"name": "p", **project}
    with db.write(tenant) as now:
        row = Project.objects.create(tenant_id=tenant, made_at=now, **project)
        for period, amount, mode in limits:
            Limit.objects.create(
                tenant_id=tenant, project=row, period=period, amount=Decimal(amount), mode=mode, changed_at=now
            )
    return Ledger(tenant, row.pk)


def now_of(ledger: Ledger) -> datetime:
    """The database's time."""
    with db.read(ledger.tenant) as now:
        return now


def at_noon(tenant: UUID, move: Callable[[timedelta], None]) -> None:
    """Move the database's clock ahead to a noon early in a month: minutes later it is the same hour and month."""
    with db.read(tenant) as now:
        noon = now.replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)
        if noon.day > 25:
            noon += timedelta(days=7)
    move(noon - now)


def an_id(ledger: Ledger, ago: timedelta = timedelta()) -> UUID:
    """A fresh UUIDv7 of this long ago, by the database's clock."""
    first = ids.first_at(now_of(ledger) - ago)
    return UUID(int=first.int | (ids.new().int & (2**62 - 1)))


def cents(count: int = 1, **more: Any) -> Check:
    """A check that is estimated to cost this many cents: 4,000 tokens of input cost one."""
    return Check(**{**PRICED, "estimated_input_tokens": 4_000 * count, "estimated_output_tokens": 0, **more})


def used_cents(count: int = 1, call: str = "call", **more: Any) -> Used:
    """What a call has used that cost this many cents."""
    return Used(**{"call_id": call, **PRICED, "input_tokens": 4_000 * count, "output_tokens": 0, **more})


def an_asking(ledger: Ledger, *checks: Check, operation: UUID | None = None, **more: Any) -> admitting.Asking:
    """These checks under a fresh id."""
    return admitting.Asking(ledger.tenant, ledger.project, operation or an_id(ledger), checks, **more)


def submitted(ledger: Ledger, *checks: Check, operation: UUID | None = None) -> Batch:
    """What became of these checks."""
    return admitting.submit(an_asking(ledger, *checks, operation=operation))


def found(ledger: Ledger, operation: UUID) -> Batch:
    """What is known of an operation."""
    return look_up(tenant=ledger.tenant, project=ledger.project, operation=operation)


def reserved_by(batch: Batch) -> list[UUID]:
    """The reservations of an operation."""
    decisions = [item.decision for item in batch.items if item.decision is not None]
    return [UUID(decision.reservation_id) for decision in decisions if decision.reservation_id]


def states(batch: Batch) -> str:
    """The items' states by their first letters, `f` failed, `a` unattempted: ccfaa."""
    letters = {"completed": "c", "failed": "f", "unattempted": "a", "unknown": "?"}
    return "".join(letters[item.state] for item in batch.items)


def sums(ledger: Ledger, period: Period = Period.MONTH) -> tuple[int, int, int]:
    """Reserved, in doubt and spent of all such periods together, in whole cents."""
    with db.read(ledger.tenant):
        rows = list(Tally.objects.filter(project_id=ledger.project, period=period))
    return (
        _cents(sum((row.reserved for row in rows), NOTHING)),
        _cents(sum((row.in_doubt for row in rows), NOTHING)),
        _cents(sum((row.spent for row in rows), NOTHING)),
    )


def _cents(amount: Decimal) -> int:
    assert amount % CENT == 0, f"{amount} is in no whole cents"
    return int(amount / CENT)


def recounted(tenant: UUID) -> dict[tuple[UUID, str, datetime], tuple[Decimal, Decimal, Decimal]]:
    """What every period of every project comes to by its reservations alone, told in another way than the product's."""
    found: dict[Any, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 3)
    for row in Reservation.objects.select_related("project"):
        place = {ReservationState.LIVE: 0, ReservationState.IN_DOUBT: 1, ReservationState.CONFIRMED: 2}.get(
            ReservationState(row.standing)
        )
        if place is None:
            continue
        here = row.counted_at.astimezone(ZoneInfo(row.project.zone))
        hour = datetime.fromtimestamp(row.counted_at.timestamp() // 3600 * 3600, tz=row.counted_at.tzinfo)
        day = here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        for period, start in (("hour", hour), ("day", day), ("month", day.replace(day=1))):
            counted = found[row.project_id, period, start]
            counted[place] += row.amount if place < 2 else row.spent or Decimal(0)
    return {key: (one[0], one[1], one[2]) for key, one in found.items()}


def check_counts(tenant: UUID) -> None:
    """The counts equal a recount, and every item stands as its rows say (RULES S3, S9)."""
    with db.read(tenant):
        told = {
            (row.project_id, row.period, row.starts_at): (row.reserved, row.in_doubt, row.spent)
            for row in Tally.objects.all()
            if any((row.reserved, row.in_doubt, row.spent))
        }
        counted = {key: one for key, one in recounted(tenant).items() if any(one)}
        by_items = {
            (item.operation_id, item.index): item.reservation_id
            for item in Item.objects.filter(reservation__isnull=False)
        }
        by_rows = {(row.operation_id, row.index): row.pk for row in Reservation.objects.filter(operation__isnull=False)}
        for operation in Operation.objects.all():
            standing = list(operation.items.order_by("index").values_list("standing", flat=True))
            assert len(standing) == operation.size
            assert standing == sorted(standing, key=["completed", "failed", "unattempted"].index), standing
            assert standing.count("failed") <= 1
    assert told == counted
    assert by_items == by_rows
