"""A node's requests to models are admitted by the spend journal before they are made, and confirmed after (S10)."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from base import db
from budgets import errors
from budgets.models import Limit, Operation, Reservation
from budgets.operations import agents
from budgets.rules.words import AUTHORITY, LimitMode, Period, ReservationState
from catalog.rules.agents import Limits, RunBounds
from jobs.models import Job, Turn
from jobs.operations import spending, turns
from jobs.rules.spending import Settled
from jobs.rules.states import JobState, TurnState
from jobs.rules.turns import TurnAnswer
from jobs.tasks import paying
from jobs.tasks.host import Host
from tests.budgets.ledgers import check_counts
from tests.builders import World, a_job, see, swept
from tests.host.test_models import NOWHERE, a_host, a_modelled_world, over, the_turn
from tests.servers.providers import Provider, Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]
PRICED = "openai-chat:gpt-4o"
ONE = Decimal("0.0006")  # dollars of 120 tokens in and 30 out
HARD, ALERT = LimitMode.HARD_DENY, LimitMode.ALERT_ONLY


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    with a_host(tmp_path, settings) as node:
        yield node


def a_limit(world: World, amount: str, mode: LimitMode = HARD, period: Period = Period.DAY) -> None:
    project = agents.project_of(tenant=world.tenant, agent=world.agent)
    with db.write(world.tenant) as now:
        Limit.objects.create(
            tenant_id=world.tenant,
            project_id=project,
            period=period,
            amount=Decimal(amount),
            mode=mode,
            changed_at=now,
        )


def reservations(world: World) -> list[Reservation]:
    with db.read(world.tenant):
        return list(Reservation.objects.order_by("checked_at"))


def standing(world: World) -> list[tuple[str, Decimal | None]]:
    return [(str(one.standing), one.spent) for one in reservations(world)]


def until_told(world: World) -> None:
    """The node tells the journal right after it has settled the turn."""

    def told() -> bool:
        with db.read(world.tenant):
            return not Turn.objects.exclude(to_confirm=[]).exists()

    until(told, "the journal was never told", 20)


@pytest.mark.rule("S10")
def test_each_request_is_reserved_before_it_is_made_and_confirmed_by_what_it_used(host: Host) -> None:
    go_on = threading.Event()
    with provider(Says("I look.", calls=(NOWHERE,)), Says("Done.", wait=go_on)) as here:
        world = a_modelled_world(here, PRICED)
        job = a_job(world)
        until(lambda: len(here.asked) == 2, "the second question never came", 30)
        until_told(world)
        first, second = reservations(world)
        go_on.set()
        assert over(world, job).output == "Done."
    assert (first.standing, first.spent) == (ReservationState.CONFIRMED, ONE)
    assert second.standing == ReservationState.LIVE, "reserved before its answer was there"
    assert second.amount > first.amount > ONE, "as much as its longest answer may cost, and it has read more"
    until_told(world)
    assert standing(world) == [("confirmed", ONE)] * 2
    assert [(one.of_job, one.closed_by) for one in reservations(world)] == [(job, agents.STUDIO)] * 2
    check_counts(world.tenant)


@pytest.mark.rule("S10")
@pytest.mark.parametrize(("mode", "state", "asked"), [(HARD, JobState.FAILED, 0), (ALERT, JobState.COMPLETED, 1)])
def test_what_does_not_fit_into_a_hard_limit_is_never_asked_and_the_job_says_which(
    host: Host, mode: LimitMode, state: JobState, asked: int
) -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        a_limit(world, "0.01", mode)
        row = over(world, a_job(world))
    assert (row.state, len(here.asked)) == (state, asked)
    if mode is HARD:
        assert (row.failure_kind, row.reason) == ("limit", "job_limit")
        assert "0.01 USD that agent clerk may spend in one day" in row.detail
        assert reservations(world) == []


@pytest.mark.rule("S10")
@pytest.mark.parametrize(("hard", "asked"), [(True, 0), (False, 1)])
def test_a_model_without_a_known_price_is_not_asked_where_a_limit_denies(host: Host, hard: bool, asked: int) -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here)
        a_limit(world, "100", HARD if hard else ALERT)
        row = over(world, a_job(world))
    assert len(here.asked) == asked
    assert row.failure_kind == ("limit" if hard else "")
    assert ("no known price" in row.detail) is hard
    assert reservations(world) == []


@pytest.mark.rule("S10")
@pytest.mark.parametrize(
    "error", [errors.OutcomeUnavailable(), errors.Busy(), RuntimeError("a bug")], ids=["unknown", "busy", "bug"]
)
def test_while_the_journal_does_not_say_so_no_model_is_asked(
    host: Host, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real, tries = agents.reserve, 0

    def reserve(**words: Any) -> agents.Admission:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise error
        return real(**words)

    monkeypatch.setattr(agents, "reserve", reserve)
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        row = over(world, job := a_job(world))
        before = len(here.asked)
    if isinstance(error, RuntimeError):
        assert (row.state, before) == (JobState.FAILED, 0)
        assert "RuntimeError" in row.detail and "a bug" not in row.detail
    else:
        assert (row.state, before, tries) == (JobState.COMPLETED, 1, 2)
        assert the_turn(world, job).asked == 2


@pytest.mark.rule("S10")
@pytest.mark.parametrize(
    ("says", "first"),
    [
        (Says(status=429, error="slow down", headers={"Retry-After": "0"}), "confirmed"),
        (Says("a rather long answer", cut=150), "live"),
        (Says(status=500, error="no", headers={"Retry-After": "0"}), "live"),
    ],
    ids=["refused", "broken off", "its own error"],
)
def test_a_request_that_may_have_been_worked_on_stays_reserved_and_its_repetition_reserves_anew(
    host: Host, says: Says, first: str
) -> None:
    with provider(says, Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        assert over(world, a_job(world)).output == "Done."
    until_told(world)
    assert standing(world) == [(first, Decimal(0) if first == "confirmed" else None), ("confirmed", ONE)]
    with db.read(world.tenant):
        assert Operation.objects.count() == 2, "each asking is an operation of its own"


@pytest.mark.rule("S10")
@pytest.mark.parametrize(
    ("says", "spent"),
    [(Says("cut short", stop="length"), ONE), (Says(status=400, error="no"), Decimal(0))],
    ids=["cut off", "refused"],
)
def test_a_turn_that_failed_is_confirmed_by_what_it_used_too(host: Host, says: Says, spent: Decimal) -> None:
    with provider(says) as here:
        world = a_modelled_world(here, PRICED)
        assert over(world, a_job(world)).state == JobState.FAILED
    until_told(world)
    assert standing(world) == [("confirmed", spent)]


def test_a_summary_that_does_not_fit_into_a_limit_fails_the_job_as_any_request(host: Host) -> None:
    with provider(Says("I look.", calls=(NOWHERE,)), Says("So far.")) as here:
        world = a_modelled_world(here, PRICED, runs=RunBounds(0, 1), limits=Limits(turns=9), max_tokens=100)
        a_limit(world, "0.0026", period=Period.MONTH)
        row = over(world, job := a_job(world))
    assert (row.failure_kind, len(here.asked)) == ("limit", 1), row.detail
    assert "in one month" in row.detail
    assert (the_turn(world, job).sums_up, the_turn(world, job).state) == (True, TurnState.FAILED)


# --- without a node ----------------------------------------------------------------------------------------------


class Asks:
    """What a question needs of a host: its answer, and writes that commit at once."""

    def __init__(self, here: Provider, **usage: int) -> None:
        self.here, self.usage = here, {"input_tokens": 120, "output_tokens": 30, **usage}
        self.began_by: float | None = None

    def answer_to(self, order: Any) -> TurnAnswer:
        self.began_by = order.begin_by
        return TurnAnswer("Done.", usage=self.usage)

    def until_committed(self, act: Any) -> Any:
        return act()


def an_order(world: World) -> Any:
    order = turns.start(tenant=world.tenant, job_id=a_job(world), node_id=world.node)
    assert order is not None
    return order


@pytest.mark.rule("S4")
@pytest.mark.rule("S10")
def test_a_request_that_is_late_is_not_sent_under_a_reservation_whose_authority_may_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr(paying, "boot_time", lambda: now)
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        asks = Asks(here)
        paying.ask(asks, an_order(world))  # type: ignore[arg-type]
    assert asks.began_by is not None
    assert asks.began_by - now < AUTHORITY.total_seconds()


@pytest.mark.rule("S10")
def test_what_a_dead_node_did_not_come_to_tell_is_told_by_the_sweep_once(
    monkeypatch: pytest.MonkeyPatch, move_clock: Any
) -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        monkeypatch.setattr(spending, "tell", lambda **_: None)  # as if it had died just then
        paying.ask(Asks(here), order := an_order(world))  # type: ignore[arg-type]
        monkeypatch.undo()
    assert see(world, Job, order.job_id).state == JobState.COMPLETED
    assert standing(world) == [("live", None)]
    (kept,) = see(world, Turn, order.turn_id).to_confirm
    move_clock(timedelta(seconds=10))
    swept(lose_nodes=False)
    assert standing(world) == [("live", None)], "its node may still be about it"
    move_clock(timedelta(minutes=20))
    swept(lose_nodes=False)
    assert standing(world) == [("confirmed", ONE)], "also after its authority has ended"
    assert see(world, Turn, order.turn_id).to_confirm == []
    again = [Settled.from_json(kept)]
    spending.tell(tenant=world.tenant, agent=world.agent, turn_id=order.turn_id, told=again)
    check_counts(world.tenant)


@pytest.mark.rule("S10")
def test_an_answer_that_comes_to_a_turn_asked_elsewhere_meanwhile_is_confirmed_all_the_same() -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        order = an_order(world)
        elsewhere = TurnAnswer("Done elsewhere.")
        turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=elsewhere)
        paying.ask(Asks(here), order)  # type: ignore[arg-type]
    assert see(world, Job, order.job_id).output == "Done elsewhere."
    assert standing(world) == [("confirmed", ONE)]


@pytest.mark.rule("S10")
@pytest.mark.parametrize("usage", [{"input_tokens": 10**12 + 1}, {"output_tokens": -1}, {"cache_read_tokens": 10**13}])
def test_what_no_provider_can_have_counted_confirms_nothing(usage: dict[str, int]) -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        paying.ask(Asks(here, **usage), order := an_order(world))  # type: ignore[arg-type]
    assert see(world, Job, order.job_id).output == "Done."
    assert standing(world) == [("live", None)], "nobody knows what it cost, so it will be in doubt"
    assert see(world, Turn, order.turn_id).to_confirm == []


@pytest.mark.rule("S10")
def test_what_is_to_be_told_since_then_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider(Says("Done.")) as here:
        world = a_modelled_world(here, PRICED)
        monkeypatch.setattr(spending, "tell", lambda **_: None)
        paying.ask(Asks(here), order := an_order(world))  # type: ignore[arg-type]
        monkeypatch.undo()
    (kept,) = see(world, Turn, order.turn_id).to_confirm
    later = {**kept, "reservation": str(order.turn_id)}
    with db.write(world.tenant):
        Turn.objects.filter(pk=order.turn_id).update(to_confirm=[kept, later])
    told = [Settled.from_json(kept)]
    spending.tell(tenant=world.tenant, agent=world.agent, turn_id=order.turn_id, told=told)
    assert see(world, Turn, order.turn_id).to_confirm == [later]
    assert standing(world) == [("confirmed", ONE)]
