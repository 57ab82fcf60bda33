"""Who a provider's word lets in: people who are known here, or who are invited (RULES A12). Nobody else.

A person is known by the provider's own lasting name for them, once they have come by it; before that by their e-mail,
when the provider says that it has verified it. An e-mail that nobody verified counts for nothing.
"""

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from base import db
from tenants.models import Identity, User
from tenants.operations import audit, invitations
from tenants.operations.invitations import BadInvitation
from tenants.queries.people import offer
from tenants.queries.seats import seats_of
from tenants.rules.who import Actor

_ODD: Final = re.compile(r"[^A-Za-z0-9.@+_-]+")
MOST_TRIES: Final = 50


class Stranger(Exception):
    """The provider vouches for somebody whom nobody here knows or has invited. The message says what helps."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a provider says: who it is, its lasting name for the person, their verified e-mail or "", a name."""

    issuer: str
    subject: str
    email: str
    name: str


def known(claims: Claims, *, actor_how: str) -> User:
    """The person whom the provider means. One known by e-mail is tied to it from now on. Raises `Stranger`."""
    tied = Identity.objects.select_related("user").filter(issuer=claims.issuer, subject=claims.subject).first()
    if tied is not None:
        if not tied.user.is_active or not seats_of(tied.user_id):
            raise Stranger("You belong to no workspace here any more. Ask an admin for an invitation.")
        return tied.user
    same = list(User.objects.filter(email__iexact=claims.email, is_active=True)[:2]) if claims.email else []
    if len(same) != 1 or not seats_of(same[0].pk):
        raise Stranger(
            "Nobody here is known by this sign-in. Open the invitation's address and join with it, or sign in another "
            "way and link it under Settings, You."
        )
    tie(same[0], claims, actor_how=actor_how)
    return same[0]


def tie(person: User, claims: Claims, *, actor_how: str) -> None:
    """Let this person come by the provider from now on. Raises `Stranger` when it is another person's already."""
    places = seats_of(person.pk)
    if not places:
        raise Stranger("You belong to no workspace here.")
    with db.write(places[0].tenant) as now:
        made, new = Identity.objects.get_or_create(
            issuer=claims.issuer, subject=claims.subject, defaults={"user": person, "made_at": now}
        )
        if made.user_id != person.pk:
            raise Stranger("This sign-in is linked to another person here.")
        if new:
            actor = Actor(person.get_username(), actor_how, person.pk)
            after = {"issuer": claims.issuer}
            audit.record(actor, "person.identity_linked", f"person {person.get_username()}", after=after)


def untie(person: User, *, actor: Actor) -> bool:
    """Let this person come by the provider no more; whether they could."""
    places = seats_of(person.pk)
    with db.write(places[0].tenant):
        gone, _ = Identity.objects.filter(user=person).delete()
        if gone:
            audit.record(actor, "person.identity_unlinked", f"person {person.get_username()}")
    return bool(gone)


def join(claims: Claims, *, token: str, how: str) -> tuple[User, UUID]:
    """Let whom the provider means join by an invitation; the person, and the workspace.

    Somebody known joins as themself, anybody else as a new person. Raises `BadInvitation` and `Stranger`.
    """
    found = offer(invitations.hash_of(token))
    if found is None or found.trouble:
        raise BadInvitation(found.trouble if found else "There is no such invitation. Ask for a new one.")
    tied = Identity.objects.select_related("user").filter(issuer=claims.issuer, subject=claims.subject).first()
    if tied is not None:
        if not tied.user.is_active:
            raise Stranger("You cannot sign in here any more.")
        return tied.user, invitations.accept(token=token, person=tied.user, how=how)
    person = invitations.accept_as_new(
        token=token, username=_free_name(claims), password=None, email=claims.email, how=how
    )
    tie(person, claims, actor_how=how)
    return person, found.tenant


def _free_name(claims: Claims) -> str:
    """A name that nobody has yet, after what the provider calls the person."""
    wanted = _ODD.sub("-", claims.name or claims.email.partition("@")[0]).strip("-.@+_")[:56] or "person"
    wanted = wanted if len(wanted) > 1 else f"{wanted}-1"
    for number in range(1, MOST_TRIES):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if not User.objects.filter(username__iexact=name).exists():
            return name
    raise BadInvitation("No free name was found for you: join with a name and a password.")
