"""What is counted of a project in an hour, a day and a month: locked for a moment, always in this order (RULES S9)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID, uuid5

from base import db, prepared
from budgets.rules.words import Period

NOTHING: Final = Decimal(0)
_KEYS: Final = "(('hour', %s::timestamptz), ('day', %s::timestamptz), ('month', %s::timestamptz))"
_HERE: Final = f"SELECT count(*) FROM budgets_tally WHERE project_id = %s AND (period, starts_at) IN {_KEYS}"  # noqa: S608
_LOCK: Final = f"""
SELECT period, reserved + in_doubt + spent FROM budgets_tally
WHERE project_id = %s AND (period, starts_at) IN {_KEYS}
ORDER BY array_position(ARRAY['hour', 'day', 'month'], period::text) FOR NO KEY UPDATE
"""  # noqa: S608 - only names of ours
_BEGIN: Final = """
INSERT INTO budgets_tally (id, tenant_id, project_id, period, starts_at, reserved, in_doubt, spent)
VALUES (%s, %s, %s, %s, %s, 0, 0, 0) ON CONFLICT DO NOTHING
"""
_ADD: Final = f"""
UPDATE budgets_tally SET reserved = reserved + %s, in_doubt = in_doubt + %s, spent = spent + %s
WHERE project_id = %s AND (period, starts_at) IN {_KEYS}
"""  # noqa: S608 - only names of ours


def lock(project: UUID, starts: Mapping[Period, datetime]) -> Mapping[Period, Decimal]:
    """Take the periods that begin at these moments for the rest of the open write; what is counted in each of them.

    What is missing is added before any is locked: who held some while it waited for another could wait in a circle.
    """
    asked = [project, *(starts[period] for period in Period)]
    here = prepared.fetch_one(_HERE, asked)
    if here is None or here[0] < len(Period):
        for period in Period:
            name = uuid5(project, f"{period} {starts[period].isoformat()}")
            prepared.change(_BEGIN, [name, db.writing_tenant(), project, period.value, starts[period]])
    return {Period(period): amount for period, amount in prepared.fetch(_LOCK, asked)}


def add(
    project: UUID,
    starts: Mapping[Period, datetime],
    *,
    reserved: Decimal = NOTHING,
    in_doubt: Decimal = NOTHING,
    spent: Decimal = NOTHING,
) -> None:
    """Change what is counted. Demands that `lock` has taken them."""
    prepared.change(_ADD, [reserved, in_doubt, spent, project, *(starts[period] for period in Period)])
