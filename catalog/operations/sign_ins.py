"""The row and the secrets of a connection's sign-in: where they lie, and what makes them end or refresh."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import Connection, SignIn, Standing, Tool
from catalog.queries.sign_ins import shown_id, sign_in_of
from catalog.rules.oauth import Client, Provider, Tokens, refresh_at
from catalog.rules.secret_names import access_name, begun_name, client_name, refresh_name
from tenants.operations import vault

REFUSED: Final = "The server refused the token (HTTP status 401)."
TOKEN_REFUSED: Final = 401
SETTLED: Final = timedelta(minutes=1)  # a token that a server refuses sooner than this is not asked for anew by itself


def forget(connection: UUID) -> None:
    """Drop a connection's sign-in with all its secrets. Demands an open write."""
    db.must_write()
    SignIn.objects.filter(connection_id=connection).delete()
    for name in (refresh_name(connection), client_name(connection)):
        vault.drop(name)
    vault.drop_all(begun_name(connection, ""))


def locked(connection: UUID) -> SignIn:
    """The sign-in of a connection whose row the caller holds; made when it has none. Demands an open write."""
    db.must_write()
    row = SignIn.objects.select_for_update(no_key=True, of=("self",)).filter(connection_id=connection).first()
    return row or SignIn.objects.create(tenant_id=db.writing_tenant(), connection_id=connection)


def client_of(row: SignIn) -> Client:
    """The studio as the provider knows it, its secret included. Demands an open read or write."""
    secret = ""
    if vault.has(client_name(row.connection_id)):
        secret = vault.get(row.tenant_id, client_name(row.connection_id))
    return Client(row.client_id, secret, row.client_method)


def provider_of(row: SignIn) -> Provider | None:
    """The provider as it was found when somebody last signed in."""
    return read_provider(row.provider) if row.provider else None


def read_provider(kept: Any) -> Provider:
    """A provider as `asdict` wrote it."""
    return Provider(**{**kept, "methods": tuple(kept["methods"])})


def write_provider(found: Provider) -> dict[str, Any]:
    """A provider as JSON."""
    return {**asdict(found), "methods": list(found.methods)}


def keep(row: SignIn, granted: Tokens, *, asked_at: datetime) -> None:
    """Keep new tokens: the refresh token before the access token, and a new credential version. Does not save `row`."""
    if granted.refresh:
        vault.put(refresh_name(row.connection_id), granted.refresh)
    vault.put(access_name(row.connection_id), granted.access)
    row.standing, row.failures, row.trouble = Standing.IN, 0, ""
    row.granted_at = asked_at
    row.expires_at = None if granted.lifetime is None else asked_at + granted.lifetime
    row.refresh_due_at = refresh_at(asked_at, granted.lifetime)
    row.refreshing_until = None
    row.scopes = row.scopes if granted.scopes is None else granted.scopes
    row.grant += 1


def end(row: SignIn, standing: Standing, why: str) -> None:
    """The grant is over: its tokens leave the vault. Does not save `row`."""
    vault.drop(access_name(row.connection_id))
    vault.drop(refresh_name(row.connection_id))
    row.standing, row.trouble, row.failures = standing, why, 0
    row.expires_at = row.refresh_due_at = row.refreshing_until = None
    row.grant += 1


def sessions_anew(connection: Connection) -> None:
    """Replace the sessions that show the old token, by a new credential version. The caller holds the row."""
    connection.credential_version += 1
    connection.save(update_fields=["credential_version"])


def why_unusable(connection: Connection) -> str:
    """Why a connection's sign-in cannot be used now, empty when it can. Demands an open read or write."""
    row, now = sign_in_of(connection)
    there = f"an admin signs in at /settings/connections/{shown_id(connection)}/"
    if row is None or row.standing == Standing.OUT:
        return f"nobody is signed in to connection {connection.name}: {there}"
    if row.standing == Standing.AGAIN:
        return f"the sign-in of connection {connection.name} is over: {there}"
    if row.expires_at is not None and row.expires_at <= now:
        tried = f" ({row.trouble.rstrip('.')})" if row.trouble else ""
        over = f"the token of connection {connection.name} ran out and has not been refreshed yet{tried}"
        return f"{over}: if it stays so, {there}"
    return ""


def refused(tool: Tool, *, sent_at: datetime) -> None:
    """A server answered 401 to a call that was sent at this time: its token is due to be refreshed. Demands a write."""
    now = db.must_write()
    shown = SignIn.objects.filter(connection__name=tool.connection, standing=Standing.IN)
    shown.filter(granted_at__lt=min(sent_at, now - SETTLED)).exclude(refresh_due_at__lte=now).update(
        refresh_due_at=now, trouble=REFUSED
    )
