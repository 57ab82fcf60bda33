"""The catalog: what exists, what each function says it does, what it costs, and what to fix."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from base.htmx import page as answer
from catalog.operations import listings
from catalog.queries.agent_pages import agent_page, agents_page
from catalog.queries.catalog_overview import catalog_overview
from catalog.queries.function_index import functions_of
from catalog.queries.pages import catalog_page
from catalog.queries.skill_list import skills_page
from catalog.queries.tool_page import tool_page
from catalog.rules.estimates import ERROR, METHOD
from catalog.rules.reviewing import why_not_review
from tenants.models import Role
from tenants.views.place import actor_of, seat_of, seat_with

ABOUT = {"method": METHOD, "error": ERROR}


@require_GET
def catalog(request: HttpRequest) -> HttpResponse:
    """What is wrong, what waits for somebody, and how much there is of everything."""
    context = {"page": catalog_overview(seat_of(request).tenant), **ABOUT}
    return answer(request, "catalog/catalog.html", context, parts=["catalog-page"])


@require_GET
def plugins(request: HttpRequest) -> HttpResponse:
    """The current version of every plugin."""
    context = {"page": catalog_page(seat_of(request).tenant), **ABOUT}
    return answer(request, "catalog/plugins.html", context, parts=["plugins-page"])


@require_GET
def tools(request: HttpRequest) -> HttpResponse:
    """Every tool with its biggest functions."""
    context = {"page": catalog_page(seat_of(request).tenant), **ABOUT}
    return answer(request, "catalog/tools.html", context, parts=["tools-page"])


@require_GET
def functions(request: HttpRequest) -> HttpResponse:
    """Every function; `?tool=` and `?kind=` narrow the list."""
    tool_, kind = request.GET.get("tool", ""), request.GET.get("kind", "")
    found = functions_of(seat_of(request).tenant)
    rows = [one for one in found if tool_ in ("", one.tool) and kind in ("", one.traits.kind)]
    context = {"rows": rows, "here": request.GET.urlencode(), **ABOUT}
    return answer(request, "catalog/functions.html", context, parts=["functions-page"])


@require_GET
def skills(request: HttpRequest) -> HttpResponse:
    """Every skill that agents may read."""
    return answer(request, "catalog/skills.html", {"skills": skills_page(seat_of(request).tenant)})


@require_GET
def tool(request: HttpRequest, slug: str) -> HttpResponse:
    """One tool: `?function=` opens an entry, `?listing=` what that listing changed."""
    seat = seat_of(request)
    function = request.GET.get("function", "")[:128]
    may_see_server = seat.may(Role.AUTHOR)
    listing = _uuid(request.GET.get("listing", ""))
    page = tool_page(seat.tenant, slug, function=function, listing=listing, log=may_see_server)
    if page is None or (function and page.opened is None):
        raise Http404
    context = {"page": page, "may_see_server": may_see_server, "why_not": why_not_review(seat.role), **ABOUT}
    context["address"] = request.get_full_path()
    return answer(request, "catalog/tool.html", context, parts=["tool-page"])


@require_POST
def list_again(request: HttpRequest, slug: str) -> HttpResponse:
    """Have its server started anew and asked what it offers."""
    seat = seat_with(request, Role.AUTHOR)
    if not listings.list_anew(tenant=seat.tenant, tool=slug, actor=actor_of(request)):
        raise Http404
    return HttpResponseRedirect(reverse("tool", args=[slug]))


@require_GET
def agents(request: HttpRequest) -> HttpResponse:
    """Every agent with its budget."""
    return answer(request, "catalog/agents.html", {"agents": agents_page(seat_of(request).tenant), **ABOUT})


@require_GET
def agent(request: HttpRequest, name: str) -> HttpResponse:
    """One agent and what its model is sent; `?shown=` opens one definition."""
    shown = request.GET.get("shown", "")[:200]
    page = agent_page(seat_of(request).tenant, name, shown=shown)
    if page is None or (shown and not page.shown):
        raise Http404
    return answer(request, "catalog/agent.html", {"page": page, "shown": shown, **ABOUT})


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Http404 from error
