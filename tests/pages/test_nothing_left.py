"""What a page leaves behind in the process that serves it: nothing, neither a connection nor a seat in a group."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from autobahn.exception import Disconnected
from channels.layers import InMemoryChannelLayer, channel_layers
from django.conf import settings

from base import nudge
from jobs.consumers import LiveConsumer
from studio.asgi import application
from studio.embedded import Postgres
from tests.builders import World, a_world
from tests.pages.visitors import visitor
from tests.waiting import until

REQUESTS = 6


@contextmanager
def no_collection() -> Iterator[None]:
    """Garbage stays where it is."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def session_of(world: World) -> Any:
    """A signed-in person's session."""
    return visitor(world).session


def test_a_request_leaves_no_connection_to_the_database(database: Postgres) -> None:
    name = settings.SESSION_COOKIE_NAME
    cookie = f"{name}={visitor(a_world()).cookies[name].value}"
    headers = [(b"host", b"127.0.0.1"), (b"cookie", cookie.encode())]
    sent: list[dict[str, Any]] = []

    bodies: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not bodies:
            await asyncio.Event().wait()  # who asked stays until all is answered
        return {"type": "http.request", "body": bodies.pop()}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def ask() -> None:
        for _ in range(REQUESTS):
            sent.clear()
            bodies.append(b"")
            scope = {"type": "http", "method": "GET", "path": "/jobs/", "query_string": b"", "headers": headers}
            await application(scope, receive, send)
            assert sent[0]["status"] == 200

    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'oz0_app'"
    with psycopg.connect(database.url_admin, autocommit=True) as admin, no_collection():
        (before,) = admin.execute(query).fetchone()
        asyncio.run(ask())
        until(lambda: admin.execute(query).fetchone() == (before,), "connections of requests that are over stay open")


def test_a_page_that_has_gone_is_told_nothing_and_leaves_its_groups(database: Postgres) -> None:
    """Its socket is closed before its process hears of it: what is sent in between is lost, and nothing else."""
    world = a_world()
    layer = InMemoryChannelLayer()
    left: list[set[Any]] = []

    async def page() -> None:
        gone, tried, joined = asyncio.Event(), asyncio.Event(), asyncio.Event()
        heard = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": '{"join": ["jobs"]}'}]

        async def receive() -> dict[str, Any]:
            if heard:
                return heard.pop(0)
            await tried.wait()
            return {"type": "websocket.disconnect", "code": 1006}

        async def send(message: dict[str, Any]) -> None:
            if gone.is_set():
                tried.set()
                raise Disconnected("Attempt to send on a closed protocol")
            if "text" in message:
                joined.set()

        before = asyncio.all_tasks()
        scope = {"type": "websocket", "session": session_key}
        serving = asyncio.create_task(LiveConsumer.as_asgi()(scope, receive, send))
        async with asyncio.timeout(30):
            await joined.wait()
            gone.set()
            group = nudge.jobs_group(world.tenant)
            await layer.group_send(group, {"type": "nudge", "group": group, "seq": None})
            await serving
            left.append({task for task in asyncio.all_tasks() - before if not task.cancelling()})

    session_key = session_of(world)
    channel_layers.set("default", layer)
    try:
        asyncio.run(page())
    finally:
        channel_layers.backends.pop("default")
    assert left == [set()]
    assert not any(layer.groups.values())
