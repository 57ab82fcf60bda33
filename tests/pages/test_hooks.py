"""The pages of hooks, and the address where their events come in."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from base import db, ids
from jobs.api import hooks as incoming
from jobs.models import Hook, HookDelivery, Job
from tenants.models import AuditEntry, Role, Secret
from tests import senders
from tests.builders import World, a_person, a_world, see
from tests.catalogs import an_agent_of
from tests.pages.visitors import job_url, plain, text_of, visitor
from tests.senders import STANDARD

FORM = {
    "name": "Orders",
    "signing": "standard",
    "secret": "",
    "agent": "keeper",
    "how:account": "event",
    "text:account": "/order/account",
    "how:lines": "always",
    "text:lines": "[1, 2]",
    "how:note": "own",
}
ORDER = {"type": "order.made", "order": {"account": "A-12"}}


@pytest.fixture
def world(database: object) -> World:
    world = a_world()
    an_agent_of(world, "keeper", "shop.*", input={"account": "A-1", "lines": [], "note": "by itself"})
    return world


def made(client: Client, **more: str) -> tuple[UUID, str]:
    """A hook as its form makes it, and the secret that is shown this once."""
    page = text_of(client.post("/events/new/", FORM | more))
    found = re.search(r"hook_[0-9a-z]{26}", page)
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", page)
    assert found, plain(page)
    return ids.parse(ids.HOOK, found[0]), secret[0] if secret else ""


def address(hook: UUID, more: str = "") -> str:
    return f"/events/{ids.show(ids.HOOK, hook)}/{more}"


def sent(world: World, hook: UUID, secret: str, event: Any = ORDER, **more: Any) -> Any:
    """An event over HTTP, and its answer."""
    body = event if isinstance(event, bytes) else senders.body_of(event)
    with db.read(world.tenant) as now:
        headers = senders.standard(body, now, secret=secret, name=more.pop("name", "msg_1"))
    path = f"/hooks/{ids.show(ids.HOOK, hook)}/"
    return Client(enforce_csrf_checks=True).post(path, body, content_type="application/json", headers=headers, **more)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"payload=%7B%22type%22%3A%22x%22%7D"),
        ("application/x-www-form-urlencoded", senders.body_of(ORDER)),
        ("multipart/form-data; boundary=b", b"--b\r\nno part"),
        ("multipart/form-data", b"no boundary"),
    ],
)
def test_a_form_is_told_that_an_event_is_json(world: World, kind: str, body: bytes) -> None:
    hook, secret = made(visitor(world))
    with db.read(world.tenant) as now:
        headers = senders.standard(body, now, secret=secret, name="msg_1")
    told = Client().generic("POST", f"/hooks/{ids.show(ids.HOOK, hook)}/", body, content_type=kind, headers=headers)
    assert (told.status_code, told["Content-Type"]) == (415, "application/problem+json")
    assert "take application/json" in told.json()["detail"]


def test_an_event_with_a_name_twice_starts_nothing_and_is_told_so(world: World) -> None:
    hook, secret = made(visitor(world))
    told = sent(world, hook, secret, b'{"order": {"account": "A"}, "order": {"account": "B"}}')
    assert told.status_code == 422
    assert "has a name twice" in told.json()["detail"]
    with db.read(world.tenant):
        assert not Job.objects.exists()


def test_an_event_may_have_a_mebibyte(world: World) -> None:
    hook, secret = made(visitor(world))
    large = senders.body_of(ORDER | {"more": "x" * (incoming.MOST_BODY - 200)})
    assert sent(world, hook, secret, large).status_code == 202
    assert sent(world, hook, secret, large + b" " * 200, name="msg_2").status_code == 413


def test_a_foreign_host_is_told_to_a_sender_as_a_problem(world: World, caplog: pytest.LogCaptureFixture) -> None:
    told = Client().post("/hooks/hook_x/", {}, headers={"Host": "studio.evil.example"})
    assert (told.status_code, told["Content-Type"]) == (421, "application/problem+json")
    assert "Traceback" not in caplog.text


@pytest.mark.rule("G1")
def test_a_hook_is_made_its_secret_shown_once_and_an_event_over_http_starts_its_job(world: World) -> None:
    client = visitor(world)
    assert "No hook yet" in text_of(client.get("/events/"))
    hook, secret = made(client)
    assert secret
    page = text_of(client.get(address(hook)))
    assert secret not in page and f"/hooks/{ids.show(ids.HOOK, hook)}/" in page and "Nothing came yet" in page
    answer = sent(world, hook, secret)
    assert answer.status_code == 202 and answer.json()["again"] is False
    again = sent(world, hook, secret)
    assert (again.status_code, again.json()["job"]) == (200, answer.json()["job"])
    job = see(world, Job, ids.parse(ids.JOB, answer.json()["job"]))
    assert job.input == {"account": "A-12", "lines": [1, 2], "note": "by itself"}
    words = plain(text_of(client.get(job_url(job.pk))))
    assert "event at Orders, for pat-acme" in words
    page = text_of(client.get(address(hook)))
    assert job_url(job.pk) in page and "msg_1" in page and "2 times" in page
    assert "order.made" in plain(text_of(client.get("/jobs/")))
    with db.read(world.tenant):
        assert secret not in str(list(AuditEntry.objects.values()))
        assert Secret.objects.filter(name=f"hook {hook}").exists()
    assert f"hook {hook}" not in text_of(client.get("/settings/secrets/"))  # not one to be entered there


def test_each_refusal_of_an_event_says_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = visitor(world)
    hook, secret = made(client)
    path = f"/hooks/{ids.show(ids.HOOK, hook)}/"
    assert Client().post(path, b"{}", content_type="application/json").status_code == 401
    assert Client().post(path, {"a": "form"}).status_code == 415
    assert sent(world, ids.new(), secret).status_code == 404
    assert Client().post("/hooks/nonsense/").status_code == 404
    assert (Client().get(path).status_code, client.get(path).status_code) == (405, 405)
    unmapped = sent(world, hook, secret, {"order": {}})
    assert (unmapped.status_code, unmapped["Content-Type"]) == (422, "application/problem+json")
    assert [one["at"] for one in unmapped.json()["errors"]] == ["account"]
    assert sent(world, hook, secret, b"{", name="msg_2").status_code == 422
    monkeypatch.setattr(incoming, "MOST_BODY", 10)
    large = sent(world, hook, secret)
    assert large.status_code == 413 and "KiB" in large.json()["detail"]
    monkeypatch.undo()
    assert sent(world, hook, secret, name="msg_3").status_code == 202
    changed = sent(world, hook, secret, {**ORDER, "x": 1}, name="msg_3")
    assert changed.status_code == 409 and "another body" in changed.json()["detail"]
    assert client.post(address(hook, "turn/"), {"on": "no"}).status_code == 302
    assert sent(world, hook, secret, name="msg_4").status_code == 403
    with db.read(world.tenant):
        assert {one.came for one in HookDelivery.objects.all()} == {"started", "unmapped"}
    assert "not signed rightly" in plain(text_of(client.get(address(hook))))


def test_the_form_says_what_is_wrong_beside_it_tries_an_example_and_keeps_what_was_typed(world: World) -> None:
    client = visitor(world)
    for more, said in (
        ({"text:account": "order"}, "begins with a slash"),
        ({"text:lines": "[1,"}, "This is not JSON"),
        ({"signing": "stripe"}, "Stripe gives you its signing secret"),
        ({"secret": "short"}, "16 to 200"),
        ({"name": ""}, "Give it a name"),
    ):
        answer = client.post("/events/new/", FORM | more)
        assert answer.status_code == 422 and said in plain(text_of(answer)), said
    tried = plain(
        text_of(client.post("/events/new/", FORM | {"do": "try", "example": '{"order": {"account": "B-2"}}'}))
    )
    assert '"account": "B-2"' in tried
    missing = client.post("/events/new/", FORM | {"do": "try", "example": "{}"})
    assert "the event has no order" in plain(text_of(missing))
    shown = client.post(
        "/events/new/?do=show", FORM | {"agent": "clerk"}, headers={"HX-Request": "true", "HX-Target": "mapping"}
    )
    assert "takes no input" in plain(text_of(shown))
    with db.read(world.tenant):
        assert not Hook.objects.exists()


@pytest.mark.rule("A12")
def test_a_hook_is_changed_given_a_new_secret_and_removed_and_each_is_told_in_the_audit_log(world: World) -> None:
    client = visitor(world)
    hook, secret = made(client, secret=STANDARD)
    assert not secret  # one that was entered is not shown
    form = text_of(client.get(address(hook, "change/")))
    assert 'value="/order/account"' in form and 'value="[1, 2]"' in form
    assert (
        client.post(address(hook, "change/"), FORM | {"name": "Sales", "text:account": "/account"}).status_code == 302
    )
    assert "/account" in plain(text_of(client.get(address(hook))))
    page = text_of(client.post(address(hook, "secret/"), {}))
    drawn = re.search(r"whsec_[A-Za-z0-9+/=]+", page)
    assert drawn and "the one before counts until" in plain(page)
    assert [sent(world, hook, key, {"account": "A"}, name=key[:9]).status_code for key in (STANDARD, drawn[0])] == [
        202,
        202,
    ]
    assert client.post(address(hook, "remove/")).status_code == 302
    assert client.post(address(hook, "remove/")).status_code == 404
    assert sent(world, hook, drawn[0]).status_code == 404
    with db.read(world.tenant):
        told = [one.verb for one in AuditEntry.objects.order_by("seq") if one.verb.startswith("hook.")]
    assert told == ["hook.made", "hook.changed", "hook.secret", "hook.removed"]


def test_a_viewer_sees_hooks_and_changes_none(world: World) -> None:
    hook, _ = made(visitor(world))
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    assert "Orders" in text_of(viewer.get("/events/")) and viewer.get(address(hook)).status_code == 200
    for way in ("change/", "turn/", "secret/", "remove/"):
        assert viewer.post(address(hook, way), FORM | {"on": "no"}).status_code == 403, way
    assert viewer.post("/events/new/", FORM).status_code == 403
