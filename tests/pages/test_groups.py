"""Many unknown outcomes of one dead server: one group in the queue, answered at once for exactly what was shown."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from approvals.models import Decision
from approvals.operations.decide import Person
from approvals.operations.decide_together import decide_together
from approvals.queries.floods import digest_of, floods
from approvals.rules.deciding import Decider
from base import db, ids
from catalog.rules.switching import Scope
from jobs.models import Call, Event, Hold, Job
from jobs.operations import nodes
from jobs.operations.holds import Answer, BadAnswer
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tenants.rules.who import Actor
from tests.builders import (
    World,
    a_held_call,
    a_job,
    a_person,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    settle,
    the_hold,
    told,
)
from tests.pages.visitors import hold_url, plain, text_of, visitor

SHIP = ("ship", {"order": 7})


def a_flood(world: World, *functions: str | tuple[str, Any], end: End = End.BROKEN) -> list[UUID]:
    """One job whose calls of these functions are all unknown since their server died; the calls."""
    calls = a_turn(world, a_job(world), *functions)
    orders = [an_order(world, call) for call in calls]
    for order in orders:
        settle(world, order, an_outcome(end))
    return calls


def holds_of(world: World, calls: list[UUID]) -> list[UUID]:
    """Their open questions, in the order in which a group shows them."""
    return sorted(the_hold(world, call).pk for call in calls)


def group_url(hold: UUID) -> str:
    """The address of the group that a question belongs to."""
    return f"{hold_url(hold)}group/"


def form_of(client: Client, url: str) -> dict[str, str]:
    """The hidden fields of the group's forms, and where they go."""
    html = text_of(client.get(url))
    form = html.split('class="answer"', 1)[1].split("</form>", 1)[0]
    fields = dict(re.findall(r'name="(shown|holds)" value="([^"]*)"', form))
    return {**fields, "action": re.findall(r'action="([^"]*)"', form)[0].replace("&amp;", "&")}


def send(client: Client, form: dict[str, str], answer: str, **more: Any) -> Any:
    """One of the group's forms, sent."""
    fields = {"shown": form["shown"], "holds": form["holds"], "answer": answer, **more}
    return client.post(form["action"], fields, follow=True)


def states(world: World, calls: list[UUID]) -> list[str]:
    """Where these calls stand."""
    return [see(world, Call, call).state for call in calls]


@pytest.mark.rule("U7")
def test_unknowns_of_one_tool_and_cause_are_one_row_of_the_queue_and_every_count_counts_each(
    database: Postgres,
) -> None:
    world = a_world()
    calls = a_flood(world, "note", "note", SHIP, "note")
    _, alone = an_unknown_call(world, "note")  # of the same incident
    late = a_flood(world, "note", "note", end=End.TIMED_OUT)  # too few of another cause
    _, held = a_held_call(world)
    client = visitor(world)
    html = text_of(client.get(hold_url(held)))
    assert "5 calls of shop" in plain(html)
    assert html.count('class="waiting many"') == 1
    assert html.count('class="waiting"') == 3
    assert "8 waiting" in html and 'id="rail-count">8<' in html
    page = plain(text_of(client.get(group_url(alone))))
    for words in (
        "Did these 5 calls of shop happen?",
        "The connection ended without an answer after the request went out.",
        "note · 4",
        "ship · 1",
        "2 jobs",
    ):
        assert words in page, words
    assert states(world, [*calls, *late]) == [CallState.UNKNOWN] * 6


@pytest.mark.rule("U6")
@pytest.mark.rule("U7")
@pytest.mark.rule("A12")
def test_they_happened_is_one_decision_one_audit_entry_and_one_move_for_each(database: Postgres) -> None:
    world = a_world()
    calls = a_flood(world, "note", "note", "note")
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    other = a_flood(world, "note", "note", "note", end=End.TIMED_OUT)
    page = text_of(send(client, form, "happened", note="all three are in the ledger"))
    assert "You said that 3 calls happened." in plain(page)
    assert "3 calls of shop" in plain(page)  # the other group is in the list
    assert 'class="answers"' not in page  # and not open, so that a second press answers nothing unread
    assert states(world, other) == [CallState.UNKNOWN] * 3
    assert states(world, calls) == [CallState.HAPPENED] * 3
    assert "all three are in the ledger" in told(world, calls[2])
    with db.read(world.tenant):
        assert set(Decision.objects.values_list("answer", "channel", "note")) == {
            ("happened", "group", "all three are in the ledger")
        }
        assert len(set(Decision.objects.values_list("shown", flat=True))) == 3
        assert AuditEntry.objects.filter(verb="hold.happened").count() == 3
        moved = Event.objects.filter(kind="call.moved", data__to=CallState.HAPPENED)
        assert set(moved.values_list("call", flat=True)) == set(calls)


@pytest.mark.rule("U7")
def test_a_question_that_came_meanwhile_is_told_of_and_not_answered(database: Postgres) -> None:
    world = a_world()
    calls = a_flood(world, "note", "note", "note")
    client, anchor = visitor(world), holds_of(world, calls)[0]
    form = form_of(client, group_url(anchor))
    (newer,) = a_flood(world, "note")
    pinned = text_of(client.get(form["action"]))  # as a nudged page reads itself again
    assert "1 more came since you opened this. Your answer is not for it." in plain(pinned)
    assert form["holds"] in pinned
    send(client, form, "happened")
    assert states(world, [*calls, newer]) == [*[CallState.HAPPENED] * 3, CallState.UNKNOWN]


@pytest.mark.rule("U6")
@pytest.mark.rule("U7")
def test_what_others_answered_meanwhile_stays_theirs_and_is_reported(database: Postgres) -> None:
    world = a_world()
    calls = a_flood(world, *["note"] * 4)
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    kim = a_person(world.tenant, "kim", Role.OPERATOR)
    answered(World(world.tenant, kim, world.node), the_hold(world, calls[1]).pk, Answer.AGAIN)
    page = plain(text_of(send(client, form, "happened")))
    assert "You said that 3 calls happened." in page
    assert "1 question was answered “again” before by kim." in page
    assert states(world, calls) == [
        CallState.HAPPENED,
        CallState.QUEUED,
        CallState.HAPPENED,
        CallState.HAPPENED,
    ]
    twice = plain(text_of(send(client, form, "happened")))
    assert "3 questions were answered “happened” before by pat-acme." in twice
    assert "You said" not in twice


@pytest.mark.rule("U7")
def test_together_they_run_again_only_where_each_honours_its_key(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    keyless = a_flood(world, "note", "note", "note")
    keyed = keyed_unknowns(world, 3, move_clock)
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, keyless)[0]))
    assert "may write twice" in plain(text_of(client.get(form["action"])))
    refused = send(client, form, "again")
    assert refused.status_code == 409
    assert "only where each honours its key" in text_of(refused)
    assert states(world, keyless) == [CallState.UNKNOWN] * 3
    form = form_of(client, group_url(holds_of(world, keyed)[0]) + "?function=charge")
    keys = [see(world, Call, call).key for call in keyed]
    page = plain(text_of(send(client, form, "again")))
    assert "You had 3 calls run again." in page
    assert states(world, keyed) == [CallState.QUEUED] * 3
    assert [see(world, Call, call).key for call in keyed] == keys


def keyed_unknowns(world: World, count: int, move_clock: Callable[[timedelta], None]) -> list[UUID]:
    """Keyed writes whose four attempts all broke."""
    calls = a_turn(world, a_job(world), *["charge"] * count)
    for _ in range(4):
        for call in calls:
            made(world, call, an_outcome(End.BROKEN))
        move_clock(timedelta(seconds=9))
        nodes.beat(node_id=world.node, servers=[])
    assert states(world, calls) == [CallState.UNKNOWN] * count
    return calls


@pytest.mark.rule("U6")
def test_stopping_together_cancels_each_job_once_and_says_what_ended_with_it(database: Postgres) -> None:
    world = a_world()
    first, second = a_flood(world, "note", "note", "note"), a_flood(world, "note", "note")
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, first)[0]))
    assert "Cancels 2 jobs" in plain(text_of(client.get(form["action"])))
    page = plain(text_of(send(client, form, "stop")))
    assert "You stopped the jobs of 2 calls; 3 more questions ended with the same jobs." in page
    assert states(world, [*first, *second]) == [CallState.CANCELED] * 5
    with db.read(world.tenant):
        assert set(Job.objects.values_list("state", flat=True)) == {JobState.CANCELED}
        assert Decision.objects.count() == 2


def tampered(form: dict[str, str], **change: str) -> dict[str, str]:
    """The form with something of it changed."""
    return {**form, **change}


@pytest.mark.rule("U7")
@pytest.mark.rule("A5")
def test_what_was_not_shown_together_is_not_answered_together(database: Postgres) -> None:
    world, other = a_world("one"), a_world("two")
    calls, theirs = a_flood(world, "note", "note", "note"), a_flood(other, "note", "note", "note")
    late = a_flood(world, "note", "note", "note", end=End.TIMED_OUT)
    _, held = a_held_call(world)
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    some = form["holds"].split()
    strange = [ids.show(ids.HOLD, one) for one in (holds_of(other, theirs)[0], holds_of(world, late)[0], held)]
    tries = [
        tampered(form, holds=""),
        tampered(form, shown="0" * 64),
        tampered(form, holds=" ".join(some[:2])),
        *(tampered(form, holds=" ".join([*some, one])) for one in strange),
        tampered(form, holds=" ".join([*some, some[0]])),
        tampered(form, holds=" ".join(some * 100)),
    ]
    assert [send(client, one, "happened").status_code for one in tries] == [409] * len(tries)
    assert [send(client, form, answer).status_code for answer in ("approve", "", "Happened")] == [400] * 3
    assert client.post(form["action"], {**form, "answer": ["happened", "stop"]}).status_code == 400
    client.get(form["action"] + "&answer=happened&holds=" + form["holds"])
    assert states(world, [*calls, *late]) == [CallState.UNKNOWN] * 6
    assert see(other, Call, theirs[0]).state == CallState.UNKNOWN
    assert send(client, form, "happened").status_code == 200  # the control
    assert states(world, calls) == [CallState.HAPPENED] * 3


@pytest.mark.rule("U7")
def test_questions_of_several_causes_are_not_answered_together_by_whatever_calls_for_it(database: Postgres) -> None:
    world = a_world()
    calls = [*a_flood(world, "note", "note"), *a_flood(world, "note", end=End.TIMED_OUT)]
    person = Person(Decider(world.person, "admin"), Actor("pat", "test", world.person))
    with db.read(world.tenant):
        rows = list(Hold.objects.select_related("call").order_by("pk"))
        shown = digest_of(rows)
    with pytest.raises(BadAnswer, match="one tool and cause"):
        decide_together(
            tenant=world.tenant, holds=[row.pk for row in rows], person=person, answer="happened", shown=shown
        )
    assert states(world, calls) == [CallState.UNKNOWN] * 3


@pytest.mark.rule("A5")
@pytest.mark.rule("A10")
def test_a_viewer_answers_none_of_a_group_and_its_starter_all_but_run_again(database: Postgres) -> None:
    world = a_world()
    viewer = a_person(world.tenant, "vera", Role.VIEWER)
    calls = a_flood(World(world.tenant, viewer, world.node), "note", "note", "note")
    others = a_flood(world, "note", "note", "note")
    client = visitor(world, viewer)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    html = plain(text_of(client.get(form["action"])))
    assert "3 questions stay open: Operators decide; your role here is viewer." in html
    page = plain(text_of(send(client, form, "happened")))
    assert "You said that 3 calls happened." in page
    assert "3 questions could not be answered so, and stay open: Operators decide" in page
    assert states(world, [*calls, *others]) == [*[CallState.HAPPENED] * 3, *[CallState.UNKNOWN] * 3]
    rest = form_of(client, group_url(holds_of(world, others)[0]))
    assert "disabled" in text_of(client.get(rest["action"])).split('id="answer-happened"', 1)[1].split("</form>")[0]
    assert send(client, rest, "happened").status_code == 403


@pytest.mark.rule("U6")
@pytest.mark.rule("L7")
def test_a_kill_switch_over_the_tool_keeps_a_group_from_being_run_again_and_says_so(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    calls = keyed_unknowns(world, 3, move_clock)
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    a_switch(world, Scope.TOOL, "shop")
    page = plain(text_of(send(client, form, "again")))
    assert "3 questions could not be answered so, and stay open: a kill switch is on" in page
    assert states(world, calls) == [CallState.UNKNOWN] * 3


@pytest.mark.rule("U7")
def test_two_incidents_with_the_same_cause_are_two_groups(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    noon = a_flood(world, "note", "note", "note")
    move_clock(timedelta(minutes=6))
    node = nodes.register(name="n2", host="here", pid=2, slots=4)
    later = a_flood(World(world.tenant, world.person, node), "note", "note", "note")
    with db.read(world.tenant):
        assert [flood.count for flood in floods()] == [3, 3]
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, later)[0]))
    send(client, form, "happened")
    assert states(world, [*noon, *later]) == [*[CallState.UNKNOWN] * 3, *[CallState.HAPPENED] * 3]
    gone = client.get(group_url(last_hold_of(world, later[0])), follow=True)
    assert "Nothing of that group waits any more." in text_of(gone)


def last_hold_of(world: World, call: UUID) -> UUID:
    """The last question of a call, open or closed."""
    with db.read(world.tenant):
        return Hold.objects.filter(call_id=call).latest("opened_at").pk


def test_a_filter_narrows_the_group_and_its_answers(database: Postgres) -> None:
    world = a_world()
    calls = a_flood(world, "note", "note", "note", SHIP, SHIP, SHIP)
    client = visitor(world)
    anchor = holds_of(world, calls)[0]
    form = form_of(client, f"{group_url(anchor)}?function=ship&kind=unknown&tool=shop")
    assert len(form["holds"].split()) == 3
    send(client, form, "happened")
    assert states(world, calls) == [*[CallState.UNKNOWN] * 3, *[CallState.HAPPENED] * 3]
    with db.read(world.tenant):
        assert floods(agent="nobody") == [] and floods(tool="nothing") == []
        assert [flood.count for flood in floods(agent="clerk", tool="shop")] == [3]
    assert client.get(f"{group_url(anchor)}?upto=nonsense").status_code == 404
    assert client.get(group_url(ids.new())).status_code == 404


def test_the_queue_opens_with_its_oldest_group(database: Postgres) -> None:
    world = a_world()
    calls = a_flood(world, "note", "note", "note")
    a_held_call(world)
    html = text_of(visitor(world).get("/approvals/"))
    assert "Did these 3 calls of" in plain(html)
    assert f'id="group-{ids.show(ids.HOLD, holds_of(world, calls)[0])}"' in html
