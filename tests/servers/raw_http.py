"""A remote MCP server of bare sockets that answers exactly as a test says, byte by byte, and keeps what it was sent.

It behaves until a test scripts a function: `server.script["cut"] = step` where `async def step(peer, request)` writes
what it likes. Both generations: `RawServer(modern=False)` speaks the handshake with a session id.
"""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

LISTED = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "_meta": {"oz0/resume": True}}


@dataclass
class Request:
    verb: str
    headers: dict[str, str]
    body: dict[str, Any]
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def method(self) -> str:
        return str(self.body.get("method", self.verb))

    @property
    def params(self) -> dict[str, Any]:
        return self.body.get("params") or {}

    def result(self, text: str = "ok", **more: Any) -> dict[str, Any]:
        """A response to this request."""
        content = [{"type": "text", "text": text}]
        result = {"content": content, "isError": False, "resultType": "complete", **more}
        return {"jsonrpc": "2.0", "id": self.body.get("id"), "result": result}


class Peer:
    """One connection, as a step sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes | str) -> None:
        """Write pieces, each in a segment of its own."""
        for piece in pieces:
            self.writer.write(piece if isinstance(piece, bytes) else piece.encode())
            await self.writer.drain()
            await asyncio.sleep(0.002)

    async def status(self, line: str, body: Any = b"", kind: str = "application/json", **headers: str) -> None:
        """A whole answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        typed = f"Content-Type: {kind}\r\n" if data else ""
        await self.send(f"HTTP/1.1 {line}\r\n{typed}{more}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    async def stream(self, *, chunked: bool = True) -> None:
        """The head of an event stream."""
        how = "Transfer-Encoding: chunked" if chunked else "Connection: close"
        await self.send(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{how}\r\n\r\n")

    async def chunk(self, data: bytes | str) -> None:
        raw = data if isinstance(data, bytes) else data.encode()
        await self.send(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")

    async def event(self, message: Any) -> None:
        await self.chunk(f"event: message\ndata: {json.dumps(message)}\n\n")

    async def end(self) -> None:
        await self.send("0\r\n\r\n")

    def reset(self) -> None:
        """Close by RST."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        """Close by FIN."""
        self.writer.close()


type Step = Callable[[Peer, Request], Awaitable[None]]


class RawServer:
    """Runs in a thread of its own between `with` and its end."""

    def __init__(self, *functions: str, modern: bool = True, listed: dict[str, Any] | None = None) -> None:
        self.modern = modern
        self.script: dict[str, Step] = {}
        self.requests: list[Request] = []
        self.sessions = 0
        self.stale_sessions: set[str] = set()
        self.functions = ["ok", *functions]
        self.listed = LISTED if listed is None else listed
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self, function: str | None = None) -> list[Request]:
        """The `tools/call` requests that came."""
        found = [one for one in self.requests if one.method == "tools/call"]
        return [one for one in found if function is None or one.params.get("name") == function]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._listening = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        while accepting := asyncio.all_tasks() - {asyncio.current_task(), *self._connections}:
            await asyncio.gather(*accepting)  # a server closed meanwhile would drop the socket unclosed
        self._listening.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for writer in self._connections.values():
            writer.transport.abort()
        await self._listening.wait_closed()  # all their transports with it

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._serve_one(reader, writer))] = writer

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        try:
            while not writer.is_closing():
                request = await self._read(reader)
                if request is None:
                    return
                self.requests.append(request)
                try:
                    await self._answer(peer, request)
                finally:
                    request.closed.set()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(first.split(" ")[0], headers, json.loads(raw) if raw else {})

    async def _answer(self, peer: Peer, request: Request) -> None:
        name = str(request.params.get("name")) if request.method == "tools/call" else request.method
        session = request.headers.get("mcp-session-id", "")
        if name in self.script:
            await self.script[name](peer, request)
        elif session in self.stale_sessions:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}
            await peer.status("404 Not Found", error)
        elif request.method == "tools/call":
            await peer.status("200 OK", request.result())
        elif request.method == "tools/list":
            tools = [{"name": name, "description": f"What {name} does.", **self.listed} for name in self.functions]
            await peer.status("200 OK", self._said(request, {"tools": tools}))
        elif request.method == "server/discover" and self.modern:
            await self._discovered(peer, request)
        elif request.method == "initialize" and not self.modern:
            self.sessions += 1
            info = {"name": "raw", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            data = f"data: {json.dumps(self._said(request, result))}\n\n".encode()
            session = f"session-{self.sessions}"
            await peer.status("200 OK", data, "text/event-stream", Mcp_Session_Id=session)
        elif "id" not in request.body and request.verb == "POST":
            await peer.status("202 Accepted")
        elif request.verb == "DELETE":
            await peer.status("200 OK")
        elif request.verb == "GET":
            await peer.status("405 Method Not Allowed")
        else:
            error = {"code": -32601, "message": "no such method"}
            await peer.status("404 Not Found", {"jsonrpc": "2.0", "id": request.body.get("id"), "error": error})

    async def _discovered(self, peer: Peer, request: Request) -> None:
        if request.headers.get("accept") == "application/json":
            await peer.status("406 Not Acceptable")
            return
        info = {"name": "raw", "version": "1"}
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info}
        await peer.status("200 OK", self._said(request, result))

    @staticmethod
    def _said(request: Request, result: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": request.body["id"], "result": result}
