"""Live equals fresh: what a patched page shows is what a new GET shows (STYLE 23)."""

import difflib
import re
import time
from typing import Final

from playwright.sync_api import Page

SOON: Final = 5.0  # seconds; the page reads everything again every 15
MAIN = """() => { const main = document.querySelector('main').cloneNode(true);
for (const clock of main.querySelectorAll('[data-elapsed], [data-countdown]')) {
  clock.removeAttribute('data-elapsed'); clock.removeAttribute('data-countdown'); clock.textContent = ''; }
for (const part of main.querySelectorAll('[data-htmx-powered], [data-reading]')) {
  part.removeAttribute('data-htmx-powered'); part.removeAttribute('data-reading'); }
for (const part of main.querySelectorAll('.htmx-request')) part.classList.remove('htmx-request');
for (const row of main.querySelectorAll('.waiting.closed, #waiting-list .empty, .newer')) row.remove();
for (const part of main.querySelectorAll('[hx-get*="at="]'))
  part.setAttribute('hx-get', part.getAttribute('hx-get').replace(/[?&]at=\\d+/, ''));
for (const looking of main.querySelectorAll('.looking')) { looking.textContent = ''; looking.hidden = true; }
for (const field of main.querySelectorAll('[name=csrfmiddlewaretoken], [name=once]')) field.remove();
for (const axis of main.querySelectorAll('svg.axis, .folded')) axis.remove();
for (const words of main.querySelectorAll('.beside')) words.classList.remove('beside');
for (const element of main.querySelectorAll('*')) for (const attribute of [...element.attributes]
    .sort((a, b) => a.name < b.name ? -1 : 1)) {
  element.removeAttribute(attribute.name); element.setAttribute(attribute.name, attribute.value); }
return main.innerHTML }"""


def seen(page: Page) -> str:
    """The page's main part without what differs between two reads of one state.

    That is: clocks, tokens, the drawing's scale, who else looks, and what was answered or came while the page was open.
    """
    return re.sub(r"\s+", " ", page.evaluate(MAIN)).strip()


def assert_live_equals_fresh(page: Page) -> None:
    """Compare this tab with a fresh one at the same address. A read that began before the change may end after it, so
    the tab has until long before the next poll to come to show the same."""
    fresh = page.context.new_page()
    fresh.goto(page.url)
    fresh.wait_for_load_state("load")
    end = time.monotonic() + SOON
    while (left := seen(page)) != (right := seen(fresh)) and time.monotonic() < end:
        page.evaluate("() => new Promise((go) => setTimeout(go, 50))")
    fresh.close()
    changes = difflib.unified_diff(right.split(" <"), left.split(" <"), "fresh", "live", lineterm="", n=1)
    assert left == right, "\n".join(changes)
