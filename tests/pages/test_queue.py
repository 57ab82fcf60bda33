"""The queue at work: counts that agree, filters, no jumping, many rows, several at once (RULES A9, A10, U7)."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from approvals.operations import deciding_rules
from approvals.operations.decide_together import PART
from base import db, ids
from catalog.models import Tool
from jobs.models import Call, Hold, Job
from jobs.rules.orders import End
from jobs.rules.seeing import HIDDEN
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tests.builders import (
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_policy,
    a_rule,
    a_turn,
    a_world,
    an_outcome,
    an_unknown_call,
    made,
    see,
    swept,
    the_hold,
)
from tests.operations.test_deciding import ADMIN
from tests.pages.test_groups import a_flood, form_of, group_url, holds_of, states
from tests.pages.visitors import answer, hold_url, plain, shown_digest_of, text_of, visitor

QUEUE = "/approvals/"
SEVERAL = "/approvals/several/"


def shown(hold: UUID) -> str:
    """A question's id in an address."""
    return ids.show(ids.HOLD, hold)


def rows_of(html: str) -> list[str]:
    """The questions of the list, in its order; a closed one with a bar before it."""
    found = re.findall(r'<a class="waiting( closed)?" id="row-(hold_\w+)"', html)
    return [("|" if closed else "") + one for closed, one in found]


def test_the_title_the_rail_the_overview_and_the_list_count_the_same_after_whatever_is_done(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    client = visitor(world)
    _, held = a_held_call(world)
    _, other = a_held_call(world)
    a_flood(world, "note", "note", "note", "note")
    _, alone = an_unknown_call(world)  # of the same incident, in a job of its own

    def agree(count: int) -> None:
        html = text_of(client.get(QUEUE))
        overview = text_of(client.get("/"))
        number = f'id="rail-count">{count}<' if count else ""
        assert number in html and number in overview
        assert html.split("<title>", 1)[1].startswith(f"({count})" if count else "Approvals")
        assert f"{count} waiting" in html if count else "Nothing waits for a person" in html
        beside = html.split('id="waiting-list"', 1)[1].split('id="question"', 1)[0]
        listed = len(rows_of(beside)) + sum(int(n) for n in re.findall(r"(\d+) calls of", plain(beside)))
        assert listed == count
        assert f'<span class="figure toned">{count}</span>' in overview or not count

    agree(7)
    answer(client, held, answer="approve")
    agree(6)
    answer(client, alone, answer="stop")
    agree(5)
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=25))
    swept(lose_nodes=False)
    agree(4)
    assert see(world, Hold, other).state == "expired"


@pytest.mark.rule("A13")
@pytest.mark.rule("A14")
def test_a_row_says_how_its_arguments_begin_so_that_the_odd_one_is_seen_among_many(database: Postgres) -> None:
    """CASES A30."""
    world = a_world()
    for amount in (12, 15, 900_000, 11):
        a_call(world, "refund", {"amount": amount, "to": "ACME\u202e Ltd"})
    a_call(world, "refund", {"amount": 1, "to": "x" * 20_000})  # kept apart, and not read for a list
    a_held_call(world)  # without any

    def told(client: Client) -> list[str]:
        return re.findall(r'<code class="brief">(.*?)</code>', text_of(client.get(QUEUE)))

    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    rows = told(visitor(world))
    assert [plain(row) for row in rows] == [plain(row) for row in told(viewer)]
    assert [re.findall(r"amount.*?(\d+)", plain(row))[0] for row in rows] == ["12", "15", "900000", "11"]
    assert all(">U+202E</mark>" in row for row in rows)
    with db.write(world.tenant):
        Tool.objects.update(sensitive=True)
    assert told(visitor(world)) == rows
    assert {plain(row) for row in told(viewer)} == {HIDDEN}


def test_a_page_that_reads_itself_again_keeps_answered_rows_in_place_and_counts_what_came(database: Postgres) -> None:
    world = a_world()
    client, ann = visitor(world), visitor(world, a_person(world.tenant, "ann", Role.OPERATOR))
    holds = [a_held_call(world)[1] for _ in range(4)]
    html = text_of(client.get(hold_url(holds[2])))
    again = re.findall(r'hx-get="([^"]*at=\d+)"', html)[0].replace("&amp;", "&")
    answer(ann, holds[0], answer="deny", note="no")
    answer(ann, holds[1], answer="approve")
    _, newer = a_held_call(world)
    live = text_of(client.get(again))
    assert rows_of(live) == [f"|{shown(holds[0])}", f"|{shown(holds[1])}", *map(shown, [*holds[2:], newer])]
    assert "3 waiting" in live and "1 new" in plain(live) and "denied by ann" in plain(live)
    assert rows_of(text_of(client.get(QUEUE))) == [shown(one) for one in (*holds[2:], newer)]
    assert client.get(QUEUE, {"at": "nonsense"}).status_code == 200


def test_filters_are_in_the_address_and_kept_by_every_link(database: Postgres) -> None:
    world = a_world()
    _, refund = a_held_call(world)
    _, export = a_held_call(world, "export")
    _, unknown = an_unknown_call(world)
    client = visitor(world)
    for query, left in (
        ({"function": "refund"}, [refund]),
        ({"kind": "unknown"}, [unknown]),
        ({"kind": "approve", "agent": "clerk", "tool": "shop"}, [refund, export]),
        ({"function": "nothing"}, []),
    ):
        html = text_of(client.get(QUEUE, query))
        assert rows_of(html) == [shown(one) for one in left], query
        assert f"{len(left)} waiting" in html or not left
    html = text_of(client.get(QUEUE, {"function": "refund"}))
    assert f'href="{hold_url(refund)}?function=refund"' in html
    assert '<option value="refund" selected>' in html


def test_hundreds_of_rows_cost_the_queue_no_more_queries_than_two(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            client.get(QUEUE, {"kind": "approve"})
        return len(seen)

    a_turn(world, a_job(world), "refund", "refund")
    few = queries()
    for _ in range(3):
        a_turn(world, a_job(world), *["refund"] * 40)
    assert queries() == few
    html = text_of(client.get(QUEUE))
    assert len(rows_of(html)) == 50 and "122 waiting" in html
    more = re.findall(r'href="([^"]*after=hold_\w+)"', html)[0].replace("&amp;", "&")
    assert not set(rows_of(html)) & set(rows_of(text_of(client.get(more))))


@pytest.mark.rule("A9")
def test_several_are_denied_with_one_reason_each_with_its_own_decision(database: Postgres) -> None:
    world = a_world()
    calls = a_turn(world, a_job(world), *[("refund", {"amount": n}) for n in range(3)])
    (other,) = a_turn(world, a_job(world), "export")
    client = visitor(world)
    html = text_of(client.get(SEVERAL))
    assert "Only calls of one function that reads are approved together" in plain(html)
    cards = re.findall(r'name="card" value="([^"]+)"', html)
    assert len(cards) == 4 and "amount" in html
    assert client.post(SEVERAL, {"answer": "deny", "card": cards[:2]}).status_code == 422  # without a reason
    assert client.post(SEVERAL, {"answer": "deny", "note": "no"}).status_code == 422  # none ticked
    assert client.post(SEVERAL, {"answer": "stop", "card": cards, "note": "no"}).status_code == 400
    forged = [cards[0].split(":")[0] + ":" + "0" * 64]
    client.post(SEVERAL, {"answer": "deny", "card": forged, "note": "no"}, follow=True)
    assert states(world, [*calls, other]) == [CallState.HELD] * 4
    done = client.post(SEVERAL, {"answer": "deny", "card": [cards[0], cards[3]], "note": "not today"}, follow=True)
    assert "You denied 2 calls." in plain(text_of(done))
    assert states(world, [*calls, other]) == [CallState.REFUSED, CallState.HELD, CallState.HELD, CallState.REFUSED]
    with db.read(world.tenant):
        assert set(Decision.objects.values_list("answer", "note", "channel")) == {("deny", "not today", "group")}
        assert AuditEntry.objects.filter(verb="hold.deny").count() == 2


@pytest.mark.rule("A3")
@pytest.mark.rule("A10")
def test_several_are_approved_only_where_one_function_reads_and_all_of_it_is_shown(database: Postgres) -> None:
    """CASES A30."""
    world = a_world()
    a_policy(world, a_rule("all", "ask", kind=["read", "write"]))
    reads = a_turn(world, a_job(world), *[("look", {"n": n}) for n in range(3)])
    writes = a_turn(world, a_job(world), "note", "note")
    client = visitor(world)

    def approve(query: dict[str, str], cards: list[str] | None = None) -> Any:
        html = text_of(client.get(SEVERAL, query))
        given = cards if cards is not None else re.findall(r'name="card" value="([^"]+)"', html)
        address = SEVERAL + "?" + "&".join(f"{name}={value}" for name, value in query.items())
        return client.post(address, {"answer": "approve", "card": given}, follow=True)

    assert approve({}).status_code == 422
    assert approve({"function": "note"}).status_code == 422
    both = re.findall(r'name="card" value="([^"]+)"', text_of(client.get(SEVERAL)))
    assert approve({"function": "look"}, both).status_code == 422
    (cut,) = a_turn(world, a_job(world), ("look", {"text": "long " * 1000}))
    assert "Not all arguments fit on this page" in plain(text_of(client.get(SEVERAL, {"function": "look"})))
    assert approve({"function": "look"}).status_code == 422
    assert states(world, [*reads, *writes, cut]) == [CallState.HELD] * 6
    answer(client, the_hold(world, cut).pk, answer="approve")
    assert "You approved 3 calls." in plain(text_of(approve({"function": "look"})))
    assert states(world, [*reads, *writes]) == [*[CallState.QUEUED] * 3, *[CallState.HELD] * 2]


@pytest.mark.rule("U7")
def test_a_large_group_is_answered_a_part_at_a_time_and_the_page_says_how_far_it_is(database: Postgres) -> None:
    world = a_world()
    count = PART * 2 + 3
    calls = a_flood(world, *["note"] * count)
    client = visitor(world)
    form = form_of(client, group_url(holds_of(world, calls)[0]))
    kim = visitor(world, a_person(world.tenant, "kim", Role.OPERATOR))
    last = holds_of(world, calls)[-1]
    html = text_of(client.post(form["action"], {**_hidden(form), "answer": "happened", "note": "seen"}))
    assert f"{PART} of {count} answered" in html and "data-go-on" in html
    assert states(world, calls).count(CallState.HAPPENED) == PART
    answer(kim, last, answer="again")
    forged = {**_going_on(html), "so_far": "forged"}
    assert client.post(form["action"], forged).status_code == 409
    html = text_of(client.post(form["action"], _going_on(html)))
    assert f"{2 * PART} of {count} answered" in html
    page = plain(text_of(client.post(form["action"], _going_on(html), follow=True)))
    assert f"You said that {count - 1} calls happened." in page
    assert "1 question was answered “again” before by kim." in page
    with db.read(world.tenant):
        assert Decision.objects.filter(answer="happened", note="seen").count() == count - 1
        assert Decision.objects.count() == count


def _hidden(form: dict[str, str]) -> dict[str, str]:
    return {name: form[name] for name in ("shown", "holds")}


def _going_on(html: str) -> dict[str, str]:
    """The form that goes on with the rest."""
    form = html.split('id="go-on"', 1)[1].split("</form>", 1)[0]
    return dict(re.findall(r'name="(answer|note|rest|so_far)" value="([^"]*)"', form))


@pytest.mark.rule("A10")
def test_the_card_says_who_has_approved_and_what_the_next_answer_does(database: Postgres) -> None:
    world = a_world()
    deciding_rules.save(tenant=world.tenant, roles={}, approvers={"destructive": 2}, no_self=False, by=ADMIN)
    ann, bob = (visitor(world, a_person(world.tenant, name, Role.OPERATOR)) for name in ("ann", "bob"))
    call, hold = a_held_call(world)
    assert "It does not run yet: then 1 of 2 approved: 1 more person must approve exactly this." in plain(
        text_of(ann.get(hold_url(hold)))
    )
    said = answer(ann, hold, answer="approve")
    page = plain(text_of(ann.get(said.headers["Location"])))
    assert "Your approval counts: 1 of 2 approved: 1 more person must approve it." in page
    assert "1 of 2 approved by ann" in page and "You have approved it; somebody else must, too." in page
    page = plain(text_of(bob.get(hold_url(hold))))
    assert "1 of 2 approved by ann" in page and "You are approval 2 of 2. Exactly these arguments run, once" in page
    answer(bob, hold, answer="approve")
    assert see(world, Call, call).state == CallState.QUEUED


@pytest.mark.rule("A10")
@pytest.mark.rule("A12")
def test_who_decides_is_set_on_a_page_by_admins_and_says_when_nobody_could(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    page = "/settings/deciding/"
    fields = {f"role:{kind}": "operator" for kind in ("read", "write", "destructive", "undeclared")}
    fields |= {name.replace("role", "approvers"): "1" for name in fields}
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    assert "Admins change who decides" in text_of(viewer.get(page))
    assert viewer.post(page, fields).status_code == 403
    assert client.post(page, {**fields, "role:read": "viewer"}).status_code == 422
    assert client.post(page, {**fields, "approvers:read": "9"}).status_code == 422
    assert client.post(page, {}).status_code == 422
    html = text_of(
        client.post(page, {**fields, "approvers:destructive": "2", "role:destructive": "admin"}, follow=True)
    )
    assert "1 person has the role: 1 too few" in plain(html)
    assert "Nothing was different" in text_of(
        client.post(page, {**fields, "approvers:destructive": "2", "role:destructive": "admin"}, follow=True)
    )
    _, hold = a_held_call(world)
    olga = visitor(world, a_person(world.tenant, "olga", Role.OPERATOR))
    assert text_of(olga.get(hold_url(hold))).count("this needs the role admin here; yours is operator") >= 2
    assert answer(olga, hold, answer="deny", note="no").status_code == 403
    assert answer(olga, hold, answer="stop").status_code == 302
    with db.read(world.tenant):
        assert AuditEntry.objects.filter(verb="deciding.changed").count() == 1


@pytest.mark.rule("A8")
def test_one_click_asks_again_and_one_gives_more_time(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES A25."""
    world = a_world()
    client = visitor(world)
    call, hold = a_held_call(world)
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=20))
    page = text_of(client.post(f"{hold_url(hold)}extend/", follow=True))
    assert "It waits a day longer, from now." in page
    client.get(f"{hold_url(hold)}extend/")
    move_clock(timedelta(hours=25))
    swept(lose_nodes=False)
    page = text_of(client.get(hold_url(hold)))
    assert "It expired; nobody decided against it." in page and "Ask again" in page and "Its job goes on" in plain(page)
    assert client.get(f"{hold_url(hold)}ask-again/").status_code == 405
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    assert viewer.post(f"{hold_url(hold)}ask-again/").status_code == 403
    twice = [client.post(f"{hold_url(hold)}ask-again/", follow=True) for _ in range(2)]
    assert "May" in text_of(twice[0]) and "Somebody had asked for it again already" in text_of(twice[1])
    with db.read(world.tenant):
        assert Call.objects.filter(again_of_id=call).count() == 1
    assert "It was asked for again" in text_of(client.get(hold_url(hold)))
    assert "after <a" in text_of(client.get(twice[0].redirect_chain[-1][0]))


@pytest.mark.rule("A9")
def test_a_reason_that_is_offered_is_given_with_one_press(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    call, hold = a_held_call(world)
    seen = {"shown": shown_digest_of(client, hold), "answer": "deny"}
    assert client.post(hold_url(hold), {**seen, "preset": "9"}).status_code == 400
    client.post(hold_url(hold), {**seen, "preset": "1", "note": "the amount"})
    row = see(world, Call, call)
    assert (row.state, row.detail) == (
        CallState.REFUSED,
        "The arguments are wrong: check them, then ask again. the amount",
    )


@pytest.mark.rule("U7")
def test_calls_that_looked_the_same_are_named_with_how_they_went(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    first = a_call(world, "note", {"text": "a"})
    made(world, first, an_outcome(End.ANSWERED))
    other = a_call(world, "note", {"text": "b"})
    made(world, other, an_outcome(End.ANSWERED, is_error=True))
    again = a_call(world, "note", {"text": "a"})
    made(world, again, an_outcome(End.BROKEN))
    html = text_of(client.get(hold_url(the_hold(world, again).pk)))
    page = plain(html)
    assert "last 2: 1 ERRORED, 1 SUCCEEDED · 1 had the same arguments" in page
    assert f'href="/calls/{ids.show(ids.CALL, first)}/"' in html


def test_who_let_a_call_run_that_then_failed_is_told_on_the_queue(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    client, ann = visitor(world), visitor(world, a_person(world.tenant, "ann", Role.OPERATOR))
    fine, failed = a_call(world, "refund", {"n": 1}), a_call(world, "refund", {"n": 2})
    for call in (fine, failed):
        answer(client, the_hold(world, call).pk, answer="approve")
    assert 'id="failed"' not in text_of(client.get(QUEUE))
    made(world, fine, an_outcome(End.ANSWERED))
    made(world, failed, an_outcome(End.ANSWERED, is_error=True))
    html = text_of(client.get(QUEUE))
    assert "Of what you let run in the last day, 1 failed: shop.refund ERRORED." in plain(html)
    assert f'href="/calls/{ids.show(ids.CALL, failed)}/"' in html
    assert 'id="failed"' not in text_of(ann.get(QUEUE))  # who did not decide it
    move_clock(timedelta(hours=25))
    assert 'id="failed"' not in text_of(client.get(QUEUE))


def test_a_waiting_call_in_a_trace_leads_to_its_question(database: Postgres) -> None:
    world = a_world()
    client: Client = visitor(world)
    call, hold = a_held_call(world)
    job = ids.show(ids.JOB, see(world, Call, call).job_id)
    assert f'<a class="asks tone-wait" href="{hold_url(hold)}">' in text_of(client.get(f"/jobs/{job}/"))
    answer(client, hold, answer="approve")
    assert 'class="asks' not in text_of(client.get(f"/jobs/{job}/"))
