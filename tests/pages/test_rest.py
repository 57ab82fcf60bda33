"""The API for programs: starting, listing, following and stopping jobs (DESIGN 9; RULES A5, A10, A14, G1, L7)."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test import Client

from base import db, ids
from base.bounded_body import OF_PROGRAMS
from catalog.models import Scope, Tool
from catalog.rules.switching import Mode
from jobs.models import Job, Starter
from jobs.rules.orders import End
from jobs.rules.seeing import HIDDEN
from tenants.models import AuditEntry, Membership, Role
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_switch,
    a_world,
    an_agent,
    an_outcome,
    made,
    see,
    the_job,
)
from tests.pages.test_tokens import made as a_token
from tests.pages.visitors import visitor

pytestmark = pytest.mark.usefixtures("database")
V1 = "/api/v1"
PROBLEM = "application/problem+json"


class Program:
    """A program with a token of the world's person."""

    def __init__(self, world: World, person: int | None = None, **token: Any) -> None:
        self.world = world
        self.token = a_token(visitor(world, person), **{"scope": ["read", "start"], **token})

    def ask(self, method: str, path: str, said: Any = None, **headers: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        body = said if isinstance(said, bytes) else b"" if said is None else json.dumps(said).encode()
        kind = headers.pop("Content-Type", "application/json")
        return Client().generic(method, V1 + path, body, content_type=kind, headers=headers)

    def get(self, path: str, **headers: str) -> Any:
        return self.ask("GET", path, **headers)

    def start(self, said: Any = None, **headers: str) -> Any:
        return self.ask("POST", "/jobs", {"agent": "clerk"} if said is None else said, **headers)


def detail(answer: Any, status: int) -> str:
    assert (answer.status_code, answer["Content-Type"]) == (status, PROBLEM), answer.content
    said = answer.json()
    assert said["status"] == status
    return str(said["detail"])


@pytest.mark.rule("G1")
def test_a_program_starts_a_job_as_its_person_and_finds_it_in_every_way() -> None:
    world = a_world()
    program = Program(world)
    answer = program.start({"agent": "clerk", "title": "Nightly"})
    assert answer.status_code == 201
    job = answer.json()
    assert answer["Location"] == f"{V1}/jobs/{job['id']}"
    assert (job["starter"], job["started_by"], job["title"], job["state"]) == (
        "api_key",
        "pat-acme",
        "Nightly",
        "queued",
    )
    assert program.get(f"/jobs/{job['id']}").json() == job
    (line,) = program.get("/jobs").json()["jobs"]
    assert (line["id"], line["over"]) == (job["id"], False)
    read = program.get(f"/jobs/{job['id']}/events").json()
    assert [event["kind"] for event in read["events"]] == ["job.started"]
    assert read["events"][0]["data"]["person"] == "pat-acme"
    assert (read["next"], read["more"], read["over"]) == (1, False, False)
    assert program.get(f"/jobs/{job['id']}/events?after=1").json()["events"] == []
    row = see(world, Job, ids.parse(ids.JOB, job["id"]))
    assert row.on_unknown == "fail"  # RULES U5: nobody is there to be asked


def test_one_key_starts_one_job_and_another_body_under_it_none() -> None:
    """CASES R01, R11; how inputs are compared is tried in `tests/operations/test_submit.py`."""
    program = Program(a_world())
    first = program.start(Idempotency_Key="k1").json()["id"]
    assert program.start(Idempotency_Key="k1").json()["id"] == first
    assert "has started another job" in detail(
        program.start({"agent": "clerk", "title": "else"}, Idempotency_Key="k1"), 409
    )
    assert program.start(Idempotency_Key="k2").json()["id"] != first
    assert program.start().json()["id"] != first
    other = Program(program.world, name="other")
    assert other.start(Idempotency_Key="k1").json()["id"] != first  # a key is of its token
    for odd in ("", "a b", "x" * 256, "ä"):
        assert detail(program.start(Idempotency_Key=odd), 422)
    assert len(program.get("/jobs").json()["jobs"]) == 4


def test_the_same_key_from_many_at_once_starts_one_job() -> None:
    """CASES R19."""
    program = Program(a_world())

    def start(_: int) -> Any:
        try:
            return program.start(Idempotency_Key="k").json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(start, range(12)))) == 1
    assert len(program.get("/jobs").json()["jobs"]) == 1


@pytest.mark.rule("L7")
def test_the_gate_of_the_form_is_the_gate_of_the_api() -> None:
    world = a_world()
    program = Program(world)
    assert "no agent named" in detail(program.start({"agent": "nobody"}), 422)
    refused = program.start({"agent": "clerk", "input": {"month": "x"}})
    assert "no input named 'month'" in detail(refused, 422)
    a_switch(world, Scope.AGENT, "clerk", reason="an incident", mode=Mode.KILL)
    assert "kill switch" in detail(program.start(), 422)
    with db.read(world.tenant):
        assert not Job.objects.exists()


def test_who_may_not_start_is_told_why() -> None:
    world = a_world()
    an_agent(world.tenant, "other")
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    program = Program(world, vic)
    assert program.start().status_code == 201
    reader, bound = Program(world, scope=["read"]), Program(world, agent="other")
    assert "lacks the scope start" in detail(reader.start(), 403)
    assert "starts only that" in detail(bound.start(), 403)
    assert bound.start({"agent": "other"}).status_code == 201
    # a session alone starts nothing, with or without its form's token
    assert "only reads" in detail(visitor(world).post(f"{V1}/jobs", {"agent": "clerk"}, "application/json"), 401)
    with db.write(world.tenant):
        Membership.objects.filter(user_id=vic).update(role=Role.VIEWER)
    assert "viewer" in detail(program.start(), 403)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"agent": 1}', 422),
        (b'{"agent": ""}', 422),
        (b'{"agent": "clerk", "agent": "other"}', 400),
        (b'{"agent": "clerk", "more": 1}', 422),
        (b'{"agent": "clerk\\u0000"}', 422),
        (b'{"agent": "\\ud800"}', 422),
        (b'{"agent": "clerk", "title": "\\ud800"}', 422),
        (b'{"agent": "clerk", "input": {"a": NaN}}', 400),
        (b'{"agent": "clerk", "input": {"a": "\\u0000"}}', 422),
        (b'{"agent": "clerk", "input": {"a": "\\ud800"}}', 422),
        (b'{"agent": "clerk", "input": {"\\udc00": 1}}', 422),
        (b'{"agent": "clerk", "input": ' + b"[" * 100_000, 400),
        (b'{"agent": "\xff"}', 400),
    ],
)
def test_a_body_that_is_none_starts_nothing_and_is_no_error_of_ours(body: bytes, status: int) -> None:
    """CASES S14."""
    program = Program(a_world())
    assert detail(program.ask("POST", "/jobs", body), status)
    assert program.get("/jobs").json()["jobs"] == []


def test_what_is_asked_the_wrong_way_is_told_in_problem_documents() -> None:
    world = a_world()
    program = Program(world)
    job = ids.show(ids.JOB, a_job(world))
    big = {"agent": "clerk", "input": {"a": "x" * OF_PROGRAMS}}
    assert "at most" in detail(program.start(big), 413)
    assert "JSON" in detail(program.ask("POST", "/jobs", b"agent=clerk", **{"Content-Type": "text/plain"}), 415)
    form = "multipart/form-data; boundary=x"
    assert "JSON" in detail(program.ask("POST", "/jobs", b"--x\r\n\r\n", **{"Content-Type": form}), 415)
    assert "application/json" in detail(program.get("/jobs", Accept="text/html"), 406)
    assert "text/event-stream" in detail(program.get(f"/jobs/{job}/events", Accept="text/html"), 406)
    refused = program.ask("DELETE", "/jobs")
    assert detail(refused, 405) and refused["Allow"] == "GET, HEAD, POST"
    assert program.ask("DELETE", f"/jobs/{job}")["Allow"] == "GET, HEAD"
    wrong = program.get("/jobs?limit=0&state=any&after=job_x")
    assert detail(wrong, 422)
    assert {mistake["at"] for mistake in wrong.json()["errors"]} == {"query.limit", "query.state"}
    assert detail(program.get("/jobs?after=job_x"), 400)
    assert detail(program.get("/jobs?q=%00"), 400)
    assert detail(program.get(f"/jobs/{job}/events?after=-1"), 422)
    assert detail(program.get(f"/jobs/{job}/events", Accept="text/event-stream", Last_Event_ID="x"), 400)
    for path in ("/jobs/job_x", "/jobs/%00", f"/jobs/{job}x", "/calls/call_x", "/jobs/job_x/events", "/nothing", ""):
        assert "nothing at this address" in detail(program.get(path), 404)
    misdirected = Client(headers={"Authorization": f"Bearer {program.token}"}).get(
        f"{V1}/jobs", headers={"Host": "evil.example"}
    )
    assert "OZ0_ALLOWED_HOSTS" in detail(misdirected, 421)


def test_a_head_is_a_get_without_its_body() -> None:
    world = a_world()
    program = Program(world)
    job = ids.show(ids.JOB, a_job(world))
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/events", "/holds", "/openapi.json"):
        answer = program.ask("HEAD", path)
        assert (answer.status_code, answer.content) == (200, b""), path


def test_a_database_that_is_away_and_an_error_of_ours_give_nothing_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = Program(a_world())

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("jobs.api.jobs.jobs_page", broken)
    error: Exception = RuntimeError("s3cret")
    answer = program.get("/jobs")
    assert detail(answer, 500) and b"s3cret" not in answer.content
    assert "s3cret" in caplog.text
    error = OperationalError("s3cret")
    answer = program.get("/jobs")
    assert detail(answer, 503) and answer["Retry-After"]


def test_a_list_is_filtered_and_paged_by_its_cursor() -> None:
    world = a_world()
    an_agent(world.tenant, "other")
    program = Program(world)
    started = [program.start({"agent": "clerk", "title": f"t{i}"}).json()["id"] for i in range(5)]
    other = program.start({"agent": "other"}).json()["id"]
    a_job(world)
    seen, cursor = [], ""
    for _ in range(3):
        page = program.get(f"/jobs?limit=2&agent=clerk&starter=api_key&after={cursor}").json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next"] or ""
    assert seen == started[::-1] and cursor == ""
    assert [job["id"] for job in program.get("/jobs?agent=other").json()["jobs"]] == [other]
    assert len(program.get("/jobs?live=true").json()["jobs"]) == 7
    assert program.get("/jobs?live=false").json()["jobs"] == program.get("/jobs?state=FAILED").json()["jobs"] == []
    assert [job["title"] for job in program.get("/jobs?q=t3").json()["jobs"]] == ["t3"]
    bound = Program(world, agent="other")
    assert [job["id"] for job in bound.get("/jobs").json()["jobs"]] == [other]
    assert detail(bound.get("/jobs?agent=clerk"), 403)
    for path in (f"/jobs/{started[0]}", f"/jobs/{started[0]}/events"):
        assert "nothing at this address" in detail(bound.get(path), 404)


@pytest.mark.rule("A12")
def test_a_token_stops_what_it_has_started_itself_and_nothing_else() -> None:
    world = a_world()
    program = Program(world, name="nightly")
    mine, by_hand = program.start().json()["id"], ids.show(ids.JOB, a_job(world))
    colleague = Program(world, a_person(world.tenant, "kim", Role.ADMIN))
    sibling = Program(world, name="weekly")
    for who, job in ((program, by_hand), (colleague, mine), (sibling, mine)):
        assert "stops only jobs" in detail(who.ask("POST", f"/jobs/{job}/cancel"), 403)
    answer = program.ask("POST", f"/jobs/{mine}/cancel")
    assert (answer.status_code, answer.json()["state"], answer.json()["stop_asked_by"]) == (
        202,
        "CANCELED",
        "pat-acme",
    )
    assert "CANCELED already" in detail(program.ask("POST", f"/jobs/{mine}/cancel"), 409)
    assert program.get(f"/jobs/{mine}/events").json()["over"]
    with db.read(world.tenant):
        assert AuditEntry.objects.get(verb="job.cancel").how.startswith("token nightly, ")


@pytest.mark.rule("A14")
def test_a_call_is_read_as_its_person_may_see_it() -> None:
    world = a_world()
    call = a_call(world, "look", {"q": "given-4711"})
    made(world, call, an_outcome(End.ANSWERED, text="said-4712"))
    shown = ids.show(ids.CALL, call)
    operator, viewer = Program(world), Program(world, a_person(world.tenant, "vic", Role.VIEWER), scope=["read"])
    whole = operator.get(f"/calls/{shown}").json()
    assert viewer.get(f"/calls/{shown}").json() == whole
    assert whole["arguments"] == {"value": {"q": "given-4711"}, "size": 0, "left_out": False}
    assert (whole["result_text"], whole["state"], whole["function"]) == ("said-4712", "SUCCEEDED", "shop.look")
    (attempt,) = whole["attempts"]
    assert attempt["state"] == "answered" and attempt["id"].startswith("att_")
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(sensitive=True)
    assert operator.get(f"/calls/{shown}").json() == whole
    hidden = viewer.get(f"/calls/{shown}")
    assert b"471" not in hidden.content
    assert hidden.json()["arguments"]["value"] == hidden.json()["result_text"] == HIDDEN
    job = ids.show(ids.JOB, the_job(world, call).pk)
    for path in (f"/jobs/{job}", f"/jobs/{job}/events", "/jobs", "/holds"):
        assert b"471" not in viewer.get(path).content


@pytest.mark.rule("A5")
def test_no_address_of_the_api_answers_a_question() -> None:
    world = a_world()
    call, hold = a_held_call(world)
    program = Program(world)
    described = program.get("/openapi.json").json()
    writes = [path for path, methods in described["paths"].items() if "post" in methods]
    of_budgets = [f"{V1}/budgets/{path}" for path in ("check/batches", "confirm", "ingest", "tokens", "tokens/refresh")]
    assert sorted(writes) == [*of_budgets, f"{V1}/jobs", f"{V1}/jobs/{{shown}}/cancel"]
    shown = program.get(f"/calls/{ids.show(ids.CALL, call)}").json()
    assert shown["open_question"] == ids.show(ids.HOLD, hold)
    assert program.get("/holds").json()["waiting"] == 1
    for path in (f"/holds/{shown['open_question']}", "/holds", f"/calls/{shown['id']}"):
        assert program.ask("POST", path, {"answer": "approve"}).status_code in (404, 405)
    assert program.get("/holds").json()["waiting"] == 1


def test_functions_are_filtered_and_paged_and_a_bound_token_reads_of_its_grants() -> None:
    world = a_world()
    program = Program(world)
    first = program.get("/catalog/functions?limit=4").json()
    rest = program.get(f"/catalog/functions?limit=4&after={first['next']}").json()
    names = [row["function"] for row in (*first["functions"], *rest["functions"])]
    assert names == sorted(f"shop.{name}" for name in ("look", "note", "charge", "refund", "export", "ship"))
    assert (first["found"], rest["next"]) == (6, None)
    (charge,) = program.get("/catalog/functions?q=charge").json()["functions"]
    assert (charge["kind"], charge["retry_safe"], charge["fares"]) == ("write", True, "runs")
    assert [row["function"] for row in program.get("/catalog/functions?fares=waits").json()["functions"]] == [
        "shop.export",
        "shop.refund",
    ]
    bound = Program(world, agent="clerk")
    assert bound.get("/catalog/functions").json()["found"] == 6
    assert detail(bound.get("/catalog/functions?agent=other"), 403)
    assert program.get("/catalog/functions?agent=nobody").json()["functions"] == []


def test_what_is_another_workspaces_is_not_there() -> None:
    ours, theirs = a_world("ours"), a_world("theirs")
    call = a_call(theirs)
    job = ids.show(ids.JOB, the_job(theirs, call).pk)
    program = Program(ours)
    for path in (f"/jobs/{job}", f"/jobs/{job}/events", f"/calls/{ids.show(ids.CALL, call)}"):
        assert detail(program.get(path), 404) == detail(program.get("/jobs/" + ids.show(ids.JOB, ids.new())), 404)
    assert detail(program.ask("POST", f"/jobs/{job}/cancel"), 404)
    assert program.get("/jobs").json()["jobs"] == []
    assert the_job(theirs, call).state != "CANCELED"


def test_the_pace_of_a_token_is_counted_over_all_processes_and_told(
    settings: LazySettings, move_clock: Callable[[timedelta], None]
) -> None:
    settings.OZ0_API_RATE = 10
    world = a_world()
    program, other = Program(world), Program(world, name="other")

    def status(_: int) -> int:
        try:
            return int(program.get("/jobs").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:  # each with a connection of its own, as other processes have
        found = sorted(pool.map(status, range(20)))
    assert found.count(200) in (10, 11)  # the clock went on for a moment
    assert set(found) == {200, 429}
    refused = program.get("/jobs")
    assert "10 times a minute" in detail(refused, 429)
    assert 1 <= int(refused["Retry-After"]) <= 7
    assert refused["RateLimit-Policy"] == '"token";q=10;w=60' and '"token";r=0;' in refused["RateLimit"]
    assert other.get("/jobs").status_code == 200
    move_clock(timedelta(seconds=13))  # two shares of six seconds
    assert [program.get("/jobs").status_code for _ in range(2)] == [200, 200]
    settings.OZ0_API_RATE = 0
    assert program.get("/jobs").status_code == 200 and "RateLimit" not in program.get("/jobs")
    assert visitor(world).get(f"{V1}/jobs").status_code == 200


def test_a_starter_is_told_apart_from_the_person() -> None:
    world = a_world()
    program = Program(world)
    program.start()
    with db.read(world.tenant):
        job = Job.objects.get()
    assert (job.starter, job.started_by_id) == (Starter.API_KEY, world.person)


def test_people_read_the_same_description_on_a_page() -> None:
    world = a_world()
    page = visitor(world).get("/settings/api/").content.decode()
    for path in Program(world).get("/openapi.json").json()["paths"]:
        assert path in page
    assert "Idempotency-Key" in page
