"""No secret is kept: whatever an agent, a tool or a person says it in, no table of the database holds it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from base import db
from base.masking import SHOWN, Mask
from catalog.models import Tool
from catalog.operations import listings
from catalog.rules.servers import MeasuredListing
from jobs.models import Attempt, Call, Job, Starter, Turn
from jobs.operations import bodies, editing, intake, turns, work
from jobs.operations.listings_changed import ask_anew
from jobs.rules.orders import End, Result
from jobs.rules.states import CallState
from jobs.rules.turns import TurnAnswer, Wanted
from jobs.rules.why import Why
from studio import embedded
from tenants.models import Secret
from tenants.operations import audit, masks, vault
from tenants.operations.masks import MARKER
from tenants.rules.who import Actor
from tests.builders import (
    FUNCTIONS,
    READ,
    World,
    a_call,
    a_function,
    a_job,
    a_node,
    a_person,
    a_policy,
    a_rule,
    a_tenant,
    a_tool,
    an_agent,
    an_order,
    an_outcome,
    see,
    settle,
    swept,
    the_hold,
    told,
)

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("A14")]
SECRET = "sk-live-0123456789"
PASSWORD = "correct horse"
LOGIN = a_function(
    "login",
    READ,
    schema={
        "type": "object",
        "properties": {
            "user": {"type": "string"},
            "password": {"type": "string", "format": "password", "minLength": 6},
        },
        "required": ["password"],
    },
)
WHO = replace(
    a_function("who", READ),
    output_schema={"type": "object", "properties": {"token": {"type": "string", "x-oz0-secret": True}}},
)


def a_guarded_world() -> World:
    """A world whose vault holds a secret, and whose tool has fields that are marked."""
    tenant = a_tenant()
    person = a_person(tenant, name="pat-acme")
    a_tool(tenant, (*FUNCTIONS, LOGIN, WHO))
    an_agent(tenant)
    with db.write(tenant):
        vault.put("connection crm", SECRET)
    return World(tenant, person, a_node())


def tables_with(database: embedded.Postgres, words: str) -> set[str]:
    """Every table that holds these words in any column of any row."""
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        names = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            name
            for (name,) in names
            if admin.execute(f"SELECT 1 FROM {name} r WHERE strpos(r::text, %s) > 0 LIMIT 1", [words]).fetchone()
        }


def everything_said(world: World) -> UUID:
    """A job in which the secret is said in every place there is; its call."""
    job = intake.start_job(
        tenant=world.tenant,
        agent="clerk",
        given={},
        starter=Starter.PERSON,
        person=world.person,
        title=f"with {SECRET}",
    )
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    wanted = (Wanted("shop__look", {"q": f"by {SECRET}", SECRET: [SECRET]}), Wanted("shop__note", {"t": SECRET * 2}))
    answer = TurnAnswer(say=f"I know {SECRET}", wanted=wanted)
    turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=answer)
    with db.read(world.tenant):
        look, note = Call.objects.filter(turn_id=order.turn_id).order_by("activity").values_list("pk", flat=True)
    made = an_order(world, look)
    result = Result(f"it is {SECRET}", False, ({"type": "text", "text": SECRET},), {"k": SECRET}, f"odd {SECRET}")
    settle(world, made, replace(an_outcome(End.ANSWERED), result=result))
    broken = an_outcome(End.BROKEN)
    late = an_order(world, note)
    settle(world, late, replace(broken, wire=replace(broken.wire, detail=f"failed with {SECRET}")))
    work.keep_late_reply(tenant=world.tenant, attempt_id=late.attempt_id, result=Result(f"late {SECRET}", False))
    with db.write(world.tenant):
        audit.record(Actor("pat", "x"), "tool.listed_anew", "tool x", after={SECRET: SECRET}, note=f"see {SECRET}")
    return look


KEPT_IN = {
    "jobs_job",
    "jobs_turn",
    "jobs_call",
    "jobs_body",
    "jobs_attempt",
    "tenants_auditentry",
}


def test_a_secret_of_the_vault_is_in_no_table_whatever_it_is_said_in(database: embedded.Postgres) -> None:
    world = a_guarded_world()
    look = everything_said(world)
    assert tables_with(database, SECRET) == set()
    with db.write(world.tenant):  # an agent has no business with a secret of the vault, so its tool gets none either
        assert bodies.arguments_of(Call.objects.get(pk=look)) == {"q": f"by {SHOWN}", SHOWN: [SHOWN]}
    with db.read(world.tenant):
        call = Call.objects.get(pk=look)
        assert call.arguments == {"q": f"by {SHOWN}", SHOWN: [SHOWN]}
        assert Turn.objects.get(pk=call.turn_id).say == f"I know {SHOWN}"
        assert Job.objects.get().title == f"with {SHOWN}"
        late = Attempt.objects.get(late__isnull=False)
    assert late.late["text"] == f"late {SHOWN}"
    assert told(world, look) == f"it is {SHOWN}"


def test_without_the_mask_it_would_be_in_each_of_these_so_the_test_above_means_something(
    database: embedded.Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_guarded_world()
    monkeypatch.setattr(vault, "every", lambda _tenant: [])
    monkeypatch.setattr(masks, "_kept", {})
    everything_said(world)
    assert tables_with(database, SECRET) >= KEPT_IN


def test_when_masking_fails_a_marker_is_kept_and_nothing_else(
    database: embedded.Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES S09."""
    world = a_guarded_world()
    before = a_call(world, "look", {"q": "plain"})
    order = an_order(world, before)

    def throw(*_: Any) -> str:
        raise RuntimeError("the redactor is broken")

    with monkeypatch.context() as broken:
        broken.setattr(Mask, "__call__", throw)
        broken.setattr(Mask, "uncut", throw)
        settle(world, order, replace(an_outcome(End.ANSWERED), result=Result(f"it is {SECRET}", False)))
        with db.write(world.tenant):
            audit.record(Actor("pat", "x"), "tool.listed_anew", "tool x", after={"a": SECRET}, note=SECRET)
        job = a_job(world)
        turn = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
        assert turn is not None
        answer = TurnAnswer(say=f"I know {SECRET}", wanted=(Wanted("shop__look", {"q": SECRET}),))
        turns.settle(tenant=world.tenant, turn_id=turn.turn_id, asked=turn.asked, outcome=answer)
    assert tables_with(database, SECRET) == set()
    call = see(world, Call, before)
    assert (call.state, call.result_text) == (CallState.SUCCEEDED, MARKER)
    with db.read(world.tenant):
        refused = Call.objects.get(job_id=job)
        assert Turn.objects.get(job_id=job).say == MARKER
    assert (refused.state, refused.arguments) == (CallState.ERRORED, {})
    assert "cannot be kept" in told(world, refused.pk)
    # the control: the same, with a mask that works, is kept
    after = a_call(world, "look", {"q": "plain"})
    settle(world, an_order(world, after), replace(an_outcome(End.ANSWERED), result=Result(f"it is {SECRET}", False)))
    assert see(world, Call, after).result_text == f"it is {SHOWN}"


def test_a_vault_that_does_not_open_lets_nothing_be_kept_either(
    database: embedded.Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES S09."""
    world = a_guarded_world()
    order = an_order(world, a_call(world, "look"))
    monkeypatch.setattr(masks, "_kept", {})

    def locked(_tenant: UUID) -> list[str]:
        raise vault.NoSecret("connection crm: it does not open")

    monkeypatch.setattr(vault, "every", locked)
    settle(world, order, replace(an_outcome(End.ANSWERED), result=Result(f"it is {SECRET}", False)))
    assert see(world, Call, order.call_id).result_text == MARKER
    assert tables_with(database, SECRET) == set()


def test_a_field_that_the_schema_marks_reaches_the_tool_in_each_attempt_and_nobody_else(
    database: embedded.Postgres,
) -> None:
    world = a_guarded_world()
    given = {"user": "kim", "password": PASSWORD}
    call = a_call(world, "login", given)
    assert see(world, Call, call).arguments == {"user": "kim", "password": SHOWN}
    first = an_order(world, call)
    assert first.arguments == given
    assert PASSWORD not in repr(first)
    settle(world, first, an_outcome(End.BROKEN))
    with db.write(world.tenant) as now:
        Call.objects.filter(pk=call).update(due_at=now)
    again = an_order(world, call)
    assert again.arguments == given
    said = Result(f"welcome, your password is {PASSWORD}!", False, structured={"echo": PASSWORD})
    settle(world, again, replace(an_outcome(End.ANSWERED), result=said))
    assert told(world, call) == f"welcome, your password is {SHOWN}!"
    assert tables_with(database, PASSWORD) == set()


def test_what_is_sealed_is_forgotten_a_day_after_its_call_ended_but_for_what_waits_or_can_be_asked_again(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_guarded_world()
    done, fresh = (a_call(world, "login", {"password": PASSWORD}) for _ in range(2))
    settle(world, an_order(world, done), an_outcome(End.ANSWERED))
    a_policy(world, a_rule("ask", "ask", tool="shop", function="login"))
    expired = a_call(world, "login", {"password": PASSWORD})

    def sealed() -> set[UUID]:
        with db.read(world.tenant):
            names = Secret.objects.filter(name__startswith=vault.OF_CALLS).values_list("name", flat=True)
            return {UUID(name.removeprefix(vault.OF_CALLS)) for name in names}

    move_clock(timedelta(hours=23))
    waits = a_call(world, "login", {"password": PASSWORD})
    assert sealed() == {done, fresh, expired, waits}
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=2))
    swept(lose_nodes=False)
    assert see(world, Call, expired).reason == Why.EXPIRED
    last = a_call(world, "login", {"password": PASSWORD})
    assert sealed() == {fresh, expired, waits, last}


def test_what_the_schema_of_an_answer_marks_is_taken_out_of_all_of_the_answer(database: embedded.Postgres) -> None:
    world = a_guarded_world()
    call = a_call(world, "who")
    token = "tok-77-77-77"
    said = Result(f'{{"token": "{token}"}}', False, ({"type": "text", "text": token},), {"token": token, "n": 1})
    settle(world, an_order(world, call), replace(an_outcome(End.ANSWERED), result=said))
    assert tables_with(database, token) == set()
    assert told(world, call) == f'{{"token": "{SHOWN}"}}'


def test_an_error_about_a_marked_field_does_not_repeat_it(database: embedded.Postgres) -> None:
    world = a_guarded_world()
    call = a_call(world, "login", {"password": "shrt7"})
    row = see(world, Call, call)
    assert row.state == CallState.ERRORED
    assert "too short" in row.detail
    assert tables_with(database, "shrt7") == set()


def test_nor_does_an_error_about_one_when_the_entry_changed_while_a_person_was_asked(
    database: embedded.Postgres,
) -> None:
    world = a_guarded_world()
    a_policy(world, a_rule("ask", "ask", tool="shop", function="login"))
    call = a_call(world, "login", {"user": "kim", "password": PASSWORD})
    longer = a_function("login", READ, schema={**LOGIN.input_schema, "properties": {"password": {"minLength": 40}}})
    measured = MeasuredListing("another", "2026-07-28", "s", "1", (*FUNCTIONS, longer, WHO))
    with db.read(world.tenant):
        tool = Tool.objects.values_list("pk", flat=True).get()
    listings.store(tenant=world.tenant, tool_id=tool, measured=measured)
    ask_anew(tenant=world.tenant, tool_id=tool)
    row = see(world, Call, call)
    assert row.state == CallState.REFUSED
    assert "too short" in row.detail
    assert tables_with(database, PASSWORD) == set()


def test_a_marker_that_an_agent_writes_itself_is_only_a_text() -> None:
    world = a_guarded_world()
    order = an_order(world, a_call(world, "look", {"q": SHOWN}))
    assert order.arguments == {"q": SHOWN}


def test_a_text_that_only_begins_as_a_secret_does_is_sent_as_it_is() -> None:
    world = a_guarded_world()
    order = an_order(world, a_call(world, "look", {"q": f"what is {SECRET[:6]}"}))
    assert order.arguments == {"q": f"what is {SECRET[:6]}"}


@pytest.mark.rule("A9")
def test_a_person_edits_around_a_sealed_field_which_stays_as_it_was_unless_they_type_another(
    database: embedded.Postgres,
) -> None:
    world = a_guarded_world()
    a_policy(world, a_rule("ask", "ask", tool="shop", function="login"))
    for typed, sent in (
        ({"user": "lee", "password": SHOWN}, {"user": "lee", "password": PASSWORD}),
        ({"user": "lee", "password": "another horse"}, {"user": "lee", "password": "another horse"}),
    ):
        call = a_call(world, "login", {"user": "kim", "password": PASSWORD})
        hold = the_hold(world, call).pk
        with db.write(world.tenant):
            editing.edit(hold_id=hold, arguments=typed, person=world.person, alone=True)
        assert see(world, Call, call).arguments == {"user": "lee", "password": SHOWN}
        assert an_order(world, call).arguments == sent
    assert tables_with(database, PASSWORD) == tables_with(database, "another horse") == set()
