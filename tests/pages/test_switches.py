"""The pages of kill switches and pauses: what they foretell, what they did, who may, and what goes on afterwards."""

from typing import Any

import pytest
from django.test import Client

from base import db, ids
from catalog.models import Agent, KillSwitch
from catalog.rules.switching import Mode, Scope
from jobs.models import Call
from jobs.operations import nodes
from jobs.rules.orders import End
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_retrying_call,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    see,
    settle,
)
from tests.pages.visitors import job_url, plain, text_of, visitor

SHOP = {"scope": "tool", "target": "shop"}
NEW = "/catalog/switches/new/"


def foretold(client: Client, **target: str) -> str:
    """The words of the page that says what a switch would do."""
    return plain(text_of(client.get(NEW, target)))


def throw(client: Client, mode: str = "kill", reason: str = "an incident", **target: str) -> Any:
    """A switch, turned on by the page's form."""
    return client.post(NEW, {**target, "mode": mode, "reason": reason}, follow=True)


def work_of_each_kind(world: World) -> None:
    """Three running calls, two of them writes, two waiting, two held, one unknown; nine jobs, one of them new."""
    for name in ("note", "look", "charge"):
        an_order(world, a_call(world, name))
    a_call(world, "note")
    a_retrying_call(world, "look")
    a_held_call(world)
    a_held_call(world)
    an_unknown_call(world)
    a_job(world)


KILLED = [
    "Stops 3 running calls.",
    "2 of them are not read-only and may have acted",
    "Ends 2 calls waiting",
    "Withdraws 2 questions",
]
FORETOLD = [
    (SHOP, [*KILLED, "Leaves 1 unknown outcome to be answered", "Lets jobs go on"]),
    ({"scope": "function", "target": "shop.note"}, ["Stops 1 running call.", "Ends 1 call waiting", "New calls are"]),
    ({"scope": "agent", "target": "clerk"}, [*KILLED, "Closes 1 unknown outcome with the jobs", "Cancels 9 jobs"]),
    ({"scope": "tenant"}, [*KILLED, "Closes 1 unknown outcome", "Cancels 9 jobs"]),
]


@pytest.mark.rule("L7")
@pytest.mark.parametrize(("target", "words"), FORETOLD, ids=["tool", "function", "agent", "tenant"])
def test_before_it_is_thrown_a_switch_says_what_it_will_do(
    database: Postgres, target: dict[str, str], words: list[str]
) -> None:
    world = a_world()
    work_of_each_kind(world)
    page = foretold(visitor(world), **target)
    assert [one for one in words if one not in page] == []
    assert "Lets 1 running call run" in page if target["scope"] == "function" else "Lets 3 running calls run" in page


@pytest.mark.rule("L7")
def test_it_is_counted_again_as_it_is_thrown_and_the_page_says_afterwards_what_it_did(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    order = an_order(world, a_call(world, "note"))
    assert "Stops 1 running call." in foretold(client, **SHOP)
    late = an_order(world, a_call(world, "note"))  # comes while the person reads
    _, _held = a_held_call(world)
    html = throw(client, reason="it books twice", **SHOP)
    page = plain(text_of(html))
    for said in (
        "Told 2 running calls to stop.",
        "Withdrew 1 question",
        "it books twice",
        "pat-acme",
        "Still stopping",
    ):
        assert said in page, said
    assert "2 calls: they have not ended yet" in page
    settle(world, order, an_outcome(End.STOPPED))
    settle(world, late, an_outcome(End.NOT_MADE))
    after = plain(text_of(client.get(html.redirect_chain[-1][0])))
    assert "3 calls ended CANCELED, 1 of them may have acted before" in after
    assert "Still stopping" not in after
    assert after.index("may have acted") < after.index("nothing made")
    job = a_job(world)
    (refused,) = a_turn(world, job, "note")
    assert see(world, Call, refused).state == CallState.REFUSED
    assert "1 new call refused" in plain(text_of(client.get(html.redirect_chain[-1][0])))


@pytest.mark.rule("A12")
def test_who_threw_it_lifted_it_and_why_are_in_the_audit_log(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    html = throw(client, reason="it books twice", **SHOP)
    page = client.post(html.redirect_chain[-1][0] + "lift/", {"note": "mended"}, follow=True)
    assert "Lifted. New calls are made again." in plain(text_of(page))
    assert "Lifted by" in text_of(page)
    with db.read(world.tenant):
        log = list(AuditEntry.objects.order_by("seq").values_list("actor", "verb", "object", "note"))
    assert log == [
        ("pat-acme", "switch.on", "tool shop", "it books twice"),
        ("pat-acme", "switch.off", "tool shop", "mended"),
    ]
    again = client.post(html.redirect_chain[-1][0] + "lift/", follow=True)
    assert "It was lifted before" in text_of(again)


@pytest.mark.rule("A12")
@pytest.mark.parametrize(
    ("role", "mode", "may"),
    [
        (Role.VIEWER, "pause", False),
        (Role.VIEWER, "kill", False),
        (Role.OPERATOR, "pause", True),
        (Role.OPERATOR, "kill", False),
        (Role.AUTHOR, "kill", False),
        (Role.ADMIN, "kill", True),
    ],
)
def test_admins_stop_operators_pause_and_viewers_read_why_they_may_not(
    database: Postgres, role: Role, mode: str, may: bool
) -> None:
    world = a_world()
    client = visitor(world, a_person(world.tenant, "robin", role))
    form = text_of(client.get(NEW, SHOP)).split(f'id="choose-{mode}"', 1)[1].split("</form>", 1)[0]
    assert ("disabled" in form) is not may
    answer = throw(client, mode=mode, **SHOP)
    with db.read(world.tenant):
        on = list(KillSwitch.objects.values_list("mode", flat=True))
    assert on == ([mode] if may else [])
    if not may:
        assert answer.status_code == 403
        made = a_switch(world, Scope.TOOL, "shop", mode=Mode(mode))
        lifting = client.post(f"/catalog/switches/{ids.show(ids.SWITCH, made)}/lift/")
        assert lifting.status_code == 403
        with db.read(world.tenant):
            assert KillSwitch.objects.filter(off_at__isnull=True).exists()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"reason": ""}, 422),
        ({"reason": "   "}, 422),
        ({"mode": "harder"}, 400),
        ({"mode": ["kill", "pause"]}, 400),
        ({"target": "shopp"}, 404),
        ({"scope": "world"}, 404),
        ({"reason": "x" * 2_001}, 409),
    ],
    ids=str,
)
def test_a_switch_without_a_reason_or_of_nothing_is_not_thrown(
    database: Postgres, given: dict[str, Any], status: int
) -> None:
    world = a_world()
    answer = visitor(world).post(NEW, {**SHOP, "mode": "kill", "reason": "an incident", **given})
    assert answer.status_code == status
    with db.read(world.tenant):
        assert not KillSwitch.objects.exists()


def test_nothing_but_a_post_throws_or_lifts_and_another_tenants_switch_is_not_there(database: Postgres) -> None:
    world, other = a_world("one"), a_world("two")
    theirs = ids.show(ids.SWITCH, a_switch(other, Scope.TENANT))
    client = visitor(world)
    client.get(NEW, {**SHOP, "mode": "kill", "reason": "an incident"})
    for verb in (client.get, client.head, client.put):
        assert verb(f"/catalog/switches/{theirs}/lift/").status_code == 405
    assert client.get(f"/catalog/switches/{theirs}/").status_code == 404
    assert client.post(f"/catalog/switches/{theirs}/lift/").status_code == 404
    assert visitor(world, strict=True).post(NEW, {**SHOP, "mode": "kill", "reason": "x"}).status_code == 403
    with db.read(world.tenant):
        assert not KillSwitch.objects.exists()


def test_a_switch_that_is_on_is_on_every_page_it_concerns_and_is_not_thrown_twice(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    throw(client, reason="it books twice", **SHOP)
    throw(client, mode="pause", reason="a look first", scope="agent", target="clerk")
    again = throw(client, reason="it books twice", **SHOP)
    assert again.status_code == 409
    assert "on already" in text_of(again)
    told = {
        "/catalog/tools/shop/": ["tool shop is stopped", "it books twice"],
        "/catalog/functions/shop.note/": ["scope=function&amp;target=shop.note"],
        "/catalog/agents/clerk/": ["agent clerk is paused", "a look first"],
        "/": ["tool shop is stopped", "agent clerk is paused"],
        "/catalog/switches/": ["2 on", "it books twice", "a look first"],
    }
    for path, words in told.items():
        html = text_of(client.get(path))
        assert [one for one in words if one not in html and one not in plain(html)] == [], path


@pytest.mark.rule("L11")
def test_what_a_pause_holds_says_so_on_its_own_page_and_goes_on_when_it_is_lifted(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    call, job = a_call(world, "note"), a_job(world)
    paused = throw(client, mode="pause", reason="a look first", scope="tenant")
    assert "Held 1 call back." in plain(text_of(paused))
    said = "Paused: the whole workspace (a look first). It starts when the pause is lifted."
    for path in (f"/calls/{ids.show(ids.CALL, call)}/", job_url(job)):
        assert said in plain(text_of(client.get(path))), path
    lifted = client.post(paused.redirect_chain[-1][0] + "lift/", follow=True)
    assert "What waits goes on within a second: 1 waiting call, 2 jobs." in plain(text_of(lifted))
    assert "Paused" not in plain(text_of(client.get(job_url(job))))


@pytest.mark.rule("L11")
def test_the_overview_shows_a_node_that_stops_with_what_it_has_left_to_finish(database: Postgres) -> None:
    world = a_world()
    an_order(world, a_call(world, "note"))
    client = visitor(world)
    assert "1 call of 32 slots" in plain(text_of(client.get("/")))
    nodes.drain(node_id=world.node)
    page = plain(text_of(client.get("/")))
    for said in ("draining", "1 call left to finish", "1 stopping"):
        assert said in page, said


def test_of_thousands_those_at_work_come_first_and_the_rest_is_found_by_name(database: Postgres) -> None:
    world = a_world()
    with db.write(world.tenant):
        clerk = Agent.objects.get(name="clerk")
        many = [
            Agent(tenant_id=world.tenant, plugin_version=clerk.plugin_version, name=f"a-{n:03}") for n in range(120)
        ]
        for one in many:
            one.definition = clerk.definition
        Agent.objects.bulk_create(many)
    a_switch(world, Scope.AGENT, "a-119", mode=Mode.PAUSE)
    an_order(world, a_call(world, "look"))
    client = visitor(world)
    page = text_of(client.get("/catalog/switches/"))
    shown = [name for name in ("clerk", "a-000", "a-097", "a-098", "a-119") if f"/catalog/agents/{name}/" in page]
    assert shown == ["clerk", "a-000", "a-097", "a-119"]
    assert "100 of 121, those at work first" in plain(page)
    narrowed = text_of(client.get("/catalog/switches/?q=A-09"))
    assert narrowed.count("/catalog/agents/a-09") == 10
    assert "those at work first" not in plain(narrowed)
    assert "No agent has that in its name." in plain(text_of(client.get("/catalog/switches/?q=zebra")))
