"""`/mcp/` as the web process serves it: who asks, from where, and then the SDK's own server of both generations.

Django's handler is not in front of it, so hosts and origins are checked here, as its settings say. A legacy session
lives in the memory of the process that opened it; a request of the newer generation may go to any (docs/gateway.md).
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import DEFAULT_SESSION_IDLE_TIMEOUT, StreamableHTTPSessionManager

from base import db
from catalog.sessions.negotiation import us
from jobs.gateway import paces
from jobs.gateway.exchange import KEY, Exchange
from jobs.gateway.server import Face
from jobs.gateway.threads import Threads
from jobs.operations.outside import Client
from jobs.rules import texts
from tenants.operations import tokens
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import Bearer, bearer
from tenants.rules.bearers import Scope, is_token

log = logging.getLogger(__name__)

type Scope_ = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

ROOT: Final = "/mcp"
PATHS: Final = frozenset({ROOT, f"{ROOT}/"})
REALM: Final = 'Bearer realm="oz0 studio"'
MODERN: Final = "2026"  # what versions begin with that have no handshake
MOST_PEEKED: Final = 64 * 1024  # bytes of a request that came too soon, which are read to answer it by its id
MOST_SESSIONS: Final = 10_000
SESSIONS_OF_ONE: Final = 1_000  # that one token has open, so that it shuts nobody else out
NO_TOKEN: Final = "Send a token of this studio: Authorization: Bearer oz0_… (Settings, Tokens makes one)."  # noqa: S105


class Refused(Exception):
    """A request that goes no further, and what it is answered."""

    def __init__(self, status: HTTPStatus, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status: Final = status
        self.headers: Final = headers


class Gateway:
    """The ASGI application behind `/mcp/`. Daphne has no lifespan, so it starts with the first request."""

    def __init__(self, *, idle: float = DEFAULT_SESSION_IDLE_TIMEOUT, most_sessions: int = MOST_SESSIONS) -> None:
        self._threads: Final = Threads()
        self._paces: Final = paces.Paces(settings.OZ0_GATEWAY_RATE)
        self._face: Final = Face(threads=self._threads, name="oz0 studio", version=us().version)
        self._manager: Final = StreamableHTTPSessionManager(
            self._face.server, session_idle_timeout=idle, max_sessions=most_sessions
        )
        self._running: asyncio.Task[None] | None = None
        self._ready: Final = asyncio.Event()

    async def __call__(self, scope: Scope_, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            if scope["path"] not in PATHS:
                raise Refused(HTTPStatus.NOT_FOUND, f"There is nothing here: the gateway is at {ROOT}/.")
            _from_here(headers)
            exchange = await self._who(headers, receive)
        except Refused as refused:
            await _refuse(send, refused)
            return
        client, modern = exchange.client, headers.get("mcp-protocol-version", "") >= MODERN
        if (wait := self._paces.wait(client.token_id)) and await self._too_often(exchange, wait, scope, send, modern):
            return
        await self._start()
        begins = not client.session and not modern
        if begins and self._sessions_of(client) >= SESSIONS_OF_ONE:
            full = f"This token has {SESSIONS_OF_ONE} sessions open: end those that are not used any more (DELETE)."
            await _refuse(send, Refused(HTTPStatus.SERVICE_UNAVAILABLE, full, **{"retry-after": "60"}))
            return
        user = AuthenticatedUser(AccessToken(token="", client_id=str(client.token_id), scopes=[], subject=client.name))
        await self._manager.handle_request({**scope, KEY: exchange, "user": user}, exchange.receive, send)
        if (request := exchange.cancels()) is not None:
            self._face.cancel(exchange, request)

    @property
    def sessions(self) -> int:
        """How many sessions with a handshake are open here."""
        return len(self._manager._server_instances)

    async def _too_often(self, exchange: Exchange, wait: int, scope: Scope_, send: Send, modern: bool) -> bool:
        """Tell a token that it asks too often, in the way that its client understands; False where nobody is told."""
        if scope["method"] != "POST":
            return False
        message = await exchange.peek(MOST_PEEKED)
        limit = self._paces.limit
        if message is None:
            later = {"retry-after": str(wait)}
            await _refuse(send, Refused(HTTPStatus.TOO_MANY_REQUESTS, texts.asks_too_often(limit, wait), **later))
            return True
        told = paces.too_often(message, limit=limit, wait=wait, modern=modern)
        if told is None:
            return False
        status, whole = told
        headers = {"content-type": "application/json", "cache-control": "no-store", "retry-after": str(wait)}
        await _send(send, status, headers, whole)
        return True

    def _sessions_of(self, client: Client) -> int:
        owners = list(self._manager._session_owners.values())
        return sum(owner["client_id"] == str(client.token_id) for owner in owners)

    async def stop(self) -> None:
        """End what runs here; for a process that goes on without it."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        await self._face.stop()
        self._threads.stop()

    async def _who(self, headers: Mapping[str, str], receive: Receive) -> Exchange:
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        if scheme.casefold() != "bearer" or not is_token(token):
            raise Refused(HTTPStatus.UNAUTHORIZED, NO_TOKEN, **{"www-authenticate": REALM})
        hashed = hash_of(token)
        try:
            found = await self._threads.run(lambda: _bearer(hashed))
        except db.GONE as error:
            away = "The database does not answer just now. Try again in a few seconds."
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, away, **{"retry-after": "5"}) from error
        if found is None:
            challenge = f'{REALM}, error="invalid_token"'
            gone = "This is no token, or it counts no more: it was revoked, has expired, or its person has left."
            raise Refused(HTTPStatus.UNAUTHORIZED, gone, **{"www-authenticate": challenge})
        if Scope.CALL not in found.scopes or not found.agent:
            challenge = f'{REALM}, error="insufficient_scope", scope="{Scope.CALL}"'
            lacks = f"This token may not call tools: it lacks the scope {Scope.CALL} and an agent it is bound to."
            raise Refused(HTTPStatus.FORBIDDEN, lacks, **{"www-authenticate": challenge})
        session = headers.get("mcp-session-id", "")[:64]
        person = None if found.of_session else found.seat.person_id
        client = Client(found.seat.tenant, found.token_id, found.name, found.agent, person, session)
        return Exchange(client, hashed, float(found.patience), receive)

    async def _start(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())
        await self._ready.wait()

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()


def _bearer(hashed: str) -> Bearer | None:
    found = bearer(hashed)
    if found is not None:
        tokens.used(tenant=found.seat.tenant, token_id=found.token_id, last=found.used_at, now=found.now)
    return found


def _from_here(headers: Mapping[str, str]) -> None:
    """Refuse what a page of elsewhere had a browser send, or a name that was pointed here (DNS rebinding)."""
    host = headers.get("host", "")
    name, _ = split_domain_port(host)
    if not validate_host(name, settings.ALLOWED_HOSTS):
        raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "This host name is not one of the studio's: OZ0_ALLOWED_HOSTS.")
    origin = headers.get("origin")
    if origin is not None and origin not in settings.CSRF_TRUSTED_ORIGINS and _place_of(origin) != host:
        raise Refused(HTTPStatus.FORBIDDEN, "This origin may not call the gateway: OZ0_TRUSTED_ORIGINS.")


def _place_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # no address at all
        return ""


async def _refuse(send: Send, refused: Refused) -> None:
    status = refused.status
    told = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": str(refused)}
    headers = {"content-type": "application/problem+json", "cache-control": "no-store", **refused.headers}
    await _send(send, status.value, headers, told)


async def _send(send: Send, status: int, headers: Mapping[str, str], told: Mapping[str, Any]) -> None:
    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})
