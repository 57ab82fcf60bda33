"""Where events come in: one signed POST each, answered with the job that it started."""

import logging
from http import HTTPStatus
from typing import Any, Final, assert_never

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import RawPostDataException, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from base import ids
from base.db import GONE
from base.problem import problem
from jobs.operations import arriving
from jobs.operations.arriving import Answer, Foreign, Greeted, Refused, Started, Unmapped, Unsigned
from tenants.operations.vault import NoSecret
from tenants.views.programs import DATABASE_AWAY, UNFORESEEN

log = logging.getLogger(__name__)

MOST_BODY: Final = 1024 * 1024  # bytes
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
NO_FORM: Final = "An event is JSON, and no form: where the sender lets you choose (GitHub does), take application/json."
TOO_LARGE: Final = f"An event has at most {MOST_BODY // 1024} KiB."


@login_not_required
@csrf_exempt  # what counts is the signature, and no session does
def receive(request: HttpRequest, shown: str) -> HttpResponse:
    """Take one event to the hook of this id: 202 with the job it started, 200 with that of one that came before."""
    if request.method != "POST":
        refused = problem(HTTPStatus.METHOD_NOT_ALLOWED, "An event is sent here by POST.")
        refused["Allow"] = "POST"
        return refused
    try:
        return _answered(request, shown)
    except GONE:
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
    except NoSecret:
        log.exception("the secret of %s does not open", shown[:80])
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "The hook's secret does not open; an operator gives it a new one."
        )
    except Exception:
        log.exception("an event to %s could not be taken", shown[:80])
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, UNFORESEEN)


def _answered(request: HttpRequest, shown: str) -> HttpResponse:
    try:
        hook = ids.parse(ids.HOOK, shown)
    except ids.BadId:
        return _told(Foreign())
    if request.content_type in FORMS:
        return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, NO_FORM)
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > MOST_BODY:
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    try:
        body = request.body
    except RawPostDataException:  # a form, which has been read as one already
        return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, NO_FORM)
    except (RequestDataTooBig, UnreadablePostError):
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    if len(body) > MOST_BODY:
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    headers = {name.lower(): value for name, value in request.headers.items()}
    return _told(arriving.receive(hook=hook, headers=headers, body=body))


def _told(answer: Answer) -> HttpResponse:
    match answer:
        case Foreign():
            return problem(HTTPStatus.NOT_FOUND, "There is no hook at this address.")
        case Unsigned(why):
            return problem(HTTPStatus.UNAUTHORIZED, f"This request counts for nothing: {why}.")
        case Greeted(said):
            return JsonResponse(dict(said))
        case Started(job, again):
            status = HTTPStatus.OK if again else HTTPStatus.ACCEPTED
            return JsonResponse({"job": ids.show(ids.JOB, job), "again": again}, status=status)
        case Unmapped(why, troubles):
            return _unmapped(why, [{"at": name, "detail": what} for name, what in troubles])
        case Refused():
            return _refused(answer)
        case never:
            assert_never(never)


def _unmapped(why: str, errors: list[dict[str, Any]]) -> HttpResponse:
    """A problem document with what is wrong with each input (RFC 9457)."""
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    told = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": f"This event starts nothing: {why}.",
    }
    return JsonResponse(told | {"errors": errors}, status=status, content_type="application/problem+json")


def _refused(answer: Refused) -> HttpResponse:
    if answer.too_many:
        slow = problem(HTTPStatus.TOO_MANY_REQUESTS, f"{_sentence(answer.why)}.")
        slow["Retry-After"] = "60"
        return slow
    status = HTTPStatus.FORBIDDEN if answer.off else HTTPStatus.CONFLICT
    return problem(status, f"{_sentence(answer.why)}.")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".")
