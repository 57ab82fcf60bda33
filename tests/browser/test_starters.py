"""Routines, hooks and `oz0 login` by hand: a wrong input first, which loses nothing, then the right one and its end."""

import hashlib
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from base import db, ids
from jobs.models import Hook, Routine
from jobs.rules.starters import Standing
from tenants.models import LoginAsk
from tenants.operations import logins
from tests.builders import World
from tests.catalogs import an_agent_of

pytestmark = pytest.mark.browser
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@pytest.fixture(autouse=True)
def keeper(world: World) -> None:
    """An agent with inputs."""
    an_agent_of(world, "keeper", "shop.*", input={"account": "A-1", "note": "by itself"})


def assert_in_order(page: Page) -> None:
    """Axe finds nothing in light and in dark, and the page is no wider than a phone."""
    for scheme, size in (("dark", DESK), ("light", PHONE)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a word of two that it knows
        page.set_viewport_size(size)  # type: ignore[arg-type]
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.set_viewport_size(DESK)  # type: ignore[arg-type]


def saved(page: Page) -> None:
    page.get_by_role("button", name="Save").last.click()


def test_a_routine_is_made_paused_and_removed_by_hand(page: Page, world: World) -> None:
    page.goto("/routines/")
    page.get_by_role("link", name="Make the first routine").click()
    page.get_by_label("Name").fill("Sums of the day")
    page.get_by_label("Agent", exact=True).select_option("keeper")
    page.get_by_label("account").fill("A-12")
    page.get_by_label("Time zone").fill("Europe/Zurich")
    page.get_by_label("When").fill("61 * * * *")
    expect(page.locator("#when")).to_have_class(re.compile("tone-bad"))  # said while it is typed
    saved(page)
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
    expect(page.get_by_label("When")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#when")).to_contain_text("Its minute cannot be read")
    expect(page.get_by_label("account")).to_have_value("A-12")
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Zurich")
    assert_in_order(page)
    page.get_by_label("When").fill("30 7 * * MON-FRI")
    expect(page.locator("#when")).to_contain_text("07:30")
    saved(page)
    page.wait_for_url("**/routines/rout*/")
    expect(page.locator("#routine-page")).to_contain_text("A-12")
    assert_in_order(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    expect(page.locator("#routine-page .head")).to_contain_text("paused")
    page.goto("/routines/")
    assert_in_order(page)
    page.get_by_role("link", name="Sums of the day").click()
    page.get_by_text("Remove…").click()
    page.get_by_role("button", name="Remove this routine").click()
    page.wait_for_url("**/routines/")
    expect(page.locator("#routines-list")).to_contain_text("No routine yet")
    with db.read(world.tenant):
        assert Routine.objects.get().standing == Standing.REMOVED


def test_a_hook_is_made_paused_and_removed_by_hand(page: Page, world: World) -> None:
    page.goto("/events/")
    page.get_by_role("link", name="Make the first hook").click()
    page.get_by_label("Name").fill("Orders")
    page.get_by_label("Agent", exact=True).select_option("keeper")
    page.get_by_label("Where account comes from").select_option("event")
    page.get_by_label("Place or value of account").fill("order")
    saved(page)
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
    place = page.get_by_label("Place or value of account")
    expect(place).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("group", name="account")).to_contain_text("begins with a slash")
    expect(place).to_have_value("order")
    expect(page.get_by_label("Name")).to_have_value("Orders")
    assert_in_order(page)
    place.fill("/order/account")
    page.get_by_text("Try it with an example of an event").click()
    page.get_by_label("Its JSON").fill('{"order": {"account": "A-12"}}')
    page.get_by_role("button", name="Show what it gives").click()
    expect(page.locator("#hook-form")).to_contain_text('"A-12"')
    assert_in_order(page)
    saved(page)
    expect(page.locator("#secret-shown")).to_contain_text("whsec_")
    assert_in_order(page)
    page.reload()
    with db.read(world.tenant):
        hook = ids.show(ids.HOOK, Hook.objects.get().pk)
    page.goto(f"/events/{hook}/")
    expect(page.locator("#deliveries")).to_contain_text("Nothing came yet")
    assert "whsec_" not in page.content(), "it is shown once"
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    page.goto("/events/")
    expect(page.locator("#hooks-list")).to_contain_text("paused")
    assert_in_order(page)
    page.get_by_role("link", name="Orders").click()
    page.get_by_text("Remove…").click()
    page.get_by_role("button", name="Remove this hook").click()
    page.wait_for_url("**/events/")
    expect(page.locator("#hooks-list")).to_contain_text("No hook yet")
    with db.read(world.tenant):
        assert Hook.objects.get().standing == Standing.REMOVED


def a_login(code: str) -> str:
    challenge = hashlib.sha256(code.encode()).hexdigest()
    return ids.show(ids.LOGIN, logins.ask(challenge=challenge, code=code, machine="laptop", address="10.0.0.7").id)


def test_a_command_is_allowed_or_refused_on_its_page(page: Page, world: World) -> None:
    mine, theirs = a_login("ABCDEFGH"), a_login("JKLMNPQR")
    page.goto(f"/login/{mine}/")
    expect(page.locator(".login-code")).to_have_text("ABCD-EFGH")
    assert_in_order(page)
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("region", name="Login")).to_contain_text("It is allowed")
    assert_in_order(page)
    page.goto(f"/login/{theirs}/")
    page.get_by_role("button", name="It was not me").click()
    expect(page.get_by_role("region", name="Login")).to_contain_text("It was refused")
    page.goto(f"/login/{mine}/")  # opened once more it says what became of it, and asks nothing
    expect(page.get_by_role("button", name="Allow")).to_have_count(0)
    said = dict(LoginAsk.objects.values_list("code", "allowed"))
    assert (said["ABCDEFGH"], said["JKLMNPQR"]) == (True, False)
