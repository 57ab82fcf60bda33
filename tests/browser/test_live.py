"""Pages move by themselves, end equal to the database, and say when they cannot (CASES V01–V03, V09, V10, V13, V14)."""

import re
from dataclasses import dataclass, field
from uuid import UUID

import psycopg
import pytest
from django.db import connection
from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from approvals.operations import decide as deciding
from approvals.operations.decide import Person
from approvals.rules.deciding import Decider
from base import ids
from jobs.models import Call
from jobs.operations.holds import Answer
from jobs.rules.orders import End
from studio.embedded import Postgres
from tenants.models import User
from tenants.rules.who import Actor
from tests.browser.conftest import Studio, live, read, sign_in_by_password
from tests.browser.same import assert_live_equals_fresh
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    made,
    see,
    settle,
)
from tests.pages.visitors import hold_url, job_url
from tests.waiting import until

pytestmark = pytest.mark.browser


def job_of(world: World, call: UUID) -> UUID:
    return see(world, Call, call).job_id


def row(page: Page, call: UUID) -> str:
    return f"#{ids.show(ids.CALL, call)}"


def test_a_trace_moves_as_its_calls_do_and_ends_equal_to_a_fresh_page(page: Page, world: World) -> None:
    job = a_job(world)
    live(page, job_url(job))
    expect(page.get_by_text("Nothing has happened yet")).to_be_visible()
    (look, note) = a_turn(world, job, "look", "note")
    expect(page.locator(row(page, look))).to_contain_text("queued")
    order = an_order(world, look)
    expect(page.locator(row(page, look))).to_contain_text("running")
    settle(world, order, an_outcome(End.ANSWERED))
    expect(page.locator(row(page, look))).to_contain_text("SUCCEEDED")
    made(world, note, an_outcome(End.BROKEN))
    expect(page.locator(row(page, note))).to_contain_text("unknown")
    expect(page.locator("#rail-count")).to_have_text("1")
    assert_live_equals_fresh(page)


def test_five_hundred_events_in_a_burst_end_as_the_database_says(page: Page, world: World) -> None:
    job = a_job(world)
    live(page, job_url(job))
    calls = a_turn(world, job, *["look"] * 60)
    for call in calls:
        made(world, call, an_outcome(End.ANSWERED))
    expect(page.locator(".trace .call", has_text="SUCCEEDED")).to_have_count(60)
    assert_live_equals_fresh(page)


@dataclass
class LateSocket:
    """A page's socket that reaches the server only when the test says so."""

    page: WebSocketRoute | None = None
    sent: list[str | bytes] = field(default_factory=list)

    def hold(self, route: WebSocketRoute) -> None:
        self.page = route
        route.on_message(lambda message: self.sent.append(message))

    def release(self) -> None:
        assert self.page is not None
        server = self.page.connect_to_server()
        for message in self.sent:
            server.send(message)


@pytest.mark.parametrize("place", ["card", "trace"])
def test_what_happened_between_rendering_and_joining_is_read_at_once(page: Page, world: World, place: str) -> None:
    call, hold = a_held_call(world)
    late = LateSocket()
    page.route_web_socket("**/live/", late.hold)
    page.goto(hold_url(hold) if place == "card" else job_url(job_of(world, call)))
    expect(page.locator("#connection")).to_have_text("Live")
    decide(world, hold, Answer.APPROVE)
    late.release()
    said = page.get_by_text("You approved it.") if place == "card" else page.locator(row(page, call), has_text="queued")
    expect(said).to_be_visible(timeout=4_000)  # sooner than any poll


def decide(world: World, hold: UUID, answer: Answer, note: str = "") -> None:
    who = Person(Decider(world.person, "admin"), Actor("pat", "test", world.person))
    deciding.decide(tenant=world.tenant, hold_id=hold, person=who, answer=answer, note=note)


def test_a_card_decided_elsewhere_says_so_at_once(page: Page, world: World) -> None:
    _, hold = a_held_call(world)
    live(page, hold_url(hold))
    decide(world, hold, Answer.DENY, "not today")
    expect(page.get_by_text("You denied it.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert_live_equals_fresh(page)


NOTE_EVERY_CARD = """() => {
  window.cards = [];
  const note = () => document.querySelectorAll("[id^=card-]").forEach((card) => window.cards.push(card.id));
  new MutationObserver(note).observe(document.body, { subtree: true, childList: true, attributes: true });
}"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_re_read_that_ends_late_does_not_put_the_question_before_back(
    page: Page, world: World, guarded: bool
) -> None:
    _, first = a_held_call(world)
    _, other = a_held_call(world)
    if not guarded:  # the control
        page.route("**/studio*.js", without_the_order_of_requests)
    live(page, hold_url(first))
    late: list[Route] = []
    page.route(f"**{hold_url(first)}*", lambda route: route.continue_() if late else late.append(route))
    with page.expect_request(f"**{hold_url(first)}*"):
        a_held_call(world)  # of which the page hears
    page.locator(f"#row-{ids.show(ids.HOLD, other)}").click()
    expect(page.locator(f"#card-{ids.show(ids.HOLD, other)}")).to_be_visible()
    page.evaluate(NOTE_EVERY_CARD)
    with page.expect_response(f"**{hold_url(first)}*"):
        late[0].continue_()
    before = f"card-{ids.show(ids.HOLD, first)}"
    if guarded:
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
        assert before not in page.evaluate("() => window.cards")
        expect(page.locator(f"#card-{ids.show(ids.HOLD, other)}")).to_be_visible()
    else:
        page.wait_for_function("(id) => window.cards.includes(id)", arg=before)


def without_the_order_of_requests(route: Route) -> None:
    """The studio's script, whose every answer is taken."""
    script = route.fetch()
    route.fulfill(response=script, body=script.text().replace("if (overtaken(ctx))", "if (false)"))


def test_a_card_opened_in_the_same_page_hears_of_its_own_job(page: Page, world: World) -> None:
    """CASES U07."""
    _, first = a_held_call(world)
    call, other = a_held_call(world)
    live(page, hold_url(first))
    page.locator(f"#row-{ids.show(ids.HOLD, other)}").click()
    expect(page.locator(f"#card-{ids.show(ids.HOLD, other)}")).to_be_visible()
    decide(world, other, Answer.APPROVE)
    expect(page.get_by_text("the call is now queued")).to_be_visible()
    made(world, call, an_outcome(End.ANSWERED))  # of which the queue hears nothing
    expect(page.get_by_text("the call is now SUCCEEDED")).to_be_visible(timeout=4_000)  # sooner than any poll
    assert_live_equals_fresh(page)


def test_while_the_database_is_away_a_socket_closes_instead_of_going_on_unchecked(
    page: Page, world: World, database: Postgres
) -> None:
    live(page, "/jobs/")
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        admin.execute("ALTER ROLE oz0_app NOLOGIN")
        try:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'oz0_app'")
            expect(page.locator("#connection")).to_have_text(re.compile("Reconnecting"), timeout=12_000)
        finally:
            admin.execute("ALTER ROLE oz0_app LOGIN")
    connection.close()
    User.objects.filter(pk=world.person).update(is_active=False)
    expect(page.locator("#connection")).to_have_text("Signed out: reload", timeout=20_000)


def test_what_a_person_typed_survives_a_nudge(page: Page, world: World) -> None:
    _, hold = a_held_call(world)
    live(page, hold_url(hold))
    page.get_by_label("Reason, for the agent").fill("half a sen")
    another, _ = an_unknown_call(world)
    expect(page.locator(".waiting")).to_have_count(2)
    expect(page.get_by_label("Reason, for the agent")).to_have_value("half a sen")
    assert another


def test_an_answer_works_from_a_card_that_was_swapped_twice(page: Page, world: World) -> None:
    call, hold = a_held_call(world)
    _, other = an_unknown_call(world)
    live(page, hold_url(hold))
    for shown in (other, hold, other, hold):
        page.locator(f"#row-{ids.show(ids.HOLD, shown)}").click()
        expect(page.locator(f"#card-{ids.show(ids.HOLD, shown)}")).to_be_visible()
    read(page)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("You approved it")).to_be_visible()
    assert see(world, Call, call).state == "queued"


def test_two_clicks_and_an_enter_answer_once_and_the_button_goes_off(page: Page, world: World) -> None:
    call, hold = a_held_call(world)
    live(page, hold_url(hold))
    off = page.evaluate("""async () => {
        const form = document.getElementById('answer-approve'), b = form.querySelector('button');
        window.addEventListener('submit', (e) => e.preventDefault()); b.click(); b.click(); form.requestSubmit();
        await new Promise((go) => setTimeout(go, 100));
        return [...document.querySelectorAll('.answers button[data-key]')].map((one) => one.disabled); }""")
    assert len(off) >= 3 and all(off)  # read at once: a page that is read anew in between draws its buttons anew
    assert see(world, Call, call).state == "held"


def test_twenty_writes_in_one_page_work(page: Page, world: World) -> None:
    holds = [a_held_call(world) for _ in range(20)]
    live(page, hold_url(holds[0][1]))
    for number in range(20):
        read(page)
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("You approved it")).to_be_visible()
        if number < 19:
            expect(page.locator("#rail-count")).to_have_text(str(19 - number))
            page.get_by_role("link", name="Next question").click()
    assert {see(world, Call, call).state for call, _ in holds} == {"queued"}


def test_an_answer_works_after_signing_in_again_in_another_tab(
    page: Page, context: BrowserContext, world: World
) -> None:
    call, hold = a_held_call(world)
    live(page, hold_url(hold))
    other = context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in/**")
    sign_in_by_password(other, world.person)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text(re.compile("You approved it|Nothing was changed"))).to_be_visible()
    if page.get_by_text("Nothing was changed").count():
        expect(page.get_by_role("link", name="Open the studio again")).to_be_visible()
        assert see(world, Call, call).state == "held"
    else:
        assert see(world, Call, call).state == "queued"


def test_signing_out_elsewhere_silences_the_tab_and_refuses_its_answer(
    page: Page, context: BrowserContext, world: World
) -> None:
    call, hold = a_held_call(world)
    live(page, hold_url(hold))
    other = context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in/**")
    expect(page.locator("#connection")).to_have_text("Signed out: reload", timeout=8_000)
    page.get_by_role("button", name="Approve").click()
    page.wait_for_load_state()
    assert see(world, Call, call).state == "held"


def test_a_disabled_person_is_cut_off_in_seconds(page: Page, world: World) -> None:
    live(page, "/jobs/")
    User.objects.filter(pk=world.person).update(is_active=False)
    expect(page.locator("#connection")).to_have_text("Signed out: reload", timeout=8_000)


def test_new_jobs_wait_behind_a_button_and_rows_change_in_place(page: Page, world: World) -> None:
    call = a_call(world, "look")
    live(page, "/jobs/")
    made(world, call, an_outcome(End.ANSWERED))
    a_job(world)
    expect(page.get_by_role("link", name="1 new job")).to_be_visible()
    expect(page.locator("#jobs-list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="1 new job").click()
    expect(page.locator("#jobs-list tbody tr")).to_have_count(2)


def test_without_the_channel_layer_the_chip_says_so_and_all_is_read_again_after_it(
    page: Page, studio: Studio, world: World
) -> None:
    job = a_job(world)
    live(page, job_url(job))
    studio.redis.stop()
    try:
        expect(page.locator("#connection")).to_have_text(re.compile("Reconnecting"), timeout=15_000)
        (call,) = a_turn(world, job, "look")
        expect(page.locator(row(page, call))).to_contain_text("queued", timeout=20_000)  # by polling
    finally:
        studio.redis.start()
    expect(page.locator("#connection")).to_have_text("Live", timeout=20_000)
    made(world, call, an_outcome(End.ANSWERED))
    expect(page.locator(row(page, call))).to_contain_text("SUCCEEDED", timeout=5_000)


def test_an_opened_call_stays_open_while_the_trace_moves(page: Page, world: World) -> None:
    job = a_job(world)
    first, second = a_turn(world, job, "look", "note")
    live(page, job_url(job))
    page.locator(row(page, first)).click()
    detail = page.locator(f"#detail-{ids.show(ids.CALL, first)}")
    expect(detail).to_contain_text("Arguments")
    assert "call=call_" in page.url
    made(world, second, an_outcome(End.ANSWERED))
    expect(page.locator(row(page, second))).to_contain_text("SUCCEEDED")
    expect(detail).to_be_visible()
    assert_live_equals_fresh(page)
    page.go_back()
    expect(detail).to_have_count(0)


def test_a_page_hears_nothing_of_another_workspace(page: Page, world: World) -> None:
    other = a_world("other")
    ours, theirs = a_job(world), a_job(other)
    live(page, "/")
    topics = [f"job:{ids.show(ids.JOB, theirs)}", "job:job_nothing", "nonsense", f"job:{ids.show(ids.JOB, ours)}"]
    page.evaluate(
        """(topics) => { window.heard = []; const socket = new WebSocket(`ws://${location.host}/live/`);
        socket.onopen = () => socket.send(JSON.stringify({join: topics}));
        socket.onmessage = ({data}) => window.heard.push(JSON.parse(data)); }""",
        topics,
    )
    until(lambda: page.evaluate("window.heard.some((one) => one.seq === 1)"), "the socket says nothing of our own job")
    a_turn(other, theirs, "look")
    a_turn(world, ours, "look")
    until(lambda: page.evaluate("window.heard.some((one) => one.seq > 1)"), "the socket says nothing of what moved")
    assert {one["topic"] for one in page.evaluate("window.heard")} == {topics[-1]}
