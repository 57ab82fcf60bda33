"""Who belongs to a tenant, and who is invited."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db, ids
from tenants.models import Identity, Invitation, Membership, Role, Tenant
from tenants.queries.seats import ORDER, Seat
from tenants.rules.people import Standing, why_not_change

MOST = 1000


@dataclass(frozen=True, slots=True)
class Member:
    """One person of the tenant, as the page shows them. `why_not_remove` and `why_not_change` explain the buttons."""

    shown_id: str
    person_id: int
    name: str
    email: str
    role: Role
    is_me: bool
    active: bool
    last_at: datetime | None
    last_how: str
    ways: tuple[str, ...]
    why_not_change: str | None
    why_not_remove: str | None


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation that nobody has accepted yet."""

    shown_id: str
    role: Role
    email: str
    made_by: str
    made_at: datetime
    expires_at: datetime
    over: bool


@dataclass(frozen=True, slots=True)
class People:
    """Everything of the page, and the time."""

    members: Sequence[Member]
    invitations: Sequence[OpenInvitation]
    now: datetime


@dataclass(frozen=True, slots=True)
class Offer:
    """What an invitation offers whoever opens it; `trouble` says why it cannot be accepted any more."""

    id: UUID
    tenant: UUID
    tenant_name: str
    role: Role
    email: str
    made_by: str
    trouble: str


def people(seat: Seat, *, provider: str) -> People:
    """The members of a tenant, those with the most to say first. `provider` is what people call the one they sign in
    with, or empty."""
    with db.read(seat.tenant) as now:
        rows = list(Membership.objects.select_related("user").order_by("user__username")[:MOST])
        rows.sort(key=lambda row: -ORDER.index(Role(row.role)))
        admins = sum(row.role == Role.ADMIN for row in rows)
        with_identity = set(
            Identity.objects.filter(user__in=[row.user_id for row in rows]).values_list("user_id", flat=True)
        )
        waiting = Invitation.objects.filter(accepted_at__isnull=True, revoked_at__isnull=True).select_related("made_by")
        return People(
            members=[_member(row, seat, admins, provider if row.user_id in with_identity else "") for row in rows],
            invitations=[_open(row, now) for row in waiting.order_by("-made_at")[:MOST]],
            now=now,
        )


def member_name(tenant: UUID, membership: UUID) -> str | None:
    """The name of the person whose membership this is; None when it is none of this tenant's."""
    with db.read(tenant):
        return Membership.objects.filter(pk=membership).values_list("user__username", flat=True).first()


def offer(token_hash: str) -> Offer | None:
    """What the invitation of this hash offers; None when there is none."""
    with db.read_as_bearer(token_hash):
        found = Invitation.objects.filter(token_hash=token_hash).values_list("tenant_id", flat=True).first()
    if found is None:
        return None
    with db.read(found) as now:
        row = Invitation.objects.select_related("made_by").get(token_hash=token_hash)
        return Offer(
            id=row.pk,
            tenant=found,
            tenant_name=Tenant.objects.values_list("name", flat=True).get(pk=found),
            role=Role(row.role),
            email=row.email,
            made_by=row.made_by.get_username(),
            trouble=why_over(row, now),
        )


def why_over(row: Invitation, now: datetime) -> str:
    """Why an invitation counts no more; empty while it does."""
    if row.accepted_at is not None:
        return "This invitation was accepted already. Sign in instead."
    if row.revoked_at is not None:
        return "This invitation was taken back. Ask for a new one."
    if row.expires_at <= now:
        return "This invitation has run out. Ask for a new one."
    return ""


def standing(row: Membership, others: Sequence[Membership]) -> Standing:
    """A member's place among all of the tenant's."""
    admins = sum(one.role == Role.ADMIN and one.user_id != row.user_id for one in others)
    return Standing(row.user_id, row.role, admins)


def _member(row: Membership, seat: Seat, admins: int, provider: str) -> Member:
    them = Standing(row.user_id, row.role, admins - (row.role == Role.ADMIN))
    ways = ["password"] if row.user.has_usable_password() else []
    return Member(
        shown_id=ids.show(ids.MEMBER, row.pk),
        person_id=row.user_id,
        name=row.user.get_username(),
        email=row.user.email,
        role=Role(row.role),
        is_me=row.user_id == seat.person_id,
        active=row.user.is_active,
        last_at=row.user.last_login,
        last_how=row.user.last_how,
        ways=tuple([*ways, provider] if provider else ways),
        why_not_change=why_not_change(seat.person_id, seat.role, them, row.role),
        why_not_remove=why_not_change(seat.person_id, seat.role, them, None),
    )


def _open(row: Invitation, now: datetime) -> OpenInvitation:
    return OpenInvitation(
        shown_id=ids.show(ids.INVITATION, row.pk),
        role=Role(row.role),
        email=row.email,
        made_by=row.made_by.get_username(),
        made_at=row.made_at,
        expires_at=row.expires_at,
        over=row.expires_at <= now,
    )
