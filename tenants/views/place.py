"""Who asks, where, and as what: every view's first line."""

from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tenants.models import Role, User
from tenants.queries.seats import Seat, seat

CHOSEN = "tenant"


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
