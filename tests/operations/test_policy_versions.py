"""Versions of the policy: saved by a person with a reason, never changed, and never one over another unseen."""

from typing import Any

import pytest
from django.db import ProgrammingError

from base import db
from catalog.models import PolicyVersion
from catalog.operations import policies
from catalog.operations.policies import BadPolicy, PolicyMoved
from jobs.models import Call
from jobs.operations import verdicts, work
from jobs.rules.states import CallState
from tenants.models import AuditEntry
from tenants.operations.audit import first_broken
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_call, a_policy, a_rule, a_world, see
from tests.races import Pause, Side

pytestmark = pytest.mark.usefixtures("database")


def by(world: World) -> Actor:
    return Actor("pat", "password, 127.0.0.1", world.person)


def save(world: World, *rules: Any, seen: int, note: str = "an incident", **more: Any) -> int:
    return policies.save(tenant=world.tenant, rules=list(rules), seen=seen, note=note, by=by(world), **more)


def versions(world: World) -> list[tuple[int, list[str], str]]:
    with db.read(world.tenant):
        rows = PolicyVersion.objects.order_by("number")
        return [(row.number, [rule["id"] for rule in row.rules], row.note) for row in rows]


@pytest.mark.rule("A2")
@pytest.mark.rule("A12")
def test_a_version_is_in_force_from_its_commit_and_stands_in_the_audit_log_with_what_it_changed() -> None:
    world = a_world()
    assert see(world, Call, a_call(world, "note")).state == CallState.QUEUED
    assert save(world, a_rule("a", "ask", function="note"), a_rule("b", "allow"), seen=0) == 1
    assert see(world, Call, a_call(world, "note")).state == CallState.HELD
    assert save(world, a_rule("a", "refuse", function="note"), a_rule("b", "allow"), seen=1, note="worse") == 2
    row = see(world, Call, a_call(world, "note"))
    assert (row.state, row.policy_number) == (CallState.REFUSED, 2)
    assert save(world, a_rule("a", "ask", function="note"), seen=2, note="calm", restores=1) == 3
    with db.read(world.tenant):
        log = list(AuditEntry.objects.order_by("seq").values_list("verb", "object", "before", "after", "note"))
        newest = PolicyVersion.objects.get(number=3)
    assert (newest.restores, newest.made_by_id, newest.note) == (1, world.person, "calm")
    assert [(verb, what, note) for verb, what, _, _, note in log] == [
        ("policy.saved", "policy 1", "an incident"),
        ("policy.saved", "policy 2", "worse"),
        ("policy.restored", "policy 3", "calm"),
    ]
    assert log[1][2] == {"a": a_rule("a", "ask", function="note")}
    assert log[1][3] == {"a": a_rule("a", "refuse", function="note")}
    assert log[2][3]["b"] is None
    assert first_broken(world.tenant) is None


@pytest.mark.rule("A2")
def test_what_cannot_be_read_or_says_nothing_new_or_not_why_is_not_saved() -> None:
    world = a_world()
    a_policy(world, a_rule("a", "ask"))
    for rules, note, why in (
        ([a_rule("a", "permit")], "x", "rule 1 (a): effect is"),
        ([a_rule("a", "ask"), a_rule("a", "allow")], "x", "another rule before it has this id"),
        ([a_rule("a", "ask")], "x", "nothing is different"),
        ([a_rule("b", "ask")], " ", "say why"),
        ([a_rule("b", "ask")], "x" * 2001, "up to 2,000"),
        ([{"id": "b"}] * 501, "x", "more than 500 rules"),
    ):
        with pytest.raises(BadPolicy) as refused:
            save(world, *rules, seen=1, note=note)
        assert why in str(refused.value), why
    with pytest.raises(BadPolicy, match="signed-in person"):
        policies.save(tenant=world.tenant, rules=[], seen=1, note="x", by=SYSTEM)
    assert len(versions(world)) == 1


def test_a_version_is_never_edited_whatever_code_tries() -> None:
    world = a_world()
    a_policy(world, a_rule("a", "ask"))
    for change in (
        lambda: PolicyVersion.objects.update(rules=[]),
        lambda: PolicyVersion.objects.all().delete(),
    ):
        with pytest.raises(ProgrammingError, match="permission denied"), db.write(world.tenant):
            change()
    assert versions(world) == [(1, ["a"], "")]


def test_of_two_editors_at_once_the_second_is_told_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    save(world, a_rule("a", "ask"), seen=0)
    checked = Pause(monkeypatch, policies, "oddities", after=True, holds=2)  # both have begun from version 1
    sides = [
        Side(lambda name=name: save(world, a_rule("a", "ask"), a_rule(name, "ask"), seen=1, note=name)).start()
        for name in ("mine", "theirs")
    ]
    checked.reached(2)
    checked.go()
    ends = []
    for side in sides:
        try:
            ends.append(side.join())
        except PolicyMoved as told:
            ends.append(told.newest)
            assert "nothing was saved" in str(told)
    assert ends == [2, 2]
    saved = versions(world)
    assert len(saved) == 2
    assert saved[1][2] in ("mine", "theirs")


@pytest.mark.rule("A2")
def test_no_claim_begins_by_the_old_version_once_a_new_one_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    call = a_call(world, "note")
    judged = Pause(monkeypatch, verdicts, "rule_on", after=True)
    claim = Side(lambda: work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=world.tenant))
    claim.start()
    judged.reached()  # judged by the old version, and not committed
    saving = Side(lambda: save(world, a_rule("no", "refuse"), seen=0)).start()
    assert not saving.ended.wait(0.5)  # it waits at the gate for the claim
    judged.go()
    assert claim.join() is not None
    assert saving.join() == 1
    assert see(world, Call, a_call(world, "note")).state == CallState.REFUSED
