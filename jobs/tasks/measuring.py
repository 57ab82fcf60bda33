"""Reading a tool's listing from its own server, and keeping it (RULES C2)."""

from uuid import UUID

from base import db, sandbox
from base.clock import boot_time
from catalog.models import Tool
from catalog.operations import linting, listings
from jobs.node.node import Node
from jobs.node.values import CannotMeasure
from jobs.operations import listings_changed
from jobs.operations.servers import server_of
from jobs.queries import locks
from jobs.rules.orders import Sighting


def look_at_sandboxes() -> None:
    """As a node starts: what keeps sandboxed tools apart here is what their pages are to say from now on."""
    for tenant, tool_id in listings.kept_apart_otherwise(sandbox.measured()):
        listings.measure_again(tenant=tenant, tool_id=tool_id)


def measure(node: Node, *, tenant: UUID, tool_id: UUID) -> None:
    """Measure one tool now. A server that cannot be listed is tried again later, and its page says why.

    What waits by an entry that is described otherwise now is asked anew (RULES C3). Then it is linted, for the pages.
    """
    began = boot_time()
    with db.write(tenant):
        locks.gate_shared()  # a change of the connection that is under way is waited for, and followed
        spec = server_of(Tool.objects.select_related("plugin_version").get(pk=tool_id))
    try:
        measured = node.measure(spec)
    except CannotMeasure as error:
        listings.not_measured(tenant=tenant, tool_id=tool_id, why=str(error), status=error.status)
    else:
        listings.store(tenant=tenant, tool_id=tool_id, measured=measured, began=began)
        listings_changed.ask_anew(tenant=tenant, tool_id=tool_id)
        linting.lint_tool(tenant=tenant, tool_id=tool_id)


def keep_seen(*, tenant: UUID, tool_id: UUID, seen: Sighting) -> None:
    """Keep what a session listed instead of what its call was judged by: a change, shown and for a person to approve.

    So a server that describes itself otherwise only now and then does not get away with it (RULES C3).
    """
    listings.store(tenant=tenant, tool_id=tool_id, measured=seen.listing, began=seen.at)
    listings_changed.ask_anew(tenant=tenant, tool_id=tool_id)
    linting.lint_tool(tenant=tenant, tool_id=tool_id)
