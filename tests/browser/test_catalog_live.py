"""Catalog pages follow what a node lists, without a reload."""

import pytest
from playwright.sync_api import Page, expect

from base import db
from catalog.models import Tool
from catalog.operations import listings
from catalog.rules.servers import MeasuredListing
from tests.browser.conftest import live
from tests.builders import World
from tests.catalogs import REMOTE, entries

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", ["/catalog/tools/", "/catalog/tools/shop/"])
def test_a_page_of_the_catalog_follows_what_is_listed(page: Page, world: World, path: str) -> None:
    with db.read(world.tenant):
        tool = Tool.objects.get().pk
    live(page, path)
    listings.not_measured(tenant=world.tenant, tool_id=tool, why="it ended with code 2")
    expect(page.get_by_text("it ended with code 2")).to_be_visible(timeout=4_000)  # sooner than any poll
    found = entries(REMOTE[0])
    listings.store(
        tenant=world.tenant, tool_id=tool, measured=MeasuredListing("d" * 64, "2025-06-18", "shop", "2", found)
    )
    expect(page.get_by_text("it ended with code 2")).to_have_count(0, timeout=4_000)
    page.goto("/catalog/functions/")
    expect(page.get_by_role("link", name=f"shop.{found[0].name}")).to_be_visible()
