"""Harness sessions without a program: claimed, called through, ended, lost, begun again or asked about (K3, K4, K6)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db, ids
from base.canonical import digest_of_any
from catalog.models import Scope
from catalog.rules.agents import Limits
from catalog.rules.switching import Mode
from jobs.models import Call, Event, Hold, Job
from jobs.operations import harness, nodes, outside
from jobs.operations.holds import Answer
from jobs.operations.outside import Client, NotTaken
from jobs.queries import due
from jobs.rules.orders import End
from jobs.rules.sessions import SessionEnd
from jobs.rules.states import CallState, JobState, SessionState
from jobs.rules.turns import Wanted
from jobs.rules.why import Why
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import bearer
from tenants.rules.bearers import Scope as TokenScope
from tests.builders import (
    a_job,
    a_node,
    a_switch,
    an_order,
    an_outcome,
    answered,
    cancelled,
    made,
    see,
    settle,
    swept,
    the_hold,
    told,
)
from tests.harnesses import a_harness, a_token, called, claimed, ended, key, program, the_session

pytestmark = pytest.mark.usefixtures("database")

type Clock = Callable[[timedelta], None]


def test_a_harness_job_begins_as_a_session_that_a_node_claims_once_and_asks_no_model() -> None:
    world = a_harness()
    job = a_job(world)
    assert (due.work(turns=9).turns, due.work(sessions=9).sessions) == (
        [],
        [(world.tenant, the_session(world, job).pk)],
    )
    order = claimed(world, job)
    assert order is not None and order.argv == ("/bin/false",) and b'"input": {}' in order.given
    assert order.env["OZ0_MCP_URL"].endswith("/mcp/") and order.env["OZ0_TOKEN"] == a_token("a")
    assert a_token("a") not in repr(order)
    assert claimed(world, job, "b", a_node("n2")) is None
    assert see(world, Job, job).state == JobState.RUNNING
    assert swept(lose_nodes=False) == 0, "a job whose program runs does not stand still"


def test_exit_code_0_completes_the_job_with_its_output_once_its_calls_are_over_and_ends_the_token() -> None:
    world = a_harness()
    job = a_job(world)
    held = called(program(world, job), "refund")
    assert ended(world, job, SessionEnd(0, "  42 orders checked\n"))
    assert bearer(hash_of(a_token("a"))) is None
    assert see(world, Job, job).state == JobState.WAITING
    answered(world, the_hold(world, held).pk, Answer.DENY, "not today")
    over = see(world, Job, job)
    assert (over.state, over.output, over.reason) == (JobState.COMPLETED, "42 orders checked", Why.DONE)


@pytest.mark.parametrize("how", [SessionEnd(3, errors="no such order"), SessionEnd(None, trouble="it was not found")])
def test_any_other_end_fails_the_job_as_its_agents_error_with_the_last_words_and_stops_its_calls(
    how: SessionEnd,
) -> None:
    world = a_harness()
    job = a_job(world)
    order = an_order(world, called(program(world, job), "look"))
    assert ended(world, job, how)
    assert see(world, Job, job).state == JobState.CANCELLING, "its call still runs"
    settle(world, order, an_outcome(End.STOPPED))
    over = see(world, Job, job)
    assert (over.state, over.failure_kind) == (JobState.FAILED, "agent_error")
    assert (how.errors or how.trouble) in over.detail


@pytest.mark.rule("G4")
def test_its_calls_are_steps_of_its_job_under_the_same_policy_and_its_token_names_no_other() -> None:
    world = a_harness()
    job, other = a_job(world), a_job(world)
    client = program(world, job)
    held, queued = see(world, Call, called(client, "refund")), see(world, Call, called(client, "look"))
    assert {held.job_id, queued.job_id} == {job}
    assert (held.state, queued.state) == (CallState.HELD, CallState.QUEUED)
    with pytest.raises(NotTaken):
        outside.submit(client=Client(world.tenant, ids.new(), "x", world.agent, None), want=Wanted("shop__look", {}))
    found = bearer(hash_of(a_token("a")))
    assert found is not None and found.scopes == {TokenScope.CALL} and found.agent == world.agent
    assert not see(world, Job, other).calls_made


@pytest.mark.rule("K3")
@pytest.mark.rule("K4")
def test_calls_of_a_function_that_says_idempotent_are_counted_by_their_arguments_within_the_session() -> None:
    world = a_harness()
    job = a_job(world)
    client = program(world, job)
    five, six = {"amount": 5}, {"amount": 6}
    keys = [key(world, called(client, "charge", one)) for one in (five, five, six)]
    shown = ids.show(ids.JOB, job)
    first, second = digest_of_any(five)[:32], digest_of_any(six)[:32]
    assert keys == [f"{shown}/s1/charge#{first}/1", f"{shown}/s1/charge#{first}/2", f"{shown}/s1/charge#{second}/1"]
    assert key(world, called(client, "note", five)) == f"{shown}/4", "a function that does not say so (RULES K2)"
    assert key(world, called(client, "look", five)) == f"{shown}/5"


@pytest.mark.rule("K4")
@pytest.mark.rule("K6")
def test_a_session_lost_with_its_node_starts_again_by_itself_with_equal_keys_when_its_calls_were_retry_safe() -> None:
    world = a_harness()
    job, lost, other = a_job(world), a_node("lost"), a_node("other")
    client = program(world, job, node=lost)
    calls = [called(client, "charge", {"amount": 5}), called(client, "look"), called(client, "charge", {"amount": 5})]
    made(world, calls[0], an_outcome(End.ANSWERED))
    unsent = made(world, called(client, "note"), an_outcome(End.NOT_MADE))
    assert unsent.state == CallState.FAILED, "the control: a plain write that never went out does not count"
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    again = the_session(world, job)
    assert (again.state, again.number, again.incarnation) == (SessionState.STARTING, 1, 2)
    assert bearer(hash_of(a_token("a"))) is None
    with pytest.raises(NotTaken):
        called(client, "look")
    fresh = program(world, job, "b", other)
    repeated = [called(fresh, "charge", {"amount": 5}), called(fresh, "charge", {"amount": 5})]
    assert [key(world, call) for call in repeated] == [key(world, calls[0]), key(world, calls[2])]
    assert see(world, Job, job).state == JobState.RUNNING


@pytest.mark.rule("K6")
@pytest.mark.parametrize(
    ("answer", "session", "state"),
    [
        (Answer.START_AGAIN, SessionState.STARTING, JobState.RUNNING),
        (Answer.FINISHED, SessionState.ENDED, JobState.COMPLETED),
        (Answer.STOP, SessionState.STOPPED, JobState.CANCELED),
    ],
)
def test_one_plain_write_that_went_out_makes_a_person_decide_what_becomes_of_a_lost_session(
    answer: Answer, session: SessionState, state: JobState
) -> None:
    world = a_harness()
    job, lost = a_job(world), a_node("lost")
    client = program(world, job, node=lost)
    made(world, called(client, "charge", {"amount": 5}), an_outcome(End.ANSWERED))
    plain = made(world, called(client, "note"), an_outcome(End.ANSWERED))
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    assert (the_session(world, job).state, see(world, Job, job).state) == (SessionState.ASKING, JobState.WAITING)
    assert swept(lose_nodes=False) == 0
    hold = the_hold(world, plain.pk)
    assert (hold.kind, hold.expires_at) == ("session", None) and "1 call" not in hold.why
    answered(world, hold.pk, answer, "all is paid" if answer is Answer.FINISHED else "")
    found = the_session(world, job)
    assert (found.state, found.number) == (session, 1)
    over = see(world, Job, job)
    assert over.state == state
    if answer is Answer.FINISHED:
        assert over.output == "all is paid"
    if answer is Answer.START_AGAIN:
        first = key(world, called(program(world, job, "b", a_node("n3")), "charge", {"amount": 5}))
        assert first.endswith("/1"), "the keyed write is not made twice"


@pytest.mark.rule("K6")
def test_the_fresh_session_waits_for_every_open_attempt_of_the_lost_one(move_clock: Clock) -> None:
    world = a_harness()
    job, lost = a_job(world), a_node("lost")
    client = program(world, job, node=lost)
    order = an_order(world, called(client, "look"))  # on a node that lives
    waits, held = called(client, "charge"), called(client, "refund")
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    assert the_session(world, job).state == SessionState.SETTLING
    assert see(world, Call, order.call_id).state == CallState.CANCELLING
    assert {see(world, Call, call).state for call in (waits, held)} == {CallState.CANCELED}
    with db.read(world.tenant):
        assert not Hold.objects.filter(closed_at__isnull=True).exists(), "its holds are withdrawn"
    swept(lose_nodes=False)
    assert the_session(world, job).state == SessionState.SETTLING, "the attempt is still open"
    settle(world, order, an_outcome(End.STOPPED))
    swept(lose_nodes=False)
    assert the_session(world, job).state == SessionState.STARTING


def test_a_program_that_its_draining_node_stopped_is_lost_and_one_of_another_incarnation_moves_nothing() -> None:
    world = a_harness()
    job = a_job(world)
    program(world, job)
    assert ended(world, job, SessionEnd(0, "cut short", stopped=True))
    swept(lose_nodes=False)
    assert the_session(world, job).incarnation == 2
    program(world, job, "b")
    assert not ended(world, job, SessionEnd(0, "late"), incarnation=1)
    assert not ended(world, job, SessionEnd(0, "late"), node=a_node("n2"), incarnation=2)
    assert the_session(world, job).state == SessionState.RUNNING
    assert ended(world, job, SessionEnd(0, "done"), incarnation=2)
    assert see(world, Job, job).output == "done"


@pytest.mark.rule("L2")
def test_a_cancelled_job_ends_its_token_at_once_and_is_canceled_when_its_program_has_ended() -> None:
    world = a_harness()
    job = a_job(world)
    client = program(world, job)
    session = the_session(world, job)
    assert harness.to_stop({session.pk: 1}, world.node) == []
    assert cancelled(world, job) == JobState.CANCELLING, "its program still runs"
    assert harness.to_stop({session.pk: 1}, world.node) == [session.pk]
    assert bearer(hash_of(a_token("a"))) is None
    with pytest.raises(NotTaken):
        called(client, "look")
    swept(lose_nodes=False)
    assert see(world, Job, job).state == JobState.CANCELLING
    assert ended(world, job, SessionEnd(-15, stopped=True))
    assert (see(world, Job, job).state, the_session(world, job).state) == (JobState.CANCELED, SessionState.STOPPED)


@pytest.mark.rule("L3")
@pytest.mark.parametrize("where", ["starting", "settling", "lost"])
def test_a_cancel_reaches_a_session_wherever_it_is(where: str) -> None:
    world = a_harness()
    job, node = a_job(world), a_node("n2")
    order = None
    if where != "starting":
        order = an_order(world, called(program(world, job, node=node), "look"))
        nodes.leave(node_id=node)
    if where == "settling":
        swept(lose_nodes=False)
    cancelled(world, job)
    if order is not None:
        settle(world, order, an_outcome(End.STOPPED))
        swept(lose_nodes=False)
        swept(lose_nodes=False)
    assert (see(world, Job, job).state, the_session(world, job).state) == (JobState.CANCELED, SessionState.STOPPED)
    assert due.work(sessions=9).sessions == []


@pytest.mark.rule("L3")
def test_a_cancel_reaches_the_attempt_that_a_session_begun_again_is_at() -> None:
    """CASES L06, in a fresh session."""
    world = a_harness()
    job, lost = a_job(world), a_node("lost")
    made(world, called(program(world, job, node=lost), "look"), an_outcome(End.ANSWERED))
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    order = an_order(world, called(program(world, job, "b"), "charge", {"amount": 5}))
    assert see(world, Call, order.call_id).incarnation == 2
    cancelled(world, job)
    assert [one.attempt_id for one in nodes.stop_requests([order.attempt_id])] == [order.attempt_id]
    settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Call, order.call_id).state == CallState.CANCELED
    assert ended(world, job, SessionEnd(-15, stopped=True), incarnation=2)
    assert see(world, Job, job).state == JobState.CANCELED


@pytest.mark.rule("L7")
def test_a_switch_between_two_calls_of_one_session_refuses_the_second_and_the_program_goes_on() -> None:
    """CASES L19."""
    world = a_harness()
    job = a_job(world)
    client = program(world, job)
    made(world, called(client, "note"), an_outcome(End.ANSWERED))
    a_switch(world, Scope.FUNCTION, "shop.note")
    second, other = called(client, "note"), called(client, "look")
    assert see(world, Call, second).state == CallState.REFUSED and "kill switch" in told(world, second)
    assert see(world, Call, other).state == CallState.QUEUED
    assert harness.to_stop({the_session(world, job).pk: 1}, world.node) == []


@pytest.mark.rule("L7")
@pytest.mark.parametrize("scope", [Scope.AGENT, Scope.TENANT])
def test_an_agents_or_tenants_switch_stops_the_program_and_kills_its_token(scope: Scope) -> None:
    world = a_harness()
    running, starting = a_job(world), a_job(world)
    client = program(world, running)
    a_switch(world, scope, world.agent if scope is Scope.AGENT else "")
    assert bearer(hash_of(a_token("a"))) is None
    assert harness.to_stop({the_session(world, running).pk: 1}, world.node) == [the_session(world, running).pk]
    assert the_session(world, starting).state == SessionState.STOPPED
    with pytest.raises(NotTaken):
        called(client, "look")
    assert ended(world, running, SessionEnd(0, stopped=True))
    assert {see(world, Job, job).state for job in (running, starting)} == {JobState.CANCELED}


@pytest.mark.rule("L11")
def test_a_paused_agents_session_is_not_due() -> None:
    world = a_harness()
    job = a_job(world)
    a_switch(world, Scope.AGENT, world.agent, mode=Mode.PAUSE)
    assert due.work(sessions=9).sessions == []
    assert claimed(world, job) is None


def test_the_agents_limit_of_calls_and_of_minutes_end_the_job_and_its_program(move_clock: Clock) -> None:
    world = a_harness(Limits(calls=1, minutes=10))
    job = a_job(world)
    client = program(world, job)
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    with pytest.raises(NotTaken, match=r"limits\.calls"):
        called(client, "look")
    assert see(world, Job, job).failure_kind == "limit_calls"
    ended(world, job, SessionEnd(-15, stopped=True))
    assert see(world, Job, job).state == JobState.FAILED
    slow = a_job(world)
    program(world, slow, "b")
    move_clock(timedelta(minutes=11))
    swept(lose_nodes=False)
    assert (see(world, Job, slow).state, see(world, Job, slow).failure_kind) == (JobState.CANCELLING, "limit_minutes")


def test_a_session_that_its_own_node_does_not_know_is_lost_after_half_a_minute(move_clock: Clock) -> None:
    world = a_harness()
    job = a_job(world)
    program(world, job)
    session = the_session(world, job).pk
    assert harness.strays([], world.node) == []
    move_clock(timedelta(seconds=31))
    assert harness.strays([session], world.node) == []
    ((tenant, stray, incarnation),) = harness.strays([], world.node)
    assert harness.lose(tenant=tenant, session_id=stray, incarnation=incarnation)
    swept(lose_nodes=False)
    assert the_session(world, job).incarnation == 2


def test_the_journal_tells_every_move_of_the_session() -> None:
    world = a_harness()
    job = a_job(world)
    program(world, job)
    ended(world, job, SessionEnd(0))
    with db.read(world.tenant):
        told = [event.data["to"] for event in Event.objects.filter(kind__startswith="session.").order_by("seq")]
    assert told == [SessionState.STARTING, SessionState.RUNNING, SessionState.ENDED]
