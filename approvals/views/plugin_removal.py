"""Removing a plugin, after a look at what that does."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.queries.plugin_removal import removal
from base.htmx import page as answer_page
from catalog.rules.plugin_roles import why_not_remove
from jobs.operations.removing import remove
from tenants.views.place import actor_of, seat_of


@require_http_methods(["GET", "HEAD", "POST"])
def remove_plugin(request: HttpRequest, name: str) -> HttpResponse:
    """What removing it would do; a POST does it. A second press finds it removed, and says so."""
    seat = seat_of(request)
    forbidden = why_not_remove(seat.role)
    if request.method == "POST":
        if forbidden:
            raise PermissionDenied(forbidden)
        if remove(tenant=seat.tenant, plugin=name, actor=actor_of(request)) is None:
            messages.info(request, "It was removed before; nothing was changed.")
        else:
            messages.success(request, f"{name} is removed. Its versions are kept: one click brings it back.")
        return HttpResponseRedirect(reverse("plugin", args=[name]))
    page = removal(seat.tenant, name)
    if page is None:
        raise Http404
    context = {"page": page, "why_not": forbidden}
    return answer_page(request, "approvals/remove_plugin.html", context, parts=["remove-plugin"])
