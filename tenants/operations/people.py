"""Who belongs to a tenant: changing a role, removing somebody, and ending all sessions of a person (RULES A12)."""

from uuid import UUID

from django.db.models import F

from base import db, nudge
from tenants.models import ApiToken, Membership, Role, User
from tenants.operations import audit
from tenants.queries.people import standing
from tenants.rules.people import why_not_change
from tenants.rules.who import Actor


class MayNot(Exception):
    """This person may not do that to that one. The message says why."""


class NobodyThere(LookupError):
    """No member of this id: never there, or removed meanwhile."""


def change_role(*, tenant: UUID, membership: UUID, role: Role, actor: Actor) -> bool:
    """Give a member another role; whether it was another one. Raises `MayNot` and `NobodyThere`."""
    with db.write(tenant):
        row = _locked(membership, actor, role)
        before, row.role = row.role, role
        if before == role:
            return False
        row.save(update_fields=["role"])
        audit.record(
            actor,
            "person.role_changed",
            f"person {row.user.get_username()}",
            before={"role": before},
            after={"role": role},
        )
        db.after_commit(lambda: nudge.person(row.user_id))
    return True


def remove(*, tenant: UUID, membership: UUID, note: str, actor: Actor) -> str:
    """Take a person out of the tenant: their sessions end and their tokens of it are revoked; their name.

    Raises `MayNot` and `NobodyThere`.
    """
    with db.write(tenant) as now:
        row = _locked(membership, actor, None)
        name = row.user.get_username()
        revoked = ApiToken.objects.filter(created_by_id=row.user_id, revoked_at__isnull=True).update(revoked_at=now)
        end_sessions(row.user_id)
        audit.record(
            actor,
            "person.removed",
            f"person {name}",
            before={"role": row.role},
            after={"tokens_revoked": revoked},
            note=note,
        )
        row.delete()
    return name


def end_sessions(person: int) -> None:
    """End every session of a person, on every browser; their open pages are cut off. Demands an open write."""
    db.must_write()
    User.objects.filter(pk=person).update(sessions_ended=F("sessions_ended") + 1)
    db.after_commit(lambda: nudge.person(person))


def _locked(membership: UUID, actor: Actor, role: Role | None) -> Membership:
    """The member, with all the tenant's members locked, so that two admins cannot take each other's role away."""
    rows = list(Membership.objects.select_for_update(of=("self",)).select_related("user").order_by("pk"))
    row = next((one for one in rows if one.pk == membership), None)
    mine = next((one for one in rows if one.user_id == actor.user_id), None)
    if row is None:
        raise NobodyThere("there is no such member any more")
    my_role = mine.role if mine else ""
    if why_not := why_not_change(actor.user_id or 0, my_role, standing(row, rows), role):
        raise MayNot(why_not)
    return row
