"""`oz0 up --demo` in an empty folder, as somebody sees it who opens the link it printed: all of it really run."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from studio.embedded import kept
from tests.browser.by_link import signed_in
from tests.faults.processes import until
from tests.faults.studios import Studio, state_folder, studio_in

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]
STARTED_IN = 120.0  # seconds; about 20 on a machine that does nothing else


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """The demo, as soon as its jobs run."""
    with state_folder(tmp_path_factory.mktemp("demo")) as home, studio_in(home, demo=True) as studio:
        studio.ready()
        assert until(lambda: studio.said("started a job of know-it-all"), STARTED_IN), studio.lines
        yield studio


@pytest.fixture(scope="module")
def person(demo: Studio, browser: Browser) -> Iterator[Page]:
    """A tab of the demo's admin."""
    with signed_in(browser, demo) as page:
        yield page


def open_call(page: Page, agent: str, function: str) -> Locator:
    """The agent's job with its call opened; the call's panel."""
    page.goto("/jobs/")
    page.get_by_role("link", name=agent, exact=True).click()
    page.locator(".line.call", has_text=function).first.click()
    panel = page.locator(".inside")
    expect(panel.get_by_role("heading", name="Attempts")).to_be_visible()
    return panel


def open_question(page: Page, function: str) -> Locator:
    """The question about this function, opened in the queue."""
    page.goto("/approvals/")
    page.locator(".waiting", has_text=function).first.click()
    question = page.locator("#question")
    expect(question.locator("h1")).to_contain_text(function)
    return question


@contextmanager
def on_a_phone(page: Page) -> Iterator[None]:
    """The tab, 390 wide."""
    before = page.viewport_size
    assert before is not None
    page.set_viewport_size({"width": 390, "height": 844})
    yield
    page.set_viewport_size(before)


CUT_OFF = """() => [...document.querySelectorAll("main *")].filter((one) => {
    const style = getComputedStyle(one);
    const meant = style.textOverflow === "ellipsis" || one.closest(".visually-hidden, svg, thead");
    return ["hidden", "clip"].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1 && !meant;
}).map((one) => one.outerHTML.slice(0, 200))"""
BROKEN_NAMES = """() => [...document.querySelectorAll(".list a.title")].filter((one) => {
    const words = document.createRange();
    words.selectNodeContents(one);
    return new Set([...words.getClientRects()].map((line) => line.top)).size > 1;
}).map((one) => one.innerText)"""


def test_the_first_address_that_the_start_prints_signs_in(demo: Studio) -> None:
    assert next(line for line in demo.lines if "http://" in line) == demo.link


def test_a_bar_grows_while_its_call_runs(person: Page) -> None:
    panel = open_call(person, "slow-reader", "archive.search")
    state = person.locator(".head .status").first
    bar = panel.get_by_role("progressbar").last
    expect(bar).to_have_attribute("aria-valuenow", re.compile(r"[0-9]"))
    seen = [str(bar.get_attribute("aria-valuenow"))]
    for _ in range(2):  # the page moves by itself
        expect(bar).not_to_have_attribute("aria-valuenow", seen[-1])
        seen.append(str(bar.get_attribute("aria-valuenow")))
    assert "running" in state.inner_text()
    assert 0 < float(seen[0]) < float(seen[1]) < float(seen[2]) < 100
    line = person.locator(".line.call", has_text="archive.search")
    assert float(str(line.locator("svg .got").last.get_attribute("width")).rstrip("%")) > 0
    with on_a_phone(person):
        expect(line.locator("svg .seg.open")).to_be_visible()


@pytest.mark.rule("P4")
def test_a_search_whose_server_died_says_resumed_from_progress_2_of_4(person: Page) -> None:
    panel = open_call(person, "archivist", "archive.search")
    expect(person.locator(".head .status").first).to_contain_text("COMPLETED")
    expect(person.locator(".line.call")).to_contain_text("resumed from progress 2 of 4")
    expect(panel).to_contain_text("The connection ended without an answer after the request went out")
    expect(panel).to_contain_text("resumed from progress 2 of 4")
    expect(person.get_by_role("region", name="Input and output")).to_contain_text("read here: 3 to 4")


def test_a_commit_is_one_that_git_itself_knows(demo: Studio, person: Page) -> None:
    open_call(person, "git-clerk", "repo.git_commit")
    expect(person.locator(".line.call", has_text="repo.git_commit")).to_contain_text("SUCCEEDED")
    repo = demo.home / "demo" / "repo"
    words = ["git", "-C", str(repo), "log", "-1", "--format=%s"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=20)
    assert done.stdout.strip() == "Note the change"


def test_an_approval_waits_with_what_would_run(person: Page) -> None:
    question = open_question(person, "billing.refund")
    expect(question).to_contain_text("May billing.refund run?")
    expect(question.get_by_role("button", name="Approve")).to_be_enabled()
    expect(question.get_by_role("button", name="Deny")).to_be_enabled()
    expect(question).to_contain_text('"amount": 900')


@pytest.mark.rule("U6")
def test_an_unknown_write_asks_whether_it_happened_and_offers_the_three_answers(demo: Studio, person: Page) -> None:
    question = open_question(person, "billing.note")
    expect(question).to_contain_text("Did billing.note happen?")
    for answer in ("It happened", "Run it again", "Stop the job"):
        expect(question.get_by_role("button", name=answer)).to_be_enabled()
    ledger = (demo.home / "demo" / "billing" / "ledger.jsonl").read_text()
    assert ledger.count("October closed") == 1


@pytest.mark.rule("C4")
def test_undeclared_functions_are_marked_and_one_of_them_waits(person: Page) -> None:
    person.goto("/catalog/tools/billing/")
    row = person.get_by_role("region", name="Functions").get_by_role("row").filter(has_text="export_ledger")
    expect(row).to_contain_text("undeclared")
    row.get_by_text("How to declare it").click()
    expect(row.locator("pre")).to_contain_text("destructive_hint")
    person.goto("/catalog/functions/?tool=archive&kind=undeclared")
    person.get_by_role("link", name="archive.shred").click()
    expect(person.locator("main")).to_contain_text("its entry in the remote server's listing is not approved")
    expect(open_question(person, "billing.export_ledger")).to_contain_text("undeclared")


@pytest.mark.rule("T3")
def test_an_agent_over_its_budget_is_on_the_overview_and_told_what_to_drop(person: Page) -> None:
    person.goto("/")
    person.get_by_role("link", name="Agents over budget").click()
    person.get_by_role("link", name="know-it-all", exact=True).click()
    expect(person.locator("main")).to_contain_text("over budget")
    expect(person.locator("main")).to_contain_text("to fit:")
    open_call(person, "know-it-all", "billing.balance")
    expect(person.locator(".head .status").first).to_contain_text("COMPLETED")


def test_the_public_server_runs_or_its_page_says_why_not(demo: Studio, person: Page) -> None:
    def decided() -> bool:
        return demo.said("started a job of patient-one") or demo.said("plugin everything cannot run: ")

    assert until(decided, STARTED_IN), demo.lines
    person.goto("/catalog/tools/everything/")
    card = person.locator("#tool-page")
    if demo.said("started a job of patient-one"):
        expect(card).to_contain_text("trigger-long-running-operation")
        expect(open_call(person, "patient-one", "everything.trigger")).to_contain_text("of 15")
    else:
        expect(card).to_contain_text("Its server cannot be listed")


def test_on_a_phone_no_page_of_the_catalog_is_cut_off_or_breaks_a_name(person: Page) -> None:
    tool, agents = "/catalog/tools/billing/", "/catalog/agents/"
    with on_a_phone(person):
        lists = ("/catalog/", "/catalog/plugins/", "/catalog/tools/", "/catalog/functions/", "/catalog/skills/")
        more = ("/catalog/functions/billing.charge/", "/catalog/findings/", f"{tool}listings/")
        for path in (*lists, *more, tool, agents, f"{agents}know-it-all/", "/jobs/"):
            person.goto(path)
            assert person.evaluate("document.documentElement.scrollWidth") == 390, path
            assert person.evaluate(CUT_OFF) == [], path
            assert person.evaluate(BROKEN_NAMES) == [], path


@pytest.mark.rule("A12")
def test_everything_was_done_by_the_admin_and_every_approval_is_in_the_log(demo: Studio, person: Page) -> None:
    with psycopg.connect(kept.load(demo.home)["DATABASE_OWNER_URL"]) as owner:
        log = owner.execute("SELECT verb, object, actor, after FROM tenants_auditentry").fetchall()
        approved = dict(owner.execute("SELECT function, entry_digest FROM catalog_entryapproval").fetchall())
        starters = owner.execute(
            "SELECT DISTINCT starter, username FROM jobs_job JOIN tenants_user u ON u.id = started_by_id"
        )
        assert starters.fetchall() == [("person", "admin")]
    assert approved.keys() == {"search", "count"}
    (approvals,) = [entry for entry in log if entry[0] == "listing.approved"]
    assert approvals == ("listing.approved", "tool archive", "admin", approved)
    assert {actor for _, _, actor, _ in log} == {"admin"}
