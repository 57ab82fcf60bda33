"""The Budgets pages: everybody sees what is counted; admins make projects, limits, keys; operators settle amounts."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from base.zones import zones
from budgets.errors import BadProject, FarAbove, NotFound, NotOpen
from budgets.models import Project
from budgets.operations import keys, projects, settling
from budgets.queries import pages
from budgets.rules.identity import parse
from budgets.rules.words import KeyScope, LimitMode, Period, Unconfirmed
from tenants.models import Role
from tenants.rules.bearers import DIGITS, DRAWN, written
from tenants.views.place import actor_of, seat_of, seat_with

LONGEST_NOTE: Final = 2_000


@require_GET
def budgets(request: HttpRequest) -> HttpResponse:
    """All projects with their limits and what is counted of each."""
    seat = seat_of(request)
    rows, now = pages.project_list(seat.tenant)
    context = {"rows": rows, "now": now, "admin": seat.may(Role.ADMIN)}
    return answer(request, "budgets/budgets.html", context, parts=["budgets-list"])


@require_http_methods(["GET", "HEAD", "POST"])
def new_budget(request: HttpRequest) -> HttpResponse:
    """Add a project."""
    typed = {"name": "", "zone": "UTC", "unconfirmed": Unconfirmed.IN_DOUBT.value}
    if request.method != "POST":
        return _form(request, typed)
    seat = seat_with(request, Role.ADMIN)
    typed = {name: request.POST.get(name, "")[:100] for name in typed}
    project = ids.new()
    try:
        projects.make(tenant=seat.tenant, project=project, actor=actor_of(request), **typed)
    except BadProject as error:
        return _form(request, typed, error=str(error), status=422)
    return HttpResponseRedirect(reverse("budget", args=[ids.show(ids.PROJECT, project)]))


@require_GET
def budget(request: HttpRequest, shown: str) -> HttpResponse:
    """One project."""
    return _project(request, shown)


@require_POST
def set_limit(request: HttpRequest, shown: str) -> HttpResponse:
    """Add, change or remove a limit."""
    seat, project = seat_with(request, Role.ADMIN), _id(ids.PROJECT, shown)
    said: dict[str, Any] = {name: request.POST.get(name, "")[:60] for name in ("period", "mode")}
    whose: dict[str, Any] = {"tenant": seat.tenant, "project": project, "actor": actor_of(request)}
    try:
        if request.POST.get("do") == "remove":
            if not projects.remove_limit(**said, **whose):
                raise Http404
            messages.success(request, f"The limit per {said['period']} is removed.")
        else:
            projects.set_limit(amount=request.POST.get("amount", "")[:60], **said, **whose)
            messages.success(request, f"The limit per {said['period']} holds from the next check on.")
    except BadProject as error:
        return _project(
            request,
            shown,
            typed={**said, "limit": request.POST.get("amount", "")[:60], "wrong": str(error)},
            status=422,
        )
    except Project.DoesNotExist as error:
        raise Http404 from error
    return HttpResponseRedirect(reverse("budget", args=[shown]))


@require_POST
def new_key(request: HttpRequest, shown: str) -> HttpResponse:
    """Make a key; it is shown this once."""
    seat, project = seat_with(request, Role.ADMIN), _id(ids.PROJECT, shown)
    name, scope = request.POST.get("name", "").strip()[:200], request.POST.get("scope", "")
    secret = _secret()
    try:
        if scope not in set(KeyScope):
            raise BadProject("A key may do everything (full), or look things up (read_only).")
        keys.make(
            tenant=seat.tenant,
            project=project,
            secret=secret,
            name=name,
            scope=KeyScope(scope),
            actor=actor_of(request),
        )
    except BadProject as error:
        return _project(request, shown, error=str(error), status=422)
    except Project.DoesNotExist as error:
        raise Http404 from error
    return _made(request, shown, name, secret)


@require_POST
def rotate_key(request: HttpRequest, shown: str) -> HttpResponse:
    """Make another like it, which is shown this once; the old one counts for a day more."""
    seat, secret = seat_with(request, Role.ADMIN), _secret()
    key = _id(ids.BUDGET_KEY, shown)
    try:
        name = keys.rotate(tenant=seat.tenant, key=key, secret=secret, actor=actor_of(request))
    except BadProject as error:
        return _project(request, pages.project_of_key(seat.tenant, key), error=str(error), status=422)
    if name is None:
        raise Http404
    return _made(request, pages.project_of_key(seat.tenant, key), name, secret)


@require_POST
def revoke_key(request: HttpRequest, shown: str) -> HttpResponse:
    """Let it count no more."""
    seat, key = seat_with(request, Role.ADMIN), _id(ids.BUDGET_KEY, shown)
    name = keys.revoke(tenant=seat.tenant, key=key, actor=actor_of(request))
    if name is None:
        raise Http404
    messages.success(request, f"Key {name} is revoked.")
    return HttpResponseRedirect(reverse("budget", args=[pages.project_of_key(seat.tenant, key)]))


@require_GET
def operation(request: HttpRequest, shown: str) -> HttpResponse:
    """One operation: what is known of each of its checks, and what may be done next."""
    name = parse(shown)
    seat = seat_of(request)
    page = pages.operation_page(seat.tenant, name) if name is not None else None
    if page is None:
        raise Http404
    context = {"page": page, "operator": seat.may(Role.OPERATOR)}
    return answer(request, "budgets/operation.html", context, parts=["operation-page"])


@require_POST
def release(request: HttpRequest, shown: str) -> HttpResponse:
    """Count an amount in doubt no more."""

    def act(reservation: UUID, whose: Mapping[str, Any]) -> str:
        settling.release(reservation=reservation, **whose)
        return "It is released, and counted no more."

    return _settled(request, shown, act)


@require_POST
def confirm(request: HttpRequest, shown: str) -> HttpResponse:
    """Say what an amount in doubt has cost, or correct what a person has said: `was` is what they saw."""

    def act(reservation: UUID, whose: Mapping[str, Any]) -> str:
        typed = request.POST.get("amount", "")[:60]
        said: dict[str, Any] = {
            "amount": projects.amount_of(typed),
            "sure": request.POST.get("sure", "") == typed != "",
        }
        if was := request.POST.get("was", ""):
            settling.correct(reservation=reservation, was=projects.amount_of(was), **said, **whose)
            return "It is corrected."
        settling.confirm_as_person(reservation=reservation, **said, **whose)
        return "It is confirmed, and counted as spent."

    return _settled(request, shown, act)


def _settled(request: HttpRequest, shown: str, act: Callable[[UUID, Mapping[str, Any]], str]) -> HttpResponse:
    seat = seat_with(request, Role.OPERATOR)
    reservation = parse(shown)
    project = pages.project_of_reservation(seat.tenant, reservation) if reservation is not None else None
    if reservation is None or project is None:
        raise Http404
    note = request.POST.get("note", "").replace("\0", "").strip()[:LONGEST_NOTE]
    typed = {"of": reservation, "note": note, **{name: request.POST.get(name, "")[:60] for name in ("amount", "was")}}
    try:
        told = act(reservation, {"tenant": seat.tenant, "note": note, "actor": actor_of(request)})
    except NotOpen as error:
        return _project(request, project, error=f"Nothing was changed: {error}.", status=409)
    except FarAbove as error:
        wrong = f"Nothing was changed yet: {error}. If the provider's records say so, send it once more."
        return _project(request, project, typed={**typed, "wrong": wrong, "sure": True}, status=422)
    except BadProject as error:
        return _project(request, project, typed={**typed, "wrong": str(error)}, status=422)
    except NotFound as error:
        raise Http404 from error
    messages.success(request, told)
    return HttpResponseRedirect(reverse("budget", args=[project]))


def _project(
    request: HttpRequest, shown: str, *, error: str = "", typed: Mapping[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """The page; `typed` is what was sent of a limit, or of an amount, and what is wrong with it."""
    seat = seat_of(request)
    before, amounts = (parse(request.GET.get(name, "")) for name in ("before", "amounts"))
    typed = typed or {}
    amounts = typed.get("of", amounts)
    page = pages.project_page(seat.tenant, _id(ids.PROJECT, shown), before=before, amounts_from=amounts)
    if page is None:
        raise Http404
    context = {
        "page": page,
        "row": page.row,
        "asked": urlencode({name: at for name, at in (("before", before), ("amounts", amounts)) if at is not None}),
        "first": before is None,
        "first_amounts": amounts is None,
        "error": error,
        "typed": typed,
        "admin": seat.may(Role.ADMIN),
        "operator": seat.may(Role.OPERATOR),
        "periods": list(Period),
        "modes": {LimitMode.HARD_DENY: "deny what does not fit", LimitMode.ALERT_ONLY: "only show it"},
        "scopes": {KeyScope.FULL: "everything", KeyScope.READ_ONLY: "looking things up"},
    }
    return answer(request, "budgets/budget.html", context, parts=["budget-page"], status=status)


def _form(request: HttpRequest, typed: Mapping[str, str], *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    context = {
        "typed": typed,
        "error": error,
        "zones": zones(),
        "why_not": "" if seat.may(Role.ADMIN) else f"Admins make projects; your role here is {seat.role}.",
    }
    return answer(request, "budgets/new_budget.html", context, status=status)


def _made(request: HttpRequest, shown: str, name: str, secret: str) -> HttpResponse:
    return answer(request, "budgets/key_made.html", {"shown": shown, "name": name, "secret": secret})


def _secret() -> str:
    return written("".join(secrets.choice(DIGITS) for _ in range(DRAWN)))


def _id(prefix: str, shown: str) -> UUID:
    try:
        return ids.parse(prefix, shown)
    except ids.BadId as error:
        raise Http404 from error
