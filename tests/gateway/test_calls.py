"""Calls of a client outside, over the real wire of both generations (RULES G4–G7)."""

import asyncio
from typing import Any

import pytest

from jobs.rules.states import CallState, JobState
from jobs.tasks.host import Host
from tests.gateway.conftest import LEGACY, MODERN, Mode, Shop, Web, a_token, connected, text_of

pytestmark = [pytest.mark.timeout(180)]
both = pytest.mark.parametrize("mode", [MODERN, LEGACY])


@both
@pytest.mark.rule("G4")
def test_a_clients_call_is_a_step_of_a_job_and_its_answer_the_tools_own(
    web: Web, shop: Shop, host: Host, mode: Mode
) -> None:
    token = a_token(shop.world)

    async def talk() -> tuple[Any, Any, Any]:
        async with connected(web, token, mode) as client:
            tools = await client.list_tools()
            note = await client.call_tool("shop__note", {"text": "milk"})
            picture = await client.call_tool("shop__picture", {})
            return tools, note, picture

    tools, note, picture = asyncio.run(talk())
    named = {tool.name: tool for tool in tools.tools}
    assert {"shop__note", "shop__refund", "oz__result"} <= set(named)
    assert named["shop__look"].annotations.read_only_hint is True
    assert text_of(note) == "noted milk" and not note.is_error
    assert [part.type for part in picture.content] == ["text", "image"]
    assert shop.did() == [{"did": "note", "text": "milk"}]
    (job,) = shop.jobs()
    assert (job.starter, job.state, job.started_by_id) == ("api_key", JobState.RUNNING, shop.world.person)
    assert [call.state for call in shop.calls()] == [CallState.SUCCEEDED, CallState.SUCCEEDED]
