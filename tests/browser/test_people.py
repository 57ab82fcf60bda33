"""People on their pages: invited, joined in another browser, given a token, and removed while their page is open."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Studio, live
from tests.builders import World

pytestmark = pytest.mark.browser


def test_somebody_is_invited_joins_makes_a_token_and_is_removed_while_looking(
    studio: Studio, browser: Browser, page: Page, world: World
) -> None:
    page.goto("/")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Invite somebody").click()
    page.get_by_label("operator").check()
    page.get_by_role("button", name="Make the invitation").click()
    link = page.get_by_label("The invitation's address").input_value()

    theirs = browser.new_context(base_url=studio.url)
    theirs.set_default_timeout(10_000)
    kim = theirs.new_page()
    kim.goto(link)
    expect(kim.get_by_text("invites you as operator")).to_be_visible()
    kim.get_by_label("Choose a name").fill("kim")
    kim.get_by_label("Choose a password").fill("quite a long one")
    kim.get_by_role("button", name="Join").click()
    expect(kim.get_by_text("You joined Acme")).to_be_visible()

    kim.goto("/settings/tokens/")
    kim.get_by_role("link", name="Make a token").click()
    kim.get_by_label("Name", exact=True).fill("nightly")
    kim.get_by_role("button", name="Make the token").click()
    token = kim.get_by_label("The token").input_value()
    answered = kim.request.get(
        "/api/v1/catalog/agents/clerk/tokens", headers={"Authorization": f"Bearer {token}", "Cookie": ""}
    )
    assert answered.status == 200
    live(kim, "/jobs/")

    page.goto("/settings/people/")
    page.get_by_role("link", name="Change kim").click()
    page.get_by_role("button", name="Remove kim").click()
    expect(page.get_by_text("kim is removed")).to_be_visible()
    expect(kim.locator("#connection")).to_have_text("Signed out: reload", timeout=5_000)
    assert (
        kim.request.get(
            "/api/v1/catalog/agents/clerk/tokens", headers={"Authorization": f"Bearer {token}", "Cookie": ""}
        ).status
        == 401
    )
    kim.goto("/jobs/")
    expect(kim.get_by_role("heading", name="Sign in")).to_be_visible()
    theirs.close()


def test_a_password_changed_on_its_page_keeps_this_tab_and_its_forms(page: Page, world: World) -> None:
    """CASES V10, V11: the token of the forms has changed with the password; pages opened before go on."""
    page.goto("/settings/you/")
    other = page.context.new_page()
    other.goto("/jobs/new/")
    page.get_by_label("New password").fill("quite a long one")
    page.get_by_label("The new one again").fill("quite a long one")
    page.get_by_role("button", name="Set it").click()
    expect(page.get_by_text("Your password is changed")).to_be_visible()
    other.get_by_label("Agent").select_option("clerk")
    other.get_by_role("button", name="Start").click()
    expect(other.locator("#job-page")).to_be_visible()
