"""What is answered to a form whose token does not fit: nothing was changed, and how to go on."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse

from base.problem import problem
from tenants.views.sign_in import safe_next, sign_in_form

NO_PROGRAMS = "A token starts and reads, under /api/. Only a signed-in person decides and changes things."


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A page that was older than the sign-in says to reload it; a program is told that it may not.

    The sign-in form sent twice is no mistake of its person: who is in goes on, who is not tries again (CASES S18).
    """
    if "Authorization" in request.headers:
        return problem(HTTPStatus.FORBIDDEN, NO_PROGRAMS)
    if request.path == reverse("sign-in"):
        if request.user.is_authenticated:
            return HttpResponseRedirect(safe_next(request))
        return sign_in_form(request, error="That page was out of date. Enter your password again.", status=403)
    return HttpResponse(render_to_string("403_csrf.html"), status=403)
