""" "Always allow" from a card: its exact scope and end are shown, then saved, and it can be revoked (RULES A11)."""

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from approvals.operations import deciding_rules
from base import db
from catalog.models import PolicyVersion
from jobs.models import Call
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tests.builders import World, a_call, a_person, a_policy, a_rule, a_world, see, the_hold
from tests.operations.test_deciding import ADMIN
from tests.pages.visitors import hold_url, plain, text_of, visitor


def always_url(hold: UUID) -> str:
    """The address of the proposal."""
    return f"{hold_url(hold)}always/"


def form_of(html: str) -> dict[str, Any]:
    """The hidden fields of what would be saved."""
    form = html.split('id="always-form"', 1)[1].split("</form>", 1)[0]
    fields: dict[str, Any] = {"pin": re.findall(r'name="pin" value="([^"]*)"', form)}
    fields |= dict(re.findall(r'name="(agent|days|until|digest)" value="([^"]*)"', form))
    return fields


def saved(client: Client, hold: UUID, **choice: Any) -> Any:
    """The rule of this choice, saved as it is shown."""
    return client.post(always_url(hold), form_of(text_of(client.get(always_url(hold), choice))), follow=True)


def state_of_a_new(world: World, arguments: dict[str, Any], function: str = "refund") -> str:
    """Where a new call of this function begins."""
    return see(world, Call, a_call(world, function, arguments)).state


@pytest.mark.rule("A11")
@pytest.mark.rule("A12")
def test_it_shows_exactly_what_it_allows_until_when_and_then_allows_just_that(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES A29."""
    world = a_world()
    call = a_call(world, "refund", {"amount": 5, "to": "A-1"})
    hold = the_hold(world, call).pk
    client = visitor(world)
    assert f'href="{always_url(hold)}' in text_of(client.get(hold_url(hold)))
    choice = {"agent": "this", "days": "7", "pin": "/amount"}
    html = text_of(client.get(always_url(hold), choice))
    page = plain(html)
    for words in ("kind destructive", "tool shop", "function refund", "agent clerk", "/amount = 5", "It fits 1 of the"):
        assert words in page, words
    assert form_of(html)["until"][:16].replace("T", " ")[:10] in html
    assert state_of_a_new(world, {"amount": 5}) == CallState.HELD  # looking saves nothing
    done = plain(text_of(saved(client, hold, **choice)))
    assert "Version 1 of the policy allows calls like this. This call still waits for your answer." in done
    assert see(world, Call, call).state == CallState.HELD
    assert state_of_a_new(world, {"amount": 5, "to": "B-2"}) == CallState.QUEUED
    assert state_of_a_new(world, {"amount": 6}) == CallState.HELD
    assert state_of_a_new(world, {"amount": 5}, "export") == CallState.HELD
    with db.read(world.tenant):
        (rule,) = PolicyVersion.objects.get(number=1).rules
        entry = AuditEntry.objects.get(verb="policy.saved")
    assert rule["until"] and entry.note.startswith("Always allowed from the question hold_")
    move_clock(timedelta(days=7))
    assert state_of_a_new(world, {"amount": 5}) == CallState.HELD  # by the database's clock it is over


@pytest.mark.rule("A11")
def test_it_is_revoked_in_the_policy_and_a_deny_beats_it(database: Postgres) -> None:
    world = a_world()
    hold = the_hold(world, a_call(world, "refund", {"amount": 5})).pk
    client = visitor(world)
    saved(client, hold, agent="every", days="90")
    assert state_of_a_new(world, {}) == CallState.QUEUED
    with db.read(world.tenant):
        rules = PolicyVersion.objects.latest("number").rules
    a_policy(world, *rules, a_rule("none", "refuse", function="refund"))
    assert state_of_a_new(world, {}) == CallState.REFUSED
    a_policy(world, *rules)
    draft = re.findall(r'name="draft" value="([^"]*)"', text_of(client.get("/catalog/policy/edit/")))[0]
    step = {"draft": unescape(draft), "seen": "3", "note": ""}
    without = text_of(client.post("/catalog/policy/edit/", {**step, "do": "remove:0"}))
    draft = unescape(re.findall(r'name="draft" value="([^"]*)"', without)[0])
    client.post("/catalog/policy/edit/", {"draft": draft, "seen": "3", "note": "no more", "do": "save"})
    assert state_of_a_new(world, {}) == CallState.HELD


@pytest.mark.rule("A11")
def test_it_keeps_every_condition_of_the_rule_that_asked_and_is_narrower_than_it(database: Postgres) -> None:
    world = a_world()
    big = {"path": "/amount", "is": "at_least", "value": 100}
    a_policy(world, a_rule("big", "ask", function="*", agent="clerk", arguments=[big]))
    hold = the_hold(world, a_call(world, "note", {"amount": 500})).pk
    client = visitor(world)
    page = plain(text_of(client.get(always_url(hold), {"agent": "every", "days": "1"})))
    assert "/amount ≥ 100" in page and "agent clerk" in page
    saved(client, hold, agent="every", days="1")
    assert state_of_a_new(world, {"amount": 700}, "note") == CallState.QUEUED
    assert state_of_a_new(world, {"amount": 700}, "charge") == CallState.HELD
    with db.read(world.tenant):
        assert len(PolicyVersion.objects.latest("number").rules) == 2


@pytest.mark.rule("A11")
def test_what_would_change_nothing_or_go_round_the_settings_is_not_offered_and_not_saved(database: Postgres) -> None:
    world = a_world()
    a_policy(world, a_rule("often", "ask", function="refund", repeated=2), a_rule("all", "ask", function="refund"))
    call = a_call(world, "refund", {"amount": 5})
    hold = the_hold(world, call).pk
    client = visitor(world)
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={"destructive": 2}, no_self=False, by=ADMIN)
    two = client.get(always_url(hold))
    assert "2 people must approve a call that is destructive here" in plain(text_of(two))
    refused = client.post(always_url(hold), form_of(text_of(two)))
    assert refused.status_code == 422
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={}, no_self=True, by=ADMIN)
    assert client.get(always_url(hold)).status_code == 403  # the world's person started it
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={}, no_self=False, by=ADMIN)
    form = form_of(text_of(client.get(always_url(hold), {"agent": "this", "days": "7"})))
    assert client.post(always_url(hold), {**form, "days": "90"}).status_code == 302  # the end is what was shown
    with db.read(world.tenant):
        before = PolicyVersion.objects.count()
    for change in ({"agent": "every"}, {"until": "2099-01-01T00:00:00+00:00"}, {"digest": "0" * 64}, {"until": "x"}):
        assert client.post(always_url(hold), {**form, **change}).status_code == 409, change
    assert client.post(always_url(hold), form).status_code == 409  # another version is in force by now
    operator = visitor(world, a_person(world.tenant, "olga", Role.OPERATOR))
    assert operator.get(always_url(hold)).status_code == 403
    assert "Always allow" not in text_of(operator.get(hold_url(hold)))
    with db.read(world.tenant):
        assert PolicyVersion.objects.count() == before
    assert see(world, Call, call).state == CallState.HELD
