"""API tokens: made by a person, shown once, revoked at once (RULES A5, A10, A12; CASES A18, A19).

A token counts for as long as its person does, and for no more than they may do by now.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from base import db
from tenants.models import ApiToken
from tenants.operations import audit
from tenants.operations.invitations import hash_of
from tenants.queries.seats import Seat
from tenants.queries.tokens import why_not_start
from tenants.rules.bearers import ENDS, LEAST_PATIENCE, MOST_PATIENCE, PATIENCE, SESSION_PATIENCE, Scope
from tenants.rules.pace import Pace, pace
from tenants.rules.who import Actor

MOST_LIVE: Final = 100
MOST_NAME: Final = 100
DAYS: Final = (7, 30, 90, 365)
USED_EVERY: Final = timedelta(minutes=1)


class BadToken(ValueError):
    """A token that cannot be made so. The message says what is wrong."""


def make(
    *,
    seat: Seat,
    token: str,
    name: str,
    scopes: Sequence[str],
    agent: str,
    days: int | None,
    actor: Actor,
    patience: int = PATIENCE,
    as_person: bool = False,
) -> UUID:
    """Keep the hash of a new token for whose seat it is; `days` is None for one that lasts. Raises `BadToken`.

    `patience` is for how many seconds its client waits for a call (RULES G5). What one of `oz0 login` starts,
    `as_person`, counts as started by the person, who is there to answer for it.
    """
    name = name.strip()
    if not name or len(name) > MOST_NAME:
        raise BadToken(f"Give it a name of up to {MOST_NAME} characters: where it will be used, for example.")
    if not scopes or set(scopes) - set(Scope):
        raise BadToken(f"Choose what it may do: {', '.join(Scope)}.")
    if {Scope.START, Scope.CALL} & set(scopes) and (why_not := why_not_start(seat)):
        raise BadToken(why_not)
    if Scope.CALL in scopes and not agent:
        raise BadToken("A token that calls tools is bound to one agent, whose functions they are: name it.")
    if not LEAST_PATIENCE <= patience <= MOST_PATIENCE:
        raise BadToken(f"A client waits for {LEAST_PATIENCE} to {MOST_PATIENCE:,} seconds.")
    if days is not None and days not in DAYS:
        raise BadToken(f"A token lasts {', '.join(map(str, DAYS))} days, or until it is revoked.")
    with db.write(seat.tenant) as now:
        mine = ApiToken.objects.filter(created_by_id=seat.person_id, revoked_at__isnull=True)
        if mine.count() >= MOST_LIVE:
            raise BadToken(f"You have {MOST_LIVE} tokens: revoke those that are not used any more first.")
        row = ApiToken.objects.create(
            tenant_id=seat.tenant,
            token_hash=hash_of(token),
            ends=token[-ENDS:],
            name=name,
            scopes=sorted(set(scopes)),
            agent=agent,
            created_by_id=seat.person_id,
            created_at=now,
            expires_at=None if days is None else now + timedelta(days=days),
            patience=patience,
            as_person=as_person,
        )
        after = {"scopes": row.scopes, "agent": agent, "expires_at": row.expires_at and row.expires_at.isoformat()}
        audit.record(actor, "token.made", f"token {name}", after=after)
    return row.pk


def revoke(*, tenant: UUID, token_id: UUID, owner: int | None, actor: Actor) -> str | None:
    """Revoke a token, of this owner when one is named; its name, or None when there is no such live one."""
    with db.write(tenant) as now:
        found = ApiToken.objects.select_for_update().filter(pk=token_id, revoked_at__isnull=True)
        row = (found if owner is None else found.filter(created_by_id=owner)).first()
        if row is None:
            return None
        row.revoked_at = now
        row.save(update_fields=["revoked_at"])
        audit.record(actor, "token.revoked", f"token {row.name}", before={"scopes": row.scopes, "agent": row.agent})
        return row.name


def for_session(*, token: str, name: str, agent: str) -> UUID:
    """Keep the hash of a harness session's own token, which can only call its agent's tools (RULES G4).

    Demands an open write. Nobody made it and no page lists it: it ends with the session (`end_of_session`).
    """
    now = db.must_write()
    row = ApiToken.objects.create(
        tenant_id=db.writing_tenant(),
        token_hash=hash_of(token),
        ends=token[-ENDS:],
        name=name[:MOST_NAME],
        scopes=[Scope.CALL.value],
        agent=agent,
        created_at=now,
        patience=SESSION_PATIENCE,
    )
    return row.pk


def end_of_session(token_id: UUID) -> None:
    """Let a session's token count no more. Demands an open write; twice is no error."""
    ApiToken.objects.filter(pk=token_id, revoked_at__isnull=True).update(revoked_at=db.must_write())


def used(*, tenant: UUID, token_id: UUID, last: datetime | None, now: datetime) -> None:
    """Note that a token is used, at most once a minute."""
    if last is None or now - last >= USED_EVERY:
        with db.write(tenant) as at:
            ApiToken.objects.filter(pk=token_id).update(used_at=at)


def admit(*, tenant: UUID, token_id: UUID, last: datetime | None, now: datetime, limit: int) -> Pace | None:
    """Count one question of a token, in the database and so over every web process; None when nothing limits it.

    That it is used is noted at most once a minute.
    """
    if not limit:
        used(tenant=tenant, token_id=token_id, last=last, now=now)
        return None
    with db.write(tenant) as at:
        row = ApiToken.objects.select_for_update(no_key=True).only("paced_until").get(pk=token_id)
        found = pace(row.paced_until, at, limit=limit)
        changed = {"used_at": at} if last is None or now - last >= USED_EVERY else {}
        if found.allowed:
            changed |= {"paced_until": found.until}
        if changed:
            ApiToken.objects.filter(pk=token_id).update(**changed)
        return found
