"""The one factory of HTTP clients, against real sockets: where it connects, and what it never does (CASES S03)."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from typing import Any

import httpcore2
import pytest

from base import outbound
from base.addresses import Address, Refused
from tests.servers.raw_http import Peer, RawServer, Request

PUBLIC, METADATA, HERE = "93.184.216.34", "169.254.169.254", "127.0.0.1"


def run[T](work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


def told(*turns: list[str]) -> tuple[Callable[[str, int], Awaitable[list[Address]]], list[str]]:
    """A resolver that answers in turn, the last answer for ever; and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[Address]:
        asked.append(host)
        return [ip_address(one) for one in turns[min(len(asked), len(turns)) - 1]]

    return resolve, asked


async def status_of(client: outbound.Client, url: str, **more: Any) -> int:
    try:
        async with client.ask("POST", url, body=b"{}", headers={"Content-Type": "application/json"}, **more) as reply:
            await reply.body(1000)
            return reply.status
    finally:
        await client.close()


def test_a_name_is_looked_up_once_and_the_checked_address_is_connected_to_under_the_names_host() -> None:
    with RawServer() as server:
        resolve, asked = told([HERE], [METADATA])
        place = f"intranet.example:{server.port}"
        client = outbound.Client(allowed=[place], resolve=resolve)
        assert run(lambda: status_of(client, f"http://{place}/mcp")) == 202
        assert asked == ["intranet.example"]
        assert server.requests[0].headers["host"] == place


@pytest.mark.parametrize("found", [[METADATA], [PUBLIC, METADATA], [HERE]])
def test_a_name_that_leads_inside_reaches_nobody(found: list[str]) -> None:
    with RawServer() as canary:
        resolve, _ = told(found)
        client = outbound.Client(resolve=resolve)
        with pytest.raises(Refused, match="stands for"):
            run(lambda: status_of(client, f"https://rebound.example:{canary.port}/mcp"))
        assert canary.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"])
def test_this_machine_is_closed_until_its_exact_port_is_allowed(host: str) -> None:
    with RawServer() as canary:
        url = f"http://{host}:{canary.port}/mcp"
        for client in (outbound.Client(), outbound.Client(allowed=[f"127.0.0.1:{canary.port + 1}"])):
            with pytest.raises(Refused):
                run(partial(status_of, client, url))
        assert canary.requests == []
        allowed = [f"127.0.0.1:{canary.port}"]
        assert run(lambda: status_of(outbound.Client(allowed=allowed), canary.url)) == 202


@pytest.mark.rule("B7")
@pytest.mark.parametrize("line", ["301 A", "302 A", "303 A", "307 A", "308 A"])
def test_no_redirect_is_followed(line: str) -> None:
    async def step(peer: Peer, request: Request) -> None:
        await peer.status(line, Location=f"http://127.0.0.1:{canary.port}/mcp")

    with RawServer() as canary, RawServer() as server:
        server.script["POST"] = step
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}", f"127.0.0.1:{canary.port}"])
        assert run(lambda: status_of(client, server.url)) == int(line[:3])
        assert canary.requests == []


def test_proxies_of_the_environment_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer() as canary, RawServer() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}"])
        assert run(lambda: status_of(client, server.url)) == 202
        assert canary.requests == []


def test_a_refused_connection_has_sent_nothing_and_names_the_place() -> None:
    with RawServer() as server:
        port = server.port
    client = outbound.Client(allowed=[f"127.0.0.1:{port}"])
    with pytest.raises(outbound.Failed, match=rf"127\.0\.0\.1:{port} could not be connected") as failed:
        run(lambda: status_of(client, f"http://127.0.0.1:{port}/mcp"))
    assert not failed.value.went_out


def test_a_server_without_tls_is_not_talked_to_over_https(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "CONNECT", 1.0)  # it waits for the end of a request that never comes
    with RawServer() as server:
        tls = ssl.create_default_context()
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}"], tls=tls)
        with pytest.raises(outbound.Failed) as failed:
            run(lambda: status_of(client, f"https://127.0.0.1:{server.port}/mcp"))
        assert not failed.value.went_out
        assert server.requests == []


def test_what_may_not_begin_is_not_sent() -> None:
    with RawServer() as server:
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}"])
        with pytest.raises(outbound.Withheld):
            run(lambda: status_of(client, server.url, may_begin=lambda: False))
        assert server.requests == []


def test_a_body_past_its_limit_is_not_read_on() -> None:
    async def step(peer: Peer, request: Request) -> None:
        await peer.status("200 OK", b"x" * 100_000)

    with RawServer() as server:
        server.script["POST"] = step
        with pytest.raises(outbound.TooLong):
            run(lambda: status_of(outbound.Client(allowed=[f"127.0.0.1:{server.port}"]), server.url))


def test_a_hundred_and_fifty_requests_at_once_wait_for_no_place_in_a_pool() -> None:
    together = 150

    async def work() -> list[int]:
        arrived, all_there = 0, asyncio.Event()
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}"])

        async def one() -> int:
            nonlocal arrived
            async with client.ask("POST", server.url, body=b"{}") as reply:
                arrived += 1
                if arrived == together:
                    all_there.set()
                await all_there.wait()
                return reply.status

        try:
            return await asyncio.gather(*[one() for _ in range(together)])
        finally:
            await client.close()

    async def step(peer: Peer, request: Request) -> None:
        await peer.stream()

    with RawServer() as server:
        server.script["POST"] = step
        assert run(work) == [200] * together


def test_no_limit_but_that_of_connecting_is_shorter_than_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES P06: a call may be silent until its own limit."""
    limits = []
    ask = httpcore2.AsyncConnectionPool.handle_async_request

    async def noted(pool: httpcore2.AsyncConnectionPool, request: httpcore2.Request) -> httpcore2.Response:
        limits.append(request.extensions["timeout"])
        return await ask(pool, request)

    monkeypatch.setattr(httpcore2.AsyncConnectionPool, "handle_async_request", noted)
    with RawServer() as server:
        client = outbound.Client(allowed=[f"127.0.0.1:{server.port}"])
        assert run(lambda: status_of(client, server.url)) == 202
    assert limits == [{"connect": outbound.CONNECT}]
