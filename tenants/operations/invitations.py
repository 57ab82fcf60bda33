"""Inviting people by a one-time address, and what becomes of it (RULES A12).

Only the token's SHA-256 is kept, so an address is shown once, and lost it is made anew.
"""

import hashlib
import re
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError

from base import db
from tenants.models import Invitation, Membership, Role, User
from tenants.operations import audit
from tenants.queries.people import offer, why_over
from tenants.rules.people import why_no_password
from tenants.rules.who import Actor

GOOD_FOR: Final = (timedelta(days=1), timedelta(days=7), timedelta(days=30))
MOST_OPEN: Final = 500
# Letters that look like others could pass for another person's name.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.@+_-]{1,63}\Z")
_TAKEN: Final = "Somebody has this name already: choose another one, or sign in if it is yours."


class BadInvitation(ValueError):
    """An invitation that cannot be made or accepted so. The message says why, and what helps."""


def invite(*, tenant: UUID, token: str, role: Role, email: str, good_for: timedelta, actor: Actor) -> UUID:
    """Let whoever opens `token` join the tenant as `role`, once. The caller has made sure that the actor is an admin.

    Raises `BadInvitation`.
    """
    if email:
        try:
            validate_email(email)
        except ValidationError as error:
            raise BadInvitation("This is no e-mail address; it may be left empty.") from error
    if actor.user_id is None:
        raise BadInvitation("A person invites, so that people know who did.")
    if good_for not in GOOD_FOR:
        raise BadInvitation("An invitation is good for 1, 7 or 30 days.")
    with db.write(tenant) as now:
        if Invitation.objects.filter(accepted_at__isnull=True, revoked_at__isnull=True).count() >= MOST_OPEN:
            raise BadInvitation("There are too many open invitations: take some of them back first.")
        row = Invitation.objects.create(
            tenant_id=tenant,
            token_hash=hash_of(token),
            role=role,
            email=email,
            made_by_id=actor.user_id,
            made_at=now,
            expires_at=now + good_for,
        )
        after = {"role": role, "expires_at": row.expires_at.isoformat()}
        audit.record(actor, "invitation.made", _named(row), after=after)
    return row.pk


def revoke(*, tenant: UUID, invitation: UUID, actor: Actor) -> bool:
    """Take an invitation back; whether it was still open."""
    with db.write(tenant) as now:
        row = Invitation.objects.select_for_update().filter(pk=invitation).first()
        if row is None or row.accepted_at or row.revoked_at:
            return False
        row.revoked_at = now
        row.save(update_fields=["revoked_at"])
        audit.record(actor, "invitation.revoked", _named(row), before={"role": row.role})
    return True


def accept_as_new(*, token: str, username: str, password: str | None, email: str = "", how: str) -> User:
    """Make a person and let them join by this invitation. `password` is None for one who signs in elsewhere.

    Their e-mail is the invitation's, or the one that a provider has verified. Raises `BadInvitation`.
    """
    person = User(username=username.strip())
    if not _NAME.match(person.username):
        raise BadInvitation("A name has 2 to 64 letters, digits and . @ + _ - and begins with a letter or digit.")
    if password is None:
        person.set_unusable_password()
    elif why_not := why_no_password(password, person.username):
        raise BadInvitation(why_not)
    else:
        person.set_password(password)  # before the transaction: it takes a good part of a second
    found = offer(hash_of(token))
    if found is None:
        raise BadInvitation("There is no such invitation. Ask for a new one.")
    try:
        with db.write(found.tenant):
            row = _locked(found.id)
            person.email = row.email or email
            if User.objects.filter(username__iexact=person.username).exists():
                raise BadInvitation(_TAKEN)
            person.save(force_insert=True)
            _join(row, person, how)
    except IntegrityError as error:  # taken in this very moment
        raise BadInvitation(_TAKEN) from error
    return person


def accept(*, token: str, person: User, how: str) -> UUID:
    """Let a person who is known join by this invitation; the tenant. Raises `BadInvitation`."""
    found = offer(hash_of(token))
    if found is None:
        raise BadInvitation("There is no such invitation. Ask for a new one.")
    with db.write(found.tenant):
        row = _locked(found.id)
        if Membership.objects.filter(user=person).exists():
            raise BadInvitation("You belong to this workspace already.")
        _join(row, person, how)
    return found.tenant


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _locked(invitation: UUID) -> Invitation:
    now = db.must_write()
    row = Invitation.objects.select_for_update().get(pk=invitation)
    if trouble := why_over(row, now):
        raise BadInvitation(trouble)
    return row


def _join(row: Invitation, person: User, how: str) -> None:
    now, tenant = db.must_write(), db.writing_tenant()
    Membership.objects.create(tenant_id=tenant, user=person, role=row.role)
    row.accepted_at, row.accepted_by = now, person
    row.save(update_fields=["accepted_at", "accepted_by"])
    actor = Actor(person.get_username(), how, person.pk)
    audit.record(actor, "invitation.accepted", _named(row), after={"role": row.role, "person": person.get_username()})


def _named(row: Invitation) -> str:
    return f"invitation {row.email}" if row.email else f"invitation {str(row.pk)[-8:]}"
