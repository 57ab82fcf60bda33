"""Two people in two browsers at one question (RULES A6; CASES A10, A21, V05)."""

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from approvals.models import Decision
from base import db, ids
from catalog.operations import policies
from jobs.models import Call, Hold
from jobs.operations import work
from jobs.rules.states import CallState, HoldState
from tenants.models import Role
from tenants.rules.who import Actor
from tests.browser.conftest import Studio, live, sign_in
from tests.builders import World, a_held_call, a_person, a_rule, see
from tests.pages.visitors import hold_url, job_url
from tests.races import told

pytestmark = pytest.mark.browser

PAIRS = int(os.environ.get("BROWSER_RACES", "3"))
PRESS_AT = "(button, at) => { setTimeout(() => button.click(), at - Date.now()) }"


@pytest.fixture
def other(studio: Studio, browser: Browser, world: World) -> Iterator[Page]:
    """A second person's tab, in a browser of their own."""
    opened: BrowserContext = browser.new_context(base_url=studio.url, viewport={"width": 1280, "height": 860})
    opened.set_default_timeout(10_000)
    sign_in(opened, studio.url, a_person(world.tenant, "ann", Role.OPERATOR))
    yield opened.new_page()
    opened.close()


def press_together(first: Locator, second: Locator) -> None:
    """Both buttons are pressed in the same instant, by the clock that both browsers read."""
    at = first.evaluate("() => Date.now() + 400")
    for button in (first, second):
        button.evaluate(PRESS_AT, at)


@pytest.mark.rule("A6")
def test_of_two_who_press_at_once_one_decides_and_the_other_reads_who_it_was(
    page: Page, other: Page, world: World
) -> None:
    won: Counter[str] = Counter()
    for _ in range(PAIRS):
        call, hold = a_held_call(world)
        for tab in (page, other):
            live(tab, hold_url(hold))
        other.locator("#note-deny").fill("not today")
        press_together(page.locator("#answer-approve button.main"), other.locator("#answer-deny button.danger"))
        for tab in (page, other):
            tab.get_by_text("the call is now").wait_for()
        state = see(world, Call, call).state
        with db.read(world.tenant):
            (decision,) = Decision.objects.filter(hold_id=hold)
        winner, loser = (page, other) if decision.answer == "approve" else (other, page)
        assert state == (CallState.QUEUED if decision.answer == "approve" else CallState.REFUSED)
        expect(winner.get_by_role("status").filter(has_text="You ")).to_be_visible()
        expect(loser.get_by_text("Someone decided this call")).to_be_visible()
        won[decision.answer] += 1
    told("answers of two browsers", won)
    assert sum(won.values()) == PAIRS


@pytest.mark.rule("A6")
def test_of_an_approval_and_a_stop_in_two_browsers_whichever_came_first_wins(
    page: Page, other: Page, world: World
) -> None:
    won: Counter[str] = Counter()
    for _ in range(PAIRS):
        call, hold = a_held_call(world)
        live(page, hold_url(hold))
        live(other, job_url(see(world, Call, call).job_id))
        stop = other.locator("form[action$='/stop/'] button").first
        at = page.evaluate("() => Date.now() + 400")
        page.evaluate(
            "(at) => { setTimeout(() => document.querySelector('#answer-approve button').click(), at - Date.now()) }",
            at,
        )
        stop.evaluate("(button, at) => { setTimeout(() => button.click(), at - Date.now()) }", at)
        page.get_by_text("the call is now").wait_for()
        other.get_by_text("CANCELED").first.wait_for()
        question = see(world, Hold, hold)
        assert see(world, Call, call).state == CallState.CANCELED  # no node took it
        assert question.state in (HoldState.ANSWERED, HoldState.WITHDRAWN)
        won[question.state] += 1
    told("an approval and a stop of two browsers", won)


@pytest.mark.rule("A4")
def test_a_call_approved_while_its_policy_changes_in_another_browser_does_not_begin_against_the_new_one(
    page: Page, other: Page, world: World
) -> None:
    asks, refuses = a_rule("asks", "ask", tool="shop"), a_rule("refuses", "refuse", tool="shop")
    admin = Actor("pat", "test", world.person)
    forbids = policies.save(tenant=world.tenant, rules=[refuses], seen=0, note="never", by=admin)
    won: Counter[str] = Counter()
    newest = forbids
    for _ in range(PAIRS):
        newest = policies.save(tenant=world.tenant, rules=[asks], seen=newest, note="ask again", by=admin)
        call, hold = a_held_call(world)
        live(other, hold_url(hold))
        page.goto(f"/catalog/policy/versions/{forbids}/")
        page.locator("#note").fill("no more of these")
        restore = page.get_by_role("button", name=f"Restore version {forbids}")
        press_together(restore, other.locator("#answer-approve button.main"))
        page.get_by_text("is in force: the rules of version").wait_for()
        other.get_by_text("the call is now").wait_for()
        newest += 1
        assert work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new()) is None
        row = see(world, Call, call)
        assert (row.state, row.policy_number) == (CallState.REFUSED, newest)
        won[see(world, Hold, hold).state] += 1
    told("an approval and a policy change of two browsers", won)


def test_who_else_looks_is_named_and_forgotten_though_their_tab_goes_without_a_word(
    page: Page, other: Page, world: World
) -> None:
    """CASES V05."""
    _, hold = a_held_call(world)
    _, next_one = a_held_call(world)
    page.clock.install()
    live(page, hold_url(hold))
    expect(page.locator("#looking")).to_be_hidden()
    live(other, hold_url(hold))
    expect(page.locator("#looking")).to_have_text("Also looking at this now: ann")
    expect(other.locator("#looking")).to_contain_text("pat-acme", timeout=15_000)
    other.context.set_offline(True)  # its socket never closes in order
    other.close(run_before_unload=False)
    page.clock.run_for(60_000)
    expect(page.locator("#looking")).to_be_hidden()
    page.locator(f"#row-{ids.show(ids.HOLD, next_one)}").click()
    expect(page.locator(f"#card-{ids.show(ids.HOLD, next_one)}")).to_be_visible()
    expect(page.locator("#looking")).to_be_hidden()
