"""The catalog as a page: plugins, their tools, functions and agents, without schemas."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from catalog.models import Agent, Function, Listing, PluginVersion, Stage, Tool
from catalog.rules.kinds import undeclared


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function. `undeclared` says why its kind is not known, `fix` what to paste."""

    name: str
    model_name: str
    does: str
    kind: str
    retry_safe: bool
    honours_key: bool
    idempotent: bool
    open_world: bool
    tokens: int | None
    undeclared: str
    fix: str


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool with the functions its server listed last."""

    slug: str
    transport: str
    timeout: float
    slots: int
    sensitive: bool
    down_reason: str
    measured_at: datetime | None
    server: str
    protocol: str
    functions: tuple[FunctionRow, ...]

    @property
    def counted(self) -> bool:
        """Whether the tokens of any function are known."""
        return any(function.tokens is not None for function in self.functions)


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent and what it is granted."""

    name: str
    model: str
    grants: tuple[str, ...]
    on_unknown: str


@dataclass(frozen=True, slots=True)
class PluginRow:
    """The current version of one plugin."""

    name: str
    version: str
    digest: str
    tools: tuple[ToolRow, ...]
    agents: tuple[AgentRow, ...]


@dataclass(frozen=True, slots=True)
class CatalogPage:
    """The whole catalog of a tenant."""

    plugins: tuple[PluginRow, ...]
    now: datetime


def catalog_page(tenant: UUID, *, tool: str = "") -> CatalogPage:
    """The current plugins of a tenant, by name; only those with this tool when one is named."""
    with db.read(tenant) as now:
        versions = PluginVersion.objects.filter(stage=Stage.CURRENT).select_related("plugin").order_by("plugin__name")
        if tool:
            versions = versions.filter(tools__slug=tool)
        return CatalogPage(plugins=tuple(_plugin(version, tool) for version in versions[:200]), now=now)


def _plugin(version: PluginVersion, only: str) -> PluginRow:
    tools = Tool.objects.filter(plugin_version=version).order_by("slug")
    agents = Agent.objects.filter(plugin_version=version).order_by("name")
    return PluginRow(
        name=version.plugin.name,
        version=version.version,
        digest=version.digest,
        tools=tuple(_tool(tool) for tool in (tools.filter(slug=only) if only else tools)),
        agents=tuple(_agent(agent) for agent in agents),
    )


def _tool(tool: Tool) -> ToolRow:
    listing = Listing.objects.filter(tool=tool, current=True).first()
    functions = Function.objects.filter(listing=listing).order_by("name") if listing else Function.objects.none()
    return ToolRow(
        slug=tool.slug,
        transport=tool.transport,
        timeout=tool.timeout,
        slots=tool.slots,
        sensitive=tool.sensitive,
        down_reason=tool.down_reason,
        measured_at=listing.measured_at if listing else None,
        server=f"{listing.server_name} {listing.server_version}".strip() if listing else "",
        protocol=listing.protocol if listing else "",
        functions=tuple(_function(row) for row in functions.defer("input_schema", "output_schema")),
    )


def _function(row: Function) -> FunctionRow:
    trouble = undeclared(row.name, row.annotations) if row.kind == "undeclared" else None
    return FunctionRow(
        name=row.name,
        model_name=row.model_name,
        does=row.description or row.title,
        kind=row.kind,
        retry_safe=row.retry_safe,
        honours_key=row.honours_key,
        idempotent=row.idempotent,
        open_world=row.open_world,
        tokens=row.tokens,
        undeclared=trouble.reason if trouble else "",
        fix=trouble.fix if trouble else "",
    )


def _agent(agent: Agent) -> AgentRow:
    definition = agent.definition
    return AgentRow(
        name=agent.name,
        model=str(definition.get("model") or "harness"),
        grants=tuple(str(grant) for grant in definition.get("functions") or ()),
        on_unknown=str(definition.get("on_unknown") or "the starter decides"),
    )
