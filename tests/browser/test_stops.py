"""Stopping in a real browser: a switch thrown over running work, and a group that does not grow under one's hand."""

import re

import pytest
from playwright.sync_api import Page, expect

from base import ids
from jobs.models import Call
from jobs.rules.orders import End
from jobs.rules.states import CallState
from tests.browser.conftest import live, read
from tests.browser.same import assert_live_equals_fresh
from tests.builders import World, a_call, a_held_call, an_order, an_outcome, an_unknown_call, see, settle
from tests.pages.visitors import hold_url

pytestmark = pytest.mark.browser
PATIENT = 30_000  # milliseconds for what takes a transaction a call


@pytest.mark.rule("L7")
def test_a_switch_counts_along_is_thrown_and_says_what_still_stops(page: Page, world: World) -> None:
    first = an_order(world, a_call(world, "note"))
    a_held_call(world)
    live(page, "/catalog/tools/shop/")
    page.get_by_role("link", name="Stop or pause…", exact=True).click()
    stop = page.locator("#choose-kill")
    expect(stop).to_contain_text("Stops 1 running call.")
    page.locator("#connection", has_text="Live").wait_for()
    stop.get_by_label("Why").fill("it books twice")
    second = an_order(world, a_call(world, "note"))
    expect(stop).to_contain_text("Stops 2 running calls.")
    expect(stop.get_by_label("Why")).to_have_value("it books twice")  # what was typed stays
    stop.get_by_role("button", name="Stop it now").click()
    page.wait_for_url(re.compile("/catalog/switches/switch_"))
    expect(page.locator(".messages")).to_contain_text("Told 2 running calls to stop.")
    expect(page.locator("#switch-page")).to_contain_text("2 calls: they have not ended yet")
    live(page, page.url)
    settle(world, first, an_outcome(End.STOPPED))
    settle(world, second, an_outcome(End.NOT_MADE))
    expect(page.locator("#switch-page")).to_contain_text("3 calls ended CANCELED, 1 of them may have acted before")
    assert_live_equals_fresh(page)
    expect(page.locator("#rail")).to_contain_text("Switches1")
    page.get_by_role("button", name="Lift it").click()
    expect(page.locator(".messages")).to_contain_text("Lifted.")
    expect(page.locator("#rail")).not_to_contain_text("Switches1")


@pytest.mark.rule("U7")
def test_a_group_does_not_grow_under_the_hand_that_answers_it(page: Page, world: World) -> None:
    calls = [an_unknown_call(world) for _ in range(4)]
    live(page, f"{hold_url(calls[0][1])}group/")
    expect(page.locator("#question")).to_contain_text("Did these 4 calls of shop happen?")
    note = page.get_by_label("The result of every one of them")
    note.fill("all are in the ledger")
    late, hold = an_unknown_call(world)
    expect(page.locator("#question")).to_contain_text("1 more came since you opened this.")
    expect(page.locator(".waiting.many")).to_contain_text("5 calls of shop")
    expect(page.locator("#rail-count")).to_have_text("5")
    expect(note).to_have_value("all are in the ledger")
    page.locator("#question h1").click()  # out of the text
    read(page)
    page.keyboard.press("h")
    expect(page.locator(".messages")).to_contain_text("You said that 4 calls happened.", timeout=PATIENT)
    assert {see(world, Call, call).state for call, _ in calls} == {CallState.HAPPENED}
    assert see(world, Call, late).state == CallState.UNKNOWN
    expect(page.locator(f"#row-{ids.show(ids.HOLD, hold)}")).to_be_visible()  # too few for a group now
    page.keyboard.press("h")
    expect(page.locator("#question")).to_contain_text("No question is open")
    assert see(world, Call, late).state == CallState.UNKNOWN
