"""A remote server on the SDK, in each of its modes, in a thread of the test: functions that take time, and a ledger."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.to_thread
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ProgressNotification, ProgressNotificationParams, ToolAnnotations

from examples.archive.archive_server import older

READ = ToolAnnotations(read_only_hint=True)


class SdkRemote:
    """`ledger` has a line for what each function lived through."""

    def __init__(self) -> None:
        self.ledger: list[str] = []
        self.release = threading.Event()
        self.url = ""

    def build(self) -> MCPServer:
        server = MCPServer("sdk", log_level="ERROR")

        @server.tool(annotations=READ)
        async def slow(seconds: float) -> str:
            self.ledger.append("slow began")
            try:
                await anyio.sleep(seconds)
            except anyio.get_cancelled_exc_class():
                self.ledger.append("slow stopped")
                raise
            self.ledger.append("slow ended")
            return "slept"

        @server.tool(annotations=READ)
        def blocking() -> str:
            self.ledger.append("blocking began")
            self.release.wait(20)
            self.ledger.append("blocking ended")
            return "blocked"

        @server.tool(annotations=READ)
        async def ping() -> str:
            return "pong"

        @server.tool(annotations=READ)
        async def reports(steps: int, ctx: Context) -> str:
            meta = ctx.request_context.meta or {}
            for step in range(1, steps + 1):
                params = ProgressNotificationParams(
                    progress_token=meta["progress_token"], progress=step, total=steps, _meta={"oz0/resume": f"t{step}"}
                )
                await ctx.session.send_notification(
                    ProgressNotification(params=params), related_request_id=ctx.request_id
                )
            return f"resume {meta.get('oz0/resume')}"

        return server


@contextmanager
def an_sdk_remote(*, legacy: bool = False, in_json: bool = False, stateless: bool = False) -> Iterator[SdkRemote]:
    """A running server."""
    remote = SdkRemote()
    app = remote.build().streamable_http_app(json_response=in_json, stateless_http=stateless)
    config = uvicorn.Config(older(app) if legacy else app, port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    limit = threading.Event()
    for _ in range(400):
        if server.started or limit.wait(0.05):
            break
    assert server.started
    remote.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    try:
        yield remote
    finally:
        remote.release.set()
        server.should_exit = True
        thread.join(10)
