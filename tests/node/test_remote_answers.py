"""What a remote server's answer proves of a call: each fault beside a control that succeeds (MACHINES 5)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from catalog.rules.wire import AnswerEnd
from catalog.sessions import http_exchange
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from tests.node.driving import Driven
from tests.node.remotes import reached
from tests.servers.raw_http import Peer, RawServer, Request, Step

FUNCTION = "told"


@pytest.fixture(params=[True, False], ids=["2026-07-28", "2025-11-25"], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[RawServer]:
    with RawServer(FUNCTION, modern=request.param) as raw:
        yield raw


@pytest.fixture(scope="module")
def drive(server: RawServer) -> Iterator[Driven]:
    with reached(server.url) as driven:
        yield driven


@pytest.fixture
def told(server: RawServer, drive: Driven) -> Callable[..., Outcome]:
    """Make one call that the server answers by a step; then a control that must succeed, on the same session."""

    def make(step: Step, **more: Any) -> Outcome:
        server.script[FUNCTION] = step
        before = len(server.calls(FUNCTION))
        outcome = drive.call(FUNCTION, **more)
        assert len(server.calls(FUNCTION)) == before + 1, "exactly one request was sent"
        assert drive.call("ok").end is End.ANSWERED
        return outcome

    return make


def status(line: str, body: Any = b"", kind: str = "application/json", **headers: str) -> Step:
    async def step(peer: Peer, request: Request) -> None:
        whole = body(request) if callable(body) else body
        await peer.status(line, whole, kind, **headers)

    return step


def rpc_error(code: int, **more: Any) -> Callable[[Request], dict[str, Any]]:
    def body(request: Request) -> dict[str, Any]:
        error = {"code": code, "message": "the server's own words"}
        return {"jsonrpc": "2.0", "id": request.body["id"], "error": error, **more}

    return body


IN_AN_HOUR = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
DATED = {"Date": "Sun, 29 Nov 2026 10:00:00 GMT", "Retry_After": "Sun, 29 Nov 2026 10:00:07 GMT"}


@pytest.mark.rule("B4")
@pytest.mark.rule("B7")
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry_After": "3"}, 3.0),
        ({"Retry_After": "0"}, 0.0),
        ({"Retry_After": "61"}, 61.0),
        ({"Retry_After": "-1"}, None),
        ({"Retry_After": "abc"}, None),
        ({"Retry_After": "1e3"}, None),
        ({"Retry_After": "99999999999999999999"}, None),
        ({}, None),
        (DATED, 7.0),
        ({"Date": DATED["Date"], "Retry_After": "Sun, 29 Nov 2026 09:00:00 GMT"}, 0.0),
    ],
)
@pytest.mark.parametrize("body", [b"", rpc_error(-32000)], ids=["no body", "a JSON-RPC error"])
def test_429_on_the_calls_own_request_is_busy_with_the_servers_wait(
    told: Callable[..., Outcome], headers: dict[str, str], wait: float | None, body: Any
) -> None:
    """CASES B01."""
    outcome = told(status("429 Too Many Requests", body, **headers))
    assert (outcome.end, outcome.reason, outcome.retry_after) == (End.BUSY, Reason.BUSY, wait)
    assert outcome.wire.status == 429
    assert "nothing was made" in outcome.result.text
    assert (f"{wait:g} s" if wait is not None else "did not say when") in outcome.result.text


@pytest.mark.rule("B4")
def test_a_wait_given_as_a_date_without_the_servers_clock_is_counted_from_ours(told: Callable[..., Outcome]) -> None:
    outcome = told(status("429 Too Many Requests", Retry_After=IN_AN_HOUR))
    assert 3000 < outcome.retry_after < 3700


@pytest.mark.rule("U3")
@pytest.mark.rule("B7")
@pytest.mark.parametrize("number", [401, 403, 404, 405, 406, 413, 415, 421, 426, 307, 308])
def test_a_refusal_before_acting_is_not_made(told: Callable[..., Outcome], server: RawServer, number: int) -> None:
    """CASES B02, S03: no redirect is followed."""
    elsewhere = f"http://127.0.0.1:{server.port}/elsewhere"
    outcome = told(status(f"{number} No", Location=elsewhere, WWW_Authenticate="Bearer"))
    assert (outcome.end, outcome.reason, outcome.wire.status) == (End.NOT_MADE, Reason.REFUSED_BY_SERVER, number)
    assert outcome.wire.went_out
    assert not [one for one in server.requests if one.headers.get("x-elsewhere")]


@pytest.mark.rule("U3")
@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32020, -32021, -32022])
def test_400_with_an_error_from_before_dispatch_is_not_made(told: Callable[..., Outcome], code: int) -> None:
    assert told(status("400 Bad Request", rpc_error(code))).end is End.NOT_MADE
    without_id = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}
    assert told(status("400 Bad Request", without_id)).end is End.NOT_MADE


@pytest.mark.rule("U4")
@pytest.mark.parametrize(
    "line",
    """202 Accepted|204 No Content|301 Moved|302 Found|303 See Other|400 Bad Request|402 Pay|408 Timeout|409 Conflict
    418 Teapot|500 Oh|502 Bad Gateway|503 Off|504 Late|529 Full""".replace("\n    ", "|").split("|"),
)
def test_any_other_status_without_a_response_is_unknown(told: Callable[..., Outcome], line: str) -> None:
    """CASES B02: a 503 with Retry-After too."""
    outcome = told(status(line, Retry_After="1", Location="/elsewhere"))
    assert (outcome.end, outcome.wire.status) == (End.UNREADABLE, int(line[:3]))
    assert outcome.wire.went_out
    assert f"HTTP status {line[:3]}" in outcome.wire.detail


@pytest.mark.rule("U3")
@pytest.mark.parametrize("line", ["200 OK", "400 Bad Request", "500 Oh", "503 Off"])
def test_a_response_with_the_calls_id_is_an_answer_whatever_the_status(told: Callable[..., Outcome], line: str) -> None:
    outcome = told(status(line, rpc_error(-32000)))
    assert (outcome.end, outcome.reason) == (End.ANSWERED, Reason.SERVER_ERROR)
    assert "the server's own words" in outcome.result.text


@pytest.mark.rule("B1")
@pytest.mark.parametrize("meta", [{"oz0/retryable": True, "oz0/retry_after": 3}, {"oz0/retryable": "true"}])
def test_a_remote_results_meta_never_makes_it_busy(told: Callable[..., Outcome], meta: dict[str, Any]) -> None:
    """CASES B06."""
    outcome = told(status("200 OK", lambda request: request.result("try later", isError=True, _meta=meta)))
    assert (outcome.end, outcome.reason, outcome.retry_after) == (End.ANSWERED, Reason.TOOL_ERROR, None)


@pytest.mark.rule("B7")
def test_a_server_that_wants_input_gets_none_and_no_second_request(told: Callable[..., Outcome]) -> None:
    wants = {"resultType": "input_required", "requestState": "s"}
    outcome = told(status("200 OK", lambda request: {"jsonrpc": "2.0", "id": request.body["id"], "result": wants}))
    assert (outcome.end, outcome.reason) == (End.ANSWERED, Reason.ASKED_FOR_INPUT)


# --- bodies ------------------------------------------------------------------------------------------------------


def pieces(*data: bytes | str | None, chunked: bool = True, then: str = "end") -> Step:
    """An event stream in these chunks, `None` standing for the response as text; then an end."""

    async def step(peer: Peer, request: Request) -> None:
        await peer.stream(chunked=chunked)
        for one in data:
            text = json.dumps(request.result()) if one is None else one
            await (peer.chunk(text) if chunked else peer.send(text))
        if then == "end" and chunked:
            await peer.end()
        elif then == "reset":
            peer.reset()
        else:
            peer.close()

    return step


@pytest.mark.parametrize(
    "parts",
    [
        ("data: ", None, "\n\n"),
        ("data: ", None, "\n", "\n"),
        ("event: message\r\nid: 7\r\ndata: ", None, "\r\n", "\r", "\n"),
        ("\ufeff: hello\n\n".replace("\ufeff", ""), "retry: 10\n\ndata:", None, "\r\r"),
        (": ping\n\n" * 50, "data: ", None, "\n\n"),
    ],
)
def test_a_stream_is_read_however_its_lines_are_cut(told: Callable[..., Outcome], parts: tuple[Any, ...]) -> None:
    """CASES L10 (a)."""
    assert told(pieces(*parts)).result.text == "ok"


@pytest.mark.parametrize("then", ["end", "close", "reset"])
def test_a_response_whose_last_blank_line_is_missing_is_read(told: Callable[..., Outcome], then: str) -> None:
    """CASES L10 (b)."""
    assert told(pieces("data: ", None, then=then)).end is End.ANSWERED


@pytest.mark.rule("U4")
@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "to its close"])
@pytest.mark.parametrize("then", ["end", "close", "reset"])
@pytest.mark.parametrize("part", ["", ": ping\n\n", 'data: {"jsonrpc": "2.0", "id"'])
def test_a_stream_that_ends_without_the_response_is_a_broken_connection(
    told: Callable[..., Outcome], part: str, then: str, chunked: bool
) -> None:
    """CASES U02, U03."""
    outcome = told(pieces(part, chunked=chunked, then=then) if part else pieces(chunked=chunked, then=then))
    assert outcome.end in (End.BROKEN, End.UNREADABLE)
    assert outcome.wire.went_out
    if not part.startswith("data"):
        assert (outcome.end, outcome.reason) == (End.BROKEN, Reason.CONNECTION_BROKE)
        assert "had gone out and no answer came" in outcome.wire.detail


@pytest.mark.rule("U4")
@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("where", ["before the answer", "inside its headers", "inside its body"])
def test_a_connection_that_breaks_costs_its_own_call_and_is_unknown(
    told: Callable[..., Outcome], how: str, where: str
) -> None:
    """CASES G14."""

    async def step(peer: Peer, request: Request) -> None:
        if where == "inside its headers":
            await peer.send("HTTP/1.1 200 OK\r\nContent-Ty")
        elif where == "inside its body":
            await peer.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"json')
        peer.reset() if how == "reset" else peer.close()

    outcome = told(step)
    assert (outcome.end, outcome.reason) == (End.BROKEN, Reason.CONNECTION_BROKE)
    assert (outcome.wire.connected, outcome.wire.went_out) == (True, True)
    assert outcome.wire.ended is AnswerEnd.BROKEN


@pytest.mark.rule("U4")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"jsonrpc": "2.0", "id": 5, "result"', "application/json"),
        (b"<html>welcome</html>", "text/html"),
        (b"{}", "application/json"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b'{"jsonrpc":"2.0","id":12345,"result":{"content":[]}}', "application/json"),
        (b'{"id":NaN}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe\x00", "application/octet-stream"),
    ],
)
def test_an_answer_that_is_no_response_to_the_call_is_unknown(
    told: Callable[..., Outcome], body: bytes, kind: str
) -> None:
    outcome = told(status("200 OK", body, kind))
    assert (outcome.end, outcome.reason) == (End.UNREADABLE, Reason.UNREADABLE)


@pytest.mark.rule("U4")
def test_a_compressed_answer_was_not_asked_for_and_is_not_unpacked(
    told: Callable[..., Outcome], server: RawServer
) -> None:
    outcome = told(status("200 OK", b"\x1f\x8b", Content_Encoding="gzip"))
    assert outcome.end in (End.BROKEN, End.UNREADABLE)
    assert "compressed" in outcome.wire.detail
    assert server.calls(FUNCTION)[-1].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("stream", [False, True], ids=["JSON", "stream"])
@pytest.mark.parametrize("size", [11, 50])
def test_an_answer_too_large_to_keep_was_made_and_says_so(
    told: Callable[..., Outcome], size: int, stream: bool
) -> None:
    async def step(peer: Peer, request: Request) -> None:
        data = json.dumps(request.result("x" * (size * 2**20))).encode()
        await peer.status(
            "200 OK",
            b"data: " + data + b"\n\n" if stream else data,
            "text/event-stream" if stream else "application/json",
        )

    outcome = told(step)
    assert (outcome.end, outcome.reason) == (End.ANSWERED, Reason.TOO_LARGE)
    assert "10 MiB" in outcome.result.text


@pytest.mark.rule("U4")
def test_a_body_past_its_limit_is_read_no_further_and_the_limit_is_named(
    told: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "MAX_STREAM", 50 * 1024)

    async def talks_on(peer: Peer, request: Request) -> None:
        await peer.stream()
        for _ in range(100):
            await peer.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1024}})
        await peer.event(request.result("never read"))

    outcome = told(talks_on)
    assert (outcome.end, outcome.reason) == (End.BROKEN, Reason.CONNECTION_BROKE)
    assert "The server sent more than 50 KiB." in outcome.wire.detail
    page = told(status("200 OK", b"<p>" * 30_000, "text/html"))
    assert page.end is End.BROKEN
    assert "The server sent more than 64 KiB." in page.wire.detail


@pytest.mark.rule("P1")
def test_past_a_number_of_messages_only_the_answer_is_looked_at(
    told: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_exchange, "MAX_MESSAGES", 5)

    async def reports(peer: Peer, request: Request) -> None:
        await peer.stream()
        for n in range(1, 11):
            params = {"progressToken": request.params["_meta"]["progressToken"], "progress": n, "total": 10}
            await peer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await peer.event(request.result("the answer"))
        await peer.end()

    outcome = told(reports, retry_safe=True)
    assert outcome.result.text == "the answer"
    assert outcome.progress is not None
    assert outcome.progress.value == 5


def test_other_messages_on_the_way_are_not_taken_for_the_answer(told: Callable[..., Outcome]) -> None:
    """CASES L02 C, on HTTP: somebody else's id is nobody's."""

    async def step(peer: Peer, request: Request) -> None:
        await peer.stream()
        await peer.event({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
        await peer.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "hello"}})
        await peer.chunk("event: other\ndata: {}\n\n")
        await peer.event({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        await peer.event(request.result("the answer"))
        await peer.end()

    assert told(step).result.text == "the answer"


@pytest.mark.rule("U4")
def test_a_held_last_chunk_ends_at_the_limit_and_the_evidence_says_what_had_arrived(
    told: Callable[..., Outcome],
) -> None:
    """CASES L10 (c), P07."""
    release = asyncio.Event()

    async def step(peer: Peer, request: Request) -> None:
        data = json.dumps(request.result())
        await peer.send(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n")
        await peer.send(data[:10])
        await peer.reader.read(1)
        release.set()

    outcome = told(step, timeout=1.2, own_limit=1.0)
    assert (outcome.end, outcome.reason) == (End.TIMED_OUT, Reason.TIME_LIMIT)
    assert "at 1 s of its limit of 1.2 s" in outcome.wire.detail
    assert "HTTP status 200 and 10 bytes" in outcome.wire.detail


@pytest.mark.rule("U4")
def test_headers_that_never_end_cost_the_time_limit_and_no_more(told: Callable[..., Outcome]) -> None:
    async def step(peer: Peer, request: Request) -> None:
        await peer.send("HTTP/1.1 200 OK\r\n")
        for number in range(100):
            await peer.send(f"X-Slow-{number}: 1\r\n")
            await asyncio.sleep(0.05)

    outcome = told(step, timeout=1.2, own_limit=1.0)
    assert (outcome.end, outcome.wire.status) == (End.TIMED_OUT, None)
    assert "Nothing of an answer had come" in outcome.wire.detail


def test_an_order_whose_credential_ran_out_sends_nothing_although_the_session_is_live() -> None:
    with RawServer() as server, reached(server.url) as drive:
        remote = drive.spec.remote
        assert remote is not None
        stale = replace(drive.spec, remote=replace(remote, trouble="The token ran out."))
        outcome = drive.run(drive.order("ok", server=stale))
        assert (outcome.end, outcome.wire.went_out, outcome.wire.detail) == (End.NOT_MADE, False, "The token ran out.")
        assert server.calls() == []
        assert drive.call("ok").end is End.ANSWERED  # the control
