"""The owner of a call's HTTP against a journal that answers byte by byte: each bound from both sides."""

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgets.rules import busy
from budgets.sessions.bounds import BOUNDS, MIB, Bound, Deadline, Stopped
from budgets.sessions.credentials import Pair, PairOfLogin
from budgets.sessions.owner import Answer, Lost, Owner
from budgets.sessions.workers import Workers
from tests.budgets.conftest import Key
from tests.servers.journals import Asked, Journal
from tests.servers.raw_http import Peer

EXACT = len(json.dumps({"filler": ""}))


def filler(size: int) -> bytes:
    """JSON of exactly so many bytes."""
    return json.dumps({"filler": "x" * (size - EXACT)}).encode()


def saying(line: str, body: Any = b"", **headers: str) -> Callable[[Peer, Asked], Awaitable[None]]:
    async def step(peer: Peer, _: Asked) -> None:
        await peer.status(line, body, **headers)

    return step


async def stall(peer: Peer, asked: Asked) -> None:
    """Say nothing until the client has gone."""
    await peer.reader.read()
    asked.closed.set()


async def endless(peer: Peer, asked: Asked) -> None:
    """A body that never ends, a little at a time."""
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        while True:
            await peer.chunk(b" ")
            await asyncio.sleep(0.01)
    except ConnectionError:
        asked.closed.set()


async def slow_headers(peer: Peer, asked: Asked) -> None:
    try:
        await peer.send(b"HTTP/1.1 200 OK\r\n")
        for number in range(10_000):
            await peer.send(f"X-{number}: y\r\n")
            await asyncio.sleep(0.01)
    except ConnectionError:
        asked.closed.set()


FULL = {"detail": {"code": "admission_failed", "message": busy.TOO_MANY}}
BUSY = saying("503 Service Unavailable", FULL, Retry_After="1")
QUICK = replace(BOUNDS, seconds=0.4)


@pytest.mark.rule("W2")
def test_bodies_of_one_mebibyte_in_all_are_read_and_one_byte_more_is_not(journal: Journal, call: Callable[..., Any]):
    """Over every status: the first is an error's body."""
    journal.script["GET usage"] = [saying("404 Not Found", filler(MIB // 2)), saying("200 OK", filler(MIB // 2))]

    async def two(owner: Owner) -> list[Answer]:
        return [await owner.ask("GET", "usage"), await owner.ask("GET", "usage")]

    assert [one.status for one in call(two)] == [404, 200]
    journal.script["GET usage"] = [saying("404 Not Found", filler(MIB // 2)), saying("200 OK", filler(MIB // 2 + 1))]
    with pytest.raises(Stopped) as stopped:
        call(two)
    assert stopped.value.bound is Bound.RESPONSE


@pytest.mark.rule("W2")
def test_a_request_of_four_mebibytes_is_sent_and_one_byte_more_is_not(journal: Journal, call: Callable[..., Any]):
    async def send(owner: Owner, size: int) -> Answer:
        return await owner.ask("POST", "confirm", body={"filler": "ä" * ((size - 13) // 2) + "x" * ((size - 13) % 2)})

    assert call(lambda owner: send(owner, 4 * MIB)).status == 204
    assert journal.asked[-1].length == 4 * MIB
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: send(owner, 4 * MIB + 1))
    assert stopped.value.bound is Bound.REQUEST
    assert len(journal.asked) == 1


@pytest.mark.rule("W2")
def test_ten_pages_are_fetched_and_the_eleventh_is_not(journal: Journal, call: Callable[..., Any]):
    async def pages(owner: Owner, number: int) -> None:
        for _ in range(number):
            await owner.ask("GET", "usage", page=True)

    call(lambda owner: pages(owner, 10))
    assert journal.count("GET usage") == 10
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: pages(owner, 11))
    assert stopped.value.bound is Bound.PAGES
    assert journal.count("GET usage") == 20


@pytest.mark.rule("W2")
def test_a_body_that_is_no_whole_object_is_not_sent(journal: Journal, call: Callable[..., Any]):
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: owner.ask("POST", "ingest", body=iter(["a", "b"])))
    assert stopped.value.bound is Bound.STREAM
    assert journal.asked == []


@pytest.mark.rule("W3")
def test_identity_is_asked_for_and_an_encoded_answer_is_refused(journal: Journal, call: Callable[..., Any]):
    zipped = gzip.compress(b"{}")
    journal.script["GET usage"] = [saying("200 OK", zipped, Content_Encoding="gzip"), None]
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: owner.ask("GET", "usage"))
    assert stopped.value.bound is Bound.ENCODING
    assert journal.asked[0].headers["accept-encoding"] == "identity"
    assert call(lambda owner: owner.ask("GET", "usage")).status == 200


@pytest.mark.rule("W3")
@pytest.mark.parametrize("line", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent"])
def test_no_redirect_is_followed(journal: Journal, call: Callable[..., Any], line: str):
    journal.script["GET usage"] = [saying(line, Location=f"{journal.url}/api/v1/budgets/runs")]
    assert call(lambda owner: owner.ask("GET", "usage", again=True)).status == int(line[:3])
    assert journal.names == ["GET usage"]


@pytest.mark.rule("W1")
@pytest.mark.rule("W3")
@pytest.mark.parametrize("step", [stall, endless, slow_headers])
def test_slow_headers_and_endless_chunks_consume_the_one_deadline(
    journal: Journal, call: Callable[..., Any], step: Callable[[Peer, Asked], Awaitable[None]]
):
    journal.script["GET usage"] = [step]
    began = time.monotonic()
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: owner.ask("GET", "usage", again=True), bounds=QUICK)
    assert stopped.value.bound is Bound.DEADLINE
    assert 0.4 <= time.monotonic() - began < 5
    assert journal.asked[0].closed.wait(10), "the connection outlived the call"
    assert journal.names == ["GET usage"]


@pytest.mark.rule("W1")
def test_every_step_of_a_call_takes_from_the_same_deadline(journal: Journal, call: Callable[..., Any]):
    """Four steps that each fit: credentials, a wait, a request, another."""

    async def slowly(peer: Peer, asked: Asked) -> None:
        await asyncio.sleep(0.3)
        await journal.answer(peer, asked)

    async def each(owner: Owner) -> None:
        for _ in range(4):
            await owner.ask("GET", "usage")

    journal.script["GET usage"] = [slowly]
    with pytest.raises(Stopped) as stopped:
        call(each, bounds=replace(BOUNDS, seconds=0.9))
    assert stopped.value.bound is Bound.DEADLINE
    assert journal.count("GET usage") in (2, 3)
    call(each)


def test_the_deadline_is_thirty_seconds_and_clean_up_a_quarter_of_one():
    assert (BOUNDS.seconds, BOUNDS.streams + BOUNDS.pool, BOUNDS.reserve) == (30, 0.25, 4_096)
    assert (BOUNDS.result, BOUNDS.cursor, BOUNDS.wait) == (2 * MIB, 4_096, 10)


@pytest.mark.rule("W1")
@pytest.mark.rule("W4")
def test_a_worker_that_is_stuck_does_not_hold_the_answer_and_is_told_of(workers: Workers, journal: Journal):
    hold = threading.Event()

    async def whole() -> tuple[float, bool]:
        owner = Owner(journal.url, Key(hold), deadline=Deadline(0.3), bounds=BOUNDS, workers=workers)

        async def work() -> None:
            await owner.ask("GET", "usage")

        began = time.monotonic()
        with pytest.raises(Stopped):
            await owner.run(work)
        return time.monotonic() - began, owner.stuck

    took, stuck = asyncio.run(whole())
    assert stuck
    assert took < 5
    assert journal.asked == []
    hold.set()


@pytest.mark.rule("W4")
def test_a_look_up_of_the_host_that_is_stuck_is_told_of_too(workers: Workers, monkeypatch: pytest.MonkeyPatch):
    hold = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: hold.wait(30) and [])

    async def whole() -> bool:
        owner = Owner("https://studio.example", Key(), deadline=Deadline(0.5), bounds=BOUNDS, workers=workers)

        async def work() -> None:
            await owner.ask("GET", "usage")

        with pytest.raises(Stopped):
            await owner.run(work)
        stuck = owner.stuck
        hold.set()
        return stuck

    assert asyncio.run(whole())


@pytest.mark.rule("W4")
def test_after_a_cancel_nothing_more_is_asked(journal: Journal, workers: Workers):
    """While it waits for its second try."""
    journal.script["GET usage"] = [saying("503 Busy", Retry_After="1"), None]

    async def whole() -> None:
        owner = Owner(journal.url, Key(), deadline=Deadline(30), bounds=BOUNDS, workers=workers)

        async def work() -> None:
            await owner.ask("GET", "usage", again=True)

        task = asyncio.ensure_future(owner.run(work))
        async with asyncio.timeout(10):
            while not journal.asked:  # noqa: ASYNC110 -- it is in another thread
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(1.2)  # past the wait of the second try

    asyncio.run(whole())
    assert journal.names == ["GET usage"]


@pytest.mark.parametrize(
    ("line", "headers", "asked"),
    [
        ("503 Busy", {"Retry_After": "1"}, 2),
        ("503 Busy", {}, 2),
        ("429 Too Many Requests", {"Retry_After": "0"}, 2),
        ("429 Too Many Requests", {"Retry_After": "11"}, 1),
        ("503 Busy", {"Retry_After": "Tue, 01 Dec 2026 00:00:00 GMT"}, 1),
        ("500 Oops", {}, 1),
        ("404 Not Found", {}, 1),
        ("401 Unauthorized", {}, 1),
    ],
)
def test_a_read_is_asked_again_once_and_waits_ten_seconds_at_most(
    journal: Journal, call: Callable[..., Any], line: str, headers: dict[str, str], asked: int
):
    journal.script["GET usage"] = [saying(line, **headers)]
    assert call(lambda owner: owner.ask("GET", "usage", again=True)).status == int(line[:3])
    assert journal.count("GET usage") == asked


@pytest.mark.rule("S1")
@pytest.mark.parametrize("line", ["401 Unauthorized", "429 Too Many Requests", "503 Busy"])
def test_an_admission_is_never_asked_again(
    journal: Journal, call: Callable[..., Any], tmp_path: Path, line: str
):  # fmt: skip
    journal.script["POST check/batches"] = [saying(line, Retry_After="0"), None]
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", time.time() + 900))
    body = {"operation_id": "x", "checks": []}
    assert call(lambda owner: owner.ask("POST", "check/batches", body=body), credentials=pair).status == int(line[:3])
    assert journal.names == ["POST check/batches"]


def test_what_an_earlier_try_may_have_done_no_later_refusal_takes_back(journal: Journal, call: Callable[..., Any]):
    async def ingest(owner: Owner) -> Answer:
        return await owner.ask("POST", "ingest", body={"events": []}, again=True)

    journal.script["POST ingest"] = [BUSY]
    assert call(ingest).nothing_made
    journal.script["POST ingest"] = [saying("503 Gateway", "elsewhere", Retry_After="1"), BUSY]
    found = call(ingest)
    assert found.not_accepted
    assert not found.nothing_made
    assert journal.count("POST ingest") == 4


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (FULL, {"Retry_After": "2"}),
        (FULL, {}),
        ({"detail": {"code": "admission_failed", "message": "no room"}}, {"Retry_After": "1"}),
        (b"<html>", {"Retry_After": "1"}),
    ],
)
def test_only_the_journals_own_words_prove_that_nothing_was_accepted(
    journal: Journal, call: Callable[..., Any], body: Any, headers: dict[str, str]
):
    async def submit(owner: Owner) -> Answer:
        return await owner.ask("POST", "check/batches", body={"checks": []})

    journal.script["POST check/batches"] = [saying("503 Service Unavailable", body, **headers), BUSY]
    assert not call(submit).nothing_made
    assert call(submit).nothing_made


@pytest.mark.parametrize("cut", ["nothing", "half", "short"])
def test_a_lost_reply_is_in_doubt_and_a_refused_connection_is_not(
    journal: Journal, call: Callable[..., Any], cut: str
):  # fmt: skip
    async def lose(peer: Peer, _: Asked) -> None:
        if cut == "half":
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Le")
        if cut == "short":
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        peer.close()

    journal.script["POST confirm"] = [lose]
    with pytest.raises(Lost) as lost:
        call(lambda owner: owner.ask("POST", "confirm", body={}, again=True))
    assert lost.value.doubt
    assert journal.count("POST confirm") == 1
    journal.end()
    with pytest.raises(Lost) as lost:
        call(lambda owner: owner.ask("POST", "confirm", body={}))
    assert not lost.value.doubt


def test_a_body_is_as_long_as_it_says(journal: Journal, call: Callable[..., Any]):
    async def longer(peer: Peer, _: Asked) -> None:
        await peer.send(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{"usage": []}')
        peer.close()

    journal.script["GET usage"] = [longer]
    assert call(lambda owner: owner.ask("GET", "usage")).body == {}


@pytest.mark.rule("W4")
def test_clean_up_ends_although_what_is_cleaned_up_does_not(
    journal: Journal, workers: Workers, monkeypatch: pytest.MonkeyPatch
):
    """A stream that takes no cancel and a pool that does not close: 125 ms each, and then they are left."""
    monkeypatch.setattr("base.outbound.Client.close", lambda _: asyncio.sleep(60))

    async def whole() -> float:
        owner = Owner(journal.url, Key(), deadline=Deadline(0.2), bounds=BOUNDS, workers=workers)
        over = asyncio.Event()

        async def stubborn() -> None:
            while not over.is_set():
                try:
                    await over.wait()
                except asyncio.CancelledError:
                    continue

        began = time.monotonic()
        with pytest.raises(Stopped):
            await owner.run(stubborn)
        took = time.monotonic() - began
        over.set()
        return took

    assert 0.45 <= asyncio.run(whole()) < 5
