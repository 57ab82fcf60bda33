"""Several questions answered together, and the filters, by keyboard alone (CASES A30)."""

import pytest
from playwright.sync_api import Page, expect

from jobs.models import Call
from tests.browser.conftest import live
from tests.builders import World, a_call, see

pytestmark = pytest.mark.browser


def test_several_are_ticked_counted_and_denied_by_keyboard_and_a_filter_without_rows_stays_shown(
    page: Page, world: World
) -> None:
    refunds = [a_call(world, "refund", {"n": number}) for number in range(3)]
    live(page, "/jobs/")
    page.keyboard.press("g")
    page.wait_for_url("**/approvals/**")
    page.get_by_label("Function").select_option("refund")
    page.wait_for_url("**function=refund**")
    expect(page.locator("main h1").first).to_be_focused()  # the filters are the next Tab, and letters work
    page.keyboard.press("m")
    page.wait_for_url("**/approvals/several/**")
    expect(page.locator("#ticked")).to_have_text("0 of 3 ticked")
    for key in ("j", "x", "j", "j", "Space"):
        page.keyboard.press(key)
    expect(page.locator("#ticked")).to_have_text("2 of 3 ticked")
    expect(page.locator("#tick-3")).to_be_focused()
    page.get_by_label("Reason, for the agents").fill("not these")
    page.get_by_role("button", name="Deny those ticked").press("Enter")
    expect(page.get_by_text("You denied 2 calls")).to_be_visible()
    assert [see(world, Call, call).state for call in refunds] == ["REFUSED", "held", "REFUSED"]
    page.keyboard.press("m")
    page.wait_for_url("**/approvals/?function=refund")
    page.goto(page.url.replace("refund", "nothing_of_this"))
    expect(page.get_by_text("Nothing waits for a person that fits")).to_be_visible()
    expect(page.get_by_label("Function")).to_have_value("nothing_of_this")
