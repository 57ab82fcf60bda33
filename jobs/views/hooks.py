"""Hooks: addresses that start an agent for each event. Whoever may start jobs makes them; everybody sees what came."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from catalog.queries.agents import AgentChoice, agent_choices
from jobs.operations import hooks as operations
from jobs.operations.hooks import BadHook, Wanted
from jobs.queries import hooks as queries
from jobs.queries.hooks import HookPage
from jobs.rules.event_signing import SAYS, drawn
from jobs.rules.starters import Signing, Standing
from jobs.views import input_form, mapping_form
from jobs.views.mapping_form import HOW, Row
from jobs.views.places import before_in, id_in, starter_of, why_not
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of

SECRET = 32  # bytes
OWN_SECRET = frozenset({Signing.STRIPE, Signing.SLACK})  # which give one, and take none


@dataclass(frozen=True, slots=True)
class _Form:
    """What stands in the form, and what is wrong with it by field."""

    name: str
    agent: str
    signing: str
    rows: tuple[Row, ...]
    wrong: Mapping[str, str]
    error: str = ""
    shown: str = ""  # the hook that is changed
    example: str = ""
    gives: str = ""


@require_GET
def hooks(request: HttpRequest) -> HttpResponse:
    """All of them by name, with what came last."""
    seat = seat_of(request)
    rows, now = queries.hook_list(seat.tenant)
    return answer(
        request, "jobs/hooks.html", {"rows": rows, "now": now, "why_not": why_not(seat) or ""}, parts=["hooks-list"]
    )


@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def new_hook(request: HttpRequest) -> HttpResponse:
    """Add one. A secret that the studio draws is shown once, on the page that answers."""
    choices = agent_choices(seat_of(request).tenant)
    if request.method != "POST":
        chosen = input_form.chosen_of(choices, request.GET.get("agent", ""))
        rows = mapping_form.rows_of(chosen.spec if chosen else None, {})
        form = _Form("", chosen.name if chosen else "", Signing.STANDARD, rows, {})
        return _show(request, choices, form)
    seat = starter_of(request)
    form, wanted = _sent(request, choices, "")
    if wanted is None:
        return _show(request, choices, form)
    typed = request.POST.get("secret", "").strip()
    secret = typed or drawn(secrets.token_bytes(SECRET))
    try:
        if not typed and wanted.signing in OWN_SECRET:
            raise BadHook("", ("secret", f"{SAYS[Signing(wanted.signing)][0]} gives you its signing secret: enter it."))
        who: dict[str, Any] = {"person": seat.person_id, "actor": actor_of(request)}
        made = operations.make(tenant=seat.tenant, wanted=wanted, secret=secret, **who)
    except BadHook as error:
        return _show(request, choices, _refused(form, error))
    return _detail(request, seat, ids.show(ids.HOOK, made), secret="" if typed else secret, made=True)


@require_http_methods(["GET", "HEAD", "POST"])
def change_hook(request: HttpRequest, shown: str) -> HttpResponse:
    """Change one, which only the person does whose it is."""
    seat = seat_of(request)
    row = _page(seat, shown).row
    if row.standing == Standing.REMOVED:
        raise Http404
    choices = agent_choices(seat.tenant)
    if request.method != "POST":
        rows = mapping_form.rows_of(input_form.spec_of(choices, row.agent), row.mapped)
        return _show(request, choices, _Form(row.name, row.agent, row.signing, rows, {}, shown=shown))
    seat = starter_of(request)
    form, wanted = _sent(request, choices, shown)
    form = replace(form, signing=row.signing)
    if wanted is None:
        return _show(request, choices, form)
    who: dict[str, Any] = {"person": seat.person_id, "actor": actor_of(request)}
    wanted = replace(wanted, signing=row.signing)
    try:
        operations.change(tenant=seat.tenant, hook=id_in(ids.HOOK, shown), wanted=wanted, **who)
    except BadHook as error:
        return _show(request, choices, _refused(form, error))
    messages.success(request, "Saved. Its jobs count as started by you.")
    return HttpResponseRedirect(reverse("hook-page", args=[shown]))


@require_GET
def hook(request: HttpRequest, shown: str) -> HttpResponse:
    """One hook: its address, how its events are signed and mapped, and what came."""
    return _detail(request, seat_of(request), shown)


@require_POST
def turn_hook(request: HttpRequest, shown: str) -> HttpResponse:
    """Pause it, or let it go on."""
    seat, on, pk = starter_of(request), request.POST.get("on", ""), id_in(ids.HOOK, shown)
    if on not in ("yes", "no"):
        return _detail(request, seat, shown, error="A hook goes on by yes and is paused by no.", status=400)
    _page(seat, shown)
    try:
        operations.turn(tenant=seat.tenant, hook=pk, on=on == "yes", actor=actor_of(request))
    except BadHook as error:
        return _detail(request, seat, shown, error=str(error), status=409)
    messages.success(request, "It takes events." if on == "yes" else "It is paused, and refuses what comes.")
    return HttpResponseRedirect(reverse("hook-page", args=[shown]))


@sensitive_variables()
@require_POST
def hook_secret(request: HttpRequest, shown: str) -> HttpResponse:
    """Take another secret; one that the studio draws is shown once, on the page that answers."""
    seat, pk = starter_of(request), id_in(ids.HOOK, shown)
    row = _page(seat, shown).row
    typed = request.POST.get("secret", "").strip()
    secret = typed or drawn(secrets.token_bytes(SECRET))
    if not typed and row.signing in OWN_SECRET:
        return _detail(request, seat, shown, error=f"{row.sender} gives you its signing secret: enter it.", status=422)
    at_once = "at_once" in request.POST
    try:
        who: dict[str, Any] = {"person": seat.person_id, "actor": actor_of(request)}
        operations.new_secret(tenant=seat.tenant, hook=pk, secret=secret, at_once=at_once, **who)
    except BadHook as error:
        return _detail(request, seat, shown, error=str(error), status=422)
    return _detail(request, seat, shown, secret="" if typed else secret, made=True)


@require_POST
def remove_hook(request: HttpRequest, shown: str) -> HttpResponse:
    """Remove it; its jobs and the log of what came stay."""
    seat = starter_of(request)
    try:
        name = operations.remove(tenant=seat.tenant, hook=id_in(ids.HOOK, shown), actor=actor_of(request))
    except BadHook as error:
        raise Http404 from error
    messages.success(request, f"Hook {name} is removed: its address answers no more.")
    return HttpResponseRedirect(reverse("hooks"))


def _sent(request: HttpRequest, choices: Sequence[AgentChoice], shown: str) -> tuple[_Form, Wanted | None]:
    """What a form sent, and what it wants; None where it is to be shown once more, with what is wrong or tried."""
    agent, signing = request.POST.get("agent", "")[:64], request.POST.get("signing", Signing.STANDARD)
    rows = mapping_form.sent(request, input_form.spec_of(choices, agent))
    name, example = request.POST.get("name", "")[:200], request.POST.get("example", "")[:100_000]
    form = _Form(name, agent, signing, rows, {}, shown=shown, example=example)
    do = request.POST.get("do", "") or request.GET.get("do", "")
    if do == "show":
        return form, None
    mapped, wrong = mapping_form.read(rows)
    if wrong:
        return replace(form, wrong=wrong), None
    if do == "try":
        gives, not_there, bad = mapping_form.tried(mapped, example)
        return replace(form, gives=gives, wrong=not_there | ({"example": bad} if bad else {})), None
    return form, Wanted(name, agent, signing, mapped)


def _refused(form: _Form, error: BadHook) -> _Form:
    wrong = dict(error.troubles)
    return replace(form, wrong=wrong, error="" if wrong else str(error))


def _show(request: HttpRequest, choices: Sequence[AgentChoice], form: _Form) -> HttpResponse:
    rows = [replace(row, wrong=form.wrong.get(row.name, "")) for row in form.rows]
    context = {
        "form": form,
        "rows": rows,
        "how": HOW,
        "agents": choices,
        "any": any(one.spec is not None for one in choices),
        "known": any(one.name == form.agent for one in choices),
        "signings": [(one.value, *SAYS[one], one in OWN_SECRET) for one in Signing],
        "sender": SAYS[Signing(form.signing)][0] if form.signing in set(Signing) else "",
        "why_not": why_not(seat_of(request)) or "",
        "here": reverse("change-hook", args=[form.shown]) if form.shown else reverse("new-hook"),
    }
    status = 422 if form.wrong or form.error else 200
    return answer(request, "jobs/hook_form.html", context, parts=["mapping"], status=status)


def _detail(
    request: HttpRequest,
    seat: Seat,
    shown: str,
    *,
    secret: str = "",
    made: bool = False,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    found = _page(seat, shown, before=before_in(request, ids.DELIVERY))
    context = {
        "page": found,
        "row": found.row,
        "address": settings.OZ0_URL.rstrip("/") + reverse("hook", args=[shown]),
        "secret": secret,
        "made": made,
        "own_secret": found.row.signing in OWN_SECRET,
        "why_not": why_not(seat) or "",
        "error": error,
        "first": "before" not in request.GET,
    }
    return answer(request, "jobs/hook.html", context, parts=["deliveries"], status=status)


def _page(seat: Seat, shown: str, *, before: UUID | None = None) -> HookPage:
    found = queries.hook_page(seat.tenant, id_in(ids.HOOK, shown), before=before)
    if found is None:
        raise Http404
    return found
