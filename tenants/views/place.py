"""Who asks, where, and as what: every view's first line."""

from ipaddress import ip_address
from typing import cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tenants.models import Role, User
from tenants.queries.seats import Seat, active, seats_of
from tenants.rules.who import Actor

CHOSEN = "tenant"
HOW = "how"  # the session's key for the way the person signed in


def seat_of(request: HttpRequest) -> Seat:
    """The seat of the signed-in person in their active tenant, read once a request.

    Raises `PermissionDenied` when they belong to no tenant.
    """
    found = getattr(request, "oz0_seat", None)
    if found is None:
        found = active(seats_in(request), request.session.get(CHOSEN))
        if found is None:
            raise PermissionDenied("This person belongs to no workspace.")
        request.oz0_seat = found  # type: ignore[attr-defined]  # kept for this request only
    return cast(Seat, found)


def seats_in(request: HttpRequest) -> list[Seat]:
    """All seats of the signed-in person, read once a request."""
    found = getattr(request, "oz0_seats", None)
    if found is None:
        found = seats_of(cast(User, request.user).pk)
        request.oz0_seats = found  # type: ignore[attr-defined]  # kept for this request only
    return cast(list[Seat], found)


def seat_with(request: HttpRequest, role: Role) -> Seat:
    """The same, for what needs a role. Raises `PermissionDenied` when theirs does not include it."""
    found = seat_of(request)
    if not found.may(role):
        raise PermissionDenied(f"This needs the role {role}.")
    return found


def address_of(request: HttpRequest) -> str:
    """Where the request comes from: what the outermost of our own proxies saw, when the settings say how many."""
    seen: str = request.META.get("REMOTE_ADDR", "")
    said = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    number: int = settings.OZ0_PROXIES
    if number and len(said) >= number:
        seen = said[-number]
    try:
        return str(ip_address(seen))
    except ValueError:
        return "unknown address"


def actor_of(request: HttpRequest) -> Actor:
    """The person for the audit log: who, how they signed in, and from where."""
    found = seat_of(request)
    how = f"{request.session.get(HOW, 'password')}, {address_of(request)}"
    return Actor(name=found.username, how=how, user_id=found.person_id)
