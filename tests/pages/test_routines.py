"""The pages of routines: what is typed is read back in words, who may change them, and what they start is told."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from base import db, ids
from jobs.models import Job, Routine
from tenants.models import AuditEntry, Role
from tests.builders import World, a_person, a_turn, a_world, see, swept
from tests.catalogs import an_agent_of
from tests.pages.visitors import hold_url, job_url, plain, text_of, visitor

FORM = {
    "name": "Sums of the night",
    "cron": "30 2 * * *",
    "zone": "Europe/Berlin",
    "missed": "once",
    "overlap": "skip",
    "agent": "keeper",
    "for": "keeper",
    "field:account": "A-77",
    "title": "",
}


@pytest.fixture
def world(database: object) -> World:
    """An agent that takes an account, beside the clerk, who takes nothing."""
    world = a_world()
    an_agent_of(world, "keeper", "shop.*", input={"account": "A-12"})
    return world


def made(client: Client, **more: str) -> UUID:
    """A routine, as its form makes it."""
    answer = client.post("/routines/new/", FORM | more)
    assert answer.status_code == 302, plain(text_of(answer))
    return ids.parse(ids.ROUTINE, answer["Location"].split("/")[2])


def address(routine: UUID, more: str = "") -> str:
    return f"/routines/{ids.show(ids.ROUTINE, routine)}/{more}"


@pytest.mark.rule("A12")
def test_a_routine_is_made_changed_paused_and_removed_and_each_is_told_in_the_audit_log(world: World) -> None:
    client = visitor(world)
    assert "No routine yet" in text_of(client.get("/routines/"))
    routine = made(client)
    row = see(world, Routine, routine)
    assert (row.input, row.person_id, row.zone) == ({"account": "A-77"}, world.person, "Europe/Berlin")
    words = plain(text_of(client.get("/routines/")))
    assert "Sums of the night" in words and "At 02:30" in words and "Europe/Berlin" in words
    page = plain(text_of(client.get(address(routine))))
    assert re.search(r"\d\d:30 CES?T", page) and "A-77" in page and "It was not due yet" in page
    form = text_of(client.get(address(routine, "change/")))
    assert 'value="A-77"' in form and 'value="30 2 * * *"' in form
    assert client.post(address(routine, "change/"), FORM | {"cron": "0 5 * * MON"}).status_code == 302
    assert "At 05:00 on Monday" in plain(text_of(client.get(address(routine))))
    assert client.post(address(routine, "turn/"), {"on": "no"}).status_code == 302
    assert "paused" in plain(text_of(client.get(address(routine))))
    assert client.post(address(routine, "turn/"), {"on": "perhaps"}).status_code == 400
    assert client.post(address(routine, "remove/")).status_code == 302
    assert [client.post(address(routine, way)).status_code for way in ("remove/", "run/")] == [404, 404]
    assert client.get(address(routine, "change/")).status_code == 404
    with db.read(world.tenant):
        told = AuditEntry.objects.filter(object="routine Sums of the night").order_by("seq")
        assert [one.verb.partition(".")[2] for one in told] == ["made", "changed", "paused", "removed"]
        assert told[1].before["cron"] == "30 2 * * *" and told[1].after["cron"] == "0 5 * * MON"


def test_what_is_wrong_is_said_beside_its_field_and_nothing_that_was_typed_is_lost(world: World) -> None:
    client = visitor(world)
    made(client)
    for field, value, said in (
        ("cron", "0 0 30 2 *", "Its day-of-month cannot be read"),
        ("zone", "Berlin", "is not the name of a time zone"),
        ("name", FORM["name"], "There is a routine named Sums of the night already"),
        ("missed", "all", "let its jobs run beside each other"),
    ):
        answer = client.post("/routines/new/", FORM | {"name": "another", field: value})
        html = text_of(answer)
        assert answer.status_code == 422 and said in plain(html) and 'value="A-77"' in html, field
    unknown = client.post("/routines/new/", FORM | {"name": "another", "agent": "nobody", "for": "nobody"})
    assert unknown.status_code == 422 and "no agent named" in plain(text_of(unknown))
    with db.read(world.tenant):
        assert Routine.objects.count() == 1


def test_a_schedule_is_told_in_words_while_it_is_typed_and_changing_the_agent_shows_what_that_takes(
    world: World,
) -> None:
    client = visitor(world)
    headers = {"HX-Request": "true", "HX-Target": "when"}
    said = text_of(client.post("/routines/new/?do=when", FORM | {"cron": "*/15 9-17 * * 1-5"}, headers=headers))
    assert "Every 15th minute" in said or "15" in plain(said)
    assert said.count("Next:") == 1 and "<html" not in said
    wrong = text_of(client.post("/routines/new/?do=when", FORM | {"cron": "now"}, headers=headers))
    assert "A schedule has five parts" in plain(wrong)
    part = client.post(
        "/routines/new/?do=show", FORM | {"agent": "clerk"}, headers=headers | {"HX-Target": "job-input"}
    )
    assert "takes no input" in plain(text_of(part))


@pytest.mark.rule("G1")
def test_what_a_routine_started_says_so_on_the_list_the_trace_and_the_card_and_its_history_leads_there(
    world: World, move_clock: Callable[[timedelta], None]
) -> None:
    client = visitor(world)
    routine = made(client, agent="clerk", cron="* * * * *", **{"for": "clerk"})
    move_clock(timedelta(minutes=1))
    swept(lose_nodes=False)
    with db.read(world.tenant):
        job = Job.objects.get(routine=routine)
    a_turn(world, job.pk, "refund")
    with db.read(world.tenant):
        from jobs.models import Hold

        hold = Hold.objects.get().pk
    for path in ("/jobs/", job_url(job.pk), hold_url(hold)):
        assert "routine Sums of the night, for pat-acme" in plain(text_of(client.get(path))), path
    assert address(routine) in text_of(client.get(job_url(job.pk)))
    page = text_of(client.get(address(routine)))
    assert job_url(job.pk) in page and "waiting" in plain(page)
    assert client.get(address(routine, f"?before={ids.show(ids.RUN, ids.new())}")).status_code == 200


def test_run_now_leads_to_the_job_and_under_a_switch_says_why_nothing_was_started(world: World) -> None:
    from catalog.models import Scope
    from tests.builders import a_switch

    client = visitor(world)
    routine = made(client)
    first, again = (client.post(address(routine, "run/"), {"once": "form 1"}) for _ in "ab")
    assert first.status_code == again.status_code == 302 and first["Location"] == again["Location"]
    assert "pat-acme, running routine Sums of the night" in plain(text_of(client.get(first["Location"])))
    a_switch(world, Scope.TENANT)
    refused = client.post(address(routine, "run/"), {"once": "form 2"})
    assert refused.status_code == 409 and "kill switch" in plain(text_of(refused))


def test_a_viewer_sees_routines_and_changes_none_and_is_told_why(world: World) -> None:
    routine = made(visitor(world))
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    page = text_of(viewer.get(address(routine)))
    assert "an operator can do this" in page and f'href="{address(routine, "change/")}"' not in page
    ways: dict[str, Any] = {"change/": FORM, "run/": {}, "turn/": {"on": "no"}, "remove/": {}}
    for way, form in ways.items():
        assert viewer.post(address(routine, way), form).status_code == 403, way
    assert viewer.post("/routines/new/", FORM).status_code == 403
