"""What Daphne serves: pages and interfaces over HTTP, the gateway, whether it is ready, nudges over websockets."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from importlib import import_module
from threading import Thread
from typing import Any

import django
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.handlers.asgi import ASGIHandler
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
django.setup(set_prefix=False)  # which the next imports need

from base import tokens  # noqa: E402
from base.streaming import Following  # noqa: E402
from jobs.consumers import websocket_urlpatterns  # noqa: E402
from studio import health, metrics  # noqa: E402
from studio.celery import app  # noqa: E402

# The tokenizer's tables take a second of a slow machine, and that not of the first page's open transaction.
Thread(target=tokens.counts, args=([""],), name="oz0-tokenizer", daemon=True).start()


type Message = Mapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]

_going_on: ContextVar[list[Following]] = ContextVar("oz0_going_on")


class Pages(ASGIHandler):
    """Pages and interfaces. Each request runs on a thread of its own, and the connection to the database with it.

    That thread ends with the request. Its connection would stay open until garbage is collected, dozens of them where
    many look on, so it is closed before. An answer that goes on goes on after that, and holds neither.
    """

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, and then what goes on of it."""
        going_on: list[Following] = []
        _going_on.set(going_on)
        await super().__call__(scope, receive, send)
        for answer in going_on:
            await _follow(answer, receive, send)

    async def handle(self, *words: Any) -> None:
        """Serve one request, and leave nothing of it."""
        try:
            await super().handle(*words)
        finally:
            await sync_to_async(connections.close_all)()

    async def send_response(self, response: Any, send: Send) -> None:
        """Send an answer, but of one that goes on only its beginning."""
        if not isinstance(response, Following):
            await super().send_response(response, send)
            return

        async def without_end(message: Message) -> None:
            await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

        del response["Content-Length"]  # of its beginning, which is empty
        await super().send_response(response, without_end)
        _going_on.get().append(response)


async def _follow(answer: Following, receive: Receive, send: Send) -> None:
    """Send what comes, until nothing more does or the reader goes."""

    async def passed_on() -> None:
        async with aclosing(answer.news) as news:
            async for piece in news:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = {asyncio.create_task(passed_on()), asyncio.create_task(gone())}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


pages = Pages()
wakes_by = app  # imported so that work accepted here wakes nodes through the broker of the settings


class Mcp:
    """The gateway, loaded with the first request to it: the MCP SDK takes most of a second to import."""

    def __init__(self) -> None:
        self._gateway: Any = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request to `/mcp/`."""
        if self._gateway is None:
            gateway = await sync_to_async(import_module, thread_sensitive=False)("jobs.gateway.asgi")
            self._gateway = self._gateway or gateway.Gateway()
        await self._gateway(scope, receive, send)


mcp = Mcp()


async def http(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """What watches over the studio asks, which no sign-in and no host name stands before; the gateway; its pages."""
    if scope["path"] == "/mcp" or scope["path"].startswith("/mcp/"):
        await mcp(scope, receive, send)
        return
    if scope["path"] not in health.PATHS:
        await pages(scope, receive, _counted(scope["method"], send))
        return
    status, kind, said = await database_sync_to_async(health.told)(scope["path"])
    headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def _counted(method: str, send: Send) -> Send:
    """The same way, along which the answer's status and the time until it began are counted."""
    began = time.perf_counter()

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            metrics.answered(method, message["status"], time.perf_counter() - began)
        await send(message)

    return counted


application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
