"""API tokens: a person makes and revokes their own; admins see and revoke everybody's."""

import secrets
from collections.abc import Mapping
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from tenants.models import Role
from tenants.operations import tokens as operations
from tenants.operations.tokens import DAYS, BadToken
from tenants.queries import tokens as queries
from tenants.rules import bearers
from tenants.rules.bearers import SCOPES, Scope
from tenants.views.place import actor_of, seat_of


@require_GET
def tokens(request: HttpRequest) -> HttpResponse:
    """All of one's own; for admins everybody's."""
    seat = seat_of(request)
    rows, now = queries.tokens_of(seat)
    context = {"rows": rows, "now": now, "all": seat.may(Role.ADMIN), "scopes": SCOPES}
    return answer(request, "settings/tokens.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_token(request: HttpRequest) -> HttpResponse:
    """Make one; it is shown this once."""
    seat = seat_of(request)
    typed = {"name": "", "agent": "", "days": "90", "patience": str(bearers.PATIENCE), "scopes": [Scope.READ.value]}
    if request.method != "POST":
        return _form(request, typed)
    typed |= {name: request.POST.get(name, "").strip()[:200] for name in ("name", "agent", "days", "patience")}
    typed["scopes"] = request.POST.getlist("scope")[:10]
    token = bearers.written("".join(secrets.choice(bearers.DIGITS) for _ in range(bearers.DRAWN)))
    days = str(typed["days"])
    try:
        operations.make(
            seat=seat,
            token=token,
            name=str(typed["name"]),
            scopes=list(typed["scopes"]),
            agent=str(typed["agent"])[:64],
            days=None if days == "never" else _number(days),
            actor=actor_of(request),
            patience=_number(str(typed["patience"]) or str(bearers.PATIENCE)),
        )
    except BadToken as refused:
        return _form(request, typed, error=str(refused), status=422)
    return answer(request, "settings/token_made.html", {"token": token, **typed})


@require_POST
def revoke_token(request: HttpRequest, shown: str) -> HttpResponse:
    """Revoke one's own, or as an admin anybody's. It counts no more from this moment on."""
    seat = seat_of(request)
    owner = None if seat.may(Role.ADMIN) else seat.person_id
    name = operations.revoke(tenant=seat.tenant, token_id=_id(shown), owner=owner, actor=actor_of(request))
    if name is None:
        raise Http404
    messages.success(request, f"Token {name} is revoked.")
    return HttpResponseRedirect(reverse("tokens"))


def _form(request: HttpRequest, typed: Mapping[str, object], *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    context = {
        "typed": typed,
        "scopes": SCOPES,
        "days": DAYS,
        "error": error,
        "why_not_start": queries.why_not_start(seat),
    }
    return answer(request, "settings/new_token.html", context, status=status)


def _number(text: str) -> int:
    """What was typed as a number; 0, which is refused where it matters, for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _id(shown: str) -> UUID:
    try:
        return ids.parse(ids.TOKEN, shown)
    except ids.BadId as error:
        raise Http404 from error
