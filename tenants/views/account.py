"""What is a person's own: their password, how they sign in, their workspaces."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from base.htmx import page as answer
from tenants.models import Identity, User
from tenants.operations import identities, sign_in, throttle
from tenants.operations.sign_in import BadPassword
from tenants.rules.people import LONGEST, SHORTEST
from tenants.views.entering import go_on
from tenants.views.place import HOW, actor_of, address_of, seat_of, seats_in

WRONG = "Your present password is another one."


@sensitive_variables()
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Who one is. A POST changes one's password: every other session ends, and this one goes on."""
    seat_of(request)
    me = cast(User, request.user)
    if request.method != "POST":
        return _page(request, me)
    new = request.POST.get("new", "")
    if new != request.POST.get("again", ""):
        return _page(request, me, error="The new password was typed differently the second time.")
    if me.has_usable_password():
        key, wait = throttle.begin(name=me.get_username(), address=address_of(request), browser=f"account {me.pk}")
        if wait:
            return _page(request, me, error=f"Too many tries. Try again in {-(-wait // 60)} min.", status=429)
        if not me.check_password(request.POST.get("present", "")[:LONGEST]):
            return _page(request, me, error=WRONG)
        throttle.succeeded(key)
    try:
        sign_in.change_password(person=me, password=new, actor=actor_of(request))
    except BadPassword as refused:
        return _page(request, me, error=str(refused))
    go_on(request, User.objects.get(pk=me.pk))
    messages.success(request, "Your password is changed. Every other browser is signed out.")
    return HttpResponseRedirect(reverse("account"))


@require_POST
def unlink(request: HttpRequest) -> HttpResponse:
    """Sign in at the provider no more. Not for somebody who has no other way in."""
    seat_of(request)
    me = cast(User, request.user)
    if not me.has_usable_password():
        messages.warning(request, "Set a password first: you could not sign in any more.")
    elif identities.untie(me, actor=actor_of(request)):
        messages.success(request, "You cannot sign in that way any more.")
    return HttpResponseRedirect(reverse("account"))


def _page(request: HttpRequest, me: User, *, error: str = "", status: int = 422) -> HttpResponse:
    context = {
        "me": me,
        "places": seats_in(request),
        "here": seat_of(request).tenant,
        "linked": Identity.objects.filter(user=me).exists(),
        "provider": settings.OZ0_OIDC_NAME,
        "has_password": me.has_usable_password(),
        "how": request.session.get(HOW, "password"),
        "shortest": SHORTEST,
        "error": error,
    }
    return answer(request, "settings/account.html", context, status=status if error else 200)
