"""The README's tour, step by step as it is written there: its scripts in an empty folder, its clicks in a browser."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.by_link import signed_in
from tests.browser.conftest import read
from tests.faults.processes import until
from tests.faults.studios import Studio, state_folder, studio_in
from tests.repo.docs_commands import run, tour
from tests.repo.tree import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, but for the environment that `make run` made before."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").write_text("# the test's own path is set already\n")
    return tmp_path


@pytest.fixture
def studio(folder: Path) -> Iterator[Studio]:
    """A studio that runs in that folder."""
    with state_folder(folder / ".oz0") as home, studio_in(home, cwd=folder, PYTHONPATH=str(ROOT)) as studio:
        yield studio.ready()


@pytest.fixture
def page(studio: Studio, browser: Browser) -> Iterator[Page]:
    """A tab of somebody who opened the link that the start printed."""
    with signed_in(browser, studio) as tab:
        yield tab


def typed(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a person types in the second terminal, where nothing but the folder says which studio is meant."""
    done = run(f"unset OZ0_SECRET_KEY DATABASE_URL REDIS_URL BROKER_URL; {script}", folder)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done


def answer(page: Page, question: str, button: str) -> None:
    page.get_by_role("link", name=re.compile("^Approvals")).click()
    page.locator(".waiting", has_text="notes.add_note").first.click()
    expect(page.locator("#question h1")).to_have_text(question)
    read(page)
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator("#question")).to_contain_text(re.compile("You (approved|said|asked|stopped)"))


def test_the_tour_of_the_readme_goes_as_it_is_written(folder: Path, studio: Studio, page: Page) -> None:
    connect, add_agent, start_crashing, look = tour(ROOT)
    assert "added notes" in typed(connect, folder).stdout
    page.get_by_role("link", name="Catalog").click()
    page.get_by_role("navigation", name="Catalog").get_by_role("link", name="Tools", exact=True).click()
    page.get_by_role("link", name="notes", exact=True).click()
    assert until(lambda: page.reload() and page.get_by_text("add_note").count(), 60), page.content()
    expect(page.locator("main")).to_contain_text("undeclared")

    assert "added notebook" in typed(add_agent, folder).stdout
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name="Start a job").click()
    page.get_by_label("Agent").select_option("note-taker")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile("/jobs/job_"))
    expect(page.locator(".line.call")).to_contain_text("held")
    trace = page.url
    answer(page, "May notes.add_note run?", "Approve")
    page.goto(trace)
    expect(page.locator("main")).to_contain_text("My notes: Buy milk")

    typed(start_crashing, folder)
    answer(page, "May notes.add_note run?", "Approve")
    answer(page, "Did notes.add_note happen?", "It happened")
    assert typed(look, folder).stdout == "Buy milk\ncrash now\n"
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.locator("#jobs-list").get_by_role("link", name="note-taker", exact=True).first.click()
    expect(page.locator(".head")).to_contain_text("COMPLETED")
