"""The studio of this state folder, for commands that work in it: set up, and who is meant by whoever calls them."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

if TYPE_CHECKING:
    from tenants.rules.who import Actor


def ready(*, wakes: bool = True) -> None:
    """Set Django up on the services of this state folder, or say in a sentence why that cannot be.

    `wakes` is for what starts jobs or makes work due; without it a command starts sooner.
    """
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError, connection

    try:
        django.setup()
        if wakes:
            importlib.import_module("studio.celery")  # so that starting a job wakes a node
        connection.ensure_connection()
    except (ImproperlyConfigured, OperationalError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise click.ClickException(f"{said}. Is `oz0 up` running here?") from error


def me() -> tuple[UUID, int]:
    """The first workspace and its first admin: whoever can read this state folder's passwords acts as its owner."""
    from base import db, ids
    from tenants.models import Membership, Role
    from tenants.operations.sign_in import first_tenant

    tenant = first_tenant(ids.new())
    with db.read(tenant):
        admin = Membership.objects.filter(role=Role.ADMIN).order_by("id").values_list("user_id", flat=True).first()
    if admin is None:
        raise click.ClickException("this workspace has no admin: open a sign-in link first (`oz0 sign-in-link`)")
    return tenant, admin


def actor(person: int, how: str) -> "Actor":
    """That person, as the audit log names them."""
    from tenants.models import User
    from tenants.rules.who import Actor

    return Actor(User.objects.get(pk=person).get_username(), how, person)


def home() -> Path:
    """The state folder that the settings name."""
    from django.conf import settings

    found: Path = settings.OZ0_HOME
    return found
