"""An executor that dies anywhere leaves exactly the true states (RULES S1–S3, S5, S9; CASES J10)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from base import db
from budgets import errors
from budgets.models import Operation, Reservation
from budgets.operations import admitting, sweep
from budgets.rules.words import MOST_CHECKS, OperationState, Period
from studio.embedded import Postgres
from tests.budgets.executors import Executors, executors
from tests.budgets.ledgers import (
    HARD,
    Ledger,
    a_ledger,
    an_asking,
    an_id,
    cents,
    check_counts,
    found,
    reserved_by,
    states,
    sums,
)

CHECKS = [1, 2, 3, 1] * (MOST_CHECKS // 4)
Trial = Callable[[str], tuple[UUID, str]]


@pytest.fixture(scope="module")
def parent(cluster: Postgres) -> Iterator[Executors]:
    """One process that has read the code."""
    with executors(cluster.url_app) as forked:
        yield forked


def swept(ledger: Ledger) -> int:
    """What the sweep ends whose executor is gone."""
    with db.read(ledger.tenant) as now:
        gone = list(sweep.abandoned(now).values_list("pk", flat=True))
    return sum(sweep.interrupt(ledger.tenant, one) for one in gone)


@pytest.mark.rule("S3")
@pytest.mark.rule("S5")
@pytest.mark.timeout(600)  # 65 processes
@pytest.mark.usefixtures("database")
def test_a_crash_at_each_item_before_and_after_its_commit_leaves_what_is_true(
    parent: Executors, move_clock: Callable[[timedelta], None]
) -> None:
    ledger = a_ledger()
    trials: dict[UUID, int] = {}
    for index in range(MOST_CHECKS):
        for side, made in (("before", index), ("after", index + 1)):
            operation = an_id(ledger)
            ended = parent.execute(ledger, operation, CHECKS, crash_at=f"admit_check.{side}_commit:{index + 1}")
            assert ended == "killed"
            trials[operation] = made
    whole = an_id(ledger)
    assert parent.execute(ledger, whole, CHECKS) == "ended 0"  # the control: nothing else ends one
    assert states(found(ledger, whole)) == "c" * MOST_CHECKS
    check_counts(ledger.tenant)

    for operation, made in trials.items():  # looked up, and sent again, while nobody knows yet that it died
        batch = found(ledger, operation)
        finished = made == MOST_CHECKS
        assert batch.status is (OperationState.FINISHED if finished else OperationState.RUNNING)
        assert states(batch) == "c" * made + "a" * (MOST_CHECKS - made)
        assert len(reserved_by(batch)) == made
        again = admitting.submit(an_asking(ledger, *map(cents, CHECKS), operation=operation))
        assert again == batch  # nothing was started or resumed
    before = sums(ledger)
    move_clock(sweep.ABANDONED + timedelta(seconds=1))
    swept(ledger)
    for operation, made in trials.items():
        batch = found(ledger, operation)
        assert states(batch) == "c" * made + "a" * (MOST_CHECKS - made)
        assert batch.status is (OperationState.FINISHED if made == MOST_CHECKS else OperationState.INTERRUPTED)
        assert admitting.submit(an_asking(ledger, *map(cents, CHECKS), operation=operation)) == batch
    assert sums(ledger) == before  # what was reserved stays reserved (RULES S11)
    check_counts(ledger.tenant)


@pytest.mark.rule("S1")
@pytest.mark.usefixtures("database")
def test_a_crash_at_the_claim_leaves_nothing_or_an_operation_that_nobody_resumes(parent: Executors) -> None:
    ledger = a_ledger()
    before, after = an_id(ledger), an_id(ledger)
    assert parent.execute(ledger, before, [1, 2], crash_at="admit_batch.before_commit") == "killed"
    assert parent.execute(ledger, after, [1, 2], crash_at="admit_batch.after_commit") == "killed"
    with pytest.raises(errors.NotFound):
        found(ledger, before)
    assert states(found(ledger, after)) == "aa"
    assert parent.execute(ledger, after, [1, 2]) == "ended 0"
    assert states(found(ledger, after)) == "aa"
    assert parent.execute(ledger, before, [1, 2]) == "ended 0"  # a claim that was rolled back was none
    assert states(found(ledger, before)) == "cc"
    with db.read(ledger.tenant):
        assert (Operation.objects.count(), Reservation.objects.count()) == (2, 2)
    check_counts(ledger.tenant)


@pytest.mark.rule("S3")
@pytest.mark.usefixtures("database")
def test_one_that_only_stood_still_makes_no_check_after_the_sweep_has_ended_it(
    move_clock: Callable[[timedelta], None],
) -> None:
    ledger = a_ledger((Period.DAY, 1, HARD))
    asking = an_asking(ledger, cents(), cents())
    assert admitting.claim(asking) is None
    assert swept(ledger) == 0  # too soon to tell
    move_clock(sweep.ABANDONED + timedelta(seconds=1))
    assert swept(ledger) == 1
    assert sweep.interrupt(ledger.tenant, asking.operation) == 0
    admitting.execute(asking)
    assert states(found(ledger, asking.operation)) == "aa"
    assert sums(ledger) == (0, 0, 0)
