"""Signing in and out."""

import secrets
import threading
from typing import Final

from django.conf import settings
from django.contrib.auth import authenticate, logout
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from tenants.models import User
from tenants.operations import sign_in, throttle
from tenants.rules.people import LONGEST
from tenants.rules.who import Actor
from tenants.views.entering import enter
from tenants.views.place import HOW, address_of

LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")
WRONG: Final = "No active person has this name and password."
# A browser in which a person has signed in shows this again, so that who guesses their password elsewhere cannot
# slow them down in it (tenants.operations.throttle). It signs nobody in.
KNOWN: Final = "oz0_known"
KNOWN_FOR: Final = 365 * 86_400  # seconds
# Hashing takes 100 MB and a good part of a second of a processor each.
_HASHING: Final = threading.BoundedSemaphore(4)


@login_not_required
@never_cache
@sensitive_variables("password")
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_page(request: HttpRequest) -> HttpResponse:
    """Sign in with a password. Unknown names and wrong passwords read the same and take the same time."""
    if request.user.is_authenticated:
        return HttpResponseRedirect(safe_next(request))
    if request.method != "POST":
        return sign_in_form(request)
    typed, password = request.POST.get("username", "")[:150], request.POST.get("password", "")[:LONGEST]
    browser = _browser_of(request, typed)
    key, wait = throttle.begin(name=typed, address=address_of(request), browser=browser)
    if wait:
        told = f"Too many tries from here. Try again in {-(-wait // 60)} min; the ways below work meanwhile."
        refused = sign_in_form(request, typed=typed, error=told, status=429)
        refused["Retry-After"] = str(wait)
        return refused
    with _HASHING:
        person = authenticate(request, username=typed, password=password)
    if not isinstance(person, User):
        return sign_in_form(request, typed=typed, error=WRONG, status=422)
    throttle.succeeded(key)
    enter(request, person, "password")
    entered = HttpResponseRedirect(safe_next(request))
    shown = signing.dumps([person.get_username(), browser or secrets.token_urlsafe(9)], salt=KNOWN)
    secure = settings.SESSION_COOKIE_SECURE
    entered.set_cookie(KNOWN, shown, max_age=KNOWN_FOR, httponly=True, samesite="Lax", secure=secure, path="/sign-in/")
    return entered


@login_not_required
@never_cache
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by opening a one-time link, from this machine only. A look ahead (HEAD, prefetch) uses nothing up."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    if "prefetch" in request.headers.get("Sec-Purpose", request.headers.get("Purpose", "")):
        return HttpResponse(status=503)
    if request.META.get("REMOTE_ADDR") not in LOOPBACK or any(name in request.headers for name in FORWARDED):
        return _refused(request, "A sign-in link works only in a browser on the machine that runs the studio.")
    person = sign_in.use_link(token)
    if person is None:
        return _refused(request, "This link was used already, or is older than 10 minutes.")
    enter(request, person, "link")
    return HttpResponseRedirect(reverse("overview"))


@login_not_required
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End every session of the person, on every browser; open pages of theirs are cut off."""
    person = request.user
    if isinstance(person, User):
        how = f"{request.session.get(HOW, 'password')}, {address_of(request)}"
        sign_in.signed_out(person=person.pk, actor=Actor(person.get_username(), how, person.pk))
    logout(request)
    return HttpResponseRedirect(reverse("sign-in"))


def sign_in_form(request: HttpRequest, *, typed: str = "", error: str = "", status: int = 200) -> HttpResponse:
    """The page to sign in on, by whichever ways there are."""
    context = {"typed": typed, "error": error, "next": safe_next(request), "provider": settings.OZ0_OIDC_NAME}
    return TemplateResponse(request, "tenants/sign_in.html", context, status=status)


def safe_next(request: HttpRequest) -> str:
    """Where somebody wants to go once they are in: an address of this studio, whatever was asked for."""
    asked = request.POST.get("next", request.GET.get("next", ""))
    local = url_has_allowed_host_and_scheme(asked, allowed_hosts=None, require_https=request.is_secure())
    return asked if local else reverse("overview")


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    return TemplateResponse(request, "tenants/link_refused.html", {"why": why}, status=403)


def _browser_of(request: HttpRequest, typed: str) -> str:
    """What this browser shows, when the person of this name has signed in with it; else nothing."""
    try:
        name, browser = signing.loads(request.COOKIES.get(KNOWN, ""), salt=KNOWN, max_age=KNOWN_FOR)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(browser) if name == typed else ""
