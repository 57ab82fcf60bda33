"""The open questions as a list for pagers, by API and command: what waits, never the arguments."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from base import db, ids
from base.visible import visible
from jobs.models import Hold
from jobs.queries.trace import name_of

PAGE: Final = 100
MOST_COUNTED: Final = 1_001


def open_holds(tenant: UUID, *, after: UUID | None = None, kind: str = "") -> dict[str, Any]:
    """A page of the open questions, oldest first, as JSON; `next` is what to give as `after`, None on the last."""
    with db.read(tenant) as now:
        fitting = Hold.objects.filter(closed_at__isnull=True)
        if kind:
            fitting = fitting.filter(kind=kind)
        rows = fitting.filter(pk__gt=after) if after else fitting
        found = list(
            rows.select_related("call", "job").defer("call__arguments", "job__input").order_by("pk")[: PAGE + 1]
        )
        oldest = fitting.order_by("opened_at").values_list("opened_at", flat=True).first()
        return {
            "now": now.isoformat(),
            "waiting": fitting[:MOST_COUNTED].count(),
            "oldest_seconds": _seconds(oldest, now),
            "holds": [_told(hold, now) for hold in found[:PAGE]],
            "next": ids.show(ids.HOLD, found[PAGE - 1].pk) if len(found) > PAGE else None,
        }


def _told(hold: Hold, now: datetime) -> dict[str, Any]:
    shown = ids.show(ids.HOLD, hold.pk)
    return {
        "id": shown,
        "kind": hold.kind,
        "function": visible(name_of(hold.call), 200),
        "function_kind": hold.call.kind,
        "agent": hold.job.agent_name,
        "job": ids.show(ids.JOB, hold.job_id),
        "call": ids.show(ids.CALL, hold.call_id),
        "why": visible(hold.why, 600),
        "opened_at": hold.opened_at.isoformat(),
        "waiting_seconds": _seconds(hold.opened_at, now),
        "expires_at": hold.expires_at.isoformat() if hold.expires_at else None,
        "url": f"{settings.OZ0_URL.rstrip('/')}/approvals/{shown}/",
    }


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return round((now - since).total_seconds(), 1) if since else None
