"""An MCP server behind a small authorisation server, both on the SDK's own server parts, in a thread of the test.

Refresh tokens are rotated, and one shown twice ends its whole grant, as strict providers do. Tokens never run out by
the process's clock: a test says which ones the server no longer takes.
"""

import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken, TokenError
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.types import ToolAnnotations

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"


class Guarded:
    """`asked` has one line for every request at the provider; `says` replaces what it answers at a path, with
    `retry_after` beside it."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.url = f"{base}/mcp"
        self.place = base.removeprefix("http://")
        self.asked: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.bearers: list[str] = []
        self.says: dict[str, tuple[int, Any]] = {}
        self.retry_after: str | None = None
        self.lifetime: int | None = 3600
        self.gives_refresh = True
        self.denies = False
        self.issuer_on_return: str | None = None
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refresh_tokens: dict[str, RefreshToken] = {}
        self.used: set[str] = set()
        self.access: dict[str, AccessToken] = {}
        self.revoked: list[str] = []
        self.refreshing = threading.Semaphore(0)  # one more for every refresh that has reached the provider
        self.go = threading.Event()
        self.go.set()

    # --- the provider --------------------------------------------------------------------------------------------

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = {"state": params.state or ""} | ({"iss": self.issuer_on_return} if self.issuer_on_return else {})
        if self.denies:
            return f"{params.redirect_uri}?{urlencode({**back, 'error': 'access_denied'})}"
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=4e9,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return f"{params.redirect_uri}?{urlencode({**back, 'code': code})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._granted(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        if refresh_token in self.used:
            self.refresh_tokens.clear()
            self.access.clear()
        return self.refresh_tokens.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshing.release()
        await anyio.to_thread.run_sync(self.go.wait, 20)
        if self.refresh_tokens.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.used.add(refresh_token.token)
        return self._granted(client.client_id, refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        self.bearers.append(token)
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self.access.pop(token.token, None)
        self.refresh_tokens.pop(token.token, None)

    def _granted(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        if self.gives_refresh:
            kept = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
            self.refresh_tokens[refresh] = kept
        return OAuthToken(
            access_token=access,
            expires_in=self.lifetime,
            scope=" ".join(scopes),
            refresh_token=refresh if self.gives_refresh else None,
        )

    # --- the server ----------------------------------------------------------------------------------------------

    def app(self) -> Any:
        server = MCPServer(
            "guarded",
            log_level="ERROR",
            auth_server_provider=self,
            auth=AuthSettings(
                issuer_url=self.base,
                resource_server_url=self.url,
                validate_token_resource=True,
                required_scopes=["papers"],
                client_registration_options=ClientRegistrationOptions(
                    enabled=True, valid_scopes=["papers"], default_scopes=["papers"]
                ),
                revocation_options=RevocationOptions(enabled=True),
            ),
        )

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look() -> str:
            return "seen"

        inner = server.streamable_http_app()

        async def outer(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            path = scope["path"]
            if path != "/mcp":
                self.asked.append(path)
            if path in self.says:
                status, said = self.says[path]
                body = said if isinstance(said, bytes) else json.dumps(said).encode()
                headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
                if self.retry_after is not None:
                    headers.append((b"retry-after", self.retry_after.encode()))
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
                return
            await inner(scope, receive, send)

        return outer

    def metadata(self, **other: Any) -> dict[str, Any]:
        """What the provider says of itself, with some of it replaced."""
        return {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "registration_endpoint": f"{self.base}/register",
            "revocation_endpoint": f"{self.base}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **other,
        }


@contextmanager
def a_guarded_server() -> Iterator[Guarded]:
    """A running one."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        guarded = Guarded(f"http://127.0.0.1:{door.getsockname()[1]}")
        config = uvicorn.Config(guarded.app(), log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        limit = threading.Event()
        for _ in range(400):
            if server.started or limit.wait(0.05):
                break
        assert server.started
        try:
            yield guarded
        finally:
            guarded.go.set()
            server.should_exit = True
            thread.join(10)
