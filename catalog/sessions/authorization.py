"""Talking to an authorisation server: what it is, making us known, codes and refresh tokens for tokens, revoking.

Every address goes through `base.outbound` with the connection's allow-list; nothing is followed or asked twice. The
functions without `async` block, for at most `LIMIT` seconds: call them outside any transaction.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from mcp.client.auth.exceptions import OAuthRegistrationError
from mcp.client.auth.oauth2 import PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    get_client_metadata_scopes,
    issuers_match,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed
from pydantic import AnyUrl, ValidationError

from base import outbound
from base.addresses import Refused, literal
from catalog.rules import oauth
from catalog.rules.http import wait_of
from catalog.rules.oauth import CannotSignIn, Client, Gone, Later, Provider, Refreshed, Tokens

LIMIT: Final = 20.0  # seconds for everything one function asks
MOST: Final = 256 * 1024  # bytes of one answer
type Said = tuple[int, Mapping[str, Any], float | None]
"""The status, the JSON object in the body (empty when there is none), and the seconds of a `Retry-After`."""
GRANTS: Final = ["authorization_code", "refresh_token"]
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
UNKNOWN_CLIENT: Final = ("invalid_client", "unauthorized_client")
HIDDEN: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Proof:
    """PKCE: the challenge goes with the person, the verifier follows with the code."""

    verifier: str
    challenge: str


def draw_proof() -> Proof:
    """A new verifier and its challenge."""
    drawn = PKCEParameters.generate()
    return Proof(drawn.code_verifier, drawn.code_challenge)


def discover(url: str, *, allowed: Collection[str], scopes: str = "") -> Provider:
    """Who signs people in for the server at `url`; `scopes` instead of those it names. Raises `CannotSignIn`."""
    return _within(allowed, lambda client: _Finding(client, url, allowed).provider(scopes))


def register(found: Provider, *, allowed: Collection[str], return_to: str) -> Client:
    """Make the studio known to a provider (RFC 7591). Raises `CannotSignIn`."""
    if not found.registration:
        raise CannotSignIn(
            f"{found.issuer} takes no new clients by itself. Register one there with the return address {return_to}, "
            "and enter its client id here"
        )
    return _within(allowed, lambda client: _register(client, found, return_to))


def exchange(
    found: Provider, us: Client, *, allowed: Collection[str], code: str, verifier: str, return_to: str
) -> Tokens:
    """Tokens for the code a person came back with. Raises `CannotSignIn`."""
    asked = {"grant_type": "authorization_code", "code": code, "redirect_uri": return_to, "code_verifier": verifier}
    status, said, _ = _within(allowed, lambda client: _ask_for_token(client, found, us, asked))
    if status != 200:
        word = oauth.code_word(said.get("error"))
        fix = "Enter the client's id and secret again" if word == "invalid_client" else "Sign in again"
        raise CannotSignIn(f"The provider gave no token ({word}, HTTP status {status}). {fix}")
    return _tokens(said)


def refresh(found: Provider, us: Client, *, allowed: Collection[str], token: str) -> Refreshed:
    """New tokens for a refresh token; what went wrong is a value too."""
    asked = {"grant_type": "refresh_token", "refresh_token": token}
    try:
        status, said, wait = _within(allowed, lambda client: _ask_for_token(client, found, us, asked))
        if status == 200:
            return _tokens(said)
    except CannotSignIn as error:
        return Later(f"{error}.")
    word = oauth.code_word(said.get("error"))
    if word == "invalid_grant":
        return Gone("The provider says that the sign-in is over (invalid_grant): it was revoked, or ran out.")
    if word in UNKNOWN_CLIENT:
        return Gone(f"The provider no longer takes this client ({word}).", client_too=True)
    return Later(f"The provider gave no new token ({word}, HTTP status {status}).", wait)


def revoke(found: Provider, us: Client, *, allowed: Collection[str], tokens: Mapping[str, str]) -> bool:
    """Ask the provider to forget tokens, by their kind (RFC 7009); whether it said yes to all."""
    if not found.revocation:
        return False

    async def each(client: outbound.Client) -> bool:
        done = []
        for kind, token in tokens.items():
            asked = {"token": token, "token_type_hint": kind}
            status, _, _ = await _ask_as_us(client, found, us, found.revocation, asked)
            done.append(status == 200)
        return all(done)

    try:
        return _within(allowed, each)
    except CannotSignIn:
        return False


class _Finding:
    """The way from a server to its provider: RFC 9728, then RFC 8414 or OpenID Connect."""

    def __init__(self, client: outbound.Client, url: str, allowed: Collection[str]) -> None:
        self._client: Final = client
        self._url: Final = oauth.plain(url)
        self._allowed: Final = allowed

    async def provider(self, scopes: str) -> Provider:
        hint = await self._hint()
        resource = await self._resource(hint.get("resource_metadata", ""))
        if resource is not None and resource.authorization_servers:
            issuer = str(resource.authorization_servers[0])
            oauth.checked(issuer, allowed=self._allowed, what="The address of the server's provider")
        else:
            issuer = ""
        said, metadata = await self._metadata(issuer)
        wanted = scopes or get_client_metadata_scopes(hint.get("scope"), resource, metadata, GRANTS) or ""
        named = str(resource.resource) if resource is not None else self._url
        return oauth.provider(said, allowed=self._allowed, resource=named, scopes=wanted)

    async def _hint(self) -> Mapping[str, str]:
        """What the server says to a request without a token. One that needs none gives no hint."""
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            async with self._client.ask("POST", self._url, headers=headers, body=ping.encode()) as reply:
                return oauth.challenge(reply.headers.get("www-authenticate", "")) if reply.status in HIDDEN else {}
        except (Refused, outbound.Failed) as error:
            raise CannotSignIn(f"The server cannot be reached: {_line(error)}") from error

    async def _resource(self, hinted: str) -> ProtectedResourceMetadata | None:
        if hinted:
            hinted = oauth.checked(hinted, allowed=self._allowed, what="The address of the server's metadata")
        for place in build_protected_resource_metadata_discovery_urls(hinted or None, self._url):
            status, said, _ = await _asked(self._client, "GET", place)
            if status != 200:
                continue
            try:
                found = ProtectedResourceMetadata.model_validate(said)
            except ValidationError as error:
                raise CannotSignIn(f"The server's metadata at {place} cannot be read ({_fields(error)})") from error
            if not check_resource_allowed(self._url, str(found.resource)):
                raise CannotSignIn(
                    f"The server's metadata is about {str(found.resource)[:200]}, not this connection's address. "
                    "A token for another server is not asked for; correct the connection's address"
                )
            return found
        return None

    async def _metadata(self, issuer: str) -> tuple[Mapping[str, Any], OAuthMetadata]:
        expected = issuer or "{0.scheme}://{0.netloc}".format(urlsplit(self._url))
        for place in build_oauth_authorization_server_metadata_discovery_urls(issuer or None, self._url):
            status, said, _ = await _asked(self._client, "GET", place)
            if status != 200:
                continue
            if not issuers_match(str(said.get("issuer")), expected):
                raise CannotSignIn(
                    f"The provider at {expected} names itself {str(said.get('issuer'))[:200]}. "
                    "One that goes by another name is not trusted; its operator has to correct that"
                )
            oauth.provider(said, allowed=self._allowed, resource="", scopes="")
            try:
                return said, OAuthMetadata.model_validate(said)
            except ValidationError as error:
                raise CannotSignIn(f"The provider's metadata at {place} cannot be read ({_fields(error)})") from error
        raise CannotSignIn(
            f"{expected} publishes no sign-in (no metadata by RFC 8414 or OpenID Connect). "
            "Use a bearer token or a header instead, or correct the address"
        )


async def _register(client: outbound.Client, found: Provider, return_to: str) -> Client:
    host = urlsplit(return_to).hostname or ""
    address = literal(host)
    here = host == "localhost" or (address is not None and address.is_loopback)
    offered = found.methods or ("client_secret_basic",)
    known = ("none", "client_secret_post", "client_secret_basic")  # OAuth 2.1 wants the form taken by everyone
    method: Any = next((one for one in known if one in offered), "none")
    wish = OAuthClientMetadata(
        redirect_uris=[AnyUrl(return_to)],
        client_name="oz0 studio",
        token_endpoint_auth_method=method,
        application_type="native" if here else "web",
        scope=found.scopes or None,
    )
    body = json.dumps(wish.model_dump(by_alias=True, mode="json", exclude_none=True))
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    status, said, _ = await _asked(client, "POST", found.registration, body=body, headers=headers)
    if status not in (200, 201):
        word = oauth.code_word(said.get("error"))
        raise CannotSignIn(
            f"{found.issuer} did not register the studio ({word}, HTTP status {status}). Register a client there with "
            f"the return address {return_to}, and enter its client id here"
        )
    try:
        made = OAuthClientInformationFull.model_validate({k: v for k, v in said.items() if k != "issuer"})
        check_registration_usable(made)
    except (ValidationError, OAuthRegistrationError) as error:
        raise CannotSignIn(
            f"{found.issuer} registered the studio in a way that cannot be used: {_line(error)}"
        ) from error
    return Client(made.client_id, made.client_secret or "", made.token_endpoint_auth_method or "")


async def _ask_for_token(client: outbound.Client, found: Provider, us: Client, asked: Mapping[str, str]) -> Said:
    return await _ask_as_us(client, found, us, found.token, {**asked, "resource": found.resource})


async def _ask_as_us(client: outbound.Client, found: Provider, us: Client, url: str, asked: Mapping[str, str]) -> Said:
    """Send a form, saying who we are. How a client that was entered by hand shows its secret is not known: the way
    every provider has to take comes first, and the other only after a refusal of the client itself."""
    answer: Said = (0, {}, None)
    for method in _methods(found, us):
        given, shown = _shown(method, us, asked)
        answer = await _asked(client, "POST", url, body=urlencode(given), headers={**FORM, **shown})
        if oauth.code_word(answer[1].get("error")) not in UNKNOWN_CLIENT:
            break
    return answer


def _methods(found: Provider, us: Client) -> tuple[str, ...]:
    if not us.secret:
        return ("none",)
    if us.method:
        return (us.method,)
    both = ("client_secret_basic", "client_secret_post")
    return tuple(one for one in both if one in found.methods) or both


def _shown(method: str, us: Client, asked: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """(the form, the headers) with the client's name in them, and its secret where it has one."""
    named = {**asked, "client_id": us.id}  # also beside the header: some providers look the client up by the form
    if method == "client_secret_basic":
        both = f"{quote(us.id, safe='')}:{quote(us.secret, safe='')}"
        return named, {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
    if method == "client_secret_post":
        return {**named, "client_secret": us.secret}, {}
    return named, {}


def _tokens(said: Mapping[str, Any]) -> Tokens:
    try:
        read = OAuthToken.model_validate(said)
    except ValidationError as error:
        raise CannotSignIn(f"The provider's answer holds no bearer token ({_fields(error)})") from error
    return oauth.tokens(read.access_token, read.refresh_token, read.expires_in, read.scope)


async def _asked(
    client: outbound.Client, method: str, url: str, *, body: str = "", headers: Mapping[str, str] | None = None
) -> Said:
    """What one request was answered with. Raises `CannotSignIn`."""
    try:
        async with client.ask(
            method, url, headers=headers or {"Accept": "application/json"}, body=body.encode()
        ) as reply:
            raw = await reply.body(MOST)
            status, wait = reply.status, wait_of(reply.headers, datetime.now(UTC))
    except (Refused, outbound.Failed) as error:
        raise CannotSignIn(f"{url.partition('?')[0]} cannot be asked: {_line(error)}") from error
    except outbound.TooLong as error:
        raise CannotSignIn(f"{url.partition('?')[0]} answered with more than {MOST // 1024} KiB") from error
    try:
        said = json.loads(raw.decode())
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        if status == 200 and method == "GET":
            return 404, {}, None  # a web page instead of metadata: not there
        said = {}
    return status, said, wait


def _within[Found](allowed: Collection[str], act: Callable[[outbound.Client], Awaitable[Found]]) -> Found:
    async def whole() -> Found:
        client = outbound.Client(allowed=allowed)
        try:
            async with asyncio.timeout(LIMIT):
                return await act(client)
        except TimeoutError as error:
            raise CannotSignIn(f"No answer came within {LIMIT:g} s. Try again later") from error
        finally:
            await client.close()

    return asyncio.run(whole())


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")


def _fields(error: ValidationError) -> str:
    return ", ".join(sorted({".".join(map(str, one["loc"]))[:60] for one in error.errors()})[:5])
