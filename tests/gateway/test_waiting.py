"""What waits for a person, at the gateway: told of, asked for again, outliving everything (RULES G5)."""

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from base import ids
from jobs.models import Call
from jobs.operations.holds import Answer
from jobs.rules.states import CALL_FINAL, CallState
from jobs.tasks.host import Host
from studio import embedded
from tests.builders import answered, see, the_hold
from tests.gateway.conftest import (
    LEGACY,
    MODERN,
    Mode,
    Shop,
    Web,
    a_token,
    a_web,
    aside,
    call_id_of,
    connected,
    text_of,
)
from tests.waiting import until

pytestmark = [pytest.mark.timeout(180)]


def decided(shop: Shop, call: UUID, answer: Answer) -> None:
    """The call's question, answered by the person."""
    answered(shop.world, the_hold(shop.world, call).pk, answer, "not today")


both = pytest.mark.parametrize("mode", [MODERN, LEGACY])


@both
@pytest.mark.rule("G5")
def test_a_held_call_tells_of_itself_and_is_told_as_pending_before_its_client_gives_up(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    token, beats = a_token(shop.world, patience=24), []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        beats.append((progress, message))

    async def talk() -> tuple[Any, float, float]:
        async with connected(web, token, mode) as client:
            began = time.monotonic()
            found = await client.call_tool("shop__refund", {"amount": 5}, progress_callback=heard)
            return found, began, time.monotonic()

    found, began, ended = asyncio.run(talk())
    assert ended - began > 23
    assert len(beats) > 1  # in 24 s of waiting by the studio's clock: one in 15 would be one
    assert beats[0][1] == "waiting for a person to approve it"
    assert not found.is_error and found.meta["oz0/pending"] is True
    assert "waits for a person" in text_of(found) and found.meta["oz0/call"] in text_of(found)
    assert see(shop.world, Call, call_id_of(found)).state == CallState.HELD and shop.did() == []


@both
@pytest.mark.rule("G5")
def test_the_result_of_a_pending_call_is_fetched_by_its_id_also_by_another_connection_and_another_web_process(
    web: Web,
    shop: Shop,
    host: Host,
    mode: Mode,
    cluster: embedded.Postgres,
    valkey: embedded.Valkey,
    tmp_path: Path,
) -> None:
    token = a_token(shop.world, patience=5)

    async def asked() -> Any:
        async with connected(web, token, mode) as client:
            return await client.call_tool("shop__refund", {"amount": 7})

    pending = asyncio.run(asked())
    call = call_id_of(pending)
    other = a_web(cluster, valkey, tmp_path)
    try:

        async def fetched(waits: bool) -> Any:
            async with connected(other, token, mode) as client:
                result = client.call_tool("oz__result", {"call": pending.meta["oz0/call"]})
                if not waits:
                    return await result
                task = asyncio.ensure_future(result)
                await aside(decided, shop, call, Answer.APPROVE)
                return await task

        still = asyncio.run(fetched(waits=False))
        assert still.meta["oz0/pending"] is True and not still.is_error
        done = asyncio.run(fetched(waits=True))
    finally:
        other.process.terminate()
        other.process.wait(timeout=15)
    assert text_of(done) == "refunded 7" and done.meta["oz0/state"] == "SUCCEEDED"
    assert shop.did() == [{"did": "refund", "amount": 7}]
    assert len(shop.calls()) == 1


@pytest.mark.rule("G5")
def test_an_answer_within_its_patience_reaches_the_client_that_waits(web: Web, shop: Shop, host: Host) -> None:
    token = a_token(shop.world)

    async def talk() -> list[Any]:
        async with connected(web, token, MODERN) as one, connected(web, token, LEGACY) as other:
            asked = [
                asyncio.ensure_future(c.call_tool("shop__refund", {"amount": n})) for n, c in enumerate([one, other])
            ]
            await aside(until, lambda: len(shop.calls()) == 2, "the calls never came", 20)
            for call, answer in zip(await aside(shop.calls), (Answer.APPROVE, Answer.DENY), strict=True):
                await aside(decided, shop, call.pk, answer)
            return [await each for each in asked]

    results = sorted(asyncio.run(talk()), key=lambda result: result.is_error)
    assert text_of(results[0]).startswith("refunded ")
    assert results[1].is_error and "A person denied this call. Their reason: not today" in text_of(results[1])
    assert len(shop.did()) == 1


@pytest.mark.rule("G5")
def test_a_client_whose_protocol_has_rounds_may_wait_by_rounds_and_the_call_is_made_once(
    web: Web, shop: Shop, host: Host
) -> None:
    token = a_token(shop.world, patience=5)

    async def talk() -> Any:
        async with connected(web, token, MODERN) as client:
            asked = client.call_tool("shop__refund", {"amount": 3}, meta={"oz0/rounds": 8})
            task = asyncio.ensure_future(asked)
            await aside(until, lambda: len(shop.calls()) == 1, "the call never came", 20)
            await asyncio.sleep(6)  # longer than its patience: it is in its second round by now
            (call,) = await aside(shop.calls)
            await aside(decided, shop, call.pk, Answer.APPROVE)
            return await task

    done = asyncio.run(talk())
    assert text_of(done) == "refunded 3"
    assert len(shop.calls()) == 1 and len(shop.did()) == 1


def test_only_the_token_that_made_a_call_is_told_what_became_of_it(web: Web, shop: Shop, host: Host) -> None:
    mine, other = a_token(shop.world, patience=5), a_token(shop.world, patience=5, drawn="b")

    async def talk() -> tuple[Any, Any, Any]:
        async with connected(web, mine) as client, connected(web, other) as stranger:
            note = await client.call_tool("shop__note", {"text": "x"})
            named = {"call": note.meta["oz0/call"]}
            odd = await client.call_tool("oz__result", {"call": "call_nonsense"})
            return await client.call_tool("oz__result", named), await stranger.call_tool("oz__result", named), odd

    own, foreign, odd = asyncio.run(talk())
    assert text_of(own) == "noted x"
    assert foreign.is_error and "has made no call" in text_of(foreign)
    assert odd.is_error and "takes a call id" in text_of(odd)


@pytest.mark.rule("P1")
def test_a_running_calls_own_progress_reaches_the_client(web: Web, shop: Shop, host: Host) -> None:
    token, said = a_token(shop.world), []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, total))

    async def talk() -> Any:
        async with connected(web, token) as client:
            return await client.call_tool("shop__count", {"to": 4, "step": 1.2}, progress_callback=heard)

    assert text_of(asyncio.run(talk())) == "counted to 4"
    assert said == sorted(said) and said[-1][1] == 4.0 and len(said) >= 2
    assert all(call.state in CALL_FINAL for call in shop.calls())


@pytest.mark.rule("G6")
def test_nobody_watches_or_stops_another_tokens_call_by_its_id(web: Web, shop: Shop, host: Host) -> None:
    mine, other = a_token(shop.world), a_token(shop.world, drawn="b")
    heard: list[float] = []

    async def hears(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def talk() -> tuple[Any, Any]:
        async with connected(web, mine) as client, connected(web, other) as stranger:
            counts = asyncio.ensure_future(client.call_tool("shop__count", {"to": 8, "step": 0.5}))
            await aside(
                until, lambda: any(call.state == CallState.RUNNING for call in shop.calls()), "it never ran", 30
            )
            (call,) = await aside(shop.calls)
            named = {"call": ids.show(ids.CALL, call.pk)}
            asks = asyncio.ensure_future(stranger.call_tool("oz__result", named, progress_callback=hears))
            await asyncio.wait({asks}, timeout=1.0)
            asks.cancel()
            told = await stranger.call_tool("oz__result", named)
            return await counts, told

    counted, told = asyncio.run(talk())
    assert text_of(counted) == "counted to 8"
    assert told.is_error and "has made no call" in text_of(told) and heard == []
