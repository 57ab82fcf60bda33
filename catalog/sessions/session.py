"""A live session with one stdio server: opened once, listed in full, then asked one request at a time per call."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import mcp_types as types

from catalog.rules import listing
from catalog.rules.answers import Answer
from catalog.rules.servers import ListedFunction, MeasuredListing, ServerSpec
from catalog.sessions.calls import Call
from catalog.sessions.connection import Connection, ConnectionEnded, Json, RequestFailed
from catalog.sessions.log import Log
from catalog.sessions.negotiation import Negotiated, negotiate
from catalog.sessions.process import ServerProcess, StartFailed

PAGES: Final = 100
ENTRIES: Final = 10_000
KEY: Final = "oz0/idempotency_key"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105  a name of the protocol


class NotUp(Exception):
    """A session could not be opened, or its listing not read. The message is one sentence for a person."""


class Session:
    """Made by `open_session`, in the loop it lives in. Not thread-safe, except where said."""

    def __init__(
        self, connection: Connection, process: ServerProcess, agreed: Negotiated, first: MeasuredListing
    ) -> None:
        self._connection: Final = connection
        self._process: Final = process
        self._agreed: Final = agreed
        self._listing = first
        self._functions = {function.name: function for function in first.functions}
        self._stale = False
        self._measuring: asyncio.Task[MeasuredListing] | None = None
        connection.on_list_changed = self._changed

    @property
    def listing(self) -> MeasuredListing:
        """The listing as it was last read."""
        return self._listing

    @property
    def pid(self) -> int:
        """The process id of the server's guardian."""
        return self._process.pid

    @property
    def ended(self) -> "asyncio.Future[str]":
        """Resolves with one sentence as soon as the server is gone or closed its output."""
        return self._connection.ended

    @property
    def stale(self) -> bool:
        """Whether the server has said that its listing changed since it was last read."""
        return self._stale

    def function(self, name: str) -> ListedFunction | None:
        """The entry of this name in the listing as last read."""
        return self._functions.get(name)

    async def fresh(self) -> None:
        """Read the listing again if the server has said that it changed. Raises `NotUp`. Wait with a limit."""
        while self._stale:
            await self.measure()

    async def measure(self) -> MeasuredListing:
        """Read the whole listing again, once for all who ask meanwhile. Raises `NotUp`. Wait with a limit."""
        if self._measuring is None or self._measuring.done():
            self._stale = False
            self._measuring = asyncio.get_running_loop().create_task(_measured(self._connection, self._agreed))
            self._measuring.add_done_callback(self._took)
        return await asyncio.shield(self._measuring)

    def _changed(self) -> None:
        self._stale = True

    def _took(self, task: "asyncio.Task[MeasuredListing]") -> None:
        if task.cancelled() or task.exception() is not None:
            self._stale = True
            return
        self._listing = task.result()
        self._functions = {function.name: function for function in self._listing.functions}

    def send(self, call: Call, *, name: str, arguments: Mapping[str, Any], key: str) -> None:
        """Send the one request of `call`. Raises `ValueError` when the arguments cannot be written as JSON.

        The request's `_meta` is ours alone: nothing in `arguments` can reach it (RULES K1, K7).
        """
        meta: Json = {**self._agreed.meta, KEY: key}
        if call.progress_token:
            meta[PROGRESS_TOKEN] = call.progress_token
        self._connection.call(call, {"name": name, "arguments": dict(arguments), "_meta": meta})

    async def close(self, why: str) -> None:
        """End the server and its descendants. Open calls end as broken. Takes at most about 7 s."""
        if self._measuring is not None:
            self._measuring.cancel()
        await self._connection.close(why)


async def open_session(spec: ServerSpec, log: Log, *, on_late: Callable[[object, Answer], None]) -> Session:
    """Start the server, agree on a protocol, read its listing. Raises `NotUp`.

    Takes at most `spec.startup` seconds and the time to clear away what did not start.
    """
    try:
        process = await ServerProcess.start(spec.argv, cwd=spec.cwd, env=spec.env, log=log)
    except StartFailed as error:
        raise NotUp(str(error)) from error
    connection = Connection(process, log, on_late=on_late)
    try:
        async with asyncio.timeout(spec.startup):
            agreed = await negotiate(connection, spec.protocol)
            first = await _measured(connection, agreed)
    except BaseException as error:
        ended = connection.ended.result() if connection.ended.done() else ""
        process.kill()
        await asyncio.shield(asyncio.ensure_future(connection.close("It could not be opened.")))
        if isinstance(error, Exception):
            raise NotUp(_why(error, spec, ended)) from error
        raise
    return Session(connection, process, agreed, first)


async def _measured(connection: Connection, agreed: Negotiated) -> MeasuredListing:
    entries: list[object] = []
    stamp: Json = {}
    cursor: str | None = None
    for _ in range(PAGES):
        params: Json = {"_meta": dict(agreed.meta)} if agreed.meta else {}
        if cursor is not None:
            params["cursor"] = cursor
        try:
            page = await connection.request("tools/list", params)
        except (RequestFailed, ConnectionEnded) as error:
            raise NotUp(str(error)) from error
        tools, meta, following = page.get("tools"), page.get("_meta"), page.get("nextCursor")
        if not isinstance(tools, list):
            raise NotUp("The server's listing has no list of tools.")
        entries.extend(tools)
        if isinstance(meta, dict) and isinstance(meta.get(types.SERVER_INFO_META_KEY), dict):
            stamp = meta[types.SERVER_INFO_META_KEY]
        if len(entries) > ENTRIES:
            raise NotUp(f"The server's listing has more than {ENTRIES} entries.")
        if not isinstance(following, str) or not following:
            return listing.listing(
                entries,
                protocol=agreed.protocol,
                server_name=agreed.server_name or str(stamp.get("name", "")),
                server_version=agreed.server_version or str(stamp.get("version", "")),
            )
        if following == cursor:
            raise NotUp("The server's listing gives the same page again and again.")
        cursor = following
    raise NotUp(f"The server's listing has more than {PAGES} pages.")


def _why(error: Exception, spec: ServerSpec, ended: str) -> str:
    if isinstance(error, NotUp):
        return str(error)
    if ended:
        return ended
    if isinstance(error, TimeoutError):
        return f"The server was not ready within its {spec.startup:g} s to start."
    return f"The server could not be talked to ({type(error).__name__}): {str(error)[:200]}"
