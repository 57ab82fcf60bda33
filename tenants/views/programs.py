"""The edge for programs: who asks, by a token or a person's session, and whatever goes wrong as a problem document."""

import logging
from collections.abc import Callable, Sequence
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
from tenants.operations import tokens
from tenants.operations.invitations import hash_of
from tenants.queries.seats import Seat
from tenants.queries.tokens import bearer
from tenants.rules.bearers import Scope, is_token
from tenants.views.place import seat_of

log = logging.getLogger(__name__)

UNFORESEEN = "An error in the studio, which its log has in full. Try again, and tell who runs it if it stays."
DATABASE_AWAY = "The database does not answer just now. Try again in a few seconds."
NOTHING_HERE = "There is nothing at this address for you."
WHO = "Send a token (Authorization: Bearer oz0_…; Settings, Tokens makes one), or the session's cookie."
NO_TOKEN = "This is no token, or it counts no more: it was revoked, has expired, or its person has left."  # noqa: S105
REALM = 'realm="oz0 studio"'

type Answer = dict[str, Any] | None


class Refused(Exception):
    """Whoever asks may not, and is answered so."""

    def __init__(self, status: HTTPStatus, detail: str, challenge: str = "") -> None:
        super().__init__(detail)
        self.answer = problem(status, detail)
        if challenge:
            self.answer["WWW-Authenticate"] = challenge


def read_by_programs(
    view: Callable[..., Answer], *, agent_in: str = "", asked: Sequence[str] = ()
) -> Callable[..., JsonResponse]:
    """Let programs read what `view(seat, …)` gives: JSON, or None for what is not there or is another workspace's.

    A program shows a token with the scope `read`, or signs in as a person does, by their session. `agent_in` names the
    part of the address that is an agent: a token that is bound to one reads of that one only, and elsewhere nothing.
    `asked` are the parameters of the query that the view is given, each a text, empty where it is left out.
    """

    @login_not_required
    @csrf_exempt  # nothing is changed here, and a refusal for want of a token would be a page
    @wraps(view)
    def answered(request: HttpRequest, **names: str) -> JsonResponse:
        given = {name: request.GET.get(name, "") for name in asked}
        answer = _answer(request, view, {**names, **given}, names.get(agent_in, ""))
        answer["Cache-Control"] = "no-store"
        patch_vary_headers(answer, ["Cookie", "Authorization"])
        return answer

    return answered


def _answer(request: HttpRequest, view: Callable[..., Answer], names: dict[str, str], agent: str) -> JsonResponse:
    try:
        seat = _who(request, Scope.READ, agent)
        if request.method not in ("GET", "HEAD"):
            refused = problem(HTTPStatus.METHOD_NOT_ALLOWED, "This can only be read: use GET.")
            refused["Allow"] = "GET, HEAD"
            return refused
        found = view(seat, **names)
    except Refused as error:
        return error.answer
    except PermissionDenied as error:
        return problem(HTTPStatus.FORBIDDEN, str(error))
    except GONE:
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
    except Exception:
        log.exception("%s could not be answered", request.path)
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, UNFORESEEN)
    return problem(HTTPStatus.NOT_FOUND, NOTHING_HERE) if found is None else JsonResponse(found)


def _who(request: HttpRequest, scope: Scope, agent: str) -> Seat:
    """Whose seat whoever asks has here. What stands in `Authorization` counts alone; a cookie beside it does not."""
    if "Authorization" not in request.headers:
        if not request.user.is_authenticated:
            raise Refused(HTTPStatus.UNAUTHORIZED, WHO, f"Session {REALM}, Bearer {REALM}")
        return seat_of(request)
    scheme, _, token = request.headers["Authorization"].strip().partition(" ")
    token = token.strip()
    found = bearer(hash_of(token)) if scheme.casefold() == "bearer" and is_token(token) else None
    if found is None:
        raise Refused(HTTPStatus.UNAUTHORIZED, NO_TOKEN, f'Bearer {REALM}, error="invalid_token"')
    if scope not in found.scopes:
        challenge = f'Bearer {REALM}, error="insufficient_scope", scope="{scope}"'
        raise Refused(HTTPStatus.FORBIDDEN, f"This token lacks the scope {scope}.", challenge)
    if found.agent and found.agent != agent:
        raise Refused(HTTPStatus.FORBIDDEN, f"This token is bound to the agent {found.agent}, and reads only of that.")
    tokens.used(tenant=found.seat.tenant, token_id=found.token_id, last=found.used_at, now=found.now)
    return found.seat


@read_by_programs
def nothing(seat: Seat, rest: str) -> Answer:
    """Every address under `/api/` that is none."""
    return None
