"""When nobody knows whether it wrote: who is asked, and what each answer does."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db, ids
from jobs.models import Call, Hold, Job, Starter
from jobs.operations import nodes, work
from jobs.operations.holds import Answer, BadAnswer, Closed, Taken
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect, HoldKind, HoldState, JobState
from jobs.rules.why import Why
from tests.builders import (
    World,
    a_call,
    a_job,
    a_policy,
    a_retrying_call,
    a_rule,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
    swept,
    the_hold,
    the_job,
    told,
)

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.rule("U5")
@pytest.mark.parametrize("starter", [Starter.API_KEY, Starter.ROUTINE, Starter.EVENT])
def test_a_job_that_no_person_started_fails_with_its_own_kind_and_asks_nobody(starter: Starter) -> None:
    """CASES U01."""
    world = a_world()
    call = a_call(world, "note", starter=starter)
    row = made(world, call, an_outcome(End.TIMED_OUT))
    job = the_job(world, call)
    assert (row.state, row.effect) == (CallState.FAILED, Effect.MAYBE)
    assert (job.state, job.failure_kind) == (JobState.FAILED, "unknown_outcome")
    assert "Nobody knows" in told(world, call)
    with db.read(world.tenant):
        assert not Hold.objects.exists()


@pytest.mark.rule("U5")
def test_the_agents_own_word_comes_before_who_started_the_job() -> None:
    asks, fails = a_world("asks", on_unknown="ask"), a_world("fails", on_unknown="fail")
    by_key = a_call(asks, "note", starter=Starter.API_KEY)
    by_person = a_call(fails, "note")
    assert made(asks, by_key, an_outcome(End.BROKEN)).state == CallState.UNKNOWN
    assert made(fails, by_person, an_outcome(End.BROKEN)).state == CallState.FAILED


@pytest.mark.rule("U5")
def test_a_failing_jobs_other_calls_are_stopped_first_and_it_fails_only_after() -> None:
    world = a_world(on_unknown="fail")
    write, read, held = a_turn(world, a_job(world), "note", "look", "refund")
    running = an_order(world, read)
    made(world, write, an_outcome(End.BROKEN))
    assert the_job(world, write).state == JobState.CANCELLING
    assert see(world, Call, read).state == CallState.CANCELLING
    assert see(world, Call, held).state == CallState.CANCELED
    settle(world, running, an_outcome(End.STOPPED))
    job = the_job(world, write)
    assert (job.state, job.failure_kind) == (JobState.FAILED, "unknown_outcome")


@pytest.mark.rule("U5")
@pytest.mark.rule("U10")
def test_the_agents_word_also_counts_where_a_retry_is_refused_denied_expired_or_does_not_start(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world(on_unknown="fail")

    def claimed_in_vain(call: object) -> None:
        move_clock(timedelta(seconds=2))
        nodes.beat(node_id=world.node, servers=[])
        assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None  # type: ignore[arg-type]

    refused, denied, expired, down = (a_retrying_call(world, "charge") for _ in range(4))
    a_policy(world, a_rule("stop", "refuse", function="charge"))
    claimed_in_vain(refused)
    a_policy(world, a_rule("ask", "ask", function="charge"))
    claimed_in_vain(denied)
    answered(world, the_hold(world, denied).pk, Answer.DENY, "no")
    a_policy(world)
    for _ in range(3):
        move_clock(timedelta(seconds=60))
        work.opening_failed(tenant=world.tenant, call_id=down, why="exit 1", jitter=0.5)
    a_policy(world, a_rule("ask", "ask", function="charge"))
    claimed_in_vain(expired)
    with db.write(world.tenant):  # its job is to outlive the question
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=25))
    swept(lose_nodes=False)
    for call in (refused, denied, expired, down):
        job = the_job(world, call)
        assert see(world, Call, call).state == CallState.FAILED
        assert (job.state, job.failure_kind) == (JobState.FAILED, "unknown_outcome")


@pytest.mark.rule("U6")
def test_it_happened_ends_the_call_with_the_words_a_person_gave_and_the_job_goes_on() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    assert the_job(world, call).state == JobState.WAITING
    assert answered(world, hold, Answer.HAPPENED, "entry 12") == Taken(CallState.HAPPENED)
    row = see(world, Call, call)
    assert (row.state, row.effect, row.reason) == (CallState.HAPPENED, Effect.MADE, Why.HAPPENED)
    assert "a person checked" in told(world, call)
    assert "entry 12" in told(world, call)
    job = the_job(world, call)
    a_turn(world, job.pk, say="Noted.")
    assert see(world, Job, job.pk).state == JobState.COMPLETED


@pytest.mark.rule("U6")
@pytest.mark.rule("K1")
def test_run_it_again_makes_one_further_attempt_under_the_first_key() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    key = see(world, Call, call).key
    assert answered(world, hold, Answer.AGAIN) == Taken(CallState.QUEUED)
    order = an_order(world, call)
    assert (order.key, order.number) == (key, 2)
    settle(world, order, an_outcome(End.BROKEN))
    assert see(world, Call, call).state == CallState.UNKNOWN
    assert the_hold(world, call).pk != hold


@pytest.mark.rule("U6")
def test_run_it_again_counts_as_the_approval_when_policy_asks_and_does_not_beat_a_refusal() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    a_policy(world, a_rule("no-notes", "refuse", function="note"))
    with pytest.raises(BadAnswer, match="no-notes"):
        answered(world, hold, Answer.AGAIN)
    assert see(world, Hold, hold).state == HoldState.OPEN
    assert see(world, Call, call).state == CallState.UNKNOWN
    a_policy(world, a_rule("ask-notes", "ask", function="note"))
    answered(world, hold, Answer.AGAIN)
    assert made(world, call, an_outcome(End.ANSWERED)).state == CallState.SUCCEEDED


@pytest.mark.rule("U6")
def test_run_it_again_refused_at_the_claim_is_a_question_again() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    answered(world, hold, Answer.AGAIN)
    a_policy(world, a_rule("no-notes", "refuse", function="note"))
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    assert see(world, Call, call).state == CallState.UNKNOWN
    assert the_hold(world, call).kind == HoldKind.UNKNOWN


@pytest.mark.rule("U6")
@pytest.mark.rule("L2")
def test_stop_cancels_the_job_and_says_that_the_write_may_have_acted() -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    assert answered(world, hold, Answer.STOP) == Taken(CallState.CANCELED)
    job = the_job(world, call)
    assert (job.state, job.reason) == (JobState.CANCELED, Why.STOPPED_BY_PERSON)
    assert "may have acted" in told(world, call)
    assert see(world, Hold, hold).state == HoldState.ANSWERED


@pytest.mark.rule("A6")
@pytest.mark.rule("U6")
@pytest.mark.parametrize("first", [Answer.HAPPENED, Answer.AGAIN, Answer.STOP])
def test_one_answer_wins_and_every_other_reads_who_answered_what_and_when(first: Answer) -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    answered(world, hold, first)
    before = see(world, Call, call)
    for later in (Answer.HAPPENED, Answer.AGAIN, Answer.STOP):
        closed = answered(world, hold, later)
        assert isinstance(closed, Closed)
        assert (closed.answer, closed.by) == (first, world.person)
        assert closed.at is not None
    assert see(world, Call, call).seq == before.seq


@pytest.mark.rule("U6")
@pytest.mark.parametrize("answer", [Answer.APPROVE, Answer.DENY])
def test_an_answer_of_another_kind_of_question_moves_nothing(answer: Answer) -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    with pytest.raises(BadAnswer, match="happened, again, stop"):
        answered(world, hold, answer, "a reason")
    assert see(world, Call, call).state == CallState.UNKNOWN


@pytest.mark.rule("U6")
def test_an_unknown_question_never_expires(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    assert see(world, Hold, hold).expires_at is None
    with db.write(world.tenant):  # the agent's own limit of minutes is another matter
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(days=400))
    swept(lose_nodes=False)
    assert see(world, Hold, hold).state == HoldState.OPEN
    assert see(world, Call, call).state == CallState.UNKNOWN


@pytest.mark.rule("U8")
@pytest.mark.parametrize(
    "end", [End.NOT_MADE, End.ANSWERED], ids=["refused before it was made", "answered with an error"]
)
def test_what_is_known_never_asks(end: End) -> None:
    world: World = a_world()
    call = a_call(world, "note")
    made(world, call, an_outcome(end, is_error=end is End.ANSWERED))
    with db.read(world.tenant):
        assert not Hold.objects.exists()


@pytest.mark.rule("U4")
def test_a_stopping_nodes_write_that_had_gone_out_is_unknown() -> None:
    world = a_world()
    call = a_call(world, "note")
    lost = an_outcome(End.LOST, reason=Reason.NODE_STOPPING)
    assert made(world, call, lost).state == CallState.UNKNOWN
