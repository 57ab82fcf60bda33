"""A node is killed around a request to a model: what it may have cost stays counted until that is known (RULES S10).

Before the request, while its answer is waited for, and before it was confirmed. Each is asked again, or known already.
"""

import textwrap
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from pytest_django import DjangoDbBlocker

from base import db
from budgets.models import Limit, Receipt, Reservation
from budgets.operations import agents
from budgets.rules.words import AUTHORITY, DOUBT, LimitMode, Period
from catalog.models import Credential
from catalog.operations import connections
from catalog.operations.connections import Given
from jobs.models import Job, Turn
from jobs.operations.spending import LEFT
from jobs.rules.limits import LEASE
from jobs.rules.states import JobState, TurnState
from tenants.rules.who import SYSTEM
from tests.budgets.ledgers import check_counts
from tests.faults.stand import RunningNode, Services, a_stand
from tests.servers.providers import Provider, Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
PATIENCE = 90.0
ONE = Decimal("0.0006")  # dollars of 120 tokens in and 30 out
PAYER = textwrap.dedent("""
    name: {name}
    model: openai-chat:gpt-4o
    limits: {{minutes: 500000}}
""")
AGENTS = ("before", "after", "unconfirmed", "confirmed")


@pytest.fixture(scope="module")
def here() -> Iterator[Provider]:
    with provider(Says("Done.")) as found:
        yield found


@pytest.fixture(scope="module")
def stand(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker, here: Provider
) -> Iterator[Services]:
    with django_db_blocker.unblock(), a_stand(tmp_path_factory.mktemp("stand")) as made:
        made.use_plugin(files={f"agents/{name}.yaml": PAYER.format(name=name) for name in AGENTS})
        given = {"allowed": [here.place], "given": Given(Credential.BEARER, "the-key"), "actor": SYSTEM}
        connections.make(tenant=made.tenant, name="openai", url=f"{here.url}/v1", **given)
        made.move_clock(to_mid_month(made))
        yield made


@pytest.fixture(autouse=True)
def nothing_left(stand: Services) -> Iterator[None]:
    """A test that fails leaves no node to the next one."""
    yield
    stand.kill_nodes()


def to_mid_month(stand: Services) -> float:
    """Seconds to a day of next month that no clock which these tests move leaves for another month."""
    with db.read(stand.tenant) as now:
        there = (now.replace(day=1) + timedelta(days=32)).replace(day=10)
        return (there - now).total_seconds()


def reservations(stand: Services, agent: str) -> list[Reservation]:
    with db.read(stand.tenant):
        return list(Reservation.objects.filter(project__agent=agent).order_by("checked_at"))


def standing(stand: Services, agent: str) -> list[tuple[str, Decimal | None]]:
    return [(str(one.standing), one.spent) for one in reservations(stand, agent)]


def the_turn(stand: Services, job: UUID) -> Turn:
    with db.read(stand.tenant):
        return Turn.objects.get(job_id=job)


def killed_at(stand: Services, point: str, agent: str) -> UUID:
    """A job during which its node was killed at this point; nobody is running, and that node's lease is over."""
    node = stand.young_node(OZ0_CRASH_AT=point)
    job = stand.start(agent)
    until(lambda: not node.lives(), "the node never came to its point", PATIENCE)
    stand.move_clock(LEASE + 1)
    return job


def over(stand: Services, job: UUID) -> Job:
    stand.until_over(job, seconds=PATIENCE)
    return stand.job(job)


def until_swept(stand: Services, agent: str, *found: str) -> None:
    until(
        lambda: [one for one, _ in standing(stand, agent)] == list(found),
        f"the reservations never came to {found}",
        PATIENCE,
    )


def moved_with_nobody_running(stand: Services, node: RunningNode, by: timedelta) -> RunningNode:
    node.kill()
    stand.move_clock(by.total_seconds() + 1)
    return stand.node()


def check(stand: Services) -> None:
    check_counts(stand.tenant)


@pytest.mark.rule("S10")
def test_killed_before_the_request_the_amount_is_counted_in_doubt_until_a_day_is_over(
    stand: Services, here: Provider
) -> None:
    asked = len(here.asked)
    job = killed_at(stand, "admit_check.after_commit:1", "before")
    assert (standing(stand, "before"), len(here.asked)) == ([("live", None)], asked), "the control: reserved, not asked"
    node = stand.node()
    assert (over(stand, job).state, len(here.asked)) == (JobState.COMPLETED, asked + 1)
    until_swept(stand, "before", "live", "confirmed")
    node = moved_with_nobody_running(stand, node, AUTHORITY)
    until_swept(stand, "before", "in_doubt", "confirmed")
    first, second = reservations(stand, "before")
    assert second.spent == ONE
    project = agents.project_of(tenant=stand.tenant, agent="before")
    with db.write(stand.tenant) as now:
        most = first.amount + ONE + second.amount - Decimal("0.0001")
        limit = {"period": Period.MONTH, "amount": most, "mode": LimitMode.HARD_DENY, "changed_at": now}
        Limit.objects.create(tenant_id=stand.tenant, project_id=project, **limit)
    denied = over(stand, stand.start("before"))
    assert (denied.state, denied.failure_kind, len(here.asked)) == (JobState.FAILED, "limit", asked + 1)
    assert "in one month" in denied.detail
    node = moved_with_nobody_running(stand, node, DOUBT - AUTHORITY)
    until_swept(stand, "before", "expired", "confirmed")
    assert over(stand, stand.start("before")).state == JobState.COMPLETED, (
        "the control: it was the doubt that denied it"
    )
    until_swept(stand, "before", "expired", "confirmed", "confirmed")  # nothing moves while it is counted
    check(stand)
    node.kill()


@pytest.mark.rule("S10")
def test_killed_while_the_answer_is_waited_for_the_first_request_stays_counted_beside_the_second(
    stand: Services, here: Provider
) -> None:
    never, asked = threading.Event(), len(here.asked)
    here.plan[:] = [*[Says("Done.")] * asked, Says("late", wait=never), Says("Done.")]
    node = stand.node()
    job = stand.start("after")
    until(lambda: len(here.asked) == asked + 1, "the model was never asked", PATIENCE)
    node.kill()
    never.set()
    stand.move_clock(LEASE + 1)
    assert standing(stand, "after") == [("live", None)], "the control: it went out, and nobody knows of an answer"
    node = stand.node()
    assert over(stand, job).state == JobState.COMPLETED
    until_swept(stand, "after", "live", "confirmed")
    assert (len(here.asked), the_turn(stand, job).asked) == (asked + 2, 2)
    check(stand)
    node.kill()


@pytest.mark.rule("S10")
@pytest.mark.parametrize(
    ("point", "agent", "before"),
    [
        ("confirm.before_commit:1", "unconfirmed", ("live", None)),
        ("confirm.after_commit:1", "confirmed", ("confirmed", ONE)),
    ],
)
def test_killed_on_either_side_of_the_confirmation_it_is_settled_once_by_what_the_turn_has_kept(
    stand: Services, here: Provider, point: str, agent: str, before: tuple[str, Decimal | None]
) -> None:
    asked = len(here.asked)
    job = killed_at(stand, point, agent)
    turn = the_turn(stand, job)
    assert (stand.job(job).state, turn.state) == (JobState.COMPLETED, TurnState.ANSWERED)
    assert len(turn.to_confirm) == 1, "the control: the turn had it to tell"
    assert standing(stand, agent) == [before]
    stand.move_clock(LEFT.total_seconds())
    node = stand.node()
    until(lambda: the_turn(stand, job).to_confirm == [], "nobody told the journal", PATIENCE)
    assert (standing(stand, agent), len(here.asked)) == ([("confirmed", ONE)], asked + 1)
    with db.read(stand.tenant):
        assert Receipt.objects.filter(reservation__project__agent=agent).count() == 1
    check(stand)
    node.kill()
