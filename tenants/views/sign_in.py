"""Signing in and out."""

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from tenants.operations import sign_in
from tenants.views.place import HOW

BACKEND = "django.contrib.auth.backends.ModelBackend"
LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")


@login_not_required
@never_cache
@sensitive_variables("password")
@sensitive_post_parameters("password")
def sign_in_page(request: HttpRequest) -> HttpResponse:
    """Sign in with a password. A new session id is given at sign-in; the one before is dead (CASES S18)."""
    go_to = _safe_next(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(go_to)
    typed, error = "", ""
    if request.method == "POST":
        typed = request.POST.get("username", "")
        person = authenticate(request, username=typed, password=request.POST.get("password", ""))
        if person is not None:
            login(request, person)
            request.session[HOW] = "password"
            return HttpResponseRedirect(go_to)
        error = "No active person has this name and password."
    context = {"typed": typed, "error": error, "next": go_to}
    return TemplateResponse(request, "tenants/sign_in.html", context, status=422 if error else 200)


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
    login(request, person, backend=BACKEND)
    request.session[HOW] = "link"
    return HttpResponseRedirect(reverse("overview"))


@login_not_required
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return HttpResponseRedirect(reverse("sign-in"))


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    return TemplateResponse(request, "tenants/link_refused.html", {"why": why}, status=403)


def _safe_next(request: HttpRequest) -> str:
    asked = request.POST.get("next", request.GET.get("next", ""))
    local = url_has_allowed_host_and_scheme(asked, allowed_hosts=None, require_https=request.is_secure())
    return asked if local else reverse("overview")
