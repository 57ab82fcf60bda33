"""Signing in at a provider of one's own, against a real one on this machine (RULES A12; CASES S07)."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import LazySettings
from django.test import Client

from base import db
from tenants.models import AuditEntry, Identity, User
from tests.builders import World, a_person, a_world
from tests.pages.test_people import invited
from tests.pages.visitors import plain, text_of, visitor
from tests.servers.openid import CLIENT, METADATA, SECRET, Provider, an_openid_provider

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with an_openid_provider() as found:
        yield found


@pytest.fixture
def provider(server: Provider, settings: LazySettings) -> Provider:
    """The provider, behaved again, and named by the settings."""
    server.person = {"sub": "p-1", "email": "kim@example.com", "email_verified": True, "preferred_username": "kim"}
    server.says, server.token, server.denies, server.signs_with = {}, {}, False, server.key
    server.asked.clear()
    settings.OZ0_OIDC_URL, settings.OZ0_OIDC_NAME = server.base, "Acme ID"
    app = {"provider_id": "provider", "name": "Acme ID", "client_id": CLIENT, "secret": SECRET}
    app["settings"] = {"server_url": server.base}  # type: ignore[assignment]
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    return server


def leave(client: Client, **fields: str) -> Any:
    return client.post("/sign-in/with/", fields)


def at_provider(answer: Any) -> str:
    """Where the provider sends a browser back to, that the page of leaving has sent there."""
    found = re.search(r'content="0;url=([^"]+)"', text_of(answer))
    assert found, plain(text_of(answer))
    back = httpx2.get(found[1].replace("&amp;", "&"), follow_redirects=False).headers["location"]
    place = urlsplit(back)
    assert place.netloc == "testserver"
    return f"{place.path}?{place.query}"


def through(client: Client, **fields: str) -> Any:
    return client.get(at_provider(leave(client, **fields)))


def known_by_email(world: World, name: str = "kim", email: str = "kim@example.com") -> User:
    person = User.objects.get(pk=a_person(world.tenant, name))
    person.email = email
    person.save(update_fields=["email"])
    return person


def is_in(client: Client) -> bool:
    return client.get("/jobs/").status_code == 200


@pytest.mark.rule("A12")
def test_somebody_known_by_a_verified_email_gets_in_and_from_then_on_by_the_providers_own_name(
    provider: Provider,
) -> None:
    world = a_world()
    kim = known_by_email(world)
    client = Client()
    assert "Sign in with Acme ID" in plain(text_of(client.get("/sign-in/")))
    arrived = through(client, next="/jobs/")
    assert (arrived.status_code, arrived.headers["Location"]) == (302, "/jobs/")
    assert is_in(client)
    assert Identity.objects.get().user_id == kim.pk
    with db.read(world.tenant):
        noted = list(AuditEntry.objects.order_by("seq").values_list("verb", "how"))
    assert noted == [(verb, "Acme ID, 127.0.0.1") for verb in ("person.identity_linked", "person.signed_in")]
    provider.person |= {"email": "new-address@example.com", "email_verified": False}
    assert through(again := Client()).status_code == 302
    assert is_in(again)
    assert METADATA in provider.asked and "/token" in provider.asked and "/keys" in provider.asked


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "stranger@example.com"},
        {"email_verified": False},
        {"email_verified": None},
        {"email": ""},
        {"email": "kim@example.com.evil.example"},
    ],
)
def test_nobody_who_is_not_known_gets_in_and_no_account_is_made(provider: Provider, claims: dict[str, Any]) -> None:
    known_by_email(a_world())
    provider.person |= claims
    people, client = User.objects.count(), Client()
    refused = through(client)
    assert refused.status_code == 403
    assert "Nobody here is known by this sign-in" in plain(text_of(refused))
    assert not is_in(client)
    assert (User.objects.count(), Identity.objects.count()) == (people, 0)


def test_an_email_that_two_people_have_lets_neither_in_and_one_who_is_switched_off_stays_out(
    provider: Provider,
) -> None:
    world = a_world()
    kim, other = known_by_email(world), known_by_email(world, "other", "KIM@example.com")
    assert through(Client()).status_code == 403
    User.objects.filter(pk=other.pk).update(email="")
    assert through(Client()).status_code == 302
    User.objects.filter(pk=kim.pk).update(is_active=False)
    assert through(Client()).status_code == 403


@pytest.mark.rule("A12")
def test_an_invitation_is_accepted_with_it_and_the_new_person_has_no_password(provider: Provider) -> None:
    world = a_world()
    client, token = Client(), invited(visitor(world), role="author").split("/")[2]
    assert through(client, invitation=token).headers["Location"] == "/"
    kim = User.objects.get(username="kim")
    assert (kim.email, kim.has_usable_password()) == ("kim@example.com", False)
    assert is_in(client)
    assert through(client := Client()).status_code == 302 and is_in(client)
    late = through(Client(), invitation=token)
    assert late.status_code == 403 and "accepted already" in text_of(late)
    provider.person |= {"sub": "p-2", "email": "kim2@example.com"}  # another person of that name
    assert through(Client(), invitation=invited(visitor(world)).split("/")[2]).status_code == 302
    assert User.objects.filter(username="kim-2").exists()


def test_a_person_links_and_unlinks_it_and_nobody_takes_what_is_anothers(provider: Provider) -> None:
    world = a_world()
    client, other = visitor(world), visitor(world, a_person(world.tenant, "other"))
    assert through(client).headers["Location"] == "/settings/you/"
    assert through(Client()).status_code == 302
    through(other)
    assert "linked to another person here" in text_of(other.get("/settings/you/"))
    client.post("/settings/you/unlink/")
    assert "Set a password first" in text_of(client.get("/settings/you/"))
    User.objects.filter(pk=world.person).update(password="argon2$x")
    client = visitor(world)
    client.post("/settings/you/unlink/")
    assert Identity.objects.count() == 0


def test_what_another_has_signed_or_was_meant_for_another_or_is_old_lets_nobody_in(provider: Provider) -> None:
    known_by_email(a_world())
    assert through(Client()).status_code == 302  # the control
    for odd in ({"aud": "another"}, {"iss": "https://evil.example"}, {"exp": 1}, {"sub": "p-9"}, {"sub": ""}):
        provider.token = odd
        assert through(client := Client()).status_code == 403, odd
        assert not is_in(client)
    provider.token, provider.signs_with = {}, rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert through(Client()).status_code == 403


def test_the_way_back_counts_once_and_only_in_the_browser_that_left(provider: Provider) -> None:
    known_by_email(a_world())
    client = Client()
    back = at_provider(leave(client))
    assert Client().get(back).status_code == 403
    assert client.head(back).status_code == 405
    assert client.get(back).status_code == 302
    assert is_in(client)
    client.post("/sign-out/")
    assert client.get(back).status_code == 403
    assert Client().get("/sign-in/with/provider/return/").status_code == 403
    assert Client().get("/sign-in/with/other/return/").status_code == 404
    provider.denies = True
    assert through(Client()).status_code == 403


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http://evil.example/a"]
)
def test_an_odd_sign_in_address_is_never_gone_to(provider: Provider, address: str) -> None:
    """CASES S07."""
    provider.says[METADATA] = provider.metadata(authorization_endpoint=address)
    refused = leave(Client())
    assert refused.status_code == 403
    assert "sign-in address is refused" in text_of(refused)
    assert address.split(":")[0] + ":" not in plain(text_of(refused))


@pytest.mark.parametrize(
    "says", [[], "x", 1, None, {}, {"authorization_endpoint": 1}, {"authorization_endpoint": None}]
)
def test_a_provider_that_says_odd_things_or_is_away_is_told_in_words(provider: Provider, says: Any) -> None:
    provider.says[METADATA] = says
    refused = leave(Client())
    assert refused.status_code == 403
    assert re.search("cannot be reached just now|is refused", text_of(refused))


def test_without_one_there_is_no_such_way_in(settings: LazySettings) -> None:
    settings.OZ0_OIDC_NAME = ""
    assert leave(Client()).status_code == 404
    assert Client().get("/sign-in/with/provider/return/").status_code == 404
    assert "with/" not in text_of(Client().get("/sign-in/"))
