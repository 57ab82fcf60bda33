"""Editing and answering with only the keyboard, in a browser (RULES A9; DESIGN 7)."""

import pytest
from playwright.sync_api import Page, expect

from jobs.models import Call
from tests.browser.conftest import live
from tests.builders import World, a_call, a_held_call, a_policy, a_rule, an_order, see, the_hold
from tests.pages.visitors import hold_url

pytestmark = pytest.mark.browser


@pytest.mark.rule("A9")
def test_e_opens_the_form_and_the_edit_is_seen_and_approved_by_keyboard(page: Page, world: World) -> None:
    a_policy(world, a_rule("careful", "ask", function="ship"))
    call = a_call(world, "ship", {"order": 7})
    live(page, hold_url(the_hold(world, call).pk))
    page.keyboard.press("e")
    field = page.get_by_label("order whole number")
    field.fill("none")
    field.press("Enter")
    expect(page.locator("#edit-error")).to_contain_text("$.order")
    expect(field).to_have_value("none")
    field.fill("12")
    field.press("Enter")
    expect(page.get_by_text("It runs with these, once")).to_be_visible()
    page.get_by_role("button", name="Approve what you see").press("Enter")
    expect(page.get_by_text("You edited its arguments and approved it.")).to_be_visible()
    assert an_order(world, call).arguments == {"order": 12}


def test_the_list_does_not_move_while_others_answer_and_a_reason_is_one_press(page: Page, world: World) -> None:
    holds = [a_held_call(world) for _ in range(3)]
    live(page, hold_url(holds[2][1]))
    other = page.context.new_page()
    live(other, hold_url(holds[0][1]))
    other.get_by_role("button", name="Not needed any more.").click()
    expect(other.get_by_text("You denied it")).to_be_visible()
    expect(page.locator(".waiting.closed")).to_have_count(1)
    assert page.locator("#waiting-list .waiting").first.get_attribute("class") == "waiting closed"
    expect(page.get_by_text("2 waiting")).to_be_visible()
    assert see(world, Call, holds[0][0]).detail == "Not needed any more."
    other.close()
