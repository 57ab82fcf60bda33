"""The pages that belong to no app: overview, find, and the frame around every page."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_GET

from base import ids
from base.htmx import page as answer
from budgets.queries.journal import in_doubt
from catalog.queries.costs import over_budget
from catalog.queries.finding_list import how_many
from catalog.queries.function_index import holding, is_listed
from jobs.queries import overview as figures
from tenants.queries.seats import Seat
from tenants.views.place import seat_of, seats_in

# which entry of the catalog's navigation an address belongs to
SECTIONS = {
    "catalog": "overview",
    "functions": "functions",
    "function": "functions",
}
SECTIONS |= dict.fromkeys(("tools", "tool", "listings", "review-listing"), "tools")
SECTIONS |= dict.fromkeys(("agents", "agent"), "agents")
SECTIONS |= dict.fromkeys(("skills", "skill"), "skills")
SECTIONS |= dict.fromkeys(("policy", "policy-edit", "policy-waiting", "policy-simulate", "policy-replay"), "policy")
SECTIONS |= dict.fromkeys(("policy-versions", "policy-version", "policy-restore"), "policy")
SECTIONS |= {"findings": "findings"}
SECTIONS |= dict.fromkeys(("plugins", "plugin", "upload-plugin", "take-up-plugin", "remove-plugin"), "plugins")
PLACES = {
    "job": "jobs",
    "jobs": "jobs",
    "new-job": "jobs",
    "call": "jobs",
    "approvals": "approvals",
    "hold": "approvals",
    "group": "approvals",
    "several": "approvals",
    "edit-arguments": "approvals",
    "always-allow": "approvals",
    "deciding": "settings",
}
PLACES |= dict.fromkeys(("routines", "new-routine", "routine", "change-routine", "run-routine", "turn-routine"), "jobs")
PLACES |= dict.fromkeys(("hooks", "new-hook", "hook-page", "change-hook", "turn-hook", "hook-secret"), "jobs")
PLACES |= dict.fromkeys(SECTIONS, "catalog")
PLACES |= dict.fromkeys(("connections", "new-connection", "connection", "connection-client"), "settings")
PLACES |= dict.fromkeys(("connection-sign-in", "connection-sign-out", "connection-return"), "settings")
PLACES |= {"remove-connection": "settings"}
PLACES |= dict.fromkeys(("people", "member", "remove-member", "invite", "account"), "settings")
PLACES |= dict.fromkeys(("tokens", "new-token", "revoke-token"), "settings")
PLACES |= dict.fromkeys(("secrets", "put-secret", "remove-secret"), "settings")
PLACES |= dict.fromkeys(("switches", "new-switch", "switch"), "switches")
PLACES |= dict.fromkeys(("notices", "new-channel", "channel", "channel-test", "channel-secret"), "settings")
PLACES |= dict.fromkeys(("channel-turn", "channel-remove", "notice-again"), "settings")
PLACES |= {"insights": "approvals"}
PLACES |= dict.fromkeys(("audit", "audit-export"), "settings")
PLACES |= {"overview": "overview"}
PLACES |= dict.fromkeys(("budgets", "new-budget", "budget", "budget-limit", "budget-operation"), "budgets")
PLACES |= dict.fromkeys(("new-budget-key", "rotate-budget-key", "release-amount", "confirm-amount"), "budgets")


@dataclass(frozen=True, slots=True)
class Shell:
    """What the frame shows. `waiting` stops at 1,001; `at` is the current entry of the rail, `section` of the
    catalog's navigation; `stopped` and `paused` count the switches that are on; `others` are the person's places in
    other workspaces."""

    at: str
    section: str
    tenant_name: str
    role: str
    others: tuple[Seat, ...]
    waiting: int
    nodes: int
    stopped: int
    paused: int


@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """What needs a person, what runs, what failed, who works."""
    tenant = seat_of(request).tenant
    context = {
        "seen": figures.overview(tenant),
        "over": over_budget(tenant),
        "holding": holding(tenant),
        "doubt": in_doubt(tenant),
    }
    return answer(request, "studio/overview.html", context, parts=["overview-page"])


@require_GET
def rail(request: HttpRequest) -> HttpResponse:
    """The rail alone, for its count; `?at=` says where the page is."""
    at = request.GET.get("at", "")
    return answer(request, "parts/rail.html", {"shell": _shell(request, at if at in PLACES.values() else "", "")})


@require_GET
def sections(request: HttpRequest) -> HttpResponse:
    """The catalog's navigation alone, for its count; `?at=` says where the page is."""
    at = request.GET.get("at", "")
    context = {"shell": _shell(request, "catalog", at if at in SECTIONS.values() else "")}
    return answer(request, "catalog/tabs.html", context)


@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """Go to what an id or `tool.function` names; anything else looks for jobs by their words."""
    words = request.GET.get("q", "").strip()[:200]
    for prefix, name in ((ids.JOB, "job"), (ids.CALL, "call"), (ids.HOLD, "hold")):
        try:
            ids.parse(prefix, words)
        except ids.BadId:
            continue
        return HttpResponseRedirect(reverse(name, args=[words]))
    if is_listed(seat_of(request).tenant, words):
        return HttpResponseRedirect(reverse("function", args=[words]))
    return HttpResponseRedirect(f"{reverse('jobs')}?{urlencode({'q': words})}")


def shell(request: HttpRequest) -> dict[str, object]:
    """For every template: the frame, read only where a page uses it."""
    match = request.resolver_match
    name = (match.url_name or "") if match else ""
    return {
        "shell": SimpleLazyObject(lambda: _shell(request, PLACES.get(name, ""), SECTIONS.get(name, ""))),
        "found_by_lint": SimpleLazyObject(lambda: how_many(seat_of(request).tenant)),
    }


def _shell(request: HttpRequest, at: str, section: str) -> Shell:
    seat = seat_of(request)
    counts = figures.frame(seat.tenant)
    return Shell(
        at=at,
        section=section,
        tenant_name=seat.tenant_name,
        role=seat.role,
        others=tuple(one for one in seats_in(request) if one.tenant != seat.tenant),
        waiting=counts.waiting,
        nodes=counts.nodes,
        stopped=counts.stopped,
        paused=counts.paused,
    )
