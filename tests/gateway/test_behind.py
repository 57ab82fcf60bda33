"""What clients meet of the servers behind the gateway, and those servers of the clients (RULES G4)."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from mcp.types import ElicitResult

from base import db
from catalog.models import Tool
from jobs.models import Attempt
from jobs.rules.reasons import Reason
from jobs.tasks.host import Host
from tenants.rules.bearers import written
from tests.builders import World, a_person
from tests.catalogs import a_skill, an_agent_of
from tests.gateway.conftest import LEGACY, MODERN, Mode, Shop, Web, a_token, call_id_of, configured, connected, text_of

pytestmark = [pytest.mark.timeout(240)]
both = pytest.mark.parametrize("mode", [MODERN, LEGACY])


def test_clients_and_their_calls_share_one_process_of_a_server_which_is_opened_once(
    web: Web, shop: Shop, host: Host
) -> None:
    """CASES G07: nothing is negotiated anew for a call; the figure itself is `benchmarks/gateway.py`."""
    tokens = a_token(shop.world), a_token(shop.world, drawn="b")

    async def talk() -> set[int]:
        found = set()
        for token, mode in zip(tokens, (MODERN, LEGACY), strict=True):
            async with connected(web, token, mode) as client:
                for _ in range(5):
                    found.add(json.loads(text_of(await client.call_tool("shop__known", {})))["pid"])
        return found

    assert len(asyncio.run(talk())) == 1


def test_no_token_of_a_client_reaches_a_server(web: Web, shop: Shop, host: Host) -> None:
    """CASES G13: a server is given its own environment and the call, whoever makes it."""
    token = a_token(shop.world)

    async def talk() -> str:
        async with connected(web, token) as client:
            meta: Any = {"oz0/secret": "of the client's"}
            return text_of(await client.call_tool("shop__known", {}, meta=meta))

    known = asyncio.run(talk())
    assert token not in known and written("")[:4] not in known and "of the client's" not in known
    assert "SHOP_LEDGER" in json.loads(known)["environment"], "the control: that is all it was given"


def test_each_of_the_studios_own_functions_has_its_callers_grants_and_no_more(web: Web, shop: Shop, host: Host) -> None:
    """CASES G13: two people, two agents, every function of the studio's own."""
    world = shop.world
    kim = World(world.tenant, a_person(world.tenant, "kim"), world.node)
    a_skill(world, "count-well", "How to count.", "First look, then count.")
    configured(world, tool_loading="lazy", skills=("count-well",))
    an_agent_of(world, "looker", "shop.look", tool_loading="lazy")
    mine = a_token(world)
    hers = a_token(kim, agent="looker", drawn="k")

    async def talk(token: str, call: str = "") -> dict[str, Any]:
        async with connected(web, token) as client:
            offered = {tool.name for tool in (await client.list_tools()).tools}
            asked = {
                "find": ("oz__find", {"query": "write a line"}),
                "call": ("oz__call", {"function": "shop__note", "arguments": {"text": "x"}}),
                "skill": ("oz__skill", {"name": "count-well"}),
                "straight": ("shop__note", {"text": "x"}),
            }
            if call:
                asked["result"] = ("oz__result", {"call": call})
            return {"offered": offered} | {one: await client.call_tool(*how) for one, how in asked.items()}

    own = asyncio.run(talk(mine))
    assert own["offered"] == {"oz__find", "oz__call", "oz__skill", "oz__result"}
    assert "shop__note" in text_of(own["find"]) and text_of(own["call"]) == "noted x"
    assert "First look, then count." in text_of(own["skill"])
    noted = own["call"].meta["oz0/call"]
    foreign = asyncio.run(talk(hers, noted))
    assert foreign["offered"] == {"oz__find", "oz__call", "oz__result"}
    assert "shop__note" not in text_of(foreign["find"])
    for one in ("call", "skill", "straight", "result"):
        assert foreign[one].is_error and "noted" not in text_of(foreign[one]), one
        assert "First look" not in text_of(foreign[one])
    assert len(shop.did()) == 2, "the control: the one who may has noted twice, by either name"


@both
def test_a_server_that_asks_back_reaches_neither_the_client_that_calls_nor_one_that_has_left(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    """CASES G05: both used one and the same process of the server; what it asks is refused, and told."""
    token, asked = a_token(shop.world), []

    def hears(name: str) -> Any:
        async def heard(_context: Any, params: Any) -> ElicitResult:
            asked.append((name, params.message))
            return ElicitResult(action="accept", content={"sure": True})

        return heard

    async def talk() -> Any:
        async with connected(web, token, mode, elicitation_callback=hears("the one before")) as gone:
            assert not (await gone.call_tool("shop__look", {})).is_error
        async with connected(web, token, mode, elicitation_callback=hears("the one that calls")) as client:
            return await client.call_tool("shop__sure", {})

    result = asyncio.run(talk())
    assert result.is_error and "asked for input, which is not given to it" in text_of(result)
    assert asked == []


def test_a_call_may_be_silent_for_longer_than_any_hop_would_wait_by_itself(web: Web, shop: Shop, host: Host) -> None:
    """CASES G09, G10, P06: client, gateway, node and server wait as long as the tool's own limit, and no longer."""
    token = a_token(shop.world, patience=150)
    with db.write(shop.world.tenant):
        Tool.objects.update(timeout=120)

    async def talk() -> tuple[Any, Any]:
        async with connected(web, token) as client:
            long = client.call_tool("shop__ponder", {"seconds": 63}, read_timeout_seconds=150)
            other = asyncio.ensure_future(long)
            brief = await client.call_tool("shop__look", {})
            return await other, brief

    long, brief = asyncio.run(talk())
    assert text_of(long) == "pondered" and not brief.is_error
    with db.write(shop.world.tenant):
        Tool.objects.update(timeout=3)

    async def again() -> Any:
        async with connected(web, token) as client:
            return await client.call_tool("shop__ponder", {"seconds": 30})

    short = asyncio.run(again())
    with db.read(shop.world.tenant):
        attempt = Attempt.objects.get(call_id=call_id_of(short))
    assert short.is_error and (attempt.state, attempt.reason) == ("timed_out", Reason.TIME_LIMIT)
    assert attempt.ended_at is not None and attempt.ended_at - attempt.started_at < timedelta(seconds=10)
