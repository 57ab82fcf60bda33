"""Days and deaths between a client's call and its result; sessions that nobody ends (RULES G5; CASES G06)."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import LazySettings

from jobs.gateway.asgi import Gateway
from jobs.models import Call
from jobs.operations.holds import Answer
from jobs.rules.states import CallState
from jobs.tasks.host import Host
from studio import embedded
from tests.builders import answered, see, the_hold
from tests.gateway.conftest import LEGACY, MODERN, Mode, Shop, a_token, a_web, call_id_of, connected, listed, text_of
from tests.gateway.test_entrance import ACCEPT, HELLO
from tests.waiting import until

pytestmark = [pytest.mark.timeout(240)]


@pytest.mark.rule("G5")
@pytest.mark.parametrize("mode", [MODERN, LEGACY])
def test_an_approval_ten_minutes_later_after_web_and_node_died_makes_the_call_once_and_its_client_fetches_the_result(
    shop: Shop,
    mode: Mode,
    cluster: embedded.Postgres,
    valkey: embedded.Valkey,
    move_clock: Callable[[timedelta], None],
    tmp_path: Path,
    settings: LazySettings,
) -> None:
    """CASES A33: a hold outlives its client's patience, and the restarts of both sides."""
    settings.OZ0_HOME = tmp_path
    token = a_token(shop.world, patience=5)
    first, web = Host(name="first"), a_web(cluster, valkey, tmp_path)
    first.start()
    try:
        until(lambda: listed(shop.world.tenant), "the shop was never listed", 60)

        async def asked() -> Any:
            async with connected(web, token, mode, read_timeout_seconds=60) as client:
                return await client.call_tool("shop__refund", {"amount": 9})

        pending = asyncio.run(asked())
    finally:
        web.process.kill()
        web.process.wait(timeout=15)
        first.stop(grace=1)
    call = call_id_of(pending)
    assert pending.meta["oz0/pending"] and shop.did() == []
    move_clock(timedelta(minutes=10))
    answered(shop.world, the_hold(shop.world, call).pk, Answer.APPROVE)
    second, again = Host(name="second"), a_web(cluster, valkey, tmp_path)
    second.start()
    try:

        async def fetched() -> list[Any]:
            async with connected(again, token, mode, read_timeout_seconds=60) as client:
                return [await client.call_tool("oz__result", {"call": pending.meta["oz0/call"]}) for _ in range(4)]

        results = asyncio.run(fetched())
    finally:
        again.process.terminate()
        again.process.wait(timeout=15)
        second.stop(grace=2)
    assert text_of(results[-1]) == "refunded 9", text_of(results[-1])
    assert shop.did() == [{"did": "refund", "amount": 9}]
    assert see(shop.world, Call, call).state == CallState.SUCCEEDED and len(shop.calls()) == 1


def test_a_thousand_abandoned_sessions_are_reaped(shop: Shop) -> None:
    """Each was opened by a client that never came back."""
    token = a_token(shop.world)
    headers = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {token}", "Host": "127.0.0.1"}

    async def storm() -> tuple[int, int, int, int]:
        gateway = Gateway(idle=5.0)
        transport = httpx2.ASGITransport(app=gateway)
        most, found = 0, set()
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:

            async def hello() -> None:
                nonlocal most
                found.add((await http.post("/mcp/", content=json.dumps(HELLO))).headers["mcp-session-id"])
                most = max(most, gateway.sessions)

            for _ in range(50):
                await asyncio.gather(*(hello() for _ in range(20)))
            for _ in range(300):
                if not gateway.sessions:
                    break
                await asyncio.sleep(0.1)
            left = gateway.sessions
            await hello()
            now = gateway.sessions
            await gateway.stop()
        return len(found), most, left, now

    opened, most, left, now = asyncio.run(storm())
    assert (opened, left, now) == (1_001, 0, 1) and most > 20
