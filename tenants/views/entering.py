"""Letting a person in, whichever way they have shown who they are: one place, so that all of them are alike."""

from uuid import UUID

from django.contrib.auth import login
from django.http import HttpRequest

from tenants.models import User
from tenants.operations import sign_in
from tenants.rules.who import Actor
from tenants.views.place import CHOSEN, HOW, address_of

BACKEND = "django.contrib.auth.backends.ModelBackend"


def enter(request: HttpRequest, person: User, how: str, *, tenant: UUID | None = None) -> None:
    """Sign a person in under a new session id; the one before is dead (CASES S18). `how` is one or two words.

    `tenant` is the workspace they come to; else it is the first of theirs.
    """
    login(request, person, backend=BACKEND)
    request.session[HOW] = how
    if tenant is not None:
        request.session[CHOSEN] = str(tenant)
    sign_in.signed_in(person=person.pk, how=how, actor=actor_entering(request, person, how))


def go_on(request: HttpRequest, person: User) -> None:
    """Let this browser go on under a new session id, when all sessions of its person have just ended."""
    kept = {name: request.session[name] for name in (HOW, CHOSEN) if name in request.session}
    login(request, person, backend=BACKEND)
    request.session.update(kept)


def actor_entering(request: HttpRequest, person: User, how: str) -> Actor:
    """The person for the audit log, who may have no seat yet."""
    return Actor(person.get_username(), f"{how}, {address_of(request)}", person.pk)
