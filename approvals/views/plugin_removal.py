"""Removing a plugin, after a look at what that does, and deleting for good what a removed one has left."""

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from approvals.queries.plugin_removal import removal
from base.htmx import page as answer_page
from catalog.rules.plugin_roles import why_not_remove
from jobs.operations.removing import StillRuns, delete_for_good, remove
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


@require_POST
def delete_plugin(request: HttpRequest, name: str) -> HttpResponse:
    """Delete the files and the vault's values of a removed plugin. A second press deletes what the first one left."""
    seat = seat_of(request)
    if forbidden := why_not_remove(seat.role):
        raise PermissionDenied(forbidden)
    try:
        left = delete_for_good(tenant=seat.tenant, plugin=name, home=settings.OZ0_HOME, actor=actor_of(request))
    except StillRuns as error:
        messages.error(request, f"Nothing was deleted: {error}.")
    else:
        if left is None:
            messages.info(request, "Only what a removed plugin has left is deleted; nothing was changed.")
        elif left:
            messages.error(request, f"Its values are deleted, and not all of its files: {'; '.join(left)}. Try again.")
        else:
            messages.success(request, f"The files of {name} and its values in the vault are deleted.")
    return HttpResponseRedirect(reverse("plugin", args=[name]))
