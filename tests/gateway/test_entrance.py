"""Who comes in at `/mcp/`, and what is answered to all others (CASES G01–G03, G06, G11, G15)."""

import asyncio
import json
import random
from typing import Any

import httpx2
import pytest

from base import db
from catalog.rules.switching import Scope as Switched
from jobs.rules.states import CallState, JobState
from jobs.tasks.host import Host
from tenants.models import ApiToken, Membership
from tenants.rules.bearers import Scope
from tests.builders import a_switch, cancelled
from tests.gateway.conftest import LEGACY, MODERN, Shop, Web, a_token, configured, connected, text_of

pytestmark = [pytest.mark.timeout(180)]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
LIST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


def sent(web: Web, token: str, body: Any = HELLO, *, path: str = "/mcp/", **headers: str) -> httpx2.Response:
    """The answer to one POST."""
    whole = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    whole |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(web.url + path, content=data, headers=whole, timeout=30, trust_env=False)


@pytest.mark.rule("G4")
def test_only_a_token_that_may_call_for_one_agent_comes_in(web: Web, shop: Shop) -> None:
    good = a_token(shop.world)
    reads = a_token(shop.world, scopes=(Scope.READ,), drawn="r")
    assert sent(web, good).status_code == 200
    assert sent(web, reads).status_code == 403 and "scope call" in sent(web, reads).json()["detail"]
    none = sent(web, "oz0_nonsense")
    assert none.status_code == 401 and none.headers["www-authenticate"].startswith("Bearer")
    for path in ("/mcp/xyz", "/mcp/xyz/mcp", f"/mcp/{shop.world.tenant}/", "/mcp//", "/mcp/%00"):
        answer = sent(web, good, path=path)
        assert (answer.status_code, "tools" in answer.text) == (404, False), path
    with db.write(shop.world.tenant):
        Membership.objects.all().delete()
    assert sent(web, good).status_code == 401
    with db.write(shop.world.tenant):
        ApiToken.objects.all().update(agent="")
    assert sent(web, good).status_code == 401


def test_a_page_of_elsewhere_or_a_name_pointed_here_is_turned_away(web: Web, shop: Shop) -> None:
    token = a_token(shop.world)
    assert sent(web, token, Host="studio.evil.example").status_code == 421
    assert sent(web, token, Origin="https://evil.example").status_code == 403
    assert sent(web, token, Origin="http://[x").status_code == 403
    assert sent(web, token, Origin=web.url).status_code == 200
    assert httpx2.get(f"{web.url}/mcp/", timeout=10).status_code == 401


def test_headers_that_disagree_with_the_body_are_refused(web: Web, shop: Shop, host: Host) -> None:
    """CASES G15: the policy reads the body, and a body that says another thing than the headers goes nowhere."""
    token = a_token(shop.world)
    call = {
        **LIST,
        "method": "tools/call",
        "params": {**LIST["params"], "name": "shop__refund", "arguments": {"amount": 1}},
    }  # type: ignore[dict-item]
    says = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call"}
    answer = sent(web, token, call, **says, Mcp_Name="shop__look")
    assert answer.status_code == 400 and answer.json()["error"]["code"] == -32020, answer.text
    assert shop.calls() == []


def test_arguments_that_name_a_key_twice_are_refused_by_name(web: Web, shop: Shop, host: Host) -> None:
    """MACHINES 6: two readers of one body would see two different calls."""
    token = a_token(shop.world)
    meta = json.dumps(LIST["params"]["_meta"])  # type: ignore[index]
    twice = '{"amount": 1, "amount": 100000}'
    params = f'{{"name": "shop__refund", "arguments": {twice}, "_meta": {meta}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
    says = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "shop__refund"}
    answer = sent(web, token, body.encode(), **says).json()["result"]
    assert answer["isError"] and "$.params.arguments.amount: the key is there twice" in answer["content"][0]["text"]
    assert shop.calls() == []


def test_a_thousand_malformed_frames_bring_no_error_of_ours(web: Web, shop: Shop) -> None:
    """CASES G06 and the issue's own figure: the process answers each, and lives."""
    token, dice = a_token(shop.world), random.Random(7)
    whole = json.dumps(HELLO).encode()
    modern = json.dumps(LIST).encode()

    def broken() -> tuple[bytes, dict[str, str]]:
        body = bytearray(dice.choice([whole, modern]))
        for _ in range(dice.randint(1, 6)):
            match dice.randint(0, 4):
                case 0:
                    body[dice.randrange(len(body))] = dice.randrange(256)
                case 1:
                    del body[dice.randrange(len(body)) :]
                    body.extend(b"{")
                case 2:
                    body.extend(dice.choice([b"\x00", b"]", b"[" * 200, b'{"a":' * 500, b"\xff\xfe", b"1e999"]))
                case 3:
                    body[:] = dice.choice(
                        [b"[]", b"null", b"3", b'"x"', b"{}", b'[{"jsonrpc":"2.0","id":1,"method":"x"}]']
                    )
                case _:
                    body[:] = json.dumps(
                        {
                            **HELLO,
                            dice.choice(["id", "method", "params", "jsonrpc"]): dice.choice(
                                [None, [], {}, -1, "x" * 500, True, {"a": {"b": [1]}}]
                            ),
                        }
                    ).encode()
        odd = {"MCP-Protocol-Version": dice.choice([MODERN, "2025-11-25", "1999-01-01", "x y"])}
        odd |= {"Mcp-Session-Id": "f" * dice.randint(1, 300)} if dice.random() < 0.3 else {}
        return bytes(body), odd if dice.random() < 0.8 else {}

    async def storm() -> list[int]:
        base = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        found: list[int] = []
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:

            async def one() -> None:
                body, odd = broken()
                async with http.stream("POST", web.mcp, content=body, headers=[*base.items(), *odd.items()]) as answer:
                    found.append(answer.status_code)

            for _ in range(50):
                await asyncio.gather(*(one() for _ in range(20)))
        return found

    statuses = asyncio.run(storm())
    assert len(statuses) == 1_000 and max(statuses) < 500, sorted(set(statuses))
    assert sum(status >= 400 for status in statuses) > 500
    assert sent(web, token).status_code == 200 and web.process.poll() is None


def test_a_lazy_agent_lists_little_and_calls_what_it_finds(web: Web, shop: Shop, host: Host) -> None:
    configured(shop.world, tool_loading="lazy")
    token = a_token(shop.world)

    async def talk() -> tuple[set[str], Any, Any]:
        async with connected(web, token) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            found = await client.call_tool("oz__find", {"query": "write a line"})
            noted = await client.call_tool("oz__call", {"function": "shop__note", "arguments": {"text": "lazily"}})
            return names, found, noted

    names, found, noted = asyncio.run(talk())
    assert names == {"oz__find", "oz__call", "oz__result"}
    assert "shop__note" in text_of(found) and text_of(noted) == "noted lazily"
    assert [call.function_name for call in shop.calls()] == ["find", "note"]


@pytest.mark.rule("L7")
def test_a_kill_switch_refuses_a_clients_calls_and_ends_its_job(web: Web, shop: Shop, host: Host) -> None:
    token = a_token(shop.world)

    async def call(name: str, **arguments: Any) -> Any:
        async with connected(web, token) as client:
            return await client.call_tool(name, arguments)

    assert not asyncio.run(call("shop__look")).is_error
    a_switch(shop.world, Switched.FUNCTION, "shop.note")
    refused = asyncio.run(call("shop__note", text="x"))
    assert refused.is_error and "kill switch" in text_of(refused)
    assert shop.calls()[-1].state == CallState.REFUSED
    a_switch(shop.world, Switched.AGENT, shop.world.agent)
    assert [job.state for job in shop.jobs()] == [JobState.CANCELED]
    refused = asyncio.run(call("shop__look"))
    assert refused.is_error and "kill switch" in text_of(refused)
    assert len(shop.calls()) == 2 and shop.did() == []


@pytest.mark.rule("G7")
def test_a_clients_calls_belong_to_its_sessions_job_its_tokens_open_one_or_the_one_it_names(
    web: Web, shop: Shop, host: Host
) -> None:
    token = a_token(shop.world)

    async def one(mode: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        async with connected(web, token, mode) as client:
            return [await client.call_tool(name, {}, meta=meta or None) for name, meta in calls]

    look = ("shop__look", {})
    asyncio.run(one(LEGACY, look, look))
    asyncio.run(one(LEGACY, look))
    asyncio.run(one(MODERN, look, look))
    asyncio.run(one(MODERN, look))
    by_job = [len([call for call in shop.calls() if call.job_id == job.pk]) for job in shop.jobs()]
    assert by_job == [2, 1, 3]
    first = shop.jobs()[0]
    named = {"oz0/job": f"job_{'0' * 26}"}
    (stranger,) = asyncio.run(one(MODERN, ("shop__look", named)))
    assert stranger.is_error and "no open job" in text_of(stranger)
    from base import ids

    asyncio.run(one(MODERN, ("shop__look", {"oz0/job": ids.show(ids.JOB, first.pk)})))
    assert shop.calls()[-1].job_id == first.pk
    cancelled(shop.world, first.pk)
    (ended,) = asyncio.run(one(MODERN, ("shop__look", {"oz0/job": ids.show(ids.JOB, first.pk)})))
    assert ended.is_error and "no open job" in text_of(ended)
