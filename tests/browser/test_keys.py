"""The queue by keyboard, and untrusted text that tries to act (CASES S05, S06, A34)."""

import re

import pytest
from playwright.sync_api import Page, Request, Route, expect

from base import ids
from jobs.models import Call
from jobs.rules.orders import End
from tests.browser.conftest import live, read
from tests.builders import World, a_call, a_held_call, an_outcome, an_unknown_call, made, see, the_hold
from tests.pages.visitors import hold_url

pytestmark = pytest.mark.browser


def test_j_k_move_a_approves_d_goes_to_the_reason_first(page: Page, world: World) -> None:
    calls = [a_held_call(world) for _ in range(3)]
    shown = [ids.show(ids.HOLD, hold) for _, hold in calls]
    live(page, hold_url(calls[0][1]))
    page.keyboard.press("j")
    expect(page.locator(f"#card-{shown[1]}")).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator(f"#card-{shown[0]}")).to_be_visible()
    expect(page.locator("#question h1")).to_be_focused()
    read(page)
    page.keyboard.press("a")
    expect(page.get_by_text("You approved it")).to_be_visible()
    page.keyboard.press("a")  # a second one finds no question: the next is opened by hand
    page.keyboard.press("j")
    expect(page.locator(f"#card-{shown[1]}")).to_be_visible()
    read(page)
    assert see(world, Call, calls[0][0]).state == "queued"
    assert see(world, Call, calls[1][0]).state == "held"
    page.keyboard.press("d")
    expect(page.get_by_label("Reason, for the agent")).to_be_focused()
    page.keyboard.type("a deed")
    assert see(world, Call, calls[1][0]).state == "held"
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    page.keyboard.press("d")  # no letter comes into the words
    expect(page.get_by_label("Reason, for the agent")).to_have_value("a deed")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("You denied it")).to_be_visible()
    expect(page.locator("#question h1")).to_have_text("shop.refund was denied")
    expect(page.locator("#question h1")).to_be_focused()
    assert see(world, Call, calls[1][0]).state == "REFUSED"


def test_h_says_it_happened(page: Page, world: World) -> None:
    call, hold = an_unknown_call(world)
    live(page, hold_url(hold))
    page.keyboard.press("h")
    expect(page.get_by_text("You said it happened")).to_be_visible()
    assert see(world, Call, call).state == "HAPPENED"


def test_keys_can_be_switched_off(page: Page, world: World) -> None:
    call, hold = a_held_call(world)
    live(page, hold_url(hold))
    page.keyboard.press("?")
    switch = page.get_by_label("Single letters answer on this browser")
    expect(switch).to_be_focused()
    expect(page.locator("#keys dt:visible")).to_contain_text(["a", "e", "d"])
    expect(page.locator("#keys").get_by_text("it happened")).to_be_hidden()  # which answers nothing here
    switch.uncheck()
    page.keyboard.press("?")
    expect(switch).to_be_hidden()
    page.keyboard.press("a")
    expect(page.locator("#told")).to_have_text("Single letters are off on this browser. ? turns them on.")
    page.reload()
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    assert see(world, Call, call).state == "held"


A_QUESTION = re.compile("/approvals/hold_")


def test_an_answer_pressed_while_the_next_question_loads_is_told_and_holds_the_next_step_back(
    page: Page, world: World
) -> None:
    """What stands there meanwhile is an answered question, without any answer of its own."""
    calls = [a_call(world, "refund", {"n": number}) for number in range(3)]
    live(page, "/approvals/")
    read(page)
    page.keyboard.press("a")
    expect(page.locator("#question")).to_contain_text("approved")
    slow: list[Route] = []
    page.route(A_QUESTION, lambda route: slow.append(route))
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("#told")).to_have_text("Still loading: nothing was answered.")
    page.keyboard.press("j")
    expect(page.locator("#told")).to_contain_text("Not moved on: your last press answered nothing")
    until_routed(page, slow, ids.show(ids.HOLD, the_hold(world, calls[1]).pk)).continue_()
    expect(page.locator(f"#card-{ids.show(ids.HOLD, the_hold(world, calls[1]).pk)}")).to_be_visible()
    assert see(world, Call, calls[1]).state == "held"


def test_no_press_answers_a_card_before_the_chosen_one_stands_there_and_could_be_read(page: Page, world: World) -> None:
    calls = [a_call(world, "refund", {"n": number}) for number in range(5)]
    shown = [ids.show(ids.HOLD, the_hold(world, call).pk) for call in calls]
    cards = [page.locator(f"#card-{one}") for one in shown]
    rows = page.locator("#waiting-list [data-row]")
    live(page, "/approvals/")
    slow: list[Route] = []
    page.route(A_QUESTION, lambda route: slow.append(route))
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("#told")).to_have_text("Still loading: nothing was answered.")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    expect(cards[0]).to_be_visible()
    page.locator("#answer-approve button").click()
    page.locator("#answer-deny").get_by_role("button", name="Not needed any more.").click()
    page.keyboard.press("j")
    expect(page.locator("#told")).to_contain_text("Not moved on: your last press answered nothing")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("j")
    page.keyboard.press("j")  # the outline goes with every press, and one request is left
    expect(rows.nth(3)).to_have_attribute("aria-current", "true")
    expect(page.locator("#waiting-list [aria-current]")).to_have_count(1)
    page.keyboard.press("s")
    last = until_routed(page, slow, shown[3])
    assert {route.request.method for route in slow} == {"GET"}
    page.clock.install()
    last.continue_()
    expect(cards[3]).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator("#told")).to_contain_text("Only just shown: nothing was answered.")
    page.locator("#answer-approve button").click()
    page.clock.run_for(400)
    read(page)
    assert {see(world, Call, call).state for call in calls} == {"held"}
    page.unroute(A_QUESTION)
    page.keyboard.press("a")
    expect(page.get_by_text("You approved it")).to_be_visible()
    assert [see(world, Call, call).state for call in calls] == ["held", "held", "held", "queued", "held"]
    page.keyboard.press("j")  # the one below the answered, and not the first again
    expect(cards[4]).to_be_visible()
    read(page)
    page.keyboard.press("1")
    expect(page.get_by_label("Reason, for the agent")).to_have_value("Not needed any more.")
    page.get_by_label("Reason, for the agent").fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    page.keyboard.press("4")
    expect(page.get_by_label("Reason, for the agent")).to_have_value("Do it another way, without this call.")
    assert see(world, Call, calls[4]).state == "held"
    page.set_viewport_size({"width": 390, "height": 844})
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("You denied it")).to_be_in_viewport(ratio=1)  # on a phone, too, it is not below the list
    expect(page.get_by_role("link", name="Nothing waits below. Back to the first: shop.refund n 0")).to_be_visible()
    page.keyboard.press("j")
    expect(cards[0]).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(cards[1]).to_be_visible()
    read(page)
    page.keyboard.press("s")
    expect(page.locator("#told")).to_contain_text("Press s once more")
    assert see(world, Call, calls[1]).state == "held"
    page.keyboard.press("d")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#told")).to_have_text("A reason is missing: the agent reads it. Nothing was sent.")


def until_routed(page: Page, slow: list[Route], shown: str) -> Route:
    """The request for this question; Playwright hears of it only while it waits for something of the page."""
    for _ in range(300):
        if found := [route for route in slow if shown in route.request.url]:
            return found[-1]
        page.evaluate("() => new Promise((go) => requestAnimationFrame(go))")
    raise AssertionError(f"no request for {shown} came")


HOSTILE = "</pre></bdi><img src='https://canary.example/a'><svg onload=window.hurt=1><iframe srcdoc='<script>parent.hurt=1</script>'></iframe>![](https://canary.example/b)"


@pytest.mark.rule("A13")
def test_hostile_text_runs_nothing_and_asks_nobody(page: Page, world: World) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if "127.0.0.1" not in request.url:
            asked.append(request.url)

    page.on("request", note)
    call = a_call(world, "look", {HOSTILE: HOSTILE})
    made(world, call, an_outcome(End.ANSWERED, text=HOSTILE))
    held = a_call(world, "refund", {"x": HOSTILE})
    job = see(world, Call, call).job_id
    for path in (f"/jobs/{ids.show(ids.JOB, job)}/?call={ids.show(ids.CALL, call)}", "/approvals/", "/jobs/"):
        live(page, path)
        assert page.evaluate("window.hurt") is None
        assert page.locator("main img, main iframe, main script").count() == 0
    assert not asked
    assert held


def test_however_far_down_the_list_a_question_is_its_card_is_in_view_and_a_nudge_moves_nothing(
    page: Page, world: World
) -> None:
    calls = [a_call(world, "refund", {"n": number}) for number in range(24)]
    live(page, "/approvals/")
    for number in range(1, 19):
        page.keyboard.press("j")
        expect(page.locator(f"#card-{ids.show(ids.HOLD, the_hold(world, calls[number]).pk)}")).to_be_visible()
    for seen in (page.locator("#question h1"), page.locator("#waiting-list [aria-current]")):
        expect(seen).to_be_in_viewport()
    page.mouse.wheel(0, 300)
    page.wait_for_function("scrollY > 0")
    before = page.evaluate("scrollY")
    a_held_call(world)
    expect(page.locator("#rail-count")).to_have_text("25")
    assert page.evaluate("scrollY") == before
