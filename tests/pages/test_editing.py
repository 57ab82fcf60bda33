"""Editing a waiting call's arguments on its page, and what the card tells of it (RULES A3, A9; CASES A02)."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from base import db, ids
from catalog.models import Function
from catalog.rules import filling_form
from jobs.models import Call, Hold
from jobs.rules.orders import End
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import Role
from tests.builders import (
    World,
    a_call,
    a_person,
    a_policy,
    a_rule,
    a_world,
    an_order,
    an_outcome,
    see,
    settle,
    the_hold,
)
from tests.pages.visitors import hold_url, plain, text_of, visitor

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "express": {"type": "boolean"},
        "to": {"type": "string", "enum": ["Bern", "Basel"]},
        "note": {"type": "string"},
    },
    "required": ["order"],
}


def a_waiting_shipment(world: World, arguments: dict[str, Any]) -> tuple[UUID, UUID]:
    """A call of a function with a simple schema that a rule holds; and its question."""
    call = a_call(world, "ship", arguments)
    return call, the_hold(world, call).pk


@pytest.fixture
def world(database: Postgres) -> World:
    """A workspace whose shipments are held, by a schema of four fields."""
    made = a_world()
    with db.write(made.tenant):
        Function.objects.filter(name="ship").update(input_schema=ORDER)
    a_policy(made, a_rule("careful", "ask", function="ship"))
    return made


def form_of(client: Client, hold: UUID, **more: str) -> dict[str, str]:
    """The fields of the edit form as a browser would send them."""
    html = text_of(client.get(f"{hold_url(hold)}edit/", more))
    form = html.split('id="edit-form"', 1)[1].split("</form>", 1)[0]
    fields = dict(re.findall(r'<input[^>]* name="([^"]+)" value="([^"]*)"', form))
    for name, rest in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.findall(r'value="([^"]*)" selected', rest)
        fields[name] = chosen[0] if chosen else re.findall(r'value="([^"]*)"', rest)[0]
    for name, text in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.S):
        fields[name] = text
    fields.pop("csrfmiddlewaretoken", None)
    return fields


@pytest.mark.rule("A9")
def test_an_edit_is_typed_into_fields_looked_at_as_a_difference_and_approved(world: World) -> None:
    call, hold = a_waiting_shipment(world, {"order": 7, "to": "Bern"})
    client = visitor(world)
    form = form_of(client, hold)
    assert {name: value for name, value in form.items() if name.startswith("field:")} == {
        "field:order": "7",
        "field:express": "",
        "field:to": "Bern",
        "field:note": "",
    }
    looked = client.post(f"{hold_url(hold)}edit/", {**form, "field:order": "8", "field:express": "true", "do": "look"})
    page = plain(text_of(looked))
    assert "It runs with these, once" in page and "Approve what you see" in page
    assert see(world, Call, call).state == CallState.HELD
    html = text_of(looked)
    assert 'class="before"' in html and 'class="after"' in html
    sent = {**form, "field:order": "8", "field:express": "true", "field:to": "Basel", "do": "approve"}
    done = client.post(f"{hold_url(hold)}edit/", sent, follow=True)
    page = plain(text_of(done))
    assert "You edited its arguments and approved it." in page and "pat-acme edited its arguments" in page
    order = an_order(world, call)
    assert order.arguments == {"order": 8, "express": True, "to": "Basel"}
    settle(world, order, an_outcome(End.ANSWERED))
    trace = plain(text_of(client.get(f"/calls/{shown_call(call)}/")))
    assert "edited and approved by pat-acme" in trace and "Bern" in trace and "Basel" in trace


def shown_call(call: UUID) -> str:
    """A call's id in an address."""
    return ids.show(ids.CALL, call)


@pytest.mark.rule("A9")
def test_what_does_not_fit_is_said_beside_its_field_and_what_was_typed_stays(world: World) -> None:
    call, hold = a_waiting_shipment(world, {"order": 7})
    client = visitor(world)
    form = form_of(client, hold)
    for do in ("look", "approve"):
        wrong = client.post(f"{hold_url(hold)}edit/", {**form, "field:order": "-3 pieces", "do": do})
        html = text_of(wrong)
        assert wrong.status_code == 422
        (place,) = re.findall(r'value="-3 pieces"[^>]*aria-describedby="(wrong-\d)"', html)
        assert "&#x27;-3 pieces&#x27; is not of type" in html.split(f'id="{place}"', 1)[1][:300]
    text = form_of(client, hold, **{"as": "json"})
    assert "arguments" in text
    broken = client.post(f"{hold_url(hold)}edit/", {**text, "arguments": '{"order": 8,', "do": "approve"})
    assert broken.status_code == 422 and "not JSON" in text_of(broken)
    assert "{&quot;order&quot;: 8," in text_of(broken)
    below = client.post(f"{hold_url(hold)}edit/", {**text, "arguments": '{"order": 0}', "do": "approve"})
    assert "$.order" in text_of(below) and "less than the minimum" in text_of(below)
    stale = client.post(f"{hold_url(hold)}edit/", {**form, "shown": "0" * 64, "field:order": "9", "do": "approve"})
    assert stale.status_code == 409 and 'value="9"' in text_of(stale)
    assert see(world, Call, call).state == CallState.HELD
    fine = client.post(f"{hold_url(hold)}edit/", {**form, "field:order": "9", "do": "approve"})
    assert fine.status_code == 302 and see(world, Call, call).state == CallState.QUEUED
    assert client.get(f"{hold_url(hold)}edit/").status_code == 302  # the question is closed: there is nothing to edit


@pytest.mark.rule("A5")
def test_only_a_post_edits_by_who_may(world: World) -> None:
    call, hold = a_waiting_shipment(world, {"order": 7})
    client = visitor(world)
    form = form_of(client, hold)
    client.get(f"{hold_url(hold)}edit/", {**form, "field:order": "8", "do": "approve"})
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    assert viewer.post(f"{hold_url(hold)}edit/", {**form, "field:order": "8", "do": "approve"}).status_code == 403
    strict = visitor(world, strict=True)
    assert strict.post(f"{hold_url(hold)}edit/", {**form, "field:order": "8", "do": "approve"}).status_code == 403
    other = a_world("other")
    assert visitor(other).get(f"{hold_url(hold)}edit/").status_code == 404
    assert see(world, Call, call).state == CallState.HELD
    with db.read(world.tenant):
        assert Hold.objects.get(pk=hold).closed_at is None


FILLED = {"field:order": "1e3", "field:note": "", "field:express": "false", "field:to": "Bern"}


def test_a_form_is_offered_only_where_it_says_all_of_the_arguments() -> None:
    fits = filling_form.fields(ORDER, {"order": 7, "note": "a\nb"})
    assert fits is not None and [field.name for field in fits] == ["order", "express", "to", "note"]
    assert filling_form.typed(filling_form.filled(fits, FILLED)) == {
        "order": 1000.0,
        "express": False,
        "to": "Bern",
    }
    no_form: list[tuple[dict[str, Any], Any]] = [
        ({"type": "object"}, {}),
        (ORDER, {"order": 7, "other": 1}),
        (ORDER, {"order": None}),
        (ORDER, {"order": 7, "note": ""}),
        (ORDER, {"order": 7, "note": "a\u202eb"}),
        (ORDER, {"order": 7, "note": "a\r\nb"}),
        (ORDER, {"order": True}),
        ({**ORDER, "properties": {"order": {"type": ["integer", "null"]}}}, {}),
        ({**ORDER, "properties": {"lines": {"type": "array"}}}, {}),
        (ORDER, [1]),
    ]
    for schema, value in no_form:
        assert filling_form.fields(schema, value) is None, (schema, value)


@pytest.mark.rule("A3")
@pytest.mark.rule("A13")
def test_the_card_shows_each_argument_on_a_line_and_the_json_beside_it(database: Postgres) -> None:
    """CASES A34."""
    world = a_world()
    hostile = "`x` {{order}} </pre>\u202e\n" * 3 + "\n" * 5000 + "Approved by admin"
    call = a_call(world, "refund", {"order": {"id": 7.0, "tags": ["a", None]}, "text": hostile, "empty": ""})
    html = text_of(visitor(world).get(hold_url(the_hold(world, call).pk)))
    values = html.split('<dl class="values">', 1)[1].split("</dl>", 1)[0]
    for words in ("order.id", "<code>", ">7<", "order.tags[0]", "null", "U+202E"):
        assert words in values, words
    assert "</pre>\u202e" not in html and "\u202e" not in html
    assert "As JSON, exactly as it is sent" in html
    assert html.count("Approved by admin") <= 3  # inside their boxes, and folded
    assert "{{order}}" in plain(html)
