"""A tab of somebody who opened the link that a start printed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.faults.studios import Studio

PATIENT: Final = 60_000  # milliseconds for what several processes bring about


@contextmanager
def signed_in(browser: Browser, studio: Studio, *, patient: int = PATIENT, height: int = 900) -> Iterator[Page]:
    """The tab, 1280 wide, without motion, light, in UTC. It waits `patient` milliseconds for what it looks for."""
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{studio.port}",
        viewport=ViewportSize(width=1280, height=height),
        color_scheme="light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(patient)
    expect.set_options(timeout=patient)
    page = context.new_page()
    assert studio.link is not None
    page.goto(studio.link)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    yield page
    context.close()
