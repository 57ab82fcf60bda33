"""Several questions answered at once: denied with one reason; approved only where a function reads and all is shown."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.operations.decide import MOST_NOTE
from approvals.queries.queue import QueueFilter
from approvals.queries.several import Several
from approvals.queries.several import several as several_of
from approvals.rules.answers import PRESETS
from approvals.rules.deciding import Decider, why_not_decide
from approvals.views import in_parts
from approvals.views.waiting_list import waiting_choices, wanted_of
from base.htmx import page as answer_page
from jobs.operations.holds import Answer, BadAnswer
from tenants.views.place import seat_of

SAID: Final = {Answer.DENY: "You denied {}", Answer.APPROVE: "You approved {}"}


@require_http_methods(["GET", "HEAD", "POST"])
def several(request: HttpRequest) -> HttpResponse:
    """The oldest questions with all of their arguments; a POST answers those that were ticked."""
    if request.method == "POST":
        return _answer(request)
    return _show(request)


def _answer(request: HttpRequest) -> HttpResponse:
    given = request.POST.getlist("answer")
    if len(given) != 1 or given[0] not in SAID:
        return _show(request, error="An answer is one of: approve, deny. Nothing was changed.", status=400)
    answer = Answer(given[0])
    note = request.POST.get("note", "").strip()
    back = f"{reverse('several')}?{wanted_of(request).query}"
    try:
        if answer is Answer.DENY and not note:
            raise BadAnswer("denying takes a reason, which each agent reads")
        cards = in_parts.going_on(request)
        cards = in_parts.cards_of(request.POST.getlist("card")) if cards is None else cards
        if not cards:
            raise BadAnswer("tick the questions that you answer")
        if answer is Answer.APPROVE and not in_parts.goes_on(request):
            _all_shown(several_of(seat_of(request).tenant, wanted_of(request).filter, role=seat_of(request).role))
        part = in_parts.answer_part(request, cards, answer=answer, note=note)
    except BadAnswer as error:
        return _show(request, error=f"Nothing was answered: {error}.", status=422)
    if part.rest:
        return in_parts.page(request, part, action=back)
    in_parts.tell(request, SAID[answer], part.done)
    return HttpResponseRedirect(back)


def _all_shown(page: Several) -> None:
    if page.why_not_approve:
        raise BadAnswer(page.why_not_approve.rstrip(".").lower())


def _show(request: HttpRequest, *, error: str = "", status: int = 200) -> HttpResponse:
    seat, wanted = seat_of(request), wanted_of(request)
    page = several_of(seat.tenant, _without_unknown(wanted.filter), role=seat.role)
    decider = Decider(seat.person_id, seat.role)
    ticked = set(request.POST.getlist("card")) or ({row.card for row in page.rows} if "all" in request.GET else set())
    rows = [(row, row.card in ticked, why_not_decide(decider, row.question, Answer.DENY) or "") for row in page.rows]
    approve = [why_not_decide(decider, row.question, Answer.APPROVE) for row in page.rows]
    context: dict[str, Any] = {
        "page": page,
        "rows": rows,
        "filters": wanted.query,
        "wanted": wanted.filter,
        "choices": waiting_choices(request),
        "why_not_approve": page.why_not_approve or next((why for why in approve if why), ""),
        "presets": PRESETS,
        "note": request.POST.get("note", ""),
        "most_note": MOST_NOTE,
        "error": error,
        "ticked_all": not error and "all" in request.GET,
    }
    return answer_page(request, "approvals/several.html", context, status=status)


def _without_unknown(wanted: QueueFilter) -> QueueFilter:
    return QueueFilter(wanted.kind, wanted.agent, wanted.tool, wanted.function)
