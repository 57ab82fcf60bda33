"""A question's arguments beside those of earlier calls, on its card and in the list (RULES A3, A14; CASES A30)."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.queries.compared import new_in
from base import db
from catalog.models import Tool
from jobs.models import Hold
from studio.embedded import Postgres
from tenants.models import Role
from tests.builders import a_call, a_person, a_world, the_hold
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
    assert "new value; before: ACME Ltd" in plain(html)
    assert "x never given before" in plain(html)
    assert "U+202E, right-to-left override: on other screens it is not seen and turns around" in plain(html)
    listed = plain(html.split('id="question"')[0])
    assert "to new value, amount never before above 15, fee_to never given before" in listed
    assert html.count('class="remark new tone-wait"><svg') == 4  # one in the list, three on the card
    ordinary = plain(text_of(client.get(hold_url(the_hold(world, calls[-1]).pk))))
    assert "10 to 14 before" in ordinary and "always so before" in ordinary
    assert "never" not in ordinary.split("Alike before")[0].split("It will run with")[1]
    with db.write(world.tenant):
        Tool.objects.update(sensitive=True)
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    assert "remark" not in text_of(viewer.get(hold_url(the_hold(world, odd).pk)))
    with db.read(world.tenant), CaptureQueriesContext(connection) as asked:
        new_in([hold.call for hold in Hold.objects.select_related("call")])
    assert len(asked) == 2  # the questions, and one for all of them
