"""A notice of the browser itself: only for who asked for it by a click, only while nobody looks, and without a word of
what is asked."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import live
from tests.builders import World, a_call

pytestmark = pytest.mark.browser
STANDS_IN = """
window.told = []; window.asked = 0;
class Told { constructor(title, more) { window.told.push(title + ' ' + JSON.stringify(more)); } close() {} }
Told.permission = 'default';
Told.requestPermission = async () => { window.asked += 1; Told.permission = 'granted'; return 'granted'; };
window.Notification = Told;
Object.defineProperty(document, 'hidden', { get: () => window.away === true });
"""


def test_a_hidden_tab_tells_that_a_question_came_once_somebody_asked_for_it(page: Page, world: World) -> None:
    page.add_init_script(STANDS_IN)
    live(page, "/settings/notices/")
    page.evaluate("window.away = true")
    a_call(world, "refund", {"card": "4111-1111"})
    page.locator("#rail-count", has_text="1").wait_for()
    assert page.evaluate("[window.asked, window.told.length]") == [0, 0], "nobody asked for it"
    page.evaluate("window.away = false")
    page.get_by_role("button", name="Show notices on this computer").click()
    page.get_by_role("button", name="Show none on this computer").wait_for()
    a_call(world, "refund", {"card": "4111-1111"})
    page.locator("#rail-count", has_text="2").wait_for()
    assert page.evaluate("window.told.length") == 0, "somebody is looking"
    page.evaluate("window.away = true")
    a_call(world, "refund", {"card": "4111-1111"})
    page.locator("#rail-count", has_text="3").wait_for()
    (told,) = page.evaluate("window.told")
    assert told.startswith("3 questions wait ")
    assert "4111" not in told
    assert "refund" not in told
    page.get_by_role("button", name="Show none on this computer").click()
    a_call(world, "refund")
    page.locator("#rail-count", has_text="4").wait_for()
    assert page.evaluate("window.told.length") == 1
