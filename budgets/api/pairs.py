"""Pairs of tokens: a command that is logged in trades its login for one of a project, and renews it."""

import secrets
from typing import Any, Final

from django.db.models import Q
from django.http import HttpRequest
from ninja import Router

from base import db, ids
from base.db import GONE
from budgets import errors
from budgets.api.door import Trouble, login_of, readable, unknown_key
from budgets.api.shapes import PairIn, PairOut, RenewIn, answers
from budgets.models import Project
from budgets.operations import keys
from budgets.queries.journal import shown_project
from budgets.queries.keys import renewer
from budgets.rules import busy
from budgets.rules.words import KeyScope
from tenants.models import Role
from tenants.operations.invitations import hash_of
from tenants.rules.bearers import DIGITS, DRAWN, written
from tenants.rules.who import Actor
from tenants.views.place import address_of

router = Router(tags=["budgets"])
LIVES: Final = int(keys.ACCESS.total_seconds())


@router.post(
    "/budgets/tokens",
    response=answers(PairOut, 404, 413, 415),
    url_name="api-budget-pair",
    summary="Trade a login for a pair",
)
def trade(request: HttpRequest, wanted: PairIn) -> Any:
    """A pair for one project, for the token that `oz0 login` has kept. It may no more than its person."""
    login = login_of(request)
    readable(request)
    if wanted.scope is KeyScope.FULL and not login.seat.may(Role.OPERATOR):
        raise Trouble(403, "not_allowed", "Only operators, authors and admins spend: ask for the scope read_only.")
    with db.read(login.seat.tenant):
        project = Project.objects.filter(_named(wanted.project)).first()
    if project is None:
        raise Trouble(404, errors.NotFound.code, "There is no project of this name or id.")
    pair = _drawn()
    actor = Actor(login.seat.username, f"token {login.name}, {address_of(request)}"[:200], login.seat.person_id)
    try:
        keys.trade(
            tenant=login.seat.tenant,
            project=project.pk,
            pair=pair,
            name=f"login of {login.seat.username}",
            scope=wanted.scope,
            login=login.token_id,
            actor=actor,
        )
    except errors.BadProject as error:
        raise Trouble(403, "not_allowed", str(error)) from error
    return _told(project.pk, wanted.scope, pair)


@router.post(
    "/budgets/tokens/refresh",
    response=answers(PairOut, 413, 415),
    url_name="api-budget-renew",
    summary="Renew a pair",
)
def renew(request: HttpRequest, sent: RenewIn) -> Any:
    """New secrets for a pair. The one shown counts on until the new pair has been used, and no longer."""
    readable(request)
    try:
        found = renewer(hash_of(sent.refresh_token))
    except GONE as error:
        raise errors.Busy(busy.NO_DATABASE) from error
    pair = _drawn()
    if found is None or keys.renew(tenant=found.tenant, key=found.key, shown=sent.refresh_token, pair=pair) is None:
        raise unknown_key()
    return _told(found.project, found.scope, pair)


def _named(project: str) -> Q:
    try:
        return Q(pk=ids.parse(ids.PROJECT, project), agent="")  # an agent's is the studio's own to spend from
    except ids.BadId:
        return Q(name=project, agent="")


def _drawn() -> keys.Pair:
    access, refresh = ("".join(secrets.choice(DIGITS) for _ in range(DRAWN)) for _ in range(2))
    return keys.Pair(written(access), written(refresh))


def _told(project: Any, scope: KeyScope, pair: keys.Pair) -> PairOut:
    return PairOut(
        project_id=shown_project(project),
        scope=scope,
        access_token=pair.access,
        refresh_token=pair.refresh,
        expires_in=LIVES,
    )
