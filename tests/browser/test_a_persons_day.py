"""A person's day, from the sign-in link on: `oz0 up` as it is, the example plugins, a real browser (DESIGN 1)."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.by_link import signed_in
from tests.browser.conftest import ROOT, read
from tests.clusters import seed
from tests.faults.studios import Studio, state_folder, studio_in

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """The whole studio in a folder of its own, with the examples loaded and no job started."""
    with state_folder(tmp_path_factory.mktemp("day")) as home, studio_in(seed(home)) as studio:
        studio.ready()
        env = os.environ | {"OZ0_HOME": str(home)}
        for name in ("DATABASE_URL", "REDIS_URL", "BROKER_URL", "OZ0_SECRET_KEY"):
            env.pop(name, None)
        loading = [sys.executable, "-m", "studio.cli", "load-examples", "--no-jobs"]
        subprocess.run(loading, cwd=ROOT, env=env, check=True, timeout=120)
        yield studio


@pytest.fixture(scope="module")
def person(up: Studio, browser: Browser) -> Iterator[Page]:
    """A tab of somebody who opened the link that the start printed."""
    with signed_in(browser, up) as page:
        yield page


def start_job(page: Page, agent: str, **given: object) -> str:
    """Start a job as a person does; returns the address of its trace, which is open."""
    page.goto("/jobs/new/")
    page.get_by_label("Agent", exact=True).select_option(agent)
    expect(page.locator("[name=for]")).to_have_value(agent)
    for name, value in given.items():
        page.locator(f"[name='field:{name}']").fill(str(value))
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile("/jobs/job_"))
    return page.url


def call_line(page: Page, function: str) -> Locator:
    """The line of a call in the open trace."""
    return page.locator(".line.call", has_text=function)


def answer_question(page: Page, function: str, answer: str, text: str = "") -> None:
    """Go to the queue, open the only question about `function`, and answer it."""
    page.goto("/approvals/")
    page.locator(".waiting", has_text=function).first.click()
    form = page.locator(f"#answer-{answer}")
    expect(page.locator("#question h1")).to_contain_text(function)
    if text:
        form.get_by_role("textbox").fill(text)
    read(page)
    form.locator("button[data-key]").click()
    expect(form).to_have_count(0)


def git(up: Studio, *words: str) -> str:
    """What git itself says of the demo's repository."""
    repo = up.home / "demo" / "repo"
    done = subprocess.run(["git", "-C", str(repo), *words], check=True, capture_output=True, text=True, timeout=20)
    return done.stdout.strip()


def notes_of(up: Studio, text: str) -> list[object]:
    """The ledger's lines that hold `text`."""
    ledger: Path = up.home / "demo" / "billing" / "ledger.jsonl"
    return [json.loads(line) for line in ledger.read_text().splitlines() if text in line]


def job_says(page: Page, state: str) -> None:
    """The open trace comes to show this state, by itself."""
    expect(page.locator(".head .status").first).to_contain_text(state)


@pytest.mark.rule("G1")
@pytest.mark.rule("A9")
def test_the_git_job_commits_and_its_reset_runs_when_approved_and_not_when_denied(up: Studio, person: Page) -> None:
    trace = start_job(person, "git-clerk", message="Close October")
    expect(call_line(person, "repo.git_commit")).to_contain_text("SUCCEEDED")  # the open page moves by itself
    expect(call_line(person, "repo.git_reset")).to_contain_text("held")
    assert git(up, "log", "-1", "--format=%s") == "Close October"
    assert git(up, "diff", "--cached", "--name-only") == "CHANGES.md"
    answer_question(person, "repo.git_reset", "approve")
    person.goto(trace)
    job_says(person, "COMPLETED")
    assert git(up, "diff", "--cached", "--name-only") == ""

    trace = start_job(person, "git-clerk", message="Close November")
    expect(call_line(person, "repo.git_reset")).to_contain_text("held")
    answer_question(person, "repo.git_reset", "deny", "leave it staged for the morning")
    person.goto(trace)
    job_says(person, "COMPLETED")
    output = person.get_by_role("region", name="Input and output")
    expect(output).to_contain_text("A person denied this call. Their reason: leave it staged for the morning")
    assert git(up, "log", "-1", "--format=%s") == "Close November"
    assert git(up, "diff", "--cached", "--name-only") == "CHANGES.md"


@pytest.mark.rule("U4")
@pytest.mark.rule("U6")
@pytest.mark.rule("U7")
@pytest.mark.parametrize(
    ("answer", "text", "ends", "lines", "says"),
    [
        ("happened", "entry 7", "COMPLETED", 1, "The person gave this result: entry 7"),
        ("again", "", "COMPLETED", 2, "Noted about"),
        ("stop", "", "CANCELED", 1, ""),
    ],
)
def test_a_note_whose_server_died_is_asked_about_and_each_answer_does_what_it_says(
    up: Studio, person: Page, answer: str, text: str, ends: str, lines: int, says: str
) -> None:
    note = f"closed by {answer}"
    trace = start_job(person, "billing-clerk", note=note, order_id=f"o-{answer}")
    expect(call_line(person, "billing.note")).to_contain_text("unknown")
    job_says(person, "waiting")
    assert len(notes_of(up, note)) == 1  # it was written, and the server died before it could say so
    person.goto("/approvals/")
    person.locator(".waiting", has_text="billing.note").first.click()
    question = person.locator("#question")
    expect(question).to_contain_text("Did billing.note happen?")
    expect(question).to_contain_text("running it again may write twice")
    expect(question).to_contain_text(note)
    answer_question(person, "billing.note", answer, text)
    person.goto(trace)
    job_says(person, ends)
    assert len(notes_of(up, note)) == lines
    if says:
        expect(person.get_by_role("region", name="Input and output")).to_contain_text(says)
    if answer == "stop":
        expect(call_line(person, "billing.note")).to_contain_text("CANCELED")
        expect(call_line(person, "billing.balance")).to_have_count(0)
