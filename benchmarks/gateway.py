"""gateway-added: what the studio adds to a call of a client outside, on loopback, beside the same call without it."""

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.echoing import ECHO, services, use_echo
from benchmarks.figures import Figure, medians
from tenants.operations import tokens
from tenants.queries.seats import seats_of
from tenants.rules.bearers import DRAWN, Scope, written
from tenants.rules.who import SYSTEM
from tests.faults.processes import until
from tests.faults.stand import ROOT, Services

CALLS: Final = 200
MOST: Final = 50.0  # milliseconds added to the median call (CASES G07)


def measure() -> Figure:
    """The median call's milliseconds through the gateway, less those of the same server called directly."""
    with services() as stand:
        use_echo(stand, calls=CALLS * 10)
        stand.node()
        stand.until_listed()
        with _web(stand) as url:
            token = _token(stand)
            p99: list[float] = []

            def through() -> float:
                took = asyncio.run(_timed(_outside(url, token), "echo__echo"))
                p99.append(took[int(len(took) * 0.99)])
                return statistics.median(took)

            through()  # the first opens the session
            p99.clear()
            ours, direct = medians(through, lambda: statistics.median(asyncio.run(_timed(_direct(), "echo"))))
    added = ours - direct
    return Figure(
        "gateway-added",
        added,
        "ms",
        f"the same server by stdio {direct:.1f} ms",
        ours / direct,
        f"p50 of {CALLS} calls, one at a time, < {MOST:.0f} ms more",
        added < MOST,
        f"p50 {ours:.1f} ms, p99 {statistics.median(p99):.1f} ms: HTTP, two commits, a claim, a message, two nudges",
    )


@contextmanager
def _web(stand: Services) -> Iterator[str]:
    """A web process of the stand's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "daphne", "--bind", "127.0.0.1", "--port", str(port), "studio.asgi:application"]
    with (Path(stand.home) / "web.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, env=stand.env(), stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        if not until(lambda: _serves(f"{url}/healthz"), 60):
            raise TimeoutError((Path(stand.home) / "web.log").read_text()[-2000:])
        yield url
    finally:
        process.terminate()
        process.wait(15)


def _serves(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=2).status_code == 200
    except httpx2.TransportError:
        return False


def _token(stand: Services) -> str:
    token = written("b" * DRAWN)
    (seat,) = seats_of(stand.person)
    given = {"scopes": [Scope.CALL], "agent": "echoer", "days": None, "actor": SYSTEM}
    tokens.make(seat=seat, token=token, name="bench", **given)
    return token


@asynccontextmanager
async def _outside(url: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(f"{url}/mcp/", http_client=http), cache=None) as client:
            yield client


@asynccontextmanager
async def _direct() -> AsyncIterator[Client]:
    server = StdioServerParameters(command=sys.executable, args=[str(ECHO / "echo_server.py")])
    async with Client(stdio_client(server), cache=None) as client:
        yield client


async def _timed(opened: AbstractAsyncContextManager[Client], name: str) -> list[float]:
    """The milliseconds of each call, in order of length."""
    took = []
    async with opened as client:
        for _ in range(CALLS):
            began = time.perf_counter()
            result = await client.call_tool(name, {"text": "x"})
            took.append((time.perf_counter() - began) * 1000)
            assert not result.is_error, result.content
    return sorted(took)
