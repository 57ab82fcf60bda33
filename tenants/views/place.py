"""Who asks, where, and as what: every view's first line."""

from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tenants.models import Role, User
from tenants.queries.seats import Seat, seat
from tenants.rules.who import Actor

CHOSEN = "tenant"
HOW = "how"  # the session's key for the way the person signed in


def seat_of(request: HttpRequest) -> Seat:
    """The seat of the signed-in person in their active tenant, read once a request.

    Raises `PermissionDenied` when they belong to no tenant.
    """
    found = getattr(request, "oz0_seat", None)
    if found is None:
        person = cast(User, request.user)
        found = seat(person.pk, request.session.get(CHOSEN))
        if found is None:
            raise PermissionDenied("This person belongs to no workspace.")
        request.oz0_seat = found  # type: ignore[attr-defined]  # kept for this request only
    return cast(Seat, found)


def seat_with(request: HttpRequest, role: Role) -> Seat:
    """The same, for what needs a role. Raises `PermissionDenied` when theirs does not include it."""
    found = seat_of(request)
    if not found.may(role):
        raise PermissionDenied(f"This needs the role {role}.")
    return found


def actor_of(request: HttpRequest) -> Actor:
    """The person for the audit log: who, how they signed in, and from where."""
    found = seat_of(request)
    how = f"{request.session.get(HOW, 'password')}, {request.META.get('REMOTE_ADDR', 'unknown address')}"
    return Actor(name=found.username, how=how, user_id=found.person_id)
