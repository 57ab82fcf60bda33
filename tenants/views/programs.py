"""The edge for programs: who asks is known as on pages, and whatever goes wrong is a problem document."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from base.db import GONE
from base.problem import problem
from tenants.queries.seats import Seat
from tenants.views.place import seat_of

log = logging.getLogger(__name__)

UNFORESEEN = "An error in the studio, which its log has in full. Try again, and tell who runs it if it stays."
DATABASE_AWAY = "The database does not answer just now. Try again in a few seconds."
NOTHING_HERE = "There is nothing at this address for you."

type Answer = dict[str, Any] | None


def read_by_programs(view: Callable[..., Answer]) -> Callable[..., JsonResponse]:
    """Let programs read what `view(seat, …)` gives: JSON, or None for what is not there or is another workspace's.

    A program signs in as a person does, by their session.
    """

    @login_not_required
    @csrf_exempt  # nothing is changed here, and a refusal for want of a token would be a page
    @wraps(view)
    def answered(request: HttpRequest, **names: str) -> JsonResponse:
        answer = _answer(request, view, names)
        answer["Cache-Control"] = "no-store"
        patch_vary_headers(answer, ["Cookie"])
        return answer

    return answered


def _answer(request: HttpRequest, view: Callable[..., Answer], names: dict[str, str]) -> JsonResponse:
    if not request.user.is_authenticated:
        refused = problem(HTTPStatus.UNAUTHORIZED, "Sign in first, and send the session's cookie.")
        refused["WWW-Authenticate"] = 'Session realm="oz0 studio"'
        return refused
    if request.method not in ("GET", "HEAD"):
        refused = problem(HTTPStatus.METHOD_NOT_ALLOWED, "This can only be read: use GET.")
        refused["Allow"] = "GET, HEAD"
        return refused
    try:
        found = view(seat_of(request), **names)
    except PermissionDenied as error:
        return problem(HTTPStatus.FORBIDDEN, str(error))
    except GONE:
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
    except Exception:
        log.exception("%s could not be answered", request.path)
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, UNFORESEEN)
    return problem(HTTPStatus.NOT_FOUND, NOTHING_HERE) if found is None else JsonResponse(found)


@read_by_programs
def nothing(seat: Seat, rest: str) -> Answer:
    """Every address under `/api/` that is none."""
    return None
