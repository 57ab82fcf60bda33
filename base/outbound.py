"""The one factory of HTTP clients: addresses checked, nothing followed, repeated or decoded, everything bounded.

    client = outbound.Client(allowed=["127.0.0.1:8801"], headers={"Authorization": "Bearer …"})
    async with client.ask("POST", url, headers={…}, body=b"…") as reply:
        async for chunk in reply.chunks(limit=10 * 2**20): …
    await client.close()

Each new connection resolves its host once, checks every address found and connects to a checked one; the host's
name goes on into `Host` and SNI. Exactly one request is sent: no redirect, no retry, no cookie, no proxy from the
environment, no compressed body. Waiting for an answer has no limit of its own: give it one around `ask`.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import httpcore2

from base import crash_points
from base.addresses import Address, Refused, Target, literal, read_url, refuse_bad

CONNECT: Final = 10.0  # seconds for each address of a host, and for TLS
# Many servers close an idle connection after 2 to 5 s. A request that crosses such a close on the wire has gone out
# and is never answered, which is an unknown outcome: an idle connection is given up well before.
IDLE: Final = 1.0
MOST_IDLE: Final = 20
LONGEST: Final = 16_000  # characters of an address with its query; few servers read a longer line

type Resolve = Callable[[str, int], Awaitable[list[Address]]]


class Failed(Exception):
    """No answer, or no whole one. `went_out`: a byte of the request may have left. The message is one sentence."""

    def __init__(self, why: str, *, went_out: bool, connected: bool = False) -> None:
        super().__init__(why)
        self.went_out: Final = went_out
        self.connected: Final = connected


class TooLong(Exception):
    """A body passed `limit`, the bytes that it was read with."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit: Final = limit


class Withheld(Exception):
    """`may_begin` said no right before the first byte: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer whose body has not been read. Header names are in small letters; repeated ones are joined by commas."""

    status: int
    headers: Mapping[str, str]
    _stream: AsyncIterator[bytes]

    @property
    def content_type(self) -> str:
        """The media type alone, in small letters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `TooLong` past `limit` bytes, and `Failed` when it breaks off or is encoded."""
        if self.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise Failed("The answer is compressed, which was not asked for.", went_out=True, connected=True)
        taken = 0
        try:
            async for chunk in self._stream:
                taken += len(chunk)
                if taken > limit:
                    raise TooLong(limit)
                yield chunk
        except _TROUBLE as error:
            why = f"The connection ended inside the answer, after {taken} bytes of it ({_said(error)})."
            raise Failed(why, went_out=True, connected=True) from error

    async def body(self, limit: int) -> bytes:
        """The whole body, at most `limit` bytes of it."""
        return b"".join([chunk async for chunk in self.chunks(limit)])


class Client:
    """One server's client for one credential; lives in one loop. Any number of requests run side by side.

    `allowed` holds `host:port` entries (`addresses.read_place`) that may be reached although they are not public, or
    without TLS. `headers` go with every request and are shown nowhere.
    """

    def __init__(
        self,
        *,
        allowed: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._headers: Final = dict(headers or {})
        self._door: Final = _CheckedDoor(frozenset(allowed), resolve or _resolve)
        self._pool: Final = httpcore2.AsyncConnectionPool(
            ssl_context=tls or ssl.create_default_context(),
            max_connections=None,  # with a limit the call past it waits and fails for all that wait with it
            max_keepalive_connections=MOST_IDLE,
            keepalive_expiry=IDLE,
            network_backend=self._door,
        )

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        may_begin: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[Reply]:
        """Send one request; leaving the block early closes its connection. `may_begin` is asked before the first byte.

        Raises `Refused` (the address), `Withheld`, or `Failed`.
        """
        target = read_url(url, longest=LONGEST)
        self._door.expect(target)
        began = False

        async def watch(name: str, _info: Mapping[str, Any]) -> None:
            nonlocal began
            if name == "http11.send_request_headers.started":
                if not may_begin():
                    raise Withheld
                began = True
            elif name == "http11.send_request_body.complete":
                crash_points.reached("request.written")

        request = httpcore2.Request(
            method=method,
            url=httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.target),
            headers=self._all_headers(target, headers or {}, body),
            content=body,
            extensions={"trace": watch, "timeout": {"connect": CONNECT}},
        )
        try:
            response = await self._pool.handle_async_request(request)
        except Withheld:
            raise
        except Refused:
            raise
        except httpcore2.LocalProtocolError as error:
            raise Failed(f"The request cannot be written ({error}).", went_out=False) from error
        except (*_TROUBLE, ssl.SSLError, OSError) as error:
            raise _failure(error, target, began=began) from error
        try:
            yield Reply(response.status, _joined(response.headers), aiter(response.stream))  # type: ignore[arg-type]
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close every connection; requests that run end as `Failed`."""
        await self._pool.aclose()

    def _all_headers(self, target: Target, headers: Mapping[str, str], body: bytes) -> list[tuple[bytes, bytes]]:
        given = {"Accept-Encoding": "identity", "User-Agent": "oz0-studio", **headers, **self._headers}
        default = {"https": 443, "http": 80}[target.scheme]
        host = target.place if target.port != default else target.place.rpartition(":")[0]
        every = {"Host": host, **given} | ({"Content-Length": str(len(body))} if body or method_has_body(given) else {})
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in every.items()]


class Stream:
    """One connection to a checked address, whose bytes are somebody else's."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream: Final = stream

    async def read(self, most: int) -> bytes:
        """What comes next, at most so many bytes; nothing at its end. Raises `Failed`."""
        try:
            return await self._stream.read(most)
        except _TROUBLE as error:
            raise Failed(f"The connection ended ({_said(error)}).", went_out=True, connected=True) from error

    async def write(self, chunk: bytes) -> None:
        """Send it. Raises `Failed`."""
        try:
            await self._stream.write(chunk)
        except _TROUBLE as error:
            raise Failed(f"The connection ended ({_said(error)}).", went_out=True, connected=True) from error

    async def aclose(self) -> None:
        """End the connection."""
        await self._stream.aclose()


async def connected(target: Target, *, allowed: Collection[str], resolve: Resolve | None = None) -> Stream:
    """A connection to a server, its addresses checked as a `Client`'s are. Raises `Refused` or `Failed`."""
    door = _CheckedDoor(frozenset(allowed), resolve or _resolve)
    door.expect(target)
    try:
        return Stream(await door.connect_tcp(target.host, target.port, timeout=CONNECT))
    except (*_TROUBLE, OSError) as error:
        raise _failure(error, target, began=False) from error


def method_has_body(headers: Mapping[str, str]) -> bool:
    """Whether the headers announce a body, also an empty one."""
    return any(name.lower() == "content-type" for name in headers)


class _CheckedDoor(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections for one client: looks a host up once, checks all it finds, connects to what it checked."""

    def __init__(self, allowed: frozenset[str], resolve: Resolve) -> None:
        self._allowed: Final = allowed
        self._resolve: Final = resolve
        self._inner: Final = httpcore2.AnyIOBackend()
        self._expected: dict[tuple[str, int], Target] = {}

    def expect(self, target: Target) -> None:
        """A request to this target is about to be made."""
        refuse_bad(target, _known(target), allowed=target.place in self._allowed)
        self._expected[(target.host, target.port)] = target

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        target = self._expected[(host, port)]
        try:
            async with asyncio.timeout(timeout):
                found = _known(target) or await self._resolve(host, port)
        except (OSError, TimeoutError) as error:
            raise httpcore2.ConnectError(f"{host} is not known: {_said(error)}") from error
        if not found:
            raise httpcore2.ConnectError(f"{host} is not known")
        refuse_bad(target, found, allowed=target.place in self._allowed)
        for address in found[:-1]:
            try:
                return await self._inner.connect_tcp(str(address), port, timeout=timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(str(found[-1]), port, timeout=timeout)


def _known(target: Target) -> list[Address]:
    address = literal(target.host)
    return [address] if address is not None else []


def look_up(host: str, port: int) -> list[Address]:
    """The addresses of a host. It blocks in the operating system, for as long as that likes. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(entry[4][0])) for entry in found))


async def _resolve(host: str, port: int) -> list[Address]:
    return await asyncio.get_running_loop().run_in_executor(None, look_up, host, port)


_TROUBLE: Final = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
)


def _failure(error: Exception, target: Target, *, began: bool) -> Failed:
    if not began:
        return Failed(f"{target.place} could not be connected to: {_said(error)}.", went_out=False)
    return Failed(f"The connection ended before an answer ({_said(error)}).", went_out=True, connected=True)


def _said(error: BaseException) -> str:
    """What an error says, or its name when it says nothing."""
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("ascii", "replace").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
