"""People, roles, invitations and workspaces (RULES A10, A12; CASES A26)."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from django.test import Client

from base import db, ids
from tenants.models import ApiToken, AuditEntry, Invitation, Membership, Role, User
from tenants.operations import people as operations
from tenants.operations import tokens, workspaces
from tenants.queries.seats import seats_of
from tenants.rules.bearers import written
from tenants.rules.who import Actor
from tests.builders import World, a_job, a_person, a_tenant, a_world
from tests.pages.visitors import job_url, plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
PASSWORD = "quite a long one"


def member_url(world: World, person: int, more: str = "") -> str:
    with db.read(world.tenant):
        return f"/settings/people/{ids.show(ids.MEMBER, Membership.objects.get(user_id=person).pk)}/{more}"


def role_of(world: World, person: int) -> str | None:
    with db.read(world.tenant):
        return Membership.objects.filter(user_id=person).values_list("role", flat=True).first()


def audited(world: World, verb: str) -> list[AuditEntry]:
    with db.read(world.tenant):
        return list(AuditEntry.objects.filter(verb=verb).order_by("seq"))


def invited(client: Client, **fields: Any) -> str:
    """The path of a new invitation, as its page shows it this once."""
    html = text_of(client.post("/settings/people/invite/", {"role": "operator", "email": "", "days": "7", **fields}))
    found = re.search(r"http://testserver(/invitation/[^/]+/)", html)
    assert found, plain(html)
    return found[1]


def joined(path: str, name: str = "kim", client: Client | None = None) -> Client:
    client = client or Client()
    answer = client.post(path, {"username": name, "password": PASSWORD})
    assert answer.status_code == 302, plain(text_of(answer))
    return client


# --- who sees and changes what ---------------------------------------------------------------------------------------


def test_every_member_sees_who_belongs_and_what_roles_mean_and_only_admins_find_a_way_to_change_it() -> None:
    world = a_world()
    viewer = a_person(world.tenant, "vic", Role.VIEWER)
    seen = text_of(visitor(world, viewer).get("/settings/people/"))
    assert "pat-acme" in seen and "vic" in seen
    assert "Also starts and stops jobs" in seen
    assert "Admins change who belongs to this workspace" in seen
    assert "<button disabled" in seen and 'href="/settings/people/invite/"' not in seen
    shown = text_of(visitor(world).get("/settings/people/"))
    assert 'href="/settings/people/invite/"' in shown
    assert member_url(world, viewer) in shown


@pytest.mark.rule("A12")
def test_an_admin_changes_a_role_and_it_is_audited_with_what_it_was() -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.VIEWER)
    assert visitor(world).post(member_url(world, vic), {"role": "author"}).status_code == 302
    assert role_of(world, vic) == "author"
    (noted,) = audited(world, "person.role_changed")
    assert (noted.object, noted.before, noted.after) == ("person vic", {"role": "viewer"}, {"role": "author"})
    assert noted.actor == "pat-acme" and "127.0.0.1" in noted.how


def test_nobody_but_an_admin_changes_anything_and_no_odd_role_is_taken() -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.VIEWER)
    for role in (Role.VIEWER, Role.OPERATOR, Role.AUTHOR):
        other = a_person(world.tenant, f"one-{role}", role)
        client = visitor(world, other)
        assert client.post(member_url(world, vic), {"role": "admin"}).status_code == 403
        assert client.post(member_url(world, vic, "remove/")).status_code == 403
        assert client.post(member_url(world, other), {"role": "admin"}).status_code == 403
        assert client.post("/settings/people/invite/", {"role": "admin", "days": "7"}).status_code == 403
    for odd in ("", "owner", "ADMIN", "admin ", "0", "none"):
        assert visitor(world).post(member_url(world, vic), {"role": odd}).status_code == 400
    assert role_of(world, vic) == "viewer"
    assert audited(world, "person.role_changed") == []


def test_the_last_admin_stays_and_nobody_changes_or_removes_themself() -> None:
    world = a_world()
    mine = member_url(world, world.person)
    for answer in (visitor(world).post(mine, {"role": "viewer"}), visitor(world).post(f"{mine}remove/")):
        assert answer.status_code == 403
        assert "You cannot change or remove yourself" in text_of(answer)
    assert "You cannot change or remove yourself" in text_of(visitor(world).get(mine))
    with db.read(world.tenant):
        membership = Membership.objects.get(user_id=world.person).pk
    with pytest.raises(operations.MayNot, match="Admins change"):  # who is no member is no admin
        operations.remove(tenant=world.tenant, membership=membership, note="", actor=Actor("x", "y", 999))


def test_two_admins_who_remove_each_other_at_once_leave_one() -> None:
    world = a_world()
    other = a_person(world.tenant, "second")

    def take(me: int, them: int) -> bool:
        with db.read(world.tenant):
            membership = Membership.objects.filter(user_id=them).values_list("pk", flat=True).first()
        try:
            if membership is None:
                return False
            operations.remove(tenant=world.tenant, membership=membership, note="", actor=Actor("a", "test", me))
            return True
        except (operations.MayNot, operations.NobodyThere):
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(take, [world.person, other], [other, world.person]))
    assert sorted(won) == [False, True]
    with db.read(world.tenant):
        assert Membership.objects.filter(role=Role.ADMIN).count() == 1


@pytest.mark.rule("A12")
def test_who_is_removed_is_out_at_once_with_their_tokens_and_what_they_did_stays() -> None:
    world = a_world()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    client, elsewhere = visitor(world, vic), visitor(world, vic)
    (seat,) = seats_of(vic)
    tokens.make(
        seat=seat, token=written("a" * 36), name="t", scopes=["read"], agent="", days=None, actor=Actor("v", "")
    )
    assert client.get("/jobs/").status_code == 200
    assert visitor(world).post(member_url(world, vic, "remove/"), {"note": "left the firm"}).status_code == 302
    for one in (client, elsewhere):
        assert one.get("/jobs/").headers["Location"].startswith("/sign-in/")
    with db.read(world.tenant):
        assert ApiToken.objects.get().revoked_at is not None
    (noted,) = audited(world, "person.removed")
    assert (noted.before, noted.after, noted.note) == ({"role": "operator"}, {"tokens_revoked": 1}, "left the firm")
    assert visitor(world).post(f"/settings/people/{ids.show(ids.MEMBER, ids.new())}/remove/").status_code == 404


# --- invitations -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("A12")
def test_an_invitation_makes_a_person_with_the_name_and_password_they_choose_in_the_role_offered() -> None:
    world = a_world()
    path = invited(visitor(world), email="kim@example.com")
    offered = text_of(Client().get(path))
    assert "invites you as" in offered and "Acme" in offered
    client = joined(path)
    assert client.get("/jobs/").status_code == 200
    kim = User.objects.get(username="kim")
    assert (kim.email, role_of(world, kim.pk)) == ("kim@example.com", "operator")
    assert kim.password.startswith("argon2")
    made, accepted = audited(world, "invitation.made"), audited(world, "invitation.accepted")
    assert (made[0].actor, accepted[0].actor) == ("pat-acme", "kim")
    assert path.split("/")[2] not in str([row.__dict__ for row in made + accepted])  # the token is nowhere
    with db.read(world.tenant):
        assert path.split("/")[2] not in str(Invitation.objects.values())


@pytest.mark.rule("A5")
def test_opening_an_invitation_in_any_way_accepts_nothing_and_it_is_accepted_once() -> None:
    world = a_world()
    path, scanner = invited(visitor(world)), Client()
    for answer in (
        scanner.get(path),
        scanner.head(path),
        scanner.options(path),
        scanner.get(path, headers={"Sec-Purpose": "prefetch"}),
    ):
        assert answer.status_code in (200, 405)
    joined(path)
    late = Client().post(path, {"username": "late", "password": PASSWORD})
    assert late.status_code == 404
    assert "accepted already" in text_of(late)
    assert not User.objects.filter(username="late").exists()


def test_an_invitation_that_was_taken_back_or_ran_out_or_never_was_lets_nobody_in(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    client = visitor(world)
    back, old = invited(client), invited(client, days="1")
    page = text_of(client.get("/settings/people/"))
    shown = re.findall(r"/settings/people/invitations/(inv_\w+)/revoke/", page)
    with db.read(world.tenant):
        first = ids.show(ids.INVITATION, Invitation.objects.order_by("made_at").first().pk)
    assert first in shown and len(shown) == 2
    assert client.post(f"/settings/people/invitations/{first}/revoke/").status_code == 302
    assert client.post(f"/settings/people/invitations/{first}/revoke/").status_code == 404
    move_clock(timedelta(days=1, seconds=1))
    for path, why in ((back, "taken back"), (old, "run out"), ("/invitation/made-up/", "no such invitation")):
        for answer in (Client().get(path), Client().post(path, {"username": "kim", "password": PASSWORD})):
            assert answer.status_code == 404
            assert why in text_of(answer)
    assert not User.objects.filter(username="kim").exists()
    assert [row.verb for row in audited(world, "invitation.revoked")] == ["invitation.revoked"]


@pytest.mark.parametrize(
    ("name", "password", "why"),
    [
        ("kim", "short", "at least 12"),
        ("kim", "a" * 5000, "at most 4096"),
        ("kim", "abababababab", "repeats very few"),
        ("kim", "I am Kim, am I?", "contain its person"),
        ("pat-acme", PASSWORD, "has this name already"),
        ("PAT-acme", PASSWORD, "has this name already"),
        ("k", PASSWORD, "2 to 64"),
        ("kіm", PASSWORD, "2 to 64"),  # with a Cyrillic letter
        ("kim\u202e", PASSWORD, "2 to 64"),
    ],
)
def test_names_and_passwords_that_cannot_be_are_refused_and_the_invitation_stays_open(
    name: str, password: str, why: str
) -> None:
    world = a_world()
    path = invited(visitor(world))
    answer = Client().post(path, {"username": name, "password": password})
    assert answer.status_code == 422
    assert why in plain(text_of(answer))
    joined(path, "kim-2")


def test_somebody_who_is_known_joins_a_second_workspace_and_goes_there() -> None:
    world, other = a_world("ours"), a_world("theirs")
    client = visitor(other)
    path = invited(visitor(world), role="viewer")
    assert "Join as" in text_of(client.get(path))
    assert client.post(path).status_code == 302
    assert {seat.tenant for seat in seats_of(other.person)} == {world.tenant, other.tenant}
    assert "Ours" in text_of(client.get("/"))
    again = client.post(invited(visitor(world)))
    assert again.status_code == 422
    assert "belong to this workspace already" in text_of(again)


def test_an_invitation_is_sent_when_there_is_a_mail_server_and_its_page_says_so(settings: LazySettings) -> None:
    world = a_world()
    answer = text_of(
        visitor(world).post("/settings/people/invite/", {"role": "viewer", "email": "k@example.com", "days": "7"})
    )
    assert "Sent to" not in answer and mail.outbox == []
    settings.OZ0_EMAIL_URL = "smtp://localhost"
    html = text_of(
        visitor(world).post("/settings/people/invite/", {"role": "viewer", "email": "k@example.com", "days": "7"})
    )
    assert "Sent to" in html
    (sent,) = mail.outbox
    link = re.search(r"http://testserver/invitation/\S+", sent.body)
    assert sent.to == ["k@example.com"] and link and link[0] in html
    bad = visitor(world).post("/settings/people/invite/", {"role": "viewer", "email": "no address", "days": "7"})
    assert bad.status_code == 422 and len(mail.outbox) == 1


# --- workspaces ------------------------------------------------------------------------------------------------------


def test_a_person_of_two_workspaces_switches_and_an_id_of_the_other_one_leads_there() -> None:
    ours, theirs, strangers = a_world("ours"), a_world("theirs"), a_world("strangers")
    with db.write(theirs.tenant):
        Membership.objects.create(tenant_id=theirs.tenant, user_id=ours.person, role=Role.OPERATOR)
    client = visitor(ours)
    job, foreign = a_job(theirs), a_job(strangers)
    offered = client.get(job_url(job))
    assert offered.status_code == 200
    assert "This is in" in text_of(offered) and "A job" not in plain(text_of(offered))
    assert client.get("/jobs/").context["shell"].tenant_name == "Ours"  # looking moved nothing
    went = client.post("/settings/workspace/", {"workspace": str(theirs.tenant), "next": job_url(job)})
    assert went.headers["Location"] == job_url(job)
    assert client.get(job_url(job)).context["shell"].tenant_name == "Theirs"
    assert client.get(job_url(foreign)).status_code == 404
    for odd in (str(strangers.tenant), "", "x", str(ids.new())):
        assert client.post("/settings/workspace/", {"workspace": odd}).status_code == 404
    evil = client.post("/settings/workspace/", {"workspace": str(ours.tenant), "next": "https://evil.example/"})
    assert evil.headers["Location"] == "/"


def test_a_further_workspace_is_made_with_an_admin_who_finds_it() -> None:
    world = a_world()
    new: UUID = ids.new()
    by = Actor("oz0", "test")
    workspaces.make(new_id=new, slug="second", name="Second", admin="pat-acme", actor=by)
    assert [seat.role for seat in seats_of(world.person) if seat.tenant == new] == [Role.ADMIN]
    assert "Go to" in text_of(visitor(world).get("/"))
    for slug, admin in (("second", "pat-acme"), ("Third", "pat-acme"), ("third", "nobody")):
        with pytest.raises(workspaces.BadWorkspace):
            workspaces.make(new_id=ids.new(), slug=slug, name="X", admin=admin, actor=by)
    assert a_tenant("third")
