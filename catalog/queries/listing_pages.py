"""A tool's listings: what each changed, any two side by side, and what was approved of them by whom and when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from base import db
from catalog.models import Function, Listing, Stage, Tool, Transport
from catalog.queries.listing_review import ListingRow, count_waiting, entry_of, history
from catalog.queries.trust import approvals_of
from catalog.rules.listing_diff import ListingDiff, compare

LISTINGS_MOST: Final = 100
APPROVALS_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """That a person approved one exact entry; `withdrawn_at` is when that ended, taken back or by a change of it."""

    function: str
    digest: str
    by: str
    at: datetime
    withdrawn_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListingsPage:
    """A tool's listings, newest first, and what leads from `before` to `after`; both are None without two of them."""

    tool: str
    plugin: str
    remote: bool
    waiting: int
    rows: tuple[ListingRow, ...]
    before: ListingRow | None
    after: ListingRow | None
    diff: ListingDiff | None
    approvals: tuple[ApprovalRow, ...]
    now: datetime

    @property
    def changes(self) -> int:
        """How many entries differ between the two."""
        return 0 if self.diff is None else len(self.diff.added) + len(self.diff.removed) + len(self.diff.changed)


def listings_page(
    tenant: UUID, slug: str, *, before: UUID | None = None, after: UUID | None = None
) -> ListingsPage | None:
    """The page; None when there is no such tool, or one of the listings is none of it.

    `after` is the newest when it is left out, `before` the one before it.
    """
    with db.read(tenant) as now:
        current = Tool.objects.filter(slug=slug, plugin_version__stage=Stage.CURRENT)
        tool = current.select_related("plugin_version__plugin").first()
        if tool is None:
            return None
        rows = history(tool, most=LISTINGS_MOST)
        places = {row.id: at for at, row in enumerate(rows)}
        if {before, after} - {None} - places.keys():
            return None
        last = places[after] if after is not None else 0
        first = places[before] if before is not None else last + 1
        both = first < len(rows) and last < len(rows)
        return ListingsPage(
            tool=tool.slug,
            plugin=tool.plugin_version.plugin.name,
            remote=tool.transport == Transport.URL,
            waiting=count_waiting(tool),
            rows=rows,
            before=rows[first] if both else None,
            after=rows[last] if both else None,
            diff=_between(rows[first].id, rows[last].id) if both else None,
            approvals=_approvals(tool),
            now=now,
        )


def _between(before: UUID, after: UUID) -> ListingDiff:
    found: dict[UUID, list[Function]] = {before: [], after: []}
    for row in Function.objects.filter(listing__in=Listing.objects.filter(pk__in=found)).order_by("name"):
        found[row.listing_id].append(row)
    return compare([entry_of(one) for one in found[before]], [entry_of(one) for one in found[after]])


def _approvals(tool: Tool) -> tuple[ApprovalRow, ...]:
    if tool.transport != Transport.URL:
        return ()
    given = approvals_of(tool).select_related("approved_by").order_by("-approved_at", "function")[:APPROVALS_MOST]
    return tuple(
        ApprovalRow(one.function, one.entry_digest, one.approved_by.get_username(), one.approved_at, one.withdrawn_at)
        for one in given
    )
