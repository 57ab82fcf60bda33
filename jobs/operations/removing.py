"""Taking a plugin out of the catalog: nothing of it starts from the commit on, and what waits is told (CASES C03)."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.operations import plugins
from jobs import wake
from jobs.operations import listings_changed
from jobs.queries import locks
from tenants.rules.who import Actor


@dataclass(frozen=True, slots=True)
class Removed:
    """What removing a plugin did: in how many jobs calls that waited were refused or became questions."""

    tools: int
    jobs: int


def remove(*, tenant: UUID, plugin: str, actor: Actor) -> Removed | None:
    """Remove a plugin; None when there is none of that name, or it was removed before.

    Its agents start no job and its functions no call, which the claim checks under the gate. Attempts that run go on to
    their end by the rules they began under. Calls that wait are refused, and where one may have acted a person is
    asked, job by job: what a crash leaves of that, the next claim does.
    """
    with db.write(tenant):
        locks.gate_alone()
        tools = plugins.retire(plugin, actor)
        if tools is None:
            return None
        db.after_commit(lambda: wake.switched(tenant=tenant))
    jobs = sum(listings_changed.ask_anew(tenant=tenant, tool_id=tool) for tool in tools)
    return Removed(len(tools), jobs)
