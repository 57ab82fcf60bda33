"""A server on the SDK whose functions behave as authors' functions do: async, blocking, polling, shielded.

Each function that leaves a trace appends lines to the file that the environment calls LEDGER.
"""

import os
import time

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations

server = MCPServer("behaved", log_level="ERROR")


def write(line: str) -> None:
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(line + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def ping() -> str:
    """Says which process answers."""
    return f"pong from {os.getpid()}"


@server.tool()
async def slow(seconds: float, name: str = "slow") -> str:
    """Stops when cancelled."""
    write(f"{name} began")
    try:
        await anyio.sleep(seconds)
    except BaseException:
        write(f"{name} stopped")
        raise
    write(f"{name} ended")
    return "done"


@server.tool()
async def shielded(seconds: float) -> str:
    """Cleans up under a shield when cancelled."""
    write("shielded began")
    try:
        await anyio.sleep(60)
    finally:
        with anyio.move_on_after(5, shield=True):
            await anyio.sleep(seconds)
            write("shielded cleaned up")
    return "done"


@server.tool()
def blocking(seconds: float) -> str:
    """Cannot be interrupted."""
    write("blocking began")
    time.sleep(seconds)
    write("blocking ended")
    return "done"


@server.tool()
def polling(seconds: float) -> str:
    """Looks for its cancellation between units of work."""
    from anyio.from_thread import check_cancelled

    write("polling began")
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            check_cancelled()
            time.sleep(0.01)
    except BaseException:
        write("polling stopped")
        raise
    return "done"


@server.tool()
async def fails() -> str:
    """Answers with an error of its own."""
    raise ToolError("no such book")


@server.tool()
async def several() -> CallToolResult:
    """Several sorts of content."""
    image = ImageContent(type="image", data="A" * 4096 * 4, mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="one"), image, TextContent(type="text", text="two")])


@server.tool()
async def figures() -> dict[str, int]:
    """Structured content."""
    return {"answer": 42}


@server.tool()
async def says_so(ctx: Context) -> str:
    """The key it was called with."""
    return str((ctx.request_context.meta or {}).get("oz0/idempotency_key"))


@server.tool()
async def dies_after_effect() -> str:
    """Does its work and is gone before it can say so."""
    write("effect")
    os._exit(7)


if __name__ == "__main__":
    server.run()
