"""`budget_confirm`: settlement and attribution fail apart, and neither claims what is not known."""

from typing import Any

import pytest

from tests.budgets.serving import FULL, MODES, USED, called, lose, quick, saying, stall
from tests.servers.journals import Asked, Journal, told
from tests.servers.raw_http import Peer

RESERVED = {"reservation_id": "res-1", "call_id": "call-1", **USED}


@pytest.mark.rule("S8")
@pytest.mark.parametrize("mode", MODES)
def test_a_reservation_is_settled_once_and_then_recorded(journal: Journal, mode: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OZ0_BUDGET_RUN", "nightly")
    monkeypatch.setenv("OZ0_BUDGET_TAGS", '{"team": "a"}')
    found = called(journal, "budget_confirm", **RESERVED, _mode=mode)
    assert found["ok"], found
    assert journal.names == ["POST confirm", "POST ingest"]
    assert journal.asked[0].body == RESERVED
    (event,) = journal.asked[1].body["events"]
    assert event == found["data"]["recording_retry"]
    assert (event["call_id"], event["agent_run_id"], event["tags"]) == ("call-1", "nightly", {"team": "a"})
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("confirmed", "ingested")


@pytest.mark.rule("S8")
@pytest.mark.rule("S11")
@pytest.mark.parametrize(
    ("steps", "code", "settlement"),
    [
        ([lose], "outcome_unavailable", "unknown"),
        ([saying("500 Oops")], "outcome_unavailable", "unknown"),
        ([saying("503 Busy", FULL, Retry_After="1")], "admission_failed", "not_submitted"),
        ([saying("503 Busy", FULL)], "admission_failed", "unknown"),
        ([saying("401 No")], "credentials_refused", "not_submitted"),
        ([saying("404 No", {"detail": {"code": "operation_not_found"}})], "operation_not_found", "not_submitted"),
        ([saying("409 No", {"detail": {"code": "operation_conflict"}})], "operation_conflict", "unknown"),
        ([saying("410 No", {"detail": {"code": "operation_expired"}})], "operation_expired", "unknown"),
        ([saying("200 OK", {})], "invalid_response", "unknown"),
        ([saying("302 Found", Location="/elsewhere")], "redirect_refused", "unknown"),
    ],
)
def test_what_is_not_settled_for_sure_is_recorded_by_nobody(
    journal: Journal, steps: Any, code: str, settlement: str
):  # fmt: skip
    """One request, whatever it comes to; the event is kept by the caller."""
    journal.script["POST confirm"] = [*steps, None]
    found = called(journal, "budget_confirm", **RESERVED)
    assert (found["error"]["code"], found["recovery"]["settlement"]) == (code, settlement)
    assert journal.names == ["POST confirm"]
    assert found["recovery"]["reservation_id"] == "res-1"
    assert found["recovery"]["call_id"] == "call-1"
    assert found["recovery"]["recording"] == "stopped"
    assert found["data"]["recording_retry"]["call_id"] == "call-1"


@pytest.mark.rule("S8")
def test_after_a_lost_204_the_same_is_sent_again_without_recording_and_then_the_first_event(journal: Journal):
    journal.script["POST confirm"] = [lose, None]
    first = called(journal, "budget_confirm", **RESERVED)
    assert first["recovery"]["settlement"] == "unknown"
    again = called(journal, "budget_confirm", **RESERVED, no_record=True)
    assert (again["recovery"]["settlement"], again["recovery"]["recording"]) == ("confirmed", "skipped")
    assert journal.asked[0].body == journal.asked[1].body
    kept = first["data"]["recording_retry"]
    assert kept != again["data"]["recording_retry"]  # a moment and an instance of its own
    last = called(journal, "budget_confirm", record_only=kept)
    assert last["ok"]
    assert journal.names == ["POST confirm", "POST confirm", "POST ingest"]
    assert journal.asked[2].body == {"events": [kept]}
    assert (last["recovery"]["settlement"], last["recovery"]["recording"]) == ("not_submitted", "ingested")


@pytest.mark.rule("S8")
def test_a_call_id_that_nobody_gave_is_the_same_in_every_replay(journal: Journal):
    """Else the same inputs would be another payload, and a lost 204 could never be asked for again."""
    reserved = {"reservation_id": "01a22e93-7b6d-7554-ad9f-74b078da5299", **USED}
    first, again = called(journal, "budget_confirm", **reserved), called(journal, "budget_confirm", **reserved)
    assert journal.asked[0].body == journal.asked[2].body
    assert first["recovery"]["call_id"] == again["recovery"]["call_id"] == journal.asked[0].body["call_id"]


@pytest.mark.rule("S11")
@pytest.mark.parametrize("record", [True, False])
def test_a_null_reservation_is_confirmed_by_nobody(journal: Journal, record: bool):
    found = called(journal, "budget_confirm", **(RESERVED | {"reservation_id": None}), no_record=not record)
    assert found["ok"]
    assert found["data"]["skipped"] == "null_reservation"
    assert found["recovery"]["settlement"] == "not_submitted"
    assert journal.names == (["POST ingest"] if record else [])


@pytest.mark.rule("S7")
@pytest.mark.rule("S8")
@pytest.mark.parametrize("step", [lose, saying("500 Oops"), saying("202 Accepted", b"{}")])
def test_a_settlement_outlives_the_failure_of_its_recording(journal: Journal, step: Any):
    journal.script["POST ingest"] = [step]
    found = called(journal, "budget_confirm", **RESERVED)
    assert found["ok"]
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("confirmed", "unknown")
    kept = found["data"]["recording_retry"]
    alone = called(journal, "budget_confirm", record_only=kept)
    assert alone["error"]["code"] == "recording_unknown"
    assert alone["recovery"]["settlement"] == "not_submitted"
    assert journal.count("POST confirm") == 1


@pytest.mark.rule("S7")
def test_a_duplicate_by_its_moment_alone_stays_unknown(journal: Journal):
    async def legacy(peer: Peer, asked: Asked) -> None:
        await peer.status("202 Accepted", told(asked.body["events"], matched_by="legacy_key"))

    journal.script["POST ingest"] = [legacy]
    found = called(journal, "budget_confirm", **RESERVED)
    assert (found["recovery"]["recording"], found["data"]["recorded"]) == ("unknown", False)


@pytest.mark.rule("W1")
@pytest.mark.rule("S8")
def test_a_deadline_leaves_what_was_known(journal: Journal):
    journal.script["POST ingest"] = [stall]
    found = called(journal, "budget_confirm", **RESERVED, _bounds=quick(1.5))
    assert found["error"]["code"] == "operation_deadline"
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("confirmed", "unknown")
    assert found["data"]["recording_retry"]
    journal.script["POST confirm"] = [stall]
    found = called(journal, "budget_confirm", **RESERVED, _bounds=quick(0.5))
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("unknown", "stopped")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        USED,  # without the reservation, which may be null and must be said
        {**RESERVED, "input_tokens": -1},
        {**RESERVED, "input_tokens": True},
        {**RESERVED, "surprise": 1},
        {**RESERVED, "record_only": {"call_id": "x"}},
        {"record_only": {"call_id": "x"}},
        {"record_only": None},
    ],
)
def test_arguments_that_no_confirmation_can_be_made_of_send_nothing(journal: Journal, arguments: dict[str, Any]):
    found = called(journal, "budget_confirm", **arguments)
    assert found["error"]["code"] == "invalid_arguments"
    assert found["recovery"]["settlement"] == "not_submitted"
    assert journal.asked == []
