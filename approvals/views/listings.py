"""Approving what a remote server lists: by POST, by a signed-in person with the role, exactly what was shown."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from approvals.queries.review import review_page
from base import figures, text
from base.htmx import page as answer_page
from catalog.operations import approving
from catalog.operations.approving import BadApproval, approve
from catalog.rules.reviewing import why_not_review
from jobs.operations.listings_changed import word_withdrawn
from tenants.views.place import actor_of, seat_of

ALL = "*"
MOST_NOTED = 2_000  # characters of a reason


@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """What waits for approval of one tool; a POST approves one entry of it, or all that were shown."""
    if request.method == "POST":
        return _approve(request, slug)
    return _page(request, slug)


def _approve(request: HttpRequest, slug: str) -> HttpResponse:
    """`shown` are `function:digest` for every entry on the page, `approve` one function or `*` for all of them."""
    seat = seat_of(request)
    forbidden = why_not_review(seat.role)
    if forbidden:
        raise PermissionDenied(forbidden)
    shown = dict(_pair(one) for one in request.POST.getlist("shown"))
    chosen = request.POST.getlist("approve")
    if len(chosen) != 1 or (chosen[0] != ALL and chosen[0] not in shown):
        return _page(request, slug, error="Choose one entry that is shown, or all. Nothing was approved.", status=400)
    wanted = shown if chosen[0] == ALL else {chosen[0]: shown[chosen[0]]}
    try:
        fresh = approve(tenant=seat.tenant, tool=slug, shown=wanted, actor=actor_of(request))
    except BadApproval as error:
        return _page(request, slug, error=f"{str(error).capitalize()}. Nothing was approved.", status=409)
    messages.success(request, f"You approved {figures.plural(len(fresh), 'entry', 'entries')} of {slug}.")
    return HttpResponseRedirect(reverse("review-listing", args=[slug]))


@require_POST
def withdraw(request: HttpRequest, slug: str) -> HttpResponse:
    """Take back the approval of one entry: `shown` is its `function:digest`, `note` why, for the audit log."""
    seat = seat_of(request)
    forbidden = why_not_review(seat.role)
    if forbidden:
        raise PermissionDenied(forbidden)
    function, digest = _pair(request.POST.get("shown", ""))
    note = request.POST.get("note", "").strip()[:MOST_NOTED]
    try:
        actor = actor_of(request)
        approving.withdraw(tenant=seat.tenant, tool=slug, function=function, shown=digest, actor=actor, note=note)
    except BadApproval as error:
        messages.error(request, f"Nothing was taken back: {error}.")
        return HttpResponseRedirect(reverse("tool", args=[slug]))
    asked = word_withdrawn(tenant=seat.tenant, tool=slug, function=function)
    more = f" Its waiting calls in {figures.plural(asked, 'job')} are asked anew." if asked else ""
    named = text.visible(function, 128)
    messages.success(request, f"You took back the approval of {named}: its word counts no more.{more}")
    return HttpResponseRedirect(reverse("tool", args=[slug]))


def _pair(text: str) -> tuple[str, str]:
    function, _, digest = text.rpartition(":")
    return function, digest


def _page(request: HttpRequest, slug: str, *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    page = review_page(seat.tenant, slug)
    if page is None:
        raise Http404
    context = {"page": page, "why_not": why_not_review(seat.role), "error": error}
    return answer_page(request, "approvals/review.html", context, status=status)
