"""Finding out which generation of the protocol a server speaks: the one thing the MCP client SDK is used for here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from catalog.sessions.connection import Connection, Json

ANSWERS_WAITING: Final = 16
type Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What was agreed. `meta` goes into every request's `_meta` (empty before 2026-07-28)."""

    protocol: str
    server_name: str
    server_version: str
    meta: dict[str, Any] = field(default_factory=dict)


async def negotiate(connection: Connection, protocol: str) -> Negotiated:
    """Agree on a protocol version, or adopt the one measured before. Wait with a limit.

    Raises whatever the SDK raises when the server cannot be talked to; the caller says "could not be opened".
    """
    info = us()
    async with Client(_over(connection), mode=_mode(protocol), cache=None, client_info=info) as client:
        agreed = client.protocol_version
        server = client.server_info
    return Negotiated(agreed, server.name if server else "", server.version if server else "", meta_for(agreed))


def us() -> types.Implementation:
    """Who we say we are."""
    return types.Implementation(name="oz0-studio", version=_our_version())


def meta_for(protocol: str) -> dict[str, Any]:
    """What every request of this protocol version carries in its `_meta`."""
    if protocol not in MODERN_PROTOCOL_VERSIONS:
        return {}
    return {
        types.PROTOCOL_VERSION_META_KEY: protocol,
        types.CLIENT_INFO_META_KEY: us().model_dump(by_alias=True, mode="json", exclude_none=True),
        types.CLIENT_CAPABILITIES_META_KEY: {},
        types.LOG_LEVEL_META_KEY: "info",
    }


def _our_version() -> str:
    try:
        return version("oz0-studio")
    except PackageNotFoundError:
        return "source"  # run from a checkout that was never installed


def _mode(protocol: str) -> Any:
    if protocol in MODERN_PROTOCOL_VERSIONS:
        return protocol
    return "legacy" if protocol in HANDSHAKE_PROTOCOL_VERSIONS else "auto"


@asynccontextmanager
async def _streams(connection: Connection) -> AsyncIterator[Streams]:
    """The connection as a transport of the SDK: it sees the answers to its own requests and nothing else."""
    to_sdk, from_us = anyio.create_memory_object_stream[SessionMessage | Exception](ANSWERS_WAITING)
    to_us, from_sdk = anyio.create_memory_object_stream[SessionMessage](0)

    def answered(message: Json) -> None:
        try:
            to_sdk.send_nowait(SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False)))
        except (ValueError, anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # no message of the protocol, or of no use to the SDK any more: its own limit ends the wait

    async def pump() -> None:
        async for item in from_sdk:
            connection.send_as_is(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))

    async def watch() -> None:
        await _ended(connection)
        to_sdk.close()

    connection.on_sdk = answered
    async with anyio.create_task_group() as tasks, to_sdk, from_us, to_us, from_sdk:
        tasks.start_soon(pump)
        tasks.start_soon(watch)
        try:
            yield from_us, to_us
        finally:
            connection.on_sdk = lambda _message: None
            tasks.cancel_scope.cancel()


async def _ended(connection: Connection) -> None:
    done = anyio.Event()
    connection.ended.add_done_callback(lambda _: done.set())
    await done.wait()


def _over(connection: Connection) -> Transport:
    return _streams(connection)
