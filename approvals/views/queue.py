"""The queue of questions, and answering one: by POST, by a signed-in person with the role, once (RULES A5, A6)."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from approvals.operations import later
from approvals.operations.decide import MOST_NOTE, Counted, MayNot, Person, decide
from approvals.queries.card import Card, card
from approvals.queries.floods import Flood, together
from approvals.queries.queue import Queue
from approvals.rules.answers import PRESETS, AnswerOption, ended
from approvals.rules.deciding import Decider, Question, still_to_come, why_not_decide
from approvals.views.together import panel
from approvals.views.waiting_list import beside, following, hold_id_of, waiting, wanted_of
from base.htmx import page as answer_page
from catalog.rules.policy_editing import why_not_edit
from jobs.operations.holds import Answer, BadAnswer
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of


@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    """The queue, with its oldest question open beside it."""
    return _page(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def hold(request: HttpRequest, shown: str) -> HttpResponse:
    """One question beside the queue; a POST answers it."""
    hold_id = hold_id_of(shown)
    if request.method == "POST":
        return _answer(request, shown, hold_id)
    return _page(request, hold_id)


def _answer(request: HttpRequest, shown: str, hold_id: UUID) -> HttpResponse:
    """Take one answer. A missing, odd or doubled value is an error and nothing moves (CASES A03)."""
    seat = seat_of(request)
    seen = card(seat.tenant, hold_id, role=seat.role)
    if seen is None:
        raise Http404
    given = request.POST.getlist("answer")
    allowed = {option.answer for option in seen.options} - {"edit"}  # which has a page of its own
    if len(given) != 1 or given[0] not in allowed:
        return _page(
            request,
            hold_id,
            error=f"An answer is one of: {', '.join(sorted(allowed))}. Nothing was changed.",
            status=400,
        )
    note = _note(request, given[0])
    if note is None:
        return _page(request, hold_id, error="That reason is none of those offered. Nothing was changed.", status=400)
    back = f"{reverse('hold', args=[shown])}?{wanted_of(request).query}"
    if not seen.open:
        return HttpResponseRedirect(back)
    if request.POST.get("shown", "") != seen.shown:
        return _page(
            request, hold_id, error="What is asked has changed since this page was shown. Read it again.", status=409
        )
    try:
        ended = decide(
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
    if isinstance(ended, Counted):
        messages.info(request, f"Your approval counts: {still_to_come(ended.have, ended.needed)} approve it.")
    return HttpResponseRedirect(back)  # and not to the next question: a second press would answer what nobody has read


def _note(request: HttpRequest, answer: str) -> str | None:
    """The text that was typed, behind the reason that was chosen, if one was; None when that is none of ours."""
    note, chosen = request.POST.get("note", "").strip(), request.POST.get("preset")
    if chosen is None or answer != Answer.DENY:
        return note
    presets = {str(place): text for place, text in enumerate(PRESETS)}
    return f"{presets[chosen]} {note}".strip() if chosen in presets else None


def _said(answer: str) -> str:
    words = {
        "approve": "You approved it",
        "edit": "You edited its arguments and approved it",
        "deny": "You denied it",
        "happened": "You said it happened",
        "again": "You asked for one more attempt",
        "start_again": "You had its program started again",
        "finished": "You said it is finished",
        "stop": "You stopped its job",
    }
    return words.get(answer, answer)


def _page(request: HttpRequest, hold_id: UUID | None, *, error: str = "", status: int = 200) -> HttpResponse:
    found = waiting(request)
    context = {**beside(request, found), "error": error, **_opened(request, found, hold_id)}
    return answer_page(request, "approvals/queue.html", context, parts=["approvals-page"], status=status)


def _opened(request: HttpRequest, found: Queue, hold_id: UUID | None) -> dict[str, Any]:
    """What stands beside the list: the question that the address names, else the oldest, else nothing."""
    seat = seat_of(request)
    if hold_id is not None:
        whole = request.GET.get("whole") == "arguments"
        shown_card = card(seat.tenant, hold_id, role=seat.role, reader=seat.person_id, whole=whole)
        if shown_card is None:
            raise Http404
        return {"address": reverse("hold", args=[shown_card.shown_id]), **_card(request, seat, found, shown_card)}
    oldest = found.rows[0] if found.rows else None
    if isinstance(oldest, Flood):
        wanted = wanted_of(request).filter
        opened = together(seat.tenant, oldest.oldest, role=seat.role, agent=wanted.agent, tool=wanted.tool)
        return {"address": reverse("approvals")} if opened is None else panel(request, opened)
    of_oldest = hold_id_of(oldest.shown_id) if oldest else None
    first = card(seat.tenant, of_oldest, role=seat.role, reader=seat.person_id) if of_oldest else None
    return {"address": reverse("approvals"), **(_card(request, seat, found, first) if first else {})}


def _card(request: HttpRequest, seat: Seat, found: Queue, shown_card: Card) -> dict[str, Any]:
    return {
        "card": shown_card,
        "said": _said(shown_card.answer) if shown_card.answered_by_id == seat.person_id else "",
        "ended": ended(shown_card.state, shown_card.answer),
        "following": None if shown_card.open else following(found, shown_card.shown_id),
        "options": [(option, _why_not(seat, shown_card, option)) for option in shown_card.options],
        "most_note": MOST_NOTE,
        "why_not_later": later.why_not(seat.role),
        "may_allow": why_not_edit(seat.role) is None,
        "typed": {"answer": request.POST.get("answer", ""), "note": request.POST.get("note", "")},
    }


def _why_not(seat: Seat, seen: Card, option: AnswerOption) -> str | None:
    if option.why_not:
        return option.why_not
    answer = option.answer
    given = {one.person_id for one in seen.approvals}
    if answer == Answer.APPROVE and seat.person_id in given and len(given) < seen.needed:
        return "You have approved it; somebody else must, too."
    question = Question(seen.kind, seen.started_by_id, seen.function_kind, seen.rules)
    return why_not_decide(Decider(seat.person_id, seat.role), question, answer)
