"""How attempts are ended: their own limit, a stop, and the race with the answer."""

import time

import pytest

from base.clock import boot_time
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from tests.node.driving import Driven, until


@pytest.mark.rule("L4")
@pytest.mark.rule("U4")
def test_an_attempt_stops_itself_at_its_own_limit_and_has_ended_by_its_timeout(misbehaved: Driven) -> None:
    """CASES L07, P07."""
    began = boot_time()
    outcome = misbehaved.call("never", timeout=2.0, own_limit=1.0)
    took = boot_time() - began
    assert (outcome.end, outcome.reason, outcome.end_known) == (End.TIMED_OUT, Reason.TIME_LIMIT, False)
    assert outcome.wire.went_out
    assert "stopped itself at 1 s of its limit of 2 s" in outcome.wire.detail
    assert 1.9 < took < 3.5
    assert [line for line in misbehaved.ledger() if "notifications/cancelled" in line]


@pytest.mark.rule("L4")
def test_progress_never_extends_the_limit(misbehaved: Driven) -> None:
    """CASES P01; the control is that progress did come."""
    began = boot_time()
    outcome = misbehaved.call("reports_for_ever", timeout=2.0, own_limit=1.0, retry_safe=True)
    assert outcome.end is End.TIMED_OUT
    assert boot_time() - began < 3.5
    assert outcome.progress.value > 5


def test_an_answer_that_wins_the_race_with_the_limit_is_kept(misbehaved: Driven) -> None:
    outcome = misbehaved.call("success_when_cancelled", timeout=3.0, own_limit=0.5)
    assert (outcome.end, outcome.result.text) == (End.ANSWERED, "done all the same")


def test_an_answer_that_wins_the_race_with_a_stop_is_kept(misbehaved: Driven) -> None:
    """CASES L02 B."""
    order = misbehaved.order("success_when_cancelled")
    running = misbehaved.begin(order)
    assert misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(5)
    assert (outcome.end, outcome.result.text) == (End.ANSWERED, "done all the same")
    assert never_started_again(misbehaved)


def never_started_again(driven: Driven) -> bool:
    """Whether the node still has the connection that it opened, and a call on it is answered."""
    (status,) = driven.node.servers()
    return driven.call("ok").end is End.ANSWERED and (status.starts, status.state) == (1, "up")


def test_the_calls_own_error_after_a_stop_says_that_it_has_ended(misbehaved: Driven) -> None:
    """CASES L02 A."""
    order = misbehaved.order("error_when_cancelled")
    running = misbehaved.begin(order)
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(5)
    assert (outcome.end, outcome.reason, outcome.end_known) == (End.STOPPED, Reason.STOPPED_CANCEL, True)
    assert outcome.wire.went_out
    assert never_started_again(misbehaved)


@pytest.mark.rule("L2")
def test_a_plugins_own_server_can_say_that_a_cancelled_call_has_ended(misbehaved: Driven) -> None:
    """Of a call that nobody cancelled the same word says nothing."""
    early = misbehaved.call("stopped_before_it_is_cancelled")
    assert early.result is not None
    assert early.result.text == "not at all"
    order = misbehaved.order("stopped_when_cancelled", cleanup=20.0)
    running = misbehaved.begin(order)
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(5)
    assert (outcome.end, outcome.reason, outcome.end_known) == (End.STOPPED, Reason.STOPPED_CANCEL, True)


def test_a_stop_that_nobody_acknowledges_waits_the_clean_up_time(misbehaved: Driven) -> None:
    """CASES L02 C: answers with other ids are nobody's and cost nobody."""
    order = misbehaved.order("other_id_when_cancelled", cleanup=0.6)
    running = misbehaved.begin(order)
    asked = time.monotonic()
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_SWITCH)
    outcome = running.result(5)
    assert time.monotonic() - asked >= 0.55
    assert (outcome.end, outcome.reason, outcome.end_known) == (End.STOPPED, Reason.STOPPED_SWITCH, False)
    assert never_started_again(misbehaved)
    assert misbehaved.late == []


def test_the_clean_up_time_never_goes_past_the_timeout(misbehaved: Driven) -> None:
    order = misbehaved.order("never", timeout=1.5, own_limit=1.3, cleanup=60.0)
    running = misbehaved.begin(order)
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    began = time.monotonic()
    assert running.result(5).end is End.STOPPED
    assert time.monotonic() - began < 3


def test_a_stopped_call_whose_server_dies_has_surely_ended(misbehaved: Driven) -> None:
    order = misbehaved.order("never")
    running = misbehaved.begin(order)
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    misbehaved.call("effect_then_dies")
    outcome = running.result(5)
    assert (outcome.end, outcome.end_known) == (End.STOPPED, True)


def test_stopping_what_does_not_run_is_answered_with_no(misbehaved: Driven) -> None:
    assert not misbehaved.node.stop(misbehaved.order("ok").attempt_id, Reason.STOPPED_CANCEL)


@pytest.mark.rule("L9")
def test_a_reply_after_the_end_changes_nothing_and_is_kept_as_evidence(misbehaved: Driven) -> None:
    """CASES U09."""
    order = misbehaved.order("success_long_after_cancelled", {"seconds": 0.8}, cleanup=0.2)
    running = misbehaved.begin(order)
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    assert running.result(5).end is End.STOPPED
    ((attempt, result),) = until(lambda: misbehaved.late, "the late answer")
    assert (attempt, result.text) == (order.attempt_id, "the late truth")
    assert misbehaved.call("ok").end is End.ANSWERED


@pytest.mark.rule("L1")
def test_cancelling_a_slow_call_leaves_the_server_and_the_others_alone(behaved: Driven) -> None:
    """CASES L01, 50 times: the same process answers all through, and the five others finish."""
    others = [behaved.begin(behaved.order("slow", {"seconds": 9, "name": f"other {n}"})) for n in range(5)]
    said = set()
    for turn in range(50):
        order = behaved.order("slow", {"seconds": 30, "name": f"turn {turn}"}, cleanup=0.05)
        running = behaved.begin(order)
        behaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        said.add(behaved.call("ping").result.text)
        assert running.result(5).end is End.STOPPED
    until(lambda: sum("turn" in line and "stopped" in line for line in behaved.ledger()) == 50, "the end of all 50")
    assert len(said) == 1
    assert {one.result(15).end for one in others} == {End.ANSWERED}
    assert sum("other" in line and "ended" in line for line in behaved.ledger()) == 5


@pytest.mark.rule("L1")
@pytest.mark.rule("L6")
@pytest.mark.parametrize(("function", "trace"), [("polling", "polling stopped"), ("slow", "slow stopped")])
def test_async_and_polling_functions_stop_when_cancelled(behaved: Driven, function: str, trace: str) -> None:
    """CASES L05."""
    order = behaved.order(function, {"seconds": 20}, cleanup=1.0)
    running = behaved.begin(order)
    behaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    until(lambda: trace in behaved.ledger(), trace, 3)
    assert running.result(5).end is End.STOPPED


@pytest.mark.rule("L6")
def test_a_blocking_function_runs_on_and_its_end_is_not_claimed_to_be_known(behaved: Driven) -> None:
    """CASES L03."""
    order = behaved.order("blocking", {"seconds": 1.5}, cleanup=0.3)
    running = behaved.begin(order)
    behaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(5)
    assert (outcome.end, outcome.end_known) == (End.STOPPED, False)
    assert behaved.ledger() == ["blocking began"]
    until(lambda: "blocking ended" in behaved.ledger(), "its effect after the stop")


def test_a_function_cleans_up_under_its_shield_within_the_clean_up_time(behaved: Driven) -> None:
    order = behaved.order("shielded", {"seconds": 0.3}, cleanup=2.0)
    running = behaved.begin(order)
    behaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    assert running.result(5).end is End.STOPPED
    assert behaved.ledger() == ["shielded began", "shielded cleaned up"]


def test_one_calls_time_limit_leaves_the_rest_of_its_server_working(misbehaved: Driven) -> None:
    """CASES L11, on stdio."""
    for _time in range(3):
        assert misbehaved.call("never", timeout=0.5, own_limit=0.4).end is End.TIMED_OUT
        assert misbehaved.call("ok").end is End.ANSWERED
    (status,) = misbehaved.node.servers()
    assert status.starts == 1
