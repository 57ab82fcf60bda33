"""`budget_check_batch` against a journal that fails in every way: what is told is what is known (CASES J09, J11)."""

import json
from typing import Any
from uuid import UUID, uuid5

import pytest

from tests.budgets.serving import (
    CHECK,
    FULL,
    MODES,
    AtHand,
    called,
    denied,
    fresh,
    lose,
    quick,
    said,
    saying,
    stall,
    talk,
)
from tests.servers.journals import NOW, Asked, Journal
from tests.servers.raw_http import Peer


def submit(journal: Journal, count: int = 1, **more: Any) -> dict[str, Any]:
    return called(journal, "budget_check_batch", operation_id=fresh(), checks=[CHECK] * count, **more)


@pytest.mark.rule("S1")
@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_submitted_once_and_told_whole(journal: Journal, mode: Any):
    journal.denied, journal.unreserved = {1}, {2}
    operation = fresh()
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK] * 3, _mode=mode)
    assert found["ok"], found
    assert journal.names == ["POST check/batches", "POST ingest"]
    assert journal.asked[0].body == {"operation_id": operation, "checks": [CHECK] * 3}
    data = found["data"]
    assert (data["operation_id"], data["status"]) == (operation, "finished")
    assert [one["state"] for one in data["items"]] == ["completed"] * 3
    assert [(one["ok"], one["allowed"], one["reservation_id"]) for one in data["results"]] == [
        (True, True, "res-0"),
        (True, False, None),  # a denial is a good result
        (True, True, None),  # and so is an allowance that reserved nothing
    ]
    assert found["recovery"]["state"] == "finished"
    assert [one["reservation_id"] for one in found["recovery"]["items"]] == ["res-0", None, None]
    assert [one["recording_status"] for one in found["recovery"]["items"]] == [
        "not_recorded",
        "ingested",
        "not_recorded",
    ]
    assert found["recovery"]["settlement"] == "not_submitted"


@pytest.mark.rule("S6")
def test_a_denial_is_recorded_under_an_identity_that_is_always_the_same(journal: Journal):
    journal.denied = {1}
    check = CHECK | {"tags": {"team": "a"}, "agent_run_id": "run-1", "fallback_models": ["gpt-4o-mini"]}
    operation = fresh()
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK, check])
    event = {
        "call_id": str(uuid5(UUID(operation), "denial:1")), "instance_id": operation, "attempt_index": 0,
        "timestamp": NOW.isoformat(), "status": "budget_denied", "model": "gpt-4o", "provider": "openai",
        "input_tokens": 0, "output_tokens": 0, "agent_run_id": "run-1", "tags": {"team": "a"},
    }  # fmt: skip
    assert journal.asked[1].body == {"events": [event]}
    assert found["data"]["recording_retry"] == [{"index": 1, "event": event}]
    assert found["data"]["recorded"] is True
    assert found["recovery"]["recording"] == "ingested"


@pytest.mark.rule("S6")
def test_no_record_skips_only_the_ingest(journal: Journal):
    journal.denied = {0}
    found = submit(journal, no_record=True)
    assert journal.names == ["POST check/batches"]
    assert found["ok"]
    assert found["recovery"]["recording"] == "skipped"
    assert found["data"]["recording_retry"][0]["event"]["status"] == "budget_denied"


@pytest.mark.rule("S1")
@pytest.mark.parametrize("count", [0, 1, 32, 33])
def test_one_to_32_checks_are_taken(journal: Journal, count: int):
    found = submit(journal, count)
    assert found["ok"] is (1 <= count <= 32)
    if not found["ok"]:
        assert found["error"]["code"] == "invalid_arguments"
        assert found["recovery"]["state"] == "not_submitted"
        assert journal.asked == []


def maximal() -> dict[str, Any]:
    """A check whose texts are as long as they may be, of characters of four bytes."""
    return {
        "model": "𝕄" * 2_048, "provider": "openai", "estimated_input_tokens": 10**12,
        "estimated_output_tokens": 10**12, "fallback_models": ["𝔽" * 2_048] * 8, "agent_run_id": "ℝ" * 255 + "𝕣",
        "tags": {f"{number}" + "𝕥" * 63: "𝕧" * 256 for number in range(10)},
        "uncounted_calls": 10**12, "uncounted_tokens": 10**12,
    }  # fmt: skip


@pytest.mark.rule("W2")
def test_32_maximal_checks_of_four_byte_text_fit_into_a_request_and_their_denials_into_a_result(journal: Journal):
    journal.denied = set(range(32))
    operation = fresh()
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[maximal()] * 32)
    assert found["ok"], found["error"]
    assert 2 * 2**20 < journal.asked[0].length < 4 * 2**20
    assert journal.asked[0].body["checks"] == [maximal()] * 32
    assert len(found["data"]["recording_retry"]) == 32


@pytest.mark.rule("W2")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "m" * 2_049),
        ("model", ""),
        ("fallback_models", ["m"] * 9),
        ("agent_run_id", "r" * 257),
        ("tags", {f"t{number}": "" for number in range(11)}),
        ("tags", {"t" * 65: ""}),
        ("tags", {"t": "v" * 257}),
        ("estimated_input_tokens", -1),
        ("estimated_input_tokens", "100"),
        ("surprise", 1),
    ],
)
def test_a_check_past_its_limits_is_refused_before_credentials(journal: Journal, name: str, value: Any):
    key = AtHand()
    checks = [CHECK, CHECK | {name: value}]
    found = called(journal, "budget_check_batch", operation_id=fresh(), checks=checks, _credentials=key)
    assert found["error"]["code"] == "invalid_arguments"
    assert f"checks.1.{name}" in found["error"]["message"]
    assert (key.read_times, journal.asked) == (0, [])


@pytest.mark.rule("W2")
def test_a_request_past_four_mebibytes_is_not_sent_and_its_failure_is_compact(journal: Journal):
    """The event is as large as its caller makes it: it is sent exactly as given, or not at all."""
    operation, kept = denied(journal)
    for size, code in ((2**22 - 1_000, "response_size_limit"), (2**22 + 1, "request_size_limit")):
        wide = kept | {"event": kept["event"] | {"note": "x" * size}}
        found = called(journal, "budget_check_batch", operation_id=operation, record_only=[wide])
        assert (found["error"]["code"], found["error"]["data_left_out"], found["data"]) == (code, True, None)
        assert found["recovery"]["operation_id"] == operation
        assert found["recovery"]["recording"] == ("ingested" if code == "response_size_limit" else "stopped")
    assert journal.names == ["POST ingest"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"recover_only": True, "checks": [CHECK]},
        {"recover_only": True, "record_only": [{"index": 0, "event": {}}]},
        {"checks": [CHECK], "record_only": [{"index": 0, "event": {}}]},
        {"recover_only": True, "no_record": True},
        {"record_only": []},
    ],
)
@pytest.mark.rule("S5")
def test_the_three_ways_exclude_each_other(journal: Journal, arguments: dict[str, Any]):
    found = called(journal, "budget_check_batch", operation_id=fresh(), **arguments)
    assert found["error"]["code"] == "invalid_arguments"
    assert journal.asked == []


@pytest.mark.parametrize(
    "operation",
    [
        "4f9e2b2e-7a31-4c1e-9d3e-111111111111",
        "019A0000-0000-7000-8000-000000000001",
        "019a000000007000800000000000 0001",
        "",
    ],
)
def test_an_operation_id_is_a_canonical_uuidv7(journal: Journal, operation: str):
    for arguments in ({"checks": [CHECK]}, {"recover_only": True}):
        found = called(journal, "budget_check_batch", operation_id=operation, **arguments)
        assert found["error"]["code"] == "invalid_arguments"
        assert "UUIDv7" in found["error"]["message"]
    assert journal.asked == []


@pytest.mark.rule("S1")
def test_an_id_is_made_when_left_out_and_told_also_without_credentials(journal: Journal, tmp_path: Any):
    from budgets.sessions.credentials import PairOfLogin

    assert (
        called(journal, "budget_check_batch", checks=[CHECK])["recovery"]["operation_id"]
        == (journal.asked[0].body["operation_id"])
    )
    none = PairOfLogin(tmp_path / "nobody")
    found = called(journal, "budget_check_batch", checks=[CHECK], _credentials=none)
    assert found["error"]["code"] == "credentials_missing"
    assert UUID(found["recovery"]["operation_id"]).version == 7
    assert found["recovery"]["state"] == "not_submitted"
    bad = called(journal, "budget_check_batch", checks=[{"model": ""}])
    assert UUID(bad["recovery"]["operation_id"]).version == 7


REFUSALS = [
    ("404 Not Found", {"detail": {"code": "operation_not_found"}}, "operation_not_found", "not_submitted"),
    ("422 Unprocessable", {"detail": {"code": "operation_in_future"}}, "operation_in_future", "not_submitted"),
    ("409 Conflict", {"detail": {"code": "operation_conflict"}}, "operation_conflict", "unknown"),
    ("410 Gone", {"detail": {"code": "operation_expired"}}, "operation_expired", "unknown"),
    ("401 Unauthorized", {}, "credentials_refused", "not_submitted"),
    ("403 Forbidden", {}, "not_allowed", "not_submitted"),
    ("429 Too Many", {}, "rate_limited", "not_submitted"),
    ("503 Busy", {"detail": {"code": "outcome_unavailable"}}, "outcome_unavailable", "unknown"),
    ("500 Oops", b"<html>", "outcome_unavailable", "unknown"),
    ("307 Elsewhere", b"", "redirect_refused", "unknown"),
    ("200 OK", {"operation_id": "x"}, "invalid_response", "unknown"),
    ("200 OK", b"not json", "invalid_response", "unknown"),
]


@pytest.mark.rule("S1")
@pytest.mark.rule("S11")
@pytest.mark.parametrize(("line", "body", "code", "state"), REFUSALS)
def test_a_submission_that_is_refused_or_lost_is_never_sent_again(
    journal: Journal, line: str, body: Any, code: str, state: str
):
    """The control is the first test: the same, answered well."""
    journal.script["POST check/batches"] = [saying(line, body, Retry_After="0"), None]
    found = submit(journal)
    assert (found["error"]["code"], found["recovery"]["state"]) == (code, state)
    assert found["recovery"]["recording"] == "not_submitted"
    assert journal.names == ["POST check/batches"]


@pytest.mark.rule("S11")
def test_only_a_recognised_capacity_answer_says_that_nothing_was_submitted(journal: Journal):
    journal.script["POST check/batches"] = [saying("503 Busy", FULL, Retry_After="1")]
    assert submit(journal)["recovery"]["state"] == "not_submitted"
    journal.script["POST check/batches"] = [saying("503 Busy", FULL, Retry_After="2")]
    assert submit(journal)["recovery"]["state"] == "unknown"


@pytest.mark.rule("S11")
def test_a_lost_reply_is_unknown_and_a_closed_door_is_not(journal: Journal):
    journal.script["POST check/batches"] = [lose]
    found = submit(journal)
    assert (found["error"]["code"], found["recovery"]["state"]) == ("outcome_unavailable", "unknown")
    assert journal.count("POST check/batches") == 1
    journal.end()
    found = submit(journal)
    assert (found["error"]["code"], found["recovery"]["state"]) == ("connection_failed", "not_submitted")


def broken(journal: Journal, *states: str, status: str = "interrupted") -> Any:
    async def step(peer: Peer, asked: Asked) -> None:
        batch = journal.batch(asked.body) | {"status": status}
        for item, state in zip(batch["items"], states, strict=True):
            if state != "completed":
                error = {"failed": "check_failed", "unknown": "reservation_unknown"}.get(state)
                item |= {"state": state, "result": None, "error_code": error}
                item |= {"checked_at": None, "reservation_expires_at": None}
        journal.operations[batch["operation_id"]] = batch
        await peer.status("200 OK", batch)

    return step


@pytest.mark.rule("S3")
@pytest.mark.rule("S11")
@pytest.mark.parametrize("bad", ["failed", "unknown", "unattempted"])
def test_what_is_not_completed_is_an_error_with_its_data_kept_and_is_not_tried_again(journal: Journal, bad: str):
    journal.denied = {0}
    journal.script["POST check/batches"] = [broken(journal, "completed", "completed", bad, "unattempted")]
    found = submit(journal, 4)
    assert found["error"]["code"] == "batch_check_failed"
    assert [one["state"] for one in found["data"]["items"]] == ["completed", "completed", bad, "unattempted"]
    assert [one["ok"] for one in found["data"]["results"]] == [True, True, False, False]
    assert [one["reservation_id"] for one in found["recovery"]["items"]] == [None, "res-1", None, None]
    assert found["recovery"]["state"] == "interrupted"
    assert journal.names == ["POST check/batches", "POST ingest"]


@pytest.mark.rule("S3")
@pytest.mark.parametrize(
    "states",
    [
        ("unattempted", "completed"),
        ("failed", "completed"),
        ("failed", "unknown"),
        ("unknown", "failed"),
    ],
)
def test_items_in_an_order_that_cannot_be_are_not_believed(journal: Journal, states: tuple[str, ...]):
    journal.script["POST check/batches"] = [broken(journal, *states)]
    found = submit(journal, 2)
    assert (found["error"]["code"], found["recovery"]["state"]) == ("invalid_response", "unknown")


@pytest.mark.rule("S4")
@pytest.mark.parametrize(
    "wrong",
    [
        {"reservation_expires_at": "2026-11-30T12:05:01.250000+00:00"},
        {"reservation_expires_at": None},
        {"checked_at": None},
        {"error_code": "check_failed"},
        {"index": 1},
        {"result": None},
    ],
)
def test_an_item_that_claims_another_authority_is_not_believed(journal: Journal, wrong: dict[str, Any]):
    """Its reservation ends 300 s after its check, whenever it is read."""

    async def step(peer: Peer, asked: Asked) -> None:
        batch = journal.batch(asked.body)
        batch["items"][0] |= wrong
        await peer.status("200 OK", batch)

    journal.script["POST check/batches"] = [step]
    assert submit(journal)["error"]["code"] == "invalid_response"


@pytest.mark.rule("S5")
@pytest.mark.parametrize("mode", MODES)
def test_recovering_is_a_get_and_nothing_else(journal: Journal, mode: Any, monkeypatch: pytest.MonkeyPatch):
    journal.denied = {0}
    operation = fresh()
    called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK] * 2, no_record=True)
    del journal.asked[:]
    monkeypatch.setenv("OZ0_BUDGET_TAGS", "not json")  # what the environment says is not read
    found = called(journal, "budget_check_batch", operation_id=operation, recover_only=True, _mode=mode)
    assert found["ok"]
    assert journal.names == [f"GET check/batches/{operation}"]
    assert found["data"]["items"][0]["checked_at"] == NOW.isoformat()
    assert found["data"]["items"][1]["reservation_expires_at"]
    assert found["recovery"]["recording"] == "not_submitted"
    other = called(journal, "budget_check_batch", operation_id=fresh(), recover_only=True, _mode=mode)
    assert other["error"]["code"] == "operation_not_found"
    assert {name.split(" ")[0] for name in journal.names} == {"GET"}


@pytest.mark.rule("W1")
def test_a_deadline_before_during_and_after_an_admission_is_told_apart(journal: Journal):
    journal.denied = {0}
    journal.script["POST check/batches"] = [stall]
    found = submit(journal, _bounds=quick(0.5))
    assert (found["error"]["code"], found["recovery"]["state"]) == ("operation_deadline", "unknown")
    assert found["recovery"]["recording"] == "not_submitted"
    del journal.script["POST check/batches"]
    journal.script["POST ingest"] = [stall]
    found = submit(journal, _bounds=quick(1.5))
    assert (found["error"]["code"], found["recovery"]["state"]) == ("operation_deadline", "finished")
    assert found["recovery"]["recording"] == "unknown"  # it was on its way
    assert found["data"]["recording_retry"]
    journal.script["POST ingest"] = [saying("503 Busy", FULL, Retry_After="9")]
    found = submit(journal, _bounds=quick(1.5))
    assert found["error"]["code"] == "operation_deadline"


def test_an_error_that_nobody_foresaw_tells_what_is_known(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """It comes after the journal has answered, and before anything was recorded."""

    async def breaks(*_: object) -> None:
        raise ZeroDivisionError

    journal.denied = {0}
    monkeypatch.setattr("budgets.sessions.recording.Recording.tell", breaks)
    found = submit(journal, 2)
    assert found["error"]["code"] == "internal_error"
    assert (found["recovery"]["state"], found["recovery"]["recording"]) == ("finished", "stopped")
    assert found["recovery"]["items"][1]["reservation_id"] == "res-1"


@pytest.mark.rule("S11")
def test_the_read_profile_has_no_writer_and_knows_none_before_it_looks_for_a_key(journal: Journal):
    from mcp import MCPError

    key = AtHand()

    async def ask(client: Any) -> list[str]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        for name in ("budget_check_batch", "budget_confirm", "nothing_like_it"):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, {"operation_id": fresh(), "recover_only": True})
        return names

    assert talk(journal, ask, profile="read", credentials=key) == ["usage_list", "runs_list", "run_find"]
    assert (key.read_times, journal.asked) == (0, [])


def test_writes_say_what_they_are_and_no_tool_takes_a_deadline(journal: Journal):
    async def ask(client: Any) -> Any:
        return (await client.list_tools()).tools

    hints = {}
    for tool in talk(journal, ask):
        given = tool.annotations
        hints[tool.name] = (given.read_only_hint, given.destructive_hint, given.idempotent_hint, given.open_world_hint)
        assert not {"timeout", "deadline", "seconds", "pages", "limit"} & set(json.dumps(tool.input_schema).split('"'))
    write, read = (False, True, False, True), (True, False, True, True)
    assert hints == dict.fromkeys(("budget_check_batch", "budget_confirm"), write) | dict.fromkeys(
        ("usage_list", "runs_list", "run_find"), read
    )


def test_null_stays_null_on_the_way(journal: Journal):
    async def ask(client: Any) -> Any:
        return await client.call_tool("usage_list", {})

    found = said(talk(journal, ask))
    assert found["error"] is None
    assert found["recovery"]["cursor"] is None


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e999", '"NaN"', '"1e999"', '"-Infinity"', '"\\ud800"'])
def test_an_answer_that_holds_no_text_or_no_amount_is_not_believed_and_loses_no_recovery(journal: Journal, amount: str):
    async def step(peer: Peer, asked: Asked) -> None:
        told = json.dumps(journal.batch(asked.body)).replace('"current_usage": 9.5', f'"current_usage": {amount}')
        await peer.status("200 OK", told.encode())

    journal.script["POST check/batches"] = [step]
    operation = fresh()
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK])
    assert (found["error"]["code"], found["recovery"]["state"]) == ("invalid_response", "unknown")
    assert found["recovery"]["operation_id"] == operation
