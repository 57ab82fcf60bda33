"""API tokens: made by a person, shown once, bound, scoped, revoked (RULES A5, A10, A12; CASES A18, A19, S14)."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from base import db, ids
from jobs.models import Hold, Starter
from tenants.models import ApiToken, AuditEntry, Membership, Role, Tenant, User
from tenants.rules.bearers import is_token
from tests.builders import World, a_call, a_held_call, a_person, a_world, an_agent, the_hold
from tests.pages.visitors import answer, hold_url, plain, shown_digest_of, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
AGENT = "/api/v1/catalog/agents/clerk/tokens"


def made(client: Client, **fields: Any) -> str:
    """A new token, as its page shows it this once."""
    html = text_of(client.post("/settings/tokens/new/", {"name": "t", "scope": ["read"], "days": "90", **fields}))
    found = re.search(r'value="(oz0_[0-9A-Za-z]+)"', html)
    assert found, plain(html)
    return found[1]


def ask(token: str, path: str = AGENT, method: str = "get", **more: Any) -> Any:
    return getattr(Client(), method)(path, headers={"Authorization": f"Bearer {token}"}, **more)


def shown_id(world: World) -> str:
    with db.read(world.tenant):
        return ids.show(ids.TOKEN, ApiToken.objects.get().pk)


@pytest.mark.rule("A12")
def test_a_token_reads_as_its_person_is_kept_as_a_hash_and_shown_this_once() -> None:
    world = a_world()
    client = visitor(world)
    token = made(client, name="nightly")
    assert is_token(token)
    assert ask(token).json()["agent"] == "clerk"
    page = text_of(client.get("/settings/tokens/"))
    assert token not in page and f"oz0_…{token[-4:]}" in page and "nightly" in page
    with db.read(world.tenant):
        row = ApiToken.objects.get()
        entries = str(list(AuditEntry.objects.values()))
    assert token not in str(row.__dict__) and token not in entries
    assert row.used_at is not None
    assert "token.made" in entries


@pytest.mark.rule("A12")
def test_a_revoked_token_counts_for_nothing_from_that_moment_on() -> None:
    world = a_world()
    client = visitor(world)
    token = made(client)
    path = f"/settings/tokens/{shown_id(world)}/revoke/"
    assert client.get(path).status_code == 405
    assert ask(token).status_code == 200
    assert client.post(path).status_code == 302
    refused = ask(token)
    assert (refused.status_code, refused["Content-Type"]) == (401, "application/problem+json")
    assert 'error="invalid_token"' in refused["WWW-Authenticate"]
    assert client.post(path).status_code == 404
    with db.read(world.tenant):
        assert AuditEntry.objects.filter(verb="token.revoked").count() == 1


def test_a_token_ends_with_its_time_its_persons_place_and_their_account(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    short, lasting = made(visitor(world), days="7"), made(visitor(world, vic), days="never")
    move_clock(timedelta(days=7, seconds=1))
    assert [ask(token).status_code for token in (short, lasting)] == [401, 200]
    User.objects.filter(pk=vic).update(is_active=False)
    assert ask(lasting).status_code == 401
    User.objects.filter(pk=vic).update(is_active=True)
    assert ask(lasting).status_code == 200
    with db.write(world.tenant):
        Membership.objects.filter(user_id=vic).delete()
    assert ask(lasting).status_code == 401


def test_a_scope_that_is_missing_and_an_agent_that_it_is_not_bound_to_are_403_in_words() -> None:
    world = a_world()
    an_agent(world.tenant, "other")
    client = visitor(world)
    start, bound = made(client, scope=["start"]), made(client, agent="other")
    refused = ask(start)
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert 'error="insufficient_scope"' in refused["WWW-Authenticate"]
    assert ask(bound, "/api/v1/catalog/agents/other/tokens").status_code == 200
    for path in (AGENT, "/api/v1/catalog/agents/nobody/tokens", "/api/v1/nothing"):
        assert ask(bound, path).status_code == 403
    theirs = made(visitor(a_world("theirs")))
    assert ask(theirs, "/api/v1/catalog/agents/other/tokens").status_code == 404


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "bearer x", "Basic eDp5", "oz0_x", "Bearer oz0_" + "0" * 42, "Bearer ö"]
)
def test_what_is_no_token_is_401_whatever_cookie_comes_with_it(header: str) -> None:
    client = visitor(a_world())
    assert client.get(AGENT).status_code == 200
    refused = client.get(AGENT, headers={"Authorization": header})
    assert (refused.status_code, refused["Content-Type"]) == (401, "application/problem+json")


def test_who_makes_and_sees_what() -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.VIEWER)
    made(visitor(world), name="of the admin")
    client = visitor(world, vic)
    refused = client.post("/settings/tokens/new/", {"name": "t", "scope": ["start"], "days": "90"})
    assert refused.status_code == 422 and "Only operators" in text_of(refused)
    made(client, name="of vic")
    assert "of the admin" not in text_of(client.get("/settings/tokens/"))
    both = text_of(visitor(world).get("/settings/tokens/"))
    assert "of vic" in both and "of the admin" in both
    with db.read(world.tenant):
        admins = ids.show(ids.TOKEN, ApiToken.objects.get(name="of the admin").pk)
    assert client.post(f"/settings/tokens/{admins}/revoke/").status_code == 404
    for odd in ({"name": ""}, {"scope": []}, {"scope": ["decide"]}, {"days": "-1"}, {"days": "x"}, {"name": "x" * 101}):
        assert (
            client.post("/settings/tokens/new/", {"name": "t", "scope": ["read"], "days": "90", **odd}).status_code
            == 422
        )


@pytest.mark.rule("A5")
def test_no_token_decides_on_any_route_whatever_it_forges() -> None:
    """CASES A18: an approver's name in the form, and a token in place of a session."""
    world = a_world()
    client = visitor(world)
    token = made(client, scope=["read", "start"])
    _, hold = a_held_call(world)
    fields = {
        "answer": "approve",
        "shown": shown_digest_of(client, hold),
        "person": str(world.person),
        "by": "pat-acme",
    }
    for strict in (True, False):
        program = Client(enforce_csrf_checks=strict, headers={"Authorization": f"Bearer {token}"})
        for path in (hold_url(hold), f"{hold_url(hold)}group/"):
            said = program.post(path, fields)
            assert said.status_code in (302, 403)
            assert said.status_code == 403 or said.headers["Location"].startswith("/sign-in/")
    program = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})
    told = program.post(hold_url(hold), fields)
    assert told["Content-Type"] == "application/problem+json" and "never" not in told.json()["title"]
    with db.read(world.tenant):
        assert Hold.objects.get(pk=hold).state == "open"


@pytest.mark.rule("A10")
def test_who_starts_by_a_token_has_started_it_and_cannot_approve_it_where_nobody_may_approve_their_own() -> None:
    """CASES A19."""
    world = a_world()
    other = a_person(world.tenant, "other")
    with db.write(world.tenant):
        Tenant.objects.filter(pk=world.tenant).update(settings={"no_self_approval": True})
    hold = the_hold(world, a_call(world, "refund", starter=Starter.API_KEY)).pk
    refused, taken = (answer(visitor(world, person), hold, answer="approve") for person in (world.person, other))
    assert refused.status_code == 403 and "You started this job" in text_of(refused)
    assert taken.status_code == 302


@pytest.mark.parametrize(
    "body", [b"[]", b"1", b"null", b'{"params":[]}', b"[" * 100_000, b"\xef\xbb\xbf{}", b'"\\ud800"']
)
def test_json_of_any_shape_sent_to_an_address_that_only_reads_is_a_405_and_no_error(body: bytes) -> None:
    """CASES S14, for the routes there are: none takes JSON."""
    token = made(visitor(a_world()))
    for path in (AGENT, "/api/v1/nothing"):
        said = ask(token, path, "post", data=body, content_type="application/json")
        assert (said.status_code, said["Content-Type"]) == (405, "application/problem+json")
