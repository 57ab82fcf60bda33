"""What is not made, what is broken, and that a node never leaves a caller hanging."""

import time

import pytest

from catalog.rules.wire import AnswerEnd
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from tests.node.driving import Driven, until


@pytest.mark.rule("U4")
@pytest.mark.parametrize("function", ["effect_then_dies", "effect_then_closes_output"])
def test_a_server_that_dies_after_its_effect_ends_the_call_at_once_as_broken(misbehaved: Driven, function: str) -> None:
    """CASES U02, U03: well inside the limit, and not called a time limit."""
    began = time.monotonic()
    outcome = misbehaved.call(function)
    assert "effect" in misbehaved.ledger()
    assert time.monotonic() - began < 5
    assert (outcome.end, outcome.reason) == (End.BROKEN, Reason.CONNECTION_BROKE)
    assert (outcome.wire.went_out, outcome.wire.ended) == (True, AnswerEnd.BROKEN)
    assert "The request had gone out and no answer came." in outcome.wire.detail


@pytest.mark.rule("U4")
def test_half_an_answer_is_no_answer(misbehaved: Driven) -> None:
    outcome = misbehaved.call("half_line_then_dies")
    assert (outcome.end, outcome.wire.detail[:43]) == (End.BROKEN, "The server's process ended with code 3. The")


def test_the_others_of_a_server_that_dies_are_told_at_once_too(misbehaved: Driven) -> None:
    other = misbehaved.begin(misbehaved.order("never"))
    misbehaved.call("effect_then_dies")
    assert other.result(5).end is End.BROKEN


@pytest.mark.rule("U3")
def test_a_call_to_a_server_that_is_gone_was_not_made(misbehaved: Driven) -> None:
    misbehaved.call("effect_then_dies")
    outcome = misbehaved.call("ok")
    assert (outcome.end, outcome.reason, outcome.wire.went_out) == (End.NOT_MADE, Reason.SERVER_NOT_UP, False)


def test_a_server_that_died_is_started_anew_by_the_next_open(misbehaved: Driven) -> None:
    misbehaved.call("effect_then_dies")
    misbehaved.open()
    assert misbehaved.call("ok").end is End.ANSWERED
    (status,) = misbehaved.node.servers()
    assert (status.starts, status.state) == (2, "up")


@pytest.mark.rule("U3")
def test_a_function_the_server_does_not_have_was_not_made(misbehaved: Driven) -> None:
    outcome = misbehaved.call("nowhere")
    assert (outcome.end, outcome.reason) == (End.NOT_MADE, Reason.FUNCTION_GONE)
    assert misbehaved.requests() == []


@pytest.mark.rule("U3")
def test_an_entry_other_than_the_one_judged_was_not_made(misbehaved: Driven) -> None:
    outcome = misbehaved.call("ok", entry_digest="another")
    assert (outcome.end, outcome.reason, outcome.wire.went_out) == (End.NOT_MADE, Reason.LISTING_CHANGED, False)
    assert misbehaved.requests() == []


def test_a_listing_that_the_server_says_has_changed_is_read_again_before_the_next_call(misbehaved: Driven) -> None:
    """CASES S01."""
    assert misbehaved.call("changes_its_listing").end is End.ANSWERED
    outcome = misbehaved.call("ok")
    assert (outcome.end, outcome.reason) == (End.NOT_MADE, Reason.LISTING_CHANGED)
    misbehaved.open()
    assert misbehaved.call("ok").end is End.ANSWERED


@pytest.mark.rule("L4")
def test_an_attempt_whose_time_is_over_is_not_sent(misbehaved: Driven) -> None:
    outcome = misbehaved.start(misbehaved.order("ok", timeout=10.0, own_limit=9.0), ago=9.5).result(5)
    assert (outcome.end, outcome.reason, outcome.wire.went_out) == (End.NOT_MADE, Reason.LATE_START, False)
    assert misbehaved.requests() == []


@pytest.mark.rule("U3")
def test_a_request_held_back_by_a_server_that_does_not_read_was_not_made(misbehaved: Driven) -> None:
    """The control is the first of them: its bytes did leave, so it ran past its limit."""
    misbehaved.call("stops_reading")
    filler = {"text": "x" * 2**20}
    first = misbehaved.start(misbehaved.order("ok", filler, timeout=1.5, own_limit=1.2))
    until(lambda: misbehaved.node.open_attempts(), "the first attempt")
    second = misbehaved.start(misbehaved.order("ok", filler, timeout=1.5, own_limit=1.2), ago=0.05)
    ends = {first.result(10).end, second.result(10).end}
    assert ends == {End.TIMED_OUT, End.NOT_MADE}


def test_a_server_that_does_not_read_costs_another_server_nothing(misbehaved: Driven, behaved: Driven) -> None:
    misbehaved.call("stops_reading")
    stuck = misbehaved.start(misbehaved.order("ok", {"text": "x" * 2**20}, timeout=20.0, own_limit=18.0))
    began = time.monotonic()
    assert behaved.call("ping").end is End.ANSWERED
    assert time.monotonic() - began < 2
    assert not stuck.done()


def test_arguments_that_are_no_json_were_not_made(misbehaved: Driven) -> None:
    for odd in (float("nan"), "\ud800", object()):
        outcome = misbehaved.call("ok", {"odd": odd})
        assert (outcome.end, outcome.reason) == (End.NOT_MADE, Reason.ARGUMENTS_UNSENDABLE)
    assert misbehaved.call("ok").end is End.ANSWERED


def test_more_calls_than_the_tool_has_slots_are_refused(misbehaved: Driven) -> None:
    running = [misbehaved.begin(misbehaved.order("never")) for _slot in range(16)]
    outcome = misbehaved.call("ok")
    assert (outcome.end, outcome.reason) == (End.NOT_MADE, Reason.NO_SLOT)
    assert not any(one.done() for one in running)
