"""PostgreSQL is taken away under the spend journal and comes back: what stands there is exactly what was committed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from base import db
from budgets.models import Reservation
from budgets.operations import sweep, tallies
from budgets.rules import busy
from budgets.rules.words import ReservationState
from tests.budgets.callers import Caller, a_check, codes
from tests.budgets.ledgers import Ledger, an_id, another, check_counts, found, reserved_by, states, sums
from tests.faults.stand import Services

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
HOWS = pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill -9"])
LOST = (503, "outcome_unavailable")


@contextmanager
def without_database(stand: Services) -> Iterator[None]:
    """The server is started again afterwards, and this process connects anew."""
    yield
    connection.close()
    stand.postgres.start()


def goes_at(stand: Services, number: int, kill: bool) -> Callable[..., Any]:
    """Takes the counts as they are taken, but for this time: then the server ends first, in an open transaction."""
    real, left = tallies.lock, iter(range(number - 1))

    def lock(*what: Any) -> Any:
        if next(left, None) is None:
            (stand.postgres.kill if kill else stand.postgres.stop)()
        return real(*what)

    return lock


def a_caller(stand: Services, name: str) -> tuple[Ledger, Caller]:
    ledger = another(stand.tenant, name=name)
    return ledger, Caller(ledger, name)


@HOWS
@pytest.mark.rule("S3")
def test_a_batch_has_the_items_that_were_committed_before_the_database_went(
    stand: Services, kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES J06."""
    ledger, caller = a_caller(stand, f"batch {kill}")
    operation, never, checks = an_id(ledger), an_id(ledger), [a_check()] * 4
    with without_database(stand):
        with monkeypatch.context() as patch:
            patch.setattr(tallies, "lock", goes_at(stand, 3, kill))
            lost = caller.submit(*checks, operation=operation)
        refused = caller.submit(*checks, operation=never)
        looked = caller.look_up(operation)
    assert codes([lost]) == [LOST] and "Retry-After" not in lost
    assert codes([refused, looked]) == [(503, "admission_failed")] * 2
    assert (refused["Retry-After"], refused.json()["detail"]["message"]) == (busy.RETRY_AFTER, busy.NO_DATABASE)
    batch = found(ledger, operation)
    assert (states(batch), len(reserved_by(batch)), sums(ledger)) == ("ccaa", 2, (2, 0, 0))
    assert codes([caller.look_up(never)]) == [(404, "operation_not_found")], "what was not accepted is not there"
    assert caller.submit(*checks, operation=operation).json()["status"] == "running", "nobody resumes it"
    stand.move_clock((sweep.ABANDONED + timedelta(seconds=1)).total_seconds())
    assert sweep.interrupt(ledger.tenant, operation) == 1
    assert (states(found(ledger, operation)), sums(ledger)) == ("ccaa", (2, 0, 0))
    check_counts(ledger.tenant)


@HOWS
@pytest.mark.rule("S8")
def test_a_confirmation_that_the_database_did_not_outlive_is_none_and_is_sent_again(
    stand: Services, kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES J06."""
    ledger, caller = a_caller(stand, f"confirm {kill}")
    reservation = caller.submit(a_check()).json()["items"][0]["result"]["reservation_id"]
    with without_database(stand), monkeypatch.context() as patch:
        patch.setattr(tallies, "lock", goes_at(stand, 1, kill))
        lost = caller.confirm(reservation)
    assert codes([lost]) == [LOST]
    with db.read(ledger.tenant):
        assert Reservation.objects.get(pk=reservation).standing == ReservationState.LIVE
    assert sums(ledger) == (1, 0, 0)
    assert caller.confirm(reservation).status_code == 204
    assert sums(ledger) == (0, 0, 1)
    check_counts(ledger.tenant)
