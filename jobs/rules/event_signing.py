"""Whether an event was signed by whom it should be, and by which name its sender knows it.

What is believed of a request is what its signature covers: the body, and where the way of signing has them a time and a
name. GitHub signs neither, so an event of it is known by its body: the same body again is the same event, however old.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, assert_never

from jobs.rules.starters import Signing

WINDOW: Final = timedelta(minutes=5)  # before and after now in which a signed time counts
LONGEST_NAME: Final = 200
MOST_SIGNATURES: Final = 10  # in one request: a sender that replaces its secret sends two
PREFIX: Final = "whsec_"
SAYS: Final[Mapping[Signing, tuple[str, str]]] = {
    Signing.STANDARD: ("Standard Webhooks", "webhook-id, webhook-timestamp and webhook-signature"),
    Signing.GITHUB: ("GitHub", "X-Hub-Signature-256"),
    Signing.STRIPE: ("Stripe", "Stripe-Signature"),
    Signing.SLACK: ("Slack", "X-Slack-Signature and X-Slack-Request-Timestamp"),
}


class NotSigned(ValueError):
    """A request that is not signed rightly, and counts for nothing. The message says why, in words of ours."""


@dataclass(frozen=True, slots=True)
class Signed:
    """An event that its sender signed. `name` is the same whenever it is sent again; `kind` is what they call it.

    `hello` is set where it only asks if somebody is here, and starts nothing: what it is answered with.
    """

    name: str
    kind: str
    event: Any
    hello: Mapping[str, Any] | None = None


class NotReadable(ValueError):
    """A body that was signed rightly and cannot be read as JSON; the message says why, and where it breaks off."""


def drawn(random: bytes) -> str:
    """A secret of 32 random bytes, as Standard Webhooks writes one."""
    return PREFIX + base64.b64encode(random).decode()


def why_no_secret(signing: Signing, secret: str) -> str | None:
    """Why this cannot be what such events are signed with, or None."""
    if not 16 <= len(secret) <= 200 or not secret.isascii() or not secret.isprintable() or " " in secret:
        return "A signing secret has 16 to 200 printable characters and no space."
    if signing is Signing.STANDARD and _key(secret) is None:
        return "A secret of Standard Webhooks is whsec_ and the base64 of 24 to 64 bytes."
    return None


def signed(
    signing: Signing, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], *, now: datetime
) -> Signed:
    """The event in a request. `headers` have small names. Raises `NotSigned`, `NotReadable`."""
    match signing:
        case Signing.STANDARD:
            name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
            given = [one[3:] for one in headers.get("webhook-signature", "").split() if one.startswith("v1,")]
            _look(given, "webhook-signature")
            _in_time(at, now)
            message = f"{name}.{at}.".encode() + body
            _same(given, [_base64(_key(secret) or b"", message) for secret in secrets])
            if not 0 < len(name) <= LONGEST_NAME or not name.isascii() or not name.isprintable():
                raise NotSigned(f"its webhook-id is not 1 to {LONGEST_NAME} printable characters")
            return _told(body, name=lambda _: name, kind=_kind_in)
        case Signing.GITHUB:
            given = [headers.get("x-hub-signature-256", "").removeprefix("sha256=")]
            _look(given, "X-Hub-Signature-256")
            _same(given, [_hex(secret, body) for secret in secrets])
            kind = headers.get("x-github-event", "")[:100]
            return _told(
                body, name=lambda _: _digest(body), kind=lambda _: kind, hello=_ping if kind == "ping" else None
            )
        case Signing.STRIPE:
            parts = [one.partition("=") for one in headers.get("stripe-signature", "").split(",")]
            at = next((value for key, _, value in parts if key.strip() == "t"), "")
            given = [value for key, _, value in parts if key.strip() == "v1"]
            _look(given, "Stripe-Signature")
            _in_time(at, now)
            _same(given, [_hex(secret, f"{at}.".encode() + body) for secret in secrets])
            return _told(body, name=lambda event: _named(event, "id") or _digest(body), kind=_kind_in)
        case Signing.SLACK:
            at = headers.get("x-slack-request-timestamp", "")
            given = [headers.get("x-slack-signature", "").removeprefix("v0=")]
            _look(given, "X-Slack-Signature")
            _in_time(at, now)
            _same(given, [_hex(secret, f"v0:{at}:".encode() + body) for secret in secrets])
            return _told(
                body,
                name=lambda event: _named(event, "event_id") or _digest(body),
                kind=lambda event: _named(event.get("event"), "type") or _kind_in(event),
                hello=_challenge,
            )
        case never:
            assert_never(never)


def _look(given: Sequence[str], header: str) -> None:
    if not any(given):
        raise NotSigned(f"it carries no {header}")
    if len(given) > MOST_SIGNATURES:
        raise NotSigned(f"it carries more than {MOST_SIGNATURES} signatures")


def _in_time(at: str, now: datetime) -> None:
    if not (at.isascii() and at.isdigit() and len(at) <= 10):
        raise NotSigned("its time is not whole seconds since 1970")
    if abs(datetime.fromtimestamp(int(at), UTC) - now) > WINDOW:
        raise NotSigned("it was signed more than five minutes ago, or by a clock that is wrong")


def _same(given: Sequence[str], right: Sequence[str]) -> None:
    """Compare all with all, in a time that tells nothing of where they differ."""
    found = [hmac.compare_digest(one.encode(), other.encode()) for one in given for other in right]
    if not any(found):
        raise NotSigned("its signature is not by this hook's secret, or the body was changed on its way")


def _told(body: bytes, *, name: Any, kind: Any, hello: Any = None) -> Signed:
    try:
        event = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_members)
    except NotReadable:
        raise
    except RecursionError as error:
        raise NotReadable("its body is nested too deep") from error
    except ValueError as error:  # also of bytes that are no UTF-8
        where = f", line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise NotReadable(f"its body is not JSON{where}") from error
    whole = event if isinstance(event, dict) else {}
    return Signed(name(whole), kind(whole)[:100], event, hello(whole) if hello else None)


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are each there once: readers differ in which of two they take."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise NotReadable("an object of its body has a name twice")
    return members


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _ping(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pong": True}


def _challenge(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What Slack asks once to see that an address is one of ours."""
    challenge = event.get("challenge")
    asked = event.get("type") == "url_verification" and isinstance(challenge, str)
    return {"challenge": str(challenge)[:500]} if asked else None


def _kind_in(event: Mapping[str, Any]) -> str:
    return _named(event, "type")


def _named(event: Any, name: str) -> str:
    found = event.get(name) if isinstance(event, Mapping) else None
    fits = isinstance(found, str) and len(found) <= LONGEST_NAME and _keepable(found)
    return str(found) if fits else ""


def _keepable(text: str) -> bool:
    """Whether a database keeps it: no NUL, and no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _key(secret: str) -> bytes | None:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 24 <= len(key) <= 64 else None


def _base64(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(key, message, "sha256")).decode()


def _hex(secret: str, message: bytes) -> str:
    return hmac.digest(secret.encode(), message, "sha256").hex()


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
