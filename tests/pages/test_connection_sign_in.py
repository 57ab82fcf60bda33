"""Signing in to a connection by OAuth, against a real provider and server (CASES S03, S07; RULES A5, A12)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from django.test import Client

from base import db, ids
from catalog.models import Connection, Credential, SignIn, Standing
from catalog.operations import connections
from catalog.operations.connections import Given
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role, Secret
from tenants.operations import vault
from tenants.rules.who import SYSTEM
from tests.builders import World, a_person, a_world
from tests.pages.visitors import text_of, visitor
from tests.servers.guarded import METADATA, RESOURCE, Guarded, a_guarded_server


@pytest.fixture
def world(database: Postgres) -> World:
    return a_world()


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with a_guarded_server() as server:
        yield server


def a_connection(world: World, guarded: Guarded, *, allowed: bool = True) -> str:
    """The address of the page of a connection to the guarded server."""
    made = connections.make(
        tenant=world.tenant,
        name="guarded",
        url=guarded.url,
        allowed=[guarded.place] if allowed else [],
        given=Given(Credential.OAUTH),
        actor=SYSTEM,
    )
    return f"/settings/connections/{ids.show(ids.CONNECTION, made)}/"


def left_for(client: Client, page: str) -> str:
    """Press "Sign in"; the address that the leaving page goes to."""
    response = client.post(f"{page}oauth/sign-in/")
    html = text_of(response)
    assert response.status_code == 200, html
    return html.split('content="0;url=', 1)[1].split('"', 1)[0].replace("&amp;", "&")


def came_back(client: Client, address: str) -> Any:
    """Go to the provider and follow it back, as the browser does."""
    answer = httpx2.get(address, follow_redirects=False, timeout=10)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["location"])
    return client.get(f"{back.path}?{back.query}")


def signed_in(world: World, guarded: Guarded) -> tuple[Client, str]:
    client, page = visitor(world), a_connection(world, guarded)
    response = came_back(client, left_for(client, page))
    assert response.status_code == 302, text_of(response)
    return client, page


def the_sign_in(world: World) -> SignIn | None:
    with db.read(world.tenant):
        return SignIn.objects.first()


def secrets_of(world: World) -> dict[str, str]:
    with db.read(world.tenant):
        return {row.name.split(" ", 2)[-1]: vault.get(world.tenant, row.name) for row in Secret.objects.all()}


def test_an_admin_signs_in_and_the_page_says_as_whom_with_which_scopes_and_until_when(
    world: World, guarded: Guarded
) -> None:
    client, page = signed_in(world, guarded)
    html = text_of(client.get(page))
    assert "Signed in by" in html and "pat-acme" in html and "papers" in html and "runs out" in html
    row = the_sign_in(world)
    assert row is not None and row.standing == Standing.IN and row.granted_at is not None
    assert row.expires_at == row.granted_at + timedelta(hours=1)
    assert row.refresh_due_at == row.expires_at - timedelta(minutes=5)
    kept = secrets_of(world)
    assert all(value not in html for value in kept.values())
    assert set(kept.values()) >= {*guarded.access, *guarded.refresh_tokens}
    with db.read(world.tenant):
        assert Connection.objects.get().credential_version == 2


def test_what_was_asked_of_the_provider_carries_pkce_the_resource_and_a_state(world: World, guarded: Guarded) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    asked = parse_qs(urlsplit(left_for(client, page)).query)
    assert asked["code_challenge_method"] == ["S256"] and len(asked["code_challenge"][0]) == 43
    assert asked["resource"] == [guarded.url] and asked["scope"] == ["papers"]
    assert len(asked["state"][0]) >= 32
    assert asked["redirect_uri"] == [f"http://testserver{page}oauth/return/"]
    assert METADATA in guarded.asked and RESOURCE in guarded.asked and "/register" in guarded.asked


@pytest.mark.rule("A12")
def test_signing_in_and_out_is_audited_without_a_token(world: World, guarded: Guarded) -> None:
    client, page = signed_in(world, guarded)
    tokens = set(secrets_of(world).values())
    client.post(f"{page}oauth/sign-out/")
    with db.read(world.tenant):
        entries = list(AuditEntry.objects.order_by("seq"))
    assert [one.verb for one in entries if one.verb.startswith("connection.signed")] == [
        "connection.signed_in",
        "connection.signed_out",
    ]
    said = str([(one.before, one.after, one.note) for one in entries])
    assert all(token not in said for token in tokens)


def test_signing_out_forgets_the_tokens_and_revokes_them(world: World, guarded: Guarded) -> None:
    client, page = signed_in(world, guarded)
    kept = {name: value for name, value in secrets_of(world).items() if "client" not in name}
    response = client.post(f"{page}oauth/sign-out/", follow=True)
    assert "here and at the provider" in text_of(response)
    assert set(guarded.revoked) == set(kept.values())
    row = the_sign_in(world)
    assert row is not None and row.standing == Standing.OUT and row.expires_at is None
    assert not set(secrets_of(world).values()) & set(kept.values())


def test_signing_in_again_registers_nobody_anew(world: World, guarded: Guarded) -> None:
    client, page = signed_in(world, guarded)
    assert came_back(client, left_for(client, page)).status_code == 302
    assert guarded.asked.count("/register") == 1
    assert set(guarded.access) & set(secrets_of(world).values())


# --- who, and which way back --------------------------------------------------------------------------------------


@pytest.mark.rule("A5")
def test_only_admins_see_connections_or_sign_in(world: World, guarded: Guarded) -> None:
    page = a_connection(world, guarded)
    author = visitor(world, a_person(world.tenant, "ann", Role.AUTHOR))
    assert author.get("/settings/connections/").status_code == 403
    assert author.get(page).status_code == 403
    assert author.post(f"{page}oauth/sign-in/").status_code == 403
    assert author.get(f"{page}oauth/return/?state=x&code=y").status_code == 403
    assert guarded.asked == []


@pytest.mark.rule("A5")
def test_signing_in_takes_a_post_with_a_csrf_token(world: World, guarded: Guarded) -> None:
    page = a_connection(world, guarded)
    assert visitor(world).get(f"{page}oauth/sign-in/").status_code == 405
    assert visitor(world, strict=True).post(f"{page}oauth/sign-in/").status_code == 403
    assert guarded.asked == []


def test_a_way_back_counts_only_in_the_session_that_left_and_only_once(world: World, guarded: Guarded) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    answer = httpx2.get(left_for(client, page), follow_redirects=False)
    back = urlsplit(answer.headers["location"])
    path = f"{back.path}?{back.query}"
    other = visitor(world, a_person(world.tenant, "eve"))
    assert other.get(path).status_code == 400
    assert visitor(world).get(path).status_code == 400
    assert "/token" not in guarded.asked
    assert client.get(path).status_code == 302
    assert client.get(path).status_code == 400
    assert guarded.asked.count("/token") == 1


def test_a_way_back_is_good_for_ten_minutes(
    world: World, guarded: Guarded, move_clock: Callable[[timedelta], None]
) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    address = left_for(client, page)
    move_clock(timedelta(minutes=10, seconds=1))
    response = came_back(client, address)
    assert response.status_code == 422 and "longer than 10 minutes" in text_of(response)
    assert "/token" not in guarded.asked


def test_a_state_that_the_provider_changed_is_refused(world: World, guarded: Guarded) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    left_for(client, page)
    response = client.get(f"{page}oauth/return/?state=planted&code=planted")
    assert response.status_code == 400 and "in this browser" in text_of(response)
    assert "/token" not in guarded.asked


def test_an_answer_of_another_issuer_is_refused(world: World, guarded: Guarded) -> None:
    guarded.issuer_on_return = "https://evil.example"
    client, page = visitor(world), a_connection(world, guarded)
    response = came_back(client, left_for(client, page))
    assert response.status_code == 422 and "does not come from" in text_of(response)
    assert "/token" not in guarded.asked


def test_an_answer_without_the_issuer_that_the_provider_promised_is_refused(world: World, guarded: Guarded) -> None:
    guarded.says[METADATA] = (200, guarded.metadata(authorization_response_iss_parameter_supported=True))
    client, page = visitor(world), a_connection(world, guarded)
    assert came_back(client, left_for(client, page)).status_code == 422
    guarded.issuer_on_return = guarded.base  # the control: with it the same way back counts
    assert came_back(client, left_for(client, page)).status_code == 302


def test_a_person_who_denies_is_told_that_nothing_changed(world: World, guarded: Guarded) -> None:
    guarded.denies = True
    client, page = visitor(world), a_connection(world, guarded)
    response = came_back(client, left_for(client, page))
    assert response.status_code == 422 and "denied access" in text_of(response)


# --- what servers and providers say of themselves -----------------------------------------------------------------

ODD = [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "http://auth.example/authorize",
    "https://user@auth.example/authorize",
    "//auth.example/authorize",
    "https://auth.example\\@evil.example/",
    17,
    None,
]


@pytest.mark.parametrize("address", ODD)
def test_an_odd_sign_in_address_is_refused(world: World, guarded: Guarded, address: Any) -> None:
    guarded.says[METADATA] = (200, guarded.metadata(authorization_endpoint=address))
    client, page = visitor(world), a_connection(world, guarded)
    response = client.post(f"{page}oauth/sign-in/")
    assert response.status_code == 422
    assert "sign-in address" in text_of(response)
    assert "/register" not in guarded.asked


@pytest.mark.parametrize("name", ["token_endpoint", "registration_endpoint", "revocation_endpoint"])
def test_an_odd_address_elsewhere_in_the_metadata_is_refused(world: World, guarded: Guarded, name: str) -> None:
    guarded.says[METADATA] = (200, guarded.metadata(**{name: "http://169.254.169.254/latest"}))
    response = visitor(world).post(f"{a_connection(world, guarded)}oauth/sign-in/")
    assert response.status_code == 422 and "begins with http://" in text_of(response)


def test_metadata_that_leads_into_the_own_network_is_refused(world: World, guarded: Guarded) -> None:
    reached: list[str] = []
    with a_guarded_server() as inside:
        elsewhere = {"resource": guarded.url, "authorization_servers": [inside.base]}
        guarded.says[RESOURCE] = (200, elsewhere)
        response = visitor(world).post(f"{a_connection(world, guarded)}oauth/sign-in/")
        assert response.status_code == 422 and inside.place in text_of(response)
        reached += inside.asked
    assert reached == []


def test_a_server_that_is_not_allowed_is_not_asked(world: World, guarded: Guarded) -> None:
    response = visitor(world).post(f"{a_connection(world, guarded, allowed=False)}oauth/sign-in/")
    assert response.status_code == 422 and "an admin can allow" in text_of(response)
    assert guarded.asked == []


@pytest.mark.parametrize(
    ("path", "said", "words"),
    [
        (
            RESOURCE,
            {"resource": "https://other.example/mcp", "authorization_servers": ["https://a.example"]},
            "not this",
        ),
        (METADATA, {"issuer": "https://evil.example"}, "names itself"),
        (METADATA, {"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        (METADATA, {"grant_types_supported": ["client_credentials"]}, "Use another credential"),
        (METADATA, {"registration_endpoint": None}, "enter its client id here"),
    ],
    ids=["resource", "issuer", "pkce", "grants", "registration"],
)
def test_what_does_not_fit_is_refused_with_what_to_do(
    world: World, guarded: Guarded, path: str, said: dict[str, Any], words: str
) -> None:
    guarded.says[path] = (200, said if path == RESOURCE else guarded.metadata(**said))
    response = visitor(world).post(f"{a_connection(world, guarded)}oauth/sign-in/")
    assert response.status_code == 422 and words in text_of(response)


@pytest.mark.parametrize(
    "said", [{}, {"access_token": "line\nbreak", "token_type": "Bearer"}, {"access_token": "x", "token_type": "mac"}]
)
def test_a_token_that_cannot_be_used_is_not_kept(world: World, guarded: Guarded, said: Any) -> None:
    guarded.says["/token"] = (200, said)
    client, page = visitor(world), a_connection(world, guarded)
    assert came_back(client, left_for(client, page)).status_code == 422
    assert the_sign_in(world) is None


# --- the connection itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_an_entered_client_is_used_with_its_secret_and_nothing_is_registered(
    world: World, guarded: Guarded, method: str
) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    back = f"http://testserver{page}oauth/return/"
    body = {"redirect_uris": [back], "client_name": "by hand", "token_endpoint_auth_method": method}
    made = httpx2.post(f"{guarded.base}/register", json=body).json()
    guarded.asked.clear()
    fields = {"client_id": made["client_id"], "client_secret": "", "secret": made["client_secret"], "scopes": "papers"}
    assert client.post(f"{page}client/", fields).status_code == 302
    assert came_back(client, left_for(client, page)).status_code == 302
    assert "/register" not in guarded.asked
    assert made["client_secret"] not in text_of(client.get(page))


def test_another_server_needs_another_sign_in(world: World, guarded: Guarded) -> None:
    client, page = signed_in(world, guarded)
    fields = {"url": "https://mcp.example.org/mcp", "allowed": "", "kind": "oauth", "header": "", "value": ""}
    assert client.post(page, fields).status_code == 302
    assert the_sign_in(world) is None and secrets_of(world) == {}


def test_a_bearer_token_is_not_taken_for_a_sign_in(world: World, guarded: Guarded) -> None:
    client, page = visitor(world), a_connection(world, guarded)
    fields = {"url": guarded.url, "allowed": guarded.place, "header": ""}
    client.post(page, {**fields, "kind": "bearer", "value": "typed by hand"})
    assert "typed by hand" in secrets_of(world).values()
    client.post(page, {**fields, "kind": "oauth", "value": ""})
    assert secrets_of(world) == {}


def test_a_connection_is_added_changed_and_removed_on_its_pages(world: World) -> None:
    client = visitor(world)
    assert "No connection yet" in text_of(client.get("/settings/connections/"))
    fields = {
        "name": "Archive!",
        "url": "https://mcp.example.org/mcp",
        "allowed": "",
        "kind": "bearer",
        "value": "s3cret",
    }
    assert client.post("/settings/connections/new/", fields).status_code == 422
    made = client.post("/settings/connections/new/", fields | {"name": "archive"})
    page = made.headers["Location"]
    assert "s3cret" not in text_of(client.get(page))
    changed = client.post(page, {"url": "https://mcp.example.org/two", "allowed": "", "kind": "bearer", "header": ""})
    assert changed.status_code == 422 and "credential anew" in text_of(changed)
    assert "archive" in text_of(client.get("/settings/connections/"))
    assert client.post(f"{page}remove/").status_code == 302
    assert client.get(page).status_code == 404
