"""The journal's own edge: who asks, by a project's key, and whatever goes wrong as `{"detail": {"code": …}}`.

It stands around each of its addresses as `tenants.views.programs` does around the others: a client that settles money
by the answers must be able to tell what was provably not accepted from what nobody knows (RULES S1).
"""

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from math import ceil
from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from ninja import Schema
from ninja.errors import HttpError, ValidationError
from ninja.security.base import AuthBase

from base.bounded_body import OF_JOURNAL
from base.db import GONE
from base.visible import visible
from budgets import errors
from budgets.operations import keys
from budgets.queries.keys import Holder, holder
from budgets.rules import busy
from budgets.rules.words import KeyScope
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import Bearer, bearer
from tenants.rules.bearers import is_token
from tenants.rules.pace import Pace
from tenants.views.programs import JSON, REALM, dispatched, mistake

log = logging.getLogger(__name__)

IDS: Final = ("operation_id", "reservation_id")
NOT_FREE: Final = ("POST", "PUT", "PATCH")


class Trouble(Exception):
    """An answer that says why there is no other."""

    def __init__(self, status: int, code: str, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message or code)
        self.answer = trouble(status, code, message=message, headers=headers)


def trouble(
    status: int,
    code: str,
    *,
    operation: UUID | str | None = None,
    message: str = "",
    mistakes: list[tuple[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JsonResponse:
    """The answer with this status and code; `mistakes` are (where, what)."""
    detail = {"code": code}
    if operation is not None:
        detail["operation_id"] = str(operation)
    if message:
        detail["message"] = message
    told: dict[str, Any] = {"detail": detail}
    if mistakes:
        told["errors"] = [{"at": at, "detail": what} for at, what in mistakes]
    return JsonResponse(told, status=status, headers=dict(headers or {}))


def holder_of(request: HttpRequest) -> Holder:
    """Whose key it is, for a view behind `of_journal`."""
    return cast(Holder, request.oz0_holder)  # type: ignore[attr-defined]  # kept for this request only


def login_of(request: HttpRequest) -> Bearer:
    """Whose login it is, for a view behind `of_logins`."""
    return cast(Bearer, request.oz0_login)  # type: ignore[attr-defined]  # kept for this request only


class Takes(AuthBase):
    """What an address takes: a key, a full one where it writes, and the query `asked`."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "A project's key, or the access token of a pair."

    def __init__(self, *, writes: bool = False, asked: type[Schema] | None = None) -> None:
        super().__init__()
        self.writes, self.asked = writes, tuple(asked.model_fields) if asked else ()

    def __call__(self, request: HttpRequest) -> Any:
        """Whose key it is. Raises `Trouble`."""
        if self.writes and holder_of(request).scope is not KeyScope.FULL:
            raise Trouble(403, "not_allowed", "This key only reads.")
        readable(request, self.asked)
        return holder_of(request)


def readable(request: HttpRequest, asked: tuple[str, ...] = ()) -> None:
    """Raise `Trouble` for what nobody would read, or would not answer as is wanted."""
    if not request.accepts(JSON):
        raise Trouble(406, "not_acceptable", f"The answer would be {JSON}.")
    if request.method in NOT_FREE:
        if len(request.body) > OF_JOURNAL:
            raise RequestDataTooBig
        if request.body and request.content_type != JSON:
            raise Trouble(415, "not_json", f"What is sent here is JSON, in UTF-8: Content-Type: {JSON}.")
    if unknown := sorted(set(request.GET) - set(asked)):
        raise Trouble(422, errors.Busy.code, f"No parameter is called {visible(unknown[0], 60)}.")


type View = Callable[..., HttpResponseBase]


def of_journal(view: View) -> View:
    """Let a view be asked by who holds a key of a project."""

    def who(request: HttpRequest) -> dict[str, str]:
        request.oz0_holder = _who(request)  # type: ignore[attr-defined]  # see holder_of
        return _pace(holder_of(request))

    return _around(view, who)


def of_logins(view: View) -> View:
    """Let a view be asked by a command that its person has logged in."""

    def who(request: HttpRequest) -> dict[str, str]:
        request.oz0_login = _login(request)  # type: ignore[attr-defined]  # see login_of
        return {}

    return _around(view, who)


def of_anybody(view: View) -> View:
    """Let a view be asked by whoever shows in a body what it asks for."""
    return _around(view, lambda request: {})


def _around(view: View, who: Callable[[HttpRequest], dict[str, str]]) -> View:
    @login_not_required
    @csrf_exempt  # no session counts here
    @wraps(view)
    def answered(request: HttpRequest, **names: Any) -> HttpResponseBase:
        told: dict[str, str] = {}
        try:
            told = who(request)
            if any("\0" in text for name, texts in request.GET.lists() for text in (name, *texts)):
                raise Trouble(422, errors.Busy.code, "A query cannot hold NUL.")
            answer = _named(dispatched(view, request, names))
        except Exception as error:
            answer = _told(request, error)
        for name, value in told.items():
            answer[name] = value
        answer["Cache-Control"] = "no-store"
        patch_vary_headers(answer, ["Authorization", "Accept"])
        return answer

    return answered


@of_journal
def nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """Every address of the journal that is none: a key that counts is not told that it does not."""
    raise Trouble(404, "no_such_address", f"There is nothing at {visible(request.path, 200)}.")


def shown(request: HttpRequest) -> str:
    """What stands in `Authorization`. Raises `Trouble` when it is no secret of ours."""
    scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.casefold() != "bearer" or not is_token(token.strip()):
        raise unknown_key()
    return token.strip()


def unknown_key() -> Trouble:
    """Whoever asks shows nothing that counts."""
    challenge = {"WWW-Authenticate": f'Bearer {REALM}, error="invalid_token"'}
    return Trouble(401, "unauthenticated", "This is no key of a project, or it counts no more.", headers=challenge)


def _who(request: HttpRequest) -> Holder:
    try:
        found = holder(hash_of(shown(request)))
    except GONE as error:
        raise errors.Busy(busy.NO_DATABASE) from error
    if found is None:
        raise unknown_key()
    return found


def _login(request: HttpRequest) -> Bearer:
    try:
        found = bearer(hash_of(shown(request)))
    except GONE as error:
        raise errors.Busy(busy.NO_DATABASE) from error
    if found is None or not found.as_person:
        raise unknown_key()
    return found


def _pace(asks: Holder) -> dict[str, str]:
    try:
        found: Pace | None = keys.admit(tenant=asks.tenant, key=asks.key, limit=settings.OZ0_BUDGET_RATE)
    except GONE as error:
        raise errors.Busy(busy.NO_DATABASE) from error
    if found is None:
        return {}
    if not found.allowed:
        wait = str(max(1, ceil(found.wait)))
        message = f"This key may ask {found.limit} times a minute. Wait {wait} s."
        raise Trouble(429, errors.Busy.code, message, headers={"Retry-After": wait})
    return {
        "RateLimit-Policy": f'"key";q={found.limit};w=60',
        "RateLimit": f'"key";r={found.left};t={ceil(found.full_in)}',
    }


def _named(answer: HttpResponseBase) -> HttpResponseBase:
    if answer.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return answer
    allowed = sorted({one.strip() for one in answer.headers.get("Allow", "").split(",")} - {""})
    if "GET" in allowed:
        allowed = sorted({*allowed, "HEAD"})
    return trouble(405, "method_not_allowed", headers={"Allow": ", ".join(allowed)})


def _told(request: HttpRequest, error: Exception) -> HttpResponse:
    """What goes wrong. What nobody foresaw is in the log; whatever of it was kept, only the journal tells."""
    match error:
        case Trouble():
            return error.answer
        case errors.Busy():
            headers = {"Retry-After": busy.RETRY_AFTER}
            return trouble(error.status, error.code, operation=error.operation, message=error.text, headers=headers)
        case errors.Refused():
            return trouble(error.status, error.code, operation=error.operation)
        case ValidationError():
            mistakes = [mistake(one) for one in error.errors]
            of_id = all(at.rpartition(".")[2] in IDS for at, _ in mistakes)
            return trouble(422, "invalid_operation_id" if of_id else errors.Busy.code, mistakes=mistakes)
        case HttpError() if error.status_code == HTTPStatus.BAD_REQUEST:
            return trouble(422, errors.Busy.code, message="The body is not JSON.")
        case RequestDataTooBig():
            return trouble(413, "too_large", message=f"A body here has at most {OF_JOURNAL} bytes.")
    if isinstance(error, GONE):
        return trouble(503, errors.OutcomeUnavailable.code)
    log.error("%s could not be answered", request.path, exc_info=error)
    return trouble(500, errors.OutcomeUnavailable.code)
