"""One request to a remote server and everything that comes back on it, read with bounds into a record."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from base import outbound
from catalog.rules.http import Heard
from catalog.sessions.events import Events
from catalog.sessions.lines import HEAD, Overlong, id_in_pieces

MAX_MESSAGE: Final = 10 * 2**20  # bytes of one JSON body or one event
MAX_STREAM: Final = 64 * 2**20  # bytes of one exchange, the messages beside the answer included
MAX_MESSAGES: Final = 100_000  # of one exchange; further ones beside the answer are not looked at
MAX_OTHER: Final = 64 * 1024  # bytes of a body that is neither JSON nor events
ANSWERS: Final = "application/json, text/event-stream"
Json = dict[str, Any]


class Exchange:
    """Sends one JSON-RPC message by POST and reads until its response, its end or a bound; lives once.

    `on_message` gets every other message that comes on the way. `heard` is the record, also while it grows.
    """

    def __init__(self, wire_id: int | str | None, on_message: Callable[[Json], None]) -> None:
        self.heard: Final = Heard()
        self._wire_id: Final = wire_id
        self._on_message: Final = on_message
        self._messages = 0

    async def post(
        self,
        client: outbound.Client,
        url: str,
        message: Json,
        *,
        headers: Mapping[str, str],
        may_begin: Callable[[], bool] = lambda: True,
    ) -> Heard:
        """Make the request. Raises what `outbound.Client.ask` raises when no answer began; after that never."""
        return await self.read(client, url, "POST", spelled(message), headers, may_begin=may_begin)

    async def read(
        self,
        client: outbound.Client,
        url: str,
        method: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        may_begin: Callable[[], bool] = lambda: True,
        on_open: Callable[[], None] = lambda: None,
    ) -> Heard:
        """The same for any method and body. `on_open` is called when an event stream has begun."""
        sent = {"Accept": ANSWERS, **({"Content-Type": "application/json"} if body else {}), **headers}
        async with client.ask(method, url, headers=sent, body=body, may_begin=may_begin) as reply:
            self.heard.status, self.heard.headers = reply.status, reply.headers
            if reply.status == 200 and reply.content_type == "text/event-stream":
                on_open()
            try:
                if reply.content_type == "text/event-stream":
                    await self._read_events(reply)
                else:
                    await self._read_body(reply, is_json=reply.content_type == "application/json")
            except outbound.Failed as error:
                self.heard.trouble = str(error)
            except outbound.TooLong as error:
                self.heard.trouble = f"The server sent more than {error.limit // 2**10:,} KiB."
        return self.heard

    async def _read_events(self, reply: outbound.Reply) -> None:
        events = Events(MAX_MESSAGE)
        try:
            async for chunk in reply.chunks(MAX_STREAM):
                self.heard.arrived += len(chunk)
                for event in events.feed(chunk):
                    if self._took(event):
                        return
        except outbound.Failed:
            if any(self._took(event) for event in events.rest()):
                return
            raise
        if not any(self._took(event) for event in events.rest()) and not self.heard.unread:
            self.heard.trouble = "The answer's stream ended without a response to the call."

    async def _read_body(self, reply: outbound.Reply, *, is_json: bool) -> None:
        kept, tail = bytearray(), b""
        try:
            async for chunk in reply.chunks(MAX_STREAM if is_json else MAX_OTHER):
                self.heard.arrived += len(chunk)
                if len(kept) <= MAX_MESSAGE:
                    kept += chunk
                tail = (tail + chunk)[-HEAD:]
        finally:
            if is_json and len(kept) > MAX_MESSAGE:
                self._took(Overlong(self.heard.arrived, bytes(kept[:HEAD]), tail))
            elif is_json and kept:
                self._took(bytes(kept))

    def _took(self, event: bytes | Overlong) -> bool:
        """Whether one message was the response; any other is handed on."""
        if isinstance(event, Overlong):
            self.heard.overlong = id_in_pieces(event.head, event.tail) == self._wire_id
            return self.heard.overlong
        try:
            message = json.loads(event.decode("utf-8", "replace"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self.heard.unread = "What came is not JSON."
            return False
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and self._is_answer(one):
                self.heard.message = one
                return True
            if isinstance(one, dict) and one.get("jsonrpc") == "2.0":
                self._other(one)
        return False

    def _is_answer(self, message: Json) -> bool:
        found = message.get("id")
        same = self._wire_id is not None and not isinstance(found, bool) and str(found) == str(self._wire_id)
        return message.get("jsonrpc") == "2.0" and same and "method" not in message

    def _other(self, message: Json) -> None:
        self._messages += 1
        if "method" in message:
            if self._messages <= MAX_MESSAGES:
                self._on_message(message)
        elif isinstance(message.get("error"), dict):
            self.heard.error = message["error"]


def spelled(message: Json) -> bytes:
    """A message as bytes. Raises `ValueError` when it cannot be written as JSON."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
