"""What becomes of a reserved amount (RULES S4, S8–S10; CASES J02)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from base import db, ids
from budgets import errors
from budgets.models import Key, Limit, Receipt, Reservation
from budgets.operations import agents, keys, settling, sweep
from budgets.rules.checks import Used
from budgets.rules.words import AUTHORITY, Period, ReservationState
from tenants.models import AuditEntry
from tenants.rules.who import Actor
from tests.budgets.callers import Caller, a_check, a_seat, a_secret, asked
from tests.budgets.ledgers import (
    HARD,
    Ledger,
    a_ledger,
    another,
    at_noon,
    cents,
    check_counts,
    found,
    reserved_by,
    submitted,
    sums,
    used_cents,
)

pytestmark = pytest.mark.usefixtures("database")
PAT = Actor("pat", "test")
SECOND = timedelta(seconds=1)


def reserved(ledger: Ledger, count: int = 1) -> UUID:
    return reserved_by(submitted(ledger, cents(count)))[0]


def confirm(ledger: Ledger, reservation: UUID, used: Used) -> None:
    settling.confirm(tenant=ledger.tenant, project=ledger.project, reservation=reservation, used=used, by="key k")


def swept(ledger: Ledger) -> int:
    """What the sweep moves on, all of it."""
    with db.read(ledger.tenant) as now:
        due = list(sweep.due(now).values_list("pk", flat=True))
    return sum(sweep.move_on(ledger.tenant, one) for one in due)


def see(ledger: Ledger, reservation: UUID) -> Reservation:
    with db.read(ledger.tenant):
        return Reservation.objects.get(pk=reservation)


@pytest.mark.rule("S8")
def test_a_confirmation_settles_once_and_is_compared_when_it_comes_again(
    move_clock: Callable[[timedelta], None],
) -> None:
    ledger = a_ledger()
    reservation = reserved(ledger, 5)
    confirm(ledger, reservation, used_cents(3))
    assert sums(ledger) == (0, 0, 3)
    confirm(ledger, reservation, used_cents(3))  # the reply was lost
    for other in (used_cents(4), used_cents(3, call="another"), used_cents(3, cached_input_tokens=1)):
        with pytest.raises(errors.Conflict):
            confirm(ledger, reservation, other)
    move_clock(timedelta(seconds=3_590))
    confirm(ledger, reservation, used_cents(3))
    move_clock(timedelta(seconds=11))
    for again in (used_cents(3), used_cents(4)):
        with pytest.raises(errors.Expired):
            confirm(ledger, reservation, again)
    assert sums(ledger) == (0, 0, 3)
    with db.read(ledger.tenant):
        assert Receipt.objects.count() == 1
    check_counts(ledger.tenant)


@pytest.mark.rule("S8")
def test_a_confirmation_is_of_one_project_and_of_one_day(move_clock: Callable[[timedelta], None]) -> None:
    ledger = a_ledger()
    other = another(ledger.tenant, name="other")
    reservation = reserved(ledger)
    with pytest.raises(errors.NotFound):
        confirm(other, reservation, used_cents())
    with pytest.raises(errors.NotFound):
        confirm(ledger, ids.new(), used_cents())
    with pytest.raises(errors.InFuture):
        confirm(ledger, UUID(int=reservation.int + (6_000 << 80)), used_cents())
    move_clock(timedelta(hours=24))
    for project in (ledger, other):  # expired before it is looked up
        with pytest.raises(errors.Expired):
            confirm(project, reservation, used_cents())
    assert sums(ledger) == (1, 0, 0)
    check_counts(ledger.tenant)


@pytest.mark.rule("S4")
@pytest.mark.rule("S10")
def test_authority_ends_and_the_amount_is_in_doubt_for_a_day(move_clock: Callable[[timedelta], None]) -> None:
    ledger = a_ledger((Period.MONTH, "0.05", HARD))
    at_noon(ledger.tenant, move_clock)
    batch = submitted(ledger, cents(5))
    (reservation,) = reserved_by(batch)
    (checked_at,) = (item.checked_at for item in batch.items)
    assert checked_at is not None
    move_clock(AUTHORITY - 30 * SECOND)
    assert swept(ledger) == 0
    assert found(ledger, batch.operation) == batch  # reading renews nothing
    move_clock(31 * SECOND)
    assert swept(ledger) == 1
    assert found(ledger, batch.operation) == batch
    assert sums(ledger) == (0, 5, 0)
    (denied,) = submitted(ledger, cents()).items
    assert denied.decision is not None and not denied.decision.allowed  # it is still counted
    assert see(ledger, reservation).due_at == checked_at + timedelta(hours=24)
    move_clock(timedelta(hours=23, minutes=54))
    assert swept(ledger) == 0
    move_clock(timedelta(minutes=2))
    assert swept(ledger) == 1
    assert see(ledger, reservation).standing == ReservationState.EXPIRED
    assert sums(ledger) == (0, 0, 0)
    with pytest.raises(errors.Expired):
        confirm(ledger, reservation, used_cents())
    check_counts(ledger.tenant)


@pytest.mark.rule("S10")
def test_a_person_releases_or_confirms_what_is_in_doubt_and_nothing_else(
    move_clock: Callable[[timedelta], None],
) -> None:
    ledger = a_ledger()
    first, second, third = (reserved(ledger, count) for count in (1, 2, 3))
    whose: dict[str, Any] = {"tenant": ledger.tenant, "note": "looked it up", "actor": PAT}
    with pytest.raises(errors.NotOpen, match="it is live"):
        settling.release(reservation=first, **whose)
    move_clock(AUTHORITY)
    assert swept(ledger) == 3
    settling.release(reservation=first, **whose)
    settling.confirm_as_person(reservation=second, amount=Decimal("0.07"), **whose)
    assert sums(ledger) == (0, 3, 7)
    with pytest.raises(errors.NotOpen, match="it is released"):
        settling.release(reservation=first, **whose)
    with pytest.raises(errors.Conflict):  # a person has said otherwise
        confirm(ledger, second, used_cents(2))
    confirm(ledger, first, used_cents(1))  # evidence wins over what somebody thought
    confirm(ledger, third, used_cents(3))
    assert sums(ledger) == (0, 0, 11)
    with db.read(ledger.tenant):
        assert list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True)) == [
            "spend.released",
            "spend.confirmed",
        ]
    check_counts(ledger.tenant)


def test_callers_killed_after_they_reserved_hold_nothing_for_ever(move_clock: Callable[[timedelta], None]) -> None:
    """CASES J02: in a project whose unconfirmed amounts lapse nothing is counted after 300 seconds."""
    ledger = a_ledger((Period.HOUR, "5.00", HARD), unconfirmed="lapse")
    operations = [submitted(ledger, *[cents()] * 25) for _ in range(24)]  # 600: one hundred find no room
    assert sums(ledger, Period.HOUR) == (500, 0, 0)
    move_clock(AUTHORITY)
    assert swept(ledger) == 500
    assert sums(ledger, Period.HOUR) == (0, 0, 0)
    late = reserved_by(operations[0])[0]
    confirm(ledger, late, used_cents())  # one was alive after all
    assert sums(ledger, Period.MONTH) == (0, 0, 1)
    check_counts(ledger.tenant)


@pytest.mark.rule("S8")
def test_what_a_model_without_a_known_price_has_cost_is_its_estimate_and_told_so() -> None:
    ledger = a_ledger()
    reservation = reserved(ledger, 2)
    confirm(ledger, reservation, used_cents(9, model="nobody-knows"))
    row = see(ledger, reservation)
    assert (row.spent, row.priced) == (Decimal("0.02"), False)
    check_counts(ledger.tenant)


@pytest.mark.rule("S10")
def test_the_studios_own_loop_reserves_confirms_and_gives_back() -> None:
    tenant = a_ledger().tenant
    asked: dict[str, Any] = {"tenant": tenant, "agent": "clerk", "job": ids.new(), "turn": ids.new()}
    free = agents.reserve(operation=ids.new(), check=cents(model="any", provider="rehearsal"), **asked)
    assert free.allowed and free.reservation is not None
    ledger = Ledger(tenant, agents.project_of(tenant=tenant, agent="clerk"))
    with db.write(tenant) as now:
        see_project = {"tenant_id": tenant, "project_id": ledger.project, "changed_at": now}
        Limit.objects.create(period=Period.DAY, amount=Decimal("0.03"), mode=HARD, **see_project)
    one, two = (agents.reserve(operation=ids.new(), check=cents(), **asked) for _ in range(2))
    assert one.reservation and two.reservation
    assert agents.withdraw(tenant=tenant, reservation=one.reservation)
    assert not agents.withdraw(tenant=tenant, reservation=one.reservation)
    agents.confirm(tenant=tenant, agent="clerk", reservation=two.reservation, used=used_cents(2))
    assert sums(ledger) == (0, 0, 2)
    denied = agents.reserve(operation=ids.new(), check=cents(2), **asked)
    assert (denied.allowed, denied.reservation, denied.denied_by) == (False, None, Period.DAY)
    assert denied.because == (
        "0.02 USD are counted of the 0.03 USD that agent clerk may spend in one day, and this request does not fit"
    )
    unknown = agents.reserve(operation=ids.new(), check=cents(model="nobody-knows"), **asked)
    assert (unknown.allowed, unknown.decision) == (False, None)
    check_counts(tenant)


def test_a_clock_that_was_set_back_keeps_nothing_from_being_confirmed(move_clock: Callable[[timedelta], None]) -> None:
    """CASES J05: a reservation that is there was checked, whatever the clock says by now."""
    ledger = a_ledger()
    at_noon(ledger.tenant, move_clock)
    reservation = reserved(ledger)
    move_clock(timedelta(hours=-2))
    confirm(ledger, reservation, used_cents())
    assert see(ledger, reservation).standing == ReservationState.CONFIRMED
    with pytest.raises(errors.InFuture):
        confirm(ledger, ids.first_at(see(ledger, reservation).counted_at + timedelta(hours=1)), used_cents())


def test_keys_that_have_ended_leave_room_for_others(
    monkeypatch: pytest.MonkeyPatch, move_clock: Callable[[timedelta], None]
) -> None:
    ledger = a_ledger()
    monkeypatch.setattr(keys, "MOST_LIVE", 2)
    caller = Caller(ledger)
    actor = Actor("pat", "test", a_seat(ledger).person_id)

    def rotated(name: str) -> str | None:
        with db.read(ledger.tenant):
            newest = Key.objects.filter(project_id=ledger.project, expires_at=None).get()
        return keys.rotate(tenant=ledger.tenant, key=newest.pk, secret=a_secret(name), actor=actor)

    assert rotated("second") == caller.row.name
    with pytest.raises(errors.BadProject, match="has 2 keys"):
        rotated("third")
    move_clock(timedelta(hours=25))
    assert rotated("third") == caller.row.name


@pytest.mark.rule("S9")
def test_checks_go_on_while_their_key_is_rotated_and_a_revoked_one_asks_no_more() -> None:
    ledger = a_ledger((Period.MONTH, "0.30", HARD))
    caller = Caller(ledger)
    fresh = a_secret("while checks run")
    whose: dict[str, Any] = {"tenant": ledger.tenant, "key": caller.key}
    whose["actor"] = Actor("pat", "test", a_seat(ledger).person_id)

    def ask() -> Any:
        try:
            return caller.submit(a_check())
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(ask) for _ in range(20)]
        assert keys.rotate(secret=fresh, **whose) == "k"
        asking += [pool.submit(ask) for _ in range(20)]
        answers = [one.result() for one in asking]
    assert {answer.status_code for answer in answers} == {200}, "the old key counts for a day more"
    assert sum(answer.json()["items"][0]["result"]["allowed"] for answer in answers) == 30
    assert keys.revoke(**whose) == "k"
    assert caller.ask("GET", "/key").status_code == 401
    assert asked(fresh, "GET", "/key").status_code == 200
    assert sums(ledger) == (30, 0, 0)
    check_counts(ledger.tenant)
