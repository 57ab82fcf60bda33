"""`oz0 connect`: what it prints is what clients load, and works."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from fastmcp.client import Client as Stock
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic_ai import Agent
from pydantic_ai.mcp import load_mcp_toolsets
from pydantic_ai.models.test import TestModel

from base import db
from jobs.operations.holds import Answer
from jobs.rules.states import CallState
from jobs.tasks.host import Host
from studio.cli import main
from studio.cli.connect import CLIENTS
from tenants.models import ApiToken
from tests.builders import answered, the_hold
from tests.gateway.conftest import LEGACY, Shop, Web, aside, call_id_of, text_of

pytestmark = [pytest.mark.timeout(180)]


def printed(web: Web, shop: Shop, *words: str) -> Any:
    """What the command prints on standard output."""
    done = CliRunner().invoke(main, ["connect", *words, "--address", web.url])
    assert done.exit_code == 0, done.output
    return done.stdout


async def _noted(entry: dict[str, Any], text: str) -> str:
    """One call by what a client's configuration says of its server."""
    async with (
        httpx2.AsyncClient(headers=entry["headers"], timeout=60, trust_env=False) as http,
        Client(streamable_http_client(entry["url"], http_client=http), cache=None) as client,
    ):
        return text_of(await client.call_tool("shop__note", {"text": text}))


def test_what_connect_prints_is_loaded_and_used(web: Web, shop: Shop, host: Host, tmp_path: Path) -> None:
    agent = shop.world.agent
    for name, room in (("claude-code", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")):
        entry = json.loads(printed(web, shop, name, agent))[room]["oz0"]
        assert asyncio.run(_noted(entry, name)) == f"noted {name}"
    desktop = json.loads(printed(web, shop, "claude-desktop", agent))["mcpServers"]["oz0"]
    assert desktop["command"] == "npx" and f"{web.url}/mcp/" in desktop["args"]
    script = tmp_path / "ask.py"
    script.write_text(printed(web, shop, "python", agent))
    words = [[], ["shop__note", '{"text": "by script"}']]
    listed, noted = (
        subprocess.run([sys.executable, str(script), *more], capture_output=True, text=True, check=False, timeout=90)
        for more in words
    )
    assert "shop__refund - Give money back." in listed.stdout, listed.stderr
    assert noted.stdout.strip() == "noted by script", noted.stderr
    assert [line["text"] for line in shop.did()] == ["claude-code", "cursor", "vscode", "by script"]
    with db.read(shop.world.tenant):
        rows = list(ApiToken.objects.order_by("created_at"))
    assert [row.name for row in rows] == ["claude-code", "cursor", "vscode", "claude-desktop", "python"]
    assert {(tuple(row.scopes), row.agent, row.patience) for row in rows} == {(("call",), agent, 45)}


@pytest.mark.parametrize(("name", "mode"), [("claude-code", "auto"), ("cursor", LEGACY)])
def test_a_stock_client_library_lists_calls_and_fetches_by_what_connect_prints(
    web: Web, shop: Shop, host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, mode: str
) -> None:
    """FastMCP's client takes the printed file as it is, and so does a framework's agent; nothing of ours is between."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    path = tmp_path / "mcp.json"
    path.write_text(printed(web, shop, name, shop.world.agent, "--patience", "5"))
    printed_file = json.loads(path.read_text())

    async def talk() -> tuple[set[str], str, Any, Any, Any]:
        async with Stock(printed_file, mode=mode, timeout=60) as client:
            names = {tool.name for tool in await client.list_tools()}
            noted = await client.call_tool("shop__note", {"text": name})
            held = await client.call_tool("shop__refund", {"amount": 7})
            refused = await client.call_tool("shop__refund", {"amount": "much"}, raise_on_error=False)
        call = call_id_of(held)
        async with Stock(printed_file, mode=mode, timeout=60) as client:
            asked = asyncio.ensure_future(client.call_tool("oz__result", {"call": held.meta["oz0/call"]}))
            question = await aside(the_hold, shop.world, call)
            await aside(answered, shop.world, question.pk, Answer.APPROVE, "")
            return names, text_of(noted), held, refused, await asked

    names, noted, held, refused, fetched = asyncio.run(talk())
    functions = ("look", "picture", "note", "refund", "count", "ponder", "known", "sure")
    assert names == {"oz__result", *(f"shop__{one}" for one in functions)}
    assert noted == f"noted {name}"
    assert held.meta["oz0/pending"] is True and not held.is_error and "oz__result" in text_of(held)
    assert refused.is_error and "amount" in text_of(refused)
    assert text_of(fetched) == "refunded 7" and fetched.meta["oz0/state"] == CallState.SUCCEEDED
    assert shop.did() == [{"did": "note", "text": name}, {"did": "refund", "amount": 7}]
    agent: Agent[None, str] = Agent(TestModel(call_tools=["oz0_shop__look"]), toolsets=load_mcp_toolsets(path))
    assert "is full" in asyncio.run(agent.run("Look.")).output
    calls = [call.function_name for call in shop.calls()]
    assert sorted(calls) == ["look", "note", "refund", "refund"]


def test_every_client_has_its_configuration_and_a_wrong_agent_makes_no_token(web: Web, shop: Shop) -> None:
    for client in CLIENTS:
        told = json.loads(printed(web, shop, client, shop.world.agent, "--json", "--patience", "20", "--days", "never"))
        assert told["token"] in told["configuration"] and told["url"] == f"{web.url}/mcp/"
    with db.read(shop.world.tenant):
        made = ApiToken.objects.count()
    refused = CliRunner().invoke(main, ["connect", "cursor", "nobody"])
    assert refused.exit_code == 1 and "there is no agent named 'nobody'" in refused.output
    impatient = CliRunner().invoke(main, ["connect", "cursor", shop.world.agent, "--patience", "0"])
    assert impatient.exit_code == 1 and "waits for 5 to 3,600 seconds" in impatient.output
    with db.read(shop.world.tenant):
        assert ApiToken.objects.count() == made
