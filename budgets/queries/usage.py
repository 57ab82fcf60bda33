"""What programs have told of their calls, page by page, the newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Model, QuerySet

from base import db, ids
from budgets.models import Run, SpendEvent


@dataclass(frozen=True, slots=True)
class Page[Row]:
    """Rows, and the cursor of those after them; None when there are no more."""

    rows: Sequence[Row]
    next: str | None


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Which events are wanted; what is None does not matter."""

    run: UUID | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def usage(*, tenant: UUID, project: UUID, wanted: UsageFilter, before: UUID | None, most: int) -> Page[SpendEvent]:
    """Events of a project, each with its run."""
    rows = SpendEvent.objects.filter(project_id=project).select_related("run")
    if wanted.run is not None:
        rows = rows.filter(run_id=wanted.run)
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    if wanted.since is not None:
        rows = rows.filter(timestamp__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(timestamp__lt=wanted.until)
    return _page(tenant, rows, ids.SPEND_EVENT, before, most)


def runs(*, tenant: UUID, project: UUID, name: str, before: UUID | None, most: int) -> Page[Run]:
    """Runs of a project; only the one of this name, when there is one named."""
    rows = Run.objects.filter(project_id=project)
    if name:
        rows = rows.filter(name=name)
    return _page(tenant, rows, ids.PROGRAM_RUN, before, most)


def _page[Row: Model](tenant: UUID, rows: QuerySet[Row], prefix: str, before: UUID | None, most: int) -> Page[Row]:
    if before is not None:
        rows = rows.filter(pk__lt=before)
    with db.read(tenant):
        found = list(rows.order_by("-pk")[: most + 1])
    return Page(found[:most], ids.show(prefix, found[most - 1].pk) if len(found) > most else None)
