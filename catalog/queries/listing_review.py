"""Listings side by side: what waits for a person's approval, and what one changed from the one before (RULES C3)."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from catalog.models import Function, Listing, Tool, Transport
from catalog.queries.trust import approvals_of, approved_entries, trusted_by
from catalog.rules.kinds import Traits, traits_of
from catalog.rules.listing_diff import Change, Entry, changes

HISTORY: Final = 5  # listings that a tool's page shows


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry of a remote listing whose word does not count yet. `before` is what was approved last, if anything.

    `says` is what would count with an approval.
    """

    after: Entry
    before: Entry | None
    changes: tuple[Change, ...]
    says: Traits
    tokens: int


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One listing in a tool's history, with what it changed; `first` when there was none before it."""

    id: UUID
    digest: str
    measured_at: datetime
    server: str
    protocol: str
    current: bool
    first: bool
    functions: int
    added: int
    removed: int
    changed: int


def entry_of(row: Function) -> Entry:
    """A stored entry as a value to compare."""
    return Entry(
        name=row.name,
        digest=row.entry_digest,
        title=row.title,
        description=row.description,
        input_schema=row.input_schema,
        output_schema=row.output_schema,
        annotations=row.annotations,
        meta=row.meta,
    )


def waiting(tool: Tool) -> tuple[Waiting, ...]:
    """What of a tool's current listing waits for a person, by name: changed entries first. Demands an open read."""
    if tool.transport != Transport.URL:
        return ()
    approved = approved_entries([tool])
    current = Function.objects.filter(tool=tool, listing__current=True).select_related("tool")
    unapproved = [row for row in current.order_by("name") if not trusted_by(row, approved)]
    names = [row.name for row in unapproved]
    last = dict(
        approvals_of(tool)
        .filter(function__in=names)
        .order_by("approved_at", "pk")
        .values_list("function", "entry_digest")
    )
    known = Function.objects.filter(tool__slug=tool.slug, name__in=last, entry_digest__in=last.values())
    before = {(row.name, row.entry_digest): entry_of(row) for row in known.order_by("pk")}
    found = []
    for row in unapproved:
        after, old = entry_of(row), before.get((row.name, last.get(row.name, "")))
        says = traits_of(row.annotations, row.meta)
        found.append(Waiting(after, old, changes(old, after) if old else (), says, row.tokens or 0))
    return tuple(sorted(found, key=lambda one: (one.before is None, one.after.name)))


def count_waiting(tool: Tool) -> int:
    """How many entries wait for a person. Demands an open read."""
    if tool.transport != Transport.URL:
        return 0
    approved = approved_entries([tool])
    rows = Function.objects.filter(tool=tool, listing__current=True).values_list("name", "entry_digest")
    return sum((tool.pk, name, digest) not in approved for name, digest in rows)


def history(tool: Tool, *, most: int = HISTORY) -> tuple[ListingRow, ...]:
    """The newest listings of a tool, newest first. Demands an open read."""
    rows = list(Listing.objects.filter(tool=tool).order_by("-pk")[: most + 1])
    entries: dict[UUID, dict[str, str]] = defaultdict(dict)
    listed = Function.objects.filter(listing__in=[row.pk for row in rows])
    for listing_id, name, digest in listed.values_list("listing_id", "name", "entry_digest"):
        entries[listing_id][name] = digest
    found = []
    for at, row in enumerate(rows[:most]):
        old = entries[rows[at + 1].pk] if at + 1 < len(rows) else {}
        new = entries[row.pk]
        found.append(
            ListingRow(
                id=row.pk,
                digest=row.digest,
                measured_at=row.measured_at,
                server=f"{row.server_name} {row.server_version}".strip(),
                protocol=row.protocol,
                current=row.current,
                first=at + 1 == len(rows),
                functions=len(new),
                added=len(new.keys() - old.keys()),
                removed=len(old.keys() - new.keys()),
                changed=sum(new[name] != old[name] for name in new.keys() & old.keys()),
            )
        )
    return tuple(found)
