"""The settings of who decides: the least role and how many people, kind by kind. Admins change them (RULES A10)."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.operations import deciding_rules
from approvals.queries.deciding_rules import deciding_page
from approvals.rules.deciding import MOST_APPROVERS, ROLES, BadRules, why_not_change
from base.htmx import page as answer
from catalog.rules.kinds import Kind
from tenants.views.place import actor_of, seat_of


@require_http_methods(["GET", "HEAD", "POST"])
def deciding(request: HttpRequest) -> HttpResponse:
    """Who decides what; a POST changes it."""
    seat = seat_of(request)
    if request.method != "POST":
        return _show(request)
    if forbidden := why_not_change(seat.role):
        raise PermissionDenied(forbidden)
    try:
        changed = deciding_rules.save(
            tenant=seat.tenant,
            roles={kind: request.POST.get(f"role:{kind}", "") for kind in Kind},
            approvers={kind: _number(request.POST.get(f"approvers:{kind}", "")) for kind in Kind},
            no_self=request.POST.get("no_self", "") == "yes",
            by=actor_of(request),
        )
    except BadRules as error:
        return _show(request, error=f"Nothing was changed: {error}.", status=422)
    if changed:
        messages.success(request, "This holds from now on, also for the questions that wait already.")
    else:
        messages.info(request, "Nothing was different.")
    return HttpResponseRedirect(reverse("deciding"))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0


def _show(request: HttpRequest, *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    rules, rows = deciding_page(seat.tenant)
    context: dict[str, Any] = {
        "rules": rules,
        "rows": rows,
        "roles": ROLES,
        "counts": range(1, MOST_APPROVERS + 1),
        "why_not": why_not_change(seat.role),
        "error": error,
    }
    return answer(request, "approvals/deciding.html", context, status=status)
