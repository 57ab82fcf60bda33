"""A model's provider that is busy, lost or dear: the turn waits without a worker, and its cost is counted."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db, ids
from catalog.rules.agents import Limits
from jobs.models import Job, Node, Turn
from jobs.operations import nodes, turns
from jobs.queries import due
from jobs.queries.history import used
from jobs.queries.trace import trace
from jobs.rules.limits import MAX_BUSY_ASKS
from jobs.rules.states import JobState, NodeState, TurnState
from jobs.rules.turns import TurnAnswer, TurnBusy, TurnFailed, TurnOrder, TurnOutcome, Wanted
from jobs.rules.why import Why
from tests.builders import World, a_job, a_node, a_world, cancelled, see, swept

pytestmark = pytest.mark.usefixtures("database")
SPENT = {"input_tokens": 100, "output_tokens": 20}


def asked(world: World, job: UUID, node: UUID | None = None) -> TurnOrder:
    order = turns.start(tenant=world.tenant, job_id=job, node_id=node or world.node)
    assert order is not None, "no turn of the job is due"
    return order


def settled(world: World, order: TurnOrder, outcome: TurnOutcome) -> bool:
    return turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=outcome, jitter=0.5)


def test_a_busy_turn_is_due_again_after_the_providers_wait_and_nothing_waits_for_it_meanwhile(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    job = a_job(world)
    first = asked(world, job)
    assert settled(world, first, TurnBusy("openai answered 429: slow down", wait=90))
    turn = see(world, Turn, first.turn_id)
    assert (turn.state, turn.error) == (TurnState.BUSY, "openai answered 429: slow down")
    assert see(world, Job, job).state == JobState.RUNNING
    assert due.work(turns=5).turns == []
    assert swept() == 0, "a job that waits for its provider is no stalled job"
    move_clock(timedelta(seconds=89))
    nodes.beat(node_id=world.node, servers=[])
    assert due.work(turns=5).turns == []
    move_clock(timedelta(seconds=2))
    nodes.beat(node_id=world.node, servers=[])
    assert due.work(turns=5).turns == [(world.tenant, job)]
    again = asked(world, job)
    assert (again.turn_id, again.number, again.asked) == (first.turn_id, 1, 2)
    assert settled(world, again, TurnAnswer("Done.", usage=SPENT))
    assert see(world, Job, job).state == JobState.COMPLETED
    with db.read(world.tenant):
        assert used(Job.objects.get(pk=job)) == (120, 0), "a refused request cost nothing"


def test_a_turns_page_says_what_it_waits_for_and_until_when() -> None:
    world = a_world()
    job = a_job(world)
    assert settled(world, asked(world, job), TurnBusy("openai answered 429: slow down", wait=90))
    page = trace(world.tenant, job)
    assert page is not None
    assert "slow down" in page.stands
    assert page.stands_until == see(world, Job, job).turn_due_at


def test_a_provider_that_stays_busy_fails_the_turn_in_the_end(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    job = a_job(world)
    for _ in range(MAX_BUSY_ASKS):
        assert settled(world, asked(world, job), TurnBusy("it is down", wait=None))
        move_clock(timedelta(minutes=2))
        nodes.beat(node_id=world.node, servers=[])
    row = see(world, Job, job)
    assert (row.state, row.reason) == (JobState.FAILED, Why.MODEL_ERROR)
    assert row.detail == f"it is down It was asked {MAX_BUSY_ASKS} times."


def test_a_provider_that_asks_for_more_than_an_hour_fails_the_turn_at_once() -> None:
    world = a_world()
    job = a_job(world)
    assert settled(world, asked(world, job), TurnBusy("come back tomorrow", wait=3_601))
    assert see(world, Job, job).state == JobState.FAILED


@pytest.mark.rule("L3")
def test_a_job_is_cancelled_at_once_while_its_provider_is_busy() -> None:
    world = a_world()
    job = a_job(world)
    assert settled(world, asked(world, job), TurnBusy("slow down", wait=90))
    assert cancelled(world, job) == JobState.CANCELED
    assert see(world, Job, job).turn_due_at is None


@pytest.mark.rule("L3")
def test_a_busy_answer_after_the_cancel_ends_the_job_and_asks_nobody_again() -> None:
    world = a_world()
    job = a_job(world)
    order = asked(world, job)
    assert cancelled(world, job) == JobState.CANCELLING
    assert turns.to_stop([order.turn_id]) == [order.turn_id]
    assert settled(world, order, TurnBusy("slow down", wait=1))
    assert see(world, Job, job).state == JobState.CANCELED


@pytest.mark.rule("G2")
def test_a_request_that_was_lost_with_its_node_is_counted_as_one_that_cost_something() -> None:
    world = a_world()
    job = a_job(world)
    first = asked(world, job)
    with db.write(world.tenant):
        nodes_lost(world.node)
    assert swept() >= 1
    again = asked(world, job, a_node("n2"))
    assert again.turn_id == first.turn_id
    assert not settled(world, first, TurnAnswer("late", usage=SPENT)), "the answer of the lost node came too late"
    assert settled(world, again, TurnAnswer("Done.", usage={**SPENT, "micro_usd": 600}))
    usage = see(world, Turn, first.turn_id).usage
    assert (usage["lost_requests"], usage["lost_input_tokens"]) == (1, 100)
    with db.read(world.tenant):
        assert used(Job.objects.get(pk=job)) == (220, 600 + 600 * 100 // 120)


def nodes_lost(node: UUID) -> None:
    Node.objects.filter(pk=node).update(state=NodeState.LOST, ended_at=db.must_write())


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        (Limits(tokens=200), "limit_tokens", "240 of the 200 tokens"),
        (Limits(usd=0.05), "limit_usd", "$0.06 of its agent's $0.05"),
    ],
)
def test_a_job_that_has_used_up_what_its_agent_may_use_fails_with_a_kind_of_its_own(
    limits: Limits, kind: str, words: str
) -> None:
    world = a_world(limits=limits)
    job = a_job(world)
    for _ in range(2):
        find = Wanted("nothing__there", {}, "c1")  # answered at once, with an error that the model reads
        outcome = TurnAnswer("", (find,), usage={**SPENT, "micro_usd": 30_000})
        assert settled(world, asked(world, job), outcome)
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is None
    row = see(world, Job, job)
    assert (row.state, row.failure_kind) == (JobState.FAILED, kind)
    assert words in row.detail


def test_what_a_model_has_said_so_far_is_shown_and_forgotten_when_it_is_asked_again() -> None:
    world = a_world()
    job = a_job(world)
    order = asked(world, job)
    turns.saying(tenant=world.tenant, turn_id=order.turn_id, asked=1, said="Let me\0 th")
    assert see(world, Turn, order.turn_id).say.startswith("Let me")
    turns.saying(tenant=world.tenant, turn_id=order.turn_id, asked=2, said="of another asking")
    assert "another" not in see(world, Turn, order.turn_id).say
    assert settled(world, order, TurnBusy("broken off", wait=0.0, went_out=True))
    with db.write(world.tenant):
        Job.objects.update(turn_due_at=db.must_write())
    asked(world, job)
    assert see(world, Turn, order.turn_id).say == ""


def test_a_turn_that_nobody_knows_or_that_is_over_is_to_stop() -> None:
    world = a_world()
    order = asked(world, a_job(world))
    other = ids.new()
    assert turns.to_stop([order.turn_id, other]) == [other]
    assert settled(world, order, TurnFailed("no"))
    assert set(turns.to_stop([order.turn_id])) == {order.turn_id}
