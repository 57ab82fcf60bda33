"""Taking a plugin out of the catalog: nothing of it starts from the commit on, and what waits is told (CASES C03).

What it leaves is kept, so that it can come back, until somebody deletes it for good.
"""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from base import db
from catalog.operations import forgetting, plugins
from jobs import wake
from jobs.models import Attempt
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


class StillRuns(RuntimeError):
    """Calls of a removed plugin have not ended yet, so nothing of it was deleted."""


def delete_for_good(*, tenant: UUID, plugin: str, home: Path, actor: Actor) -> list[str] | None:
    """Delete the files and the values in the vault of a plugin that was removed. It cannot be brought back then.

    None when no plugin of that name was removed; else what of its files could not be deleted, a sentence each, and
    another try finds them. Raises `StillRuns`.
    """
    with db.write(tenant):
        locks.gate_alone()
        running = Attempt.objects.filter(
            call__function__tool__plugin_version__plugin__name=plugin, ended_at__isnull=True
        ).count()
        if running:
            raise StillRuns(f"{running} of its calls still run: wait until they have ended, or stop their jobs")
        forgotten = forgetting.forget(plugin, home, actor)
    return None if forgotten is None else forgetting.delete_files(forgotten.folders, home)
