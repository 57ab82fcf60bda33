"""One tool: what it lists, how it fares, and what of it goes on right now."""

from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET

from base.htmx import page as answer_page
from catalog.queries.tool_page import tool_page
from catalog.rules.estimates import ERROR, METHOD
from catalog.rules.reviewing import why_not_review
from catalog.views.paging import addresses, page_number
from jobs.queries.calls_of import live_calls
from tenants.models import Role
from tenants.views.place import seat_of


@require_GET
def tool(request: HttpRequest, slug: str) -> HttpResponse:
    """One tool. An entry and a listing that stood on this page once have pages of their own now."""
    seat = seat_of(request)
    may_see_server = seat.may(Role.AUTHOR)
    page = tool_page(seat.tenant, slug, log=may_see_server, page=page_number(request))
    if page is None:
        raise Http404
    if function := request.GET.get("function", "")[:128]:
        return HttpResponseRedirect(_function(f"{slug}.{function}"))
    if listing := request.GET.get("listing", "")[:36]:
        return HttpResponseRedirect(f"{reverse('listings', args=[slug])}?to={quote(listing)}")
    context = {
        "page": page,
        **addresses(page.row.functions, {}),
        "calls": live_calls(seat.tenant, slug),
        "may_see_server": may_see_server,
        "why_not": why_not_review(seat.role),
        "method": METHOD,
        "error": ERROR,
    }
    return answer_page(request, "catalog/tool.html", context, parts=["tool-page", "tool-calls"])


def _function(label: str) -> str:
    try:
        return reverse("function", args=[label])
    except NoReverseMatch as error:
        raise Http404 from error
