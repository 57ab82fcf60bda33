"""Operations: who executes, what is history, and what never overshoots (RULES S1–S4, S9; CASES section 11)."""

from datetime import timedelta
from decimal import Decimal

import pytest

from budgets.rules.words import OperationState, Period
from tests.budgets.ledgers import (
    HARD,
    a_ledger,
    cents,
    check_counts,
    states,
    submitted,
    sums,
)

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.rule("S3")
def test_checks_are_made_in_their_order_and_a_denial_is_completed() -> None:
    ledger = a_ledger((Period.DAY, "0.05", HARD))
    batch = submitted(ledger, cents(2), cents(9), cents(3), cents(1))
    assert (batch.status, states(batch)) == (OperationState.FINISHED, "cccc")
    told = [item.decision for item in batch.items if item.decision is not None]
    assert [decision.allowed for decision in told] == [True, False, True, False]
    assert told[1].denied_by_period is Period.DAY
    assert (told[1].current_usage, told[1].budget_limit, told[1].remaining_budget) == (
        Decimal("0.02"),
        Decimal("0.05"),
        Decimal("0.03"),
    )
    for item in batch.items:
        assert item.checked_at is not None and item.decision is not None
        if item.decision.reservation_id is None:
            assert item.reservation_expires_at is None
        else:
            assert item.reservation_expires_at == item.checked_at + timedelta(seconds=300)
    assert sums(ledger) == (5, 0, 0)
    check_counts(ledger.tenant)
