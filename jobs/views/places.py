"""What the views of jobs, and of what starts them, share: who may start jobs, and the ids in addresses."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from base import ids
from jobs.rules.permits import why_not_start
from tenants.models import Role
from tenants.queries.seats import Seat
from tenants.views.place import seat_of


def why_not(seat: Seat) -> str | None:
    """Why this person starts no jobs, and changes nothing that does; None when they may."""
    return why_not_start(operator=seat.may(Role.OPERATOR))


def starter_of(request: HttpRequest) -> Seat:
    """The seat of a person who may start jobs. Raises `PermissionDenied`."""
    seat = seat_of(request)
    if why := why_not(seat):
        raise PermissionDenied(why)
    return seat


def id_in(prefix: str, shown: str) -> UUID:
    """The id in an address; 404 when it is none of this kind."""
    try:
        return ids.parse(prefix, shown)
    except ids.BadId as error:
        raise Http404 from error


def before_in(request: HttpRequest, prefix: str) -> UUID | None:
    """After which row a page of a list goes on; None for its first page."""
    shown = request.GET.get("before", "")
    return id_in(prefix, shown) if shown else None
