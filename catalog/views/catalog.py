"""The catalog: what exists, what each function says it does, what it costs, and what to fix."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from base.htmx import page as answer
from catalog.operations import listings as listing
from catalog.queries.catalog_overview import catalog_overview
from catalog.queries.listing_pages import listings_page
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.queries.tool_list import tools_page
from catalog.rules.estimates import ERROR, METHOD
from catalog.views.paging import addresses, page_number
from tenants.models import Role
from tenants.views.place import actor_of, seat_of, seat_with

ABOUT = {"method": METHOD, "error": ERROR}


@require_GET
def catalog(request: HttpRequest) -> HttpResponse:
    """What is wrong, what waits for somebody, and how much there is of everything."""
    context = {"page": catalog_overview(seat_of(request).tenant), **ABOUT}
    return answer(request, "catalog/catalog.html", context, parts=["catalog-page"])


@require_GET
def tools(request: HttpRequest) -> HttpResponse:
    """Every tool, those that need somebody first; `?show=trouble` shows these alone."""
    found, now = tools_page(seat_of(request).tenant)
    trouble = request.GET.get("show", "") == "trouble"
    troubled = [tool for tool in found if tool.troubled]
    fit = troubled if trouble else found
    number = page_within(page_number(request), len(fit))
    page = Paged(tuple(fit[(number - 1) * A_PAGE : number * A_PAGE]), len(fit), number)
    context = {
        "tools": page.rows,
        "page": page,
        **addresses(page, {"show": "trouble"} if trouble else {}),
        "trouble": trouble,
        "troubled": len(troubled),
        "all": len(found),
        "now": now,
        **ABOUT,
    }
    return answer(request, "catalog/tools.html", context, parts=["tools-page"])


@require_GET
def listings(request: HttpRequest, slug: str) -> HttpResponse:
    """A tool's listings; `?from=` and `?to=` say which two stand side by side."""
    seat = seat_of(request)
    before, after = _uuid(request.GET.get("from", "")), _uuid(request.GET.get("to", ""))
    page = listings_page(seat.tenant, slug, before=before, after=after)
    if page is None:
        raise Http404
    context = {"page": page, "address": request.get_full_path()}
    return answer(request, "catalog/listings.html", context, parts=["listings-page"])


@require_POST
def list_again(request: HttpRequest, slug: str) -> HttpResponse:
    """Have its server started anew and asked what it offers."""
    seat = seat_with(request, Role.AUTHOR)
    if not listing.list_anew(tenant=seat.tenant, tool=slug, actor=actor_of(request)):
        raise Http404
    return HttpResponseRedirect(reverse("tool", args=[slug]))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Http404 from error
