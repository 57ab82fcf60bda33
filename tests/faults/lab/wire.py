"""A proxy in front of a remote server that does to the wire of single calls what their plans say.

A plan's `wire` names what happens to the call's first, second, … request: "" nothing, or one of

    unsent_reset, unsent_close      the server never gets the request, and the connection breaks
    status:N, code:N                refused before the server gets it, with this HTTP status or JSON-RPC code
    sent_reset, sent_close          the server has answered, and the connection breaks before a byte of that
    late_status:N                   the server has answered, and this status comes instead
    cut:SHARE                       the answer breaks off after this share of its bytes
    half_open                       the server gets the request, and nothing ever comes back
    dribble                         the answer comes in pieces of three bytes
    wrong_id, twice, bad_json, wrong_type, gzip, endless        what the answer is like
    other:N                         for two seconds every other request is answered with this status
"""

import asyncio
import gzip
import json
import re
import time
from collections import Counter
from contextlib import suppress
from typing import Any, Final, Self

from tests.servers.raw_http import Peer, RawServer, Request

KEY: Final = "oz0/idempotency_key"
OTHERS: Final = 2.0  # seconds
BEFORE: Final = frozenset({"unsent_reset", "unsent_close", "status", "code"})


class WireProxy(RawServer):
    """Passes everything on to the server at `port` of this machine, but for what a plan says."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._to: Final = port
        self._came: Final[Counter[str]] = Counter()
        self._others: tuple[float, str] = (0.0, "")

    def refuse_for(self, seconds: float) -> None:
        """Have nobody listen for a while. From any thread."""
        asyncio.run_coroutine_threadsafe(self._refuse(seconds), self._loop)

    async def _refuse(self, seconds: float) -> None:
        self._listening.close()
        await asyncio.sleep(seconds)
        self._listening = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)

    def _fault(self, request: Request) -> tuple[str, str]:
        """What to do to this request, and with which figure."""
        if request.method != "tools/call":
            until, status = self._others
            return ("status", status) if time.monotonic() < until else ("", "")
        plan = json.loads(request.params["arguments"]["plan"])
        key = request.params["_meta"][KEY]
        faults = plan.get("wire", [])
        self._came[key] += 1
        name, _, figure = (faults[self._came[key] - 1] if self._came[key] <= len(faults) else "").partition(":")
        return name, figure

    async def _answer(self, peer: Peer, request: Request) -> None:
        fault, figure = self._fault(request)
        if fault == "other":
            self._others, fault = (time.monotonic() + OTHERS, figure), ""
        if fault in BEFORE:
            await self._instead(peer, request, fault, figure)
        elif fault == "":
            await self._pass_on(peer, request)
        elif fault == "half_open":
            async with _Upstream(self._to, request):
                await peer.reader.read()
        else:
            answer = await self._answer_of(peer, request)
            if answer is not None:
                await self._spoil(peer, request, answer, fault, figure)
        peer.close()

    async def _instead(self, peer: Peer, request: Request, fault: str, figure: str) -> None:
        if fault == "status":
            retry = {"Retry_After": "1"} if figure in ("429", "503") else {}
            moved = {"Location": "http://127.0.0.1:9/mcp"} if figure.startswith("3") else {}
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "not now"}}
            await peer.status(f"{figure} Fault", error, **retry, **moved)
        elif fault == "code":
            error = {"jsonrpc": "2.0", "id": request.body["id"], "error": {"code": int(figure), "message": "no"}}
            await peer.status("400 Bad Request", error)
        elif fault == "unsent_reset":
            peer.reset()

    async def _pass_on(self, peer: Peer, request: Request) -> None:
        """Bytes as they come; when either side closes, so does the other."""
        async with _Upstream(self._to, request) as up:

            async def down() -> None:
                while chunk := await up.reader.read(65536):
                    peer.writer.write(chunk)
                    await peer.writer.drain()

            await _first(down(), peer.reader.read(1))

    async def _answer_of(self, peer: Peer, request: Request) -> bytes | None:
        """The server's whole answer; None when the node closed the connection before."""
        async with _Upstream(self._to, request) as up:
            return await _first(up.reader.read(-1), _none(peer.reader.read(1)))

    async def _spoil(self, peer: Peer, request: Request, answer: bytes, fault: str, figure: str) -> None:
        match fault:
            case "sent_reset":
                peer.reset()
            case "late_status":
                await peer.status(f"{figure} Fault", b"trouble", "text/plain")
            case "cut":
                await peer.send(answer[: int(len(answer) * float(figure))])
                peer.reset()
            case "dribble":
                await peer.send(*(answer[at : at + 3] for at in range(0, len(answer), 3)))
            case "wrong_id":
                own = str(request.body["id"]).encode()
                await peer.send(re.sub(rb'("id":\s*)' + own, rb"\g<1>" + b"9" * len(own), answer))
            case "twice":
                await peer.stream()
                await peer.event(_message(answer))
                await peer.event(_message(answer))
                await peer.end()
            case "bad_json":
                await peer.status("200 OK", b'{"jsonrpc":"2.0","result":{"content":[{"type":"te')
            case "wrong_type":
                await peer.status("200 OK", b"<html>It works!</html>", "text/html")
            case "gzip":
                zipped = gzip.compress(json.dumps(_message(answer)).encode())
                await peer.status("200 OK", zipped, Content_Encoding="gzip")
            case "endless":
                await peer.stream()
                while True:
                    await peer.chunk(b": still here\n" * 200)
                    await asyncio.sleep(0.05)


class _Upstream:
    """The same request made to the server behind, on a connection of its own that ends with the block."""

    def __init__(self, port: int, request: Request) -> None:
        self._port, self._request = port, request

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        body = json.dumps(self._request.body).encode() if self._request.body else b""
        headers = self._request.headers | {"connection": "close", "content-length": str(len(body))}
        lines = [f"{self._request.verb} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await self.writer.drain()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def _none(waiting: Any) -> None:
    await waiting


async def _first(*waiting: Any) -> Any:
    """What the first of these comes to; the others are given up."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _message(answer: bytes) -> Any:
    """The JSON-RPC message in an answer's bytes, whether it was streamed or not."""
    for line in answer.splitlines():
        text = line.removeprefix(b"data: ")
        if text.startswith(b'{"jsonrpc"'):
            return json.loads(text)
    raise ValueError(f"no message in {answer[:300]!r}")
