"""Signing in at the provider that the settings name (OpenID Connect): leaving for it, and coming back.

Leaving goes by a page of its own: browsers hold a form to the addresses its page allows (`form-action`), also after
a redirect, and the provider's address is none of them.
"""

import logging
from typing import Any, Final
from urllib.parse import urlsplit

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from tenants.models import User
from tenants.operations import identities
from tenants.operations.identities import Claims, Stranger
from tenants.operations.invitations import BadInvitation
from tenants.views.entering import enter
from tenants.views.place import actor_of, address_of
from tenants.views.sign_in import safe_next, sign_in_form

log = logging.getLogger(__name__)
PROVIDER: Final = "provider"  # the one that the settings name, as the library calls it
BEGUN: Final = "at_provider"  # the session's key for what its person went to the provider for
NOT_WORKED_OUT: Final = "Signing in there did not work out, or took too long. Try again."
ODD: Final = (OSError, ValueError, KeyError, TypeError, AttributeError)  # of its HTTP client, and of odd metadata
REFUSED: Final = "The provider's sign-in address is refused: it is no https:// address."
AWAY: Final = "The provider cannot be reached just now. Try again, or sign in another way."
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class _Checked(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # the library has no types
    """The library's way to read what a provider says, with the signature looked at however it has come."""

    def _decode_id_token(self, app: Any, id_token: str) -> Any:
        return jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )


@login_not_required
@never_cache
@require_POST
def sign_in_with(request: HttpRequest) -> HttpResponse:
    """Send somebody to the provider: to sign in, to join by an invitation, or to link it to who they are."""
    if not settings.OZ0_OIDC_NAME:
        raise Http404
    wanted = {"next": safe_next(request), "invitation": request.POST.get("invitation", "")[:200]}
    if request.user.is_authenticated:
        wanted["link"] = str(request.user.pk)
    try:
        found = get_adapter(request).get_provider(request, PROVIDER)
        address = found.redirect(request, process="login").headers["Location"]
    except SuspiciousOperation:  # no redirect goes to such a scheme
        log.warning("the sign-in provider names a sign-in address that is refused")
        return failed(request, REFUSED)
    except ODD as error:
        log.warning("the sign-in provider cannot be used (%s): %s", type(error).__name__, error)
        return failed(request, AWAY)
    place = urlsplit(address)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in LOOPBACK):
        log.warning("the sign-in provider names a sign-in address that is refused: its scheme is %s", place.scheme)
        return failed(request, REFUSED)
    request.session[BEGUN] = wanted
    return TemplateResponse(request, "tenants/leaving.html", {"address": address, "back": wanted["next"]})


@login_not_required
@never_cache
@require_GET
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Take what the provider sent somebody back with, once, in the session that left."""
    if provider_id != PROVIDER or not settings.OZ0_OIDC_NAME:
        raise Http404
    try:
        answered: HttpResponse = OAuth2CallbackView.adapter_view(_Checked(request, PROVIDER))(request)
    except ODD as error:
        log.warning("the sign-in provider cannot be used (%s): %s", type(error).__name__, error)
        return failed(request, AWAY)
    return answered


def arrived(request: HttpRequest, claims: Claims) -> HttpResponse:
    """The provider has said who somebody is: let them in when they are known or invited, and nobody else."""
    begun: dict[str, Any] = request.session.pop(BEGUN, {})
    how = settings.OZ0_OIDC_NAME
    whence = f"{how}, {address_of(request)}"
    me = request.user
    try:
        if begun.get("link"):
            if not isinstance(me, User) or str(me.pk) != begun["link"]:
                return failed(request, "You signed out meanwhile. Sign in, and link it again.")
            identities.tie(me, claims, actor_how=actor_of(request).how)
            messages.success(request, f"From now on you can sign in with {how}.")
            return HttpResponseRedirect(reverse("account"))
        if begun.get("invitation"):
            person, tenant = identities.join(claims, token=begun["invitation"], how=whence)
            enter(request, person, how, tenant=tenant)
            return HttpResponseRedirect(reverse("overview"))
        enter(request, identities.known(claims, actor_how=whence), how)
    except (BadInvitation, Stranger) as refused:
        return failed(request, str(refused))
    return HttpResponseRedirect(begun.get("next") or reverse("overview"))


def failed(request: HttpRequest, why: str) -> HttpResponse:
    """Back to where they left from, with what went wrong."""
    if request.user.is_authenticated:
        messages.error(request, why)
        return HttpResponseRedirect(reverse("account"))
    return sign_in_form(request, error=why, status=403)
