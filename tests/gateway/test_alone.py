"""The gateway inside the test's own process, where its database can be taken away and its limits be small."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from django.db import OperationalError
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from base import ids
from catalog.rules.estimates import Definition
from jobs.gateway import asgi, paces, pages
from jobs.gateway.asgi import Gateway
from jobs.models import Call
from jobs.operations.outside import Offered
from jobs.queries import outside as queries
from jobs.rules.states import CallState
from tests.builders import see
from tests.gateway.conftest import LEGACY, MODERN, Shop, a_token, aside, configured
from tests.gateway.test_entrance import ACCEPT, HELLO, LIST

pytestmark = [pytest.mark.timeout(120)]
both = pytest.mark.parametrize("mode", [MODERN, LEGACY])


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


def listing(cursor: str | None, mode: str) -> dict[str, Any]:
    """The request for a page of tools."""
    params = dict(LIST["params"]) if mode == MODERN else {}  # type: ignore[call-overload]
    return {**LIST, "params": params | ({"cursor": cursor} if cursor is not None else {})}


async def begun(http: httpx2.AsyncClient, mode: str) -> dict[str, str]:
    """The headers of a client's further requests."""
    if mode == MODERN:
        return {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    session = (await http.post("/mcp/", json=HELLO)).headers["mcp-session-id"]
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    await http.post("/mcp/", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


def result_of(answer: httpx2.Response) -> Any:
    """The JSON-RPC message of an answer, whole or as the one event of a stream."""
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        (text,) = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return json.loads(text)


@both
def test_tools_come_in_pages_which_a_tool_that_goes_meanwhile_does_not_move(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(pages, "LISTED", 2)
    token = a_token(shop.world)

    async def talk() -> tuple[list[list[str]], Any]:
        listed: list[list[str]] = []
        async with a_gateway() as gateway, at(gateway, token) as http:
            headers, cursor = await begun(http, mode), None
            while not listed or cursor is not None:
                found = result_of(await http.post("/mcp/", json=listing(cursor, mode), headers=headers))["result"]
                listed.append([tool["name"] for tool in found["tools"]])
                cursor = found.get("nextCursor")
                if len(listed) == 2:  # of what was listed already, and of what is to come
                    await aside(configured, shop.world, "shop.export", "shop.look", "shop.note", "shop.ship")
            odd = result_of(await http.post("/mcp/", json=listing("!", mode), headers=headers))
        return listed, odd

    listed, odd = asyncio.run(talk())
    assert listed == [["oz__result", "shop__charge"], ["shop__export", "shop__look"], ["shop__note", "shop__ship"]]
    assert odd["error"]["code"] == -32602 and "cursor" in odd["error"]["message"]


async def told_by_the_sdk(gateway: Gateway, token: str) -> str:
    """What the SDK's own client tells of a request that comes too soon."""
    async with at(gateway, token) as http:
        async with Client(streamable_http_client("http://127.0.0.1/mcp/", http_client=http), mode=MODERN) as client:
            with pytest.raises(MCPError) as told:
                await client.list_tools()
    return told.value.error.message


@both
def test_a_token_that_asks_too_often_is_told_when_to_come_again_and_nothing_is_called(
    shop: Shop, settings: Any, mode: str
) -> None:
    settings.OZ0_GATEWAY_RATE = 6
    token, other = a_token(shop.world), a_token(shop.world, drawn="b")

    async def talk() -> tuple[list[httpx2.Response], Any, httpx2.Response, httpx2.Response, httpx2.Response, str]:
        async with a_gateway() as gateway, at(gateway, token) as http, at(gateway, other) as stranger:
            headers = await begun(http, mode)
            asked = [await http.post("/mcp/", json=listing(None, mode), headers=headers) for _ in range(7)]
            names = headers | ({"Mcp-Method": "tools/call", "Mcp-Name": "shop__note"} if mode == MODERN else {})
            params = listing(None, mode)["params"] | {"name": "shop__note", "arguments": {"text": "x"}}
            call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}
            refused = await http.post("/mcp/", json=call, headers=names)
            long = await http.post("/mcp/", content=b" " * 70_000 + b"{}", headers=names)
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
            notice = headers | ({"Mcp-Method": "notifications/cancelled"} if mode == MODERN else {})
            if mode == MODERN:
                cancel["params"] |= {"_meta": LIST["params"]["_meta"]}  # type: ignore[index,operator]
            heard = await http.post("/mcp/", json=cancel, headers=notice)
            free = await stranger.post("/mcp/", json=HELLO)
            return asked, refused, long, heard, free, await told_by_the_sdk(gateway, token)

    asked, refused, long, heard, free, said = asyncio.run(talk())
    statuses = [one.status_code for one in asked]
    assert statuses == sorted(statuses) and set(statuses) == {200, 429}
    last = asked[-1]
    assert 1 <= int(last.headers["retry-after"]) <= 10 and last.headers["content-type"] == "application/json"
    error = last.json()["error"]
    assert (
        last.json()["id"] == 1 and "6 times a minute. Try again in" in error["message"] and error["data"]["retryAfter"]
    )
    told = refused.json()
    assert (refused.status_code, told["id"], told["result"]["isError"]) == (200, "c", True)
    assert told["result"]["content"][0]["text"].startswith("This call was not made. This token asks too often")
    assert told["result"]["_meta"]["oz0/retryable"] is True and told["result"]["_meta"]["oz0/retry_after"] >= 1
    assert (long.status_code, heard.status_code, free.status_code) == (429, 202, 200)
    assert said.startswith("This token asks too often: its pace is 6 times a minute. Try again in ")
    assert shop.calls() == []


@pytest.mark.parametrize(
    "params",
    [
        {"name": "oz__result", "arguments": {"call": "call_01m8q8ga85ehasgrp0fv148rj4"}},
        {"name": "shop__note", "arguments": {"text": "x"}, "requestState": "of the call that waits"},
    ],
    ids=["oz__result", "a round"],
)
def test_a_token_that_asks_too_often_for_a_call_already_made_is_not_told_that_nothing_was_made(
    params: dict[str, Any],
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    told = paces.too_often(message, limit=6, wait=9, modern=True)
    assert told is not None
    text = told[1]["result"]["content"][0]["text"]
    assert text.startswith("Its result was not looked up. The call itself stands as it was: do not make it again.")
    assert "not made" not in text


def test_the_studios_own_tools_are_in_the_first_page_whatever_comes_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "LISTED", 2)
    names = ("billing__charge", "oz__continue", "oz__result", "shop__note")
    offered = [Offered(Definition(name, "", {}), {}) for name in names]
    first = pages.page_of(offered, "")
    second = pages.page_of(offered, pages.listed_until(first.next_cursor))
    assert [[one.name for one in page.tools] for page in (first, second)] == [
        ["oz__continue", "oz__result"],
        ["billing__charge", "shop__note"],
    ]
    assert second.next_cursor is None


def test_a_client_that_goes_while_its_call_is_looked_up_leaves_no_exchange_behind(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later request of the same number is cancelled by its number alone (RULES G6)."""
    token = a_token(shop.world)
    looked, go_on = threading.Event(), threading.Event()

    def slow(*given: Any) -> None:
        looked.set()
        go_on.wait(20)

    monkeypatch.setattr(queries, "answered", slow)

    async def talk() -> int:
        async with a_gateway() as gateway, at(gateway, token) as http:
            names = await begun(http, MODERN) | {"Mcp-Method": "tools/call", "Mcp-Name": "oz__result"}
            call = {"name": "oz__result", "arguments": {"call": ids.show(ids.CALL, ids.new())}}
            params = listing(None, MODERN)["params"] | call
            message = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}
            asking = asyncio.ensure_future(http.post("/mcp/", json=message, headers=names))
            assert await asyncio.to_thread(looked.wait, 20), "it was never looked up"
            assert gateway._face._open, "the control: it is open while it is looked up"
            asking.cancel()
            for _ in range(200):
                await asyncio.sleep(0.05)
                if not gateway._face._open:
                    break
            left = len(gateway._face._open)
            go_on.set()
            return left

    assert asyncio.run(talk()) == 0
