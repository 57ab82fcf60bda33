"""The journal's API: its answers and their order (RULES S1–S8; CASES J06, J09)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.test import Client

from base import db, ids
from base.bounded_body import OF_JOURNAL
from budgets.api import admission
from budgets.models import Item, Key, Operation
from budgets.operations import admitting, agents, keys
from budgets.queries import pages
from budgets.rules import busy
from budgets.rules.words import KeyScope, Period
from tenants.models import AuditEntry, Membership, Role, User
from tenants.operations import people, tokens
from tenants.rules.who import Actor
from tests.budgets.callers import V1, Caller, a_check, a_seat, a_secret, an_event, asked, codes
from tests.budgets.ledgers import HARD, Ledger, a_ledger, an_asking, an_id, another, cents, check_counts
from tests.budgets.test_settling import swept
from tests.builders import a_person

pytestmark = pytest.mark.usefixtures("database")
type Move = Callable[[timedelta], None]


def row_count(ledger: Ledger) -> tuple[int, int]:
    with db.read(ledger.tenant):
        return Operation.objects.count(), Item.objects.count()


@pytest.mark.rule("S1")
@pytest.mark.rule("S3")
def test_a_batch_is_answered_with_all_of_its_items_and_only_tells_of_itself_when_it_comes_again() -> None:
    ledger = a_ledger((Period.DAY, "0.03", HARD))
    caller = Caller(ledger)
    operation = an_id(ledger)
    first = caller.submit(a_check(2), a_check(4), a_check(1), operation=operation)
    assert first.status_code == 200
    told = first.json()
    assert set(told) == {"operation_id", "status", "expires_at", "items"}
    assert (told["operation_id"], told["status"]) == (str(operation), "finished")
    assert [item["index"] for item in told["items"]] == [0, 1, 2]
    names = {"index", "state", "result", "error_code", "checked_at", "reservation_expires_at"}
    assert all(set(item) == names and item["state"] == "completed" for item in told["items"])
    allowed, denied, _ = (item["result"] for item in told["items"])
    assert allowed == {
        "allowed": True,
        "remaining_budget": "0.01",
        "reservation_id": allowed["reservation_id"],
        "mode": "hard_deny",
        "budget_limit": "0.03",
        "current_usage": "0",
        "denied_by_period": None,
        "project_id": caller.ask("GET", "/key").json()["project_id"],
    }
    assert (denied["allowed"], denied["reservation_id"], denied["denied_by_period"]) == (False, None, "day")
    assert told["items"][1]["reservation_expires_at"] is None
    again = caller.submit(a_check(2), a_check(4), a_check(1), operation=operation)
    assert again.json() == told == caller.look_up(operation).json()
    assert row_count(ledger) == (1, 3)
    check_counts(ledger.tenant)


@pytest.mark.rule("S2")
def test_the_same_is_history_and_whatever_differs_is_a_conflict() -> None:
    """CASES J09, R11: names in another order and defaults that are left out are the same; a changed tally is not."""
    ledger = a_ledger()
    caller = Caller(ledger)
    operation = an_id(ledger)
    check = a_check(tags={"a": "1", "b": "é"}, agent_run_id="r")
    first = caller.submit(check, a_check(), operation=operation).json()
    same = [dict(reversed(check.items())), {**a_check(), "modality": "text", "uncounted_calls": 0, "tags": {}}]
    same[0]["tags"] = {"b": "é", "a": "1"}
    assert caller.submit(*same, operation=operation).json() == first
    different = [
        [a_check(), check],
        [check],
        [check, a_check(2)],
        [check, a_check(uncounted_calls=1)],
        [check, a_check(uncounted_tokens=1)],
        [{**check, "tags": {"a": "1", "b": "e\u0301"}}, a_check()],
        [check, a_check(estimated_output_tokens=None)],
        [check, a_check(fallback_models=["gpt-4o"])],
    ]
    answers = [caller.submit(*checks, operation=operation) for checks in different]
    assert codes(answers) == [(409, "operation_conflict")] * len(different)
    assert all(one.json()["detail"]["operation_id"] == str(operation) for one in answers)
    assert row_count(ledger) == (1, 2)


@pytest.mark.rule("S2")
def test_answers_come_in_one_order_malformed_then_expired_then_foreign_then_conflicting(move_clock: Move) -> None:
    """CASES J09: a version 4, one that is 24 h and a second old, one of in five minutes, and another project's."""
    ledger = a_ledger()
    caller, other = Caller(ledger), Caller(another(ledger.tenant, name="other"))
    operation = an_id(ledger)
    caller.submit(a_check(), operation=operation)
    old, young = an_id(ledger, timedelta(hours=24, seconds=1)), an_id(ledger, timedelta(hours=24, seconds=-9))
    soon, far = an_id(ledger, timedelta(seconds=-3)), an_id(ledger, timedelta(minutes=-5))
    for malformed in (str(uuid4()), str(operation).upper(), operation.hex, "x", f"{{{operation}}}", " " + str(far)):
        assert codes([caller.submit(a_check(), operation=malformed)]) == [(422, "invalid_operation_id")]
        if "/" not in malformed and malformed.strip() == malformed:
            assert codes([caller.look_up(malformed)]) == [(422, "invalid_operation_id")]
    for name, code in ((far, (422, "operation_in_future")), (old, (410, "operation_expired"))):
        for program in (caller, other):
            assert codes([program.submit(a_check(), operation=name), program.look_up(name)]) == [code, code]
    assert caller.submit(a_check(), operation=young).status_code == 200
    assert caller.submit(a_check(), operation=soon).status_code == 200  # within what clocks may differ by
    assert codes([caller.look_up(an_id(ledger))]) == [(404, "operation_not_found")]
    foreign = [other.submit(a_check(), operation=operation), other.submit(a_check(9), operation=operation)]
    assert codes([*foreign, other.look_up(operation)]) == [(404, "operation_not_found")] * 3
    elsewhere = Caller(a_ledger(slug="elsewhere"))  # of another workspace, whose rows nobody here sees
    assert codes([elsewhere.submit(a_check(), operation=operation)]) == [(404, "operation_not_found")]
    assert codes([elsewhere.look_up("019a0000-0000-7000-8000-000000000001")]) == [(410, "operation_expired")]
    assert codes([caller.submit(a_check(9), operation=operation)]) == [(409, "operation_conflict")]
    move_clock(timedelta(hours=24))
    for program in (caller, other, elsewhere):
        assert codes([program.look_up(operation)]) == [(410, "operation_expired")]
    assert codes([caller.submit(a_check(9), operation=operation)]) == [(410, "operation_expired")]


BAD: list[Any] = [
    b"",
    b"{",
    b"[]",
    b'{"operation_id": "x"}',
    {"checks": []},
    {"checks": [a_check()] * 33},
    {"checks": [a_check(estimated_input_tokens=-1)]},
    {"checks": [a_check(estimated_input_tokens="1")]},
    {"checks": [a_check(estimated_input_tokens=1.0)]},
    {"checks": [a_check(estimated_input_tokens=True)]},
    {"checks": [a_check(model="m" * 2_049)]},
    {"checks": [a_check(model="")]},
    {"checks": [a_check(model="a\0b")]},
    {"checks": [a_check(fallback_models=["m"] * 9)]},
    {"checks": [a_check(agent_run_id="r" * 257)]},
    {"checks": [a_check(tags={str(n): "" for n in range(11)})]},
    {"checks": [a_check(tags={"k" * 65: ""})]},
    {"checks": [a_check(tags={"": ""})]},
    {"checks": [a_check(tags={"k": "v" * 257})]},
    {"checks": [a_check(modality="smell")]},
    {"checks": [a_check(more=1)]},
    {"checks": [a_check()], "record_only": []},
]


@pytest.mark.rule("S1")
def test_a_body_that_is_none_claims_nothing(settings: LazySettings) -> None:
    ledger = a_ledger()
    caller = Caller(ledger)
    for body in BAD:
        said = body if isinstance(body, bytes) else {"operation_id": str(an_id(ledger)), **body}
        answer = caller.ask("POST", "/check/batches", said)
        assert answer.status_code == 422, said
        assert answer.json()["detail"]["code"] in ("admission_failed", "invalid_operation_id")
    assert row_count(ledger) == (0, 0)
    most = a_check(
        model="😀" * 2_048,
        fallback_models=["😀" * 2_048] * 8,
        agent_run_id="😀" * 256,
        tags={chr(0x1F600 + n) * 64: "😀" * 256 for n in range(10)},
    )
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = OF_JOURNAL
    full = caller.submit(*[most] * 32)
    assert (full.status_code, full.json()["items"][31]["state"]) == (200, "completed")
    large = caller.ask("POST", "/check/batches", b" " * (OF_JOURNAL + 1))
    assert codes([large]) == [(413, "too_large")]
    assert codes([caller.ask("POST", "/check/batches", b"a=b", content_type="text/plain")]) == [(415, "not_json")]
    assert codes([caller.ask("GET", "/key?x=1")]) == [(422, "admission_failed")]
    refused = caller.ask("DELETE", "/key")
    assert (codes([refused]), refused["Allow"]) == ([(405, "method_not_allowed")], "GET, HEAD")
    assert codes([caller.ask("GET", "/key", accept="text/html")]) == [(406, "not_acceptable")]


@pytest.mark.rule("S5")
def test_a_look_up_takes_any_key_of_the_project_and_changes_nothing() -> None:
    ledger = a_ledger()
    caller = Caller(ledger)
    operation = an_id(ledger)
    admitting.claim(an_asking(ledger, cents(), cents(), operation=operation))  # whose executor is gone
    reader = Caller(ledger, "reader", KeyScope.READ_ONLY)
    secret = a_secret("rotated")
    seat = a_seat(ledger)
    assert keys.rotate(
        tenant=ledger.tenant, key=caller.key, secret=secret, actor=Actor(seat.username, "test", seat.person_id)
    )
    with db.read(ledger.tenant):
        before = list(Operation.objects.values()), list(Item.objects.order_by("index").values())
    told = [program.look_up(operation).json() for program in (caller, reader)]
    told.append(asked(secret, "GET", f"/check/batches/{operation}").json())
    assert told[0] == told[1] == told[2]
    assert (told[0]["status"], [item["state"] for item in told[0]["items"]]) == ("running", ["unattempted"] * 2)
    with db.read(ledger.tenant):
        assert before == (list(Operation.objects.values()), list(Item.objects.order_by("index").values()))
    same = [a_check(), a_check()]
    assert caller.submit(*same, operation=operation).json() == told[0]  # nor does a second POST resume it
    for method, path, said in (
        ("POST", "/check/batches", {"operation_id": str(an_id(ledger)), "checks": same}),
        ("POST", "/confirm", {}),
        ("POST", "/ingest", {}),
    ):
        assert codes([reader.ask(method, path, said)]) == [(403, "not_allowed")]


def test_keys_are_kept_as_hashes_end_when_they_are_rotated_or_revoked_and_are_noted(move_clock: Move) -> None:
    ledger = a_ledger()
    caller = Caller(ledger)
    seat = a_seat(ledger)
    actor, fresh = Actor(seat.username, "test", seat.person_id), a_secret("fresh")
    assert caller.ask("GET", "/key").json()["scope"] == "full"
    assert caller.token not in str(caller.row.__dict__)
    assert caller.row.used_at is not None
    keys.rotate(tenant=ledger.tenant, key=caller.key, secret=fresh, actor=actor)
    assert {asked(one, "GET", "/key").status_code for one in (fresh, caller.token)} == {200}
    move_clock(timedelta(hours=24))
    assert codes([caller.ask("GET", "/key")]) == [(401, "unauthenticated")]
    assert asked(fresh, "GET", "/key").status_code == 200
    other = Caller(ledger, "other")
    assert keys.revoke(tenant=ledger.tenant, key=other.key, actor=actor) == "other"
    assert keys.revoke(tenant=ledger.tenant, key=other.key, actor=actor) is None
    assert codes([other.ask("GET", "/key"), asked("oz0_x", "GET", "/key")]) == [(401, "unauthenticated")] * 2
    with db.read(ledger.tenant):
        verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
    assert verbs == ["budget_key.made", "budget_key.rotated", "budget_key.made", "budget_key.revoked"]


def logged_in(ledger: Ledger, name: str = "pat", days: int | None = 90) -> tuple[str, UUID]:
    """The token of a login of this person, and its id."""
    seat, login = a_seat(ledger, name), a_secret(f"login of {name}")
    actor = Actor(seat.username, "test", seat.person_id)
    made: dict[str, Any] = {"scopes": ["read", "start"], "agent": "", "days": days, "as_person": True}
    return login, tokens.make(seat=seat, token=login, name="here", actor=actor, **made)


def renew(pair: dict[str, Any]) -> Any:
    """POST what renews a pair."""
    sent = {"refresh_token": pair["refresh_token"]}
    return Client().post(f"{V1}/tokens/refresh", sent, "application/json")


def test_a_login_is_traded_for_a_pair_that_is_renewed_also_when_the_answer_was_lost(move_clock: Move) -> None:
    ledger = a_ledger()
    seat, (login, _) = a_seat(ledger), logged_in(ledger)
    plain = a_secret("plain")
    actor = Actor(seat.username, "test", seat.person_id)
    tokens.make(seat=seat, token=plain, name="t", scopes=["read", "start"], agent="", days=90, actor=actor)
    wanted = {"project": "p"}
    assert codes([asked(plain, "POST", "/tokens", wanted)]) == [(401, "unauthenticated")]
    assert codes([asked(login, "POST", "/tokens", {"project": "none"})]) == [(404, "operation_not_found")]
    first = asked(login, "POST", "/tokens", wanted).json()
    assert (first["expires_in"], first["scope"]) == (900, "full")
    assert asked(login, "POST", "/tokens", {"project": first["project_id"]}).status_code == 200
    assert asked(first["access_token"], "GET", "/key").json()["project_id"] == first["project_id"]
    assert codes([asked(first["refresh_token"], "GET", "/key")]) == [(401, "unauthenticated")]

    move_clock(timedelta(minutes=15))
    assert codes([asked(first["access_token"], "GET", "/key")]) == [(401, "unauthenticated")]
    lost, second = renew(first).json(), renew(first).json()
    assert asked(lost["access_token"], "GET", "/key").status_code == 401
    assert asked(second["access_token"], "GET", "/key").status_code == 200
    assert codes([renew(first), renew(lost)]) == [(401, "unauthenticated")] * 2  # the new pair has been used
    assert codes([renew({"refresh_token": "x"})]) == [(401, "unauthenticated")]
    with db.write(ledger.tenant):
        Membership.objects.filter(user_id=seat.person_id).update(role=Role.VIEWER)
    assert asked(second["access_token"], "GET", "/key").json()["scope"] == "read_only"
    with db.write(ledger.tenant):
        Membership.objects.filter(user_id=seat.person_id).delete()
    assert codes([asked(second["access_token"], "GET", "/key"), renew(second)]) == [(401, "unauthenticated")] * 2


@pytest.mark.parametrize("ends", ["revoked", "expired", "removed", "not active"])
def test_a_pair_ends_with_its_login_wherever_it_is_shown(ends: str, move_clock: Move) -> None:
    """A new login of the same person, or their return, gives the old pair nothing back."""
    ledger = a_ledger()
    login, token = logged_in(ledger, days=7)
    pair = asked(login, "POST", "/tokens", {"project": "p"}).json()
    other, _ = logged_in(ledger, "opa")
    theirs = asked(other, "POST", "/tokens", {"project": "p"}).json()
    person = a_seat(ledger).person_id
    chief = a_person(ledger.tenant, "chief")
    actor = Actor("chief", "test", chief)
    with db.read(ledger.tenant):
        membership = Membership.objects.get(user_id=person).pk
    match ends:
        case "revoked":
            tokens.revoke(tenant=ledger.tenant, token_id=token, owner=None, actor=actor)
        case "expired":
            move_clock(timedelta(days=7))
            theirs = renew(theirs).json()
        case "removed":
            people.remove(tenant=ledger.tenant, membership=membership, note="", actor=actor)
            with db.write(ledger.tenant):
                Membership.objects.create(tenant_id=ledger.tenant, user_id=person, role=Role.ADMIN)
        case _:
            with db.write(ledger.tenant):
                User.objects.filter(pk=person).update(is_active=False)
    shown = pair["access_token"]
    check = {"operation_id": str(an_id(ledger)), "checks": [a_check()]}
    answers = [
        asked(shown, "GET", "/key"),
        asked(shown, "GET", "/usage"),
        asked(shown, "POST", "/check/batches", check),
        asked(shown, "POST", "/confirm", {}),
        asked(shown, "POST", "/ingest", {}),
        renew(pair),
        asked(login, "POST", "/tokens", {"project": "p"}),
    ]
    assert codes(answers) == [(401, "unauthenticated")] * len(answers)
    assert asked(theirs["access_token"], "GET", "/key").status_code == 200
    with db.read(ledger.tenant):
        kept = {row.name: row.pk for row in Key.objects.all()}
    page = pages.project_page(ledger.tenant, ledger.project)
    assert page is not None
    listed = {row.name: row.standing for row in page.keys}
    told = {"revoked": "logged out", "expired": "expired", "removed": "logged out", "not active": "live"}[ends]
    assert listed == {"login of pat": told, "login of opa": "live"}
    revoked = keys.revoke(tenant=ledger.tenant, key=kept["login of pat"], actor=actor)
    assert revoked == ("login of pat" if told == "live" else None)


def test_pairs_whose_login_has_ended_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_LIVE", 1)
    ledger = a_ledger()
    login, token = logged_in(ledger)
    seat = a_seat(ledger)
    assert asked(login, "POST", "/tokens", {"project": "p"}).status_code == 200
    assert codes([asked(login, "POST", "/tokens", {"project": "p"})]) == [(403, "not_allowed")]
    tokens.revoke(tenant=ledger.tenant, token_id=token, owner=None, actor=Actor("pat", "test", seat.person_id))
    other, _ = logged_in(ledger, "opa")
    assert asked(other, "POST", "/tokens", {"project": "p"}).status_code == 200


def test_no_pair_is_given_for_an_agents_own_project() -> None:
    ledger = a_ledger()
    login, _ = logged_in(ledger)
    clerk = agents.project_of(tenant=ledger.tenant, agent="clerk")
    for named in ("clerk", ids.show(ids.PROJECT, clerk)):
        assert codes([asked(login, "POST", "/tokens", {"project": named})]) == [(404, "operation_not_found")]
    with db.read(ledger.tenant):
        assert not Key.objects.exists()


@pytest.mark.rule("S1")
def test_what_was_provably_not_accepted_is_told_apart_from_what_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    """CASES J06: a database that is away admits nobody."""
    ledger = a_ledger()
    caller = Caller(ledger)

    def away(*_: Any, **__: Any) -> Any:
        raise OperationalError("gone")

    def refused(answer: Any, text: str) -> None:
        told = answer.json()["detail"]
        assert (answer.status_code, answer["Retry-After"], told["code"]) == (503, "1", "admission_failed")
        assert told["message"] == text and text in busy.TEXTS

    with monkeypatch.context() as patch:
        patch.setattr("budgets.api.door.holder", away)
        refused(caller.submit(a_check()), busy.NO_DATABASE)
    with monkeypatch.context() as patch:
        patch.setattr("budgets.operations.admitting.digest_of", lambda checks: "d")
        patch.setattr("budgets.operations.admitting.check_time", away)
        refused(caller.submit(a_check()), busy.NO_DATABASE)
    with monkeypatch.context() as patch:
        patch.setattr(admission, "_room", type("Full", (), {"acquire": lambda *_, **__: False})())
        refused(caller.submit(a_check()), busy.TOO_MANY)
    assert row_count(ledger) == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr("budgets.operations.admitting.tallies.lock", away)
        operation = an_id(ledger)
        answer = caller.submit(a_check(), operation=operation)
    assert codes([answer]) == [(503, "outcome_unavailable")]
    assert "Retry-After" not in answer
    assert answer.json()["detail"]["operation_id"] == str(operation)
    assert caller.look_up(operation).json()["items"][0]["state"] == "unattempted"
    settings.OZ0_BUDGET_RATE = 1
    slow = [caller.ask("GET", "/key") for _ in range(2)][1]
    assert codes([slow]) == [(429, "admission_failed")] and int(slow["Retry-After"]) >= 1


@pytest.mark.rule("S8")
def test_a_confirmation_is_answered_with_nothing_and_told_why_it_is_none(move_clock: Move) -> None:
    ledger = a_ledger()
    caller, other = Caller(ledger), Caller(another(ledger.tenant, name="other"))
    batch = caller.submit(a_check(), a_check()).json()
    first, second = (item["result"]["reservation_id"] for item in batch["items"])
    answer = caller.confirm(first)
    assert (answer.status_code, answer.content) == (204, b"")
    assert caller.confirm(first).status_code == 204
    never = str(UUID(int=UUID(first).int ^ 1))
    assert codes([caller.confirm(first, 4_001), other.confirm(first), caller.confirm(never)]) == [
        (409, "operation_conflict"),
        (404, "operation_not_found"),
        (404, "operation_not_found"),
    ]
    assert codes([caller.confirm("x"), caller.confirm(first, call=1)]) == [
        (422, "invalid_operation_id"),
        (422, "admission_failed"),
    ]
    move_clock(timedelta(seconds=3_601))
    assert codes([caller.confirm(first)]) == [(410, "operation_expired")]
    assert swept(ledger) == 1
    assert caller.confirm(second).status_code == 204  # after its authority, for it knows what happened
    move_clock(timedelta(hours=24))
    assert codes([caller.confirm(second), other.confirm(second)]) == [(410, "operation_expired")] * 2
    check_counts(ledger.tenant)


def test_an_address_of_the_journal_that_is_none_is_told_so_in_the_journals_form_to_whoever_has_a_key() -> None:
    caller = Caller(a_ledger())
    for method in ("GET", "POST"):
        for path in ("/check/batches/", "/key/", "/nosuch", "/usage/x/y"):
            answer = caller.ask(method, path)
            assert codes([answer]) == [(404, "no_such_address")], path
    assert codes([asked("oz0_" + "1" * 43, "GET", "/nosuch")]) == [(401, "unauthenticated")]
    for query in ("name=%00", "cursor=a%00", "%00=a"):
        answer = caller.ask("GET", f"/runs?{query}")
        assert codes([answer]) == [(422, "admission_failed")] and answer["Content-Type"] == "application/json", query


def test_what_the_journal_tells_is_utf_8_and_not_escaped() -> None:
    caller = Caller(a_ledger())
    event = an_event("ein Ruf \U0001f600", datetime(2026, 11, 30, 12, tzinfo=UTC), tags={"für": "é"})
    assert caller.ingest(event).status_code == 202
    told = caller.ask("GET", "/usage").content
    assert "ein Ruf \U0001f600".encode() in told and "für".encode() in told and b"\\u" not in told
