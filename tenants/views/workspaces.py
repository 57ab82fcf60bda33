"""The workspaces of a person: which of them is the active one, in this browser's session."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from tenants.views.place import CHOSEN, seats_in


@require_POST
def switch_workspace(request: HttpRequest) -> HttpResponse:
    """Make another workspace of theirs the active one, and go to `next` in it."""
    wanted = request.POST.get("workspace", "")
    if wanted not in {str(place.tenant) for place in seats_in(request)}:
        raise Http404
    request.session[CHOSEN] = str(UUID(wanted))
    to = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(to, allowed_hosts=None, require_https=request.is_secure())
    return HttpResponseRedirect(to if safe else reverse("overview"))
