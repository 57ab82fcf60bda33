"""Signing in to a remote server by OAuth 2.1, as values: what a provider said, what may be used of it, when to refresh.

Whatever a server or a provider writes is untrusted: an address of theirs is read by `base.addresses` and must be
https, or one of this machine that the connection allows (CASES S07).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from base.addresses import WHERE, Refused, literal, read_url

BEGUN_FOR: Final = timedelta(minutes=10)  # how long a person may take at the provider
AHEAD: Final = timedelta(minutes=5)  # refreshed when this much is left of a token, or a fifth when that is less
LONGEST: Final = timedelta(days=3650)
FIRST_PAUSE: Final = timedelta(seconds=10)  # after a refresh that failed, doubled each time
LAST_PAUSE: Final = timedelta(minutes=5)
TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}\Z")
_PARAMETER: Final = re.compile(
    r'(?<![\w-])(resource_metadata|scope|error)\s*=\s*(?:"([^"\\]{0,2000})"|([^\s,"]{1,2000}))'
)
_SCOPES: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}(?: [\x21\x23-\x5b\x5d-\x7e]{1,200}){0,99}\Z")
_CODE: Final = re.compile(r"[a-z_]{1,60}\Z")


class CannotSignIn(Exception):
    """Signing in does not go on. The message is one or two sentences: what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An authorisation server as its own metadata says, every address checked. `resource` is what a token is for."""

    issuer: str
    sign_in: str
    token: str
    registration: str
    revocation: str
    methods: tuple[str, ...]  # how it lets a client show its secret; empty: it did not say
    names_itself: bool  # it says `iss` when it sends a person back (RFC 9207)
    resource: str
    scopes: str


@dataclass(frozen=True, slots=True)
class Client:
    """The studio as one provider knows it. `method` is how its secret is shown; empty: chosen by what is there."""

    id: str
    secret: str = field(default="", repr=False)
    method: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a provider granted. `lifetime` None: it did not say. `scopes` None: the ones that were asked for."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    lifetime: timedelta | None
    scopes: str | None


@dataclass(frozen=True, slots=True)
class Gone:
    """The grant is over: a person has to sign in again. `client_too`: the provider no longer knows the client."""

    why: str
    client_too: bool = False


@dataclass(frozen=True, slots=True)
class Later:
    """A refresh failed in a way that may pass. `wait` is how many seconds the provider asks to be left alone."""

    why: str
    wait: float | None = None


type Refreshed = Tokens | Gone | Later


def challenge(header: str) -> Mapping[str, str]:
    """The `resource_metadata`, `scope` and `error` that a `WWW-Authenticate` header names, as far as they are there."""
    return {found[1]: found[2] or found[3] or "" for found in _PARAMETER.finditer(header[:10_000])}


def checked(url: object, *, allowed: Collection[str], what: str) -> str:
    """An address that a server or provider gave, if it may be used. Raises `CannotSignIn`; `what` names it there."""
    if not isinstance(url, str):
        raise CannotSignIn(f"{what} is not an address. Its operator has to correct that")
    try:
        target = read_url(url)
    except Refused as error:
        raise CannotSignIn(f"{what} is refused: {error}. Its operator has to correct that") from error
    address = literal(target.host)
    here = target.host == "localhost" or (address is not None and address.is_loopback)
    if target.scheme != "https" and not (here and target.place in allowed):
        more = f", or {WHERE.format(there=target.place)}" if here else ""
        raise CannotSignIn(
            f"{what} begins with http:// ({target.place}), where anybody on the way reads along. "
            f"Its operator has to use https://{more}"
        )
    return url


def plain(url: str) -> str:
    """An address as providers spell it: without a port that goes without saying."""
    target = read_url(url)
    default = {"https": ":443", "http": ":80"}[target.scheme]
    return f"{target.origin.removesuffix(default)}{target.target}"


def provider(said: Mapping[str, Any], *, allowed: Collection[str], resource: str, scopes: str) -> Provider:
    """What an authorisation server's metadata lets us use. Its issuer has been compared. Raises `CannotSignIn`."""
    if "S256" not in _words(said.get("code_challenge_methods_supported")):
        raise CannotSignIn("The provider does not say that it takes PKCE with S256, without which nobody is signed in")
    if "grant_types_supported" in said and "authorization_code" not in _words(said["grant_types_supported"]):
        raise CannotSignIn("The provider does not let people sign in (no authorization_code). Use another credential")

    def optional(name: str, what: str) -> str:
        return checked(said[name], allowed=allowed, what=what) if said.get(name) else ""

    return Provider(
        issuer=str(said.get("issuer")),
        sign_in=checked(said.get("authorization_endpoint"), allowed=allowed, what="The provider's sign-in address"),
        token=checked(said.get("token_endpoint"), allowed=allowed, what="The provider's token address"),
        registration=optional("registration_endpoint", "The provider's registration address"),
        revocation=optional("revocation_endpoint", "The provider's revocation address"),
        methods=_words(said.get("token_endpoint_auth_methods_supported")),
        names_itself=said.get("authorization_response_iss_parameter_supported") is True,
        resource=resource,
        scopes=scopes if _SCOPES.match(scopes) else "",
    )


def sign_in_address(found: Provider, client: Client, *, return_to: str, nonce: str, code_challenge: str) -> str:
    """Where to send the person. `nonce` comes back as `state`."""
    asked = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": return_to,
        "state": nonce,
        "code_challenge": code_challenge,
        "code_challenge_method": "S256",
        "resource": found.resource,
    } | ({"scope": found.scopes} if found.scopes else {})
    return f"{found.sign_in}{'&' if urlsplit(found.sign_in).query else '?'}{urlencode(asked)}"


def code_of(given: Mapping[str, str], found: Provider) -> str:
    """The code a person came back with. Raises `CannotSignIn` when they came from elsewhere or with an error."""
    if ("iss" in given or found.names_itself) and given.get("iss") != found.issuer:
        raise CannotSignIn(
            f"The answer does not come from {found.issuer}, to which you were sent, so nothing was taken from it. "
            "Sign in again"
        )
    if "error" in given:
        if given["error"] == "access_denied":
            raise CannotSignIn("The provider says that you, or it, denied access. Nothing was changed")
        raise CannotSignIn(
            f"The provider sent you back with the error {code_word(given['error'])}. Nothing was changed"
        )
    if not TOKEN.match(given.get("code", "")):
        raise CannotSignIn("The provider sent you back without a code. Sign in again")
    return given["code"]


def code_word(text: object) -> str:
    """An error code of the protocol, or `unknown` for anything else that stands in its place."""
    return text if isinstance(text, str) and _CODE.match(text) else "unknown"


def scopes_of(text: str) -> str:
    """Scopes as a person typed them, by single spaces. Raises `CannotSignIn`."""
    words = " ".join(text.split())
    if words and not _SCOPES.match(words):
        raise CannotSignIn("Scopes are words of plain visible characters, separated by spaces")
    return words


def tokens(access: object, refresh: object, lifetime: object, scopes: object) -> Tokens:
    """A grant, its values checked. Raises `CannotSignIn`."""
    if not isinstance(access, str) or not TOKEN.match(access):
        raise CannotSignIn("The provider's token is not made of plain visible characters, so it cannot be used")
    if refresh is not None and (not isinstance(refresh, str) or not TOKEN.match(refresh)):
        raise CannotSignIn("The provider's refresh token is not made of plain visible characters, so it cannot be used")
    known = lifetime if isinstance(lifetime, int) and not isinstance(lifetime, bool) else None
    span = None if known is None else timedelta(seconds=min(max(known, 0), LONGEST.total_seconds()))
    return Tokens(access, refresh or "", span, scopes if isinstance(scopes, str) and _SCOPES.match(scopes) else None)


def refresh_at(now: datetime, lifetime: timedelta | None) -> datetime | None:
    """When to refresh a token that was asked for at `now`: with a fifth of it left, or 5 minutes when that is less."""
    return None if lifetime is None else now + lifetime - min(lifetime / 5, AHEAD)


def pause(failures: int, asked: float | None = None) -> timedelta:
    """How long to wait after this many refreshes failed in a row, when the provider asked for `asked` seconds."""
    ours = FIRST_PAUSE * float(1 << min(failures - 1, 10))
    return min(max(ours, timedelta(seconds=min(asked or 0.0, LAST_PAUSE.total_seconds()))), LAST_PAUSE)


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
