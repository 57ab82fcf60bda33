"""Jobs in lists, starting one, its trace, its calls (CASES T06, T07, S05; RULES A13, L2, L6)."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base import db, ids
from catalog.models import Tool, Transport
from catalog.rules.agents import Limits
from jobs.models import Call, Node, Starter
from jobs.queries.lists import PAGE
from jobs.rules.orders import End
from jobs.rules.states import JobState
from studio.embedded import Postgres
from tenants.models import Role
from tests.builders import (
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    made,
    see,
    settle,
)
from tests.pages.visitors import job_url, text_of, visitor

MARKUP = "</pre></bdi><img src=x onerror=alert(1)><script>alert(1)</script>[x](javascript:alert(1)) ![](https://canary.example/)"


def test_a_list_never_loads_a_body(database: Postgres) -> None:
    world = a_world()
    for _ in range(5):
        a_call(world, "refund", {"text": "x" * 100_000})
    client = visitor(world)
    for path in ("/jobs/", "/approvals/", "/"):
        client.get(path)
        with CaptureQueriesContext(connection) as asked:
            response = client.get(path, headers={"HX-Request": "true", "HX-Target": ""})
        assert len(response.content) < 60_000
        listing = [query["sql"] for query in asked if "jobs_" in query["sql"]]
        assert listing
        if path != "/approvals/":  # its open card does load the one it shows
            assert not [sql for sql in listing if "jobs_body" in sql or '"jobs_job"."input"' in sql]


def test_fifty_rows_a_page_older_ones_by_key_and_new_ones_behind_a_button(database: Postgres) -> None:
    world = a_world()
    jobs = [a_job(world) for _ in range(PAGE + 3)]
    client = visitor(world)
    first = text_of(client.get("/jobs/"))
    assert first.count('<tr id="job_') == PAGE
    older = re.search(r"before=(job_\w+)", first)
    assert older is not None
    assert text_of(client.get("/jobs/", {"before": older.group(1)})).count('<tr id="job_') == 3
    a_job(world)
    a_job(world)
    pinned = text_of(client.get("/jobs/", {"newest": ids.show(ids.JOB, jobs[-1])}))
    assert "2 new jobs" in pinned
    assert pinned.count('<tr id="job_') == PAGE


def test_the_filter_is_in_the_address(database: Postgres) -> None:
    world = a_world()
    a_job(world)
    client = visitor(world)
    assert "No job fits this filter" in text_of(client.get("/jobs/", {"view": "failed"}))
    assert "No job fits this filter" in text_of(client.get("/jobs/", {"q": "zebra"}))
    assert '<tr id="job_' in text_of(client.get("/jobs/", {"view": "live", "agent": "clerk", "q": "job"}))


def test_a_part_is_the_same_view_and_address_and_caches_are_told(database: Postgres) -> None:
    world = a_world()
    a_job(world)
    client = visitor(world)
    part = client.get("/jobs/", headers={"HX-Request": "true", "HX-Target": "section#jobs-list"})
    assert "<html" not in text_of(part)
    assert text_of(part).strip().startswith('<section class="card" id="jobs-list"')
    assert {"HX-Request", "HX-Target"} <= {name.strip() for name in part.headers["Vary"].split(",")}
    assert "<html" in text_of(client.get("/jobs/", headers={"HX-Request": "true", "HX-Target": "div#other"}))


def test_bad_ids_and_another_workspaces_ids_read_the_same(database: Postgres) -> None:
    ours, theirs = a_world("acme"), a_world("other")
    call = a_call(theirs)
    foreign = see(theirs, Call, call)
    client = visitor(ours)
    pages = [
        client.get("/jobs/job_nothing/"),
        client.get(job_url(ids.new())),
        client.get(job_url(foreign.job_id)),
        client.get(f"/calls/{ids.show(ids.CALL, call)}/"),
        client.get(f"/calls/{ids.show(ids.JOB, call)}/"),
        client.get("/approvals/hold_x/"),
        client.get("/jobs/", {"before": "job_nothing"}),
        client.get(job_url(foreign.job_id, "stop/").replace("stop/", "")),
    ]
    assert {page.status_code for page in pages} == {404}
    assert len({text_of(page) for page in pages}) == 1


def test_a_job_opens_in_the_second_it_is_made(database: Postgres) -> None:
    world = a_world()
    html = text_of(visitor(world).get(job_url(a_job(world))))
    assert "Nothing has happened yet" in html
    assert 'data-seq="1"' in html


@pytest.mark.rule("A13")
def test_untrusted_text_stays_text_on_every_page_it_reaches(database: Postgres) -> None:
    world = a_world()
    call = a_call(world, "look", {MARKUP: MARKUP, "rtl": "pay\u202ement"})
    made(world, call, an_outcome(End.ANSWERED, text=MARKUP, is_error=True))
    held = a_call(world, "refund", {"x": MARKUP})
    client = visitor(world)
    job = see(world, Call, call).job_id
    for path in (
        job_url(job),
        f"{job_url(job)}?call={ids.show(ids.CALL, call)}",
        f"/calls/{ids.show(ids.CALL, call)}/",
    ):
        html = text_of(client.get(path))
        assert "<img" not in html
        assert "<script>" not in html
        assert "javascript:alert(1)" not in re.sub(r">[^<]*<", "><", html)
        assert "\u202e" not in html
    html = text_of(client.get("/approvals/"))
    assert "<img" not in html and "&lt;img" in html
    assert held


def test_no_page_has_inline_script_or_style_and_the_policy_forbids_both(database: Postgres) -> None:
    world = a_world()
    a_held_call(world)
    client = visitor(world)
    for path in ("/", "/jobs/", "/jobs/new/", "/approvals/", "/catalog/"):
        response = client.get(path)
        html = text_of(response)
        assert " style=" not in html and "<style" not in html
        assert not re.search(r"<script(?![^>]* src=)", html) and not re.search(r"\son\w+=", html)
        policy = response.headers["Content-Security-Policy"]
        assert "script-src 'self';" in f"{policy};" and "style-src 'self';" in f"{policy};"


def test_a_job_is_started_with_its_input(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    response = client.post("/jobs/new/", {"agent": "clerk", "title": "October", "input": ""})
    assert response.status_code == 302
    assert "October" in text_of(client.get(response.headers["Location"]))


def test_one_form_sent_twice_starts_one_job(database: Postgres) -> None:
    """CASES R01."""
    world = a_world()
    client = visitor(world)
    form = {"agent": "clerk", "title": "Once", "input": "", "once": "one-form"}
    first, second = client.post("/jobs/new/", form), client.post("/jobs/new/", form)
    assert first.headers["Location"] == second.headers["Location"]
    assert text_of(client.get("/jobs/")).count('<tr id="job_') == 1


def test_a_form_that_was_gone_back_to_and_changed_says_what_it_started_and_then_starts_its_own(
    database: Postgres,
) -> None:
    """CASES R11."""
    world = a_world()
    client = visitor(world)
    form = {"agent": "clerk", "title": "Once", "input": "", "once": "one-form"}
    first = client.post("/jobs/new/", form)
    changed = client.post("/jobs/new/", form | {"title": "Twice"})
    html = text_of(changed)
    assert changed.status_code == 422
    assert f"has started {first.headers['Location'].split('/')[2]} already" in html
    assert 'value="Twice"' in html
    assert text_of(client.get("/jobs/")).count('<tr id="job_') == 1
    once = re.search(r'name="once" value="(\w+)"', html)
    assert once is not None
    again = client.post("/jobs/new/", form | {"title": "Twice", "once": once.group(1)})
    assert again.status_code == 302
    assert again.headers["Location"] != first.headers["Location"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"month": ', "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"colour": "red"}', "no input named"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_a_wrong_input_is_explained_and_what_was_typed_stays(database: Postgres, given: str, says: str) -> None:
    world = a_world()
    response = visitor(world).post("/jobs/new/", {"agent": "clerk", "title": "Kept title", "input": given})
    html = text_of(response)
    assert response.status_code == 422
    assert says in html
    assert "Kept title" in html and 'aria-invalid="true"' in html
    assert json.dumps(given)[1:8].strip('\\"') in html.replace("&quot;", '\\"')


def test_a_viewer_starts_and_stops_nothing_and_reads_why(database: Postgres) -> None:
    world = a_world()
    job = a_job(world)
    viewer = visitor(world, a_person(world.tenant, "vera", Role.VIEWER))
    assert viewer.post("/jobs/new/", {"agent": "clerk", "input": ""}).status_code == 403
    refused = viewer.post(job_url(job, "stop/"))
    assert refused.status_code == 403 and "Your role here is viewer" in text_of(refused)
    assert "Your role here is viewer" in text_of(viewer.get(job_url(job)))
    assert see(world, Call, a_call(world)).state == "queued"


@pytest.mark.rule("G1")
def test_what_started_a_job_is_said_in_words_in_the_list_and_on_its_page(database: Postgres) -> None:
    world = a_world()
    job = a_job(world, starter=Starter.API_KEY)
    for path in ("/jobs/", job_url(job)):
        assert "api key" in text_of(visitor(world).get(path))


def test_stopping_twice_stops_once_and_says_so(database: Postgres) -> None:
    world = a_world()
    call = a_call(world, "note")
    an_order(world, call)
    job = see(world, Call, call).job_id
    client = visitor(world)
    client.post(job_url(job, "stop/"))
    assert "being stopped already" in text_of(client.post(job_url(job, "stop/"), follow=True))


@pytest.mark.rule("L6")
def test_a_call_being_stopped_says_that_a_plain_function_runs_on(database: Postgres) -> None:
    """CASES L03."""
    world = a_world()
    call = a_call(world, "note")
    an_order(world, call)
    job = see(world, Call, call).job_id
    client = visitor(world)
    client.post(job_url(job, "stop/"))
    html = text_of(client.get(job_url(job)))
    assert "runs on, and what it does may still land" in html
    assert "when every call of it has really stopped, and not before" in html


@pytest.mark.rule("L6")
def test_a_sandboxed_call_being_stopped_says_that_its_server_ends_with_it(database: Postgres) -> None:
    world = a_world()
    with db.write(world.tenant):
        Tool.objects.update(transport=Transport.SANDBOX, sandbox={})
    call = a_call(world, "note")
    an_order(world, call)
    job = see(world, Call, call).job_id
    client = visitor(world)
    client.post(job_url(job, "stop/"))
    html = text_of(client.get(job_url(job)))
    assert "own server is ended with it" in html
    assert "runs on" not in html


@pytest.mark.rule("L6")
@pytest.mark.rule("L2")
@pytest.mark.parametrize(("end_known", "says"), [(True, "may have acted before it stopped"), (False, "may still land")])
def test_a_stopped_write_is_shown_as_what_it_may_have_done(database: Postgres, end_known: bool, says: str) -> None:
    world = a_world()
    call = a_call(world, "note")
    order = an_order(world, call)
    job = see(world, Call, call).job_id
    client = visitor(world)
    client.post(job_url(job, "stop/"))
    settle(world, order, an_outcome(End.STOPPED, end_known=end_known))
    assert see(world, Call, call).state == JobState.CANCELED
    assert says in text_of(client.get(job_url(job)))


def test_a_running_call_shows_how_long_it_has_run_and_when_its_limit_is_reached(database: Postgres) -> None:
    """CASES L07."""
    world = a_world()
    order = an_order(world, a_call(world, "look"))
    for path in (f"/calls/{ids.show(ids.CALL, order.call_id)}/", job_url(order.job_id)):
        html = text_of(visitor(world).get(path))
        assert re.search(r"attempt 1 of up to 4, limit in</bdi> <span data-countdown=.[0-9.]+", html)
        assert re.search(r"<span data-elapsed=.[0-9.]+", html)


def test_a_queued_call_says_why_it_does_not_move(database: Postgres) -> None:
    world = a_world()
    call = a_call(world, "look")
    job = see(world, Call, call).job_id
    client = visitor(world)
    assert "A node takes it within a second" in text_of(client.get(job_url(job)))
    Node.objects.update(state="lost")
    assert "No node is alive" in text_of(client.get(job_url(job)))


def test_an_unknown_call_leads_to_its_question(database: Postgres) -> None:
    world = a_world()
    call, hold = an_unknown_call(world)
    html = text_of(visitor(world).get(f"/calls/{ids.show(ids.CALL, call)}/"))
    assert f"/approvals/{ids.show(ids.HOLD, hold)}/" in html
    assert "tone-unknown" in html


def test_a_large_value_is_a_size_and_a_link_until_it_is_asked_for(database: Postgres) -> None:
    world = a_world()
    call = a_call(world, "look", {"text": "q" * 200_000})
    client, path = visitor(world), f"/calls/{ids.show(ids.CALL, call)}/"
    small = client.get(path)
    assert len(small.content) < 30_000
    assert "Show all 200 KB" in text_of(small)
    assert "q" * 1000 in text_of(client.get(path, {"whole": "arguments"}))


def test_find_goes_to_what_an_id_names(database: Postgres) -> None:
    world = a_world()
    call, hold = a_held_call(world)
    job = see(world, Call, call).job_id
    client = visitor(world)
    for prefix, row, place in ((ids.JOB, job, "jobs"), (ids.CALL, call, "calls"), (ids.HOLD, hold, "approvals")):
        shown = ids.show(prefix, row)
        assert client.get("/find/", {"q": f" {shown} "}).headers["Location"] == f"/{place}/{shown}/"
    assert client.get("/find/", {"q": "month end"}).headers["Location"] == "/jobs/?q=month+end"


def test_the_catalog_marks_an_undeclared_function_and_gives_the_fix(database: Postgres) -> None:
    html = text_of(visitor(a_world()).get("/catalog/tools/shop/"))
    assert "it has no annotations" in html
    assert "@server.tool(annotations=ToolAnnotations(" in html
    assert "destructive_hint=False" in html
    assert html.count("up to 4 attempts") == 2


def test_a_trace_pages_through_many_calls(database: Postgres) -> None:
    world = a_world(limits=Limits(calls=500))
    job = a_job(world)
    a_turn(world, job, *["look"] * 230)
    client = visitor(world)
    newest = text_of(client.get(job_url(job)))
    assert newest.count('id="call_') == 200
    assert "30 earlier calls" in newest
    assert text_of(client.get(job_url(job, "?start=1"))).count("Later calls") == 1


def test_two_hundred_queued_calls_take_no_more_queries_than_two(database: Postgres) -> None:
    world = a_world(limits=Limits(calls=500))
    few, many = a_job(world), a_job(world)
    a_turn(world, few, "look", "look")
    a_turn(world, many, *["look"] * 200)
    client, counts = visitor(world), []
    client.get(job_url(few))
    for job in (few, many):
        with CaptureQueriesContext(connection) as asked:
            client.get(job_url(job))
        counts.append(len(asked))
    assert counts[0] == counts[1]
