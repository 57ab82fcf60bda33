"""The edge for programs: who asks, by a token or a person's session, and whatever goes wrong as a problem document.

The addresses are declared with django-ninja in each app's `api` and joined in `studio/api.py`. What stands before and
after every one of them is here (`for_programs`), so no address can go without: who asks, how often, what a body may be.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from math import ceil
from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from ninja import Schema
from ninja.errors import HttpError, ValidationError
from ninja.security.base import AuthBase

from base.bounded_body import OF_PROGRAMS
from base.db import GONE
from base.problem import KIND, problem
from base.streaming import Following
from base.visible import visible
from tenants.operations import tokens
from tenants.operations.invitations import hash_of
from tenants.queries.seats import Seat, seat
from tenants.queries.sessions import session_person
from tenants.queries.tokens import bearer
from tenants.rules.bearers import Scope, is_token
from tenants.rules.pace import Pace
from tenants.rules.who import Actor
from tenants.views.place import actor_of, address_of, seat_of

log = logging.getLogger(__name__)

UNFORESEEN: Final = "An error in the studio, which its log has in full. Try again, and tell who runs it if it stays."
DATABASE_AWAY: Final = "The database does not answer just now. Try again in a few seconds."
NOTHING_HERE: Final = "There is nothing at this address for you."
WHO: Final = "Send a token (Authorization: Bearer oz0_…; Settings, Tokens makes one), or the session's cookie."
NO_TOKEN: Final = "This is no token, or it counts no more: it was revoked, has expired, or its person has left."  # noqa: S105
NEEDS_TOKEN: Final = "A session's cookie only reads here. Send a token (Authorization: Bearer oz0_…)."  # noqa: S105
REALM: Final = 'realm="oz0 studio"'
JSON: Final = "application/json"
SOON: Final = "3"  # seconds after which a database that is away is asked again
BODY_IS_JSON: Final = "What is sent here is JSON, in UTF-8: Content-Type: application/json."
NOT_READABLE: Final = "The body is not JSON: look for a missing quote, comma or bracket."
MISTAKEN: Final = "What was sent does not fit: `errors` says where and why."


class Refused(Exception):
    """Whoever asks may not, or cannot be answered, and is told so."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        headers: Mapping[str, str] | None = None,
        *,
        errors: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.answer = problem(status, detail, errors=errors)
        for name, value in (headers or {}).items():
            self.answer[name] = value


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. `agent` is the one that their token is bound to, or empty; `scopes` is None for a person's session.

    `counts` says whether they still may, by now: for answers that go on.
    """

    seat: Seat
    actor: Actor
    scopes: frozenset[str] | None
    agent: str
    token_id: UUID | None
    counts: Callable[[], bool]
    as_person: bool = False  # by `oz0 login`: its person is there to answer for what is started


def asker_of(request: HttpRequest) -> Asker:
    """Who asks, for a view behind `for_programs`."""
    return cast(Asker, request.oz0_asker)  # type: ignore[attr-defined]  # kept for this request only


class Needs(AuthBase):
    """What an address takes: a scope, the query `asked`, and for those that answer not in JSON alone, which types.

    `bound_to` names the part of the address that is an agent: a token that is bound to one is answered for that one
    alone. `free` are addresses that leave out by themselves what is not of a bound token's agent.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "A token of Settings, Tokens."

    def __init__(
        self,
        scope: Scope = Scope.READ,
        *,
        asked: type[Schema] | None = None,
        bound_to: str = "",
        free: bool = False,
        gives: tuple[str, ...] = (JSON,),
    ) -> None:
        super().__init__()
        self.scope, self.bound_to, self.free, self.gives = scope, bound_to, free, gives
        self.asked = tuple(asked.model_fields) if asked else ()

    def __call__(self, request: HttpRequest) -> Asker:
        """Who asks. Raises `Refused`."""
        asker = asker_of(request)
        agent = request.resolver_match.kwargs.get(self.bound_to, "") if request.resolver_match else ""
        allow(asker, self.scope, agent=agent, free=self.free)
        if not any(request.accepts(kind) for kind in (*self.gives, KIND)):
            raise Refused(HTTPStatus.NOT_ACCEPTABLE, f"The answer would be {' or '.join(self.gives)}.")
        _readable(request)
        if unknown := sorted(set(request.GET) - set(self.asked)):
            there_are = f"there are {', '.join(self.asked)}" if self.asked else "it takes none"
            raise Refused(HTTPStatus.BAD_REQUEST, f"No parameter is called {visible(unknown[0], 60)}: {there_are}.")
        return asker


def allow(asker: Asker, scope: Scope, *, agent: str = "", free: bool = False) -> None:
    """Raise `Refused` unless this is in what they may."""
    if asker.scopes is None:
        if scope is not Scope.READ:
            raise Refused(HTTPStatus.UNAUTHORIZED, NEEDS_TOKEN, {"WWW-Authenticate": f"Bearer {REALM}"})
        return
    if scope not in asker.scopes:
        challenge = f'Bearer {REALM}, error="insufficient_scope", scope="{scope}"'
        raise Refused(HTTPStatus.FORBIDDEN, f"This token lacks the scope {scope}.", {"WWW-Authenticate": challenge})
    if asker.agent and not free and asker.agent != agent:
        raise Refused(HTTPStatus.FORBIDDEN, f"This token is bound to the agent {asker.agent}, and reads only of that.")


def for_programs(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Let a view be asked by programs: by a token, or for what is read by a session. Whatever fails is a problem."""

    @login_not_required
    @csrf_exempt  # a session alone changes nothing here, and a refusal for want of a token would be a page
    @wraps(view)
    def answered(request: HttpRequest, **names: Any) -> HttpResponseBase:
        told: dict[str, str] = {}
        try:
            request.oz0_asker, pace = _who(request)  # type: ignore[attr-defined]  # see asker_of
            told = _paced(pace)
            if pace is not None and not pace.allowed:
                detail = f"This token may ask {pace.limit} times a minute. Wait {ceil(pace.wait)} s."
                raise Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": str(ceil(pace.wait))})
            answer = _as_problem(dispatched(view, request, names))
        except Exception as error:
            answer = _told(request, error)
        for name, value in told.items():
            answer[name] = value
        answer["Cache-Control"] = "no-store"
        patch_vary_headers(answer, ["Cookie", "Authorization", "Accept"])
        return answer

    return answered


def dispatched(view: Callable[..., HttpResponseBase], request: HttpRequest, names: dict[str, Any]) -> HttpResponseBase:
    """A HEAD is a GET whose body the server leaves out."""
    if request.method == "HEAD":
        request.method = "GET"
        try:
            answer = view(request, **names)
        finally:
            request.method = "HEAD"
        # what would go on is not begun for somebody who wants none of it
        return HttpResponse(headers=dict(answer.headers)) if isinstance(answer, Following) else answer
    return view(request, **names)


def _as_problem(answer: HttpResponseBase) -> HttpResponseBase:
    if answer.status_code != HTTPStatus.METHOD_NOT_ALLOWED or answer.headers.get("Content-Type") == KIND:
        return answer
    allowed = sorted({one.strip() for one in answer.headers.get("Allow", "").split(",")} - {""})
    if "GET" in allowed:
        allowed = sorted({*allowed, "HEAD"})
    only = "This can only be read: use GET." if "POST" not in allowed else f"Use {' or '.join(allowed)}."
    told = problem(HTTPStatus.METHOD_NOT_ALLOWED, only)
    told["Allow"] = ", ".join(allowed)
    return told


def _told(request: HttpRequest, error: Exception) -> HttpResponse:
    """What goes wrong, as a problem document. What nobody foresaw is in the log, and gives nothing away."""
    match error:
        case Refused():
            return error.answer
        case ValidationError():
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, MISTAKEN, errors=[mistake(one) for one in error.errors])
        case HttpError() if error.status_code == HTTPStatus.BAD_REQUEST:
            return problem(HTTPStatus.BAD_REQUEST, NOT_READABLE)
        case Http404():
            return problem(HTTPStatus.NOT_FOUND, NOTHING_HERE)
        case PermissionDenied():
            return problem(HTTPStatus.FORBIDDEN, str(error))
        case RequestDataTooBig():
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A body here has at most {OF_PROGRAMS} bytes.")
    if isinstance(error, GONE):
        answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
        answer["Retry-After"] = SOON
        return answer
    log.error("%s could not be answered", request.path, exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, UNFORESEEN)


def mistake(found: Mapping[str, Any]) -> tuple[str, str]:
    """(where, what) of one mistake, without what was sent."""
    at = [str(part) for part in found["loc"]]
    inside = at[2:] if at[:1] == ["body"] else at[1:]  # after the parameter's own name
    return ".".join([at[0], *inside])[:200], str(found["msg"])[:300]


def _readable(request: HttpRequest) -> None:
    """Raise `Refused` for a body that nobody would read."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return
    if len(request.body) > OF_PROGRAMS:
        raise RequestDataTooBig
    if request.body and request.content_type != JSON:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, BODY_IS_JSON, {"Accept": JSON})


def _paced(pace: Pace | None) -> dict[str, str]:
    if pace is None:
        return {}
    return {
        "RateLimit-Policy": f'"token";q={pace.limit};w=60',
        "RateLimit": f'"token";r={pace.left};t={ceil(pace.full_in)}',
    }


def _who(request: HttpRequest) -> tuple[Asker, Pace | None]:
    """Who asks, and at what pace. What stands in `Authorization` counts alone; a cookie beside it does not."""
    if "Authorization" not in request.headers:
        if not request.user.is_authenticated:
            challenge = f"Session {REALM}, Bearer {REALM}"
            raise Refused(HTTPStatus.UNAUTHORIZED, WHO, {"WWW-Authenticate": challenge})
        here = seat_of(request)
        return Asker(here, actor_of(request), None, "", None, _session_counts(request.session.session_key, here)), None
    scheme, _, token = request.headers["Authorization"].strip().partition(" ")
    token = token.strip()
    hashed = hash_of(token)
    found = bearer(hashed) if scheme.casefold() == "bearer" and is_token(token) else None
    if found is None:
        challenge = f'Bearer {REALM}, error="invalid_token"'
        raise Refused(HTTPStatus.UNAUTHORIZED, NO_TOKEN, {"WWW-Authenticate": challenge})
    pace = tokens.admit(
        tenant=found.seat.tenant,
        token_id=found.token_id,
        last=found.used_at,
        now=found.now,
        limit=settings.OZ0_API_RATE,
    )
    actor = Actor(found.seat.username, f"token {found.name}, {address_of(request)}"[:200], found.seat.person_id)

    def counts() -> bool:
        still = bearer(hashed)
        return still is not None and Scope.READ in still.scopes and still.agent == found.agent

    return Asker(found.seat, actor, found.scopes, found.agent, found.token_id, counts, found.as_person), pace


def _session_counts(key: str | None, here: Seat) -> Callable[[], bool]:
    def counts() -> bool:
        still = session_person(key) if key else None
        now = seat(still.person_id, still.tenant) if still is not None else None
        return now is not None and now.tenant == here.tenant

    return counts


@for_programs
def nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """Every address under `/api/` that is none."""
    if request.method not in ("GET", "HEAD"):
        refused = problem(HTTPStatus.METHOD_NOT_ALLOWED, "There is nothing at this address to change.")
        refused["Allow"] = "GET, HEAD"
        return refused
    allow(asker_of(request), Scope.READ)
    raise Http404
