"""`oz0 login`: a command asks, its person allows it on a page, and the command alone takes a token, once (RULES A5)."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from base import db
from tenants.models import ApiToken, AuditEntry, LoginAsk, Role
from tenants.operations import logins
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import bearer
from tenants.rules.bearers import is_token
from tests.builders import World, a_person, a_world
from tests.pages.visitors import plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
VERIFIER = "only the command knows this"
CHALLENGE = hashlib.sha256(VERIFIER.encode()).hexdigest()


def post(path: str, **body: Any) -> Any:
    return Client(enforce_csrf_checks=True).post(path, body, content_type="application/json")


def asked(machine: str = "laptop") -> dict[str, Any]:
    answer = post("/login/", challenge=CHALLENGE, machine=machine)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def taken(login: str, verifier: str = VERIFIER) -> Any:
    return post("/login/take/", login=login, verifier=verifier)


def allowed(world: World, login: str, person: int | None = None, said: str = "allow") -> Any:
    return visitor(world, person).post(f"/login/{login}/", {"answer": said})


@pytest.mark.rule("A12")
def test_its_person_sees_what_the_token_may_do_allows_it_and_the_command_takes_it_once() -> None:
    world = a_world()
    ask = asked()
    assert taken(ask["login"]).status_code == 202
    page = plain(text_of(visitor(world).get(f"/login/{ask['login']}/")))
    for said in (ask["code"], "laptop", "127.0.0.1", "pat-acme", "answers a question", "start jobs", "90 days"):
        assert said in page, said
    assert "It is allowed" in plain(text_of(allowed(world, ask["login"])))
    assert taken(ask["login"], "somebody else's").status_code == 410
    answer = taken(ask["login"])
    assert answer.status_code == 200 and answer["Cache-Control"] == "no-store"
    token = answer.json()["token"]
    assert is_token(token) and answer.json()["scopes"] == ["read", "start"]
    assert taken(ask["login"]).status_code == 410  # once
    found = bearer(hash_of(token))
    assert found is not None and found.as_person and found.seat.person_id == world.person
    with db.read(world.tenant):
        kept, told = str(ApiToken.objects.get().__dict__), AuditEntry.objects.order_by("seq")
        assert [one.verb for one in told] == ["login.allowed", "token.made"]
        assert token not in kept + str(list(told.values()))
    assert "oz0 on laptop" in text_of(visitor(world).get("/settings/tokens/"))


def test_it_is_refused_answered_twice_by_nobody_and_over_after_ten_minutes(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    ask = asked()["login"]
    assert "It was refused" in plain(text_of(allowed(world, ask, said="deny")))
    assert allowed(world, ask).status_code == 409
    refused = taken(ask)
    assert refused.status_code == 410 and "refused on the page" in refused.json()["detail"]
    late = asked()["login"]
    assert allowed(world, late, said="perhaps").status_code == 409
    move_clock(timedelta(minutes=10, seconds=1))
    assert "It has expired" in plain(text_of(visitor(world).get(f"/login/{late}/")))
    assert allowed(world, late).status_code == 409
    assert taken(late).status_code == 410
    with db.read(world.tenant):
        assert not ApiToken.objects.exists()


@pytest.mark.rule("A5")
def test_a_page_alone_allows_it_a_get_a_form_without_its_token_and_a_stranger_do_not() -> None:
    world = a_world()
    ask = asked()["login"]
    assert visitor(world).get(f"/login/{ask}/?answer=allow").status_code == 200
    assert visitor(world, strict=True).post(f"/login/{ask}/", {"answer": "allow"}).status_code == 403
    assert Client().post(f"/login/{ask}/", {"answer": "allow"}).status_code == 302
    assert taken(ask).status_code == 202


def test_a_viewers_login_reads_and_starts_nothing() -> None:
    world = a_world()
    vera = a_person(world.tenant, "vera", Role.VIEWER)
    ask = asked()["login"]
    assert "starts nothing, since you do not" in plain(text_of(visitor(world, vera).get(f"/login/{ask}/")))
    allowed(world, ask, vera)
    assert taken(ask).json()["scopes"] == ["read"]


@pytest.mark.rule("A12")
def test_logging_out_revokes_the_token_and_that_is_told() -> None:
    world = a_world()
    ask = asked()["login"]
    allowed(world, ask)
    token = taken(ask).json()["token"]
    assert post("/login/end/", token=token).json() == {"ended": True}
    assert bearer(hash_of(token)) is None
    assert post("/login/end/", token=token).status_code == 401
    assert post("/login/end/", token="oz0_nonsense").status_code == 401
    with db.read(world.tenant):
        assert AuditEntry.objects.filter(verb="token.revoked").count() == 1


def test_what_makes_no_sense_is_refused_in_words_and_an_address_asks_for_so_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client()
    for body in (b"", b"{", b"[]", b"x" * 20_000):
        answer = client.post("/login/", body, content_type="application/json")
        assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert post("/login/", challenge="short").status_code == 422
    assert client.post("/login/", {"challenge": CHALLENGE}).status_code == 422
    assert [client.get(path).status_code for path in ("/login/", "/login/take/", "/login/end/")] == [405] * 3
    assert taken("login_nonsense").status_code == 410
    monkeypatch.setattr(logins, "MOST_OF_ADDRESS", 2)
    asked("a \0 machine \n with\tspaces")
    asked("m" * 500)
    assert post("/login/", challenge=CHALLENGE).status_code == 429
    assert sorted(LoginAsk.objects.values_list("machine", flat=True)) == ["a machine with spaces", "m" * 80]


def test_a_network_that_asks_for_all_there_may_be_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "MOST_OPEN", 4)
    monkeypatch.setattr(logins, "MOST_OF_ADDRESS", 3)
    ours: dict[str, str] = {"challenge": CHALLENGE, "code": "BCDFGHJK"}
    first = logins.ask(machine="first", address="2001:db8:1:1::1", **ours)
    floods = [logins.ask(machine=f"flood {n}", address=f"2001:db8:2:{n}::1", **ours) for n in range(3)]
    late = logins.ask(machine="late", address="192.0.2.7", **ours)
    assert set(LoginAsk.objects.values_list("pk", flat=True)) == {first.id, floods[1].id, floods[2].id, late.id}
    monkeypatch.setattr(logins, "MOST_OPEN", 100)
    with pytest.raises(logins.TooMany):
        for n in range(4):
            logins.ask(machine="one household", address=f"2001:db8:3:3::{n}", **ours)
