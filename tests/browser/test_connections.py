"""A connection on its pages: added, signed in at a real provider in the same browser, and out again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.builders import World
from tests.servers.guarded import Guarded, a_guarded_server

pytestmark = pytest.mark.browser


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with a_guarded_server() as server:
        yield server


def test_an_admin_adds_a_connection_signs_in_at_its_provider_and_out_again(
    page: Page, world: World, guarded: Guarded
) -> None:
    page.goto("/")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Connections").click()
    page.get_by_role("link", name="Add a connection").click()
    page.get_by_label("Name", exact=True).fill("guarded")
    page.get_by_label("Address of its server").fill(guarded.url)
    page.get_by_label("Also allowed").fill(guarded.place)
    page.get_by_label("What its server is shown").select_option("oauth")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Nobody is signed in")).to_be_visible()

    page.get_by_role("button", name="Sign in").click()  # leaves for the provider, which sends back at once
    expect(page.get_by_text("Signed in.", exact=False).first).to_be_visible(timeout=30_000)  # loads what it talks with
    expect(page.get_by_text("papers")).to_be_visible()
    assert "/oauth/" not in page.url and "code=" not in page.url
    assert [path for path in guarded.asked if path in ("/authorize", "/token")] == ["/authorize", "/token"]

    page.get_by_role("button", name="Sign out").last.click()
    expect(page.get_by_text("here and at the provider")).to_be_visible(timeout=30_000)
    assert len(guarded.revoked) == 2


def test_a_provider_with_an_odd_sign_in_address_is_never_gone_to(page: Page, world: World, guarded: Guarded) -> None:
    guarded.says["/.well-known/oauth-authorization-server"] = (
        200,
        guarded.metadata(authorization_endpoint="javascript:document.title='gone'"),
    )
    page.goto("/settings/connections/new/")
    page.get_by_label("Name", exact=True).fill("guarded")
    page.get_by_label("Address of its server").fill(guarded.url)
    page.get_by_label("Also allowed").fill(guarded.place)
    page.get_by_label("What its server is shown").select_option("oauth")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("sign-in address is refused", timeout=30_000)
    assert "gone" not in page.title()
