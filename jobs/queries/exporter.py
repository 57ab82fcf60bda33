"""Where the traces of a tenant's jobs go, for its page."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from jobs.models import Exporter


@dataclass(frozen=True, slots=True)
class ExporterPage:
    """The exporter as it stands. `tries` is how often the same was sent in vain."""

    url: str
    allowed: tuple[str, ...]
    header: str
    on: bool
    sent: int
    sent_at: datetime | None
    tries: int
    trouble: str
    due_at: datetime
    now: datetime


def exporter_page(tenant: UUID) -> ExporterPage | None:
    """None where traces go nowhere."""
    with db.read(tenant) as now:
        row = Exporter.objects.first()
    if row is None:
        return None
    return ExporterPage(
        url=row.url,
        allowed=tuple(row.allowed),
        header=row.header,
        on=row.on,
        sent=row.sent,
        sent_at=row.sent_at,
        tries=row.tries,
        trouble=row.trouble,
        due_at=row.due_at,
        now=now,
    )
