"""`oz0 login`: a command asks, its person allows it on a page where they are signed in, and the command takes a token.

What is asked for is no secret, so it is bound to the one who asked: the token is given once, to who shows what the
`challenge` is the SHA-256 of. The person is shown a code that the command shows too.
"""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Final
from uuid import UUID

from base import db
from tenants.models import LoginAsk, Role
from tenants.operations import audit, tokens
from tenants.queries.seats import Seat, seats_of
from tenants.rules.bearers import Scope
from tenants.rules.who import Actor

GOOD_FOR: Final = timedelta(minutes=10)
DAYS: Final = 90
MOST_OPEN: Final = 1_000  # at a time, of everybody
MOST_OF_ADDRESS: Final = 20
NARROW: Final = {4: 32, 6: 64}  # bits of a network by IP version: what one household or machine has
WIDE: Final = {4: 24, 6: 48}  # what one customer has, who can ask from each address of it
LONGEST_MACHINE: Final = 80
CODE: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that it spells nothing, and nothing that looks like another
CODE_LENGTH: Final = 8
_CHALLENGE: Final = re.compile(r"[0-9a-f]{64}\Z")


class BadAsk(ValueError):
    """A login that cannot be asked for, or not now; the message says why."""


class TooMany(BadAsk):
    """As many are being asked for as may at a time."""


class Over(ValueError):
    """A login that is answered already, has expired, or is none; the message says which."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A login that waits for its person."""

    id: UUID
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Given:
    """What a login came to: the token that was kept, whose it is, and what it may."""

    person: str
    workspace: str
    scopes: tuple[str, ...]
    expires_at: datetime


def ask(*, challenge: str, code: str, machine: str, address: str) -> Asked:
    """Note that a command asks, from a machine as it names itself. Raises `BadAsk`, `TooMany`."""
    if not _CHALLENGE.match(challenge):
        raise BadAsk("challenge is the SHA-256 of a verifier, 64 hex digits in small letters")
    machine = machine.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be kept
    machine = " ".join(machine.replace("\0", "").split())[:LONGEST_MACHINE] or "a machine without a name"
    with db.durable() as now:
        LoginAsk.objects.filter(expires_at__lt=now - GOOD_FOR).delete()
        waiting = LoginAsk.objects.filter(expires_at__gt=now, answered_at__isnull=True)
        open_ones = list(waiting.order_by("asked_at").values_list("pk", "address"))
        mine = _network(address, NARROW)
        if sum(_network(other, NARROW) == mine for _, other in open_ones) >= MOST_OF_ADDRESS:
            raise TooMany("this address asks for too many at a time: answer those, or wait ten minutes")
        if len(open_ones) >= MOST_OPEN:
            _make_room(open_ones)
        row = LoginAsk.objects.create(
            code=code, challenge=challenge, machine=machine, address=address, asked_at=now, expires_at=now + GOOD_FOR
        )
    return Asked(row.pk, row.expires_at)


def _make_room(open_ones: Sequence[tuple[UUID, str]]) -> None:
    """Drop the oldest of the network that asks for the most: who floods makes room, and nobody else is kept out."""
    networks = Counter(_network(address, WIDE) for _, address in open_ones)
    flooding = networks.most_common(1)[0][0]
    oldest = next(pk for pk, address in open_ones if _network(address, WIDE) == flooding)
    LoginAsk.objects.filter(pk=oldest, answered_at__isnull=True).delete()


def _network(address: str, prefixes: Mapping[int, int]) -> str:
    """The network of this size that the address is of; the address itself where it is none."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(ip_network(f"{found}/{prefixes[found.version]}", strict=False))


def answer(*, ask: UUID, seat: Seat, allow: bool, actor: Actor) -> LoginAsk:
    """Its person says yes or no, once. Raises `Over`."""
    with db.write(seat.tenant) as now:
        row = LoginAsk.objects.select_for_update().filter(pk=ask).first()
        if row is None or row.expires_at <= now:
            raise Over("This login has expired: type oz0 login once more.")
        if row.answered_at is not None:
            raise Over("This login has been answered already.")
        row.answered_at, row.allowed, row.person_id, row.place_id = now, allow, seat.person_id, seat.tenant
        row.how = actor.how
        row.save(update_fields=["answered_at", "allowed", "person", "place", "how"])
        verb = "login.allowed" if allow else "login.denied"
        audit.record(actor, verb, f"oz0 on {row.machine}"[:200], after={"address": row.address, "code": row.code})
    return row


def take(*, ask: UUID, verifier: str, token: str) -> Given | None:
    """Give the command its token, once; None while its person has not answered. Raises `Over`."""
    with db.durable() as now:
        row = LoginAsk.objects.select_for_update().filter(pk=ask).first()
        shown = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).hexdigest()
        if row is None or not hmac.compare_digest(shown, row.challenge) or row.taken_at is not None:
            raise Over("There is no such login for you: type oz0 login once more.")
        if row.expires_at <= now:
            raise Over("Nobody answered within ten minutes: type oz0 login once more.")
        if row.answered_at is None:
            return None
        if not row.allowed or row.person is None:
            raise Over("It was refused on the page.")
        row.taken_at = now
        row.save(update_fields=["taken_at"])
    seat = next((one for one in seats_of(row.person.pk) if one.tenant == row.place_id), None)
    if seat is None:
        raise Over("Its person has left the workspace.")
    scopes = (Scope.READ, Scope.START) if seat.may(Role.OPERATOR) else (Scope.READ,)
    actor = Actor(seat.username, row.how, seat.person_id)
    tokens.make(
        seat=seat,
        token=token,
        name=f"oz0 on {row.machine}"[: tokens.MOST_NAME],
        scopes=scopes,
        agent="",
        days=DAYS,
        actor=actor,
        as_person=True,
    )
    return Given(seat.username, seat.tenant_name, scopes, now + timedelta(days=DAYS))
