"""What agents send to their models, from the figures kept with the listings (RULES T1).

All but `agent_tokens` and `over_budget` demand an open read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from base import db
from catalog.models import Function, Stage, Tool
from catalog.queries.functions import unseen
from catalog.queries.kept_agents import KeptAgent, KeptAgents, kept_agents
from catalog.queries.skills import Library, library_now
from catalog.rules.agents import AgentSpec
from catalog.rules.budgets import AgentCost, agent_cost
from catalog.rules.estimates import Cost, Definition, estimate
from catalog.rules.grants import Name, by_tool, granted_among, idle_grants
from catalog.rules.skills import IndexLine, not_there

AGENTS_MOST: Final = 1_000  # agents whose costs are looked at


@dataclass(frozen=True, slots=True)
class Granted:
    """One agent of a current plugin version: what it is granted by the listings of now, and what that costs.

    `index` is its index of skills; `idle` are grants and `no_skills` skills of its file that name nothing there is.
    """

    spec: AgentSpec
    plugin: str
    names: tuple[Name, ...]
    index: tuple[IndexLine, ...]
    idle: tuple[str, ...]
    no_skills: tuple[str, ...]
    cost: AgentCost


@dataclass(frozen=True, slots=True)
class _Catalog:
    tools: Mapping[str, Tool]
    tokens: Mapping[Name, int]
    names: Mapping[str, Mapping[str, Name]]
    listed: frozenset[str]
    library: Library
    unseen: frozenset[Name]


def agents_now(only: str = "", *, kept: KeptAgents | None = None) -> tuple[Granted, ...]:
    """The agents of current plugin versions with their cost, the first 1,000 by name; or the one of this name.

    One whose kept file cannot be read is not among them. `kept` spares reading the agents once more.
    """
    found = (kept or kept_agents(only)).readable[:AGENTS_MOST]
    if not found:
        return ()
    catalog = _catalog()
    return tuple(_granted(one, catalog) for one in found)


def agent_tokens(tenant: UUID, name: str) -> Granted | None:
    """One agent with its cost; None when the tenant has no agent of this name."""
    with db.read(tenant):
        return next(iter(agents_now(name)), None) if name else None


def over_budget(tenant: UUID) -> tuple[AgentCost, ...]:
    """The agents whose definitions pass their budget, the furthest over first."""
    with db.read(tenant):
        found = [one.cost for one in agents_now() if one.cost.over]
    return tuple(sorted(found, key=lambda cost: (cost.budget - cost.tokens, cost.agent)))


def tool_costs(functions: Sequence[Function], tool: str) -> tuple[Cost, ...]:
    """The figures of a tool's functions; what an older version stored without a figure is counted now."""
    missing = [one for one in functions if one.tokens is None]
    sent = [Definition(one.model_name, one.description, one.input_schema) for one in missing]
    counted = dict(zip((one.pk for one in missing), estimate(sent), strict=True))
    return tuple(Cost(f"{tool}.{one.name}", counted[one.pk] if one.tokens is None else one.tokens) for one in functions)


def _catalog() -> _Catalog:
    tools = {tool.slug: tool for tool in Tool.objects.filter(plugin_version__stage=Stage.CURRENT)}
    slugs = {tool.pk: slug for slug, tool in tools.items()}
    rows = Function.objects.filter(tool__in=slugs, listing__current=True)
    functions: dict[str, list[Function]] = defaultdict(list)
    for row in rows.only("tool_id", "name", "tokens"):
        functions[slugs[row.tool_id]].append(row)
    tokens = {
        Name(tool, row.name): cost.tokens
        for tool, found in functions.items()
        for row, cost in zip(found, tool_costs(found, tool), strict=True)
    }
    return _Catalog(tools, tokens, by_tool(tokens), frozenset(functions), library_now(), unseen(tools.values(), tokens))


def _granted(one: KeptAgent, catalog: _Catalog) -> Granted:
    spec, plugin = one.spec, one.plugin
    names = granted_among(spec.functions, catalog.names, unseen=catalog.unseen)
    wanted = {grant.partition(".")[0] for grant in spec.functions}
    index = catalog.library.index(plugin, spec.skills, {name.tool for name in names})
    return Granted(
        spec=spec,
        plugin=plugin,
        names=names,
        index=index,
        no_skills=not_there(plugin, spec.skills, catalog.library.descriptions),
        idle=idle_grants(spec.functions, names),
        cost=agent_cost(
            spec,
            {str(name): catalog.tokens[name] for name in names},
            index=index,
            unmeasured=sorted((wanted & catalog.tools.keys()) - catalog.listed),
        ),
    )
