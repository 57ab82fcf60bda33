"""`oz0 login`: where a command asks for a token and takes it, and the page on which its person allows that."""

import json
import logging
import secrets
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.request import RawPostDataException
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from base import ids
from base.db import GONE
from base.htmx import page as answer
from base.problem import problem
from tenants.models import Role
from tenants.operations import logins as operations
from tenants.operations import tokens
from tenants.operations.invitations import hash_of
from tenants.operations.logins import BadAsk, Over, TooMany
from tenants.operations.tokens import BadToken
from tenants.queries import logins as queries
from tenants.queries.tokens import bearer
from tenants.rules import bearers
from tenants.rules.who import Actor
from tenants.views.place import actor_of, address_of, seat_of
from tenants.views.programs import DATABASE_AWAY, NO_TOKEN, UNFORESEEN

log = logging.getLogger(__name__)

MOST_BODY: Final = 10_000  # bytes
POLL: Final = 2  # seconds after which a command asks again
NOT_READABLE: Final = "What is sent here is a JSON object of texts."


def _for_the_command(view: Callable[[HttpRequest, dict[str, str]], HttpResponse]) -> Callable[..., HttpResponse]:
    """A POST of a small JSON object by the command, which has no session and whose answers are JSON."""

    @login_not_required
    @csrf_exempt  # nobody's session does anything here
    @wraps(view)
    def answered(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            refused = problem(HTTPStatus.METHOD_NOT_ALLOWED, "This is asked by POST.")
            refused["Allow"] = "POST"
            return refused
        try:
            told = view(request, _sent(request))
        except (BadAsk, BadToken) as error:
            status = HTTPStatus.TOO_MANY_REQUESTS if isinstance(error, TooMany) else HTTPStatus.UNPROCESSABLE_ENTITY
            told = problem(status, f"{str(error)[:1].upper()}{str(error)[1:]}".rstrip(".") + ".")
        except Over as error:
            told = problem(HTTPStatus.GONE, str(error))
        except GONE:
            told = problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
        except Exception:
            log.exception("%s could not be answered", request.path)
            told = problem(HTTPStatus.INTERNAL_SERVER_ERROR, UNFORESEEN)
        told["Cache-Control"] = "no-store"
        return told

    return answered


def _sent(request: HttpRequest) -> dict[str, str]:
    """The texts of the object that was sent. Raises `BadAsk`."""
    try:
        body = request.body
    except (RawPostDataException, RequestDataTooBig) as error:
        raise BadAsk(NOT_READABLE) from error
    try:
        found: Any = json.loads(body) if 0 < len(body) <= MOST_BODY else None
    except (ValueError, RecursionError) as error:
        raise BadAsk(NOT_READABLE) from error
    if not isinstance(found, dict):
        raise BadAsk(NOT_READABLE)
    return {str(name): value for name, value in found.items() if isinstance(value, str)}


@_for_the_command
def ask_login(request: HttpRequest, sent: dict[str, str]) -> HttpResponse:
    """A command asks: it is told where its person allows it, and the code that stands there."""
    code = "".join(secrets.choice(operations.CODE) for _ in range(operations.CODE_LENGTH))
    made = operations.ask(
        challenge=sent.get("challenge", ""), code=code, machine=sent.get("machine", ""), address=address_of(request)
    )
    shown = ids.show(ids.LOGIN, made.id)
    told = {
        "login": shown,
        "code": f"{code[:4]}-{code[4:]}",
        "url": settings.OZ0_URL.rstrip("/") + reverse("login", args=[shown]),
        "every": POLL,
        "expires_at": made.expires_at.isoformat(),
    }
    return JsonResponse(told, status=HTTPStatus.CREATED)


@sensitive_variables()
@_for_the_command
def take_login(request: HttpRequest, sent: dict[str, str]) -> HttpResponse:
    """The command takes its token, once its person has allowed it; until then 202."""
    try:
        ask = ids.parse(ids.LOGIN, sent.get("login", ""))
    except ids.BadId as error:
        raise Over("There is no such login for you: type oz0 login once more.") from error
    token = bearers.written("".join(secrets.choice(bearers.DIGITS) for _ in range(bearers.DRAWN)))
    given = operations.take(ask=ask, verifier=sent.get("verifier", ""), token=token)
    if given is None:
        return JsonResponse({"waiting": True}, status=HTTPStatus.ACCEPTED)
    told = {"token": token, "person": given.person, "workspace": given.workspace, "scopes": list(given.scopes)}
    return JsonResponse(told | {"expires_at": given.expires_at.isoformat()})


@_for_the_command
def end_login(request: HttpRequest, sent: dict[str, str]) -> HttpResponse:
    """`oz0 logout`: the token that is shown counts no more."""
    found = bearer(hash_of(sent.get("token", ""))) if bearers.is_token(sent.get("token", "")) else None
    if found is None or not found.as_person:
        return problem(HTTPStatus.UNAUTHORIZED, NO_TOKEN)
    actor = Actor(found.seat.username, f"token, {address_of(request)}", found.seat.person_id)
    owner = found.seat.person_id
    tokens.revoke(tenant=found.seat.tenant, token_id=found.token_id, owner=owner, actor=actor)
    return JsonResponse({"ended": True})


@require_http_methods(["GET", "HEAD", "POST"])
def login(request: HttpRequest, shown: str) -> HttpResponse:
    """Say exactly what the command's token may do; a POST allows it or refuses it."""
    seat, pk = seat_of(request), _id(shown)
    found = queries.login_page(pk)
    if found is None:
        raise Http404
    error = ""
    if request.method == "POST":
        said = request.POST.get("answer", "")
        if said not in ("allow", "deny"):
            error = "A login is allowed by allow and refused by deny."
        else:
            try:
                operations.answer(ask=pk, seat=seat, allow=said == "allow", actor=actor_of(request))
            except Over as over:
                error = str(over)
            found = queries.login_page(pk) or found
    context = {"page": found, "seat": seat, "error": error, "starts": seat.may(Role.OPERATOR), "days": operations.DAYS}
    return answer(request, "settings/login.html", context, status=409 if error else 200)


def _id(shown: str) -> UUID:
    try:
        return ids.parse(ids.LOGIN, shown)
    except ids.BadId as error:
        raise Http404 from error
