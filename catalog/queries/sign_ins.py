"""A connection's sign-in as it stands now, and which are due to be refreshed."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.db import connection as database

from base import db, ids
from catalog.models import Connection, SignIn, Standing
from catalog.rules.secret_names import client_name, refresh_name
from tenants.models import Secret


@dataclass(frozen=True, slots=True)
class SignInPage:
    """A sign-in as its connection's page shows it; never a token or a secret."""

    standing: Standing
    provider: str  # its host, empty before anybody signed in
    client_id: str
    client_entered: bool
    has_secret: bool
    wanted: str
    scopes: tuple[str, ...]
    by: str
    at: datetime | None
    granted_at: datetime | None
    expires_at: datetime | None
    expired: bool
    refresh_due_at: datetime | None
    refreshable: bool
    trouble: str


def sign_in_of(connection: Connection) -> tuple[SignIn | None, datetime]:
    """(the sign-in of a connection, the time). Demands an open read or write."""
    with database.cursor() as cursor:
        cursor.execute("SELECT oz0_now()")
        now: datetime = cursor.fetchone()[0]
    return SignIn.objects.filter(connection=connection).first(), now


def shown_id(connection: Connection) -> str:
    """A connection's id as addresses hold it."""
    return ids.show(ids.CONNECTION, connection.pk)


def due(*, most: int) -> list[tuple[UUID, UUID]]:
    """At most `most` sign-ins whose token should be refreshed now, as (tenant, sign-in)."""
    with db.sweep() as now:
        rows = SignIn.objects.filter(refresh_due_at__lte=now).exclude(refreshing_until__gt=now)
        return list(rows.order_by("refresh_due_at").values_list("tenant_id", "pk")[:most])


def sign_in_page(connection: Connection) -> SignInPage:
    """A connection's sign-in for its page. Demands an open read."""
    row, now = sign_in_of(connection)
    row = row or SignIn(connection=connection)
    names = [client_name(connection.pk), refresh_name(connection.pk)]
    kept = set(Secret.objects.filter(name__in=names).values_list("name", flat=True))
    return SignInPage(
        standing=Standing(row.standing),
        provider=urlsplit(str(row.provider.get("issuer", ""))).netloc,
        client_id=row.client_id,
        client_entered=row.client_entered,
        has_secret=client_name(connection.pk) in kept,
        wanted=row.wanted,
        scopes=tuple(row.scopes.split()),
        by=row.signed_in_by.get_username() if row.signed_in_by else "",
        at=row.signed_in_at,
        granted_at=row.granted_at,
        expires_at=row.expires_at,
        expired=row.expires_at is not None and row.expires_at <= now,
        refresh_due_at=row.refresh_due_at,
        refreshable=refresh_name(connection.pk) in kept,
        trouble=row.trouble,
    )
