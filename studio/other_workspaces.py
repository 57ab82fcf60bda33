"""An object's address finds its workspace: who is in another one of theirs is offered to go there.

Nothing of the object is shown before that, and looking changes nothing. The same is looked up for an id that nobody
has and for one of somebody else's workspace, so the two cannot be told apart.
"""

from typing import Final
from uuid import UUID

from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from base import db, ids
from base.htmx import page as answer
from catalog.models import Connection, KillSwitch
from jobs.models import Call, Hold, Hook, Job, Routine
from tenants.models import ApiToken, Membership
from tenants.views.place import seat_of, seats_in

OBJECTS: Final[dict[str, type[Model]]] = {
    ids.JOB: Job,
    ids.CALL: Call,
    ids.HOLD: Hold,
    ids.ROUTINE: Routine,
    ids.HOOK: Hook,
    ids.CONNECTION: Connection,
    ids.SWITCH: KillSwitch,
    ids.MEMBER: Membership,
    ids.TOKEN: ApiToken,
}


class FindElsewhere(MiddlewareMixin):
    """Looks at pages that were not found, for people with more than one workspace."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """After a view that found nothing."""
        named = request.resolver_match.kwargs.get("shown") if request.resolver_match else None
        if not isinstance(exception, Http404) or not named or request.method not in ("GET", "HEAD"):
            return None
        if not request.user.is_authenticated or len(seats_in(request)) < 2:
            return None
        here, found = seat_of(request), None
        for place in seats_in(request):
            if place.tenant != here.tenant and _holds(place.tenant, named):
                found = place
        if found is None:
            return None
        return answer(request, "settings/elsewhere.html", {"place": found, "here": request.get_full_path()})


def _holds(tenant: UUID, shown: str) -> bool:
    """Whether what this id names is a row of the tenant."""
    model = OBJECTS.get(shown.rpartition("_")[0])
    if model is None:
        return False
    try:
        pk = ids.parse(shown.rpartition("_")[0], shown)
    except ids.BadId:
        return False
    with db.read(tenant):
        return model._default_manager.filter(pk=pk).exists()
