"""What a channel may be, who may change it, and how long a notice is tried (RULES A5, A12)."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Final
from urllib.parse import unquote, urlsplit

CHANGING_ROLES: Final = frozenset({"admin"})
PAUSES: Final = (10, 30, 120, 600, 1_800, 3_600)  # seconds before each further try; the last one repeats
GIVEN_UP: Final = timedelta(hours=24)  # after which a notice that never arrived is given up
OFF_AFTER: Final = timedelta(hours=24)  # of nothing but failures, after which a channel is turned off
OFF_FAILURES: Final = 10  # at least so many of them
GONE: Final = 410  # the status by which a webhook says that it is wanted no more
MOST_TO: Final = 20
MOST_CHANNELS: Final = 50
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,64}\Z")
_MAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\Z")


class BadChannel(ValueError):
    """A channel that cannot be made or changed so. The message says what is wrong and how to fix it."""


def why_not_change(role: str) -> str | None:
    """Why a person of this role may not change channels; None when they may."""
    return None if role in CHANGING_ROLES else f"Admins say where notices go; your role here is {role}."


def read_name(text: str) -> str:
    """A channel's name. Raises `BadChannel`."""
    if not _NAME.match(text.strip()):
        raise BadChannel("a channel has a name of 1 to 64 characters, such as on-call")
    return text.strip()


def read_to(text: str) -> list[str]:
    """The addresses of an email channel, by commas, spaces or lines. Raises `BadChannel`."""
    found = list(dict.fromkeys(re.split(r"[\s,;]+", text.strip()))) if text.strip() else []
    if not 1 <= len(found) <= MOST_TO:
        raise BadChannel(f"an email goes to 1 to {MOST_TO} addresses, one a line")
    for address in found:
        if not _MAIL.match(address):
            raise BadChannel(f"{address[:80]!r} is not an email address")
    return found


def read_minutes(text: str, what: str, *, most: int) -> int:
    """Minutes as seconds, nothing as 0. Raises `BadChannel`."""
    if not text.strip():
        return 0
    if not re.fullmatch(r"[0-9]{1,5}", text.strip()) or int(text) > most:
        raise BadChannel(f"{what}: whole minutes, at most {most:,}")
    return int(text) * 60


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """What a webhook's receiver checks: HMAC-SHA256 over `timestamp.body`, in hex, marked by its version."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The notice stays due, later."""

    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It is tried no more."""

    why: str


def after_failure(
    *, tries: int, made_at: datetime, now: datetime, jitter: float, wait: float | None
) -> TryAgain | GiveUp:
    """What follows a try that failed. `wait` is what the receiver asked for, `jitter` a die in [0, 1)."""
    if now - made_at >= GIVEN_UP:
        return GiveUp(f"It was tried {tries} times in 24 h.")
    pause = PAUSES[min(tries, len(PAUSES)) - 1] * (1 + jitter / 4)
    return TryAgain(now + timedelta(seconds=max(pause, min(wait or 0, PAUSES[-1]))))


def why_off(*, failing_since: datetime | None, failures: int, now: datetime, last: str, status: int | None) -> str:
    """Why a channel is turned off by itself after this failure; empty while it is not."""
    if status == GONE:
        return "Its receiver answered 410: it wants no more notices."
    if failing_since is not None and now - failing_since >= OFF_AFTER and failures >= OFF_FAILURES:
        return f"Nothing got through for 24 h, in {failures} tries. The last: {last}"
    return ""


@dataclass(frozen=True, slots=True)
class Smtp:
    """The mail server of the studio: how it is reached, and whom its mail is from."""

    host: str
    port: int
    user: str
    password: str
    tls: str  # "", "start" or "whole"
    sender: str


def smtp_of(url: str, sender: str) -> Smtp | None:
    """The mail server of an address such as `smtp+tls://user:password@host:587`; None for none.

    `smtp://` is plain, `smtp+tls://` turns to TLS (STARTTLS), `smtp+ssl://` is TLS from the start. Raises `ValueError`
    with what was expected.
    """
    if not url:
        return None
    kinds = {"smtp": ("", 25), "smtp+tls": ("start", 587), "smtps": ("start", 587), "smtp+ssl": ("whole", 465)}
    expected = (
        "OZ0_EMAIL_URL is smtp://, smtp+tls:// or smtp+ssl:// with a host, such as smtp+tls://user:password@host:587"
    )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(expected) from error
    if parts.scheme not in kinds or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(expected)
    sender = parseaddr(sender)[1]
    if not _MAIL.match(sender):
        raise ValueError("OZ0_EMAIL_FROM is the address that mail of the studio is from, such as oz0@example.org")
    tls, usual = kinds[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Smtp(parts.hostname, port or usual, user, password, tls, sender)
