"""The catalog at a glance: what is wrong, what waits for somebody, and how much there is of everything."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from catalog.models import PluginVersion, Skill, Stage
from catalog.queries.costs import agents_now
from catalog.queries.finding_list import how_many
from catalog.queries.function_index import Indexed, functions_of
from catalog.queries.kept_agents import UnreadableAgent, kept_agents
from catalog.queries.policies import in_force
from catalog.queries.policy_waiting import Show
from catalog.queries.tool_list import ToolState, tool_states
from catalog.rules.budgets import AgentCost, plugin_finding
from catalog.rules.estimates import Cost
from catalog.rules.findings import Finding
from catalog.rules.kept_manifests import kept_budget
from catalog.rules.kinds import Kind
from catalog.rules.manifest import MANIFEST


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows. `over` are the agents over their budget, `full` the plugins over theirs."""

    tools: tuple[ToolState, ...]
    kinds: tuple[tuple[Kind, int], ...]
    waits: int
    refused: int
    over: tuple[AgentCost, ...]
    full: tuple[Finding, ...]
    plugins: int
    agents: int
    skills: int
    policy: int
    unreadable: tuple[UnreadableAgent, ...]
    errors: int  # that lint found
    warnings: int
    now: datetime

    @property
    def functions(self) -> int:
        """How many functions there are."""
        return sum(count for _, count in self.kinds)

    @property
    def tokens(self) -> int:
        """What all their definitions come to."""
        return sum(tool.tokens for tool in self.tools)

    @property
    def undeclared(self) -> int:
        """Functions of the plugins' own servers that do not say what they do."""
        return sum(tool.undeclared for tool in self.tools)

    @property
    def unapproved(self) -> int:
        """Entries of remote listings that wait for approval."""
        return sum(tool.unapproved for tool in self.tools)

    @property
    def to_approve(self) -> tuple[ToolState, ...]:
        """The tools with such entries."""
        return tuple(tool for tool in self.tools if tool.unapproved)

    @property
    def down(self) -> tuple[ToolState, ...]:
        """The tools that cannot be listed, or not wholly."""
        return tuple(tool for tool in self.tools if tool.down_reason)

    @property
    def shaky(self) -> tuple[ToolState, ...]:
        """The tools with functions that do not say what they do."""
        return tuple(tool for tool in self.tools if tool.undeclared)

    @property
    def problems(self) -> int:
        """How many things somebody should look at."""
        return (
            len(self.down)
            + len(self.to_approve)
            + len(self.shaky)
            + len(self.over)
            + len(self.full)
            + len(self.unreadable)
        )


def catalog_overview(tenant: UUID) -> Overview:
    """The overview of a tenant's catalog."""
    functions = functions_of(tenant)
    errors, warnings = how_many(tenant)
    with db.read(tenant) as now:
        tools = tool_states(functions)
        versions = list(PluginVersion.objects.filter(stage=Stage.CURRENT).select_related("plugin"))
        current = [version.pk for version in versions]
        kept = kept_agents()
        costs = sorted(
            (one.cost for one in agents_now(kept=kept)), key=lambda cost: (cost.budget - cost.tokens, cost.agent)
        )
        skills = Skill.objects.filter(plugin_version__in=current).count()
        _, number = in_force()
    kinds = Counter(one.traits.kind for one in functions)
    return Overview(
        tools=tools,
        kinds=tuple((kind, kinds[kind]) for kind in Kind),
        waits=sum(one.fares is Show.WAITS for one in functions),
        refused=sum(one.fares is Show.REFUSED for one in functions),
        over=tuple(cost for cost in costs if cost.over),
        full=tuple(found for version in versions if (found := plugin_over(version, functions)) is not None),
        plugins=len(versions),
        agents=len(kept.readable) + len(kept.unreadable),
        unreadable=kept.unreadable,
        skills=skills,
        policy=number,
        errors=errors,
        warnings=warnings,
        now=now,
    )


def plugin_over(version: PluginVersion, functions: tuple[Indexed, ...]) -> Finding | None:
    """The finding of a plugin whose definitions pass its budget (RULES T3)."""
    name, budget = version.plugin.name, kept_budget(version.manifest)
    costs = [Cost(one.label, one.tokens) for one in functions if one.plugin == name]
    return plugin_finding(MANIFEST, name, costs, budget)
