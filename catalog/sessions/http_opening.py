"""Opening a connection to a remote server: its generation asked for once, and what the connection can do, measured.

A generation measured before is kept to. An answer that says nothing about the generation (429, 401, 5xx, a broken
connection) is never taken for an older server.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from catalog.rules.http import Heard
from catalog.sessions.connection import Json, RequestFailed
from catalog.sessions.http_connection import HttpConnection, result_of
from catalog.sessions.negotiation import Negotiated, meta_for, us

OLDER: Final = frozenset({400, 404, 405, 406, 415})  # what servers of the older generation answer to a newer request
NO_SUCH_VERSION: Final = -32022
LISTEN_AGAIN: Final = (1.0, 2.0, 5.0, 15.0, 60.0)  # seconds before a lost stream of changes is asked for again
NEVER_AGAIN: Final = frozenset({400, 401, 403, 404, 405, 406, 501})


async def agree(connection: HttpConnection, protocol: str) -> tuple[bool, bool]:
    """Agree on a protocol version, or keep to the one measured before; (can it cancel, can it report progress).

    Raises `RequestFailed` or `ConnectionEnded`. Wait with a limit.
    """
    if not protocol:
        protocol = await _generation(connection)
    if protocol in MODERN_PROTOCOL_VERSIONS:
        connection.modern = True
        connection.agreed = connection.agreed if connection.agreed.protocol else _adopted(protocol)
        can = not await _answers_in_json(connection)
        connection.keep_watch(_watch_modern(connection))
        return can, can
    in_json = await _handshake(connection, protocol)
    can_cancel = bool(connection.session_id)

    async def again() -> None:
        await _handshake(connection, connection.agreed.protocol)

    connection.reopen = again
    if can_cancel:
        connection.keep_watch(_watch_legacy(connection))
    return can_cancel, not in_json


async def _generation(connection: HttpConnection) -> str:
    """The newest version both sides speak; empty when the server is of the older generation."""
    newest = MODERN_PROTOCOL_VERSIONS[-1]
    for _ in range(2):
        heard = await _discovered(connection, newest, {})
        error = _error(heard)
        offered = _versions((error or {}).get("data")) if error and error.get("code") == NO_SUCH_VERSION else []
        if (named := _newest(offered)) and named != newest:
            newest = named
            continue
        return _judged(connection, heard)
    raise RequestFailed("The server names a protocol version that it then does not speak.")


def _judged(connection: HttpConnection, heard: Heard) -> str:
    result = heard.message.get("result") if heard.message is not None else None
    if isinstance(result, dict):
        found = _newest(_versions(result))
        if found:
            server = result.get("serverInfo") or (result.get("_meta") or {}).get("io.modelcontextprotocol/serverInfo")
            connection.agreed = _adopted(found, server)
        return found
    if heard.status in OLDER or (heard.status == 200 and _error(heard) is not None):
        return ""
    result_of("server/discover", heard)
    return ""


async def _discovered(connection: HttpConnection, version: str, headers: Mapping[str, str]) -> Heard:
    stamp = {"MCP-Protocol-Version": version, "Mcp-Method": "server/discover", **headers}
    return await connection.exchange("server/discover", {"_meta": meta_for(version)}, headers=stamp)


async def _answers_in_json(connection: HttpConnection) -> bool:
    """Whether a server of the newer generation answers in one JSON body: then it neither hears a closed stream nor
    reports (RULES C5). One that streams refuses a request that takes only JSON."""
    heard = await _discovered(connection, connection.agreed.protocol, {"Accept": "application/json"})
    return heard.status == 200 and heard.message is not None


async def _handshake(connection: HttpConnection, protocol: str) -> bool:
    """`initialize` and `initialized`; whether the server answers in JSON instead of a stream."""
    connection.agreed, connection.modern, connection.session_id = Negotiated("", "", ""), False, ""
    params: Json = {
        "protocolVersion": protocol or HANDSHAKE_PROTOCOL_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": us().model_dump(by_alias=True, mode="json", exclude_none=True),
    }
    heard = await connection.exchange("initialize", params)
    result = result_of("initialize", heard)
    version = result.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise RequestFailed(f"The server speaks the protocol version {str(version)[:40]!r}, which is not known here.")
    connection.take_session(heard)
    connection.agreed = _adopted(str(version), result.get("serverInfo"))
    await connection.say("notifications/initialized", {})
    return heard.headers.get("content-type", "").startswith("application/json")


def _adopted(protocol: str, server: Any = None) -> Negotiated:
    info = server if isinstance(server, dict) else {}
    return Negotiated(protocol, str(info.get("name", "")), str(info.get("version", "")), meta_for(protocol))


def _error(heard: Heard) -> Mapping[str, Any] | None:
    error = heard.message.get("error") if heard.message is not None else heard.error
    return error if isinstance(error, Mapping) else None


def _versions(holder: object) -> list[str]:
    found = (holder.get("supportedVersions") or holder.get("supported")) if isinstance(holder, Mapping) else None
    return [version for version in found if isinstance(version, str)] if isinstance(found, list) else []


def _newest(offered: list[str]) -> str:
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in offered), "")


async def _watch_modern(connection: HttpConnection) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": dict(connection.agreed.meta)}
    asked: Json = {"method": "subscriptions/listen", "params": params}
    await _watch(connection, "POST", asked, {"Content-Type": "application/json"})


async def _watch_legacy(connection: HttpConnection) -> None:
    await _watch(connection, "GET", None, {"Accept": "text/event-stream"})


async def _watch(connection: HttpConnection, method: str, params: Json | None, headers: Mapping[str, str]) -> None:
    """Keep a stream of changes open. What was missed while it was lost is found by reading the listing again."""
    loop, tries = asyncio.get_running_loop(), 0
    while True:
        began = loop.time()
        status = await connection.watch(method, params, headers)
        if status in NEVER_AGAIN:
            return
        if status == 200:
            connection.on_list_changed()
        tries = 0 if loop.time() - began > LISTEN_AGAIN[-1] else tries
        await asyncio.sleep(LISTEN_AGAIN[min(tries, len(LISTEN_AGAIN) - 1)])
        tries += 1
