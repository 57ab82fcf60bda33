"""Signing in by a one-time link, and the first person of a new studio."""

import hashlib
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import IntegrityError

from base import db
from tenants.models import AuditHead, Gate, Membership, Role, SignInLink, Tenant, User
from tenants.operations import audit
from tenants.operations.people import end_sessions
from tenants.queries.seats import seats_of
from tenants.rules.people import why_no_password
from tenants.rules.who import Actor

GOOD_FOR: Final = timedelta(minutes=10)
FIRST_PERSON: Final = "admin"
FIRST_TENANT: Final = "default"


class BadPassword(ValueError):
    """A password that cannot be taken. The message says why."""


class NoSuchPerson(LookupError):
    """No active person of this name has a place in any tenant."""


def first_tenant(new_id: UUID) -> UUID:
    """The id of the oldest tenant; when there is none, make tenant `default` as `new_id`, with `admin` as its admin."""
    if (found := _oldest_tenant()) is not None:
        return found
    try:
        with db.write(new_id):
            tenant = Tenant.objects.create(id=new_id, slug=FIRST_TENANT, name="Default")
            Gate.objects.create(tenant=tenant)
            AuditHead.objects.create(tenant=tenant)
            person, made = User.objects.get_or_create(username=FIRST_PERSON)
            if made:
                person.set_unusable_password()
                person.save(update_fields=["password"])
            Membership.objects.create(tenant=tenant, user=person, role=Role.ADMIN)
    except IntegrityError:  # another process was first: its tenant stands
        found = _oldest_tenant()
        if found is None:
            raise
        return found
    return new_id


def offer_link(*, token: str, username: str = FIRST_PERSON) -> None:
    """Let the one who opens `token` within 10 minutes sign in as `username`, once. Only the token's hash is kept.

    Raises `NoSuchPerson`.
    """
    person, tenant = _somebody(username)
    with db.write(tenant) as now:
        SignInLink.objects.filter(expires_at__lt=now - GOOD_FOR).delete()
        SignInLink.objects.create(token_hash=_hash(token), user=person, expires_at=now + GOOD_FOR)


def set_password(*, username: str, password: str) -> None:
    """Give a person a new password; sessions opened before end. Raises `NoSuchPerson`."""
    person, tenant = _somebody(username)
    person.set_password(password)
    with db.write(tenant):
        person.save(update_fields=["password"])
        audit.record(Actor(username, "oz0 set-password", person.pk), "person.password_set", f"person {username}")


def signed_in(*, person: int, how: str, actor: Actor) -> None:
    """Note in each of a person's workspaces that they have signed in, and keep how. `actor` says from where."""
    for at, place in enumerate(seats_of(person)):
        with db.write(place.tenant):
            if at == 0:
                User.objects.filter(pk=person).update(last_how=how[:64])
            audit.record(actor, "person.signed_in", f"person {place.username}")


def signed_out(*, person: int, actor: Actor) -> None:
    """End every session of a person, on every browser, and note it in each of their workspaces."""
    for at, place in enumerate(seats_of(person)):
        with db.write(place.tenant):
            if at == 0:
                end_sessions(person)
            audit.record(actor, "person.signed_out", f"person {place.username}")


def change_password(*, person: User, password: str, actor: Actor) -> None:
    """Give a person the password that they chose; all their sessions end. Raises `BadPassword`."""
    if why_not := why_no_password(password, person.get_username()):
        raise BadPassword(why_not)
    person.set_password(password)
    for at, place in enumerate(seats_of(person.pk)):
        with db.write(place.tenant):
            if at == 0:
                person.save(update_fields=["password"])
                end_sessions(person.pk)
            audit.record(actor, "person.password_set", f"person {place.username}")


def _somebody(username: str) -> tuple[User, UUID]:
    """An active person and a workspace of theirs. Raises `NoSuchPerson`."""
    person = User.objects.filter(username=username, is_active=True).first()
    places = seats_of(person.pk) if person else []
    if person is None or not places:
        raise NoSuchPerson(f"no active person {username!r} belongs to a workspace: name one who does")
    return person, places[0].tenant


def use_link(token: str) -> User | None:
    """The person `token` signs in, exactly once; None when it is unknown, used, too old, or its person may not."""
    link = SignInLink.objects.select_related("user").filter(token_hash=_hash(token)).first()
    places = seats_of(link.user_id) if link else []
    if link is None or not places:
        return None
    with db.write(places[0].tenant) as now:
        used = SignInLink.objects.filter(pk=link.pk, used_at__isnull=True, expires_at__gt=now).update(used_at=now)
    return link.user if used == 1 else None


def _oldest_tenant() -> UUID | None:
    with db.sweep():
        return Tenant.objects.order_by("id").values_list("id", flat=True).first()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
