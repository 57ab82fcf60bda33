"""What lets a library that brings its own HTTP client speak through ours (`outbound`), with a record of the wire.

    door = Transport(outbound.Client(allowed=…, headers={"Authorization": …}))
    Library(http_client=door.client(), …)

The library's credential is left out of every request; the outbound client's own headers carry the real one, so that no
library ever holds it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import httpx2

from base import outbound
from base.addresses import Refused

CREDENTIALS: Final = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"})
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding", "connection"})
MOST: Final = 32 * 2**20  # bytes of one answer's body


@dataclass(slots=True)
class Seen:
    """What the last request came to on the wire. `status` is None without an answer; `trouble` is one sentence."""

    went_out: bool = False
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    trouble: str = ""


class Transport(httpx2.AsyncBaseTransport):
    """One request after another over an `outbound.Client`; `seen` tells of the last one. Redirects are answers."""

    def __init__(self, client: outbound.Client) -> None:
        self._client: Final = client
        self.requests = 0
        self.seen = Seen()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Raises the `httpx2` errors that libraries know."""
        self.requests += 1
        seen = self.seen = Seen()
        left_out = CREDENTIALS | _OURS
        headers = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
        body = await request.aread()
        async with AsyncExitStack() as stack:
            try:
                asked = self._client.ask(request.method, str(request.url), headers=headers, body=body)
                reply = await stack.enter_async_context(asked)
            except Refused as error:
                seen.trouble = f"The address cannot be used: {error}."
                raise httpx2.ConnectError(seen.trouble, request=request) from error
            except outbound.Failed as error:
                seen.trouble, seen.went_out = str(error), error.went_out
                kind = httpx2.ReadError if error.went_out else httpx2.ConnectError
                raise kind(seen.trouble, request=request) from error
            except asyncio.CancelledError:
                seen.went_out = True  # it may have
                raise
            seen.went_out, seen.status, seen.headers = True, reply.status, dict(reply.headers)
            stream = _Body(reply, stack.pop_all(), seen)
        return httpx2.Response(reply.status, headers=list(reply.headers.items()), stream=stream, request=request)

    def client(self) -> httpx2.AsyncClient:
        """The library's client. It follows nothing and has no limit of time: give one around the request."""
        return httpx2.AsyncClient(transport=self, follow_redirects=False, timeout=None, trust_env=False)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer as it comes; closing it early closes its connection."""

    def __init__(self, reply: outbound.Reply, stack: AsyncExitStack, seen: Seen) -> None:
        self._reply: Final = reply
        self._stack: Final = stack
        self._seen: Final = seen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._reply.chunks(MOST):
                yield chunk
        except (outbound.Failed, outbound.TooLong) as error:
            self._seen.trouble = str(error)
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._stack.aclose()
