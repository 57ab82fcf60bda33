"""The vault's page, for admins: what is kept, what uses it; values go in and never come out."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from catalog.operations import variables
from catalog.operations.variables import BadVariable
from catalog.queries.secrets import secrets_page
from tenants.models import Role
from tenants.views.place import actor_of, seat_with


@require_GET
def secrets(request: HttpRequest) -> HttpResponse:
    """All secrets of the workspace."""
    return answer(request, "settings/secrets.html", {"found": secrets_page(seat_with(request, Role.ADMIN).tenant)})


@sensitive_variables()
@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
def put_secret(request: HttpRequest) -> HttpResponse:
    """Enter a variable, or replace its value. `?name=` and `?tool=` fill the form."""
    seat, error = seat_with(request, Role.ADMIN), ""
    given = request.POST if request.method == "POST" else request.GET
    typed = {name: given.get(name, "").strip()[:200] for name in ("name", "tool")}
    if request.method == "POST":
        try:
            variables.put(
                tenant=seat.tenant,
                name=typed["name"],
                value=request.POST.get("value", "").strip("\r\n"),
                slug=typed["tool"],
                actor=actor_of(request),
            )
        except BadVariable as refused:
            error = str(refused)
        else:
            messages.success(request, f"{typed['name']} is kept. Servers that get it are started anew.")
            return HttpResponseRedirect(reverse("secrets"))
    context = {"typed": typed, "error": error, "found": secrets_page(seat.tenant)}
    return answer(request, "settings/put_secret.html", context, status=422 if error else 200)


@require_POST
def remove_secret(request: HttpRequest, shown: str) -> HttpResponse:
    """Forget a variable's value."""
    seat = seat_with(request, Role.ADMIN)
    name = variables.remove(tenant=seat.tenant, secret=_id(shown), actor=actor_of(request))
    if name is None:
        raise Http404
    messages.success(request, f"{name} is removed.")
    return HttpResponseRedirect(reverse("secrets"))


def _id(shown: str) -> UUID:
    try:
        return ids.parse(ids.SECRET, shown)
    except ids.BadId as error:
        raise Http404 from error
