"""Where a person sits: which tenants they belong to, and as what. Read anew for every request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from base import db, prepared
from tenants.models import Membership, Role

ORDER = list(Role)
_SEAT_IN: Final = """
SELECT u.username, t.slug, t.name, m.role
FROM tenants_membership m JOIN tenants_user u ON u.id = m.user_id JOIN tenants_tenant t ON t.id = m.tenant_id
WHERE m.user_id = %s AND m.tenant_id = %s AND u.is_active
"""


@dataclass(frozen=True, slots=True)
class Seat:
    """A person in a tenant. `may` asks what they may do there."""

    person_id: int
    username: str
    tenant: UUID
    tenant_slug: str
    tenant_name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether this seat's role includes what `role` can do."""
        return ORDER.index(self.role) >= ORDER.index(role)


def seats_of(person_id: int) -> list[Seat]:
    """All seats of one active person, by tenant name."""
    with db.read_as_person(person_id):
        rows = (
            Membership.objects.filter(user_id=person_id, user__is_active=True)
            .select_related("tenant", "user")
            .order_by("tenant__name", "tenant_id")
        )
        return [
            Seat(
                person_id=row.user_id,
                username=row.user.get_username(),
                tenant=row.tenant_id,
                tenant_slug=row.tenant.slug,
                tenant_name=row.tenant.name,
                role=Role(row.role),
            )
            for row in rows
        ]


def seat_in(person_id: int, tenant: UUID) -> Seat | None:
    """The seat of an active person in this tenant, as every request with a token asks for it (decision 8).

    Demands an open `read_as_bearer`, which sees that person's memberships from then on.
    """
    db.also_as_person(person_id)
    found = prepared.fetch_one(_SEAT_IN, (person_id, tenant))
    if found is None:
        return None
    username, slug, name, role = found
    return Seat(person_id, username, tenant, slug, name, Role(role))


def seat(person_id: int, tenant: str | None) -> Seat | None:
    """The seat of a person in the tenant of this id; their first one when no tenant is chosen or the choice is gone."""
    return active(seats_of(person_id), tenant)


def active(seats: Sequence[Seat], tenant: str | None) -> Seat | None:
    """Which of a person's seats they are in: that in the tenant of this id, else their first."""
    return next((one for one in seats if str(one.tenant) == tenant), seats[0] if seats else None)


def may_here(person_id: int, role: Role) -> bool:
    """Whether an active person may do, in the tenant of the open read or write, what `role` can."""
    return _able(role).filter(user_id=person_id).exists()


def able_here(role: Role) -> set[int]:
    """Everybody who may, in the tenant of the open read or write, do what `role` can."""
    return set(_able(role).values_list("user_id", flat=True))


def _able(role: Role) -> QuerySet[Membership]:
    roles = [one.value for one in ORDER[ORDER.index(role) :]]
    return Membership.objects.filter(user__is_active=True, role__in=roles)
