"""An MCP server whose calls can be stopped: `async` ones clean up, a `def` one notices, and another never does."""

import argparse
import time
from pathlib import Path
from typing import Annotated

import anyio
import anyio.from_thread
from bookshop_journal import Journal
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import Field

SHELVES = {
    "crime": ["The Cold Harbour", "Nine Locks"],
    "history": ["A Short History of Ink", "The Salt Roads"],
    "science": ["Tides", "What Bees Count"],
    "travel": ["Slow Trains", "The Salt Roads"],
}
CLEANUP_SECONDS = 5  # less than the tool's clean-up time in oz0-plugin.yaml

Title = Annotated[str, Field(min_length=1, max_length=100)]
Titles = Annotated[list[Title], Field(min_length=1, max_length=1_000)]
Seconds = Annotated[float, Field(ge=0, le=300, description="For demonstrations: how long one piece of the work takes")]


def build(journal: Journal) -> MCPServer:
    """The server of one shop."""
    server = MCPServer("bookshop", version="1.0.0")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    async def search_shelves(word: Title, ctx: Context, seconds_each: Seconds = 0) -> str:
        """Look for a word in the titles, shelf by shelf."""
        found = []
        for at, (shelf, titles) in enumerate(SHELVES.items()):
            await anyio.sleep(seconds_each)
            found += [f"{title} ({shelf})" for title in titles if word.lower() in title.lower()]
            await ctx.report_progress(at + 1, len(SHELVES))
        return "\n".join(found) or f"No title has {word!r} in it."

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
    async def order_book(title: Title, payment_takes: Seconds = 1) -> str:
        """Keep a copy of a book aside while the customer pays for it, and order it then."""
        journal.write("kept", title)
        try:
            await _payment(payment_takes)
            journal.write("ordered", title)
            return f"Ordered {title!r}."
        finally:
            # This runs however the call ends. Once it is cancelled, every plain `await` in here would be cancelled too,
            # so the clean-up is shielded; and since nothing can stop a shielded part, it has an end of its own.
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await _give_back(journal, title)

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False))
    def rebuild_index(titles: Titles, seconds_each: Seconds = 0.2) -> str:
        """Close the search, index the titles one by one, and open it again."""
        journal.write("search closed")
        try:
            for title in titles:
                # A `def` function runs in a thread, and nobody can stop a thread: it asks, between pieces of work.
                anyio.from_thread.check_cancelled()
                time.sleep(seconds_each)
                journal.write("indexed", title)
            return f"Indexed {len(titles)} titles."
        finally:
            journal.write("search open")

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
    def print_catalogue(pages: Annotated[int, Field(ge=1, le=1_000)] = 3, seconds_each: Seconds = 0.2) -> str:
        """Print the catalogue. It never asks whether it was cancelled, so it always prints to the last page."""
        for page in range(1, pages + 1):
            time.sleep(seconds_each)
            journal.write("printed", f"page {page}")
        return f"Printed {pages} pages."

    return server


async def _payment(seconds: float) -> None:
    """The customer types a card number."""
    await anyio.sleep(seconds)


async def _give_back(journal: Journal, title: str) -> None:
    """A short conversation with the stock system."""
    await anyio.sleep(0.1)
    journal.write("given back", title)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the folder that holds the journal")
    build(Journal(parser.parse_args().state)).run()
