"""A group of unknown outcomes, and answering it: exactly those shown, by POST, by a person who may (RULES U7)."""

from collections import Counter
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.operations.decide import MOST_NOTE
from approvals.operations.decide_together import shown_together
from approvals.queries.floods import Together, together
from approvals.rules import answers
from approvals.rules.answers import AnswerOption
from approvals.rules.deciding import Decider, why_not_decide
from approvals.views import in_parts
from approvals.views.waiting_list import beside, hold_id_of, waiting, wanted_of
from base.figures import plural
from base.htmx import page as answer_page
from jobs.models import Hold
from jobs.operations.holds import BadAnswer
from tenants.views.place import seat_of

ANSWERED = "answered"  # in the address: an answer was just given, so no other question is open
SAID = {"happened": "You said that {} happened", "again": "You had {} run again", "stop": "You stopped the jobs of {}"}


@require_http_methods(["GET", "HEAD", "POST"])
def group(request: HttpRequest, shown: str) -> HttpResponse:
    """The group that the question `shown` belongs to; `?upto=` pins what is shown, `?function=` narrows it."""
    anchor = hold_id_of(shown)
    if request.method == "POST":
        return _answer(request, shown, anchor)
    answered = ANSWERED in request.GET
    found = None if answered else _group(request, anchor)
    if found is None and not answered:
        messages.info(request, "Nothing of that group waits any more.")
    return _page(request, shown, found)


def panel(request: HttpRequest, found: Together) -> dict[str, Any]:
    """What the template needs to show a group beside the list."""
    seat, wanted = seat_of(request), wanted_of(request)
    pinned = {"upto": found.upto, **({"function": found.function} if found.function else {})}
    kept = [(name, value) for name, value in parse_qsl(wanted.query) if name not in pinned]
    options = answers.together(
        count=len(found.members), jobs=found.jobs, keyless=found.keyless, old_keys=found.old_keys
    )
    decider = Decider(seat.person_id, seat.role)
    return {
        "group": found,
        "options": [(option, *_may(decider, found, option)) for option in options],
        "address": reverse("group", args=[found.flood.shown_id]),
        "here": urlencode([*pinned.items(), *kept]),
        "unnarrowed": urlencode([(name, value) for name, value in kept if name != "function"]),
        "most_note": MOST_NOTE,
        "typed": {"answer": request.POST.get("answer", ""), "note": request.POST.get("note", "")},
    }


def _may(decider: Decider, found: Together, option: AnswerOption) -> tuple[str, str]:
    """(why the whole answer cannot be given, what of the group stays open after it)."""
    if option.why_not:
        return option.why_not, ""
    stays = Counter(why for one in found.members if (why := why_not_decide(decider, one.question, option.answer)))
    if sum(stays.values()) == len(found.members):
        return next(iter(stays)), ""
    return "", " ".join(f"{plural(count, 'question')} stay open: {why}" for why, count in stays.most_common())


def _group(request: HttpRequest, anchor: UUID) -> Together | None:
    wanted = wanted_of(request).filter
    upto = request.GET.get("upto", "")
    try:
        return together(
            seat_of(request).tenant,
            anchor,
            role=seat_of(request).role,
            agent=wanted.agent,
            tool=wanted.tool,
            function=request.GET.get("function", "")[:128],
            upto=hold_id_of(upto) if upto else None,
        )
    except Hold.DoesNotExist as error:
        raise Http404 from error


def _page(
    request: HttpRequest, shown: str, found: Together | None, *, error: str = "", status: int = 200
) -> HttpResponse:
    """The list with the group beside it. After an answer nothing is open: a second press answers nothing unread."""
    opened = (
        panel(request, found) if found else {"address": reverse("group", args=[shown]), "here": _nothing_open(request)}
    )
    context = {**beside(request, waiting(request)), "error": error, **opened}
    return answer_page(request, "approvals/queue.html", context, parts=["approvals-page"], status=status)


def _nothing_open(request: HttpRequest) -> str:
    query = wanted_of(request).query
    return f"{ANSWERED}=1&{query}" if query else f"{ANSWERED}=1"


def _answer(request: HttpRequest, shown: str, anchor: UUID) -> HttpResponse:
    """Take one answer for the questions that the form names. A missing or odd value is an error; nothing moves."""
    seat = seat_of(request)
    given = request.POST.getlist("answer")
    if len(given) != 1 or given[0] not in SAID:
        return _refused(
            request, shown, anchor, f"An answer is one of: {', '.join(sorted(SAID))}. Nothing was changed.", 400
        )
    if not in_parts.goes_on(request) and (forbidden := _why_none(request, anchor, given[0])):
        raise PermissionDenied(forbidden)
    try:
        cards = in_parts.going_on(request)
        if cards is None:
            holds = [hold_id_of(one) for one in request.POST.get("holds", "").split()]
            cards = shown_together(seat.tenant, holds, request.POST.get("shown", ""))
        part = in_parts.answer_part(request, cards, answer=given[0], note=request.POST.get("note", "").strip())
    except BadAnswer as error:
        return _refused(request, shown, anchor, f"Nothing was answered: {error}.", 409)
    if part.rest:
        return in_parts.page(request, part, action=f"{reverse('group', args=[shown])}?{_nothing_open(request)}")
    in_parts.tell(request, SAID[given[0]], part.done)
    return HttpResponseRedirect(f"{reverse('group', args=[shown])}?{_nothing_open(request)}")


def _why_none(request: HttpRequest, anchor: UUID, answer: str) -> str:
    """Why this person may answer none of the group, or nothing."""
    seat, found = seat_of(request), _group(request, anchor)
    if found is None:
        return ""
    decider = Decider(seat.person_id, seat.role)
    whys = [why_not_decide(decider, one.question, answer) for one in found.members]
    return whys[0] or "" if all(whys) else ""


def _refused(request: HttpRequest, shown: str, anchor: UUID, error: str, status: int) -> HttpResponse:
    found = _group(request, anchor)
    if found is None:
        messages.error(request, error)
    return _page(request, shown, found, error=error, status=status)
