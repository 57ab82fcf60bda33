"""What of a remote server's listing waits for a person, and what hangs on it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from base import db
from catalog.models import Listing, Stage, Tool, Transport
from catalog.queries.listing_review import Waiting, waiting
from jobs.models import Hold


@dataclass(frozen=True, slots=True)
class EntryShown:
    """One entry to approve: what is new or changed, and how many questions about it are open."""

    waiting: Waiting
    asking: int


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Everything of one remote tool that a person may approve now."""

    tool: str
    remote: bool
    server: str
    protocol: str
    measured_at: datetime | None
    digest: str
    entries: tuple[EntryShown, ...]
    down_reason: str
    now: datetime


def review_page(tenant: UUID, slug: str) -> ReviewPage | None:
    """The page of a tool; None when there is no such tool."""
    with db.read(tenant) as now:
        tool = Tool.objects.filter(slug=slug, plugin_version__stage=Stage.CURRENT).first()
        if tool is None:
            return None
        listing = Listing.objects.filter(tool=tool, current=True).first()
        asking = _asking(slug)
        return ReviewPage(
            tool=tool.slug,
            remote=tool.transport == Transport.URL,
            server=f"{listing.server_name} {listing.server_version}".strip() if listing else "",
            protocol=listing.protocol if listing else "",
            measured_at=listing.measured_at if listing else None,
            digest=listing.digest if listing else "",
            entries=tuple(EntryShown(one, asking.get(one.after.name, 0)) for one in waiting(tool)),
            down_reason=tool.down_reason,
            now=now,
        )


def _asking(slug: str) -> dict[str, int]:
    """Open questions about calls of a tool, by function."""
    held = Hold.objects.filter(closed_at__isnull=True, call__tool_slug=slug)
    return dict(held.values_list("call__function_name").annotate(Count("pk")))
