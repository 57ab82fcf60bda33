"""Where notices go: the channels for admins, what was sent, and this browser's own notices for everybody."""

import secrets
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from approvals.models import Sending, Way
from approvals.operations import channels as operations
from approvals.operations.channels import Wanted
from approvals.queries.notices import ChannelRow, names_for, notices_page
from approvals.rules.channels import BadChannel, read_minutes, read_to, why_not_change
from base import ids
from base.htmx import page as answer
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of

LONGEST_WAIT: Final = 7 * 24 * 60  # minutes
SECRET: Final = 32  # bytes
TYPED: Final = ("name", "url", "allowed", "to", "agent", "tool", "after", "remind")
TICKED: Final = ("slack", "tells_end", "with_arguments")


@require_GET
def notices(request: HttpRequest) -> HttpResponse:
    """The channels and what was sent; somebody who is no admin sees what there is and how it goes, not where."""
    seat = seat_of(request)
    state = request.GET.get("state", "")
    state = state if state in set(Sending) else ""
    found = notices_page(seat.tenant, state=state, before=_parsed(ids.NOTICE, request.GET.get("before", "")))
    context = {
        "page": found,
        "state": state,
        "states": [one for one in Sending if one != Sending.CARRIED],
        "why_not": why_not_change(seat.role) or "",
        "mail": settings.OZ0_SMTP,
        "first": "before" not in request.GET,
    }
    return answer(request, "approvals/notices.html", context)


@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def new_channel(request: HttpRequest) -> HttpResponse:
    """Add a channel; a webhook's secret is shown once, on the page that answers."""
    seat = _changer(request)
    way = Way.EMAIL if (request.POST or request.GET).get("way") == Way.EMAIL else Way.WEBHOOK
    typed: Mapping[str, Any] = _typed(request) if request.method == "POST" else {}
    error = ""
    if request.method == "POST":
        secret = secrets.token_urlsafe(SECRET)
        try:
            wanted = _wanted(way, typed)
            made = operations.make(tenant=seat.tenant, way=way, wanted=wanted, secret=secret, actor=actor_of(request))
        except BadChannel as refused:
            error = str(refused)
        else:
            messages.success(request, "The channel is there. It tells of what is asked from now on; send it a test.")
            if way is Way.WEBHOOK:
                return _page(request, seat, made, secret=secret)
            return HttpResponseRedirect(reverse("channel", args=[ids.show(ids.CHANNEL, made)]))
    agents, tools = names_for(seat.tenant)
    context = {"way": way, "typed": typed, "error": error, "agents": agents, "tools": tools, "mail": settings.OZ0_SMTP}
    return answer(request, "approvals/new_channel.html", context, status=422 if error else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def channel(request: HttpRequest, shown: str) -> HttpResponse:
    """One channel; a POST changes it."""
    seat, pk = _changer(request), _id(ids.CHANNEL, shown)
    if request.method != "POST":
        return _page(request, seat, pk)
    row, typed = _row(seat, pk), _typed(request)
    try:
        operations.change(tenant=seat.tenant, channel=pk, wanted=_wanted(row.way, typed), actor=actor_of(request))
    except BadChannel as refused:
        return _page(request, seat, pk, error=str(refused), typed=typed, status=422)
    messages.success(request, "Saved.")
    return HttpResponseRedirect(reverse("channel", args=[shown]))


@require_POST
def test(request: HttpRequest, shown: str) -> HttpResponse:
    """Send a test."""
    seat, pk = _changer(request), _id(ids.CHANNEL, shown)
    try:
        operations.send_test(tenant=seat.tenant, channel=pk, actor=actor_of(request))
    except BadChannel as refused:
        return _page(request, seat, pk, error=str(refused), status=409)
    messages.success(request, "A test is on its way; below is what becomes of it.")
    return HttpResponseRedirect(reverse("channel", args=[shown]))


@sensitive_variables()
@require_POST
def secret(request: HttpRequest, shown: str) -> HttpResponse:
    """Sign by a new secret, which is shown once, on the page that answers."""
    seat, pk = _changer(request), _id(ids.CHANNEL, shown)
    drawn = secrets.token_urlsafe(SECRET)
    try:
        operations.new_secret(tenant=seat.tenant, channel=pk, secret=drawn, actor=actor_of(request))
    except BadChannel as refused:
        return _page(request, seat, pk, error=str(refused), status=409)
    return _page(request, seat, pk, secret=drawn)


@require_POST
def turn(request: HttpRequest, shown: str) -> HttpResponse:
    """Turn a channel on or off."""
    seat, pk, on = _changer(request), _id(ids.CHANNEL, shown), request.POST.get("on", "")
    if on not in ("yes", "no"):
        return _page(request, seat, pk, error="A channel is turned on by yes and off by no.", status=400)
    try:
        operations.turn(tenant=seat.tenant, channel=pk, on=on == "yes", actor=actor_of(request))
    except BadChannel as refused:
        return _page(request, seat, pk, error=str(refused), status=409)
    messages.success(request, "It is on, for what is asked from now on." if on == "yes" else "It is off.")
    return HttpResponseRedirect(reverse("channel", args=[shown]))


@require_POST
def remove(request: HttpRequest, shown: str) -> HttpResponse:
    """Remove a channel."""
    seat, pk = _changer(request), _id(ids.CHANNEL, shown)
    row = _row(seat, pk)
    operations.remove(tenant=seat.tenant, channel=pk, actor=actor_of(request))
    messages.success(request, f"Channel {row.name} is removed.")
    return HttpResponseRedirect(reverse("notices"))


@require_POST
def again(request: HttpRequest, shown: str) -> HttpResponse:
    """Send a notice once more."""
    seat = _changer(request)
    try:
        operations.send_again(tenant=seat.tenant, delivery=_id(ids.NOTICE, shown), actor=actor_of(request))
    except BadChannel as refused:
        messages.error(request, f"Not sent again: {refused}.")
    else:
        messages.success(request, "It is on its way again.")
    return HttpResponseRedirect(reverse("notices"))


def _page(
    request: HttpRequest,
    seat: Seat,
    pk: UUID,
    *,
    secret: str = "",
    error: str = "",
    typed: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """One channel with what it was sent; `secret` is shown when it was drawn just now."""
    row = _row(seat, pk)
    found = notices_page(seat.tenant, channel=pk, before=_parsed(ids.NOTICE, request.GET.get("before", "")))
    kept = {
        "name": row.name,
        "url": row.url,
        "allowed": "\n".join(row.allowed),
        "to": "\n".join(row.to),
        "agent": row.agent,
        "tool": row.tool,
        "after": row.after_minutes or "",
        "remind": row.remind_minutes or "",
        **{name: getattr(row, name) for name in TICKED},
    }
    agents, tools = names_for(seat.tenant)
    context = {
        "row": row,
        "way": row.way,
        "page": found,
        "typed": typed or kept,
        "error": error,
        "secret": secret,
        "agents": agents,
        "tools": tools,
        "mail": settings.OZ0_SMTP,
        "why_not": "",
        "first": "before" not in request.GET,
    }
    return answer(request, "approvals/channel.html", context, status=status)


def _row(seat: Seat, pk: UUID) -> ChannelRow:
    found = notices_page(seat.tenant, channel=pk).channels
    if not found:
        raise Http404
    return found[0]


def _changer(request: HttpRequest) -> Seat:
    seat = seat_of(request)
    if why_not := why_not_change(seat.role):
        raise PermissionDenied(why_not)
    return seat


def _typed(request: HttpRequest) -> dict[str, Any]:
    typed: dict[str, Any] = {name: request.POST.get(name, "").strip()[:4_000] for name in TYPED}
    return typed | {name: name in request.POST for name in TICKED}


def _wanted(way: Way, typed: Mapping[str, Any]) -> Wanted:
    """What the form asks for. Raises `BadChannel`."""
    return Wanted(
        name=typed["name"],
        url=typed["url"],
        allowed=typed["allowed"].split(),
        slack=typed["slack"],
        to=read_to(typed["to"]) if way is Way.EMAIL else (),
        agent=typed["agent"][:64],
        tool=typed["tool"][:48],
        after=read_minutes(typed["after"], "how long a question waits before it is told here", most=LONGEST_WAIT),
        remind=read_minutes(typed["remind"], "how long before it expires it is told again", most=LONGEST_WAIT),
        tells_end=typed["tells_end"],
        with_arguments=typed["with_arguments"],
    )


def _id(prefix: str, shown: str) -> UUID:
    try:
        return ids.parse(prefix, shown)
    except ids.BadId as error:
        raise Http404 from error


def _parsed(prefix: str, shown: str) -> UUID | None:
    try:
        return ids.parse(prefix, shown) if shown else None
    except ids.BadId:
        return None
