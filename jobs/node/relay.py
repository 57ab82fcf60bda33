"""What one harness program reaches, and nothing else: the studio, and the server of its model (RULES G4).

Its room has no network. Its connections come out at a Unix socket of this node (`base/bridge.py`), where each says in
its first line whom it wants: a tunnel (`CONNECT`) or a request with a whole address, as to a proxy; or a request with a
path alone, which is for the studio.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from base import outbound
from base.addresses import Refused, Target, literal, read_place, read_url

HEAD: Final = 64 * 1024  # bytes of a request's head
CHUNK: Final = 64 * 1024
PORT: Final = 3128  # of the room's loopback, where the studio's own cannot be used
FIRST_FREE: Final = 1_024
MOST: Final = 64  # connections of one program at a time
HEAD_LIMIT: Final = 30.0  # seconds for a request's head
ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Relay:
    """Open in the node's loop while the program runs. `servers` are the addresses it may reach, the studio's first.

    `allowed` are the `host:port` entries that may be reached although they are not public, or without TLS.
    """

    def __init__(self, servers: tuple[str, ...], allowed: tuple[str, ...]) -> None:
        targets = [read_url(server) for server in servers]
        self._studio: Final = targets[0]
        self._targets: Final = {target.place: target for target in targets}
        self._allowed: Final = frozenset(allowed) | {self._studio.place}
        self._folder = Path()
        self._server: asyncio.Server | None = None
        self._open: Final[set[asyncio.Task[None]]] = set()

    @property
    def path(self) -> str:
        """The socket's, once it is open."""
        return str(self._folder / "out")

    @property
    def port(self) -> int:
        """Where the program finds it on the room's loopback: at the studio's own address, when that is one like it."""
        here, port = literal(self._studio.host), self._studio.port
        loopback = self._studio.host == "localhost" or (here is not None and here.is_loopback)
        return port if loopback and self._studio.scheme == "http" and port >= FIRST_FREE else PORT

    @property
    def env(self) -> Mapping[str, str]:
        """What tells HTTP clients of it."""
        address = f"http://127.0.0.1:{self.port}"
        return dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), address)

    async def open(self) -> None:
        """Listen. The folder is this account's alone; the room is shown the socket."""
        self._folder = Path(tempfile.mkdtemp(prefix="oz0-"))
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path, limit=HEAD)
            Path(self.path).chmod(0o666)  # the program may run as another account  # noqa: ASYNC240
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let nothing through any more."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open))
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it runs in one
        if len(self._open) >= MOST:  # the node's descriptors are everybody's
            writer.close()
            return
        self._open.add(task)
        try:
            await self._carried(reader, writer)
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError, outbound.Failed):
            return
        finally:
            self._open.discard(task)
            writer.close()

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_LIMIT):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            target, first = self._read(head)
            stream = await outbound.connected(target, allowed=self._allowed)
        except (Refused, outbound.Failed) as error:
            writer.write(_refusal(str(error)))
            await writer.drain()
            return
        try:
            if first:
                await stream.write(first)
            else:
                writer.write(ESTABLISHED)
            await _joined(reader, writer, stream)
        finally:
            await stream.aclose()

    def _read(self, head: bytes) -> tuple[Target, bytes]:
        """Whom a request is for, and what to send there of it: nothing for a tunnel. Raises `Refused`."""
        line, _, rest = head.partition(b"\r\n")
        words = line.decode("ascii", "replace").split(" ")
        if len(words) != 3:
            raise Refused("this is no HTTP request")
        method, aim, version = words
        if method == "CONNECT":
            return self._known(read_place(aim)), b""
        if aim.startswith("/"):
            return self._studio, head
        asked = read_url(aim)
        return self._known(asked.place), f"{method} {asked.target} {version}\r\n".encode() + _of_one_request(rest)

    def _known(self, place: str) -> Target:
        target = self._targets.get(place)
        if target is None:
            reached = " and ".join(self._targets)
            raise Refused(f"this program reaches {reached}, so not {place}: its file's `connection` names one more")
        return target


def _of_one_request(headers: bytes) -> bytes:
    """A head's headers for the server itself; the connection is for this request alone."""
    lines = headers.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"proxy-", b"connection:"))]
    return b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n"


def _refusal(why: str) -> bytes:
    body = f"{why}\n".encode()
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


async def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: outbound.Stream) -> None:
    """Carry both directions until one of them ends: a client that has gone must be seen by the server (RULES G6)."""

    async def out() -> None:
        while chunk := await reader.read(CHUNK):
            await stream.write(chunk)

    async def back() -> None:
        while chunk := await stream.read(CHUNK):
            writer.write(chunk)
            await writer.drain()

    ways = [asyncio.ensure_future(out()), asyncio.ensure_future(back())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        for way in ways:
            with suppress(asyncio.CancelledError, OSError, outbound.Failed):
                await way
