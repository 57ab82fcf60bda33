"""A project's keys: made by a person, shown once, rotated and revoked; and the pairs that `oz0 login` comes to.

Secrets are drawn at the edge and only their hashes are kept.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from base import db
from budgets.errors import BadProject
from budgets.models import Key, Project
from budgets.rules.words import KeyScope
from tenants.models import ApiToken
from tenants.operations import audit
from tenants.operations.invitations import hash_of
from tenants.rules.bearers import ENDS
from tenants.rules.pace import Pace, pace
from tenants.rules.who import Actor

MOST_LIVE: Final = 200  # keys and pairs of one project
MOST_NAME: Final = 100
OVERLAP: Final = timedelta(hours=24)  # for which a key that was rotated still counts
ACCESS: Final = timedelta(minutes=15)  # of a pair, until it is renewed
LASTS: Final = timedelta(days=90)  # a pair, where its login has no end
USED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """The secrets of a pair, as they were drawn: what is shown, and what renews it."""

    access: str
    refresh: str


def make(*, tenant: UUID, project: UUID, secret: str, name: str, scope: KeyScope, actor: Actor) -> UUID:
    """Keep the hash of a new key. Raises `BadProject`, and `Project.DoesNotExist`."""
    name = name.strip()
    if not name or len(name) > MOST_NAME:
        raise BadProject(f"Give it a name of up to {MOST_NAME} characters: where it will be used, for example.")
    with db.write(tenant) as now:
        row = Project.objects.get(pk=project)
        key = _kept(row, secret, name, scope, actor, now)
        audit.record(actor, "budget_key.made", f"key {name} of {row.name}", after={"scope": scope.value})
    return key.pk


def rotate(*, tenant: UUID, key: UUID, secret: str, actor: Actor) -> str | None:
    """Make another key like this one, which counts for a day more; its name. None when it is no live key.

    One that was rotated has an end, and is rotated no more: asked for twice at once, there is one new key.
    Raises `BadProject`.
    """
    with db.write(tenant) as now:
        old = _live(key, now)
        if old is None or old.refresh_hash is not None:
            return None
        if old.expires_at is not None:
            raise BadProject(f"{old.name} was rotated already: rotate the key that took its place.")
        _kept(old.project, secret, old.name, KeyScope(old.scope), actor, now)
        old.expires_at = now + OVERLAP
        old.save(update_fields=["expires_at"])
        told = {"expires_at": old.expires_at.isoformat()}
        audit.record(actor, "budget_key.rotated", f"key {old.name} of {old.project.name}", after=told)
        return old.name


def revoke(*, tenant: UUID, key: UUID, actor: Actor) -> str | None:
    """Let a key or pair count no more, from now on; its name, or None when it is no live one."""
    with db.write(tenant) as now:
        row = _live(key, now)
        if row is None:
            return None
        row.revoked_at = now
        row.save(update_fields=["revoked_at"])
        audit.record(actor, "budget_key.revoked", f"key {row.name} of {row.project.name}")
        return row.name


def trade(
    *, tenant: UUID, project: UUID, pair: Pair, name: str, scope: KeyScope, login: UUID, actor: Actor
) -> datetime:
    """Keep a pair for a command that is logged in, for as long as this token of it counts; when its access ends."""
    with db.write(tenant) as now:
        row = Project.objects.get(pk=project)
        made = _kept(row, pair.access, name[:MOST_NAME], scope, actor, now)
        made.refresh_hash, made.access_until = hash_of(pair.refresh), now + ACCESS
        made.login = ApiToken.objects.get(pk=login)
        made.expires_at = made.login.expires_at or now + LASTS
        made.save(update_fields=["refresh_hash", "access_until", "login", "expires_at"])
        audit.record(actor, "budget_key.made", f"key {name} of {row.name}", after={"scope": scope.value})
        return made.access_until


def renew(*, tenant: UUID, key: UUID, shown: str, pair: Pair) -> datetime | None:
    """Put new secrets in the place of a pair's, for who shows what renews it; when its access ends.

    The secret before it counts on until the new one was used, since the answer that holds it may be lost on its way;
    None when neither is what was shown.
    """
    with db.write(tenant) as now:
        row = _live(key, now)
        hashed = hash_of(shown)
        if row is None or hashed not in (row.refresh_hash, row.old_refresh_hash):
            return None
        row.token_hash, row.ends = hash_of(pair.access), pair.access[-ENDS:]
        row.old_refresh_hash, row.refresh_hash = hashed, hash_of(pair.refresh)
        row.access_until = now + ACCESS
        row.save(update_fields=["token_hash", "ends", "old_refresh_hash", "refresh_hash", "access_until"])
        return row.access_until


def admit(*, tenant: UUID, key: UUID, limit: int) -> Pace | None:
    """Count one question of a key, over every web process; None when nothing limits it.

    That its newest secret is used ends the one before it. When it was used is noted once a minute.
    """
    with db.write(tenant) as now:
        row = Key.objects.select_for_update(no_key=True).get(pk=key)
        found = pace(row.paced_until, now, limit=limit) if limit else None
        changed = {"old_refresh_hash": None} if row.old_refresh_hash else {}
        if row.used_at is None or now - row.used_at >= USED_EVERY:
            changed |= {"used_at": now}  # type: ignore[dict-item]
        if found is not None and found.allowed:
            changed |= {"paced_until": found.until}  # type: ignore[dict-item]
        if changed:
            Key.objects.filter(pk=key).update(**changed)
        return found


def _kept(project: Project, secret: str, name: str, scope: KeyScope, actor: Actor, now: datetime) -> Key:
    if Key.objects.live(now).filter(project=project).count() >= MOST_LIVE:
        raise BadProject(f"{project.name} has {MOST_LIVE} keys: revoke those that are not used any more first.")
    assert actor.user_id is not None  # noqa: S101 - the system makes no key
    return Key.objects.create(
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        scope=scope,
        token_hash=hash_of(secret),
        ends=secret[-ENDS:],
        person_id=actor.user_id,
        made_at=now,
    )


def _live(key: UUID, now: datetime) -> Key | None:
    rows = Key.objects.select_for_update(no_key=True, of=("self",)).select_related("project")
    return rows.live(now).filter(pk=key).first()
