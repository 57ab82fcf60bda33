"""What becomes of a reserved amount: confirmed once, released by a person, or moved on by time (RULES S4, S8–S10)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from base import db
from base.canonical import digest
from budgets import errors
from budgets.models import Receipt, Reservation
from budgets.operations import tallies
from budgets.rules import identity, prices
from budgets.rules.checks import Used
from budgets.rules.periods import starts
from budgets.rules.words import DOUBT, OPEN, RECEIPT, ReservationState, Unconfirmed
from tenants.operations import audit
from tenants.rules.who import Actor

NOTHING_WENT_OUT: Final = "its request never went out"
FAR: Final = 10  # times what was reserved, from which on a person is asked whether they mean it
FAR_LEAST: Final = Decimal(1)  # US dollars; below it no slip costs much
NOBODY_CONFIRMED: Final = "nobody confirmed it"


def confirm(*, tenant: UUID, project: UUID, reservation: UUID, used: Used, by: str) -> None:
    """Settle a reservation by what its call has used; sent again within an hour it changes nothing.

    Raises, in this order: `InFuture`; `Expired` for a reservation of more than a day, or a receipt of more than an
    hour; `NotFound`; `Conflict` when it was confirmed otherwise. It wins over a release, for it knows more.
    """
    said = {"reservation": str(reservation), **used.as_json()}
    with db.write(tenant, named="confirm") as now:
        row = _taken(reservation, project=project)
        if row is None and identity.is_in_future(reservation, now):  # the clock may have been set back since its check
            raise errors.InFuture(reservation)
        receipt = Receipt.objects.filter(reservation_id=reservation, project_id=project).first() if row else None
        if receipt is not None:
            if now >= receipt.confirmed_at + RECEIPT:
                raise errors.Expired(reservation)
            if receipt.digest != digest(said):
                raise errors.Conflict(reservation)
            return
        if identity.is_expired(reservation, now):
            raise errors.Expired(reservation)
        if row is None:
            raise errors.NotFound(reservation)
        known = prices.cost(used, now)
        _settle(row, row.amount if known is None else known, said, now, by=by, priced=known is not None)


def confirm_as_person(
    *, tenant: UUID, reservation: UUID, amount: Decimal, note: str, actor: Actor, sure: bool = False
) -> None:
    """Settle an amount in doubt by what a person has found that it cost.

    Raises `NotOpen`, `NotFound`; `FarAbove` unless they are `sure` of one that is far more than was reserved.
    """
    with db.write(tenant) as now:
        row = _in_doubt(reservation)
        _ask_back(row, amount, sure)
        said = {"reservation": str(reservation), "by": actor.name, "amount": f"{amount:f}"}
        _settle(row, amount, said, now, by=actor.name, priced=True, note=note)
        audit.record(actor, "spend.confirmed", _named(row), after={"amount": f"{amount:f}"}, note=note)


def correct(
    *, tenant: UUID, reservation: UUID, was: Decimal, amount: Decimal, note: str, actor: Actor, sure: bool = False
) -> None:
    """Put another amount in the place of what a person has said that it cost; `was` is the one that they correct.

    Its receipt stays as it was. What a program has confirmed by its own count is not corrected: that is evidence.
    Raises `NotFound`; `NotOpen` where it is not as it `was`, and `FarAbove` as `confirm_as_person`.
    """
    with db.write(tenant) as now:
        row = _taken(reservation)
        if row is None:
            raise errors.NotFound(reservation)
        if not Receipt.objects.filter(reservation=row, used__has_key="by").exists():
            raise errors.NotOpen("no person has said what it cost")
        if row.spent != was:
            raise errors.NotOpen(f"somebody has corrected it: by now it cost {row.spent:f} USD")
        _ask_back(row, amount, sure)
        _count(row, spent=amount - was)
        _change(row, spent=amount, closed_at=now, closed_by=actor.name, note=note)
        told = {"before": {"amount": f"{was:f}"}, "after": {"amount": f"{amount:f}"}}
        audit.record(actor, "spend.corrected", _named(row), note=note, **told)


def release(*, tenant: UUID, reservation: UUID, note: str, actor: Actor) -> None:
    """Count an amount in doubt no more: a person has found that it was not spent. Raises `NotOpen`, `NotFound`."""
    with db.write(tenant) as now:
        row = _in_doubt(reservation)
        _close(row, ReservationState.RELEASED, now, by=actor.name, note=note)
        audit.record(actor, "spend.released", _named(row), before={"amount": f"{row.amount:f}"}, note=note)


def withdraw(*, tenant: UUID, reservation: UUID, by: str) -> bool:
    """Count an amount no more whose request provably never went out; False when it is counted no more already."""
    with db.write(tenant) as now:
        row = _taken(reservation)
        if row is None or row.standing not in OPEN:
            return False
        _close(row, ReservationState.RELEASED, now, by=by, note=NOTHING_WENT_OUT)
        return True


def age(*, tenant: UUID, reservation: UUID) -> int:
    """Move on what time alone moves: authority ends, and a day later doubt does. Returns 1 when it did."""
    with db.write(tenant) as now:
        row = _taken(reservation)
        if row is None or row.due_at is None or row.due_at > now:
            return 0
        if row.standing == ReservationState.IN_DOUBT:
            _close(row, ReservationState.EXPIRED, now, by="", note=NOBODY_CONFIRMED)
        elif row.project.unconfirmed == Unconfirmed.LAPSE:
            _close(row, ReservationState.LAPSED, now, by="", note=NOBODY_CONFIRMED)
        else:
            _count(row, reserved=-row.amount, in_doubt=row.amount)
            _change(row, standing=ReservationState.IN_DOUBT, due_at=row.checked_at + DOUBT)
        return 1


def _taken(reservation: UUID, **whose: Any) -> Reservation | None:
    """The reservation, locked until the end of the open write, with its project."""
    rows = Reservation.objects.select_for_update(no_key=True, of=("self",)).select_related("project")
    return rows.filter(pk=reservation, **whose).first()


def _in_doubt(reservation: UUID) -> Reservation:
    row = _taken(reservation)
    if row is None:
        raise errors.NotFound(reservation)
    if row.standing != ReservationState.IN_DOUBT:
        raise errors.NotOpen(f"it is not in doubt: it is {ReservationState(row.standing).value.replace('_', ' ')}")
    return row


def _ask_back(row: Reservation, amount: Decimal, sure: bool) -> None:
    if not sure and amount > max(row.amount * FAR, FAR_LEAST):
        raise errors.FarAbove(
            f"{amount:,f} USD is far more than the {row.amount.normalize():,f} USD that were reserved"
        )


def _settle(
    row: Reservation, cost: Decimal, said: dict[str, Any], now: datetime, *, by: str, priced: bool, note: str = ""
) -> None:
    _count(row, **_uncounted(row), spent=cost)
    _change(
        row,
        standing=ReservationState.CONFIRMED,
        due_at=None,
        spent=cost,
        priced=priced,
        closed_at=now,
        closed_by=by,
        note=note,
    )
    Receipt.objects.create(
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        reservation=row,
        digest=digest(said),
        used=said,
        confirmed_at=now,
    )


def _close(row: Reservation, standing: ReservationState, now: datetime, *, by: str, note: str) -> None:
    _count(row, **_uncounted(row))
    _change(row, standing=standing, due_at=None, closed_at=now, closed_by=by, note=note)


def _uncounted(row: Reservation) -> dict[str, Decimal]:
    """What is taken from the counts when an amount is open no more."""
    if row.standing not in OPEN:
        return {}
    return {"reserved" if row.standing == ReservationState.LIVE else "in_doubt": -row.amount}


def _count(row: Reservation, **amounts: Decimal) -> None:
    periods = starts(row.counted_at, row.project.zone)
    tallies.lock(row.project_id, periods)
    tallies.add(row.project_id, periods, **amounts)


def _change(row: Reservation, **columns: Any) -> None:
    Reservation.objects.filter(pk=row.pk).update(**columns)


def _named(row: Reservation) -> str:
    return f"{row.amount.normalize():f} USD of {row.project.name}, reservation {row.pk}"
