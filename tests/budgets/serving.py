"""The budget server as a stock client meets it: in this process, or as a program, against a journal of sockets."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from base import ids
from budgets.mcp.server import BudgetServer
from budgets.rules import busy
from budgets.sessions.bounds import BOUNDS, Bounds
from budgets.sessions.credentials import Credentials, Pair, Shown
from budgets.sessions.workers import Workers
from tests.repo.tree import ROOT
from tests.servers.journals import Asked, Journal
from tests.servers.raw_http import Peer

type Mode = Literal["2026-07-28", "legacy"]
MODES: tuple[Mode, ...] = ("2026-07-28", "legacy")
PATIENCE = 60.0


class AtHand:
    """A key that is at hand, and whether it was asked for."""

    def __init__(self) -> None:
        self.read_times = 0

    def read(self) -> Shown:
        self.read_times += 1
        return Shown("key-1")

    def save(self, pair: Pair) -> None:
        raise AssertionError


type Conversation = Callable[[Client], Awaitable[Any]]


def talk(
    journal: Journal,
    conversation: Conversation,
    *,
    profile: Literal["read", "full"] = "full",
    mode: Mode = "2026-07-28",
    bounds: Bounds = BOUNDS,
    credentials: Credentials | None = None,
) -> Any:
    """What a conversation with a server in this process came to."""

    async def whole() -> Any:
        workers = Workers()
        budget = BudgetServer(
            studio=journal.url, profile=profile, credentials=credentials or AtHand(), version="1",
            bounds=bounds, workers=workers,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE), Client(budget.server, mode=mode, cache=None) as client:
            found = await conversation(client)
        workers.close()
        return found

    return asyncio.run(whole())


def called(journal: Journal, tool: str, **arguments: Any) -> dict[str, Any]:
    """What one call of a tool says, as its structured content and as its text alike."""
    options = {name: arguments.pop(f"_{name}") for name in ("mode", "bounds", "credentials") if f"_{name}" in arguments}

    async def one(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments)

    return said(talk(journal, one, **options))


def said(result: CallToolResult) -> dict[str, Any]:
    """Its structured content, which its text repeats and whose `ok` is its `isError`."""
    import json

    told = result.structured_content
    assert told is not None
    assert json.loads(result.content[0].text) == told
    assert result.is_error is not told["ok"]
    return told


@asynccontextmanager
async def program(
    journal: Journal, home: Path, *, mode: Mode, seconds: float = 30.0, profile: str = "full", **env: str
) -> AsyncIterator[Client]:
    """A client of the server as a process of its own, whose deadline is what the test says."""
    words = ["-c", STARTS.format(seconds=seconds), "--profile", profile, "--studio", journal.url]
    every = {"PYTHONPATH": str(ROOT), "OZ0_BUDGET_KEY": "key-1", "PATH": os.environ["PATH"], **env}
    parameters = StdioServerParameters(command=sys.executable, args=words, cwd=home, env=every)
    with (home / "stderr").open("a") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=mode, cache=None) as client:
            yield client


STARTS = """
from dataclasses import replace
from budgets.mcp.program import main
from budgets.sessions.bounds import BOUNDS
main(replace(BOUNDS, seconds={seconds}))
"""


def quick(seconds: float) -> Bounds:
    """The bounds with a shorter deadline."""
    return replace(BOUNDS, seconds=seconds)


def saying(line: str, body: Any = b"", **headers: str) -> Callable[[Peer, Asked], Awaitable[None]]:
    """A step that answers so."""

    async def step(peer: Peer, _: Asked) -> None:
        await peer.status(line, body, **headers)

    return step


async def stall(peer: Peer, asked: Asked) -> None:
    """Say nothing until the client has gone."""
    await peer.reader.read()
    asked.closed.set()


async def lose(peer: Peer, _: Asked) -> None:
    """Take the request, and go."""
    peer.close()


def fresh() -> str:
    """A new operation id."""
    return str(ids.new())


CHECK = {"model": "gpt-4o", "provider": "openai", "estimated_input_tokens": 100}
USED = {"model": "gpt-4o", "provider": "openai", "input_tokens": 90, "output_tokens": 12}
FULL = {"detail": {"code": "admission_failed", "message": busy.TOO_MANY}}


def denied(journal: Journal) -> tuple[str, dict[str, Any]]:
    """An operation with a denial that was not recorded, and the object to keep."""
    journal.denied = {0}
    operation = fresh()
    found = called(journal, "budget_check_batch", operation_id=operation, checks=[CHECK], no_record=True)
    del journal.asked[:]
    return operation, found["data"]["recording_retry"][0]
