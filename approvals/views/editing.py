"""Editing the arguments of a waiting call: typed, looked at as a difference, then approved (RULES A9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from approvals.operations.decide import AsksAnew, MayNot, Person, decide
from approvals.queries.edit_page import EditPage, Looked, edit_page, look
from approvals.rules.deciding import Decider, still_to_come, why_not_decide
from approvals.views.waiting_list import hold_id_of, wanted_of
from base import ids
from base.htmx import page as answer
from base.text import pretty
from catalog.rules import filling_form
from jobs.operations.editing import BadArguments
from jobs.operations.holds import Answer, BadAnswer
from tenants.views.place import actor_of, seat_of

LONGEST: Final = 1_000_000  # characters


@dataclass(frozen=True, slots=True)
class _Typed:
    """What stands in the form: fields, or a text of JSON. `arguments` is what they spell, to be read by the call."""

    fields: tuple[filling_form.Field, ...] | None
    text: str
    arguments: Any


@require_http_methods(["GET", "HEAD", "POST"])
def edit_arguments(request: HttpRequest, shown: str) -> HttpResponse:
    """The form; a POST looks at what was typed (`do=look`) or approves it (`do=approve`). `?as=json` is the text."""
    seat = seat_of(request)
    page = edit_page(seat.tenant, hold_id_of(shown))
    if page is None:
        raise Http404
    back = f"{reverse('hold', args=[shown])}?{wanted_of(request).query}"
    if not page.open or page.why_not:
        if page.open:
            messages.info(request, page.why_not)
        return HttpResponseRedirect(back)
    forbidden = why_not_decide(Decider(seat.person_id, seat.role), page.question, Answer.EDIT)
    if forbidden:
        raise PermissionDenied(forbidden)
    if request.method != "POST":
        return _show(request, page, _begun(request, page))
    typed = _typed(request, page)
    if request.POST.get("shown", "") != page.shown:
        trouble = ("", "What is asked has changed since this page was shown. Compare it with what you typed.")
        return _show(request, page, typed, troubles=(trouble,), status=409)
    if request.POST.get("do") != "approve":
        return _look(request, page, typed)
    return _approve(request, page, typed, back)


def _begun(request: HttpRequest, page: EditPage) -> _Typed:
    fields = None if request.GET.get("as") == "json" else filling_form.fields(page.schema, page.arguments)
    return _Typed(fields, pretty(page.arguments), page.arguments)


def _typed(request: HttpRequest, page: EditPage) -> _Typed:
    """What was typed. An old page's fields are those of the arguments that wait now."""
    if "arguments" in request.POST:
        text = request.POST["arguments"][: LONGEST + 1]
        return _Typed(None, text, text)
    fields = filling_form.fields(page.schema, page.arguments)
    if fields is None:
        return _Typed(None, pretty(page.arguments), page.arguments)
    filled = filling_form.filled(fields, {name: str(value) for name, value in request.POST.items()})
    value = filling_form.typed(filled)
    return _Typed(filled, pretty(value), value)


def _look(request: HttpRequest, page: EditPage, typed: _Typed) -> HttpResponse:
    looked = look(seat_of(request).tenant, page, typed.arguments)
    if looked.troubles:
        return _show(request, page, typed, troubles=looked.troubles, status=422)
    return _show(request, page, typed, looked=looked)


def _approve(request: HttpRequest, page: EditPage, typed: _Typed, back: str) -> HttpResponse:
    seat = seat_of(request)
    try:
        ended = decide(
            tenant=seat.tenant,
            hold_id=page.hold_id,
            person=Person(Decider(seat.person_id, seat.role), actor_of(request)),
            answer=Answer.EDIT,
            shown=page.shown,
            arguments=typed.arguments,
        )
    except MayNot as error:
        raise PermissionDenied(str(error)) from error
    except BadArguments as error:
        return _show(request, page, typed, troubles=error.troubles, status=422)
    except BadAnswer as error:
        return _show(request, page, typed, troubles=(("", f"{error}."),), status=422)
    if not isinstance(ended, AsksAnew):
        return HttpResponseRedirect(back)
    if ended.have:
        messages.info(request, f"Your edit is approved by you: {still_to_come(ended.have, ended.needed)} approve it.")
    else:
        messages.info(request, "Another rule asks for it now. This is the question as it is now: read and answer it.")
    return HttpResponseRedirect(f"{reverse('hold', args=[ids.show(ids.HOLD, ended.hold_id)])}")


def _show(
    request: HttpRequest,
    page: EditPage,
    typed: _Typed,
    *,
    troubles: tuple[tuple[str, str], ...] = (),
    looked: Looked | None = None,
    status: int = 200,
) -> HttpResponse:
    context: Mapping[str, Any] = {
        "page": page,
        "fields": filling_form.beside(typed.fields or (), troubles),
        "text": typed.text,
        "troubles": troubles,
        "looked": looked,
        "filters": wanted_of(request).query,
    }
    return answer(request, "approvals/edit.html", context, status=status)
