"""Requests as no browser of ours sends them: other hosts, other origins, odd JSON (CASES S13, S14, V14)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer, channel_layers
from django.conf import settings
from django.db import connection
from django.test import Client

from base import nudge
from jobs.consumers import ELSEWHERE, SIGNED_OUT, LiveConsumer
from studio.asgi import application
from tenants.models import Role, User
from tests.builders import World, a_person, a_world
from tests.pages.visitors import visitor

pytestmark = pytest.mark.usefixtures("database")
ODD = [
    "[]",
    "1",
    "null",
    '{"join": 1}',
    '{"join": [[]]}',
    '{"params": []}',
    "{",
    "[" * 100_000,
    '{"join": ["\\ud800"]}',
    "\ufeff{}",
]


def cookie_of(client: Client) -> str:
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8000", "169.254.169.254"])
def test_a_name_that_is_not_ours_is_misdirected(host: str) -> None:
    """CASES S13: a page that has its own name resolve to this machine."""
    client = visitor(a_world())
    assert client.get("/jobs/", headers={"Host": "127.0.0.1"}).status_code == 200
    for path in ("/jobs/", "/sign-in/", "/api/v1/catalog/agents/clerk/tokens"):
        assert client.get(path, headers={"Host": host}).status_code == 421
    assert client.post("/sign-out/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://testserver.evil.example"])
def test_a_form_of_another_origin_is_refused(origin: str) -> None:
    client = visitor(a_world(), strict=True)
    client.get("/jobs/new/")
    fields = {"csrfmiddlewaretoken": client.cookies["oz0_csrf"].value}
    refused = client.post("/sign-out/", fields, headers={"Origin": origin})
    assert refused.status_code == 403
    assert client.get("/jobs/").status_code == 200
    assert client.post("/sign-out/", fields, headers={"Origin": "http://testserver"}).status_code == 302


def test_a_socket_of_another_origin_is_refused() -> None:
    client = visitor(a_world())

    async def opened(origin: str) -> str:
        headers = [(b"host", b"127.0.0.1"), (b"origin", origin.encode()), (b"cookie", cookie_of(client).encode())]
        scope = {"type": "websocket", "path": "/live/", "headers": headers, "query_string": b"", "subprotocols": []}
        sent: list[dict[str, Any]] = []
        heard = [{"type": "websocket.connect"}]

        async def receive() -> dict[str, Any]:
            return heard.pop(0) if heard else {"type": "websocket.disconnect", "code": 1000}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        async with asyncio.timeout(30):
            await application(scope, receive, send)
        return str(sent[0]["type"])

    channel_layers.set("default", InMemoryChannelLayer())
    try:
        for origin in ("https://evil.example", "http://127.0.0.1.evil.example"):
            assert asyncio.run(opened(origin)) == "websocket.close"
        assert asyncio.run(opened("http://127.0.0.1")) == "websocket.accept"
    finally:
        channel_layers.backends.pop("default")


class Page:
    """An open page's socket, in this process."""

    def __init__(self, client: Client) -> None:
        self.session = client.session
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def open(self) -> None:
        scope = {"type": "websocket", "session": self.session}
        self.serving = asyncio.create_task(LiveConsumer.as_asgi()(scope, self.heard.get, self.sent.put))
        self.say({"type": "websocket.connect"})
        assert (await self.next())["type"] == "websocket.accept"

    def say(self, message: dict[str, Any]) -> None:
        self.heard.put_nowait(message)

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            return await self.sent.get()

    async def close(self) -> None:
        self.say({"type": "websocket.disconnect", "code": 1000})
        async with asyncio.timeout(30):
            await self.serving


def test_odd_json_over_the_socket_ends_nothing_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """CASES S14, for the one place that takes JSON."""
    client = visitor(a_world())

    async def told() -> None:
        page = Page(client)
        await page.open()
        for odd in ODD:
            page.say({"type": "websocket.receive", "text": odd})
        page.say({"type": "websocket.receive", "bytes": b"\xff\xfe"})
        page.say({"type": "websocket.receive", "text": '{"join": ["jobs"]}'})
        assert '"jobs"' in (await page.next())["text"]
        await page.close()

    channel_layers.set("default", InMemoryChannelLayer())
    try:
        asyncio.run(told())
    finally:
        channel_layers.backends.pop("default")
    assert "Traceback" not in caplog.text


def with_its_own_connection(act: Callable[[], int]) -> int:
    try:
        return act()
    finally:
        connection.close()


@pytest.mark.parametrize("what", ["signed out", "removed", "switched off", "elsewhere"])
def test_an_open_page_is_closed_when_its_person_loses_the_right(what: str) -> None:
    """CASES V14: the socket is told to look at once; without that it looks every few seconds."""
    world, other = a_world(), a_world("other")
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    a_person(other.tenant, "vic", Role.VIEWER)
    here, elsewhere = visitor(world, vic), visitor(world, vic)
    for client in (here, elsewhere):
        client.post("/settings/workspace/", {"workspace": str(world.tenant)})
    layer = InMemoryChannelLayer()

    def lose() -> int:
        if what == "signed out":
            elsewhere.post("/sign-out/")
        elif what == "removed":
            admin = visitor(world)
            page = admin.get("/settings/people/").context["found"]
            (shown,) = (row.shown_id for row in page.members if row.name == "vic")
            assert admin.post(f"/settings/people/{shown}/remove/").status_code == 302
        elif what == "switched off":
            User.objects.filter(pk=vic).update(is_active=False)
        else:
            here.post("/settings/workspace/", {"workspace": str(other.tenant)})
            return ELSEWHERE
        return SIGNED_OUT

    async def closed() -> None:
        page = Page(here)
        await page.open()
        wanted = await asyncio.to_thread(with_its_own_connection, lose)
        group = nudge.person_group(vic)
        await layer.group_send(group, {"type": "nudge", "group": group, "seq": None})
        message = await page.next()
        assert (message["type"], message.get("code")) == ("websocket.close", wanted)
        await page.close()

    channel_layers.set("default", layer)
    try:
        asyncio.run(closed())
    finally:
        channel_layers.backends.pop("default")


def test_removing_and_signing_out_tell_open_pages_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(nudge, "person", told.append)
    world: World = a_world()
    vic = a_person(world.tenant, "vic")
    visitor(world, vic).post("/sign-out/")
    admin = visitor(world)
    (shown,) = (row.shown_id for row in admin.get("/settings/people/").context["found"].members if row.name == "vic")
    admin.post(f"/settings/people/{shown}/", {"role": "viewer"})
    admin.post(f"/settings/people/{shown}/remove/")
    assert told == [vic, vic, vic]
