"""An attempt's outcome is settled once; whatever comes later is evidence."""

import pytest

from base import db
from jobs.models import Attempt, Call, Event
from jobs.operations import bodies, work
from jobs.operations.holds import Answer
from jobs.rules.orders import End, Outcome, Result
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, Effect
from tests.builders import (
    World,
    a_call,
    a_job,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
    the_job,
    told,
)

pytestmark = pytest.mark.usefixtures("database")


def the_attempt(world: World, call: object) -> Attempt:
    """The last attempt of a call."""
    with db.read(world.tenant):
        return Attempt.objects.filter(call_id=call).order_by("-number").first()  # type: ignore[return-value]


@pytest.mark.rule("L9")
@pytest.mark.rule("U4")
def test_a_late_answer_of_an_unknown_write_changes_nothing_and_is_kept_as_evidence() -> None:
    """CASES U09."""
    world = a_world()
    call, hold = an_unknown_call(world)
    attempt = the_attempt(world, call)
    before = see(world, Call, call)
    late = an_outcome(End.ANSWERED, text="refund 41 made")
    assert work.settle(tenant=world.tenant, attempt_id=attempt.pk, outcome=late, jitter=0) is False
    after = see(world, Call, call)
    assert (after.state, after.seq, after.effect) == (before.state, before.seq, before.effect)
    kept = see(world, Attempt, attempt.pk)
    assert kept.state == "broken"
    assert kept.late["text"] == "refund 41 made"
    answered(world, hold, Answer.HAPPENED)
    reply = Result("another", is_error=False)
    work.keep_late_reply(tenant=world.tenant, attempt_id=attempt.pk, result=reply)
    assert see(world, Attempt, attempt.pk).late["text"] == "refund 41 made"
    assert see(world, Call, call).state == CallState.HAPPENED


@pytest.mark.rule("L9")
def test_a_late_answer_after_run_it_again_does_not_touch_the_second_attempt() -> None:
    """CASES U09."""
    world = a_world()
    call, hold = an_unknown_call(world)
    first = the_attempt(world, call)
    answered(world, hold, Answer.AGAIN)
    second = an_order(world, call)
    work.keep_late_reply(tenant=world.tenant, attempt_id=first.pk, result=Result("late", is_error=False))
    assert see(world, Call, call).state == CallState.RUNNING
    assert see(world, Attempt, second.attempt_id).late is None
    assert see(world, Attempt, first.pk).late["text"] == "late"
    settle(world, second, an_outcome(End.ANSWERED, text="mine"))
    assert told(world, call) == "mine"


@pytest.mark.rule("L9")
def test_a_late_reply_that_overtakes_its_attempts_outcome_is_kept_and_changes_nothing() -> None:
    world = a_world()
    order = an_order(world, a_call(world))
    reply = Result("made after all", is_error=False)
    work.keep_late_reply(tenant=world.tenant, attempt_id=order.attempt_id, result=reply)
    settle(world, order, an_outcome(End.TIMED_OUT))
    attempt = see(world, Attempt, order.attempt_id)
    assert (attempt.state, attempt.late["text"]) == ("timed_out", "made after all")
    assert see(world, Call, order.call_id).state == CallState.UNKNOWN


def test_an_outcome_settled_twice_because_its_commit_was_not_seen_is_not_shown_as_a_late_reply() -> None:
    world = a_world()
    order = an_order(world, a_call(world))
    outcome = an_outcome(End.ANSWERED)
    assert settle(world, order, outcome)
    assert not settle(world, order, outcome)
    assert see(world, Attempt, order.attempt_id).late is None
    with db.read(world.tenant):
        assert not Event.objects.filter(kind="attempt.late").exists()


@pytest.mark.rule("U4")
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (End.TIMED_OUT, Reason.TIME_LIMIT),
        (End.LOST, Reason.NODE_LOST),
        (End.BROKEN, Reason.CONNECTION_BROKE),
        (End.UNREADABLE, Reason.UNREADABLE),
    ],
)
def test_an_unknown_outcome_names_its_evidence_on_the_call_and_its_question(end: End, reason: Reason) -> None:
    """CASES U03."""
    world = a_world()
    call = a_call(world, "note")
    row = made(world, call, an_outcome(end))
    assert (row.state, row.reason, row.effect) == (CallState.UNKNOWN, reason, Effect.MAYBE)
    with db.read(world.tenant):
        assert row.holds.get().why == row.detail
    assert row.detail


@pytest.mark.rule("U3")
@pytest.mark.rule("U8")
def test_a_plain_write_that_was_not_made_fails_and_the_job_goes_on_to_tell_the_model() -> None:
    world = a_world()
    job = a_job(world)
    (call,) = a_turn(world, job, "note")
    assert made(world, call, an_outcome(End.NOT_MADE)).state == CallState.FAILED
    assert told(world, call).endswith("Nothing was done.")
    a_turn(world, job, say="It is down.")


@pytest.mark.rule("B3")
def test_a_busy_plain_write_ends_errored_with_the_tools_own_words() -> None:
    """CASES B01."""
    world = a_world()
    call = a_call(world, "note")
    busy = an_outcome(End.BUSY, text="come back in 5 s", retry_after=5.0)
    assert made(world, call, busy).state == CallState.ERRORED
    assert told(world, call) == "come back in 5 s"
    assert see(world, Call, call).effect == Effect.NONE


def test_a_large_result_is_kept_whole_and_read_whole_by_the_model() -> None:
    world = a_world()
    call = a_call(world, "look")
    text = "x" * (bodies.RESULT_SHOWN + 1)
    row = made(world, call, an_outcome(End.ANSWERED, text=text))
    assert len(row.result_text) == bodies.RESULT_SHOWN
    assert row.result_body_id is not None
    assert told(world, call) == text


def test_the_next_turn_is_due_only_when_the_last_of_a_turns_calls_has_ended() -> None:
    world = a_world()
    job = a_job(world)
    one, two = a_turn(world, job, "look", "look")
    made(world, one, an_outcome(End.ANSWERED))
    assert the_job(world, one).turn_due_at is None
    made(world, two, an_outcome(End.ANSWERED))
    assert the_job(world, one).turn_due_at is not None


def test_an_attempt_nobody_knows_is_not_settled() -> None:
    world = a_world()
    call = a_call(world)
    assert not work.settle(tenant=world.tenant, attempt_id=call, outcome=an_outcome(End.ANSWERED), jitter=0)


def test_an_outcome_carries_its_wire_record_and_progress_to_the_attempt() -> None:
    from jobs.rules.orders import Progress

    world = a_world()
    call = a_call(world, "look")
    outcome: Outcome = an_outcome(End.TIMED_OUT, progress=Progress(2, 4), end_known=False)
    made(world, call, outcome)
    attempt = the_attempt(world, call)
    assert attempt.wire["went_out"] is True
    assert (attempt.progress, attempt.total, attempt.end_known) == (2, 4, False)
