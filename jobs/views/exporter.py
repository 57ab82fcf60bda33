"""Where traces go (OpenTelemetry), for admins."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from base.htmx import page as answer
from jobs.operations import exporting
from jobs.operations.exporting import BadExporter
from jobs.queries.exporter import ExporterPage, exporter_page
from tenants.models import Role
from tenants.views.place import actor_of, seat_with


@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def exporter(request: HttpRequest) -> HttpResponse:
    """The collector, and how it goes. A POST sends traces there from now on; an empty value keeps the one before."""
    seat = seat_with(request, Role.ADMIN)
    if request.method != "POST":
        return _page(request, exporter_page(seat.tenant))
    typed = {name: request.POST.get(name, "").strip()[:4096] for name in ("url", "allowed", "header")}
    value = request.POST.get("value", "").strip()
    try:
        exporting.save(
            tenant=seat.tenant,
            url=typed["url"],
            allowed=typed["allowed"].split(),
            header=typed["header"],
            value=value or None,
            actor=actor_of(request),
        )
    except BadExporter as error:
        return _page(request, exporter_page(seat.tenant), typed=typed, error=str(error), status=422)
    messages.success(request, "Saved. Traces of jobs that end from now on go there.")
    return HttpResponseRedirect(reverse("exporter"))


@require_POST
def turn_exporter(request: HttpRequest) -> HttpResponse:
    """Send no more, or again."""
    seat, on = seat_with(request, Role.ADMIN), request.POST.get("on", "")
    if on not in ("yes", "no"):
        return _page(request, exporter_page(seat.tenant), error="It is turned on by yes and off by no.", status=400)
    exporting.turn(tenant=seat.tenant, on=on == "yes", actor=actor_of(request))
    return HttpResponseRedirect(reverse("exporter"))


@require_POST
def remove_exporter(request: HttpRequest) -> HttpResponse:
    """Forget where traces go."""
    exporting.remove(tenant=seat_with(request, Role.ADMIN).tenant, actor=actor_of(request))
    return HttpResponseRedirect(reverse("exporter"))


def _page(
    request: HttpRequest,
    found: ExporterPage | None,
    *,
    typed: Mapping[str, str] | None = None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    kept = {"url": "", "allowed": "", "header": ""}
    if found is not None:
        kept = {"url": found.url, "allowed": "\n".join(found.allowed), "header": found.header}
    context = {"found": found, "typed": typed or kept, "error": error}
    return answer(request, "settings/traces.html", context, status=status)
