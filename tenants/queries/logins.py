"""A login that a command asks for, as its person sees it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db, ids
from tenants.models import LoginAsk


@dataclass(frozen=True, slots=True)
class LoginPage:
    """`standing` is open, allowed, denied or expired."""

    shown_id: str
    code: str
    machine: str
    address: str
    asked_at: datetime
    expires_at: datetime
    standing: str
    now: datetime


def login_page(ask: UUID) -> LoginPage | None:
    """The login of this id; None when there is none."""
    with db.durable() as now:
        row = LoginAsk.objects.filter(pk=ask).first()
    if row is None:
        return None
    answered = "" if row.answered_at is None else "allowed" if row.allowed else "denied"
    return LoginPage(
        shown_id=ids.show(ids.LOGIN, row.pk),
        code=f"{row.code[:4]}-{row.code[4:]}",
        machine=row.machine,
        address=row.address,
        asked_at=row.asked_at,
        expires_at=row.expires_at,
        standing=answered or ("expired" if row.expires_at <= now else "open"),
        now=now,
    )
