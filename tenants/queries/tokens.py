"""API tokens: which there are, and whom one that is shown belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from base import db, ids, prepared
from tenants.models import ApiToken, Role
from tenants.queries.seats import Seat, seat_in
from tenants.rules.bearers import PATIENCE

MOST = 500
NOBODY = 0  # no person has this id
_TOKENS: Final = prepared.Table(ApiToken)
_SHOWN: Final = f"SELECT {_TOKENS.columns('t')} FROM tenants_apitoken t WHERE t.token_hash = %s"  # noqa: S608 - only names of ours


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token as the page lists it. `standing` is live, expired or revoked."""

    shown_id: str
    name: str
    ends: str
    scopes: tuple[str, ...]
    agent: str
    person: str
    is_mine: bool
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None
    standing: str


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who a shown token counts as, and what it may be used for. `agent` is the one it is bound to, or empty.

    `of_session` says that it is a harness session's: it counts as nobody, whose seat may do nothing (RULES G4).
    """

    seat: Seat
    token_id: UUID
    scopes: frozenset[str]
    agent: str
    used_at: datetime | None
    now: datetime
    name: str = ""
    patience: int = PATIENCE
    of_session: bool = False
    as_person: bool = False


def tokens_of(seat: Seat) -> tuple[Sequence[TokenRow], datetime]:
    """The tokens that somebody may see, the newest first: an admin everybody's, others their own. And the time."""
    with db.read(seat.tenant) as now:
        rows = ApiToken.objects.filter(created_by__isnull=False).select_related("created_by").order_by("-created_at")
        if not seat.may(Role.ADMIN):
            rows = rows.filter(created_by_id=seat.person_id)
        return [_row(row, seat, now) for row in rows[:MOST]], now


def bearer(token_hash: str) -> Bearer | None:
    """Whom the token of this hash belongs to by now; None when it counts for nothing, whatever the reason."""
    with db.read_as_bearer(token_hash) as now:
        found = prepared.fetch_one(_SHOWN, (token_hash,))
        row = None if found is None else _TOKENS.row(found)
        if row is None or row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
            return None
        seat = _seat(row)
    if seat is None:
        return None
    kept = (row.name, row.patience, row.created_by_id is None, row.as_person)
    return Bearer(seat, row.pk, frozenset(row.scopes), row.agent, row.used_at, now, *kept)


def _seat(row: ApiToken) -> Seat | None:
    if row.created_by_id is None:
        return Seat(NOBODY, "", row.tenant_id, "", "", Role.VIEWER)
    return seat_in(row.created_by_id, row.tenant_id)


def why_not_start(seat: Seat) -> str | None:
    """Why this person's tokens may start nothing, or None."""
    return None if seat.may(Role.OPERATOR) else "Only operators, authors and admins start jobs, so your token cannot."


def _row(row: ApiToken, seat: Seat, now: datetime) -> TokenRow:
    over = row.expires_at is not None and row.expires_at <= now
    return TokenRow(
        shown_id=ids.show(ids.TOKEN, row.pk),
        name=row.name,
        ends=row.ends,
        scopes=tuple(row.scopes),
        agent=row.agent,
        person=row.created_by.get_username() if row.created_by else "",
        is_mine=row.created_by_id == seat.person_id,
        created_at=row.created_at,
        used_at=row.used_at,
        expires_at=row.expires_at,
        standing="revoked" if row.revoked_at else "expired" if over else "live",
    )
