"""Answering a question on its page: only so, only once, only by who may (RULES A3, A5, A6, A9, U6, U7)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from base import db, ids
from jobs.models import Call, Hold
from jobs.operations import work
from jobs.rules.limits import MAX_ATTEMPTS
from jobs.rules.orders import End
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import Membership, Role
from tests.builders import (
    a_call,
    a_held_call,
    a_person,
    a_policy,
    a_retrying_call,
    a_rule,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    made,
    see,
    settle,
    the_hold,
)
from tests.pages.visitors import answer, hold_url, plain, shown_digest_of, text_of, visitor


@pytest.mark.rule("A3")
def test_a_card_shows_the_exact_arguments_the_rule_who_asked_and_when_it_expires(database: Postgres) -> None:
    world = a_world()
    call = a_call(world, "refund", {"invoice": "INV-4410", "amount": 120})
    html = text_of(visitor(world).get(hold_url(the_hold(world, call).pk)))
    for shown in (
        "INV-4410",
        "120",
        "destructive asks",
        "agent <bdi",
        "clerk",
        "pat-acme",
        "expires in",
        "data-elapsed",
    ):
        assert shown in html, shown


@pytest.mark.rule("A9")
def test_every_waiting_card_has_stop_and_each_answer_says_what_it_will_do(database: Postgres) -> None:
    world = a_world()
    _, held = a_held_call(world)
    _, unknown = an_unknown_call(world)
    client = visitor(world)
    approve, happened = text_of(client.get(hold_url(held))), text_of(client.get(hold_url(unknown)))
    for words in (
        "Exactly these arguments run, once",
        "the agent reads your reason",
        "No further call of this job starts",
    ):
        assert words in approve
    for words in ("a person checked and says it happened", "One more attempt under the same key", "No further call"):
        assert words in happened


@pytest.mark.rule("A9")
@pytest.mark.rule("U10")
@pytest.mark.parametrize(
    ("on_unknown", "then"), [("ask", "you are asked whether it did"), ("fail", "its job fails, as its agent says")]
)
def test_denying_a_retry_of_what_may_have_acted_says_what_really_follows(
    database: Postgres, move_clock: Callable[[timedelta], None], on_unknown: str, then: str
) -> None:
    world = a_world(on_unknown=on_unknown)
    call = a_retrying_call(world, "charge")
    a_policy(world, a_rule("careful", "ask", function="charge"))
    move_clock(timedelta(seconds=2))
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    client, hold = visitor(world), the_hold(world, call).pk
    html = text_of(client.get(hold_url(hold)))
    assert f"An earlier attempt may have acted: {then}." in html
    assert "the agent reads your reason" not in html
    answer(client, hold, answer="deny", note="not again")
    assert see(world, Call, call).state == (CallState.UNKNOWN if on_unknown == "ask" else CallState.FAILED)


@pytest.mark.rule("U7")
def test_the_question_page_shows_key_evidence_and_that_running_again_may_write_twice(database: Postgres) -> None:
    """CASES U01."""
    world = a_world()
    call, hold = an_unknown_call(world)
    html = text_of(visitor(world).get(hold_url(hold)))
    assert see(world, Call, call).key in html
    assert "running it again may write twice" in html
    assert "the request went out, no answer" in html


ODD_ANSWERS: list[dict[str, Any]] = [
    {},
    {"answer": ""},
    {"answer": "null"},
    {"answer": "false"},
    {"answer": "0"},
    {"answer": "approve "},
    {"answer": "Approve"},
    {"answer": "happened"},
    {"answer": ["approve", "deny"]},
    {"answer": ["approve", "approve"]},
]


@pytest.mark.rule("A5")
@pytest.mark.parametrize("fields", ODD_ANSWERS, ids=str)
def test_a_missing_or_odd_answer_is_an_error_and_nothing_moves(database: Postgres, fields: dict[str, Any]) -> None:
    """CASES A03."""
    world = a_world()
    call, hold = a_held_call(world)
    response = answer(visitor(world), hold, **fields)
    assert response.status_code == 400
    assert "Nothing was changed" in text_of(response)
    assert see(world, Call, call).state == CallState.HELD
    assert see(world, Hold, hold).closed_at is None


def test_a_good_answer_moves_the_call_so_that_the_test_above_means_something(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    assert answer(visitor(world), hold, answer="approve").status_code == 302
    assert see(world, Call, call).state == CallState.QUEUED


@pytest.mark.rule("A5")
@pytest.mark.parametrize("method", ["get", "head", "options", "put", "delete"])
def test_nothing_but_a_post_decides(database: Postgres, method: str) -> None:
    """CASES A26."""
    world = a_world()
    call, hold = a_held_call(world)
    client = visitor(world)
    getattr(client, method)(f"{hold_url(hold)}?answer=approve&shown={shown_digest_of(client, hold)}")
    client.get(hold_url(hold), {"answer": "approve"}, headers={"Sec-Purpose": "prefetch"})
    assert see(world, Call, call).state == CallState.HELD


@pytest.mark.rule("A5")
def test_a_post_without_a_csrf_token_decides_nothing_and_says_to_reload(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    response = visitor(world, strict=True).post(hold_url(hold), {"answer": "approve"})
    assert response.status_code == 403
    assert "Reload the page" in text_of(response)
    assert see(world, Call, call).state == CallState.HELD


@pytest.mark.rule("A5")
def test_a_viewer_sees_why_the_buttons_are_off_and_is_refused_with_the_same_words(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    html = text_of(viewer.get(hold_url(hold)))
    assert html.count('disabled title="Operators decide; your role here is viewer."') == 4
    assert answer(viewer, hold, answer="approve").status_code == 403
    assert see(world, Call, call).state == CallState.HELD


@pytest.mark.rule("U6")
def test_the_starter_may_say_it_happened_or_stop_but_not_run_it_again(database: Postgres) -> None:
    world = a_world()
    starter = a_person(world.tenant, "sam", Role.OPERATOR)
    call, hold = an_unknown_call(type(world)(world.tenant, starter, world.node))
    with db.write(world.tenant):
        Membership.objects.filter(user_id=starter).update(role=Role.VIEWER)
    client = visitor(world, starter)
    assert text_of(client.get(hold_url(hold))).count("disabled title=") == 1
    assert answer(client, hold, answer="again").status_code == 403
    assert answer(client, hold, answer="happened", note="line 44").status_code == 302
    assert see(world, Call, call).state == CallState.HAPPENED


@pytest.mark.rule("A6")
def test_the_loser_of_two_answers_reads_who_what_and_when(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    ann = visitor(world, a_person(world.tenant, "ann", Role.OPERATOR))
    bob = visitor(world, a_person(world.tenant, "bob", Role.OPERATOR))
    seen = shown_digest_of(bob, hold)
    answer(ann, hold, answer="deny", note="not this invoice")
    late = bob.post(hold_url(hold), {"answer": "approve", "shown": seen}, follow=True)
    html = text_of(late)
    assert "Someone decided this call: <bdi" in html
    assert "denied by ann after" in html
    assert "not this invoice" in html
    assert "<time datetime=" in html
    assert see(world, Call, call).state == CallState.REFUSED


@pytest.mark.rule("A9")
def test_denying_takes_a_reason(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    response = answer(visitor(world), hold, answer="deny", note="  ")
    assert response.status_code == 422
    assert "reason" in text_of(response)
    assert see(world, Call, call).state == CallState.HELD


def test_a_text_that_is_too_long_is_refused_with_its_length_and_stays_in_its_field(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    response = answer(visitor(world), hold, answer="deny", note="far too long " * 400)
    assert response.status_code == 422
    assert "5,199 characters long; up to 4,000 are kept" in text_of(response)
    assert text_of(response).count("far too long") == 400
    assert see(world, Call, call).state == CallState.HELD


def test_a_card_that_changed_since_it_was_shown_is_not_answered(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    response = visitor(world).post(hold_url(hold), {"answer": "approve", "shown": "0" * 64})
    assert response.status_code == 409
    assert see(world, Call, call).state == CallState.HELD


def test_after_an_answer_its_own_page_says_what_came_of_it_and_leads_to_the_next(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    _, first = a_held_call(world)
    _, second = an_unknown_call(world)
    assert "It waits because of" in text_of(client.get(hold_url(first)))
    response = answer(client, first, answer="approve")
    assert response.headers["Location"].startswith(hold_url(first))
    seen = text_of(client.get(hold_url(first)))
    assert "You approved it." in seen
    assert "It waited because of" in seen
    assert "Next question" in seen
    assert hold_url(second) in seen


def test_an_empty_queue_says_what_its_reader_answered_and_a_denied_card_looks_otherwise(database: Postgres) -> None:
    world = a_world()
    client, ann = visitor(world), visitor(world, a_person(world.tenant, "ann", Role.OPERATOR))
    holds = [a_held_call(world)[1] for _ in range(3)]
    for hold in holds[:2]:
        answer(client, hold, answer="approve")
    assert "In the last hour" not in text_of(client.get("/approvals/"))  # while something waits
    answer(client, holds[2], answer="deny", note="no")
    assert "In the last hour, by you: 2 approved, 1 denied." in plain(text_of(client.get("/approvals/")))
    assert "In the last hour" not in text_of(ann.get("/approvals/"))
    denied, approved = text_of(client.get(hold_url(holds[2]))), text_of(client.get(hold_url(holds[0])))
    assert "shop.refund was denied" in plain(denied) and 'class="note tone-bad" role="status"' in denied
    assert "shop.refund was approved" in plain(approved) and 'class="note tone-ok" role="status"' in approved


def test_after_an_approval_its_page_says_that_the_call_runs_and_then_how_it_really_ended(database: Postgres) -> None:
    """CASES U07."""
    world = a_world()
    client = visitor(world)
    call, hold = a_held_call(world)
    answer(client, hold, answer="approve")

    def is_now() -> str:
        page = plain(text_of(client.get(hold_url(hold))))
        assert "You approved it." in page
        return page.split("the call is now ")[1].split(" ")[0]

    order = an_order(world, call)
    assert is_now() == "running"
    settle(world, order, an_outcome(End.ANSWERED))
    assert is_now() == "SUCCEEDED"


@pytest.mark.rule("K1")
@pytest.mark.rule("U6")
def test_run_it_again_sent_twice_from_a_reloaded_page_is_one_attempt_under_the_first_key(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES R10."""
    world = a_world()
    call = a_call(world, "charge")
    for _ in range(MAX_ATTEMPTS):
        made(world, call, an_outcome(End.BROKEN))
        move_clock(timedelta(seconds=30))
    client, hold = visitor(world), the_hold(world, call).pk
    key = see(world, Call, call).key
    assert key in text_of(client.get(hold_url(hold)))
    form = {"answer": "again", "shown": shown_digest_of(client, hold)}
    first, second = (client.post(hold_url(hold), form, follow=True) for _ in range(2))
    assert "You asked for one more attempt." in plain(text_of(first))
    assert second.status_code == 200 and "the call is now queued" in plain(text_of(second))
    order = an_order(world, call)
    assert (order.key, order.number) == (key, MAX_ATTEMPTS + 1)
    assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
    settle(world, order, an_outcome(End.ANSWERED))
    row = see(world, Call, call)
    assert (row.state, row.attempts_made, row.key) == (CallState.SUCCEEDED, MAX_ATTEMPTS + 1, key)


def test_a_hold_of_another_workspace_is_not_there(database: Postgres) -> None:
    ours, theirs = a_world("acme"), a_world("other")
    call, hold = a_held_call(theirs)
    client = visitor(ours)
    assert client.get(hold_url(hold)).status_code == 404
    assert client.post(hold_url(hold), {"answer": "approve"}).status_code == 404
    assert see(theirs, Call, call).state == CallState.HELD


def test_the_queue_is_oldest_first_and_filters_by_kind_agent_and_tool(database: Postgres) -> None:
    world = a_world()
    _, first = a_held_call(world)
    _, second = an_unknown_call(world)
    client = visitor(world)
    html = text_of(client.get("/approvals/"))
    rows = [hold_url(hold) for hold in (first, second)]
    assert 0 < html.index(f'href="{rows[0]}') < html.index(f'href="{rows[1]}')
    only = text_of(client.get("/approvals/", {"kind": "unknown"}))
    assert f'href="{rows[0]}' not in only and f'href="{rows[1]}' in only
    assert "Nothing waits for a person" in text_of(client.get("/approvals/", {"agent": "nobody"}))
    assert client.get("/approvals/", {"kind": "<script>"}).status_code == 200


@pytest.mark.rule("A5")
def test_no_key_and_no_forged_field_decides_on_any_address_of_the_queue(database: Postgres) -> None:
    """CASES A18."""
    world = a_world()
    call, hold = a_held_call(world)
    shown = ids.show(ids.HOLD, hold)
    seen = shown_digest_of(visitor(world), hold)
    program = Client(headers={"Authorization": f"Bearer oz0_{'x' * 40}"})
    forged = {"answer": "approve", "shown": seen, "person": str(world.person), "role": "admin", "approver": "pat-acme"}
    forged |= {"holds": shown, "card": f"{shown}:{seen}", "do": "approve", "arguments": "{}", "note": "yes"}
    places = [f"/approvals/{shown}/{more}" for more in ("", "group/", "edit/", "always/", "extend/", "ask-again/")]
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    for place in (*places, "/approvals/several/", "/settings/deciding/"):
        assert program.post(place, forged).status_code in (302, 401, 403), place
        assert viewer.post(place, forged).status_code != 200, place
    assert see(world, Call, call).state == CallState.HELD
    with db.read(world.tenant):
        assert not Hold.objects.exclude(state="open").exists()
