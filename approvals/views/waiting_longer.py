"""More time for a question, and asking again for what expired: by POST, by a person who may (RULES A8)."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from approvals.operations import later
from approvals.operations.decide import MayNot, Person
from approvals.rules.deciding import Decider
from approvals.views.waiting_list import hold_id_of, wanted_of
from base import ids
from jobs.models import Call, Hold
from jobs.operations.asking_again import CannotAsk
from jobs.operations.holds import BadAnswer, Closed
from tenants.views.place import actor_of, seat_of


@require_POST
def extend(request: HttpRequest, shown: str) -> HttpResponse:
    """Let the question wait a day from now, a week at most."""
    back = HttpResponseRedirect(f"{reverse('hold', args=[shown])}?{wanted_of(request).query}")
    try:
        until = _by(request, shown, later.extend)
    except BadAnswer as error:
        messages.info(request, f"Nothing was changed: {error}.")
        return back
    if not isinstance(until, Closed):
        messages.success(request, "It waits a day longer, from now.")
    return back


@require_POST
def ask_again(request: HttpRequest, shown: str) -> HttpResponse:
    """Make the call anew, once; then its new question is open, or its trace when nobody has to be asked."""
    try:
        asked = _by(request, shown, later.ask_again)
    except CannotAsk as error:
        messages.error(request, f"Nothing was made: {error}.")
        return HttpResponseRedirect(reverse("hold", args=[shown]))
    if asked.before:
        messages.info(request, "Somebody had asked for it again already: this is the call that was made then.")
    elif asked.new_job:
        messages.success(request, "A new job makes this one call.")
    if asked.hold_id is not None:
        return HttpResponseRedirect(reverse("hold", args=[ids.show(ids.HOLD, asked.hold_id)]))
    return HttpResponseRedirect(reverse("call", args=[ids.show(ids.CALL, asked.call_id)]))


def _by(request: HttpRequest, shown: str, act: Callable[..., Any]) -> Any:
    seat, hold_id = seat_of(request), hold_id_of(shown)
    person = Person(Decider(seat.person_id, seat.role), actor_of(request))
    try:
        return act(tenant=seat.tenant, hold_id=hold_id, person=person)
    except MayNot as error:
        raise PermissionDenied(str(error)) from error
    except (Hold.DoesNotExist, Call.DoesNotExist) as error:
        raise Http404 from error
