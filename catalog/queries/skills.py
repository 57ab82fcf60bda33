"""Skills and who sees them. All demand an open read or write."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from catalog.models import Agent, PluginVersion, Skill, Stage
from catalog.rules.kept_manifests import kept_tools
from catalog.rules.skills import IndexLine, full_name, index_of


@dataclass(frozen=True, slots=True)
class Library:
    """The skills of some plugin versions by their full names `<plugin>/<skill>`, and the manuals of their tools.

    `in_manuals` are the skills of all their manuals, also where two of the plugins have a tool of one id.
    """

    descriptions: Mapping[str, str]
    manuals: Mapping[str, tuple[str, ...]]
    ids: Mapping[str, UUID]
    in_manuals: frozenset[str]

    def index(self, plugin: str, wanted: Iterable[str], tools: Collection[str]) -> tuple[IndexLine, ...]:
        """The index of an agent of this plugin that names these skills and is granted something of these tools."""
        return index_of(
            plugin,
            tuple(wanted),
            tools,
            manuals=self.manuals,
            there=self.descriptions,
            in_manuals=self.in_manuals,
        )


def library_now() -> Library:
    """What all current plugin versions bring."""
    return _library(PluginVersion.objects.filter(stage=Stage.CURRENT).values_list("pk", "plugin__name", "manifest"))


def library_of(agent: Agent) -> Library:
    """What an agent of this version may meet: its own version's, and of every other plugin the current one's.

    So a running job keeps the skills it started with, as it keeps its own tools (`functions.granted`).
    """
    own = agent.plugin_version_id
    plugin = PluginVersion.objects.filter(pk=own).values("plugin")
    others = Q(stage=Stage.CURRENT) & ~Q(plugin__in=plugin)
    rows = PluginVersion.objects.filter(Q(pk=own) | others).values_list("pk", "plugin__name", "manifest")
    return _library(sorted(rows, key=lambda row: row[0] == own))  # its own last, so that its tools stay


def _library(versions: Iterable[tuple[UUID, str, Mapping[str, object]]]) -> Library:
    plugins: dict[UUID, str] = {}
    manuals: dict[str, tuple[str, ...]] = {}
    in_manuals: set[str] = set()
    for pk, plugin, manifest in versions:
        plugins[pk] = plugin
        for tool in kept_tools(manifest):
            manuals[tool.id] = tuple(full_name(plugin, skill) for skill in tool.manual)
            in_manuals.update(manuals[tool.id])
    rows = Skill.objects.filter(plugin_version__in=plugins).order_by("name")
    found = [
        (full_name(plugins[version], name), description, pk)
        for pk, version, name, description in rows.values_list("pk", "plugin_version_id", "name", "description")
    ]
    return Library(
        {name: said for name, said, _ in found}, manuals, {name: pk for name, _, pk in found}, frozenset(in_manuals)
    )


def text_of(skill: UUID) -> str:
    """A skill's text."""
    return Skill.objects.values_list("text", flat=True).get(pk=skill)
