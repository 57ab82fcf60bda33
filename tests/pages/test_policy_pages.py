"""The pages of the policy: in force, the editor, versions, who waits; and trying it, which writes nothing."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from django.test import Client

from base import db, ids
from catalog.models import PolicyVersion, Scope
from catalog.operations import policies
from catalog.queries.function_index import holding
from jobs.models import Call, Event
from jobs.rules.orders import End
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tenants.rules.who import Actor
from tests.builders import (
    DESTRUCTIVE,
    World,
    a_call,
    a_function,
    a_held_call,
    a_job,
    a_person,
    a_policy,
    a_rule,
    a_switch,
    a_tool,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    made,
)
from tests.pages.visitors import text_of, visitor

EDIT, WAITING, SIMULATE, REPLAY = (f"/catalog/policy/{page}/" for page in ("edit", "waiting", "simulate", "replay"))
BIG = a_rule(
    "big", "ask", tool="shop", function="charge", arguments=[{"path": "/amount", "is": "more_than", "value": 100}]
)
NO_EXPORTS = a_rule("no-exports", "refuse", function="export")

pytestmark = pytest.mark.usefixtures("database")


def plain(response: Any) -> str:
    """The page's words."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text_of(response))))


def field(response: Any, name: str) -> str:
    """The value of a hidden field of the form."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text_of(response))
    assert found is not None, name
    return unescape(found[1])


def step(client: Client, shown: Any, do: str, **fields: Any) -> Any:
    """Press a button of the editor as it is shown."""
    return client.post(EDIT, {"draft": field(shown, "draft"), "seen": field(shown, "seen"), "do": do, **fields})


def rules_of(shown: Any) -> list[dict[str, Any]]:
    """The rules of the draft."""
    found: list[dict[str, Any]] = json.loads(field(shown, "draft"))
    return found


def save(world: World, *rules: Any, seen: int = 0, note: str = "a test") -> int:
    """A version, saved by the world's person."""
    by = Actor("pat", "password, 127.0.0.1", world.person)
    return policies.save(tenant=world.tenant, rules=list(rules), seen=seen, note=note, by=by)


def newest(world: World) -> tuple[int, list[Any], str]:
    """The version in force."""
    with db.read(world.tenant):
        row = PolicyVersion.objects.order_by("-number")[0]
        return row.number, row.rules, row.note


@pytest.mark.rule("A2")
def test_a_policy_is_written_tried_and_saved_in_the_editor_rule_by_rule() -> None:
    world = a_world()
    client = visitor(world)
    assert "No rule yet" in plain(client.get("/catalog/policy/"))
    shown = step(client, client.get(EDIT), "new")
    shown = step(
        client,
        shown,
        "put",
        title="Big charges ask",
        effect="ask",
        tool="shop",
        function="charge",
        kind=["write", "destructive"],
        path=["/amount", ""],
        **{"is": ["more_than", "equals"]},
        value=["100", ""],
    )
    rule = {
        **{"id": "big-charges-ask", "title": "Big charges ask", "effect": "ask", "tool": "shop", "function": "charge"},
        **{"kind": ["write", "destructive"]},
        "arguments": [{"path": "/amount", "is": "more_than", "value": 100}],
    }
    assert rules_of(shown) == [rule]
    shown = step(
        client, step(client, shown, "new:rate"), "put", effect="wait", id="slow", rate_calls="3", rate_seconds="60"
    )
    shown = step(client, step(client, shown, "new:loop"), "put", effect="ask", id="loops", repeated="5")
    assert [one["id"] for one in rules_of(step(client, shown, "up:2"))] == ["big-charges-ask", "loops", "slow"]
    assert [one["id"] for one in rules_of(step(client, shown, "down:0"))] == ["slow", "big-charges-ask", "loops"]
    assert [one["id"] for one in rules_of(step(client, shown, "remove:1"))] == ["big-charges-ask", "loops"]
    assert 'value="big-charges-ask"' in text_of(step(client, shown, "edit:0"))
    told = plain(shown)
    assert "new big-charges-ask" in told
    assert "/amount > 100" in told
    assert "A call that leaves out /amount is not held by it" in told
    with db.read(world.tenant):
        assert not PolicyVersion.objects.exists()  # a draft is in the form alone
    refused = step(client, shown, "save", note=" ")
    assert (refused.status_code, "say why" in plain(refused), rules_of(refused)) == (422, True, rules_of(shown))
    saved = step(client, shown, "save", note="Big charges went wrong")
    assert (saved.status_code, saved["Location"]) == (302, "/catalog/policy/")
    number, rules, note = newest(world)
    assert (number, [one["id"] for one in rules], note) == (
        1,
        ["big-charges-ask", "slow", "loops"],
        "Big charges went wrong",
    )
    with db.read(world.tenant):
        entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor, entry.after["big-charges-ask"]) == ("policy.saved", "pat-acme", rule)
    page = plain(client.get("/catalog/policy/"))
    assert "Version 1 is in force" in page
    assert "Big charges went wrong" in page


def test_what_is_wrong_is_said_and_what_was_typed_stays() -> None:
    world = a_world()
    client = visitor(world)
    save(world, a_rule("a", "ask"))
    begun = client.get(EDIT)
    odd = step(client, begun, "put", id="r", effect="wait")
    assert (odd.status_code, rules_of(odd)) == (422, [a_rule("a", "ask")])
    assert "a rule that waits has a rate" in plain(odd)
    assert 'value="r"' in text_of(odd)
    twice = step(client, begun, "put", id="a", effect="ask")
    assert "another rule before it has this id" in plain(twice)
    text = step(client, begun, "text", text='[{"id": "x", "id": "y"}]')
    assert (text.status_code, "the key is there twice" in plain(text)) == (422, True)
    assert '{"id": "x", "id": "y"}' in unescape(text_of(text))
    taken = step(client, begun, "text", text='[{"id": "x", "effect": "perhaps"}]')
    assert "It cannot be read, so it asks: effect is one of allow, ask, refuse, wait" in plain(taken)
    unsaved = step(client, taken, "save", note="x")
    assert (unsaved.status_code, "rule 1 (x): effect is one of" in plain(unsaved)) == (422, True)
    for broken in ({"draft": "nonsense", "seen": "1", "do": "save"}, {"draft": "[]", "seen": "1", "do": "blow up"}):
        assert client.post(EDIT, broken).status_code == 400
    assert newest(world)[0] == 1


def test_of_two_editors_the_second_is_told_who_and_saves_both_changes() -> None:
    world = a_world()
    save(world, a_rule("a", "ask"), a_rule("b", "ask"))
    mine, theirs = visitor(world), visitor(world, a_person(world.tenant, "ann"))
    draft = step(mine, mine.get(EDIT), "text", text=json.dumps([a_rule("a", "refuse"), a_rule("b", "ask")]))
    other = step(theirs, theirs.get(EDIT), "text", text=json.dumps([a_rule("a", "ask"), a_rule("b", "allow")]))
    assert step(theirs, other, "save", note="b is fine").status_code == 302
    told = step(mine, draft, "save", note="a is not")
    assert told.status_code == 409
    words = plain(told)
    assert "ann saved version 2 while you were editing" in words
    assert "b is fine" in words
    assert "You changed different rules" in words
    assert rules_of(told) == [a_rule("a", "refuse"), a_rule("b", "allow")]
    assert field(told, "seen") == "2"
    assert "a is not" in text_of(told)
    assert newest(world)[0] == 2
    assert step(mine, told, "save", note="a is not").status_code == 302
    assert newest(world)[1] == [a_rule("a", "refuse"), a_rule("b", "allow")]
    draft = step(mine, mine.get(EDIT), "text", text=json.dumps([a_rule("a", "allow"), a_rule("b", "allow")]))
    save(world, a_rule("a", "ask"), a_rule("b", "allow"), seen=3)
    assert "You both changed a: yours is in the draft" in plain(step(mine, draft, "save", note="no"))


def test_an_old_version_is_compared_and_restored_as_a_new_one() -> None:
    world = a_world()
    client = visitor(world)
    save(world, a_rule("a", "ask", tool="shop"), note="first")
    save(world, a_rule("a", "refuse", tool="shop"), a_rule("b", "ask"), seen=1, note="second")
    assert "second" in plain(client.get("/catalog/policy/versions/"))
    page = plain(client.get("/catalog/policy/versions/2/"))
    assert "changed a" in page and "new b" in page
    assert "gone b" in plain(client.get("/catalog/policy/versions/1/?beside=2"))
    assert client.get("/catalog/policy/versions/3/").status_code == 404
    restore = "/catalog/policy/versions/1/restore/"
    late = client.post(restore, {"seen": "1", "note": "back"})
    assert (late.status_code, "Version 2 was saved since you looked" in plain(late)) == (409, True)
    assert client.get(restore).status_code == 405
    assert client.post(restore, {"seen": "2", "note": ""}).status_code == 422
    assert client.post(restore, {"seen": "2", "note": "back"}).status_code == 302
    assert newest(world) == (3, [a_rule("a", "ask", tool="shop")], "back")
    assert "restoring version 1" in plain(client.get("/catalog/policy/"))


@pytest.mark.rule("A2")
def test_only_admins_change_the_policy_and_everybody_reads_why_not() -> None:
    world = a_world()
    save(world, a_rule("a", "ask"))
    save(world, a_rule("b", "ask"), seen=1)
    fields = {"draft": "[]", "seen": "2", "note": "x", "do": "save"}
    for role in (Role.VIEWER, Role.OPERATOR, Role.AUTHOR):
        other = visitor(world, a_person(world.tenant, f"a-{role}", role))
        words = plain(other.get("/catalog/policy/"))
        assert f"Admins change the policy; your role here is {role}." in words
        assert "Admins change" in plain(other.get("/catalog/policy/versions/1/"))
        assert [other.get(path).status_code for path in (WAITING, SIMULATE, REPLAY)] == [200, 200, 200]
        assert other.get(EDIT).status_code == 403
        assert other.post(EDIT, fields).status_code == 403
        assert other.post("/catalog/policy/versions/1/restore/", {"seen": "2", "note": "x"}).status_code == 403
    strict = visitor(world, strict=True)
    assert strict.post(EDIT, fields).status_code == 403
    assert Client().get("/catalog/policy/").status_code == 302
    stranger = a_world("stranger")
    assert "No rule yet" in plain(visitor(stranger).get("/catalog/policy/"))
    assert visitor(stranger).get("/catalog/policy/versions/1/").status_code == 404
    assert newest(world)[0] == 2


@pytest.mark.rule("A2")
def test_a_rule_that_cannot_be_read_is_named_with_the_reason_where_it_came_by_sql() -> None:
    world = a_world()
    a_policy(world, a_rule("fine", "ask", tool="shop"), a_rule("odd", "perhaps", tool="shop", function="look"))
    page = plain(visitor(world).get("/catalog/policy/"))
    assert "1 rule cannot be read" in page
    assert "It cannot be read, so it asks: effect is one of allow, ask, refuse, wait" in page
    waiting = plain(visitor(world).get(f"{WAITING}?q=look"))
    assert "Mend the rule: effect is one of" in waiting


def test_coverage_names_functions_that_no_rule_names_and_rules_that_are_about_nothing() -> None:
    world = a_world()
    a_policy(world, BIG, a_rule("gone", "ask", tool="depot"), a_rule("loops", "ask", repeated=5))
    page = plain(visitor(world).get("/catalog/policy/"))
    assert "No rule names these5 of 6" in page
    assert "It is about nothing now: there is no tool depot" in page


@pytest.mark.rule("C4")
@pytest.mark.rule("A1")
def test_who_waits_is_listed_with_the_reason_and_the_fix_and_the_fix_helps() -> None:
    world = a_world()
    client = visitor(world)
    assert holding(world.tenant) == (2, 6)
    shown = client.get(WAITING)
    words = plain(shown)
    assert "shop.export" in words and "it has no annotations" in words
    assert "@server.tool(annotations=ToolAnnotations(" in words
    assert "shop.refund" in words and "It says that it may destroy or overwrite" in words
    assert "shop.note" not in words
    allows = {"id": "allow-shop-refund", "title": "shop.refund runs unasked", "effect": "allow"}
    paste = json.dumps(allows | {"tool": "shop", "function": "refund"})
    assert paste in words
    draft = client.get(f"{EDIT}?{urlencode({'add': paste})}")
    assert rules_of(draft) == [json.loads(paste)]
    assert step(client, draft, "save", note="refunds are safe").status_code == 302
    assert holding(world.tenant) == (1, 6)
    assert "shop.refund" not in plain(client.get(WAITING))
    assert "shop.refund" in plain(client.get(f"{WAITING}?show=runs&q=REF&tool=shop&page=x"))
    assert "No function fits" in plain(client.get(f"{WAITING}?q=nothing-like-it"))
    save(world, NO_EXPORTS, BIG, seen=1)
    assert "shop.export" in plain(client.get(f"{WAITING}?show=refused"))
    assert "big when /amount > 100" in plain(client.get(f"{WAITING}?show=sometimes"))


def test_a_long_list_of_who_waits_has_pages() -> None:
    world = a_world()
    a_tool(world.tenant, tuple(a_function(f"drop_{n:03}", DESTRUCTIVE) for n in range(150)), slug="many")
    client = visitor(world)
    first, second = plain(client.get(f"{WAITING}?tool=many")), plain(client.get(f"{WAITING}?tool=many&page=2"))
    assert "1 to 100 of 150" in first and "many.drop_099" in first and "many.drop_100" not in first
    assert "101 to 150 of 150" in second and "many.drop_149" in second


def rows_of(database: Postgres) -> dict[str, int]:
    """How often each table was written to."""
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        names = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            name: admin.execute(f"SELECT count(*) FROM {name} WHERE xmin::text::bigint > 2").fetchone()[0]
            for (name,) in names
            if name != "django_session"
        }


@pytest.mark.rule("A2")
def test_a_simulated_call_shows_the_rule_that_decides_and_why_each_other_was_passed_over_and_writes_nothing(
    database: Postgres,
) -> None:
    world = a_world()
    save(world, BIG, NO_EXPORTS, a_rule("slow", "wait", tool="shop", rate={"calls": 1, "seconds": 60}))
    client = visitor(world)
    before = rows_of(database)

    def simulated(function: str = "shop.charge", **more: Any) -> str:
        return plain(client.get(SIMULATE, {"function": function, "agent": "clerk", "starter": "person", **more}))

    asked = simulated(arguments='{"amount": 150}')
    assert "asks by rule “big”" in asked
    assert "It is for function export; this call's is charge." in asked
    assert "Its rate has room" in asked
    runs = simulated(arguments='{"amount": 50}')
    assert "runs by rule “writes that only add run”" in runs
    assert "It does not hold that /amount > 100." in runs
    assert "/amount is left out, and the rule wants /amount > 100." in simulated()
    assert "refuses by rule “no-exports”" in simulated("shop.export")
    assert "1 attempts of shop began within 60 s, so it begins later" in simulated(over_rates="yes")
    assert "Its arguments do not fit the function's schema" in simulated("shop.ship", arguments="{}")
    tried = client.post(SIMULATE, {"function": "shop.charge", "draft": json.dumps([a_rule("none", "refuse")])})
    assert "judged by your draft" in plain(tried) and "refuses by rule “none”" in plain(tried)
    for wrong, why in (
        ({"function": "shop"}, "Name a function as tool.function."),
        ({"function": "shop.nothing"}, "lists no such function"),
        ({"function": "shop.note", "arguments": "{"}, "cannot be sent exactly as written"),
        ({"function": "shop.note", "arguments": "[]"}, "must be a JSON object"),
        ({"function": "shop.note", "repeats": "0"}, "a whole number from 1"),
        ({"function": "shop.note", "starter": "cron"}, "started by one of"),
    ):
        answer = client.get(SIMULATE, wrong)
        assert (answer.status_code, why in plain(answer)) == (422, True), why
    assert client.post(SIMULATE, {"function": "shop.note", "draft": "{"}).status_code == 400
    assert rows_of(database) == before
    with db.read(world.tenant):
        assert not Call.objects.exists() and not Event.objects.exists()
    a_switch(world, Scope.TOOL, "shop")
    assert "A switch is on over it" in simulated()


@pytest.mark.rule("A2")
def test_the_last_seven_days_are_judged_again_with_the_calls_listed_and_nothing_is_written(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    for amount in (50, 150, 250):
        made(
            world,
            a_call(world, "charge", {"amount": amount, "note": "x" * (9_000 if amount == 250 else 1)}),
            an_outcome(End.ANSWERED),
        )
    held, _ = a_held_call(world, "export")
    job = a_job(world)
    again = [a_turn(world, job, ("look", {"q": 1}), say="")[0] for _ in range(1)]
    made(world, again[0], an_outcome(End.ANSWERED))
    (second,) = a_turn(world, job, ("look", {"q": 1}))
    client = visitor(world)
    assert "The studio's own policy would have held 1, refused 0 of 6 calls." in plain(client.get(REPLAY))
    assert "No call would fare otherwise" in plain(client.get(REPLAY))
    before = rows_of(database)
    loop = a_rule("loop", "ask", repeated=2)
    slow = a_rule("slow", "wait", tool="shop", rate={"calls": 2, "seconds": 3600})
    tried = client.post(REPLAY, {"draft": json.dumps([BIG, NO_EXPORTS, loop, slow, a_rule("idle", "ask", tool="x")])})
    words = plain(tried)
    assert "Your draft would have held 3, refused 1, delayed 1 of 6 calls." in words
    assert "As it went then, 1 waited for a person and 0 were refused by policy. 4 calls would fare otherwise" in words
    for call in (held, second):
        assert f"/calls/{ids.show(ids.CALL, call)}/" in text_of(tried)
    assert "idlenone" in words
    assert client.post(REPLAY, {"draft": "{"}).status_code == 400
    assert rows_of(database) == before
    with db.write(world.tenant) as now:
        Call.objects.filter(pk=held).update(created_at=now - timedelta(days=7, seconds=1))
    assert "refused 0 of 5 calls" in plain(client.get(REPLAY))
    assert an_order(world, second) is not None
