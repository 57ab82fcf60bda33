"""A live session with one server: opened once, listed in full, then asked one request at a time per call."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

import mcp_types as types

from base import sandbox
from base.addresses import Refused
from catalog.rules import listing
from catalog.rules.answers import Answer
from catalog.rules.servers import ListedFunction, MeasuredListing, Remote, ServerSpec
from catalog.sessions.calls import Call
from catalog.sessions.clients import Clients
from catalog.sessions.connection import Connection, ConnectionEnded, Json, RequestFailed
from catalog.sessions.http_connection import HttpConnection
from catalog.sessions.http_opening import agree
from catalog.sessions.log import Log
from catalog.sessions.negotiation import Negotiated, negotiate
from catalog.sessions.process import ServerProcess, StartFailed

PAGES: Final = 100
ENTRIES: Final = 10_000
UNWATCHED: Final = 60.0  # seconds a listing counts whose changes no stream would tell of
KEY: Final = "oz0/idempotency_key"
RESUME: Final = "oz0/resume"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105  a name of the protocol


class NotUp(Exception):
    """A session could not be opened, or its listing not read. The message is one sentence for a person.

    `status` is the HTTP status that a remote server refused it with.
    """

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status: Final = status


class Link(Protocol):
    """What a session needs of its connection, over stdio or HTTP."""

    on_list_changed: Callable[[], None]
    acknowledges: bool
    watched: bool

    @property
    def ended(self) -> "asyncio.Future[str]":
        """Resolves with one sentence when it is over."""

    def call(self, call: Call, params: Json) -> None:
        """Send one `tools/call`."""

    async def request(self, method: str, params: Json) -> Json:
        """The result of a request that is not a call."""

    def learn(self, tools: list[object]) -> None:
        """A page of the listing has been read."""

    async def close(self, why: str) -> None:
        """End it; open calls end as broken."""


class Session:
    """Made by `open_session`, in the loop it lives in. Not thread-safe, except where said."""

    def __init__(
        self,
        connection: Link,
        agreed: Negotiated,
        first: MeasuredListing,
        *,
        pid: int | None = None,
        after_close: Callable[[], Any] | None = None,
    ) -> None:
        self._connection: Final = connection
        self._agreed: Final = agreed
        self._pid: Final = pid
        self._after_close: Final = after_close
        self._read_at = asyncio.get_running_loop().time()
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
    def listing_age(self) -> float:
        """Seconds since the listing was read."""
        return asyncio.get_running_loop().time() - self._read_at

    @property
    def pid(self) -> int | None:
        """The process id of the server's guardian; None for a remote server."""
        return self._pid

    @property
    def acknowledges(self) -> bool:
        """Whether this server has been seen to say when a cancelled call has really ended (RULES L2)."""
        return self._connection.acknowledges

    @property
    def ended(self) -> "asyncio.Future[str]":
        """Resolves with one sentence as soon as the server is gone or closed its output."""
        return self._connection.ended

    @property
    def stale(self) -> bool:
        """Whether its listing has changed since it was last read, or may have without anyone being told."""
        return self._stale or (not self._connection.watched and self.listing_age > UNWATCHED)

    def function(self, name: str) -> ListedFunction | None:
        """The entry of this name in the listing as last read."""
        return self._functions.get(name)

    async def fresh(self) -> None:
        """Read the listing again if it is stale. Raises `NotUp`. Wait with a limit."""
        while self.stale:
            await self.measure()

    async def measure(self) -> MeasuredListing:
        """Read the whole listing again, once for all who ask meanwhile. Raises `NotUp`. Wait with a limit."""
        if self._measuring is None or self._measuring.done():
            self._stale = False
            self._measuring = asyncio.get_running_loop().create_task(_measured(self._connection, self._agreed))
            self._measuring.add_done_callback(self._took)
        await asyncio.shield(self._measuring)
        return self._listing

    def _changed(self) -> None:
        self._stale = True

    def _took(self, task: "asyncio.Task[MeasuredListing]") -> None:
        if task.cancelled() or task.exception() is not None:
            self._stale = True
            return
        self._read_at = asyncio.get_running_loop().time()
        before = self._listing
        self._listing = replace(
            task.result(), can_cancel=before.can_cancel, can_report=before.can_report, isolation=before.isolation
        )
        self._functions = {function.name: function for function in self._listing.functions}

    def send(
        self, call: Call, *, name: str, arguments: Mapping[str, Any], key: str, resume: Mapping[str, Any] | None = None
    ) -> None:
        """Send the one request of `call`. Raises `ValueError` when the arguments cannot be written as JSON.

        The request's `_meta` is ours alone: nothing in `arguments` can reach it (RULES K1, K7). `resume` says where
        an attempt before it had got to (RULES P3).
        """
        meta: Json = {**self._agreed.meta, KEY: key}
        if resume is not None:
            meta[RESUME] = dict(resume)
        if call.progress_token:
            meta[PROGRESS_TOKEN] = call.progress_token
        self._connection.call(call, {"name": name, "arguments": dict(arguments), "_meta": meta})

    async def close(self, why: str) -> None:
        """End the server and its descendants. Open calls end as broken. Takes at most about 7 s."""
        if self._measuring is not None:
            self._measuring.cancel()
        await self._connection.close(why)
        if self._after_close is not None:
            await self._after_close()


async def open_session(
    spec: ServerSpec, log: Log, *, on_late: Callable[[object, Answer], None], clients: Clients | None = None
) -> Session:
    """Start or reach the server, agree on a protocol, read its listing. Raises `NotUp`.

    Takes at most `spec.startup` seconds and the time to clear away what did not start. Sessions of remote servers
    share the HTTP clients in `clients`.
    """
    if spec.remote is not None:
        return await _open_remote(spec, spec.remote, log, on_late, clients or Clients())
    if spec.trouble:
        raise NotUp(spec.trouble)
    try:
        process = await ServerProcess.start(spec.argv, cwd=spec.cwd, env=spec.env, log=log, asked=spec.sandbox)
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
    if spec.sandbox is not None:
        first = replace(first, isolation=sandbox.measured())
    return Session(connection, agreed, first, pid=process.pid)


async def _open_remote(
    spec: ServerSpec, remote: Remote, log: Log, on_late: Callable[[object, Answer], None], clients: Clients
) -> Session:
    if remote.trouble:
        raise NotUp(remote.trouble)
    try:
        client = clients.take(spec)
    except Refused as error:
        raise NotUp(f"{remote.url} is not connected to: {error}.") from error
    connection = HttpConnection(client, remote.url, log, on_late=on_late)
    try:
        async with asyncio.timeout(spec.startup):
            can_cancel, can_report = await agree(connection, spec.protocol)
            first = await _measured(connection, connection.agreed)
    except BaseException as error:
        await asyncio.shield(asyncio.ensure_future(_give_up(connection, clients, spec)))
        if isinstance(error, ConnectionEnded | RequestFailed):
            raise NotUp(str(error), _status(error)) from error
        if isinstance(error, Exception):
            raise NotUp(_why(error, spec, ""), _status(error)) from error
        raise

    async def give_back() -> None:
        await clients.give_back(spec)

    first = replace(first, can_cancel=can_cancel, can_report=can_report)
    return Session(connection, connection.agreed, first, after_close=give_back)


async def _give_up(connection: HttpConnection, clients: Clients, spec: ServerSpec) -> None:
    await connection.close("It could not be opened.")
    await clients.give_back(spec)


async def _measured(connection: Link, agreed: Negotiated) -> MeasuredListing:
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
            raise NotUp(str(error), _status(error)) from error
        tools, meta, following = page.get("tools"), page.get("_meta"), page.get("nextCursor")
        if not isinstance(tools, list):
            raise NotUp("The server's listing has no list of tools.")
        entries.extend(tools)
        connection.learn(tools)
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


def _status(error: Exception) -> int | None:
    return error.status if isinstance(error, RequestFailed | NotUp) else None


def _why(error: Exception, spec: ServerSpec, ended: str) -> str:
    if isinstance(error, NotUp):
        return str(error)
    if ended:
        return ended
    if isinstance(error, TimeoutError):
        return f"The server was not ready within its {spec.startup:g} s to start."
    return f"The server could not be talked to ({type(error).__name__}): {str(error)[:200]}"
