"""Sessions with remote servers: one generation, one client, siblings apart, stops, and a server that restarts."""

import asyncio
import json
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from catalog.rules.servers import Remote
from jobs.node import Node, NotOpened
from jobs.rules.orders import End, ResumePoint
from jobs.rules.reasons import Reason
from tests.node.driving import Driven, until
from tests.node.remotes import reached, remote_spec
from tests.servers.raw_http import Peer, RawServer, Request
from tests.servers.sdk_remote import SdkRemote, an_sdk_remote

both = pytest.mark.parametrize("modern", [True, False], ids=["2026-07-28", "2025-11-25"])


# --- what a connection can do ------------------------------------------------------------------------------------


@pytest.mark.rule("C5")
@pytest.mark.parametrize(
    ("legacy", "in_json", "stateless", "can_cancel", "can_report"),
    [
        (False, False, False, True, True),
        (False, True, False, False, False),
        (True, False, False, True, True),
        (True, True, False, True, False),
        (True, False, True, False, True),
    ],
)
def test_whether_a_connection_can_cancel_and_report_is_measured(
    legacy: bool, in_json: bool, stateless: bool, can_cancel: bool, can_report: bool
) -> None:
    with an_sdk_remote(legacy=legacy, in_json=in_json, stateless=stateless) as remote, reached(remote.url) as drive:
        listing = drive.open().listing
        assert listing.protocol == ("2025-11-25" if legacy else "2026-07-28")
        assert (listing.can_cancel, listing.can_report) == (can_cancel, can_report)
        assert drive.call("ping").result.text == "pong"
        order = drive.order("slow", {"seconds": 30}, cleanup=0.5)
        running = drive.start(order)
        until(lambda: "slow began" in remote.ledger, "the call at the server")
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        assert running.result(10).end is End.STOPPED
        if can_cancel:
            until(lambda: "slow stopped" in remote.ledger, "the end of the function", 3)
        else:
            assert "slow stopped" not in remote.ledger


@pytest.fixture(params=[False, True], ids=["2026-07-28", "2025-11-25"])
def sdk(request: pytest.FixtureRequest) -> Iterator[tuple[SdkRemote, Driven, bool]]:
    with an_sdk_remote(legacy=request.param) as remote, reached(remote.url) as drive:
        yield remote, drive, request.param


@pytest.mark.rule("L1")
@pytest.mark.rule("L2")
def test_the_end_of_a_stopped_call_is_known_exactly_where_the_server_says_it(
    sdk: tuple[SdkRemote, Driven, bool],
) -> None:
    remote, drive, legacy = sdk
    order = drive.order("slow", {"seconds": 30}, cleanup=1.0)
    running = drive.start(order)
    until(lambda: "slow began" in remote.ledger, "the call at the server")
    asked = time.monotonic()
    drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(10)
    assert (outcome.end, outcome.end_known) == (End.STOPPED, legacy)
    assert (time.monotonic() - asked < 0.9) == legacy
    until(lambda: "slow stopped" in remote.ledger, "the end of the function", 3)
    assert drive.call("ping").end is End.ANSWERED


@pytest.mark.rule("L2")
def test_once_a_server_has_acknowledged_a_cancel_its_word_is_waited_for() -> None:
    """CASES L03."""
    with an_sdk_remote(legacy=True) as remote, reached(remote.url) as drive:
        first = drive.order("slow", {"seconds": 30})
        running = drive.start(first)
        until(lambda: "slow began" in remote.ledger, "the call at the server")
        drive.node.stop(first.attempt_id, Reason.STOPPED_CANCEL)
        assert running.result(10).end_known
        order = drive.order("blocking", cleanup=0.2)
        running = drive.start(order)
        until(lambda: "blocking began" in remote.ledger, "the call at the server")
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        with pytest.raises(TimeoutError):
            running.result(1.0)
        remote.release.set()
        outcome = running.result(10)
        assert (outcome.end, outcome.end_known) == (End.STOPPED, True)
        assert "blocking ended" in remote.ledger


@pytest.mark.rule("P1")
@pytest.mark.rule("P3")
def test_progress_and_tokens_are_kept_and_the_next_attempt_carries_the_token_with_its_progress(
    sdk: tuple[SdkRemote, Driven, bool],
) -> None:
    _, drive, _ = sdk
    first = drive.call("reports", {"steps": 3}, retry_safe=True)
    assert first.progress.resume == ResumePoint("t3", 3.0, 3.0)
    second = drive.call("reports", {"steps": 1}, retry_safe=True, resume=ResumePoint("t3", 3.0, 3.0))
    assert "'token': 't3'" in second.result.text and "'progress': 3" in second.result.text
    assert "resume None" in drive.call("reports", {"steps": 1}, retry_safe=True).result.text


# --- one generation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["401 No", "403 No", "429 Busy", "500 Oh", "503 Off"])
def test_a_passing_trouble_with_the_first_question_never_lowers_the_generation(line: str) -> None:
    async def step(peer: Peer, request: Request) -> None:
        await peer.status(line, Retry_After="1")

    with RawServer() as server:
        server.script["server/discover"] = step
        with reached(server.url, opened=False) as drive:
            assert isinstance(drive.node.open(drive.spec), NotOpened)
            assert [request.method for request in server.requests] == ["server/discover"]
            del server.script["server/discover"]
            assert drive.open().listing.protocol == "2026-07-28"


@both
def test_a_generation_measured_before_is_kept_to_without_asking(modern: bool) -> None:
    protocol = "2026-07-28" if modern else "2025-11-25"
    with RawServer(modern=modern) as server, reached(server.url, protocol=protocol) as drive:
        assert drive.call("ok").end is End.ANSWERED
        asked = [request for request in server.requests if request.method == "server/discover"]
        assert all(request.headers["accept"] == "application/json" for request in asked)
        assert bool([request for request in server.requests if request.method == "initialize"]) != modern


def test_a_credential_goes_with_every_request_and_one_client_serves_all_sessions_of_a_connection() -> None:
    with RawServer() as server:
        connection = uuid4()
        place = f"127.0.0.1:{server.port}"
        remote = Remote(connection, "c", server.url, (place,), headers={"Authorization": "Bearer very-secret"})
        with reached(server.url, remote=remote) as drive:
            other = remote_spec(server.url, remote=remote, tenant=drive.spec.tenant, tool="other")
            drive.node.open(other)
            drive.call("ok")
            assert {request.headers.get("authorization") for request in server.requests} == {"Bearer very-secret"}
            assert "very-secret" not in repr(drive.spec)
            pool = drive.node._pool
            assert pool is not None
            (shared,) = pool._clients._shared.values()
            assert shared.users == 2
        assert pool._clients._shared == {}


# --- siblings ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("U3")
@pytest.mark.rule("U4")
@both
def test_of_twenty_calls_at_once_one_cut_one_refused_and_one_garbled_cost_no_other(modern: bool) -> None:
    """CASES L11; issue 3, show 3."""
    ready = asyncio.Event()
    arrived = []

    async def together(peer: Peer, request: Request) -> None:
        arrived.append(request)
        if len(arrived) == 20:
            ready.set()
        await ready.wait()
        what = request.params["arguments"]["what"]
        if what == "cut":
            peer.reset()
        elif what == "refused":
            await peer.status("403 Forbidden")
        elif what == "garbled":
            await peer.status("200 OK", b"<html>")
        else:
            await peer.status("200 OK", request.result(what))

    with RawServer("together", modern=modern) as server, reached(server.url) as drive:
        server.script["together"] = together
        wanted = ["cut", "refused", "garbled", *(f"ok {n}" for n in range(17))]
        running = [drive.start(drive.order("together", {"what": what})) for what in wanted]
        outcomes = [one.result(20) for one in running]
    assert [one.end for one in outcomes[:3]] == [End.BROKEN, End.NOT_MADE, End.UNREADABLE]
    assert [one.result.text for one in outcomes[3:]] == wanted[3:]


@both
def test_a_call_that_runs_into_its_limit_leaves_the_others_of_33_functions_alone(modern: bool) -> None:
    """CASES L11."""

    async def never(peer: Peer, request: Request) -> None:
        await peer.reader.read(1)

    names = [f"f{n}" for n in range(31)]
    with RawServer("never", *names, modern=modern) as server, reached(server.url) as drive:
        server.script["never"] = never
        for _ in range(3):
            assert drive.call("never", timeout=0.6, own_limit=0.5).end is End.TIMED_OUT
        assert {drive.call(name).end for name in names} == {End.ANSWERED}
        (status,) = drive.node.servers()
        assert status.starts == 1


@pytest.mark.rule("L1")
def test_a_slow_202_to_a_cancel_holds_nothing_else_up() -> None:
    """CASES L15, between the node and the server."""

    async def never(peer: Peer, request: Request) -> None:
        await peer.reader.read(1)

    async def slow(peer: Peer, request: Request) -> None:
        await asyncio.sleep(3)
        await peer.status("202 Accepted")

    with RawServer("never", modern=False) as server, reached(server.url) as drive:
        server.script |= {"never": never, "notifications/cancelled": slow}
        order = drive.order("never", cleanup=0.2)
        running = drive.start(order)
        until(lambda: server.calls("never"), "the call at the server")
        began = time.monotonic()
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        assert drive.call("ok").end is End.ANSWERED
        assert running.result(5).end is End.STOPPED
        assert time.monotonic() - began < 2.5
        cancels = [one for one in server.requests if one.method == "notifications/cancelled"]
        assert cancels[0].params["requestId"] == server.calls("never")[0].body["id"]


@pytest.mark.rule("L1")
def test_on_the_newer_protocol_a_stop_closes_the_calls_stream_and_sends_nothing() -> None:
    """CASES L15, between the node and the server."""

    async def never(peer: Peer, request: Request) -> None:
        await peer.stream()
        await peer.reader.read(1)
        request.closed.set()

    with RawServer("never") as server, reached(server.url) as drive:
        server.script["never"] = never
        order = drive.order("never", cleanup=0.2)
        running = drive.start(order)
        until(lambda: server.calls("never"), "the call at the server")
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        outcome = running.result(5)
        assert (outcome.end, outcome.end_known) == (End.STOPPED, False)
        assert server.calls("never")[0].closed.wait(3)
        assert not [one for one in server.requests if one.method.startswith("notifications/")]


@pytest.mark.rule("L9")
def test_on_the_older_protocol_an_answer_after_the_end_is_kept_as_evidence() -> None:
    """CASES L02 B, U09."""

    async def late(peer: Peer, request: Request) -> None:
        await asyncio.sleep(1.0)
        await peer.status("200 OK", request.result("the late truth"))

    with RawServer("late", modern=False) as server, reached(server.url) as drive:
        server.script["late"] = late
        order = drive.order("late", cleanup=0.2)
        running = drive.start(order)
        until(lambda: server.calls("late"), "the call at the server")
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        assert running.result(5).end is End.STOPPED
        ((attempt, result),) = until(lambda: drive.late, "the late answer")
        assert (attempt, result.text) == (order.attempt_id, "the late truth")


# --- a server that goes away -------------------------------------------------------------------------------------


@pytest.mark.rule("U3")
@pytest.mark.rule("B7")
def test_a_legacy_session_that_the_server_forgot_fails_its_call_as_not_made_and_the_next_opens_a_new_one() -> None:
    with RawServer(modern=False) as server, reached(server.url) as drive:
        assert drive.call("ok").end is End.ANSWERED
        server.stale_sessions.add("session-1")
        outcome = drive.call("ok")
        assert (outcome.end, outcome.wire.status) == (End.NOT_MADE, 404)
        assert drive.call("ok").end is End.ANSWERED
        assert server.sessions == 2
        assert len(server.calls("ok")) == 3


@both
def test_a_server_that_cannot_be_reached_was_not_called(modern: bool) -> None:
    """CASES G14."""
    with reached_then_gone(modern) as drive:
        outcome = drive.call("ok")
    assert (outcome.end, outcome.reason, outcome.wire.went_out) == (End.NOT_MADE, Reason.SERVER_NOT_UP, False)
    assert "could not be connected to" in outcome.wire.detail


class reached_then_gone:
    """A node whose server has just gone."""

    def __init__(self, modern: bool) -> None:
        self.server = RawServer(modern=modern)

    def __enter__(self) -> Driven:
        self.server.__enter__()
        self.reached = reached(self.server.url)
        drive = self.reached.__enter__()
        assert drive.call("ok").end is End.ANSWERED
        self.server.__exit__()
        return drive

    def __exit__(self, *_: object) -> None:
        self.reached.__exit__(None, None, None)


def test_an_address_that_is_not_allowed_is_never_connected_to_and_says_what_to_allow() -> None:
    with RawServer() as canary:
        node = Node()
        node.start()
        try:
            opened = node.open(remote_spec(canary.url, allowed=()))
        finally:
            node.shutdown(0)
        assert isinstance(opened, NotOpened)
        assert f"127.0.0.1:{canary.port}" in opened.detail and "/settings/connections/" in opened.detail
        assert canary.requests == []


def test_the_arguments_key_and_headers_on_the_wire_agree() -> None:
    with RawServer("Grüße") as server, reached(server.url) as drive:
        drive.call("Grüße", {"a": "ü"}, key="job/7")
        (request,) = server.calls()
        assert request.params["arguments"] == {"a": "ü"}
        assert request.params["_meta"]["oz0/idempotency_key"] == "job/7"
        assert request.headers["mcp-method"] == "tools/call"
        assert request.headers["mcp-name"].startswith("=?base64?")
        assert (
            json.loads(json.dumps(request.params["_meta"]))["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        )
