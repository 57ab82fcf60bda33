"""A person approves entries of a remote server's listing, or takes an approval back (RULES C3, U1, A12)."""

from collections.abc import Mapping
from uuid import UUID

from base import db, text
from catalog.models import EntryApproval, Function, Listing, Stage, Tool, Transport
from catalog.operations import connections
from catalog.queries.trust import approvals_of, origins_of
from tenants.models import Gate
from tenants.operations import audit
from tenants.rules.who import Actor


class BadApproval(ValueError):
    """An approval that cannot be given; the message says why. Nothing was approved."""


class ListingMoved(BadApproval):
    """The server lists something else than the person was shown."""


def approve(*, tenant: UUID, tool: str, shown: Mapping[str, str], actor: Actor) -> tuple[str, ...]:
    """Approve exactly the entries that were shown: the entry's digest by function. Returns the names newly approved.

    The caller has checked that the person may. All or nothing: when one of them is not what the server lists now,
    `ListingMoved` names it. Approving again what stands changes nothing.
    """
    if actor.user_id is None:
        raise BadApproval("only a signed-in person approves what a server says")
    if not shown:
        raise BadApproval("nothing was chosen")
    with db.write(tenant) as now:
        Gate.objects.select_for_update().get(tenant_id=tenant)
        row = _remote(tool)
        moved = sorted(shown.items() - _listed(row).items())
        if moved:
            names = ", ".join(name[:80] for name, _ in moved[:5])
            raise ListingMoved(f"the server describes {names} otherwise than you were shown; look again")
        if _is_older_than_its_connection(row):
            raise ListingMoved("the connection was changed since the server was listed; look again in a moment")
        approvals = approvals_of(row).filter(function__in=shown)
        standing = dict(approvals.filter(withdrawn_at__isnull=True).values_list("function", "entry_digest"))
        fresh = {name: digest for name, digest in sorted(shown.items()) if standing.get(name) != digest}
        before = dict(approvals.order_by("approved_at").values_list("function", "entry_digest"))
        approvals.filter(function__in=fresh, withdrawn_at__isnull=True).update(withdrawn_at=now)
        origin = origins_of([row])[row.pk]
        EntryApproval.objects.bulk_create(
            EntryApproval(
                tenant_id=tenant,
                tool_slug=row.slug,
                plugin=origin.plugin,
                connection=origin.connection,
                address=origin.address,
                function=name,
                entry_digest=digest,
                approved_by_id=actor.user_id,
                approved_at=now,
            )
            for name, digest in fresh.items()
        )
        if fresh:
            audit.record(
                actor,
                "listing.approved",
                f"tool {row.slug}",
                before={name: before.get(name) for name in fresh},
                after=fresh,
            )
    return tuple(fresh)


def withdraw(*, tenant: UUID, tool: str, function: str, shown: str, actor: Actor, note: str = "") -> None:
    """Take the standing approval of an entry back: what the entry says of itself counts no more.

    `shown` is the entry's digest as the person was shown it. The caller has checked that the person may. Raises
    `ListingMoved` when no approval of that stands any more. What waits by it is asked anew by
    `jobs.operations.listings_changed`; until then no approval of a call that was given by it lets one run.
    """
    if actor.user_id is None:
        raise BadApproval("only a signed-in person takes an approval back")
    with db.write(tenant) as now:
        Gate.objects.select_for_update().get(tenant_id=tenant)
        standing = approvals_of(_remote(tool)).filter(function=function, withdrawn_at__isnull=True)
        if standing.filter(entry_digest=shown).update(withdrawn_at=now) == 0:
            raise ListingMoved(
                f"no approval of {text.visible(function, 80)} as you were shown it stands any more; look again"
            )
        audit.record(actor, "listing.withdrawn", f"tool {tool}", before={function: shown}, note=note)


def _is_older_than_its_connection(tool: Tool) -> bool:
    """Whether the listing that is kept was measured before the connection led where it leads now."""
    measured_at = Listing.objects.filter(tool=tool, current=True).values_list("measured_at", flat=True).first()
    return measured_at is not None and connections.changed_since(tool, measured_at)


def _remote(slug: str) -> Tool:
    tool = Tool.objects.filter(slug=slug, plugin_version__stage=Stage.CURRENT).first()
    if tool is None:
        raise BadApproval(f"there is no tool {slug[:80]!r}")
    if tool.transport != Transport.URL:
        raise BadApproval(f"{slug} is a plugin's own server: its word counts without an approval")
    return tool


def _listed(tool: Tool) -> dict[str, str]:
    listing = Listing.objects.filter(tool=tool, current=True)
    return dict(Function.objects.filter(listing__in=listing).values_list("name", "entry_digest"))
