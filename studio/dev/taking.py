"""The studio's side of a save: the plugin taken into its catalog, and what policy then says of each function.

Imported once Django is set up.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from uuid import UUID

from django.db import close_old_connections

from base import db
from catalog.models import ServerLog, Tool
from catalog.operations import linting, listings, plugins, variables
from catalog.queries.policy_waiting import Show, WaitingRow, rows_of
from catalog.rules.servers import MeasuredListing
from studio.cli import _this_studio
from studio.cli.sign_in_link import make_link
from studio.dev.news import Fate
from studio.dev.reading import Saved
from studio.dev.saying import grown


class Workplace:
    """The first workspace of this state folder, and its admin."""

    def __init__(self) -> None:
        self.tenant, person = _this_studio.me()
        self.home = _this_studio.home()
        self._actor = _this_studio.actor(person, "oz0 dev")
        self._heard: dict[tuple[UUID, UUID], list[str]] = {}

    def link(self, url: str) -> str:
        """A link that signs the author in, once."""
        return make_link(url)

    def take(self, saved: Saved, folder: Path, listed: Mapping[str, MeasuredListing], began: float) -> None:
        """Make the files in `folder` the plugin's current version, with what its servers were seen to list.

        `began` is when they were asked, by this process's `boot_time`. Raises `BadPlugin` or `BadFolder`.
        """
        close_old_connections()
        with db.write(self.tenant):
            for tool in saved.spec.tools:
                wanted = saved.variables.get(tool.id, {})
                variables.keep(plugin=saved.spec.name, tool=tool.id, wanted=wanted, actor=self._actor)
        found = plugins.register(tenant=self.tenant, folder=folder, home=self.home, actor=self._actor)
        with db.read(self.tenant):
            ids = dict(Tool.objects.filter(plugin_version=found.version).values_list("slug", "pk"))
        for slug, measured in listed.items():
            listings.store(tenant=self.tenant, tool_id=ids[slug], measured=measured, began=began)
        linting.lint_version(tenant=self.tenant, version_id=found.version)

    def fates(self, tools: Collection[str], tokens: Mapping[str, int]) -> tuple[Fate, ...]:
        """What becomes of the calls of each function of these tools, by tool and name."""
        close_old_connections()
        return tuple(
            Fate(
                label=(label := f"{row.tool}.{row.function}"),
                kind=row.kind,
                tokens=tokens.get(label),
                fate=sort,
                why="" if sort is Show.RUNS else row.why or _by_rule(row),
                fixes=tuple((fix.says, fix.paste) for fix in row.fixes),
            )
            for sort, row in rows_of(self.tenant, tools)
        )

    def heard(self, plugin: str) -> list[tuple[str, str]]:
        """(tool, line) of what the plugin's servers said since this was last asked."""
        with db.read(self.tenant):
            logs = ServerLog.objects.filter(tool__plugin_version__plugin__name=plugin).order_by("written_at")
            rows = list(logs.values_list("tool_id", "node", "tool__slug", "lines"))
        found = []
        for tool_id, node, slug, lines in rows:
            found += [(slug, line) for line in grown(self._heard.get((tool_id, node), []), lines)]
            self._heard[(tool_id, node)] = lines
        return found


def _by_rule(row: WaitingRow) -> str:
    """By which rule some or all of its calls do not run freely."""
    if row.sometimes:
        said = [f"“{one.title}” says {one.effect} when {one.when or 'it holds'}" for one in row.sometimes]
        return f"Not all of its calls run freely: {'; '.join(said)}."
    return f"The policy's rule “{row.rule}” refuses its calls."
