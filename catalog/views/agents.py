"""The agents: what each sends its model, what it may call and read, and whether that fits its budget."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from base.htmx import page as answer
from catalog.queries.agent_pages import AgentFilter, agent_page, agents_page, request_of
from catalog.queries.costs import AGENTS_MOST
from catalog.queries.kept_agents import unreadable_agent
from catalog.views.catalog import ABOUT
from catalog.views.paging import addresses, page_number
from tenants.views.place import seat_of


@require_GET
def agents(request: HttpRequest) -> HttpResponse:
    """Every agent with its budget; `?q=`, `?plugin=`, `?loading=` and `?only=over` or `idle` narrow the list."""
    only = request.GET.get("only", "")
    wanted = AgentFilter(
        words=request.GET.get("q", "")[:200],
        plugin=request.GET.get("plugin", "")[:64],
        loading=request.GET.get("loading", "") if request.GET.get("loading") in ("eager", "lazy") else "",
        over=only == "over",
        idle=only == "idle",
    )
    page = agents_page(seat_of(request).tenant, wanted, page_number(request))
    asked = {name: request.GET[name] for name in ("q", "plugin", "loading", "only") if request.GET.get(name)}
    context = {"page": page, "wanted": wanted, "most": AGENTS_MOST, **addresses(page, asked), **ABOUT}
    return answer(request, "catalog/agents.html", context, parts=["agents-page"])


@require_GET
def agent(request: HttpRequest, name: str) -> HttpResponse:
    """One agent and what its model is sent; `?shown=` opens one definition."""
    shown = request.GET.get("shown", "")[:200]
    tenant = seat_of(request).tenant
    page = agent_page(tenant, name, shown=shown)
    if page is None and (unreadable := unreadable_agent(tenant, name)):
        return answer(request, "catalog/unreadable_agent.html", {"agent": unreadable})
    if page is None or (shown and not page.shown):
        raise Http404
    return answer(request, "catalog/agent.html", {"page": page, "shown": shown, **ABOUT})


@require_GET
def model_request(request: HttpRequest, name: str) -> HttpResponse:
    """Everything that every request of an agent carries, as a file: a browser shows no raw text of strangers."""
    sent = request_of(seat_of(request).tenant, name)
    if sent is None:
        raise Http404
    headers = {"Content-Disposition": 'attachment; filename="request.json"'}
    return HttpResponse(sent.encode("utf-8", "replace"), content_type="application/json", headers=headers)
