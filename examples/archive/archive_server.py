"""A remote MCP server over Streamable HTTP: an archive whose search reads page by page and can go on from any of them.

    python archive_server.py --port 8801 --state FOLDER [--older]

Every page it reads is a line of `pages.jsonl` in the state folder, so that anyone can see what was read how often.
"""

import argparse
import json
import os
import re
import signal
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ProgressNotification, ProgressNotificationParams, ToolAnnotations
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

KEY = "oz0/idempotency_key"
RESUME = "oz0/resume"
PAGES = 4
TOKEN = re.compile(r"page-([0-9]{1,4})\Z")
FINDS = ("the ledger of 1911", "a letter without a stamp", "two maps of the harbour", "the minutes nobody signed")

Words = Annotated[str, Field(min_length=1, max_length=100, description="What to look for")]
Pages = Annotated[int, Field(ge=1, le=50, description="How many pages to read")]
Pause = Annotated[float, Field(ge=0, le=5, description="Seconds that a page takes")]
DieAfter = Annotated[
    int | None, Field(ge=1, le=50, description="Drill: end the server after this page, the first time")
]


class Record:
    """What this archive has read and survived: files in its state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def page(self, number: int, *, key: str, resumed: str | None) -> None:
        """A page has been read."""
        self._write("pages.jsonl", {"page": number, "key": key, "resumed": resumed, "pid": os.getpid()})

    def dies_now(self, key: str) -> bool:
        """Whether the server should end for this call: once for each key."""
        file = self.folder / "deaths.jsonl"
        if file.exists() and any(json.loads(line)["key"] == key for line in file.read_text().splitlines()):
            return False
        self._write("deaths.jsonl", {"key": key})
        return True

    def _write(self, name: str, line: dict[str, Any]) -> None:
        with self._lock, (self.folder / name).open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def build(record: Record) -> MCPServer:
    """The server of one archive."""
    server = MCPServer("archive", version="1.0.0", log_level="ERROR")

    @server.tool(
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        meta={RESUME: True},
    )
    async def search(
        words: Words, ctx: Context, pages: Pages = PAGES, pause: Pause = 0.0, die_after: DieAfter = None
    ) -> str:
        """Search the archive page by page. A search that broke off goes on after the last page it told of."""
        meta = ctx.request_context.meta or {}
        key, first, resumed = str(meta.get(KEY, "")), 1, None
        if isinstance(meta.get(RESUME), dict):
            resumed = str(meta[RESUME].get("token"))
            found = TOKEN.match(resumed)
            if found is None:
                raise ToolError("this is no token of this archive")
            first = int(found[1]) + 1
        for page in range(first, pages + 1):
            await anyio.sleep(pause)
            record.page(page, key=key, resumed=resumed)
            await _told(ctx, meta, page, pages)
            if page == die_after and record.dies_now(key):
                await anyio.sleep(0.2)  # what was told is on its way
                os._exit(1)
        finds = [FINDS[page % len(FINDS)] for page in range(pages)]
        return f"{pages} pages searched for “{words}”, read here: {first} to {pages}. Found: {'; '.join(finds)}."

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def count() -> str:
        """How many pages the archive has."""
        return f"The archive has {PAGES} pages."

    @server.tool()
    def shred(words: Words) -> str:
        """Says nothing of itself, on purpose: nobody can tell what it would do."""
        return f"Nothing about “{words}” was shredded: this is an example."

    return server


async def _told(ctx: Context, meta: dict[str, Any], page: int, pages: int) -> None:
    """Say how far the search got, with a token to go on from there."""
    if "progress_token" not in meta:
        return
    params = ProgressNotificationParams(
        progress_token=meta["progress_token"], progress=page, total=pages, _meta={RESUME: f"page-{page}"}
    )
    await ctx.session.send_notification(ProgressNotification(params=params), related_request_id=ctx.request_id)


def older(app: ASGIApp) -> ASGIApp:
    """The same server as one that knows only the handshake of 2025 and before."""

    async def refused(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and headers.get(b"mcp-protocol-version", b"") >= b"2026":
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Bad Request: Unsupported protocol version"})
            return
        await app(scope, receive, send)

    return refused


def main() -> None:
    """Serve on loopback until ended. What a call's drill kills is only the process that serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--state", type=Path, required=True, help="the folder that keeps what was read")
    parser.add_argument("--older", action="store_true", help="speak only the protocol of 2025 and before")
    options = parser.parse_args()
    app: ASGIApp = build(Record(options.state)).streamable_http_app()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    # without a scheme: the first http:// address that a start of the studio prints signs a person in
    print(f"archive at 127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)  # noqa: T201  what it is started for
    _serve(older(app) if options.older else app, listener)


def _serve(app: ASGIApp, listener: socket.socket) -> None:
    """Run the server in a process of its own, and another one as soon as that has died: only the port outlives it."""
    while True:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
            uvicorn.Server(config).run(sockets=[listener])
            os._exit(0)
        signal.signal(signal.SIGTERM, partial(_end, child))
        try:
            _, status = os.waitpid(child, 0)
        except KeyboardInterrupt:
            _end(child)
            return
        if os.waitstatus_to_exitcode(status) == 0:
            return


def _end(child: int, *_: object) -> None:
    os.kill(child, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
