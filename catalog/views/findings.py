"""Lint across the workspace, whose filters are all in the address."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from base.htmx import page as answer
from catalog.queries.finding_list import findings_page
from catalog.rules.findings import Severity
from catalog.views.paging import addresses, page_number
from tenants.views.place import seat_of

LONGEST = 200  # characters of one part of the address


@require_GET
def findings(request: HttpRequest) -> HttpResponse:
    """Everything lint found of what the studio runs; `?severity=` `?code=` `?plugin=` `?tool=` `?page=` say which."""
    names = ("severity", "code", "plugin", "tool")
    wanted = {name: request.GET.get(name, "").replace("\0", "").strip()[:LONGEST] for name in names}
    if wanted["severity"] not in set(Severity):
        wanted["severity"] = ""
    asked = {name: value for name, value in wanted.items() if value}
    if any(not value for value in request.GET.values()):  # a form sends its empty fields too
        return HttpResponseRedirect(f"{reverse('findings')}?{urlencode(asked)}".rstrip("?"))
    page = findings_page(seat_of(request).tenant, **wanted, page=page_number(request))
    rest = {name: value for name, value in asked.items() if name != "severity"}
    context = {
        "page": page,
        "wanted": wanted,
        "tabs": [(urlencode(rest), "", page.all)]
        + [(urlencode(rest | {"severity": str(one)}), str(one), count) for one, count in page.severities],
        **addresses(page, asked),
    }
    return answer(request, "catalog/findings.html", context, parts=["findings-page"])
