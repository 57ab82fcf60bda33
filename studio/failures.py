"""The pages of requests that failed before or beside every view: what is wrong, and what helps.

They use no request, no sign-in and no database, any of which may be what failed.
"""

import sys
from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.db import ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from base.db import GONE
from base.problem import is_for_programs, problem
from studio.health import SAYS, Readiness, readiness

SOON = "3"  # seconds after which the page is asked for again
NO_NAME = "The studio does not answer by this host name: OZ0_ALLOWED_HOSTS names those it does."
NO_REQUEST = "This request cannot be read."
UNFORESEEN = "An error in the studio, which its log has in full."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that is none of ours. A host that the studio does not answer to is named with the setting."""
    if is_for_programs(request):
        misdirected = isinstance(exception, DisallowedHost)
        status = HTTPStatus.MISDIRECTED_REQUEST if misdirected else HTTPStatus.BAD_REQUEST
        return problem(status, NO_NAME if misdirected else NO_REQUEST)
    if isinstance(exception, DisallowedHost):
        asked = request.META.get("HTTP_HOST", "")
        return HttpResponse(render_to_string("misdirected.html", {"asked": asked}), status=421)
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """An error of ours; or a database that is away or not yet of this version, for which the page waits."""
    error = sys.exc_info()[1]
    found = Readiness.READY
    if isinstance(error, GONE):
        found = Readiness.AWAY
    elif isinstance(error, ProgrammingError):
        found = readiness()
    if is_for_programs(request):
        ready = found is Readiness.READY
        status = HTTPStatus.INTERNAL_SERVER_ERROR if ready else HTTPStatus.SERVICE_UNAVAILABLE
        told = problem(status, UNFORESEEN if ready else SAYS[found])
        if not ready:
            told["Retry-After"] = SOON
        return told
    if found is Readiness.READY:
        return defaults.server_error(request)
    page = render_to_string("not_ready.html", {"found": found, "says": SAYS[found], "soon": SOON})
    return HttpResponse(page, status=503, headers={"Retry-After": SOON})
