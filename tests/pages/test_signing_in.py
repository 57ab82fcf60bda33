"""Signing in by a one-time link or a password, and out again (RULES A5; CASES A26, S18)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from base import db, ids
from studio.cli.sign_in_link import make_link
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role, User
from tenants.operations import sign_in
from tenants.operations.sign_in import first_tenant
from tenants.queries.seats import seats_of

HOST = "http://testserver"


def path_of_a_link() -> str:
    return make_link(HOST).removeprefix(HOST)


def signed_in(client: Client) -> bool:
    return client.get("/jobs/").status_code == 200


def test_the_first_link_makes_the_first_person_an_admin_and_opening_it_signs_them_in(database: Postgres) -> None:
    client = Client()
    response = client.get(path_of_a_link())
    assert (response.status_code, response.headers["Location"]) == (302, "/")
    assert signed_in(client)
    (seat,) = seats_of(User.objects.get(username="admin").pk)
    assert (seat.tenant_slug, seat.role) == ("default", Role.ADMIN)


def test_a_second_link_is_for_the_same_person_and_workspace(database: Postgres) -> None:
    path_of_a_link()
    path_of_a_link()
    assert User.objects.count() == 1


@pytest.mark.rule("A12")
def test_a_link_works_once_and_is_noted_once(database: Postgres) -> None:
    link = path_of_a_link()
    Client().get(link)
    late = Client()
    response = late.get(link)
    assert response.status_code == 403
    assert "used already" in response.content.decode()
    assert not signed_in(late)
    with db.read(first_tenant(ids.new())):
        assert list(AuditEntry.objects.values_list("verb", "how")) == [("person.signed_in", "link, 127.0.0.1")]


@pytest.mark.rule("A5")
def test_looking_ahead_at_a_link_neither_uses_it_up_nor_signs_in(database: Postgres) -> None:
    link, scanner = path_of_a_link(), Client()
    assert scanner.head(link).status_code == 405
    assert scanner.options(link).status_code == 405
    assert scanner.get(link, headers={"Sec-Purpose": "prefetch;prerender"}).status_code == 503
    assert not signed_in(scanner)
    person = Client()
    person.get(link)
    assert signed_in(person)


def test_a_link_works_only_on_the_machine_itself(database: Postgres) -> None:
    link = path_of_a_link()
    assert Client(REMOTE_ADDR="192.0.2.7").get(link).status_code == 403
    assert Client().get(link, headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    person = Client()
    person.get(link)
    assert signed_in(person)


def test_a_link_is_good_for_ten_minutes(database: Postgres, move_clock: Callable[[timedelta], None]) -> None:
    link = path_of_a_link()
    move_clock(timedelta(minutes=10, seconds=1))
    assert Client().get(link).status_code == 403


def test_a_link_for_somebody_without_a_place_is_refused(database: Postgres) -> None:
    User.objects.create_user("guest")
    with pytest.raises(sign_in.NoSuchPerson, match="'guest'"):
        make_link(HOST, "guest")


def test_a_password_signs_in_under_a_new_session_id_and_the_old_one_is_dead(database: Postgres) -> None:
    path_of_a_link()
    person = User.objects.get(username="admin")
    person.set_password("a long password")
    person.save(update_fields=["password"])
    client = Client()
    session = client.session
    session["planted"] = "by an attacker"
    session.save()
    client.cookies["oz0_session"] = session.session_key
    before = session.session_key
    response = client.post("/sign-in/", {"username": "admin", "password": "a long password"})
    assert response.status_code == 302
    assert client.cookies["oz0_session"].value != before
    stale = Client()
    stale.cookies["oz0_session"] = before
    assert not signed_in(stale)


def test_a_wrong_password_keeps_the_name_and_says_so_once(database: Postgres) -> None:
    response = Client().post("/sign-in/", {"username": "admin", "password": "wrong"})
    assert response.status_code == 422
    assert "No active person has this name and password." in response.content.decode()
    assert 'value="admin"' in response.content.decode()


@pytest.mark.parametrize("place", ["//evil.example/", "https://evil.example/", "javascript:alert(1)"])
def test_signing_in_never_leads_elsewhere(database: Postgres, place: str) -> None:
    path_of_a_link()
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    assert client.get("/sign-in/", {"next": place}).headers["Location"] == "/"


def test_signing_out_takes_a_post(database: Postgres) -> None:
    client = Client()
    client.get(path_of_a_link())
    assert client.get("/sign-out/").status_code == 405
    assert signed_in(client)
    client.post("/sign-out/")
    assert not signed_in(client)


@pytest.mark.parametrize("path", ["/", "/jobs/", "/jobs/new/", "/approvals/", "/catalog/", "/rail/", "/find/?q=x"])
def test_every_page_asks_strangers_to_sign_in(database: Postgres, path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/sign-in/")


def test_a_person_without_a_place_is_told_so(database: Postgres) -> None:
    path_of_a_link()
    client = Client()
    client.force_login(User.objects.create_user("guest"))
    response = client.get("/jobs/")
    assert response.status_code == 403
    assert "belongs to no workspace" in response.content.decode()
