"""Plugins in a real browser: a pack uploaded to the real server, one refused, and one removed and brought back."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from catalog.rules.packs import pack
from tests.builders import World
from tests.rules.good_pack import FILES
from tests.rules.hostile_packs import E, built

pytestmark = pytest.mark.browser
PATIENT = 40_000  # milliseconds for a page of a busy machine


def test_a_pack_is_uploaded_a_hostile_one_refused_and_a_plugin_removed_and_brought_back(
    page: Page, world: World, tmp_path: Path
) -> None:
    page.set_default_timeout(PATIENT)
    (tmp_path / "evil.oz0.zip").write_bytes(built(E("../x")))
    (tmp_path / "shelf.oz0.zip").write_bytes(b"".join(pack({**FILES, "big.txt": b"text " * 1_000_000})))
    page.goto("/catalog/plugins/")
    page.get_by_role("link", name="Upload a pack").click()
    page.locator("#pack").set_input_files(tmp_path / "evil.oz0.zip")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("../x leads out of the plugin's folder", timeout=PATIENT)
    page.locator("#pack").set_input_files(tmp_path / "shelf.oz0.zip")
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/catalog/plugins/shelf/", timeout=PATIENT)
    expect(page.locator(".messages")).to_contain_text("shelf 1.0.0 is current now", timeout=PATIENT)
    page.get_by_role("link", name="Remove…").click()
    page.get_by_role("button", name="Remove it now").click()
    page.wait_for_url("**/catalog/plugins/shelf/", timeout=PATIENT)
    page.get_by_role("button", name="Bring it back").click()
    expect(page.locator(".messages")).to_contain_text("shelf 1.0.0 is current now", timeout=PATIENT)
