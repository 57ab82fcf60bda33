""" "Always allow" from a card: chosen, shown exactly, then saved as a rule of a new policy version (RULES A11)."""

from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.queries.always_page import AlwaysPage, always_page
from approvals.rules.always import DAYS, USUAL_DAYS, Chosen, end_of
from approvals.rules.deciding import Decider, why_not_decide
from approvals.views.waiting_list import hold_id_of, wanted_of
from base.htmx import page as answer
from catalog.operations import policies
from catalog.rules.policy_editing import NOTE_LONGEST, why_not_edit
from jobs.operations.holds import Answer
from tenants.views.place import actor_of, seat_of

ROOM: Final = 200  # characters of the note that are ours


@require_http_methods(["GET", "HEAD", "POST"])
def always_allow(request: HttpRequest, shown: str) -> HttpResponse:
    """The proposal that the address describes; a POST saves exactly what was shown."""
    seat = seat_of(request)
    if forbidden := why_not_edit(seat.role):
        raise PermissionDenied(forbidden)
    given = request.POST if request.method == "POST" else request.GET
    chosen = _chosen(given)
    page = always_page(seat.tenant, hold_id_of(shown), chosen, until=_until(given))
    if page is None:
        raise Http404
    if forbidden := why_not_decide(Decider(seat.person_id, seat.role), page.question, Answer.APPROVE):
        raise PermissionDenied(forbidden)
    if request.method != "POST":
        return _show(request, page)
    if given.get("digest", "") != page.digest or not page.now < page.until <= end_of(_longest(chosen), page.now):
        fresh = always_page(seat.tenant, hold_id_of(shown), chosen)
        assert fresh is not None  # noqa: S101 - it was there a moment ago, and rows are never deleted
        return _show(
            request, fresh, error="The policy has changed, or this is not what was shown. Look again.", status=409
        )
    return _save(request, page)


def _save(request: HttpRequest, page: AlwaysPage) -> HttpResponse:
    if page.why_not:
        return _show(request, page, error=page.why_not, status=422)
    why = request.POST.get("note", "").strip()[: NOTE_LONGEST - ROOM]
    try:
        number = policies.save(
            tenant=seat_of(request).tenant,
            rules=page.rules,
            seen=page.seen,
            note=f"Always allowed from the question {page.shown_id}." + (f" {why}" if why else ""),
            by=actor_of(request),
        )
    except policies.PolicyMoved as moved:
        error = f"Version {moved.newest} was saved since you looked. Nothing was changed: look again."
        return _show(request, page, error=error, status=409)
    except policies.BadPolicy as bad:
        return _show(request, page, error=f"Nothing was changed: {bad}.", status=422)
    still = " This call still waits for your answer." if page.open else ""
    messages.success(request, f"Version {number} of the policy allows calls like this.{still}")
    return HttpResponseRedirect(f"{reverse('hold', args=[page.shown_id])}?{wanted_of(request).query}")


def _chosen(given: QueryDict) -> Chosen:
    days = given.get("days", "")
    number = int(days) if days.isascii() and days.isdigit() and len(days) < 4 else USUAL_DAYS
    pins = tuple(given.getlist("pin")) if "days" in given else ()
    return Chosen(given.get("agent", "this") != "every", pins, number if number in DAYS else USUAL_DAYS)


def _longest(chosen: Chosen) -> Chosen:
    return Chosen(chosen.this_agent, chosen.pins, max(DAYS))


def _until(given: QueryDict) -> datetime | None:
    """The end that was shown, when the form sends it back."""
    try:
        end = datetime.fromisoformat(str(given["until"])) if "until" in given else None
    except ValueError:
        return None
    return end if end is not None and end.tzinfo is not None else None


def _show(request: HttpRequest, page: AlwaysPage, *, error: str = "", status: int = 200) -> HttpResponse:
    filters = wanted_of(request).query
    context = {
        "page": page,
        "days": DAYS,
        "error": error,
        "filters": filters,
        "kept": [(name, value) for name, value in request.GET.items() if name in ("kind", "tool", "function")],
        "choice": urlencode(
            [("agent", "this" if page.chosen.this_agent else "every"), ("days", page.chosen.days)]
            + [("pin", pin) for pin in page.chosen.pins]
        ),
        "most_note": NOTE_LONGEST - ROOM,
    }
    return answer(request, "approvals/always.html", context, status=status)
