"""A spend journal of bare sockets: it answers as a journal does, until a test scripts how it fails, byte by byte.

    with Journal() as journal:
        journal.script["GET usage"] = [step, None]     # the first request as `step` says, those after it as a journal

`step` is `async def step(peer, asked)`; None is the ordinary answer, and the last entry stands for all that follow.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from tests.servers.raw_http import Peer

PREFIX = "/api/v1/budgets/"
NOW = datetime(2026, 11, 30, 12, 0, 0, 250_000, UTC)


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    length: int
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


type Step = Callable[[Peer, Asked], Awaitable[None]]


class Journal:
    """Runs in a thread of its own between `with` and its end. `decide` says what a check comes to."""

    def __init__(self) -> None:
        self.script: dict[str, list[Step | None]] = {}
        self.asked: list[Asked] = []
        self.operations: dict[str, dict[str, Any]] = {}
        self.pages: dict[str, list[list[dict[str, Any]]]] = {"usage": [[]], "runs": [[]]}
        self.denied: set[int] = set()
        self.unreserved: set[int] = set()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Listen no more, and close every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def names(self) -> list[str]:
        """What was asked, in order."""
        return [one.name for one in self.asked]

    def count(self, name: str) -> int:
        return self.names.count(name)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        listening = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=8 * 2**20)
        self.port = listening.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        listening.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for writer in self._connections.values():
            writer.transport.abort()
        await listening.wait_closed()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._serve_one(reader, writer))] = writer

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        try:
            while (asked := await _request(reader)) is not None:
                self.asked.append(asked)
                step = self._step(asked)
                try:
                    await (step(peer, asked) if step is not None else self.answer(peer, asked))
                except (ConnectionError, asyncio.CancelledError):
                    asked.closed.set()
                    raise
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _step(self, asked: Asked) -> Step | None:
        steps = next((steps for name, steps in self.script.items() if asked.name.startswith(name)), None)
        if not steps:
            return None
        return steps.pop(0) if len(steps) > 1 else steps[0]

    async def answer(self, peer: Peer, asked: Asked) -> None:
        """As a journal does."""
        match asked.method, asked.path.split("/"):
            case "POST", ["check", "batches"]:
                held = self.operations.setdefault(asked.body["operation_id"], self.batch(asked.body))
                await peer.status("200 OK", held)
            case "GET", ["check", "batches", operation]:
                if operation in self.operations:
                    await peer.status("200 OK", self.operations[operation])
                else:
                    await peer.status("404 Not Found", {"detail": {"code": "operation_not_found"}})
            case "POST", ["confirm"]:
                await peer.status("204 No Content")
            case "POST", ["ingest"]:
                await peer.status("202 Accepted", told(asked.body["events"]))
            case "GET", ["usage" | "runs" as kind]:
                number = int(asked.query.get("cursor", "0").removeprefix("c"))
                pages = self.pages[kind]
                after = f"c{number + 1}" if number + 1 < len(pages) else None
                await peer.status("200 OK", {kind: pages[number], "next": after})
            case "POST", ["tokens"] if asked.body["project"] != "research":
                await peer.status("404 Not Found", {"detail": {"code": "project_not_found"}})
            case "POST", ["tokens"]:
                given = {"access_token": "access-1", "refresh_token": "refresh-1", "expires_in": 900}
                await peer.status("200 OK", given | {"project_id": "proj", "scope": "full"})
            case "POST", ["tokens", "refresh"]:
                given = {"access_token": "access-2", "refresh_token": "refresh-2", "expires_in": 900}
                await peer.status("200 OK", given | {"project_id": "proj", "scope": "full"})
            case _:
                await peer.status("404 Not Found", {"detail": "no such address"})

    def batch(self, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A whole answer to a submission."""
        made = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=UUID(body["operation_id"]).int >> 80)
        items = [self.item(index) for index in range(len(body["checks"]))]
        ends = (made + timedelta(hours=24)).isoformat()
        return {
            "operation_id": body["operation_id"], "status": "finished", "expires_at": ends, "items": items
        } | more  # fmt: skip

    def item(self, index: int) -> dict[str, Any]:
        """A completed item: denied, without a reservation, or with one."""
        allowed = index not in self.denied
        reserved = allowed and index not in self.unreserved
        result = {
            "allowed": allowed, "remaining_budget": 10.5, "reservation_id": f"res-{index}" if reserved else None,
            "mode": "hard_deny", "budget_limit": 20, "current_usage": 9.5,
            "denied_by_period": None if allowed else "day", "project_id": "proj",
        }  # fmt: skip
        ends = (NOW + timedelta(seconds=300)).isoformat() if reserved else None
        return {
            "index": index, "state": "completed", "result": result,
            "checked_at": NOW.isoformat(), "reservation_expires_at": ends,
        }  # fmt: skip


def told(events: list[dict[str, Any]], **each: Any) -> dict[str, Any]:
    """The receipt of an ingest: every event was taken in, or was rejected or a duplicate as `each` says."""
    names = [{"call_id": one["call_id"], "attempt_index": one["attempt_index"]} for one in events]
    rows = [{"index": index} | name | each for index, name in enumerate(names)] if each else []
    rejections, again = (rows, []) if "code" in each else ([], rows)
    return {
        "submitted": len(events), "ingested": len(events) - len(rows), "rejected": len(rejections),
        "duplicates": len(again), "rejections": rejections, "duplicate_events": again,
    }  # fmt: skip


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    length = int(headers.get("content-length", 0))
    raw = await reader.readexactly(length)
    parts = urlsplit(target)
    path = parts.path.removeprefix(PREFIX)
    return Asked(method, path, dict(parse_qsl(parts.query)), headers, json.loads(raw) if raw else None, length)
