"""The server behind the gateway in its tests: reads, writes that leave a line, slow ones that report and can stop."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ImageContent,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

server = MCPServer("shop")
LEDGER = Path(os.environ.get("SHOP_LEDGER", "ledger.jsonl"))
READ = ToolAnnotations(read_only_hint=True)
WRITE = ToolAnnotations(destructive_hint=False)
DESTRUCTIVE = ToolAnnotations(destructive_hint=True)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def write(what: str, **more: object) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(json.dumps({"did": what, **more}) + "\n")


@server.tool(annotations=READ)
def look(what: str = "shelf") -> str:
    """Look at something."""
    return f"the {what} is full"


@server.tool(annotations=READ)
def picture() -> list[TextContent | ImageContent]:
    """A picture and its caption."""
    return [TextContent(text="a pixel"), ImageContent(data=PIXEL, mime_type="image/png")]


@server.tool(annotations=WRITE)
def note(text: str) -> str:
    """Write a line."""
    write("note", text=text)
    return f"noted {text}"


@server.tool(annotations=DESTRUCTIVE)
def refund(amount: int) -> str:
    """Give money back."""
    write("refund", amount=amount)
    return f"refunded {amount}"


@server.tool(annotations=READ)
async def count(ctx: Context, to: int = 4, step: float = 0.3) -> str:
    """Count slowly, telling how far it is."""
    for number in range(to):
        await ctx.report_progress(number + 1, to)
        await anyio.sleep(step)
    return f"counted to {to}"


@server.tool(annotations=WRITE)
async def ponder(seconds: float = 30.0) -> str:
    """Think for a while; says so when it is stopped."""
    write("began")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        write("stopped")
        raise
    write("ended")
    return "pondered"


@server.tool(annotations=READ)
def known(ctx: Context) -> str:
    """All that this server was given: its process, its environment, the metadata of this call."""
    meta = ctx.request_context.meta or {}
    return json.dumps({"pid": os.getpid(), "environment": dict(os.environ), "meta": dict(meta)}, default=str)


@server.tool(annotations=READ)
def sure() -> str | InputRequiredResult:
    """Asks back before it answers."""
    asked: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    question = ElicitRequest(params=ElicitRequestFormParams(message="Are you sure?", requested_schema=asked))
    return InputRequiredResult(input_requests={"sure": question}, request_state="of the shop's")


if __name__ == "__main__":
    server.run()
