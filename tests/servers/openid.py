"""An OpenID provider on this machine: a server of its own in a thread, with real keys, codes that count once, and PKCE.

`person` is who signs in at it; `says` replaces what it answers at a path, `token` what its id token says.
"""

import base64
import hashlib
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.waiting import until

METADATA = "/.well-known/openid-configuration"
CLIENT = "studio"
SECRET = "of the studio"


class Provider:
    """What a test says and asks of it."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.asked: list[str] = []
        self.person: dict[str, Any] = {"sub": "p-1", "email": "kim@example.com", "email_verified": True}
        self.userinfo: dict[str, Any] = {}
        self.says: dict[str, Any] = {}
        self.token: dict[str, Any] = {}
        self.denies = False
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signs_with = self.key
        self.codes: dict[str, tuple[dict[str, Any], str, str]] = {}

    def metadata(self, **other: Any) -> dict[str, Any]:
        """What it says of itself."""
        return {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "userinfo_endpoint": f"{self.base}/userinfo",
            "jwks_uri": f"{self.base}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            **other,
        }

    def app(self) -> Starlette:
        """Its server."""
        steps = {"/authorize": self.authorize, "/token": self.give, "/userinfo": self.tell, "/keys": self.keys}
        routes = [Route(METADATA, self._told(self.found))]
        return Starlette(
            routes=routes + [Route(path, self._told(step), methods=["GET", "POST"]) for path, step in steps.items()]
        )

    def _told(self, step: Any) -> Any:
        async def answered(request: Request) -> Response:
            self.asked.append(request.url.path)
            if request.url.path in self.says:
                return JSONResponse(self.says[request.url.path])
            answer: Response = await step(request)
            return answer

        return answered

    async def found(self, request: Request) -> Response:
        return JSONResponse(self.metadata())

    async def authorize(self, request: Request) -> Response:
        given = request.query_params
        back = {"state": given["state"]}
        if self.denies:
            return RedirectResponse(f"{given['redirect_uri']}?{urlencode(back | {'error': 'access_denied'})}", 302)
        assert given["client_id"] == CLIENT and given["response_type"] == "code"
        assert given["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = (dict(self.person), given["code_challenge"], given["redirect_uri"])
        return RedirectResponse(f"{given['redirect_uri']}?{urlencode(back | {'code': code})}", 302)

    async def give(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        person, challenge, redirect_uri = self.codes.pop(form["code"], ({}, "", ""))
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET) or redirect_uri != form[
            "redirect_uri"
        ]:
            return JSONResponse({"error": "invalid_client"}, 401)
        if proof.decode() != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        self.userinfo = person
        claims = {"iss": self.base, "aud": CLIENT, "sub": person["sub"], "iat": 1_700_000_000, "exp": 4_000_000_000}
        signed = jwt.encode(claims | self.token, self.signs_with, algorithm="RS256", headers={"kid": "k1"})
        return JSONResponse({"access_token": "opaque", "token_type": "Bearer", "id_token": signed})

    async def tell(self, request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer opaque"
        return JSONResponse(self.userinfo)

    async def keys(self, request: Request) -> Response:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})


@contextmanager
def an_openid_provider() -> Iterator[Provider]:
    """One that answers, on a free port."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        provider = Provider(f"http://127.0.0.1:{door.getsockname()[1]}")
        config = uvicorn.Config(
            provider.app(), log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        try:
            until(lambda: server.started, "the provider does not start")
            yield provider
        finally:
            server.should_exit = True
            thread.join(10)
