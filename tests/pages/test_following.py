"""Following a job by server-sent events: what comes, from where, to how many, and until when."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID

import psycopg
import pytest
from channels.layers import InMemoryChannelLayer, channel_layers
from django.db import connection
from django.test import Client

from base import ids, nudge
from jobs.api import following
from jobs.operations import turns
from jobs.rules.turns import TurnAnswer
from studio.asgi import application
from studio.embedded import Postgres
from tests.builders import World, a_job, a_turn, a_world, cancelled
from tests.pages.test_rest import Program
from tests.pages.visitors import visitor

pytestmark = [pytest.mark.usefixtures("database")]
STREAM = "text/event-stream"


class Reader:
    """One reader of a job's events, as a server hears it."""

    def __init__(self, program: Program, job: UUID, **headers: str) -> None:
        told = {"host": "127.0.0.1", "authorization": f"Bearer {program.token}", "accept": STREAM}
        told |= {name.replace("_", "-").lower(): text for name, text in headers.items()}
        self.scope = {
            "type": "http",
            "method": "GET",
            "path": f"/api/v1/jobs/{ids.show(ids.JOB, job)}/events",
            "query_string": b"",
            "headers": [(name.encode(), text.encode()) for name, text in told.items()],
        }
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.heard.put_nowait({"type": "http.request", "body": b""})
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.status = 0
        self.text = ""
        self.over = False

    async def begin(self) -> "Reader":
        self.serving = asyncio.create_task(application(self.scope, self.heard.get, self.sent.put))
        first = await self._next()
        self.status, self.headers = first["status"], dict(first["headers"])
        return self

    async def until(self, text: str) -> "Reader":
        while text not in self.text and not self.over:
            await self._more()
        assert text in self.text
        return self

    async def to_the_end(self) -> "Reader":
        while not self.over:
            await self._more()
        return self

    async def go(self) -> None:
        self.heard.put_nowait({"type": "http.disconnect"})
        async with asyncio.timeout(30):
            await self.serving

    async def _more(self) -> None:
        message = await self._next()
        self.text += message.get("body", b"").decode()
        self.over = not message.get("more_body")

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            return await self.sent.get()


def over_layer(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run with nudges that get through within this process."""
    layer = InMemoryChannelLayer()
    channel_layers.set("default", layer)
    try:
        asyncio.run(act())
    finally:
        channel_layers.backends.pop("default")


def elsewhere(act: Callable[[], Any]) -> Awaitable[Any]:
    """On a thread of its own, as another process would."""

    def acted() -> Any:
        try:
            return act()
        finally:
            connection.close()

    return asyncio.to_thread(acted)


async def nudged(job: UUID) -> None:
    group = nudge.job_group(job)
    await channel_layers["default"].group_send(group, {"type": "nudge", "group": group, "seq": None})


def ended(world: World, job: UUID) -> None:
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    assert turns.settle(
        tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=TurnAnswer(say="done", wanted=())
    )


def test_a_reader_gets_each_event_as_it_comes_and_the_end_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK", 3600.0)  # so that only nudges wake it
    world = a_world()
    program, job = Program(world), a_job(world)

    async def told() -> None:
        reader = await Reader(program, job).begin()
        assert (reader.status, reader.headers[b"Content-Type"]) == (200, STREAM.encode())
        assert b"Content-Length" not in reader.headers
        await reader.until("event: job.started\n")
        assert reader.text.startswith("retry: 2000\n\nid: 1\nevent: job.started\ndata: {")
        await elsewhere(lambda: ended(world, job))
        await nudged(job)
        await reader.to_the_end()
        assert '"to":"COMPLETED"' in reader.text
        numbers = [int(line[4:]) for line in reader.text.splitlines() if line.startswith("id: ")]
        assert numbers == list(range(1, len(numbers) + 1))
        await reader.serving
        rest = await Reader(program, job, Last_Event_ID="2").begin()
        await rest.to_the_end()
        assert rest.text.replace("retry: 2000\n\n", "") == reader.text[reader.text.index("id: 3") :]
        assert (await Reader(program, job, Last_Event_ID=str(len(numbers))).begin()).status == 204

    over_layer(told)


def test_without_nudges_it_looks_by_itself_and_says_that_it_is_still_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_ALONE", 0.05)
    monkeypatch.setattr(following, "STILL_HERE", 0.2)
    world = a_world()
    program, job = Program(world), a_job(world)

    async def told() -> None:  # nobody listens at the address of the channel layer
        reader = await Reader(program, job).begin()
        await reader.until(": still here\n\n")
        await elsewhere(lambda: cancelled(world, job))
        await reader.to_the_end()
        assert '"to":"CANCELED"' in reader.text

    asyncio.run(told())


def test_it_ends_soon_after_its_token_was_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK", 0.05)
    monkeypatch.setattr(following, "STILL_HERE", 0.1)
    world = a_world()
    program, job = Program(world), a_job(world)
    admin = visitor(world)
    shown = admin.get("/settings/tokens/").context["rows"][0].shown_id

    async def told() -> None:
        reader = await Reader(program, job).begin()
        await reader.until("job.started")
        await elsewhere(lambda: admin.post(f"/settings/tokens/{shown}/revoke/"))
        await reader.to_the_end()
        assert (await Reader(program, job).begin()).status == 401

    over_layer(told)


def test_many_readers_wait_without_a_thread_or_a_connection_each(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST", 60)
    world = a_world()
    program, jobs = Program(world), [a_job(world) for _ in range(3)]
    a_turn(world, jobs[1], "note")

    def connections() -> int:
        with psycopg.connect(database.url_admin, autocommit=True) as admin:
            counted = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'oz0_app'").fetchone()
            return int(counted[0]) if counted else 0

    async def told() -> None:
        alone = await Reader(program, jobs[0]).begin()
        await alone.until("job.started")
        threads, opened = threading.active_count(), connections()
        readers = [alone]
        for number in range(59):
            reader = await Reader(program, jobs[number % 3]).begin()
            readers.append(await reader.until("job.started"))
        assert threading.active_count() <= threads + 5  # of the pool that asyncio itself keeps
        assert connections() <= opened + 1
        full = await Reader(program, jobs[0]).begin()
        assert (full.status, full.headers[b"Retry-After"]) == (503, b"3")
        for reader in readers:
            await reader.go()
        assert following.readers() == 0
        again = await Reader(program, jobs[0]).begin()
        assert again.status == 200
        await again.go()

    over_layer(told)


def test_one_token_takes_no_more_than_its_share_of_the_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "OF_ONE", 2)
    world = a_world()
    greedy, other, job = Program(world), Program(world, name="other"), a_job(world)

    async def told() -> None:
        readers = [await (await Reader(greedy, job).begin()).until("job.started") for _ in range(2)]
        full = await Reader(greedy, job).begin()
        assert (full.status, full.headers[b"Retry-After"]) == (429, b"3")
        readers.append(await (await Reader(other, job).begin()).until("job.started"))
        await readers.pop(0).go()
        readers.append(await (await Reader(greedy, job).begin()).until("job.started"))
        for reader in readers:
            await reader.go()
        assert following.readers() == 0

    over_layer(told)


def test_a_head_begins_nothing() -> None:
    world = a_world()
    program, job = Program(world), a_job(world)
    headers = {"Authorization": f"Bearer {program.token}", "Accept": STREAM}
    answer = Client().head(f"/api/v1/jobs/{ids.show(ids.JOB, job)}/events", headers=headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, STREAM)
