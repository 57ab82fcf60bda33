"""What a client's cancel and its closed stream do, and what they spare (RULES G6)."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest
from django.db import connection, connections

from base import db
from jobs.models import Call
from jobs.operations.holds import Answer
from jobs.queries import locks
from jobs.rules.states import CALL_FINAL, CallState
from jobs.tasks.host import Host
from tests.builders import answered, see, the_hold
from tests.gateway.conftest import LEGACY, MODERN, Mode, Shop, Web, a_token, aside, connected, text_of
from tests.waiting import until

pytestmark = [pytest.mark.timeout(180)]
both = pytest.mark.parametrize("mode", [MODERN, LEGACY])


class Line:
    """A client of the test's own on the bare wire: it sends, closes and cancels when it is told to."""

    def __init__(self, web: Web, token: str, mode: Mode) -> None:
        self.mode, self._web, self._number = mode, web, 0
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._http = httpx2.AsyncClient(timeout=60, trust_env=False)

    async def __aenter__(self) -> "Line":
        if self.mode == LEGACY:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            answer = await self._post("initialize", hello)
            self._headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
            await self._post("notifications/initialized", {}, notice=True)
        else:
            self._headers |= {"MCP-Protocol-Version": MODERN}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def _body(self, method: str, params: dict[str, Any], number: int | None) -> dict[str, Any]:
        if self.mode == MODERN:
            info = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
            params = {**params, "_meta": info}
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        return body if number is None else {**body, "id": number}

    async def _post(self, method: str, params: dict[str, Any], *, notice: bool = False) -> httpx2.Response:
        self._number += 0 if notice else 1
        body = self._body(method, params, None if notice else self._number)
        headers = {**self._headers, "Mcp-Method": method}
        return await self._http.post(self._web.mcp, json=body, headers=headers)

    def call(self, name: str, arguments: dict[str, Any]) -> "asyncio.Task[str]":
        """Make a call; the task gives its whole answer, and cancelling it closes the connection."""
        self._number += 1
        body = self._body("tools/call", {"name": name, "arguments": arguments}, self._number)
        headers = {**self._headers, "Mcp-Method": "tools/call", "Mcp-Name": name}

        async def made() -> str:
            async with (
                httpx2.AsyncClient(timeout=60, trust_env=False) as http,
                http.stream("POST", self._web.mcp, json=body, headers=headers) as answer,
            ):
                return (await answer.aread()).decode()

        return asyncio.ensure_future(made())

    async def cancel(self, number: int | None = None) -> None:
        """`notifications/cancelled` for the newest request, its slash written as some writers of JSON do."""
        body = self._body("notifications/cancelled", {"requestId": number or self._number}, None)
        text = json.dumps(body).replace("notifications/", "notifications\\/")
        headers = {**self._headers, "Mcp-Method": "notifications/cancelled"}
        answer = await self._http.post(self._web.mcp, content=text, headers=headers)
        assert answer.status_code == 202, answer.text


async def _closed(task: "asyncio.Task[str]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _stands(shop: Shop, state: CallState, seconds: float = 20) -> Call:
    def there() -> bool:
        calls = shop.calls()
        return bool(calls) and calls[-1].state == state

    await aside(until, there, f"the call is not {state}", seconds)
    return (await aside(shop.calls))[-1]


@both
@pytest.mark.rule("G6")
def test_a_closed_stream_cancels_a_running_call(web: Web, shop: Shop, host: Host, mode: Mode) -> None:
    """CASES L15, by closing the stream."""
    token = a_token(shop.world)

    async def talk() -> None:
        async with Line(web, token, mode) as line:
            task = line.call("shop__ponder", {"seconds": 40})
            await aside(until, lambda: bool(shop.did()), "it never began", 30)
            await _closed(task)
            ended = await _stands(shop, CallState.CANCELED)
            assert (ended.reason, ended.effect) == ("client_cancelled", "maybe")

    asyncio.run(talk())
    assert [line["did"] for line in shop.did()] == ["began", "stopped"]


@both
@pytest.mark.rule("G6")
def test_a_closed_stream_spares_a_held_call_which_is_made_once_it_is_approved(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    token = a_token(shop.world)

    async def talk() -> None:
        async with Line(web, token, mode) as line:
            task = line.call("shop__refund", {"amount": 1})
            held = await _stands(shop, CallState.HELD)
            await _closed(task)
            await asyncio.sleep(2)  # a cancel would have come by now: that of a running call takes less
            assert (await aside(see, shop.world, Call, held.pk)).state == CallState.HELD
            hold = await aside(the_hold, shop.world, held.pk)
            await aside(answered, shop.world, hold.pk, Answer.APPROVE)
            await _stands(shop, CallState.SUCCEEDED)

    asyncio.run(talk())
    assert shop.did() == [{"did": "refund", "amount": 1}]


@both
@pytest.mark.rule("G6")
@pytest.mark.parametrize("closed", [False, True], ids=["listening", "gone"])
def test_a_cancel_ends_a_held_call_also_when_its_stream_was_closed_before(
    web: Web, shop: Shop, host: Host, mode: Mode, closed: bool
) -> None:
    token = a_token(shop.world)

    async def talk() -> None:
        async with Line(web, token, mode) as line:
            task = line.call("shop__refund", {"amount": 1})
            held = await _stands(shop, CallState.HELD)
            number = line._number
            if closed:
                await _closed(task)
            await line.cancel(number)
            ended = await _stands(shop, CallState.CANCELED)
            assert (ended.pk, ended.reason, ended.effect) == (held.pk, "client_cancelled", "none")
            await _closed(task)

    asyncio.run(talk())
    assert shop.did() == []


@both
@pytest.mark.rule("G6")
def test_a_cancel_stops_a_running_call(web: Web, shop: Shop, host: Host, mode: Mode) -> None:
    """CASES L15, by the notification: the server hears of it, and the job shows why."""
    token = a_token(shop.world)

    async def talk() -> None:
        async with Line(web, token, mode) as line:
            task = line.call("shop__ponder", {"seconds": 40})
            await aside(until, lambda: bool(shop.did()), "it never began", 30)
            await line.cancel()
            await _stands(shop, CallState.CANCELED)
            await _closed(task)

    asyncio.run(talk())
    assert [line["did"] for line in shop.did()] == ["began", "stopped"]


ABANDONED = """
import asyncio, json, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    url, token, mode = sys.argv[1:]
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + token}, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client:
            await client.call_tool("shop__ponder", {"seconds": 50})

asyncio.run(main())
"""


@both
def test_a_killed_client_is_dropped_and_neither_it_nor_a_frozen_one_holds_up_another(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    """CASES G11."""
    token = a_token(shop.world)
    words = [sys.executable, "-c", ABANDONED, web.mcp, token, mode]
    clients = [subprocess.Popen(words) for _ in range(2)]

    async def looks() -> tuple[str, float]:
        async with connected(web, token, mode) as client:
            began = time.monotonic()
            return text_of(await client.call_tool("shop__look", {})), time.monotonic() - began

    try:
        until(lambda: len(shop.did()) == 2, "the calls never began", 60)
        clients[0].kill()
        clients[1].send_signal(signal.SIGSTOP)
        killed = time.monotonic()
        looked, took = asyncio.run(looks())
        assert "is full" in looked and took < 15
        until(lambda: "stopped" in [line["did"] for line in shop.did()], "its call was never stopped", 30)
        assert time.monotonic() - killed < 30
    finally:
        for client in clients:
            client.kill()
            client.wait(10)
    until(lambda: all(call.state in CALL_FINAL for call in shop.calls()), "the other's call was never stopped", 30)
    assert sorted(call.reason for call in shop.calls()) == ["answered", "client_cancelled", "client_cancelled"]


@contextmanager
def _shut_gate(shop: Shop) -> Iterator[Callable[[], bool]]:
    """Nothing of the workspace is taken in within the block; gives whether a request stands before the gate."""
    shut, go = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with db.write(shop.world.tenant):
                locks.gate_alone()
                shut.set()
                go.wait(8)  # a transaction that stands still for longer is ended
        finally:
            connections.close_all()

    def stands() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return bool(cursor.fetchone()[0])

    thread = threading.Thread(target=hold)
    thread.start()
    shut.wait(5)
    try:
        yield stands
    finally:
        go.set()
        thread.join()


@both
@pytest.mark.rule("G6")
def test_a_cancel_that_comes_while_the_call_is_taken_in_ends_it_too(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    token = a_token(shop.world)

    async def talk() -> None:
        async with Line(web, token, mode) as line:
            with _shut_gate(shop) as stands:
                task = line.call("shop__refund", {"amount": 1})
                await aside(until, stands, "the call never came to the gate", 6)
                await line.cancel()
            assert (await _stands(shop, CallState.CANCELED)).reason == "client_cancelled"
            await _closed(task)

    asyncio.run(talk())


@pytest.mark.rule("G6")
def test_a_web_process_that_ends_cancels_nothing(
    shop: Shop, host: Host, cluster: Any, valkey: Any, tmp_path: Any
) -> None:
    from tests.gateway.conftest import a_web

    token, own = a_token(shop.world), a_web(cluster, valkey, tmp_path)

    async def talk() -> None:
        async with Line(own, token, MODERN) as line, Line(own, token, LEGACY) as old:
            tasks = [one.call("shop__ponder", {"seconds": 6}) for one in (line, old)]
            await aside(until, lambda: len(shop.did()) == 2, "they never began", 30)
            own.process.terminate()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(talk())
    own.process.wait(timeout=20)
    until(lambda: all(call.state in CALL_FINAL for call in shop.calls()), "they never ended", 30)
    assert [call.state for call in shop.calls()] == [CallState.SUCCEEDED] * 2


@both
@pytest.mark.rule("G6")
def test_two_identical_calls_are_two_calls(web: Web, shop: Shop, host: Host, mode: Mode) -> None:
    """CASES R01: the same call sent twice, milliseconds apart."""
    token = a_token(shop.world)

    async def talk() -> list[Any]:
        async with connected(web, token, mode) as client:
            twice = [client.call_tool("shop__note", {"text": "same"}) for _ in range(2)]
            return await asyncio.gather(*twice)

    assert [text_of(result) for result in asyncio.run(talk())] == ["noted same"] * 2
    first, second = shop.calls()
    assert first.args_digest == second.args_digest and first.key != second.key
    assert len(shop.did()) == 2
