"""The queue of questions, and answering one: by POST, by a signed-in person with the role, once (RULES A5, A6)."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from approvals.operations.decide import MOST_NOTE, MayNot, Person, decide
from approvals.queries.card import Card, card
from approvals.queries.queue import QueueFilter, queue
from approvals.rules.deciding import Decider, Question, why_not_decide
from base import ids
from base.htmx import page as answer_page
from jobs.operations.holds import BadAnswer, Closed
from jobs.rules.states import HoldKind
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of

KINDS: Final = (("approve", "May it run?"), ("retry", "Try again?"), ("unknown", "Did it happen?"))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The filter in the address, read and ready to be written again."""

    filter: QueueFilter
    query: str


@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    """The queue, with its oldest question open beside it."""
    return _page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def hold(request: HttpRequest, shown: str) -> HttpResponse:
    """One question beside the queue; a POST answers it."""
    hold_id = _hold_id(shown)
    if request.method == "POST":
        return _answer(request, shown, hold_id)
    return _page(request, hold_id)


def _answer(request: HttpRequest, shown: str, hold_id: UUID) -> HttpResponse:
    """Take one answer. A missing, odd or doubled value is an error and nothing moves (CASES A03)."""
    seat = seat_of(request)
    seen = card(seat.tenant, hold_id)
    if seen is None:
        raise Http404
    given = request.POST.getlist("answer")
    allowed = {option.answer for option in seen.options}
    if len(given) != 1 or given[0] not in allowed:
        return _page(
            request,
            hold_id,
            error=f"An answer is one of: {', '.join(sorted(allowed))}. Nothing was changed.",
            status=400,
        )
    note = request.POST.get("note", "").strip()
    back = f"{reverse('hold', args=[shown])}?{_wanted(request).query}"
    if not seen.open:
        return HttpResponseRedirect(back)
    if request.POST.get("shown", "") != seen.shown:
        return _page(
            request, hold_id, error="What is asked has changed since this page was shown. Read it again.", status=409
        )
    try:
        taken = decide(
            tenant=seat.tenant,
            hold_id=hold_id,
            person=Person(Decider(seat.person_id, seat.role), actor_of(request)),
            answer=given[0],
            note=note,
            shown=seen.shown,
        )
    except MayNot as error:
        raise PermissionDenied(str(error)) from error
    except BadAnswer as error:
        return _page(request, hold_id, error=f"{error}. Nothing was changed.", status=422)
    if isinstance(taken, Closed):
        return HttpResponseRedirect(back)
    messages.success(request, f"{_said(given[0])}: {seen.name}.")
    return HttpResponseRedirect(_next(request, seat, hold_id) or back)


def _said(answer: str) -> str:
    words = {
        "approve": "You approved it",
        "deny": "You denied it",
        "happened": "You said it happened",
        "again": "You asked for one more attempt",
        "stop": "You stopped its job",
    }
    return words.get(answer, answer)


def _next(request: HttpRequest, seat: Seat, hold_id: UUID) -> str | None:
    """The next question in the same filter, when there is one."""
    wanted = _wanted(request)
    rows = queue(seat.tenant, wanted.filter).rows
    following = [row.shown_id for row in rows if row.shown_id != ids.show(ids.HOLD, hold_id)]
    return f"{reverse('hold', args=[following[0]])}?{wanted.query}" if following else None


def _page(request: HttpRequest, hold_id: UUID | None, *, error: str = "", status: int = 200) -> HttpResponse:
    seat, wanted = seat_of(request), _wanted(request)
    waiting = queue(seat.tenant, wanted.filter)
    if hold_id is None and waiting.rows:
        shown_card = card(seat.tenant, _hold_id(waiting.rows[0].shown_id))
    else:
        shown_card = card(seat.tenant, hold_id, whole=request.GET.get("whole") == "arguments") if hold_id else None
        if hold_id and shown_card is None:
            raise Http404
    context = {
        "queue": waiting,
        "wanted": wanted.filter,
        "filters": wanted.query,
        "here": wanted.query,
        "address": reverse("hold", args=[shown_card.shown_id]) if hold_id and shown_card else reverse("approvals"),
        "kinds": KINDS,
        "card": shown_card,
        "mine": bool(shown_card and shown_card.answered_by_id == seat.person_id),
        "options": [(option, _why_not(seat, shown_card, option.answer)) for option in shown_card.options]
        if shown_card
        else [],
        "error": error,
        "most_note": MOST_NOTE,
        "typed": {"answer": request.POST.get("answer", ""), "note": request.POST.get("note", "")},
    }
    return answer_page(request, "approvals/queue.html", context, parts=["approvals-page"], status=status)


def _why_not(seat: Seat, seen: Card, answer: str) -> str | None:
    question = Question(seen.kind, seen.started_by_id, seen.no_self_approval)
    return why_not_decide(Decider(seat.person_id, seat.role), question, answer)


def _wanted(request: HttpRequest) -> _Wanted:
    given = {name: request.GET.get(name, "")[:64] for name in ("kind", "agent", "tool")}
    kind = given["kind"] if given["kind"] in set(HoldKind) else ""
    after = _hold_id(request.GET["after"]) if request.GET.get("after") else None
    kept = {name: value for name, value in (given | {"kind": kind}).items() if value}
    if after:
        kept["after"] = request.GET["after"]
    return _Wanted(QueueFilter(kind=kind, agent=given["agent"], tool=given["tool"], after=after), urlencode(kept))


def _hold_id(shown: str) -> UUID:
    try:
        return ids.parse(ids.HOLD, shown)
    except ids.BadId as error:
        raise Http404 from error
