"""Making workspaces: a tenant with its gate, its audit head and its first admin (RULES A12)."""

import re
from typing import Final
from uuid import UUID

from django.db import IntegrityError

from base import db
from tenants.models import AuditHead, Gate, Membership, Role, Tenant, User
from tenants.operations import audit
from tenants.rules.who import Actor

_SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?\Z")


class BadWorkspace(ValueError):
    """A workspace that cannot be made so. The message says what is wrong."""


def make(*, new_id: UUID, slug: str, name: str, admin: str, actor: Actor) -> None:
    """Make a workspace as `new_id` with this person as its admin. Raises `BadWorkspace`."""
    if not _SLUG.match(slug):
        raise BadWorkspace("a workspace's short name has small letters, digits and -, at most 64")
    if not name.strip() or len(name) > 200:
        raise BadWorkspace("a workspace's name has 1 to 200 characters")
    person = User.objects.filter(username=admin, is_active=True).first()
    if person is None:
        raise BadWorkspace(f"there is no active person {admin!r} to be its admin")
    try:
        with db.write(new_id):
            tenant = Tenant.objects.create(id=new_id, slug=slug, name=name.strip())
            Gate.objects.create(tenant=tenant)
            AuditHead.objects.create(tenant=tenant)
            Membership.objects.create(tenant=tenant, user=person, role=Role.ADMIN)
            audit.record(actor, "workspace.made", f"workspace {slug}", after={"name": name.strip(), "admin": admin})
    except IntegrityError as error:
        raise BadWorkspace(f"there is a workspace {slug} already") from error


def every() -> list[tuple[UUID, str]]:
    """All workspaces: id and short name."""
    with db.sweep():
        return list(Tenant.objects.order_by("id").values_list("id", "slug"))
