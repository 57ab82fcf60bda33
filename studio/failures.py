"""The pages of requests that failed before or beside every view: what is wrong, and what helps.

They use no request, no sign-in and no database, any of which may be what failed.
"""

import sys

from django.core.exceptions import DisallowedHost
from django.db import ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from base.db import GONE
from studio.health import SAYS, Readiness, readiness

SOON = "3"  # seconds after which the page is asked for again


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that is none of ours. A host that the studio does not answer to is named with the setting."""
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
    if found is Readiness.READY:
        return defaults.server_error(request)
    page = render_to_string("not_ready.html", {"found": found, "says": SAYS[found], "soon": SOON})
    return HttpResponse(page, status=503, headers={"Retry-After": SOON})
