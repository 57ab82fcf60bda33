"""The counts equal a recount whatever comes in whatever order, and never pass a limit (RULES S2, S9; J01, J05)."""

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest import mock
from uuid import UUID

import psycopg
import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from base import db
from budgets import errors
from budgets.models import Key, Limit, Reservation, Tally
from budgets.operations import admitting, keys, settling, sweep
from budgets.rules.checks import Check
from budgets.rules.identity import time_of
from budgets.rules.periods import next_start, starts
from budgets.rules.words import AUTHORITY, ItemState, KeyScope, LimitMode, OperationState, Period
from studio.embedded import Postgres
from tenants.rules.who import Actor
from tests.budgets.callers import a_seat, a_secret
from tests.budgets.ledgers import (
    CENT,
    HARD,
    a_ledger,
    an_asking,
    an_id,
    another,
    at_noon,
    cents,
    check_counts,
    found,
    reserved_by,
    states,
    submitted,
    sums,
    used_cents,
)
from tests.races import Side, told

CALLERS = 100
ROUNDS = int(os.environ.get("OZ0_ROUNDS", "2"))  # 500 when run at length: `make rounds`


# --- in any order, with hypothesis ----------------------------------------------------------------------------------


class Died(BaseException):
    """The end of an executor, as far as what it does next goes."""


def dying(after: int) -> Any:
    """Let an executor die when it has made so many checks."""
    real, left = admitting._make, iter(range(after))

    def make(*what: Any) -> bool:
        if next(left, None) is None:
            raise Died
        return real(*what)

    return mock.patch.object(admitting, "_make", make)


class Interleavings(RuleBasedStateMachine):
    """Callers, crashes, lost replies, people, keys and time, in any order; a recount after every commit."""

    url_admin = ""
    slug = 0

    @initialize(hour=st.integers(1, 12), month=st.integers(5, 40), lapse=st.booleans())
    def begin(self, hour: int, month: int, lapse: bool) -> None:
        Interleavings.slug += 1
        self.hour, self.month = hour, month
        self.ledger = a_ledger(
            (Period.HOUR, hour * CENT, HARD),
            (Period.MONTH, month * CENT, HARD),
            slug=f"w{Interleavings.slug}",
            unconfirmed="lapse" if lapse else "in_doubt",
            zone="America/St_Johns",
        )
        self.other = another(self.ledger.tenant, name="other")
        self.pat = Actor("pat", "test", a_seat(self.ledger).person_id)
        self.asked: dict[UUID, admitting.Asking] = {}
        self.claimed: list[UUID] = []
        self.reserved: list[UUID] = []
        self.confirmed: dict[UUID, int] = {}
        self.history: dict[UUID, Any] = {}
        self.keys = 0

    def pick(self, among: Any, draw: int) -> Any:
        among = list(among)
        return among[draw % len(among)]

    @rule(counts=st.lists(st.integers(0, 4), min_size=1, max_size=4), ago=st.integers(0, 26 * 60))
    def submit(self, counts: list[int], ago: int) -> None:
        operation = an_id(self.ledger, timedelta(minutes=ago))
        asking = an_asking(self.ledger, *map(cents, counts), operation=operation)
        if ago >= 24 * 60:
            with pytest.raises(errors.Expired):
                admitting.submit(asking)
            return
        batch = admitting.submit(asking)
        assert batch.status is OperationState.FINISHED
        self.remember(asking)

    @rule(counts=st.lists(st.integers(0, 4), min_size=1, max_size=4), made=st.integers(0, 4))
    def crash(self, counts: list[int], made: int) -> None:
        """An executor that dies after so many items; its reply never comes."""
        asking = an_asking(self.ledger, *map(cents, counts))
        assert admitting.claim(asking) is None
        self.claimed.append(asking.operation)
        with dying(made), contextlib.suppress(Died):
            admitting.execute(asking)
        self.remember(asking)

    def remember(self, asking: admitting.Asking) -> None:
        batch = found(self.ledger, asking.operation)
        self.asked[asking.operation] = asking
        self.history[asking.operation] = batch.items
        self.reserved += reserved_by(batch)

    @precondition(lambda self: self.asked)
    @rule(draw=st.integers(0, 1_000), changed=st.booleans())
    def send_again(self, draw: int, changed: bool) -> None:
        """The reply was lost, or somebody reuses an id."""
        asking = self.asked[self.pick(self.asked, draw)]
        checks = [*asking.checks[:-1], cents(9)] if changed else asking.checks
        try:
            batch = admitting.submit(an_asking(self.ledger, *checks, operation=asking.operation))
        except errors.Expired:
            return
        except errors.Conflict:
            assert changed
            return
        assert not changed and batch.items == self.history[asking.operation]

    @precondition(lambda self: self.asked)
    @rule(draw=st.integers(0, 1_000))
    def look_up(self, draw: int) -> None:
        operation = self.pick(self.asked, draw)
        for ledger in (self.ledger, self.other):
            try:
                assert found(ledger, operation).items == self.history[operation]
                assert ledger is self.ledger
            except errors.Expired:
                pass
            except errors.NotFound:
                assert ledger is self.other

    @precondition(lambda self: self.reserved)
    @rule(draw=st.integers(0, 1_000), count=st.integers(0, 6))
    def confirm(self, draw: int, count: int) -> None:
        """The first time, again, or otherwise than before."""
        reservation = self.pick(self.reserved, draw)
        whose: dict[str, Any] = {"tenant": self.ledger.tenant, "project": self.ledger.project}
        try:
            settling.confirm(reservation=reservation, used=used_cents(count), by="k", **whose)
        except errors.Expired:
            return
        except errors.Conflict:
            assert self.confirmed.get(reservation, -1) != count
            return
        assert self.confirmed.setdefault(reservation, count) == count

    @precondition(lambda self: self.reserved)
    @rule(draw=st.integers(0, 1_000), how=st.sampled_from(["release", "confirm", "withdraw"]))
    def settle(self, draw: int, how: str) -> None:
        """A person, or the loop that knows that nothing went out."""
        reservation = self.pick(self.reserved, draw)
        whose: dict[str, Any] = {"tenant": self.ledger.tenant, "reservation": reservation}
        try:
            if how == "withdraw":
                settling.withdraw(by="loop", **whose)
            elif how == "release":
                settling.release(note="", actor=self.pat, **whose)
            else:
                settling.confirm_as_person(amount=2 * CENT, note="", actor=self.pat, **whose)
                self.confirmed[reservation] = -2
        except errors.NotOpen:
            pass

    @rule(seconds=st.sampled_from([1, 31, 120, 301, 3_700, 90_000, 40 * 86_400]))
    def wait(self, seconds: int) -> None:
        with psycopg.connect(self.url_admin, autocommit=True) as admin:
            admin.execute("UPDATE oz0_clock SET ahead = ahead + %s", [timedelta(seconds=seconds)])

    @rule()
    def sweep(self) -> None:
        with db.read(self.ledger.tenant) as now:
            due = list(sweep.due(now).values_list("pk", flat=True))
            gone = list(sweep.abandoned(now).values_list("pk", flat=True))
            old = list(sweep.long_over(now).values_list("pk", flat=True))
        for one in due:
            assert sweep.move_on(self.ledger.tenant, one) == 1
            check_counts(self.ledger.tenant)
        for one in gone:
            assert sweep.interrupt(self.ledger.tenant, one) == 1
        for one in old:
            sweep.clear(self.ledger.tenant, one)

    @rule()
    def rotate(self) -> None:
        self.keys += 1
        with db.read(self.ledger.tenant):
            key = Key.objects.order_by("-pk").values_list("pk", flat=True).first()
        name = a_secret(f"{self.slug}x{self.keys}x")
        whose: dict[str, Any] = {"tenant": self.ledger.tenant, "secret": name, "actor": self.pat}
        if key is None:
            keys.make(project=self.ledger.project, name="k", scope=KeyScope.FULL, **whose)
        else:
            keys.rotate(key=key, **whose)

    @invariant()
    def the_counts_equal_a_recount_and_admissions_fit(self) -> None:
        if not hasattr(self, "ledger"):
            return
        check_counts(self.ledger.tenant)
        with db.read(self.ledger.tenant):
            for row in Reservation.objects.filter(standing="live").select_related("project"):
                assert row.operation_id in self.asked or row.operation_id is None
            # what is open fits, whatever the confirmations came to
            for tally in Tally.objects.filter(project_id=self.ledger.project):
                cap = {"hour": self.hour, "month": self.month}.get(tally.period)
                assert cap is None or tally.reserved + tally.in_doubt <= cap * CENT


@pytest.mark.rule("S9")
@pytest.mark.rule("S2")
@pytest.mark.timeout(300)
def test_in_any_order_the_counts_equal_a_recount_after_every_commit(database: Postgres) -> None:
    Interleavings.url_admin = database.url_admin
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Interleavings,
        settings=settings(
            max_examples=int(os.environ.get("OZ0_EXAMPLES", "12")),
            stateful_step_count=25,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# --- many at once ---------------------------------------------------------------------------------------------------


def _closing(act: Callable[[], Any]) -> Any:
    try:
        return act()
    finally:
        connection.close()


@pytest.mark.rule("S9")
@pytest.mark.timeout(1_800 + 4 * ROUNDS)
@pytest.mark.usefixtures("database")
def test_of_a_hundred_at_once_exactly_those_that_fit_are_allowed(move_clock: Callable[[timedelta], None]) -> None:
    """CASES J01: 100 callers of 1 against 10 left, in every round; each round in a project of its own.

    CASES J03: nothing listens where these tests' cache would be, so every decision comes from PostgreSQL.
    """
    tenant = a_ledger().tenant
    at_noon(tenant, move_clock)  # each day has its own ten
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(20) as pool:
        for number in range(ROUNDS):
            ledger = another(tenant, (Period.DAY, 10 * CENT, HARD), name=f"round {number}")
            batches = list(pool.map(lambda _, to=ledger: _closing(lambda: submitted(to, cents())), range(CALLERS)))
            allowed = [item.decision.allowed for batch in batches for item in batch.items if item.decision]
            assert (len(allowed), sum(allowed)) == (CALLERS, 10)
            assert sums(ledger) == (10, 0, 0)
            counts.update({"allowed": 10, "denied": CALLERS - 10})
    check_counts(tenant)
    told("a hundred at once", counts)


@pytest.mark.rule("S9")
@pytest.mark.usefixtures("database")
def test_a_hundred_at_once_of_both_sides_of_an_hours_end_fit_into_each_hours_own_limit(
    move_clock: Callable[[timedelta], None],
) -> None:
    """CASES J01, J05: half of the ids are of the hour that is over; a day's limit holds over both."""
    tenant = a_ledger().tenant
    at_noon(tenant, move_clock)
    ledger = another(tenant, (Period.HOUR, 10 * CENT, HARD), (Period.DAY, 15 * CENT, HARD), name="rolls over")
    before, after = (timedelta(minutes=10), timedelta())
    move_clock(timedelta(minutes=5))
    operations = [an_id(ledger, before if number % 2 else after) for number in range(CALLERS)]
    with ThreadPoolExecutor(20) as pool:
        batches = list(pool.map(lambda name: _closing(lambda: submitted(ledger, cents(), operation=name)), operations))
    allowed = Counter(
        time_of(batch.operation).hour
        for batch in batches
        for item in batch.items
        if item.decision and item.decision.allowed
    )
    assert set(allowed) <= {11, 12} and sum(allowed.values()) == 15
    assert max(allowed.values()) <= 10
    check_counts(tenant)


@pytest.mark.rule("S1")
@pytest.mark.usefixtures("database")
def test_of_many_who_send_one_id_at_once_one_executes() -> None:
    ledger = a_ledger()
    with ThreadPoolExecutor(12) as pool:
        for _ in range(3):
            operation = an_id(ledger)
            batches = list(
                pool.map(
                    lambda _, name=operation: _closing(
                        lambda: submitted(ledger, cents(), cents(2), cents(), operation=name)
                    ),
                    range(12),
                )
            )
            assert any(batch.status is OperationState.FINISHED for batch in batches)
            assert [item.state for item in found(ledger, operation).items] == [ItemState.COMPLETED] * 3
    assert sums(ledger) == (12, 0, 0)
    check_counts(ledger.tenant)


@pytest.mark.rule("S9")
@pytest.mark.usefixtures("database")
def test_checks_confirmations_releases_and_sweeps_at_once_keep_the_counts_and_never_lock_each_other(
    move_clock: Callable[[timedelta], None],
) -> None:
    ledger = a_ledger((Period.DAY, 200 * CENT, HARD), (Period.HOUR, 150 * CENT, HARD))
    dice = random.Random(9)
    for _ in range(2):
        held = [reserved_by(submitted(ledger, *[cents()] * 8)) for _ in range(4)]
        move_clock(AUTHORITY)
        reservations = [one for batch in held for one in batch]
        pat = Actor("pat", "test", a_seat(ledger).person_id)

        def act(one: UUID, pat: Actor = pat) -> None:
            whose: dict[str, Any] = {"tenant": ledger.tenant, "reservation": one}
            with contextlib.suppress(errors.NotOpen, errors.Conflict):
                {
                    0: lambda: settling.confirm(project=ledger.project, used=used_cents(2), by="k", **whose),
                    1: lambda: settling.release(note="", actor=pat, **whose),
                    2: lambda: settling.age(**whose),
                    3: lambda: submitted(ledger, cents(), cents()),
                }[dice.randrange(4)]()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one, do=act: _closing(lambda: do(one)), reservations * 2))
        check_counts(ledger.tenant)


# --- in which period ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("database")
def test_each_admission_is_counted_in_the_period_of_its_id(move_clock: Callable[[timedelta], None]) -> None:
    """CASES J05: a period that ended between the id and the check, and one whose confirmation comes after it."""
    ledger = a_ledger((Period.HOUR, 3 * CENT, HARD))
    early = an_id(ledger)
    first = submitted(ledger, cents(3))
    move_clock(timedelta(hours=1))
    late = submitted(ledger, cents(1), operation=early)  # counted in the hour that is full already
    fresh = submitted(ledger, cents(3))
    assert late.items[0].decision is not None and fresh.items[0].decision is not None
    same_hour = time_of(first.operation).hour == time_of(early).hour
    assert (late.items[0].decision.allowed, fresh.items[0].decision.allowed) == (not same_hour, True)
    (reservation,) = reserved_by(first)
    settling.confirm(tenant=ledger.tenant, project=ledger.project, reservation=reservation, used=used_cents(2), by="k")
    with db.read(ledger.tenant):
        hours = dict(Tally.objects.filter(period="hour").values_list("starts_at", "spent"))
    assert hours[starts(time_of(first.operation), "UTC")[Period.HOUR]] == 2 * CENT
    check_counts(ledger.tenant)


@pytest.mark.parametrize(
    ("moment", "zone", "day", "month"),
    [
        ("2026-03-29T00:59:59.999Z", "Europe/Berlin", "2026-03-28T23:00Z", "2026-02-28T23:00Z"),
        ("2026-03-29T22:00:00Z", "Europe/Berlin", "2026-03-29T22:00Z", "2026-02-28T23:00Z"),  # a day of 23 h
        ("2026-10-25T22:59:59Z", "Europe/Berlin", "2026-10-24T22:00Z", "2026-09-30T22:00Z"),  # one of 25 h
        ("2026-10-25T23:00:00Z", "Europe/Berlin", "2026-10-25T23:00Z", "2026-09-30T22:00Z"),
        ("2016-12-31T23:59:59.999Z", "UTC", "2016-12-31T00:00Z", "2016-12-01T00:00Z"),  # a leap second follows
        ("2017-01-01T00:00:00Z", "UTC", "2017-01-01T00:00Z", "2017-01-01T00:00Z"),
        ("2026-11-01T02:00:00Z", "America/St_Johns", "2026-10-31T02:30Z", "2026-10-01T02:30Z"),
    ],
)
def test_days_and_months_begin_at_midnight_of_the_zone_however_long_they_are(
    moment: str, zone: str, day: str, month: str
) -> None:
    """CASES J05: daylight saving and leap seconds."""
    at = datetime.fromisoformat(moment)
    found = starts(at, zone)
    assert found[Period.DAY] == datetime.fromisoformat(day)
    assert found[Period.MONTH] == datetime.fromisoformat(month)
    assert found[Period.HOUR] == at.replace(minute=0, second=0, microsecond=0)
    for period, start in found.items():
        after = next_start(period, start, zone)
        assert start <= at < after
        assert starts(after, zone)[period] == after
        assert starts(after - timedelta(milliseconds=1), zone)[period] == start


@pytest.mark.usefixtures("database")
def test_a_check_that_fails_ends_its_operation_with_no_effect_and_the_rest_unattempted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = a_ledger((Period.DAY, 1, HARD))
    batch = submitted(ledger, cents(), Check("nobody-knows", "openai", 1), cents())
    assert [item.state.value for item in batch.items] == ["completed", "failed", "unattempted"]
    assert (batch.status, batch.items[1].error_code) == (OperationState.INTERRUPTED, "check_failed")
    real = Reservation.objects.create

    def broken(**values: Any) -> Any:
        real(**values)
        raise ValueError("a bug, after something was written")

    with monkeypatch.context() as patch:
        patch.setattr(Reservation.objects, "create", broken)
        batch = submitted(ledger, cents(), cents())
    assert [item.state.value for item in batch.items] == ["failed", "unattempted"]
    assert sums(ledger) == (1, 0, 0)
    open_ledger = another(ledger.tenant, name="open")  # where nothing denies, it is allowed, and told as what it is
    (item,) = submitted(open_ledger, Check("nobody-knows", "openai", 1)).items
    assert item.decision is not None and item.decision.allowed and item.decision.reservation_id is None
    check_counts(ledger.tenant)


@pytest.mark.usefixtures("database")
def test_the_decision_is_told_with_the_very_figures_it_was_made_with() -> None:
    """CASES J07."""
    ledger = a_ledger((Period.DAY, 5 * CENT, HARD), (Period.MONTH, 4 * CENT, LimitMode.ALERT_ONLY))
    first, second, third = (submitted(ledger, cents(count)).items[0].decision for count in (3, 2, 1))
    assert first and second and third
    assert (first.mode, first.budget_limit, first.current_usage, first.remaining_budget) == (
        LimitMode.ALERT_ONLY,
        4 * CENT,
        Decimal(0),
        1 * CENT,
    )
    assert (second.allowed, second.mode, second.remaining_budget) == (True, LimitMode.ALERT_ONLY, -1 * CENT)
    assert (third.allowed, third.denied_by_period, third.current_usage, third.budget_limit) == (
        False,
        Period.DAY,
        5 * CENT,
        5 * CENT,
    )
    with db.write(ledger.tenant):
        Limit.objects.filter(period="day").update(amount=Decimal("0.06"))
    after = submitted(ledger, cents()).items[0].decision
    assert after and after.allowed


@pytest.mark.rule("S9")
def test_checks_that_meet_in_a_new_hour_of_a_day_that_has_begun_wait_for_each_other_in_no_circle(
    move_clock: Callable[[timedelta], None],
) -> None:
    ledger = a_ledger((Period.MONTH, 1_000, HARD))
    at_noon(ledger.tenant, move_clock)
    submitted(ledger, cents())
    move_clock(timedelta(hours=1))
    callers = [Side(lambda: submitted(ledger, *[cents()] * 4)).start() for _ in range(20)]
    assert [states(caller.join()) for caller in callers] == ["cccc"] * 20
    check_counts(ledger.tenant)
