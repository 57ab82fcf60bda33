"""A node is killed in a harness session: a program on the MCP SDK's own client, through a real gateway.

What it called was safe to repeat: it starts again by itself, under equal keys, and each write has one effect. One plain
write among it had gone out: a person is asked.
"""

import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import httpx2
import psutil
import pytest
from pytest_django import DjangoDbBlocker

from base import db, sandbox
from jobs.models import Call, Hold, Session
from jobs.rules.states import CallState, JobState, SessionState
from tenants.models import ApiToken
from tests.faults.processes import alive
from tests.faults.stand import RunningNode, Services, a_stand
from tests.gateway.conftest import Web, a_web
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400), pytest.mark.usefixtures("web")]

PROGRAM = textwrap.dedent("""
    import asyncio, json, os, sys
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    def peek(url):
        print("proxied", httpx2.get(url, timeout=20).status_code)
        try:
            httpx2.get(url, timeout=20, trust_env=False)
            print("reached")
        except httpx2.ConnectError:
            print("no way there")

    async def main():
        given = json.load(sys.stdin)
        if given["input"]["peek"]:
            peek(given["input"]["peek"])
        headers = {"Authorization": "Bearer " + os.environ["OZ0_TOKEN"]}
        async with httpx2.AsyncClient(headers=headers, timeout=120, trust_env=given["input"]["proxied"]) as http:
            transport = streamable_http_client(os.environ["OZ0_MCP_URL"], http_client=http)
            async with Client(transport, mode="2026-07-28", cache=None) as client:
                print("offered", len((await client.list_tools()).tools))
                for function, arguments in given["input"]["calls"]:
                    result = await client.call_tool("billing__" + function, arguments)
                    print(function, "failed" if result.is_error else "done", result.content[0].text)
                    if result.is_error:
                        print("a call failed:", result.content[0].text, file=sys.stderr)
                        return 1
        return 0

    sys.exit(asyncio.run(main()))
""")
AGENT = textwrap.dedent("""
    name: program
    harness: [python, program.py]
    instructions: Make the calls of your input, in their order.
    functions: [billing.*]
    input: {calls: [], proxied: false, peek: ""}
    limits: {calls: 100, minutes: 60}
""")
CHARGE: list[object] = ["charge", {"account": "A-1", "order_id": "o-1", "amount": 5}]
BALANCE: list[object] = ["balance", {"account": "A-1"}]
NOTE: list[object] = ["note", {"account": "A-1", "text": "once"}]
REFUND: list[object] = ["refund", {"order_id": "o-1", "amount": 1}]  # a person is asked first: the program waits in it
PATIENCE = 90.0


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Services]:
    with django_db_blocker.unblock(), a_stand(tmp_path_factory.mktemp("stand")) as made:
        made.use_plugin(files={"program.py": PROGRAM, "agents/program.yaml": AGENT})
        yield made


@pytest.fixture(scope="module")
def web(stand: Services) -> Iterator[Web]:
    found = a_web(stand.postgres, stand.broker, stand.home)
    stand.address = found.url
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait(15)


@contextmanager
def a_node(stand: Services) -> Iterator[RunningNode]:
    """A node whose programs find the gateway."""
    node = stand.node()
    try:
        yield node
    finally:
        if node.lives():
            node.kill()


def session(stand: Services, job: UUID) -> Session:
    with db.read(stand.tenant):
        return Session.objects.get(job_id=job)


def asked(stand: Services, job: UUID, kind: str = "approve", *, incarnation: int = 1) -> Hold:
    """The question of this kind that the incarnation comes to; waits for it."""

    def found() -> Hold | None:
        with db.read(stand.tenant):
            mine = Hold.objects.filter(job_id=job, kind=kind, closed_at__isnull=True, call__incarnation=incarnation)
            return mine.select_related("call").first()

    until(lambda: found() is not None or stand.job(job).ended_at is not None, "nobody was asked", PATIENCE)
    hold = found()
    assert hold is not None, f"{stand.job(job).detail}\n{session(stand, job).errors}"
    return hold


def programs(node: RunningNode) -> list[psutil.Process]:
    return [one for one in node.family() if "program.py" in " ".join(one.cmdline())]


def killed_while_it_waits(stand: Services, *calls: list[object], **more: object) -> tuple[UUID, list[Call]]:
    """A job whose program has made these calls and waits for a person in the next one when its node is killed."""
    with a_node(stand) as node:
        stand.until_listed()
        job = stand.start("program", calls=[*calls, REFUND], **more)
        asked(stand, job)
        made = stand.calls(job)[:-1]
        assert {call.state for call in made} == {CallState.SUCCEEDED}
        running = programs(node)
        assert running, "the control: its program is a process of this node"
        node.kill()
        until(lambda: not alive(running), "its program outlived the node", 10)
    return job, made


def effects(stand: Services, calls: list[Call]) -> list[tuple[int, int]]:
    """(how often a server was asked, how many lines its ledger has) for the key of each call."""
    return [(stand.begun()[call.key], stand.ledger()[call.key]) for call in calls]


@pytest.mark.rule("K3")
@pytest.mark.rule("K4")
@pytest.mark.rule("K6")
def test_a_session_of_retry_safe_calls_starts_again_by_itself_and_each_write_has_one_effect(
    stand: Services,
) -> None:
    job, (first, _, second) = killed_while_it_waits(stand, CHARGE, BALANCE, CHARGE)
    assert first.key != second.key, "two calls with equal arguments are two"
    assert effects(stand, [first, second]) == [(1, 1), (1, 1)]
    with a_node(stand):
        hold = asked(stand, job, incarnation=2)
        with db.read(stand.tenant):
            lost = ApiToken.objects.filter(created_by__isnull=True).order_by("created_at").first()
            assert lost is not None and lost.revoked_at is not None, "the lost one's token is dead"
        stand.answer(hold, "approve")
        stand.until_over(job, seconds=PATIENCE)
    again = [call for call in stand.calls(job) if call.incarnation == 2 and call.function_name == "charge"]
    assert [call.key for call in again] == [first.key, second.key]
    assert effects(stand, [first, second]) == [(2, 1), (2, 1)], "asked twice under one key, and done once"
    over = stand.job(job)
    assert (over.state, session(stand, job).state) == (JobState.COMPLETED, SessionState.ENDED)
    assert "refund done" in over.output


@pytest.mark.rule("K6")
def test_a_session_with_one_plain_write_that_went_out_asks_a_person(stand: Services) -> None:
    job, (charge, note) = killed_while_it_waits(stand, CHARGE, NOTE, proxied=True)
    with a_node(stand):
        question = asked(stand, job, "session")
        assert question.call_id == note.pk
        assert (session(stand, job).state, stand.job(job).state) == (SessionState.ASKING, JobState.WAITING)
        assert effects(stand, [charge, note]) == [(1, 1), (1, 1)], "nothing was made again unasked"
        stand.answer(question, "start_again")
        stand.answer(asked(stand, job, incarnation=2), "approve")
        stand.until_over(job, seconds=PATIENCE)
    assert stand.job(job).state == JobState.COMPLETED
    notes = [call for call in stand.calls(job) if call.function_name == "note"]
    assert effects(stand, [charge, *notes]) == [(2, 1), (1, 1), (1, 1)], "a plain write has a key of its own again"


@pytest.mark.rule("L1")
def test_a_cancel_ends_its_program_and_a_program_that_fails_fails_its_job(stand: Services) -> None:
    with a_node(stand) as node:
        stand.until_listed()
        job, failing = stand.start("program", calls=[REFUND]), stand.start("program", calls=[["nothing", {}]])
        asked(stand, job)
        running = programs(node)
        assert running
        stand.cancel(job)
        stand.until_over(job, failing)
        until(lambda: not alive(running), "a program outlived its job", 15)
    assert (stand.job(job).state, session(stand, job).state) == (JobState.CANCELED, SessionState.STOPPED)
    failed = stand.job(failing)
    assert (failed.state, failed.failure_kind) == (JobState.FAILED, "agent_error")
    assert "a call failed" in failed.detail


def test_a_program_reaches_the_studio_and_nothing_else(stand: Services) -> None:
    """Its room has no network, and its one way out leads to the studio and its model's server alone."""
    with an_http_server() as (address, hits), a_node(stand):
        stand.until_listed()
        assert httpx2.get(address, trust_env=False).status_code == 200 and len(hits) == 1, "the control: it is there"
        job = stand.start("program", calls=[BALANCE], peek=address)
        stand.until_over(job, seconds=PATIENCE)
    output = stand.job(job).output
    assert "balance done" in output, "the studio it reaches"
    if sandbox.measured() is sandbox.Isolation.PROCESS_GROUP:  # then the studio promises nothing, and says so
        assert "reached" in output
    else:
        assert "proxied 403" in output and "no way there" in output, output
        assert len(hits) == 1


@contextmanager
def an_http_server() -> Iterator[tuple[str, list[str]]]:
    """A server of this machine beside the studio: its address, and the paths it was asked for."""
    hits: list[str] = []

    class Counting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", hits
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
