"""Telling of denials again: exactly these events, and what became of each (CASES J11)."""

from typing import Any

import pytest

from tests.budgets.serving import CHECK, FULL, called, denied, fresh, lose, saying
from tests.servers.journals import Asked, Journal, told
from tests.servers.raw_http import Peer


@pytest.mark.rule("S6")
@pytest.mark.rule("S7")
@pytest.mark.parametrize(
    ("receipt", "status", "code"),
    [
        ({}, "ingested", None),
        ({"matched_by": "call_id", "same": True}, "deduplicated", None),
        ({"matched_by": "call_id", "same": False}, "rejected", "recording_rejected"),
        ({"code": "unknown_model"}, "rejected", "recording_rejected"),
        ({"matched_by": "legacy_key", "same": None}, "unknown", "recording_unknown"),
        ({"matched_by": "surprise"}, "unknown", "recording_unknown"),
        ({"code": "surprise"}, "unknown", "recording_unknown"),
        ({"code": "unknown_model", "call_id": "another"}, "unknown", "recording_unknown"),
        ({"code": "unknown_model", "index": 1}, "unknown", "recording_unknown"),
    ],
)
def test_record_only_sends_the_exact_event_and_tells_what_became_of_it(
    journal: Journal, receipt: dict[str, Any], status: str, code: str | None
):
    operation, kept = denied(journal)

    async def step(peer: Peer, asked: Asked) -> None:
        await peer.status("202 Accepted", told(asked.body["events"], **receipt))

    journal.script["POST ingest"] = [step]
    found = called(journal, "budget_check_batch", operation_id=operation, record_only=[kept])
    assert journal.names == ["POST ingest"]
    assert journal.asked[0].body == {"events": [kept["event"]]}
    assert found["recovery"]["recording"] == status
    assert found["recovery"]["state"] == "not_submitted"
    assert (found["error"] or {}).get("code") == code
    assert found["data"]["recording_retry"] == [kept]


@pytest.mark.rule("S6")
@pytest.mark.rule("S11")
@pytest.mark.parametrize(
    "change",
    [
        {"call_id": "019a0000-0000-7000-8000-000000000001"},
        {"instance_id": "another"},
        {"status": "success"},
        {"attempt_index": 1},
        {"timestamp": "2026-11-30T12:00:00"},
        {"timestamp": None},
    ],
)
def test_an_event_that_is_not_the_one_it_was_is_not_sent(journal: Journal, change: dict[str, Any]):
    operation, kept = denied(journal)
    event = kept["event"] | change
    found = called(journal, "budget_check_batch", operation_id=operation, record_only=[{"index": 0, "event": event}])
    assert found["error"]["code"] == "invalid_arguments"
    assert "unchanged" in found["error"]["message"]
    swapped = called(journal, "budget_check_batch", operation_id=operation, record_only=[kept | {"index": 1}])
    twice = called(journal, "budget_check_batch", operation_id=operation, record_only=[kept, kept])
    other = called(journal, "budget_check_batch", operation_id=fresh(), record_only=[kept])
    assert {one["error"]["code"] for one in (swapped, twice, other)} == {"invalid_arguments"}
    assert journal.asked == []


@pytest.mark.rule("S7")
@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ([lose], "unknown"),
        ([saying("503 Busy", FULL, Retry_After="1")], "failed"),
        ([saying("500 Oops")], "unknown"),
        ([saying("503 Else"), saying("503 Busy", FULL, Retry_After="1")], "unknown"),
        ([saying("422 Bad")], "failed"),
        ([saying("202 Accepted", {"submitted": 2, "ingested": 2, "rejected": 0, "duplicates": 0})], "unknown"),
    ],
)
def test_what_becomes_of_a_recording_is_told_apart_from_the_admission(journal: Journal, steps: Any, status: str):
    """A submission whose denial was not recorded is good: what it was for is known."""
    journal.denied = {0}
    journal.script["POST ingest"] = list(steps)
    found = called(journal, "budget_check_batch", operation_id=fresh(), checks=[CHECK])
    assert found["ok"]
    assert found["data"]["recorded"] is False
    assert (found["recovery"]["state"], found["recovery"]["recording"]) == ("finished", status)
    operation, kept = denied(journal)
    journal.script["POST ingest"] = list(steps)
    again = called(journal, "budget_check_batch", operation_id=operation, record_only=[kept])
    assert not again["ok"]
    assert again["recovery"]["recording"] == status
