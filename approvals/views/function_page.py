"""One function: what it takes and says of itself, what policy says for whom, and its calls so far."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from base.htmx import page as answer_page
from catalog.queries.function_page import function_page
from catalog.rules.estimates import ERROR, METHOD
from catalog.rules.policy_editing import why_not_edit
from catalog.views.policy import with_adding
from jobs.queries.calls_of import newest_calls
from tenants.views.place import seat_of


@require_GET
def function(request: HttpRequest, label: str) -> HttpResponse:
    """The function `tool.function`, as its tool lists it now."""
    seat = seat_of(request)
    tool, _, name = label.partition(".")
    page = function_page(seat.tenant, tool, name)
    if page is None:
        raise Http404
    context = {
        "page": page,
        "calls": newest_calls(seat.tenant, page.rows),
        "fixes": with_adding(page.fixes),
        "why_not": why_not_edit(seat.role),
        "method": METHOD,
        "error": ERROR,
    }
    return answer_page(request, "approvals/function.html", context, parts=["function-page", "function-calls"])
