"""One HTTP request at the gateway: who sends it, its very bytes, and whether its client still listens."""

import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from uuid import UUID

from base import canonical
from jobs.operations.outside import Client

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]

KEY: Final = "oz0.exchange"  # in the ASGI scope
CANCELLED: Final = "notifications/cancelled"


class Exchange:
    """One request, from its first byte to the end of its answer.

    The SDK reads the body; what it reads is kept here too, since its own JSON reader takes the last of two equal keys
    and the studio refuses them (MACHINES 6). `on_gone` is called once when the client has closed its connection.
    """

    def __init__(self, client: Client, token_hash: str, patience: float, receive: Receive) -> None:
        self.client: Final = client
        self.token_hash: Final = token_hash
        self.patience: Final = patience
        self.gone = False
        self.cancelled = False  # its client has said that it wants the call no more
        self.call_id: UUID | None = None
        self.wanted = ""  # digest of the function's name and its arguments, as a round is asked for
        self.whose: tuple[UUID, str, str] | None = None  # token, session and request id, while its call is waited for
        self.on_gone: Callable[[], None] = lambda: None
        self._receive: Final = receive
        self._chunks: list[bytes] = []
        self._again: deque[Message] = deque()

    async def peek(self, most: int) -> dict[str, Any] | None:
        """The message that was sent, before anybody reads it; None when it has more than `most` bytes or is none."""
        found: list[bytes] = []
        while sum(map(len, found)) <= most:
            message = await self._receive()
            self._again.append(message)
            found.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        else:
            return None
        try:
            whole = json.loads(b"".join(found))
        except (ValueError, RecursionError):
            return None
        return whole if isinstance(whole, dict) else None

    async def receive(self) -> Message:
        """The next message of the server, noted on its way."""
        message = self._again.popleft() if self._again else await self._receive()
        if message["type"] == "http.request":
            self._chunks.append(message.get("body", b""))
        elif message["type"] == "http.disconnect" and not self.gone:
            self.gone = True
            self.on_gone()
        return message

    def message(self) -> dict[str, Any]:
        """The JSON-RPC message that was sent, exactly. Raises `canonical.NotCanonical`, naming the path."""
        found = canonical.parse(b"".join(self._chunks))
        return found if isinstance(found, dict) else {}

    def read(self) -> None:
        """Its body has been read and need not be kept while its call is waited for."""
        self._chunks.clear()

    def cancels(self) -> str | None:
        """The id of the request that this message cancels, as `request_name` writes it; None for any other message."""
        body = b"".join(self._chunks)
        if b"cancelled" not in body:  # however its slash is written
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return None
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict) or message.get("method") != CANCELLED:
            return None
        return request_name(params.get("requestId"))


def request_name(request: object) -> str | None:
    """How a client's own id of a request is kept: 1 and "1" are two. None for what is no id."""
    if isinstance(request, bool) or not isinstance(request, int | str):
        return None
    return f"{'n' if isinstance(request, int) else 's'}:{request}"[:128]
