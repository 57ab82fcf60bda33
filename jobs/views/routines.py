"""Routines: agents started by the clock. Whoever may start jobs has them started; everybody sees what there is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from base.zones import zones
from catalog.queries.agents import agent_choices
from jobs.operations import routines as operations
from jobs.operations.intake import CannotStart
from jobs.operations.routines import BadRoutine, Wanted
from jobs.queries import routines as queries
from jobs.queries.routines import RoutinePage
from jobs.rules.schedule import BadSchedule
from jobs.rules.starters import Missed, Overlap, Standing
from jobs.views import input_form
from jobs.views.input_form import Sent
from jobs.views.places import before_in, id_in, starter_of, why_not
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of

MISSED: Final[Mapping[str, str]] = {
    Missed.ONCE: "Run once, for all of them together",
    Missed.SKIP: "Skip them: go on with the next due time",
    Missed.ALL: "Run each of them, the last 24 at most",
}
OVERLAP: Final[Mapping[str, str]] = {
    Overlap.SKIP: "Skip a due time while its last job still runs",
    Overlap.ALLOW: "Start another job beside it",
}
TYPED: Final = ("name", "cron", "zone", "missed", "overlap")


@dataclass(frozen=True, slots=True)
class _Form:
    """What is typed beside the input, and what is wrong with it by field."""

    typed: Mapping[str, str]
    wrong: Mapping[str, str]
    shown: str = ""  # the routine that is changed


@require_GET
def routines(request: HttpRequest) -> HttpResponse:
    """All of them by name, with when each is due next and what became of its last due time."""
    seat = seat_of(request)
    rows, now = queries.routine_list(seat.tenant)
    context = {"rows": rows, "now": now, "why_not": why_not(seat) or ""}
    return answer(request, "jobs/routines.html", context, parts=["routines-list"])


@require_http_methods(["GET", "HEAD", "POST"])
def new_routine(request: HttpRequest) -> HttpResponse:
    """Add one."""
    seat = seat_of(request)
    if request.method != "POST":
        choices = agent_choices(seat.tenant)
        chosen = input_form.chosen_of(choices, request.GET.get("agent", ""))
        typed = {"name": "", "cron": "30 7 * * MON-FRI", "zone": queries.last_zone(seat.tenant)}
        typed |= {"missed": Missed.ONCE.value, "overlap": Overlap.SKIP.value}
        return _show(request, Sent(input_form.begun(chosen, {}, as_json=False), None), _Form(typed, {}))
    return _posted(request, starter_of(request), "")


@require_http_methods(["GET", "HEAD", "POST"])
def change_routine(request: HttpRequest, shown: str) -> HttpResponse:
    """Change one. Its jobs count from then on as those of whoever saves it."""
    seat = seat_of(request)
    row = _page(seat, shown).row
    if row.standing == Standing.REMOVED:
        raise Http404
    if request.method != "POST":
        choices = agent_choices(seat.tenant)
        chosen = next((one for one in choices if one.name == row.agent), None)
        typed = {name: str(getattr(row, name)) for name in TYPED}
        begun = input_form.begun(chosen, dict(row.given), as_json=False)
        return _show(request, Sent(replace(begun, agent=row.agent, title=row.title), None), _Form(typed, {}, shown))
    return _posted(request, starter_of(request), shown)


@require_GET
def routine(request: HttpRequest, shown: str) -> HttpResponse:
    """One routine: when it is due, and what became of its due times."""
    seat = seat_of(request)
    return _detail(request, seat, shown)


@require_POST
def run_routine(request: HttpRequest, shown: str) -> HttpResponse:
    """Start its job now, as whoever presses the button."""
    seat = starter_of(request)
    once, pk = request.POST.get("once", ""), id_in(ids.ROUTINE, shown)
    try:
        job = operations.run_now(
            tenant=seat.tenant, routine=pk, person=seat.person_id, once=once, actor=actor_of(request)
        )
    except CannotStart as error:
        return _detail(request, seat, shown, error=f"Nothing was started: {error}.", status=409)
    except BadRoutine as error:
        raise Http404 from error
    return HttpResponseRedirect(reverse("job", args=[ids.show(ids.JOB, job)]))


@require_POST
def turn_routine(request: HttpRequest, shown: str) -> HttpResponse:
    """Pause it, or let it go on."""
    seat, on, pk = starter_of(request), request.POST.get("on", ""), id_in(ids.ROUTINE, shown)
    if on not in ("yes", "no"):
        return _detail(request, seat, shown, error="A routine goes on by yes and is paused by no.", status=400)
    _page(seat, shown)
    try:
        operations.turn(tenant=seat.tenant, routine=pk, on=on == "yes", actor=actor_of(request))
    except BadRoutine as error:
        return _detail(request, seat, shown, error=str(error), status=409)
    messages.success(request, "It goes on with its next due time." if on == "yes" else "It is paused.")
    return HttpResponseRedirect(reverse("routine", args=[shown]))


@require_POST
def remove_routine(request: HttpRequest, shown: str) -> HttpResponse:
    """Remove it; its jobs stay."""
    seat = starter_of(request)
    try:
        name = operations.remove(tenant=seat.tenant, routine=id_in(ids.ROUTINE, shown), actor=actor_of(request))
    except BadRoutine as error:
        raise Http404 from error
    messages.success(request, f"Routine {name} is removed. The jobs that it started stay.")
    return HttpResponseRedirect(reverse("routines"))


def _posted(request: HttpRequest, seat: Seat, shown: str) -> HttpResponse:
    choices = agent_choices(seat.tenant)
    form = _Form({name: request.POST.get(name, "").strip()[:200] for name in TYPED}, {}, shown)
    if request.GET.get("do") == "when":
        return answer(request, "jobs/routine_form.html#when", {"when": _when(seat, form)})
    sent = input_form.sent(request, choices)
    if sent.given is None:
        return _show(request, sent, form)
    title = sent.typed.title
    wanted = Wanted(agent=sent.typed.agent, title=title, given=sent.given, **form.typed)
    try:
        pk = _saved(request, seat, shown, wanted)
    except BadRoutine as error:
        return _show(request, _refused(sent, error), replace(form, wrong=_beside(error)))
    messages.success(request, "Saved. Its jobs count as started by you." if shown else "The routine is there.")
    return HttpResponseRedirect(reverse("routine", args=[ids.show(ids.ROUTINE, pk)]))


def _saved(request: HttpRequest, seat: Seat, shown: str, wanted: Wanted) -> UUID:
    who: dict[str, Any] = {"person": seat.person_id, "actor": actor_of(request)}
    if not shown:
        return operations.make(tenant=seat.tenant, wanted=wanted, **who)
    operations.change(tenant=seat.tenant, routine=id_in(ids.ROUTINE, shown), wanted=wanted, **who)
    return id_in(ids.ROUTINE, shown)


def _beside(error: BadRoutine) -> dict[str, str]:
    return {field: what for field, what in error.troubles if field in TYPED}


def _refused(sent: Sent, error: BadRoutine) -> Sent:
    """The form once more: with what is wrong with the input beside its fields, and the rest above."""
    of_input = tuple((path, what) for path, what in error.troubles if path not in TYPED)
    told = "" if error.troubles and (sent.typed.fields or not of_input) else str(error)
    return Sent(sent.typed, None, told, of_input, 422)


def _show(request: HttpRequest, sent: Sent, form: _Form) -> HttpResponse:
    seat = seat_of(request)
    choices = agent_choices(seat.tenant)
    context = input_form.context(choices, sent.typed, error=sent.error, wrong=sent.wrong) | {
        "form": form,
        "when": _when(seat, form),
        "missed": MISSED,
        "overlap": OVERLAP,
        "zones": zones(),
        "why_not": why_not(seat) or "",
        "here": reverse("change-routine", args=[form.shown]) if form.shown else reverse("new-routine"),
    }
    status = 422 if form.wrong else sent.status
    return answer(request, "jobs/routine_form.html", context, parts=["job-input"], status=status)


def _when(seat: Seat, form: _Form) -> Mapping[str, Any]:
    """What the schedule that is typed says, or what is wrong with it."""
    try:
        words, coming = queries.said_of(seat.tenant, form.typed["cron"], form.typed["zone"])
    except BadSchedule as error:
        return {"bad": f"{str(error)[:1].upper()}{str(error)[1:]}."}
    return {"words": words, "coming": coming}


def _detail(request: HttpRequest, seat: Seat, shown: str, *, error: str = "", status: int = 200) -> HttpResponse:
    found = _page(seat, shown, before=before_in(request, ids.RUN))
    context = {
        "page": found,
        "row": found.row,
        "why_not": why_not(seat) or "",
        "error": error,
        "missed": MISSED[found.row.missed],
        "overlap": OVERLAP[found.row.overlap],
        "first": "before" not in request.GET,
        "once": get_random_string(24),
    }
    return answer(request, "jobs/routine.html", context, parts=["routine-page"], status=status)


def _page(seat: Seat, shown: str, *, before: UUID | None = None) -> RoutinePage:
    found = queries.routine_page(seat.tenant, id_in(ids.ROUTINE, shown), before=before)
    if found is None:
        raise Http404
    return found
