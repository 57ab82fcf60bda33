"""An invitation's address: whoever opens it reads what is offered; a POST accepts it, once (CASES A26)."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from tenants.operations import invitations
from tenants.operations.invitations import BadInvitation
from tenants.queries.people import Offer, offer
from tenants.rules.people import ROLES
from tenants.views.entering import enter
from tenants.views.place import CHOSEN, HOW, address_of

GONE = "There is no such invitation. It may be mistyped: copy the whole address, or ask for a new one."


@login_not_required
@never_cache
@sensitive_variables("password", "token")
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """What is offered. A POST makes a person of the name and password that were typed, or takes the one signed in."""
    found = offer(invitations.hash_of(token))
    if found is None or found.trouble:
        return TemplateResponse(
            request, "settings/no_invitation.html", {"why": found.trouble if found else GONE}, status=404
        )
    if request.method != "POST":
        return _page(request, found, token)
    return _join_as_me(request, found, token) if request.user.is_authenticated else _join_as_new(request, found, token)


def _join_as_me(request: HttpRequest, found: Offer, token: str) -> HttpResponse:
    how = f"{request.session.get(HOW, 'password')}, {address_of(request)}"
    try:
        tenant = invitations.accept(token=token, person=request.user, how=how)  # type: ignore[arg-type]  # signed in
    except BadInvitation as refused:
        return _page(request, found, token, error=str(refused))
    request.session[CHOSEN] = str(tenant)
    messages.success(request, f"You joined {found.tenant_name}.")
    return HttpResponseRedirect(reverse("overview"))


def _join_as_new(request: HttpRequest, found: Offer, token: str) -> HttpResponse:
    typed, password = request.POST.get("username", "").strip()[:300], request.POST.get("password", "")
    try:
        person = invitations.accept_as_new(
            token=token, username=typed, password=password, how=f"invitation, {address_of(request)}"
        )
    except BadInvitation as refused:
        return _page(request, found, token, typed=typed, error=str(refused))
    enter(request, person, "password", tenant=found.tenant)
    messages.success(request, f"Welcome. You joined {found.tenant_name}.")
    return HttpResponseRedirect(reverse("overview"))


def _page(request: HttpRequest, found: Offer, token: str, *, typed: str = "", error: str = "") -> HttpResponse:
    context = {
        "offer": found,
        "does": ROLES[found.role],
        "typed": typed,
        "error": error,
        "here": reverse("invitation", args=[token]),
        "token": token,
        "provider": settings.OZ0_OIDC_NAME,
    }
    return TemplateResponse(request, "settings/invitation.html", context, status=422 if error else 200)
