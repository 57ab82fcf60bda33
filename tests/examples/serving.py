"""The example plugins' real servers, opened as their own manifests say, on a state folder of the test's own."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from base.folders import files_of
from catalog.rules.manifest import command
from catalog.rules.plugins import PluginSpec, read_plugin

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE = 30  # seconds any one test may take


def plugin(name: str) -> PluginSpec:
    """An example's plugin, read from its folder."""
    return read_plugin(files_of(EXAMPLES / name))


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run one test's conversation, within bounds."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await test()

    asyncio.run(bounded())


@asynccontextmanager
async def serving(name: str, home: Path) -> AsyncIterator[Client]:
    """A client of the plugin's one server, whose state is under `home`."""
    (tool,) = plugin(name).tools
    program, *words = command(tool.argv, python=sys.executable, home=str(home))
    env = {"PYTHONPATH": str(EXAMPLES.parent)}  # where the product is, for the example that is a part of it
    parameters = StdioServerParameters(command=program, args=words, cwd=EXAMPLES / name, env=env)
    with (home / f"{name}.stderr").open("a") as log:
        async with Client(stdio_client(parameters, errlog=log), cache=None) as client:
            await client.list_tools()
            yield client


async def called(client: Client, function: str, key: str = "", **arguments: Any) -> CallToolResult:
    """Call a function as the studio does: once, under a key."""
    meta = {"oz0/idempotency_key": key} if key else None
    return await client.call_tool(function, arguments, meta=meta)


def text(result: CallToolResult) -> str:
    """What the model would read."""
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


async def until(truth: Callable[[], bool]) -> None:
    """Look again and again until it is true; the test's own bound ends a wait for what never comes."""
    while not truth():  # noqa: ASYNC110 -- what is waited for is a file, which sets no event
        await asyncio.sleep(0.01)
