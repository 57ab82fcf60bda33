"""People and roles: all members see who belongs to the workspace, admins change it."""

import secrets
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from tenants.models import Role
from tenants.operations import invitations as inviting
from tenants.operations import people as operations
from tenants.operations.invitations import BadInvitation
from tenants.operations.people import MayNot, NobodyThere
from tenants.queries import people as queries
from tenants.rules.people import ADMINS_CHANGE, ROLES
from tenants.views.mail import can_send, send
from tenants.views.place import actor_of, seat_of, seat_with

MOST_NOTE: Final = 2000
DAYS: Final = tuple(span.days for span in inviting.GOOD_FOR)


@require_GET
def settings_home(request: HttpRequest) -> HttpResponse:
    """The first page of the settings."""
    return HttpResponseRedirect(reverse("people"))


@require_GET
def people(request: HttpRequest) -> HttpResponse:
    """Who belongs to the workspace, and who is invited."""
    return _page(request)


@require_http_methods(["GET", "HEAD", "POST"])
def member(request: HttpRequest, shown: str) -> HttpResponse:
    """One member; a POST gives them another role."""
    seat = seat_of(request)
    pk = _id(ids.MEMBER, shown)
    if request.method != "POST":
        return _member_page(request, shown)
    role, name = request.POST.get("role", ""), queries.member_name(seat.tenant, pk)
    if name is None:
        raise Http404
    if role not in ROLES:
        return _member_page(request, shown, error=f"A role is one of: {', '.join(ROLES)}.", status=400)
    try:
        changed = operations.change_role(tenant=seat.tenant, membership=pk, role=Role(role), actor=actor_of(request))
    except MayNot as refused:
        raise PermissionDenied(str(refused)) from refused
    except NobodyThere as gone:
        raise Http404 from gone
    messages.success(request, f"{name} is {'now ' if changed else ''}{_a(role)}.")
    return HttpResponseRedirect(reverse("people"))


@require_POST
def remove(request: HttpRequest, shown: str) -> HttpResponse:
    """Take a member out of the workspace. A second press finds them gone and says so."""
    seat = seat_of(request)
    pk, note = _id(ids.MEMBER, shown), request.POST.get("note", "").strip()[:MOST_NOTE]
    if queries.member_name(seat.tenant, pk) is None:
        raise Http404
    try:
        name = operations.remove(tenant=seat.tenant, membership=pk, note=note, actor=actor_of(request))
    except MayNot as refused:
        raise PermissionDenied(str(refused)) from refused
    except NobodyThere as gone:
        raise Http404 from gone
    messages.success(request, f"{name} is removed. Their sessions have ended and their tokens are revoked.")
    return HttpResponseRedirect(reverse("people"))


@require_http_methods(["GET", "HEAD", "POST"])
def invite(request: HttpRequest) -> HttpResponse:
    """Invite somebody by a one-time address. It is sent when the studio can send mail, and shown this once."""
    seat = seat_with(request, Role.ADMIN)
    typed = {"role": Role.VIEWER.value, "email": "", "days": "7"}
    if request.method != "POST":
        return _invite_page(request, typed)
    typed = {name: request.POST.get(name, "").strip()[:300] for name in typed}
    token, days = secrets.token_urlsafe(32), typed["days"]
    try:
        if typed["role"] not in ROLES:
            raise BadInvitation(f"A role is one of: {', '.join(ROLES)}.")
        inviting.invite(
            tenant=seat.tenant,
            token=token,
            role=Role(typed["role"]),
            email=typed["email"],
            good_for=timedelta(days=int(days) if days in {str(day) for day in DAYS} else 0),
            actor=actor_of(request),
        )
    except BadInvitation as refused:
        return _invite_page(request, typed, error=str(refused), status=422)
    link = request.build_absolute_uri(reverse("invitation", args=[token]))
    sent = bool(typed["email"]) and send(
        to=typed["email"],
        subject=f"{seat.username} invites you to {seat.tenant_name}",
        template="settings/invitation_mail.txt",
        context={"by": seat.username, "tenant_name": seat.tenant_name, "link": link, "days": days, **typed},
    )
    context = {"link": link, "sent": sent, "tried": bool(typed["email"]) and can_send(), **typed, "days": int(days)}
    return answer(request, "settings/invited.html", context)


@require_POST
def revoke(request: HttpRequest, shown: str) -> HttpResponse:
    """Take an open invitation back."""
    seat = seat_with(request, Role.ADMIN)
    if inviting.revoke(tenant=seat.tenant, invitation=_id(ids.INVITATION, shown), actor=actor_of(request)):
        messages.success(request, "The invitation is taken back: its address leads nowhere now.")
    else:
        raise Http404
    return HttpResponseRedirect(reverse("people"))


def _page(request: HttpRequest) -> HttpResponse:
    seat = seat_of(request)
    found = queries.people(seat, provider=settings.OZ0_OIDC_NAME)
    context = {
        "found": found,
        "roles": ROLES,
        "why_not": None if seat.may(Role.ADMIN) else ADMINS_CHANGE,
        "provider": settings.OZ0_OIDC_NAME,
    }
    return answer(request, "settings/people.html", context)


def _member_page(request: HttpRequest, shown: str, *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    pk = _id(ids.MEMBER, shown)
    found = queries.people(seat, provider=settings.OZ0_OIDC_NAME)
    row = next((one for one in found.members if one.shown_id == ids.show(ids.MEMBER, pk)), None)
    if row is None:
        raise Http404
    context = {"row": row, "roles": ROLES, "now": found.now, "error": error, "most_note": MOST_NOTE}
    return answer(request, "settings/member.html", context, status=status)


def _invite_page(request: HttpRequest, typed: dict[str, Any], *, error: str = "", status: int = 200) -> HttpResponse:
    context = {"typed": typed, "roles": ROLES, "days": DAYS, "error": error, "sends": can_send()}
    return answer(request, "settings/invite.html", context, status=status)


def _a(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"


def _id(prefix: str, shown: str) -> UUID:
    try:
        return ids.parse(prefix, shown)
    except ids.BadId as error:
        raise Http404 from error
