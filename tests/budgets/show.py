"""A workspace whose journal has one of everything, for tests of its pages and for looking at them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from base import db, ids
from budgets.models import Project
from budgets.operations import admitting, agents, settling, sweep
from budgets.rules.words import LimitMode, Period
from tenants.queries.seats import seats_of
from tests.budgets.callers import Caller, a_check, an_event
from tests.budgets.ledgers import (
    CENT,
    HARD,
    Ledger,
    an_asking,
    an_id,
    another,
    at_noon,
    cents,
    reserved_by,
    submitted,
    used_cents,
)
from tests.builders import World

type Move = Callable[[timedelta], None]


def moving(url_admin: str) -> Move:
    """Moves the database's clock."""

    def move(ahead: timedelta) -> None:
        with psycopg.connect(url_admin, autocommit=True) as admin:
            admin.execute("UPDATE oz0_clock SET ahead = ahead + %s", [ahead])

    return move


def a_journal(world: World, move: Move, *, many: int = 3) -> tuple[Ledger, dict[str, Any]]:
    """Spent, in doubt, reserved, denied, failed, interrupted and told; the operations by what is to be seen of them."""
    at_noon(world.tenant, move)
    ledger = another(
        world.tenant,
        (Period.HOUR, 60 * CENT, HARD),
        (Period.DAY, 400 * CENT, LimitMode.ALERT_ONLY),
        name="nightly reports",
    )
    another(world.tenant, (Period.MONTH, 20 * CENT, LimitMode.ALERT_ONLY), name="a project that nobody uses")
    seat = next(one for one in seats_of(world.person) if one.tenant == world.tenant)
    caller = Caller(ledger, "build server", seat=seat)
    whose: dict[str, Any] = {"tenant": ledger.tenant, "project": ledger.project}
    doubt = submitted(ledger, cents(11), cents(4), cents(2))
    interrupted = an_asking(ledger, *[cents(1)] * 5, key=caller.key)
    admitting.claim(interrupted)
    with db.read(world.tenant):
        project = Project.objects.get(pk=ledger.project)
    for index in range(2):
        admitting._make(interrupted, project, index, cents(1), CENT)
    asked: dict[str, Any] = {"tenant": world.tenant, "agent": "clerk", "job": ids.new(), "turn": ids.new()}
    agents.reserve(operation=an_id(ledger), check=cents(3), **asked)
    agents.reserve(operation=an_id(ledger), check=cents(1, model="claude-sonnet-4-0", provider="anthropic"), **asked)
    move(timedelta(seconds=301))
    with db.read(world.tenant) as now:
        due = [row.pk for row in sweep.due(now)]
        gone = [row.pk for row in sweep.abandoned(now)]
    for one in due:
        sweep.move_on(world.tenant, one)
    for one in gone:
        sweep.interrupt(world.tenant, one)
    settling.confirm(reservation=reserved_by(doubt)[1], used=used_cents(5), by="key build server", **whose)
    finished = submitted(ledger, cents(20), cents(300), cents(2, model="😀 <b>" + "m" * 200, provider="rehearsal"))
    failed = submitted(ledger, cents(1), cents(1, model="nobody-knows"), cents(1))
    for _ in range(many):
        caller.submit(a_check(0))
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    caller.ingest(*[an_event(f"call {n}", at + timedelta(seconds=n), agent_run_id="nightly") for n in range(3)])
    named = {"interrupted": interrupted.operation, "finished": finished.operation, "failed": failed.operation}
    return ledger, named
