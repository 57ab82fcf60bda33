"""Kill switches and pauses: what they would do, turning one on and lifting it, by POST and by whoever may."""

from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from approvals.queries.switches import foretold, switch_page, switches_page
from approvals.rules.switching import goes_on, why_not_switch
from base import ids
from base.clock import boot_time
from base.htmx import page as answer_page
from catalog.models import KillSwitch
from catalog.rules.switching import Mode, Scope
from jobs.operations.switches import MOST_REASON, BadSwitch, turn_off, turn_on
from tenants.views.place import actor_of, seat_of

AT_ONCE: Final = 2.0  # seconds in which the request itself ends work; the sweep does what is left (RULES L7)


@require_GET
def switches(request: HttpRequest) -> HttpResponse:
    """What is stopped or paused now, and what could be."""
    seat = seat_of(request)
    words = request.GET.get("q", "").replace("\0", "").strip()[:100]
    here = urlencode({"q": words}) if words else ""
    page, why_not_pause = switches_page(seat.tenant, words), why_not_switch(seat.role, Mode.PAUSE)
    context = {"page": page, "q": words, "here": here, "why_not_pause": why_not_pause}
    return answer_page(request, "approvals/switches.html", context, parts=["switches-page"])


@require_http_methods(["GET", "HEAD", "POST"])
def new_switch(request: HttpRequest) -> HttpResponse:
    """What stopping or pausing `scope` and `target` would do, counted now; a POST does it, and counts again."""
    given = request.POST if request.method == "POST" else request.GET
    scope, target = _scope(given.get("scope", "")), given.get("target", "")[:200]
    if request.method == "POST":
        return _turn_on(request, scope, target)
    return _foretell(request, scope, target)


def _turn_on(request: HttpRequest, scope: Scope, target: str) -> HttpResponse:
    seat = seat_of(request)
    given = request.POST.getlist("mode")
    if len(given) != 1 or given[0] not in set(Mode):
        return _foretell(request, scope, target, error="Choose to stop or to pause. Nothing was changed.", status=400)
    mode, reason = Mode(given[0]), request.POST.get("reason", "").strip()
    if forbidden := why_not_switch(seat.role, mode):
        raise PermissionDenied(forbidden)
    if not reason:
        error = "Say why: everybody who meets this switch reads it. Nothing was changed."
        return _foretell(request, scope, target, error=error, status=422)
    until = boot_time() + AT_ONCE
    try:
        made = turn_on(
            tenant=seat.tenant,
            scope=scope,
            target=target,
            mode=mode,
            reason=reason,
            by=actor_of(request),
            enough=lambda: boot_time() >= until,
        )
    except BadSwitch as error:
        return _foretell(request, scope, target, error=f"Nothing was changed: {error}.", status=409)
    shown = ids.show(ids.SWITCH, made)
    page = switch_page(seat.tenant, made)
    messages.success(request, " ".join(page.did) if page else "")
    return HttpResponseRedirect(reverse("switch", args=[shown]))


def _foretell(request: HttpRequest, scope: Scope, target: str, *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    told = foretold(seat.tenant, scope, target)
    if told is None:
        raise Http404
    context = {
        "page": told,
        "choices": [(choice, why_not_switch(seat.role, choice.mode)) for choice in told.choices],
        "here": urlencode({"scope": scope, **({"target": target} if target else {})}),
        "error": error,
        "most_reason": MOST_REASON,
        "typed": {"mode": request.POST.get("mode", ""), "reason": request.POST.get("reason", "")},
    }
    return answer_page(request, "approvals/new_switch.html", context, parts=["new-switch"], status=status)


@require_GET
def switch(request: HttpRequest, shown: str) -> HttpResponse:
    """One switch: who turned it on and why, what it did, what still stops, and lifting it."""
    seat = seat_of(request)
    page = switch_page(seat.tenant, _switch_id(shown))
    if page is None:
        raise Http404
    context = {"page": page, "why_not": why_not_switch(seat.role, page.row.mode)}
    return answer_page(request, "approvals/switch.html", context, parts=["switch-page"])


@require_POST
def lift(request: HttpRequest, shown: str) -> HttpResponse:
    """Lift a switch. A second click finds it lifted and says by whom."""
    seat = seat_of(request)
    switch_id = _switch_id(shown)
    page = switch_page(seat.tenant, switch_id)
    if page is None:
        raise Http404
    if forbidden := why_not_switch(seat.role, page.row.mode):
        raise PermissionDenied(forbidden)
    try:
        note = request.POST.get("note", "").strip()[:MOST_REASON]
        lifted = turn_off(tenant=seat.tenant, switch_id=switch_id, by=actor_of(request), note=note)
    except KillSwitch.DoesNotExist as error:
        raise Http404 from error
    if lifted is None:
        messages.info(request, "It was lifted before; nothing was changed.")
    else:
        messages.success(request, f"Lifted. {goes_on(page.row.scope, page.row.mode, lifted)}")
    return HttpResponseRedirect(reverse("switch", args=[shown]))


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError as error:
        raise Http404 from error


def _switch_id(shown: str) -> UUID:
    try:
        return ids.parse(ids.SWITCH, shown)
    except ids.BadId as error:
        raise Http404 from error
