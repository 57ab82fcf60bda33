"""Whom a browser session belongs to at this moment, as its row says, for what lives longer than a request."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.utils.crypto import constant_time_compare

from tenants.models import User


@dataclass(frozen=True, slots=True)
class SessionPerson:
    """The person of a session, and the tenant they chose in it."""

    person_id: int
    tenant: str | None


def session_person(key: str) -> SessionPerson | None:
    """None once the session ended, the person may not sign in any more, or their password changed."""
    stored: Any = import_module(settings.SESSION_ENGINE).SessionStore(session_key=key)
    if SESSION_KEY not in stored or stored.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    person = User.objects.filter(pk=stored[SESSION_KEY], is_active=True).first()
    if person is None or not constant_time_compare(stored.get(HASH_SESSION_KEY, ""), person.get_session_auth_hash()):
        return None
    return SessionPerson(person_id=person.pk, tenant=stored.get("tenant"))
