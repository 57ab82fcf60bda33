"""`budget_confirm`: settlement and attribution fail apart, and neither claims what is not known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgets.sessions.bounds import BOUNDS
from budgets.sessions.credentials import PairOfLogin
from tests.budgets.serving import CHECK, FULL, MODES, USED, called, denied, fresh, lose, quick, saying, stall
from tests.servers.journals import Asked, Journal, told
from tests.servers.raw_http import Peer

RESERVATION = "01a22e93-7b6d-7554-ad9f-74b078da5299"
RESERVED = {"reservation_id": RESERVATION, "call_id": "call-1", **USED}


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
    assert found["recovery"]["reservation_id"] == RESERVATION
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
    reserved = {"reservation_id": RESERVATION, **USED}
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


@pytest.mark.rule("S11")
@pytest.mark.parametrize("line", ["409 Conflict", "410 Gone"])
def test_a_refusal_that_leaves_open_what_was_done_before_says_so(journal: Journal, line: str):
    journal.script["POST"] = [saying(line, {"detail": {"code": "operation_expired"}})]
    for tool, arguments in (("budget_confirm", RESERVED), ("budget_check_batch", {"checks": [CHECK]})):
        message = called(journal, tool, **arguments)["error"]["message"]
        assert "nothing was made" not in message
        assert "was done under the same id before is not known" in message


def test_what_the_journal_finds_malformed_is_told_with_its_first_mistake(journal: Journal):
    errors = [
        {"at": "checks.0.model", "detail": "is too long\x1b[8m"},
        {"at": "checks.1.model", "detail": "so is this"},
    ]
    journal.script["POST"] = [saying("422 Bad", {"detail": {"code": "malformed"}, "errors": errors})]
    message = called(journal, "budget_check_batch", checks=[CHECK])["error"]["message"]
    assert "malformed: checks.0.model: is too long" in message
    assert "nothing was made" in message
    assert "\x1b" not in message
    assert "so is this" not in message


@pytest.mark.rule("S8")
def test_a_recording_that_nobody_wanted_is_skipped_although_the_settlement_was_lost(journal: Journal):
    journal.script["POST confirm"] = [lose]
    found = called(journal, "budget_confirm", **RESERVED, no_record=True)
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("unknown", "skipped")
    assert found["data"]["recordings"][0]["status"] == "skipped"


@pytest.mark.rule("S11")
def test_a_recording_that_a_key_keeps_from_being_sent_says_so(journal: Journal, tmp_path: Path):
    kept = called(journal, "budget_confirm", **RESERVED, no_record=True)["data"]["recording_retry"]
    operation, denial = denied(journal)
    none = PairOfLogin(tmp_path / "nobody")
    for arguments in (
        {"tool": "budget_confirm", "record_only": kept},
        {"tool": "budget_check_batch", "operation_id": operation, "record_only": [denial]},
    ):
        found = called(journal, **arguments, _credentials=none)
        assert (found["error"]["code"], found["recovery"]["recording"]) == ("credentials_missing", "failed")
        for line, code in (("401 No", "credentials_refused"), ("403 No", "not_allowed")):
            journal.script["POST ingest"] = [saying(line)]
            found = called(journal, **arguments)
            assert (found["error"]["code"], found["recovery"]["recording"]) == (code, "failed")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("modality", "smell"),
        ("input_tokens", 10**12 + 1),
        ("model", "a\0b"),
        ("provider", "a\0b"),
        ("call_id", "c" * 257),
        ("tags", {"a": "\0"}),
        ("reservation_id", "res-1"),
    ],
)
def test_what_the_journal_would_refuse_is_refused_before_it_is_sent(journal: Journal, name: str, value: Any):
    found = called(journal, "budget_confirm", **(RESERVED | {name: value}))
    assert found["error"]["code"] == "invalid_arguments"
    assert name in found["error"]["message"]
    assert journal.asked == []


def test_tags_of_the_environment_and_of_the_arguments_are_bounded_together(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OZ0_BUDGET_TAGS", json.dumps({f"e{number}": "" for number in range(6)}))
    tags = {f"t{number}": "" for number in range(5)}
    for tool, arguments, where in (
        ("budget_confirm", RESERVED | {"tags": tags}, "tags"),
        ("budget_check_batch", {"checks": [CHECK, CHECK | {"tags": tags}]}, "checks.1.tags"),
    ):
        message = called(journal, tool, **arguments)["error"]["message"]
        assert message.startswith(f"{where}: with those of OZ0_BUDGET_TAGS")
        assert "11 tags, and at most 10" in message
    assert journal.asked == []
    assert called(journal, "budget_check_batch", checks=[CHECK | {"tags": {"e0": "own", "t": ""}}])["ok"]
    assert len(journal.asked[-1].body["checks"][0]["tags"]) == 7


@pytest.mark.rule("W2")
def test_refusals_and_compact_failures_are_bounded_too(journal: Journal):
    """A name that nobody knows, of 3 MiB; an event's own; and a batch whose bound is small."""
    wide = "x" * (3 * 2**20)
    event = called(journal, "budget_confirm", **RESERVED, no_record=True)["data"]["recording_retry"]
    for tool, arguments in (
        ("budget_check_batch", {"checks": [CHECK | {wide: 1}]}),
        ("budget_confirm", {"record_only": event | {"call_id": wide}}),
    ):
        found = called(journal, tool, **arguments)
        assert found["error"]["code"] == "invalid_arguments"
        assert len(json.dumps(found)) < 5_000
    operation = fresh()
    small = replace(BOUNDS, result=BOUNDS.reserve + 3_000)
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK] * 32, _bounds=small)
    assert (found["recovery"]["operation_id"], found["recovery"]["items"]) == (operation, [])
    assert 2 * len(json.dumps(found)) < 3_500
