"""Passwords: hashed with argon2, guessed slowly, changed, and all sessions ended (RULES A12; CASES S18, V14)."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import LazySettings
from django.contrib.auth.hashers import Argon2PasswordHasher, PBKDF2PasswordHasher
from django.db import connection
from django.test import Client

from base import db
from tenants.models import AuditEntry, User
from tenants.queries.sessions import session_person
from tests.builders import World, a_person, a_world
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
PASSWORD = "quite a long one"
WRONG = "No active person has this name and password."


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hasher of the product, at a cost that tests can bear."""
    monkeypatch.setattr(Argon2PasswordHasher, "memory_cost", 1024)
    monkeypatch.setattr(Argon2PasswordHasher, "parallelism", 1)
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1000)


def with_password(world: World, password: str = PASSWORD) -> User:
    user = User.objects.get(pk=world.person)
    user.set_password(password)
    user.save(update_fields=["password"])
    return user


def sign_in(client: Client, name: str = "pat-acme", password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/sign-in/", {"username": name, "password": password}, **more)


def is_in(client: Client) -> bool:
    return client.get("/jobs/").status_code == 200


def test_a_password_hashed_the_old_way_is_hashed_anew_when_its_person_signs_in(settings: LazySettings) -> None:
    user = User.objects.get(pk=a_world().person)
    first, *_ = settings.PASSWORD_HASHERS
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:]
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    settings.PASSWORD_HASHERS = [first, *settings.PASSWORD_HASHERS]
    assert user.password.startswith("pbkdf2")
    client = Client()
    assert sign_in(client).status_code == 302
    assert User.objects.get(pk=user.pk).password.startswith("argon2")
    assert is_in(client)


@pytest.mark.rule("A12")
def test_signing_in_and_out_are_audited_with_how_and_from_where(settings: LazySettings) -> None:
    world = a_world()
    with_password(world)
    settings.OZ0_PROXIES = 1
    client = Client(headers={"X-Forwarded-For": "203.0.113.9, 198.51.100.7"})
    sign_in(client)
    client.post("/sign-out/")
    with db.read(world.tenant):
        noted = list(AuditEntry.objects.order_by("seq").values_list("verb", "actor", "how"))
    how = "password, 198.51.100.7"
    assert noted == [("person.signed_in", "pat-acme", how), ("person.signed_out", "pat-acme", how)]
    assert User.objects.get(pk=world.person).last_how == "password"


def test_unknown_names_wrong_passwords_and_people_switched_off_read_the_same_and_cost_the_same() -> None:
    world = a_world()
    with_password(world)
    off = with_password(World(world.tenant, a_person(world.tenant, "gone"), world.node))
    User.objects.filter(pk=off.pk).update(is_active=False)
    a_person(world.tenant, "without")  # who never set one
    said = {}
    for name, password in (("pat-acme", "wrong"), ("nobody", "wrong"), ("gone", PASSWORD), ("without", "wrong")):
        with patch.object(
            Argon2PasswordHasher, "encode", autospec=True, side_effect=Argon2PasswordHasher.encode
        ) as made:
            with patch.object(
                Argon2PasswordHasher, "verify", autospec=True, side_effect=Argon2PasswordHasher.verify
            ) as tried:
                answer = sign_in(Client(), name, password)
        said[name] = re.sub(r'(csrfmiddlewaretoken" value)="[^"]*"', r"\1", text_of(answer).replace(f'"{name}"', ""))
        assert answer.status_code == 422
        assert made.call_count + tried.call_count == 1, name
    assert WRONG in said["nobody"]
    assert len(set(said.values())) == 1


def test_guesses_are_slowed_down_where_they_are_made_and_nobody_is_locked_out(
    move_clock: Callable[[timedelta], None],
) -> None:
    with_password(a_world())
    guesser, person, traveller = Client(), Client(), Client(REMOTE_ADDR="192.0.2.1")
    assert sign_in(person).status_code == 302  # this browser knows its person from now on
    person.post("/sign-out/")
    for _ in range(5):
        assert sign_in(guesser, password="a guess").status_code == 422
    refused = sign_in(guesser)  # also with the right one
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 301
    assert "Too many tries from here" in text_of(refused)
    assert sign_in(guesser, "Pat-Acme").status_code == 429  # however it is written
    assert sign_in(guesser, "nobody", "a guess").status_code == 422  # another name is another matter
    assert sign_in(person).status_code == 302  # from the same address, in the browser that knows them
    assert sign_in(traveller).status_code == 302  # from another address
    move_clock(timedelta(minutes=5, seconds=1))
    assert sign_in(guesser).status_code == 302


def test_one_address_cannot_try_many_names_and_tries_made_at_once_are_all_counted() -> None:
    with_password(a_world())

    def guess(number: int) -> int:
        try:
            return int(sign_in(Client(REMOTE_ADDR="192.0.2.9"), "pat-acme", f"guess {number}").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(guess, range(16)))
    assert said.count(422) == 5 and said.count(429) == 11
    spread = [sign_in(Client(REMOTE_ADDR="192.0.2.10"), f"name-{n}", "a guess").status_code for n in range(52)]
    assert spread.count(422) == 50 and spread[-2:] == [429, 429]


def test_a_cookie_that_we_did_not_give_makes_no_browser_known() -> None:
    with_password(a_world())
    client = Client()
    for odd in ("", "x", "W10:abc:def", "eyJhIjoxfQ:1:1"):
        client.cookies["oz0_known"] = odd
        assert sign_in(client, password="a guess").status_code == 422
    assert sign_in(client, password="a guess").status_code == 422
    assert sign_in(client).status_code == 429


def test_signing_out_ends_every_session_of_the_person_and_nobody_elses() -> None:
    world = a_world()
    other = a_person(world.tenant, "other")
    here, there, theirs = visitor(world), visitor(world), visitor(world, other)
    keys = [client.cookies["oz0_session"].value for client in (here, there, theirs)]
    here.post("/sign-out/")
    assert [is_in(client) for client in (here, there, theirs)] == [False, False, True]
    assert [session_person(key) is None for key in keys] == [True, True, False]  # what open sockets ask


@pytest.mark.rule("A12")
def test_a_person_changes_their_password_and_only_this_browser_goes_on() -> None:
    world = a_world()
    with_password(world)
    here, there = visitor(world), visitor(world)
    for fields, why in (
        ({"present": "wrong", "new": "another long one", "again": "another long one"}, "present password is another"),
        ({"present": PASSWORD, "new": "another long one", "again": "not the same one"}, "differently the second"),
        ({"present": PASSWORD, "new": "short", "again": "short"}, "at least 12"),
    ):
        answer = here.post("/settings/you/", fields)
        assert answer.status_code == 422 and why in text_of(answer)
    fields = {"present": PASSWORD, "new": "another long one", "again": "another long one"}
    assert here.post("/settings/you/", fields).status_code == 302
    assert (is_in(here), is_in(there)) == (True, False)
    assert sign_in(Client(), password=PASSWORD).status_code == 422
    assert sign_in(Client(), password="another long one").status_code == 302
    with db.read(world.tenant):
        (noted,) = AuditEntry.objects.filter(verb="person.password_set")
        assert (noted.actor, noted.before, noted.after) == ("pat-acme", None, None)


def test_the_sign_in_form_sent_twice_shows_one_friendly_page() -> None:
    """CASES S18: the second one comes with the cookies of before the first, or with those of after it."""
    with_password(a_world())
    client = Client(enforce_csrf_checks=True)
    form = text_of(client.get("/sign-in/"))
    fields = {
        "username": "pat-acme",
        "password": PASSWORD,
        "csrfmiddlewaretoken": form.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0],
    }
    twin = Client(enforce_csrf_checks=True)
    twin.cookies["oz0_csrf"] = client.cookies["oz0_csrf"].value
    for one in (client, twin, client):
        answer = one.post("/sign-in/", fields)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/")
        assert is_in(one)
    stale = Client(enforce_csrf_checks=True).post("/sign-in/", fields)
    assert stale.status_code == 403
    assert "Enter your password again" in text_of(stale) and 'name="csrfmiddlewaretoken"' in text_of(stale)
