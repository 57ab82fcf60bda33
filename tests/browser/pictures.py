"""`make screenshots`: the pictures of README.md, taken of the demo while it really runs.

`python -m tests.browser.pictures [FOLDER]` starts the demo in an empty state folder, waits until its jobs are where the
pictures show them, and writes PNG files of the light theme, 1280 wide, to FOLDER (docs/pictures when left out).
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.by_link import signed_in
from tests.browser.chromium import MISSING, QUIET, chromium
from tests.faults.processes import until
from tests.faults.studios import state_folder, studio_in
from tests.repo.tree import ROOT

PLACE: Final = ROOT / "docs/pictures"
WIDTH: Final = 1280
MOST_BYTES: Final = 200_000
PATIENT: Final = 120_000  # milliseconds for the demo's jobs to get where they are shown


def take(folder: Path) -> list[Path]:
    """Start the demo, take every picture, and end it; the files that were written."""
    program = chromium()
    if program is None:
        raise SystemExit(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as empty, state_folder(Path(empty)) as home, studio_in(home, demo=True) as studio:
        studio.ready()
        # the list of jobs does not jump: what starts after it was opened waits behind a button
        assert until(lambda: studio.said("started a job of know-it-all"), PATIENT / 1000), studio.lines
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=[*QUIET])
            with signed_in(browser, studio, patient=PATIENT, height=800) as page:
                return [_trace(page, folder / "trace.png"), _unknown(page, folder / "unknown.png")]


def _trace(page: Page, file: Path) -> Path:
    """A read whose server died in the middle: its second attempt goes on where the first had got to."""
    page.goto("/jobs/")
    # rows are patched in place while jobs start, and a click between two patches would be lost: follow the link instead
    job = page.get_by_role("link", name="archivist", exact=True).get_attribute("href")
    assert job is not None
    page.goto(job)
    expect(page.locator(".head")).to_contain_text("COMPLETED")
    page.locator(".line.call").first.click()
    expect(page.locator(".inside")).to_contain_text("resumed from progress 2 of 4")
    return _picture(page, file, height=870)


def _unknown(page: Page, file: Path) -> Path:
    """The queue, with the write of which nobody knows whether it happened."""
    page.goto("/approvals/")
    for function in ("billing.refund", "billing.export_ledger", "billing.note"):
        expect(page.locator(".waiting", has_text=function)).to_be_visible()
    page.locator(".waiting", has_text="billing.note").click()
    expect(page.locator("#question h1")).to_have_text(re.compile("Did billing.note happen"))
    return _picture(page, file, height=1000)


def _picture(page: Page, file: Path, *, height: int) -> Path:
    page.set_viewport_size({"width": WIDTH, "height": height})
    expect(page.locator("#connection")).to_have_text("Live")
    page.evaluate("document.fonts.ready")
    page.screenshot(path=file, animations="disabled", caret="hide")
    return file


if __name__ == "__main__":
    for written in take(Path(sys.argv[1]) if sys.argv[1:] else PLACE):
        sys.stdout.write(f"{written}: {written.stat().st_size:,} bytes\n")
