"""The studio's side of a save: the plugin taken into its catalog, and what policy then says of each function.

Imported once Django is set up.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import close_old_connections

from base import db, folders
from catalog.models import PluginVersion, ServerLog, Stage, Tool
from catalog.operations import linting, listings, plugins, variables
from catalog.queries.policy_waiting import Show, WaitingRow, rows_of
from catalog.rules.problems import BadPlugin
from catalog.rules.servers import MeasuredListing
from jobs.operations import removing
from studio.cli import _this_studio
from studio.cli.sign_in_link import make_link
from studio.dev import keeping
from studio.dev.news import Fate
from studio.dev.reading import Saved
from studio.dev.saying import grown

LATE_COMMIT: Final = timedelta(seconds=10)  # by which a log may have been written before one that was read already


class Workplace:
    """The first workspace of this state folder, and its admin."""

    def __init__(self) -> None:
        self.tenant, person = _this_studio.me()
        self.home = _this_studio.home()
        self._actor = _this_studio.actor(person, "oz0 dev")
        self._taken: plugins.Registered | None = None
        self._listed: tuple[UUID, ...] = ()
        self._heard: dict[tuple[UUID, UUID], list[str]] = {}
        self._heard_at: datetime | None = None

    def link(self, url: str) -> str:
        """A link that signs the author in, once."""
        return make_link(url)

    def take(
        self, saved: Saved, files: Mapping[str, bytes], listed: Mapping[str, MeasuredListing], began: float
    ) -> None:
        """Make these files the plugin's current version, with what its servers were seen to list; `tidy` comes next.

        `began` is when they were asked, by this process's `boot_time`. Raises `BadPlugin` or `BadFolder`.
        """
        close_old_connections()
        with db.write(self.tenant):
            for tool in saved.spec.tools:
                wanted = saved.variables.get(tool.id, {})
                variables.keep(plugin=saved.spec.name, tool=tool.id, wanted=wanted, actor=self._actor)
        with self._in_place_of_its_last_name(saved.spec.name):
            found = plugins.register_listed(tenant=self.tenant, files=files, home=self.home, actor=self._actor)
        with db.read(self.tenant):
            ids = dict(Tool.objects.filter(plugin_version=found.version).values_list("slug", "pk"))
        for slug, measured in listed.items():
            listings.store(tenant=self.tenant, tool_id=ids[slug], measured=measured, began=began)
        self._taken, self._listed = found, tuple(ids[slug] for slug in listed)

    @contextmanager
    def _in_place_of_its_last_name(self, name: str) -> Iterator[None]:
        """Take the plugin out that the folder held under another name: its tools and agents are this one's now.

        Where that comes to nothing, it is there again.
        """
        last = keeping.last_name(self.home)
        with db.read(self.tenant):
            held = PluginVersion.objects.filter(plugin__name=last, stage=Stage.CURRENT).exclude(plugin__name=name)
            digest = held.values_list("digest", flat=True).first()
        if last is None or digest is None:
            yield
        else:
            removing.remove(tenant=self.tenant, plugin=last, actor=self._actor)
            try:
                yield
            except (BadPlugin, folders.BadFolder):
                plugins.take_up(tenant=self.tenant, plugin=last, digest=digest, actor=self._actor)
                raise
        keeping.keep_name(self.home, name)

    def tidy(self) -> None:
        """Do what the author need not wait for.

        A node lists what was taken last, which starts its servers before the first call of them; it is linted for the
        pages, and the files of old versions are forgotten.
        """
        if self._taken is not None:
            for tool_id in self._listed:
                listings.measure_again(tenant=self.tenant, tool_id=tool_id)
            linting.lint_version(tenant=self.tenant, version_id=self._taken.version)
            keeping.prune(self.tenant, self._taken.name, self.home)

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
        close_old_connections()
        with db.read(self.tenant):
            logs = ServerLog.objects.filter(tool__plugin_version__plugin__name=plugin).order_by("written_at")
            if self._heard_at is not None:  # what is read twice is told once
                logs = logs.filter(written_at__gte=self._heard_at - LATE_COMMIT)
            rows = list(logs.values_list("tool_id", "node", "tool__slug", "lines", "written_at"))
        found = []
        for tool_id, node, slug, lines, written_at in rows:
            found += [(slug, line) for line in grown(self._heard.get((tool_id, node), []), lines)]
            self._heard[(tool_id, node)] = lines
            self._heard_at = written_at
        return found


def _by_rule(row: WaitingRow) -> str:
    """By which rule some or all of its calls do not run freely."""
    if row.sometimes:
        said = [f"“{one.title}” says {one.effect} when {one.when or 'it holds'}" for one in row.sometimes]
        return f"Not all of its calls run freely: {'; '.join(said)}."
    return f"The policy's rule “{row.rule}” refuses its calls."
