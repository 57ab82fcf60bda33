"""Where notices go, on a page: made, changed, tried, turned off and removed by admins; seen by everybody."""

import re
from typing import Any

import pytest

from approvals.models import Channel, Delivery, Sending
from approvals.operations import notices
from base import db, ids
from tenants.models import AuditEntry, Role, Secret
from tests.builders import World, a_held_call, a_person, a_world
from tests.pages.visitors import plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
URL = "/settings/notices/"
HOOK = {"way": "webhook", "name": "on-call", "url": "https://hooks.example/T0/B1/key", "remind": "60"}


def made(client: Any, **more: str) -> tuple[str, str]:
    """(the page that answers, the channel's address)."""
    response = client.post(f"{URL}new/", {**HOOK, **more})
    assert response.status_code in (200, 302), plain(text_of(response))
    return text_of(response), response.headers.get("location", "")


def the_channel(world: World) -> Channel:
    with db.read(world.tenant):
        return Channel.objects.get()


def address_of(world: World) -> str:
    return f"{URL}{ids.show(ids.CHANNEL, the_channel(world).pk)}/"


def verbs(world: World) -> list[str]:
    with db.read(world.tenant):
        return list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))


@pytest.mark.rule("A12")
def test_a_webhook_is_added_with_a_secret_that_is_shown_once_and_each_change_of_it_is_audited() -> None:
    world = a_world()
    client = visitor(world)
    page, _ = made(client)
    (secret,) = re.findall(r'shown this once:</b> <code class="anywhere">([\w-]{40,})</code>', page)
    at = address_of(world)
    for shown in (client.get(at), client.get(URL)):
        assert secret not in text_of(shown)
    page, _ = text_of(client.post(f"{at}secret/")), None
    assert "shown this once" in page
    assert secret not in page
    client.post(at, {**HOOK, "name": "night", "slack": "on"})
    client.post(f"{at}test/")
    client.post(f"{at}turn/", {"on": "no"})
    assert client.post(f"{at}test/").status_code == 409
    client.post(f"{at}turn/", {"on": "yes"})
    client.post(f"{at}remove/")
    assert client.get(at).status_code == 404
    assert verbs(world) == [
        "channel.made",
        "channel.secret",
        "channel.changed",
        "channel.tested",
        "channel.off",
        "channel.on",
        "channel.removed",
    ]
    with db.read(world.tenant):
        assert not Secret.objects.exists()
        log = [str(entry) for entry in AuditEntry.objects.values_list("before", "after", "note")]
    assert not [entry for entry in log if secret in entry or "T0/B1" in entry], "an address may be a credential"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "a name of 1 to 64 characters"),
        ({"url": "http://127.0.0.1:9/x", "allowed": "everything"}, "is not host:port"),
        ({"url": "javascript:alert(1)"}, "begins with https:// or http://"),
        ({"remind": "soon"}, "whole minutes"),
        ({"after": "99999"}, "whole minutes"),
        ({"way": "email", "to": "nobody"}, "is not an email address"),
        ({"way": "email", "to": ""}, "1 to 20 addresses"),
        ({"way": "email", "to": "a@b.example\r\nBcc: c@d.example"}, "is not an email address"),
    ],
)
def test_what_cannot_be_a_channel_is_said_beside_what_was_typed(fields: dict[str, str], said: str) -> None:
    world = a_world()
    response = visitor(world).post(f"{URL}new/", {**HOOK, **fields})
    assert response.status_code == 422
    assert said in plain(text_of(response))
    with db.read(world.tenant):
        assert not Channel.objects.exists()


def test_two_channels_of_one_name_are_none() -> None:
    world = a_world()
    client = visitor(world)
    made(client)
    again = client.post(f"{URL}new/", HOOK)
    assert (again.status_code, "there is a channel on-call already" in plain(text_of(again))) == (422, True)


def test_the_log_says_what_became_of_each_notice_and_one_that_was_sent_goes_out_again() -> None:
    world = a_world()
    client = visitor(world)
    made(client, allowed="hooks.example:443")
    _, hold = a_held_call(world)
    a_held_call(world)
    assert notices.note_due() == 2
    page = text_of(client.get(URL))
    assert f"/approvals/{ids.show(ids.HOLD, hold)}/" in page
    assert "and 1 more" in plain(page)
    with db.write(world.tenant) as now:
        row = Delivery.objects.get(standing=Sending.DUE)
        row.standing, row.due_at, row.ended_at, row.tries, row.trouble = Sending.FAILED, None, now, 9, "<b>no</b>\u202e"
        row.save()
    page = text_of(client.get(f"{URL}?state=failed"))
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "U+202E" in page
    assert "Nothing was sent that fits" in plain(text_of(client.get(f"{URL}?state=sent")))
    client.post(f"{URL}sent/{ids.show(ids.NOTICE, row.pk)}/again/")
    with db.read(world.tenant):
        assert Delivery.objects.get(pk=row.pk).standing == Sending.DUE
    assert verbs(world)[-1] == "channel.sent_again"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUTHOR])
def test_who_is_no_admin_sees_that_there_are_channels_and_not_where_they_go(role: Role) -> None:
    world = a_world()
    made(visitor(world))
    client = visitor(world, a_person(world.tenant, "kim", role))
    page = text_of(client.get(URL))
    assert "on-call" in page
    assert "hooks.example" not in page
    assert "Show notices on this computer" in page
    at = address_of(world)
    for address in (f"{URL}new/", at):
        assert client.get(address).status_code == 403
        assert client.post(address, HOOK).status_code == 403
    for action in ("test/", "secret/", "turn/", "remove/"):
        assert client.post(at + action, {"on": "no"}).status_code == 403
        assert client.get(at + action).status_code == 405
    assert verbs(world) == ["channel.made"]


def test_another_workspaces_channel_and_notice_are_as_unknown_as_none() -> None:
    ours, theirs = a_world(), a_world("other")
    made(visitor(theirs))
    client = visitor(ours)
    at = address_of(theirs)
    none = f"{URL}{ids.show(ids.CHANNEL, ids.new())}/"
    for address in (at, none, f"{URL}nonsense/"):
        assert client.get(address).status_code == 404
    assert "on-call" not in text_of(client.get(URL))
