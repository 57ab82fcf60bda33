"""A tool that says what it is told, as fast as the SDK lets it."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("echo", version="1.0.0")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    server.run("stdio")
