"""What counts as an answer, and what the model reads of it."""

import json

import pytest

from catalog.rules.wire import AnswerEnd
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from tests.node.driving import Driven


def test_a_result_is_answered_with_its_wire_record(misbehaved: Driven) -> None:
    outcome = misbehaved.call("ok")
    assert (outcome.end, outcome.reason, outcome.result.text) == (End.ANSWERED, Reason.ANSWERED, "done")
    assert (outcome.wire.connected, outcome.wire.went_out, outcome.wire.ended) == (True, True, AnswerEnd.COMPLETE)


@pytest.mark.rule("K1")
@pytest.mark.rule("K7")
def test_each_attempt_carries_the_key_and_arguments_cannot_touch_it(misbehaved: Driven) -> None:
    """CASES R18, R22."""
    forged = {"_meta": {"oz0/idempotency_key": "mine"}, "oz0/idempotency_key": "mine", "key": "mine"}
    for _attempt in range(2):
        misbehaved.call("says_meta", forged, key="job_1/7")
    sent = misbehaved.requests()
    assert [request["_meta"] for request in sent] == [{"oz0/idempotency_key": "job_1/7"}] * 2
    assert [request["arguments"] for request in sent] == [forged] * 2


@pytest.mark.rule("K1")
def test_the_key_arrives_on_the_newer_protocol_too(behaved: Driven) -> None:
    assert behaved.open().listing.protocol == "2026-07-28"
    assert behaved.call("says_so", key="job_1/8").result.text == "job_1/8"


@pytest.mark.rule("B7")
@pytest.mark.parametrize(
    "function",
    ["ok", "fails", "shapeless", "breaks_schema", "wants_input", "asks_the_person", "garbled", "twice", "huge"],
)
def test_an_attempt_is_one_request_whatever_the_answer(misbehaved: Driven, function: str) -> None:
    misbehaved.call(function)
    listed = sum('"tools/list"' in line for line in misbehaved.ledger())
    misbehaved.call("ok")
    assert [request["name"] for request in misbehaved.requests()] == [function, "ok"]
    assert sum('"tools/list"' in line for line in misbehaved.ledger()) == listed


@pytest.mark.rule("U3")
def test_an_error_of_the_protocol_is_an_answer_the_model_reads(misbehaved: Driven) -> None:
    outcome = misbehaved.call("fails")  # with the code and words an SDK uses for a closed connection
    assert (outcome.end, outcome.reason, outcome.result.is_error) == (End.ANSWERED, Reason.SERVER_ERROR, True)
    assert outcome.result.text == "Error -32000 from the server: Connection closed"


def test_an_error_of_the_tool_is_an_answer(behaved: Driven) -> None:
    outcome = behaved.call("fails")
    assert (outcome.end, outcome.reason, outcome.result.is_error) == (End.ANSWERED, Reason.TOOL_ERROR, True)
    assert "no such book" in outcome.result.text


@pytest.mark.rule("U3")
def test_an_answer_that_breaks_its_output_schema_is_an_answer_with_a_warning(misbehaved: Driven) -> None:
    outcome = misbehaved.call("breaks_schema")
    assert (outcome.end, outcome.result.is_error, outcome.result.structured) == (End.ANSWERED, False, {"n": "seven"})
    assert outcome.result.warning == "The answer breaks the function's own output schema at $.n."


@pytest.mark.parametrize("function", ["wants_input", "asks_the_person"])
def test_a_server_that_asks_for_input_gets_none_and_the_call_ends_as_an_error(
    misbehaved: Driven, function: str
) -> None:
    outcome = misbehaved.call(function)
    assert (outcome.end, outcome.reason, outcome.result.is_error) == (End.ANSWERED, Reason.ASKED_FOR_INPUT, True)
    assert outcome.result.text.startswith("The server asked for input")


@pytest.mark.rule("U4")
@pytest.mark.parametrize("function", ["garbled", "shapeless"])
def test_an_answer_nobody_can_read_is_unreadable(misbehaved: Driven, function: str) -> None:
    outcome = misbehaved.call(function)
    assert (outcome.end, outcome.reason, outcome.result) == (End.UNREADABLE, Reason.UNREADABLE, None)
    assert (outcome.wire.went_out, outcome.wire.ended) == (True, AnswerEnd.UNREADABLE)


@pytest.mark.parametrize("function", ["huge", "huge_id_last"])
def test_an_answer_too_large_to_keep_was_made_and_costs_only_its_own_call(misbehaved: Driven, function: str) -> None:
    """CASES I05."""
    sibling = misbehaved.begin(misbehaved.order("error_when_cancelled"))
    outcome = misbehaved.call(function)
    assert (outcome.end, outcome.reason, outcome.wire.ended) == (End.ANSWERED, Reason.TOO_LARGE, AnswerEnd.TOO_LARGE)
    assert "(more than 10 MiB)" in outcome.result.text
    assert not sibling.done()
    assert misbehaved.call("ok").end is End.ANSWERED


def test_an_answer_of_nine_mebibytes_is_kept(misbehaved: Driven) -> None:
    assert len(misbehaved.call("large", {"bytes": 9 * 2**20}).result.text) == 9 * 2**20


def test_a_second_answer_to_one_request_changes_nothing(misbehaved: Driven) -> None:
    assert misbehaved.call("twice").result.text == "first"
    assert misbehaved.call("ok").result.text == "done"
    assert misbehaved.late == []


def test_a_banner_stray_lines_and_bad_bytes_cost_nobody(misbehaved: Driven) -> None:
    """CASES I02, I03."""
    outcome = misbehaved.call("noisy")
    assert outcome.result.text == "answered through the noise"
    (status,) = misbehaved.node.servers()
    assert "stdout: Starting up… 🚀" in status.log
    assert any("bad bytes" in line for line in status.log)


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    ("result", "busy", "retry_after"),
    [
        ('"isError": true, "_meta": {"oz0/retryable": true}', True, None),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": 3}', True, 3.0),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": 0}', True, 0.0),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": 1e12}', True, 1e12),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": "10"}', True, None),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": -5}', True, None),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": true}', True, None),
        ('"isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": 1e999}', True, None),
        ('"isError": true, "_meta": {"oz0/retryable": "true"}', False, None),
        ('"isError": true, "_meta": {"oz0/retryable": 1}', False, None),
        ('"isError": false, "_meta": {"oz0/retryable": true}', False, None),
        ('"_meta": {"oz0/retryable": true, "oz0/retry_after": 3}', False, None),
        ('"isError": true, "_meta": [1]', False, None),
    ],
)
def test_busy_is_said_by_the_real_boolean_on_an_error_and_odd_waits_are_ignored(
    misbehaved: Driven, result: str, busy: bool, retry_after: float | None
) -> None:
    """CASES B06."""
    outcome = misbehaved.call("exactly", {"result": f'{{"content": [{{"type": "text", "text": "later"}}], {result}}}'})
    assert (outcome.end is End.BUSY, outcome.reason == Reason.BUSY) == (busy, busy)
    assert outcome.retry_after == retry_after
    assert outcome.result.text == "later"


@pytest.mark.rule("B1")
def test_a_wait_that_is_not_a_number_of_json_is_not_trusted(misbehaved: Driven) -> None:
    result = '{"content": [], "isError": true, "_meta": {"oz0/retryable": true, "oz0/retry_after": NaN}}'
    outcome = misbehaved.call("exactly", {"result": result})
    assert (outcome.end, outcome.retry_after) == (End.UNREADABLE, None)


@pytest.mark.rule("C8")
def test_the_model_reads_the_text_parts_and_a_line_for_each_other(behaved: Driven) -> None:
    assert behaved.call("several").result.text == "one\n[image, 12 KB, kept in the trace]\ntwo"


@pytest.mark.rule("C8")
def test_structured_content_without_text_is_sent_as_its_json(misbehaved: Driven, behaved: Driven) -> None:
    outcome = misbehaved.call("exactly", {"result": '{"content": [], "structuredContent": {"é": 1}}'})
    assert outcome.result.text == '{"é": 1}'
    assert json.loads(behaved.call("figures").result.text) == {"answer": 42}


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800", "\\udc00\\ud800"])
def test_what_no_database_keeps_is_replaced_in_answers(misbehaved: Driven, text: str) -> None:
    outcome = misbehaved.call("exactly", {"result": f'{{"content": [{{"type": "text", "text": "a{text}b"}}]}}'})
    assert outcome.result.text.encode().strip(b"ab") in ("\ufffd".encode(), "\ufffd\ufffd".encode())
