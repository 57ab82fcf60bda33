"""The gateway inside the test's own process, where its database can be taken away and its limits be small."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from django.db import OperationalError

from base import ids
from jobs.gateway import asgi
from jobs.gateway.asgi import Gateway
from jobs.models import Call
from jobs.queries import outside as queries
from jobs.rules.states import CallState
from tests.builders import see
from tests.gateway.conftest import MODERN, Shop, a_token
from tests.gateway.test_entrance import ACCEPT, HELLO, LIST

pytestmark = [pytest.mark.timeout(120)]


@asynccontextmanager
async def a_gateway() -> AsyncIterator[Gateway]:
    """A gateway, whose threads and their connections end with the block."""
    made = Gateway()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def at(gateway: Gateway, token: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of this gateway."""
    headers = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {token}", "Host": "127.0.0.1"}
    transport = httpx2.ASGITransport(app=gateway)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
        yield http


async def called(http: httpx2.AsyncClient, name: str, arguments: str) -> Any:
    """The result of one call, whose arguments are this text."""
    meta = json.dumps(LIST["params"]["_meta"])  # type: ignore[index]
    params = f'{{"name": "{name}", "arguments": {arguments}, "_meta": {meta}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
    says = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    answer = await http.post("/mcp/", content=body.encode(), headers=says)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@pytest.mark.rule("G5")
def test_a_database_that_is_away_when_the_wait_ends_gives_the_calls_id_and_never_has_it_made_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = a_token(shop.world, patience=5)

    def gone(*_: object) -> Any:
        raise OperationalError("the database has gone away")

    async def talk() -> tuple[Any, Any]:
        async with a_gateway() as gateway, at(gateway, token) as http:
            with monkeypatch.context() as away:
                away.setattr(queries, "answered", gone)
                held = await called(http, "shop__refund", '{"amount": 5}')
            return held, await called(http, "oz__result", json.dumps({"call": held["_meta"]["oz0/call"]}))

    held, again = asyncio.run(talk())
    (call,) = shop.calls()
    assert not held["isError"] and held["_meta"]["oz0/pending"] is True and held["_meta"]["oz0/state"] == "held"
    assert "Try again" not in held["content"][0]["text"] and "oz__result" in held["content"][0]["text"]
    assert again["_meta"]["oz0/call"] == held["_meta"]["oz0/call"] == ids.show(ids.CALL, call.pk)
    assert see(shop.world, Call, call.pk).state == CallState.HELD


def test_one_token_opens_so_many_sessions_and_shuts_no_other_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "SESSIONS_OF_ONE", 3)
    mine, other = a_token(shop.world), a_token(shop.world, drawn="b")

    async def talk() -> tuple[httpx2.Response, list[int]]:
        async with a_gateway() as gateway, at(gateway, mine) as http, at(gateway, other) as stranger:
            opened = [await http.post("/mcp/", json=HELLO) for _ in range(3)]
            full = await http.post("/mcp/", json=HELLO)
            theirs = await stranger.post("/mcp/", json=HELLO)
            session = {"Mcp-Session-Id": opened[0].headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
            ended = await http.delete("/mcp/", headers=session)
            again = await http.post("/mcp/", json=HELLO)
            return full, [one.status_code for one in (*opened, theirs, ended, again)]

    full, others = asyncio.run(talk())
    assert others == [200] * 6
    assert full.status_code == 503 and full.headers["retry-after"] == "60"
    assert "3 sessions open" in full.json()["detail"]


@pytest.mark.parametrize("arguments", ['{"text": "\\ud800"}', '{"text": ["\\udc00\\ud800"]}', '{"\\ud800": 1}'])
def test_half_a_character_is_refused_by_its_place_and_nothing_is_called(shop: Shop, arguments: str) -> None:
    token = a_token(shop.world)

    async def talk() -> Any:
        async with a_gateway() as gateway, at(gateway, token) as http:
            return await called(http, "shop__note", arguments)

    refused = asyncio.run(talk())
    assert refused["isError"] and "$.params.arguments" in refused["content"][0]["text"]
    assert shop.calls() == []
