"""New tokens before the old ones run out: intent, commit, act, outcome; one refresh of a connection at a time.

work = refreshing.claim(tenant=…, sign_in=…)     # a node's intent, committed
outcome = refreshing.ask(work)                   # outside any transaction
refreshing.settle(work, outcome)                 # until it has committed
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

from base import db
from catalog.models import Connection, Credential, SignIn, Standing
from catalog.operations import sign_ins
from catalog.rules.oauth import Client, Gone, Later, Provider, Refreshed, Tokens, pause
from catalog.rules.secret_names import client_name, refresh_name
from catalog.sessions import authorization
from tenants.operations import audit, vault
from tenants.rules.who import SYSTEM

# A refresh that has not ended by then belongs to a node that died. Far more than `authorization.LIMIT`: a refresh
# token that is shown twice makes many providers end the whole grant.
LEASE: Final = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class Work:
    """One refresh, complete: what to ask of whom, and the grant it is for."""

    tenant: UUID
    connection: UUID
    grant: int
    asked_at: datetime
    provider: Provider
    client: Client
    allowed: tuple[str, ...]
    token: str = field(repr=False)


def claim(*, tenant: UUID, sign_in: UUID) -> Work | None:
    """Take a due refresh, so that nobody else makes it. None when there is nothing to ask a provider.

    A grant without a refresh token is over when its token runs out.
    """
    with db.write(tenant) as now:
        connection_id = SignIn.objects.filter(pk=sign_in).values_list("connection_id", flat=True).first()
        if connection_id is None:
            return None
        held = Connection.objects.select_for_update(no_key=True).get(pk=connection_id)
        row = sign_ins.locked(held.pk)
        taken = row.refreshing_until is not None and row.refreshing_until > now
        if row.refresh_due_at is None or row.refresh_due_at > now or taken or held.credential != Credential.OAUTH:
            return None
        found, name = sign_ins.provider_of(row), refresh_name(held.pk)
        if found is None or not vault.has(name):
            _without_refresh_token(held, row, now)
            return None
        row.refreshing_until = now + LEASE
        row.save(update_fields=["refreshing_until"])
        return Work(
            tenant=tenant,
            connection=held.pk,
            grant=row.grant,
            asked_at=now,
            provider=found,
            client=sign_ins.client_of(row),
            allowed=tuple(held.allowed),
            token=vault.get(tenant, name),
        )


def ask(work: Work) -> Refreshed:
    """Ask the provider for new tokens, once."""
    return authorization.refresh(work.provider, work.client, allowed=work.allowed, token=work.token)


def settle(work: Work, outcome: Refreshed) -> bool:
    """Keep what a refresh brought; False when the grant it was for has gone meanwhile. May be made twice."""
    with db.write(work.tenant) as now:
        held = Connection.objects.select_for_update(no_key=True).filter(pk=work.connection).first()
        if held is None or held.credential != Credential.OAUTH:
            return False
        row = sign_ins.locked(held.pk)
        if row.grant != work.grant or row.standing != Standing.IN:
            return False
        match outcome:
            case Tokens():
                sign_ins.keep(row, outcome, asked_at=work.asked_at)
                sign_ins.sessions_anew(held)
            case Gone(why, client_too):
                if client_too and not row.client_entered:
                    row.client_id, row.client_method, row.return_to = "", "", ""
                    vault.drop(client_name(held.pk))
                _over(held, row, why)
            case Later(why, wait):
                row.failures += 1
                row.trouble, row.refreshing_until = why[:500], None
                row.refresh_due_at = now + pause(row.failures, wait)
            case never:
                assert_never(never)
        row.save()
        return True


def _without_refresh_token(held: Connection, row: SignIn, now: datetime) -> None:
    if row.expires_at is not None and row.expires_at > now and row.trouble != sign_ins.REFUSED:
        row.refresh_due_at = row.expires_at
    else:
        _over(held, row, "The token ran out or was refused, and the provider had given no refresh token.")
    row.save()


def _over(held: Connection, row: SignIn, why: str) -> None:
    sign_ins.end(row, Standing.AGAIN, why[:500])
    sign_ins.sessions_anew(held)
    audit.record(SYSTEM, "connection.sign_in_over", f"connection {held.name}", note=why[:500])
