"""The gateway as clients meet it: the web process, a node, a real MCP server behind them, the SDK's own client."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import httpx2
import pytest
from channels.layers import channel_layers
from django.conf import settings
from django.db import connection, connections
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from base import db, ids
from catalog.models import Agent, Function, Tool
from catalog.operations import listings
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Job
from jobs.tasks.host import Host
from studio import embedded
from tenants.operations import tokens
from tenants.queries.seats import seats_of
from tenants.rules.bearers import DRAWN, Scope, written
from tenants.rules.who import SYSTEM
from tests.builders import World, a_world
from tests.waiting import until

ROOT = Path(__file__).parents[2]
MODERN, LEGACY = "2026-07-28", "legacy"
type Mode = Literal["2026-07-28", "legacy"]


@dataclass(frozen=True)
class Web:
    """A web process under test."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp/"


@pytest.fixture(scope="package")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Valkey]:
    with embedded.valkey(tmp_path_factory.mktemp("valkey"), keep=False) as server:
        yield server


def a_web(cluster: embedded.Postgres, valkey: embedded.Valkey, home: Path) -> Web:
    """A web process on a free port; the caller ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {
        "DATABASE_URL": cluster.url_app,
        "REDIS_URL": valkey.url,
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "OZ0_SECRET_KEY": settings.SECRET_KEY,
        "OZ0_HOME": str(home),
    }
    words = ["daphne", "--bind", "127.0.0.1", "--port", str(port), "studio.asgi:application"]
    path = home / f"web-{port}.log"
    with path.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=env, stdout=log, stderr=log)
    web = Web(f"http://127.0.0.1:{port}", process, path)

    def answers() -> bool:
        try:
            return httpx2.get(f"{web.url}/healthz", timeout=2).status_code == 200
        except httpx2.TransportError:
            return process.poll() is not None

    until(answers, "the web process does not answer", seconds=60)
    assert process.poll() is None, path.read_text()[-2000:]
    return web


@pytest.fixture(scope="package")
def web(cluster: embedded.Postgres, valkey: embedded.Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """The web process, with this process's nudges going the same way as its own."""
    layer = settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]
    before, layer["address"] = layer["address"], valkey.url
    channel_layers.backends.clear()
    found = a_web(cluster, valkey, tmp_path_factory.mktemp("web"))
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait(timeout=15)
        layer["address"] = before
        channel_layers.backends.clear()


@dataclass(frozen=True)
class Shop:
    """A workspace whose tool `shop` is a real server, and what that one has done."""

    world: World
    ledger: Path

    def did(self) -> list[dict[str, Any]]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [json.loads(line) for line in lines]

    def calls(self) -> list[Call]:
        with db.read(self.world.tenant):
            return list(Call.objects.order_by("created_at", "activity"))

    def jobs(self) -> list[Job]:
        with db.read(self.world.tenant):
            return list(Job.objects.order_by("id"))


@pytest.fixture
def shop(database: embedded.Postgres, tmp_path: Path) -> Shop:
    """The workspace, its server not started yet."""
    world, ledger = a_world(), tmp_path / "ledger.jsonl"
    with db.write(world.tenant):
        argv = [sys.executable, str(ROOT / "tests/gateway/shop.py")]
        Tool.objects.update(argv=["/usr/bin/env", f"SHOP_LEDGER={ledger}", *argv])
        listings.measure_soon(Tool.objects.get().pk)
    return Shop(world, ledger)


@pytest.fixture
def host(shop: Shop, tmp_path: Path, settings: Any) -> Iterator[Host]:
    """A running node, which has listed the shop."""
    settings.OZ0_HOME = tmp_path
    node = Host(name="here")
    node.start()
    try:
        until(lambda: listed(shop.world.tenant), "the shop was never listed", 60)
        yield node
    finally:
        node.stop(grace=2)
        connection.close()


def listed(tenant: UUID) -> bool:
    """Whether the real server's own listing is the current one."""
    with db.read(tenant):
        return Function.objects.filter(listing__current=True, name="ponder").exists()


def configured(world: World, *functions: str, **spec: Any) -> None:
    """The agent as this says; by default it may call everything of the shop."""
    agent = AgentSpec(world.agent, model="rehearsal", functions=functions or ("shop.*",), **spec)
    with db.write(world.tenant):
        Agent.objects.update(definition=as_json(agent))


def a_token(
    world: World,
    *,
    scopes: tuple[str, ...] = (Scope.CALL,),
    agent: str | None = None,
    patience: int = 45,
    drawn: str = "a",
) -> str:
    """A token of the world's person."""
    token = written((drawn * DRAWN)[:DRAWN])
    seat = next(one for one in seats_of(world.person) if one.tenant == world.tenant)
    tokens.make(
        seat=seat,
        token=token,
        name="my client",
        scopes=scopes,
        agent=world.agent if agent is None else agent,
        days=None,
        actor=SYSTEM,
        patience=patience,
    )
    return token


@asynccontextmanager
async def connected(web: Web, token: str, mode: Mode = MODERN, **more: Any) -> AsyncIterator[Client]:
    """A client of the SDK's own."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(web.mcp, http_client=http), mode=mode, cache=None, **more) as client:
            yield client


async def aside[Found](act: Callable[..., Found], *given: Any) -> Found:
    """What blocking work gives, on a thread of its own that leaves no connection."""

    def done() -> Found:
        try:
            return act(*given)
        finally:
            connections.close_all()

    return await asyncio.to_thread(done)


def text_of(result: Any) -> str:
    """What a model reads of a result."""
    return "\n".join(getattr(part, "text", f"[{part.type}]") for part in result.content)


def call_id_of(result: Any) -> UUID:
    """The id of the call that a result names."""
    return ids.parse(ids.CALL, result.meta["oz0/call"])
