"""Where the library that speaks with the provider hands over: what the provider said, or that it did not work out.

It makes no account and signs nobody in by itself: what happens is decided in `tenants.views.provider`.
"""

from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest

from tenants.operations.identities import Claims
from tenants.views import provider as views


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # the library has no types
    """Every way out of the library leads to our own pages."""

    def get_requests_session(self) -> Any:
        """Its HTTP client: it follows no redirect and reads no proxy from the environment."""
        session = super().get_requests_session()
        session.max_redirects = 0
        session.trust_env = False
        return session

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """The provider has said who it is, and the library has checked that it was the provider."""
        said = sociallogin.account.extra_data
        token, more = said.get("id_token") or {}, said.get("userinfo") or {}
        if not token.get("iss") or not token.get("sub") or more.get("sub", token["sub"]) != token["sub"]:
            raise ImmediateHttpResponse(views.failed(request, "The provider did not say who you are in one voice."))
        verified = [one.email for one in sociallogin.email_addresses if one.email and one.verified]
        claims = Claims(
            issuer=str(token["iss"])[:300],
            subject=str(token["sub"])[:255],
            email=str(verified[0])[:254] if verified else "",
            name=str(more.get("preferred_username") or token.get("preferred_username") or "")[:100],
        )
        raise ImmediateHttpResponse(views.arrived(request, claims))

    def on_authentication_error(self, request: HttpRequest, provider: Any, **more: Any) -> None:
        """Cancelled, out of date, or refused."""
        raise ImmediateHttpResponse(views.failed(request, views.NOT_WORKED_OUT))
