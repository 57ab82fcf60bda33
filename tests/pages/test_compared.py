"""A question's arguments beside those of earlier calls, on its card and in the list (RULES A3, A14; CASES A30)."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.queries.compared import new_in
from approvals.queries.same import same_calls
from base import db, ids
from catalog.models import Tool
from jobs.models import Hold
from jobs.rules.orders import End, Outcome
from studio.embedded import Postgres
from tenants.models import Role
from tests.builders import (
    World,
    a_call,
    a_function,
    a_node,
    a_person,
    a_policy,
    a_rule,
    a_tenant,
    a_tool,
    a_world,
    an_agent,
    an_outcome,
    made,
    the_hold,
)
from tests.pages.visitors import answer, hold_url, plain, text_of, visitor


@pytest.mark.rule("A3")
def test_a_card_and_its_row_tell_what_no_earlier_call_had_and_nothing_else(database: Postgres) -> None:
    """CASES A30."""
    world = a_world()
    client = visitor(world)
    calls = [a_call(world, "refund", {"amount": amount, "to": "ACME Ltd"}) for amount in range(10, 16)]
    refused = a_call(world, "refund", {"amount": 5_000_000, "to": "ACME Ltd"})
    answer(client, the_hold(world, refused).pk, answer="deny", note="no")  # and so nothing to compare with
    odd = a_call(world, "refund", {"amount": 900_000, "to": "ACME\u202e dtL", "fee_to": "x"})
    html = text_of(client.get(hold_url(the_hold(world, odd).pk)))
    assert "900000 never before above 15" in plain(html)
    assert "never before; earlier: ACME Ltd" in plain(html)
    assert "x never given before" in plain(html)
    assert "U+202E, right-to-left override: on other screens it is not seen and turns around" in plain(html)
    listed = plain(html.split('id="question"')[0])
    assert "to never before, amount never before above 15, fee_to never given before" in listed
    assert html.count('class="remark new tone-wait"><svg') == 4  # one in the list, three on the card
    ordinary = plain(text_of(client.get(hold_url(the_hold(world, calls[-1]).pk))))
    assert "10 to 14 before" in ordinary and "in all 5 before" in ordinary
    assert "never" not in ordinary.split("Alike before")[0].split("It will run with")[1]
    with db.write(world.tenant):
        Tool.objects.update(sensitive=True)
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    assert "remark" not in text_of(viewer.get(hold_url(the_hold(world, odd).pk)))
    with db.read(world.tenant), CaptureQueriesContext(connection) as asked:
        calls = [hold.call for hold in Hold.objects.select_related("call")]
        assert len(new_in(calls)) == len(calls) - 1 and not same_calls(calls)
    assert len(asked) == 3  # the questions, and one for each fact about all of them


PAYMENT = {
    "type": "object",
    "properties": {name: {} for name in ("vendor", "invoice", "amount", "iban", "memo")},
    "required": ["vendor", "invoice", "amount", "iban"],
}
IBANS = {"Acme": "DE44", "Northlight\u202e Energy": "DE21", "Rapid": "FR76"}


def a_payment(world: World, vendor: str, number: int, amount: float, iban: str = "") -> UUID:
    given = {"iban": iban or IBANS[vendor], "memo": "m", "amount": amount, "vendor": vendor, "invoice": f"INV-{number}"}
    return a_call(world, "pay", given)


def a_payer() -> World:
    """A world whose tool pays invoices, of which nine were paid."""
    tenant = a_tenant()
    person = a_person(tenant)
    a_tool(tenant, [a_function("pay", {"readOnlyHint": False, "destructiveHint": True}, schema=PAYMENT)])
    an_agent(tenant)
    world = World(tenant, person, a_node())
    for number in range(9):
        a_payment(world, list(IBANS)[number % 3], number, 900 + number)
    return world


@pytest.mark.rule("A3")
@pytest.mark.rule("A13")
def test_a_value_that_others_had_is_told_where_it_was_never_beside_another_of_its_call(database: Postgres) -> None:
    """CASES A30."""
    world = a_payer()
    client = visitor(world)
    a_payment(world, "Acme", 20, 18_940, iban="LT60")
    fraud = a_payment(world, "Northlight\u202e Energy", 21, 18_940, iban="LT60")
    page = text_of(client.get(hold_url(the_hold(world, fraud).pk)))
    html, card = page.split('id="question"')
    told = "never before with vendor NorthlightU+202E Energy"
    assert f"LT60 {told}; earlier: DE21" in plain(card)
    assert "never before above 907 with vendor NorthlightU+202E Energy" in plain(card)
    assert "NorthlightU+202E Energy in 3 of 10 before" in plain(card)
    listed = plain(html.split(f'id="row-{ids.show(ids.HOLD, the_hold(world, fraud).pk)}"')[1])
    assert f"iban {told}" in listed and "amount never before above 907 with" in listed
    order = ["vendor", "invoice", "amount", "iban", "memo"]
    values, brief = card.split('<dl class="values">')[1].split("</dl>")[0], html.split('class="brief"')[-1]
    assert [plain(one).strip() for one in re.findall("<dt>(.*?)</dt>", values)] == order
    assert [plain(one).strip() for one in re.findall("<b>(.*?)</b>", brief.split("</code>")[0])] == order


@pytest.mark.rule("A3")
def test_a_call_that_was_made_already_with_the_same_arguments_says_so_loudly(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES A30."""
    world = a_world()
    client = visitor(world)
    a_policy(world, a_rule("all", "ask", kind=["read", "destructive"]))

    def told(call: UUID) -> str:
        page = text_of(client.get(hold_url(the_hold(world, call).pk)))
        html, card = page.split('id="question"')
        row = html.split(f'id="row-{ids.show(ids.HOLD, the_hold(world, call).pk)}"')[1].split("</a>")[0]
        found = [re.findall(r"The same call .*? ago\.", plain(part)) for part in (row, card)]
        assert found[0] == found[1]
        return re.sub(r" \d+ s ago", " ago", " ".join(found[0]))

    def paid(arguments: dict[str, Any], outcome: Outcome | None, function: str = "refund") -> UUID:
        call = a_call(world, function, arguments)
        answer(client, the_hold(world, call).pk, answer="approve")
        if outcome:
            made(world, call, outcome)
        return call

    first = paid({"invoice": 1, "amount": 5}, an_outcome(End.ANSWERED))
    failed = a_call(world, "refund", {"invoice": 9})
    answer(client, the_hold(world, failed).pk, answer="deny", note="no")
    paid({"invoice": 3}, an_outcome(End.BROKEN))
    paid({"invoice": 4}, None)
    paid({"invoice": 1}, an_outcome(End.ANSWERED), "look")
    move_clock(timedelta(minutes=10))
    again = a_call(world, "refund", {"amount": 5, "invoice": 1})
    assert told(again) == "The same call SUCCEEDED 10 m ago."
    assert ids.show(ids.CALL, first) in text_of(client.get(hold_url(the_hold(world, again).pk))).split("same-call")[1]
    assert told(a_call(world, "refund", {"invoice": 1, "amount": 6})) == ""
    assert told(a_call(world, "refund", {"invoice": 9})) == ""  # nobody let the first one run
    assert told(a_call(world, "refund", {"invoice": 3})) == "The same call may have acted already, 10 m ago."
    assert told(a_call(world, "refund", {"invoice": 4})) == "The same call is queued, asked for 10 m ago."
    assert told(a_call(world, "look", {"invoice": 1})) == ""  # to read again is no danger
