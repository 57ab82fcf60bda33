"""Lint across the tenant: what was found of every plugin and remote tool, and of what agents send together."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from base import db
from catalog.models import LintFinding, PluginVersion, Stage
from catalog.queries.costs import agents_now
from catalog.queries.kept_agents import kept_agents
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.queries.policy_entries import standing_key
from catalog.rules.budgets import BUDGET, agent_finding
from catalog.rules.findings import Finding, Severity
from catalog.rules.kept_agents import unreadable_finding

_REMEMBERED: Final = 64  # tenants whose agents over budget a process keeps in mind
OF_AGENTS: Final = "limits.tool_tokens"  # the key of an agent's budget


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding with what it is of. `agent` is named where it is an agent's budget."""

    finding: Finding
    plugin: str
    tool: str = ""
    function: str = ""
    agent: str = ""

    @property
    def label(self) -> str:
        """What it is of, in a word."""
        return f"{self.tool}.{self.function}" if self.function else self.tool or self.agent or self.plugin


@dataclass(frozen=True, slots=True)
class FindingsPage(Paged[FindingRow]):
    """One page of findings, errors first. The counts beside the choices are of all there are."""

    severities: tuple[tuple[Severity, int], ...]
    codes: tuple[tuple[str, int], ...]
    plugins: tuple[tuple[str, int], ...]
    tools: tuple[str, ...]
    waiting: tuple[str, ...]  # plugins that were not linted yet
    now: datetime

    @property
    def all(self) -> int:
        """How many there are without a filter."""
        return sum(count for _, count in self.severities)


def findings_page(
    tenant: UUID, *, severity: str = "", code: str = "", plugin: str = "", tool: str = "", page: int = 1
) -> FindingsPage:
    """One page of what fits; past the end it is the last page.

    An agent's budget is told by what it sends here, also of other plugins' functions, not by its own plugin alone.
    """
    agents = _of_agents(tenant)
    with db.read(tenant) as now:
        kept = _kept()
        by_code = Counter(dict(_counted(kept, "code"))) + Counter(row.finding.code for row in agents)
        by_plugin = Counter(dict(_counted(kept, "plugin_version__plugin__name"))) + Counter(r.plugin for r in agents)
        severe = Counter(dict(_counted(kept, "severity"))) + Counter(str(row.finding.severity) for row in agents)
        tools = tuple(kept.exclude(tool="").order_by("tool").values_list("tool", flat=True).distinct())
        fit_agents = [row for row in agents if _fits(row, severity, code, plugin, tool)]
        fit = kept.filter(_wanted(severity, code, plugin, tool))
        found = len(fit_agents) + fit.count()
        page = page_within(page, found)
        rows = _slice(fit_agents, fit, (page - 1) * A_PAGE)
        versions = PluginVersion.objects.filter(stage=Stage.CURRENT, lint_report__isnull=True)
        waiting = tuple(versions.order_by("plugin__name").values_list("plugin__name", flat=True))
    return FindingsPage(
        rows=rows,
        found=found,
        page=page,
        severities=tuple((one, severe[one]) for one in Severity),
        codes=tuple(sorted(by_code.items())),
        plugins=tuple(sorted(by_plugin.items())),
        tools=tools,
        waiting=waiting,
        now=now,
    )


def findings_of(tool: str, function: str) -> tuple[FindingRow, ...]:
    """What lint found of one function. Demands an open read."""
    rows = _kept().filter(tool=tool, function=function).order_by("place")
    return tuple(map(_row, rows))


def findings_by_function() -> dict[tuple[str, str], list[Finding]]:
    """What lint found of each function, by tool and name; what is of a whole tool without a name. Demands an open read.

    What is of neither is not among it.
    """
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for row in map(_row, _kept().exclude(tool="").order_by("place")):
        found[row.tool, row.function].append(row.finding)
    return found


def findings_of_tool(tool: str) -> tuple[int, int]:
    """(errors, warnings) of a tool and its functions. Demands an open read."""
    counts = dict(_counted(_kept().filter(tool=tool), "severity"))
    return counts.get(Severity.ERROR, 0), counts.get(Severity.WARNING, 0)


def how_many(tenant: UUID) -> tuple[int, int]:
    """(errors, warnings) there are, as the page counts them."""
    agents = len(_of_agents(tenant))
    with db.read(tenant):
        counts = dict(_counted(_kept(), "severity"))
    return counts.get(Severity.ERROR, 0) + agents, counts.get(Severity.WARNING, 0)


def _kept() -> QuerySet[LintFinding]:
    rows = LintFinding.objects.filter(plugin_version__stage=Stage.CURRENT)
    return rows.exclude(code=BUDGET, key=OF_AGENTS).select_related("plugin_version__plugin")


def _counted(rows: QuerySet[LintFinding], by: str) -> Iterable[tuple[str, int]]:
    return rows.order_by(by).values_list(by).annotate(Count("pk"))


def _wanted(severity: str, code: str, plugin: str, tool: str) -> Q:
    wanted = {"severity": severity, "code": code, "plugin_version__plugin__name": plugin, "tool": tool}
    return Q(**{name: value for name, value in wanted.items() if value})


def _fits(row: FindingRow, severity: str, code: str, plugin: str, tool: str) -> bool:
    return (
        severity in ("", row.finding.severity)
        and code in ("", row.finding.code)
        and plugin in ("", row.plugin)
        and not tool
    )


def _slice(agents: list[FindingRow], kept: QuerySet[LintFinding], start: int) -> tuple[FindingRow, ...]:
    """Agents over their budgets come first: each is an error of every request."""
    first = agents[start : start + A_PAGE]
    left, skipped = A_PAGE - len(first), max(0, start - len(agents))
    ordered = kept.order_by("severity", "plugin_version__plugin__name", "place")
    return (*first, *map(_row, ordered[skipped : skipped + left] if left else ()))


def _of_agents(tenant: UUID) -> tuple[FindingRow, ...]:
    with db.read(tenant):
        key = standing_key()
    return _agents(tenant, *key) if key else ()


@lru_cache(_REMEMBERED)
def _agents(tenant: UUID, gate: int, listings: tuple[UUID, ...], minute: datetime) -> tuple[FindingRow, ...]:
    """By what it depends on, which is `standing_key`."""
    with db.read(tenant):
        kept = kept_agents()
        found = [(agent_finding(one.cost), one) for one in agents_now(kept=kept) if one.cost.over]
    unreadable = [
        FindingRow(unreadable_finding(one.name, one.why), one.plugin, agent=one.name) for one in kept.unreadable
    ]
    over = [FindingRow(finding, one.plugin, agent=one.spec.name) for finding, one in found if finding is not None]
    return (*unreadable, *over)


def _row(one: LintFinding) -> FindingRow:
    finding = Finding(Severity(one.severity), one.code, one.file, one.line, one.key, one.message, one.fix)
    return FindingRow(finding, one.plugin_version.plugin.name, one.tool, one.function)
