"""The audit log as admins read it, search it and take it out (RULES A12, CASES A17)."""

import csv
import io
import json
from html import unescape
from typing import Any

import pytest

from base import db, ids
from catalog.rules.switching import Scope
from jobs.models import Hold
from tenants.models import AuditEntry, Role
from tenants.operations import audit
from tenants.rules.audit_chain import FIELDS
from tenants.rules.who import Actor
from tests.builders import a_held_call, a_person, a_switch, a_world, see
from tests.pages.visitors import answer, hold_url, plain, text_of, visitor

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("A12")]
URL = "/settings/audit/"
PAT = Actor("pat", "link, 10.0.0.7")


def noted(world: Any, verb: str = "connection.changed", object: str = "connection crm", **more: Any) -> None:
    with db.write(world.tenant):
        audit.record(more.pop("actor", PAT), verb, object, **more)


def body(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def test_who_allowed_a_call_and_all_that_is_known_of_that_stand_on_the_page_and_in_the_export() -> None:
    """CASES A17."""
    world = a_world()
    client = visitor(world)
    _, hold = a_held_call(world)
    assert answer(client, hold, answer="approve").status_code in (200, 302)
    page = text_of(client.get(URL))
    words = plain(page)
    assert "pat-acme hold.approve hold_" in words
    assert "password · from 127.0.0.1 · was shown" in words
    assert hold_url(hold) in page
    (line,) = [json.loads(one) for one in body(client.post(f"{URL}export/", {"as": "jsonl"})).splitlines()]
    row = see(world, Hold, hold)
    assert (line["actor"], line["how"], line["object"]) == (
        "pat-acme",
        "password, 127.0.0.1",
        ids.show(ids.HOLD, hold),
    )
    assert line["at"] == row.closed_at.isoformat()
    assert len(line["after"]["shown"]) == 64
    assert set(line) == {*FIELDS, "hash"}
    with db.read(world.tenant):
        last = AuditEntry.objects.latest("seq")
    assert (last.verb, last.actor, last.after) == ("audit.exported", "pat-acme", {"as": "jsonl", "up_to": 1})


def test_the_search_is_in_the_address_and_finds_by_who_what_object_words_and_time() -> None:
    world = a_world()
    client = visitor(world)
    a_switch(world, Scope.TOOL, "shop", reason="writes twice")
    noted(world, before={"url": "https://old.example"}, after={"url": "https://new.example"}, note="they moved")
    noted(world, "connection.made", "connection erp", actor=Actor("kim", "password, ::1"))

    def found(query: str) -> list[str]:
        page = text_of(client.get(f"{URL}?{query}"))
        return [part.split('"')[0] for part in page.split('id="entry-')[1:]]

    assert found("") == ["3", "2", "1"]
    assert found("who=kim") == ["3"]
    assert found("verb=connection.") == ["3", "2"]
    assert found("verb=switch.on") == ["1"]
    assert found("object=connection+crm") == ["2"]
    assert found("q=new.example") == ["2"]
    assert found("q=writes+twice") == ["1"]
    assert found("q=50%25") == []
    assert found("since=2020-01-01&until=2020-02-01") == []
    assert found("since=2020-01-01") == ["3", "2", "1"]
    assert found("since=no-day&before=99999999999999999999&until=2020-13-45") == ["3", "2", "1"]
    assert found("before=3") == ["2", "1"]
    changed = text_of(client.get(f"{URL}?object=connection+crm"))
    assert '<del><bdi class="said">https://old.example</bdi></del>' in changed
    assert '<ins><bdi class="said">https://new.example</bdi></ins>' in changed


def test_a_page_holds_fifty_entries_at_a_constant_count_of_queries(django_assert_max_num_queries: Any) -> None:
    world = a_world()
    for number in range(60):
        noted(world, object=f"tool t{number}")
    client = visitor(world)
    with django_assert_max_num_queries(25):
        page = text_of(client.get(URL))
    assert page.count('id="entry-') == 50
    assert "before=11" in page
    older = text_of(client.get(f"{URL}?before=11"))
    assert older.count('id="entry-') == 10


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUTHOR])
def test_only_admins_read_it_or_take_it_out(role: Role) -> None:
    world = a_world()
    noted(world)
    client = visitor(world, a_person(world.tenant, "kim", role))
    for response in (client.get(URL), client.post(f"{URL}export/", {"as": "csv"})):
        assert response.status_code == 403
        assert "connection.changed" not in text_of(response)
    assert URL not in text_of(client.get("/"))
    with db.read(world.tenant):
        assert not AuditEntry.objects.filter(verb="audit.exported").exists()


@pytest.mark.rule("A13")
def test_a_table_has_no_cell_that_a_spreadsheet_takes_for_a_formula_and_names_cannot_forge_the_page() -> None:
    """CASES S02, S17."""
    world = a_world()
    for begin in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =cmd|'/c calc'!A1"):
        noted(world, "tool.listed_anew", f"tool {begin}", note=begin, actor=Actor(begin, begin))
    noted(world, note="</li><h1>Approved by admin</h1>\u202e\r\n2026-11-30 admin hold.approve", object="tool x")
    client = visitor(world)
    rows = list(csv.reader(io.StringIO(body(client.post(f"{URL}export/", {"as": "csv"})))))
    assert len(rows) == 9, "one entry is one row, whatever it says"
    assert not [cell for row in rows for cell in row if cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))]
    page = text_of(client.get(URL))
    assert "<h1>Approved" not in page
    assert "Approved by admin" in unescape(page)
    assert ">U+202E</mark>" in page


def test_an_export_follows_the_search_and_only_a_post_takes_it_out() -> None:
    world = a_world()
    noted(world)
    noted(world, object="connection erp")
    client = visitor(world)
    assert client.get(f"{URL}export/").status_code == 405
    assert client.post(f"{URL}export/", {"as": "xml"}).status_code == 400
    lines = body(client.post(f"{URL}export/", {"as": "jsonl", "object": "connection erp"})).splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["connection erp"]
