"""Plugins as pages: all of them with how they stand, and one with its versions, files and problems."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q, Sum

from base import db
from catalog.models import (
    Agent,
    Arrival,
    Function,
    LintFinding,
    LintReport,
    Listing,
    Plugin,
    PluginVersion,
    Skill,
    Stage,
    Tool,
)
from catalog.rules.budgets import plugin_finding
from catalog.rules.estimates import Cost
from catalog.rules.findings import Finding
from catalog.rules.kept_manifests import kept_figure, kept_tools
from catalog.rules.manifest import MANIFEST
from catalog.rules.secret_names import variables_of
from catalog.rules.version_diff import Changed, changes
from tenants.operations import vault

MOST: Final = 200  # plugins on a page
MOST_VERSIONS: Final = 100
MOST_PROBLEMS: Final = 100
STANDINGS: Final = ("here", "trouble", "new", "removed")


@dataclass(frozen=True, slots=True)
class PluginRow:
    """One plugin: its current version, or when it was removed its last one. `standing` is one of `STANDINGS`."""

    name: str
    standing: str
    number: str
    digest: str
    came: str
    brought_by: str
    added_at: datetime | None
    versions: int
    tools: int
    functions: int
    agents: int
    down: int
    errors: int
    warnings: int
    tokens: int
    budget: int
    over: Finding | None  # when its definitions come to more than its budget (RULES T3)


@dataclass(frozen=True, slots=True)
class PluginsPage:
    """All plugins that were asked for, by name; `counted` is how many there are of each standing."""

    rows: tuple[PluginRow, ...]
    counted: tuple[tuple[str, int], ...]
    total: int
    now: datetime


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of a plugin."""

    digest: str
    number: str
    stage: str
    added_at: datetime
    came: str
    file_name: str
    brought_by: str
    has_files: bool = True  # until somebody deletes them for good


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of a version's files."""

    severity: str
    code: str
    where: str
    key: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool of the version that is shown."""

    slug: str
    transport: str
    functions: int
    standing: str  # up, down or new, as a server's status
    down_reason: str


@dataclass(frozen=True, slots=True)
class PluginPage:
    """One plugin, with one version of it opened and compared with `against`, the one before unless asked otherwise."""

    name: str
    standing: str
    removed_at: datetime | None
    removed_by: str
    versions: tuple[VersionRow, ...]
    shown: VersionRow
    against: VersionRow | None
    changes: tuple[Changed, ...]
    tools: tuple[ToolRow, ...]
    agents: tuple[str, ...]
    skills: tuple[str, ...]
    files: tuple[tuple[str, int], ...]
    files_known: bool
    values: int  # that the vault holds for its tools
    problems: tuple[Problem, ...]
    linted: bool
    now: datetime

    @property
    def left(self) -> int:
        """Versions whose files are still here."""
        return sum(version.has_files for version in self.versions)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(size for _, size in self.files)

    @property
    def errors(self) -> int:
        """How many problems lint fails for."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def down(self) -> tuple[ToolRow, ...]:
        """The tools whose server cannot be listed."""
        return tuple(tool for tool in self.tools if tool.down_reason)


def plugins_page(tenant: UUID, *, words: str = "", standing: str = "", came: str = "") -> PluginsPage:
    """The plugins of a tenant whose names hold the words, that stand so and came so."""
    with db.read(tenant) as now:
        rows = _rows()
    found = [row for row in rows if words.casefold() in row.name.casefold() and came in ("", row.came)]
    counted = Counter(row.standing for row in found)
    kept = [row for row in found if standing in ("", row.standing)]
    return PluginsPage(tuple(kept[:MOST]), tuple((one, counted[one]) for one in STANDINGS), len(kept), now)


def _rows() -> list[PluginRow]:
    versions: dict[UUID, list[PluginVersion]] = {}
    for version in PluginVersion.objects.defer("manifest").order_by("-added_at"):
        versions.setdefault(version.plugin_id, []).append(version)
    shown = {plugin: _shown(rows) for plugin, rows in versions.items()}
    ids = [version.pk for version in shown.values()]
    counted = {
        version: (tools, down, tools - listed)
        for version, tools, down, listed in Tool.objects.filter(plugin_version__in=ids)
        .values_list("plugin_version")
        .annotate(
            tools=Count("pk", distinct=True),
            down=Count("pk", filter=~Q(down_reason=""), distinct=True),
            listed=Count("pk", filter=Q(listings__current=True), distinct=True),
        )
    }
    functions = {
        version: (number, tokens or 0)
        for version, number, tokens in Function.objects.filter(listing__current=True, tool__plugin_version__in=ids)
        .values_list("tool__plugin_version")
        .annotate(number=Count("pk"), tokens=Sum("tokens"))
    }
    agents = dict(
        Agent.objects.filter(plugin_version__in=ids).values_list("plugin_version").annotate(number=Count("pk"))
    )
    arrivals = {
        arrival.version_id: arrival
        for arrival in Arrival.objects.filter(version__in=ids).defer("files").select_related("brought_by")
    }
    reports = {report.plugin_version_id: report for report in LintReport.objects.filter(plugin_version__in=ids)}
    budgets = dict(PluginVersion.objects.filter(pk__in=ids).values_list("pk", "manifest__tool_tokens"))
    rows = []
    for plugin in Plugin.objects.order_by("name"):
        if plugin.pk not in shown:
            continue
        version = shown[plugin.pk]
        tools, down, unlisted = counted.get(version.pk, (0, 0, 0))
        arrival = arrivals.get(version.pk)
        report = reports.get(version.pk)
        errors = report.errors if report is not None else 0
        number, tokens = functions.get(version.pk, (0, 0))
        budget = kept_figure(budgets.get(version.pk))
        standing = _standing(
            removed=plugin.removed_at is not None,
            wrong=bool(down or errors),
            unlisted=bool(unlisted),
        )
        rows.append(
            PluginRow(
                name=plugin.name,
                standing=standing,
                number=version.version,
                digest=version.digest,
                came=arrival.came if arrival else "",
                brought_by=_name(arrival),
                added_at=version.added_at,
                versions=len(versions[plugin.pk]),
                tools=tools,
                functions=number,
                agents=agents.get(version.pk, 0),
                down=down,
                errors=errors,
                warnings=report.warnings if report is not None else 0,
                tokens=tokens,
                budget=budget,
                over=_over(plugin.name, version, budget) if tokens > budget and standing != "removed" else None,
            )
        )
    return rows


def _over(name: str, version: PluginVersion, budget: int) -> Finding | None:
    entries = Function.objects.filter(listing__current=True, tool__plugin_version=version)
    found = entries.values_list("tool__slug", "name", "tokens")
    costs = [Cost(f"{tool}.{function}", tokens or 0) for tool, function, tokens in found]
    return plugin_finding(MANIFEST, name, costs, budget)


def _standing(*, removed: bool, wrong: bool, unlisted: bool) -> str:
    return "removed" if removed else "trouble" if wrong else "new" if unlisted else "here"


def _shown(newest_first: Sequence[PluginVersion]) -> PluginVersion:
    return next((version for version in newest_first if version.stage == Stage.CURRENT), newest_first[0])


def _name(arrival: Arrival | None) -> str:
    return arrival.brought_by.get_username() if arrival is not None and arrival.brought_by is not None else ""


def plugin_page(tenant: UUID, name: str, *, digest: str = "", against: str = "") -> PluginPage | None:
    """One plugin; None when it, or a version asked for, is not there. A version is named by how its digest begins."""
    with db.read(tenant) as now:
        plugin = Plugin.objects.filter(name=name).select_related("removed_by").first()
        if plugin is None:
            return None
        versions = list(PluginVersion.objects.filter(plugin=plugin).order_by("-added_at")[:MOST_VERSIONS])
        arrivals = {
            arrival.version_id: arrival
            for arrival in Arrival.objects.filter(version__in=versions).defer("files").select_related("brought_by")
        }
        shown = _asked(versions, digest) if digest else _shown(versions) if versions else None
        if shown is None:
            return None
        before = _asked(versions, against) if against else _before(versions, shown)
        if against and before is None:
            return None
        arrival = Arrival.objects.filter(version=shown).first()
        rows = {version.pk: _version(version, arrivals.get(version.pk)) for version in versions}
        tools = tuple(_tool(tool) for tool in Tool.objects.filter(plugin_version=shown).order_by("slug"))
        found = LintFinding.objects.filter(plugin_version=shown).order_by("place")
        problems = tuple(map(_problem, found[:MOST_PROBLEMS]))
        standing = _standing(
            removed=plugin.removed_at is not None,
            wrong=any(tool.down_reason for tool in tools) or any(one.severity == "error" for one in problems),
            unlisted=any(tool.standing == "new" for tool in tools),
        )
        return PluginPage(
            name=plugin.name,
            standing=standing,
            removed_at=plugin.removed_at,
            removed_by=plugin.removed_by.get_username() if plugin.removed_by else "",
            versions=tuple(rows.values()),
            shown=rows[shown.pk],
            against=rows[before.pk] if before is not None else None,
            changes=changes(_contents(before), _contents(shown)) if before is not None else (),
            tools=tools,
            agents=tuple(Agent.objects.filter(plugin_version=shown).order_by("name").values_list("name", flat=True)),
            skills=tuple(Skill.objects.filter(plugin_version=shown).order_by("name").values_list("name", flat=True)),
            files=tuple((path, size) for path, size, _ in arrival.files) if arrival is not None else (),
            files_known=arrival is not None,
            values=_values(plugin) if plugin.removed_at is not None else 0,
            problems=problems,
            linted=LintReport.objects.filter(plugin_version=shown).exists(),
            now=now,
        )


def _asked(versions: Sequence[PluginVersion], digest: str) -> PluginVersion | None:
    return next((version for version in versions if version.digest.startswith(digest)), None)


def _before(newest_first: Sequence[PluginVersion], shown: PluginVersion) -> PluginVersion | None:
    at = newest_first.index(shown) + 1
    return newest_first[at] if at < len(newest_first) else None


def _version(version: PluginVersion, arrival: Arrival | None) -> VersionRow:
    return VersionRow(
        digest=version.digest,
        number=version.version,
        stage=version.stage,
        added_at=version.added_at,
        came=arrival.came if arrival is not None else "",
        file_name=arrival.file_name if arrival is not None else "",
        brought_by=_name(arrival),
        has_files=bool(version.folder),
    )


def _values(plugin: Plugin) -> int:
    """How many values the vault holds for the tools of a plugin's versions."""
    slugs = set(Tool.objects.filter(plugin_version__plugin=plugin).values_list("slug", flat=True))
    beginnings = [variables_of(plugin.name, slug) for slug in slugs]
    return sum(len(vault.having(part + one)) for one in beginnings for part in ("", vault.PLAIN))


def _tool(tool: Tool) -> ToolRow:
    listed = Function.objects.filter(tool=tool, listing__current=True).count()
    standing = "down" if tool.down_reason and not listed else "up" if listed else "new"
    return ToolRow(tool.slug, tool.transport, listed, standing, tool.down_reason)


def _problem(found: LintFinding) -> Problem:
    where = f"{found.file}:{found.line}" if found.line else found.file
    return Problem(found.severity, found.code, where, found.key, found.message, found.fix)


def _contents(version: PluginVersion) -> dict[str, dict[str, Any]]:
    """What is in a version, by kind and name. Its functions are those its servers listed last."""
    listings = Listing.objects.filter(tool__plugin_version=version).order_by("tool", "-measured_at").distinct("tool")
    functions = Function.objects.filter(listing__in=list(listings.values_list("pk", flat=True)))
    arrival = Arrival.objects.filter(version=version).first()
    return {
        "tool": {tool.id: tool.written for tool in kept_tools(version.manifest)},
        "function": {
            f"{tool}.{name}": digest
            for tool, name, digest in functions.values_list("tool__slug", "name", "entry_digest")
        },
        "agent": dict(Agent.objects.filter(plugin_version=version).values_list("name", "definition")),
        "skill": {
            name: {"description": description, "text": text}
            for name, description, text in Skill.objects.filter(plugin_version=version).values_list(
                "name", "description", "text"
            )
        },
        "file": {path: digest for path, _, digest in arrival.files} if arrival is not None else {},
    }
