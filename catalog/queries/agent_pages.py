"""The agents' pages: what each sends its model, and whether that fits its budget."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from base import db
from catalog.models import Function, Stage
from catalog.queries.connections import named
from catalog.queries.costs import Granted, agents_now
from catalog.queries.kept_agents import UnreadableAgent, kept_agents
from catalog.queries.paging import A_PAGE, Paged, page_within
from catalog.queries.switch_rows import SwitchRow, on_over
from catalog.queries.trust import approved_entries, traits_by
from catalog.rules.agents import AgentSpec
from catalog.rules.budgets import AgentCost, agent_cost, agent_finding, with_repeats
from catalog.rules.estimates import Cost, Definition, as_sent
from catalog.rules.findings import Finding
from catalog.rules.model_names import REHEARSAL, connection_of
from catalog.rules.platform import carried, label_of
from catalog.rules.requests import as_text, definitions
from catalog.rules.skills import IndexLine
from catalog.rules.switching import Scope


@dataclass(frozen=True, slots=True)
class AgentFilter:
    """Which agents to list. `over`: those over their budget; `loading` is eager, lazy or empty."""

    words: str = ""
    plugin: str = ""
    loading: str = ""
    over: bool = False
    idle: bool = False


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in the list. `idle` counts grants and skills of its file that name nothing there is."""

    name: str
    plugin: str
    model: str
    functions: int
    skills: int
    idle: int
    cost: AgentCost


@dataclass(frozen=True, slots=True)
class AgentsPage(Paged[AgentRow]):
    """One page of the agents that fit a filter, of how many there are. Past `AGENTS_MOST` none is looked at."""

    unreadable: tuple[UnreadableAgent, ...]
    every: int
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentRow:
    """One definition that the model is sent, or could ask for. `kind` is empty for the platform's own."""

    cost: Cost
    tool: str
    function: str
    model_name: str
    does: str
    kind: str
    drop: bool


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One skill in its index. `taints`: reading it taints a job of this agent (RULES M3)."""

    line: IndexLine
    taints: bool

    @property
    def name(self) -> str:
        """The skill's name in its plugin."""
        return self.line.name.partition("/")[2]


@dataclass(frozen=True, slots=True)
class AgentPage:
    """One agent. `shown` is the definition that is opened, exactly as it is sent.

    `otherwise` is what every request would carry if it loaded its tools the other way, eagerly or lazily.
    """

    name: str
    plugin: str
    model: str
    instructions: str
    grants: tuple[str, ...]
    idle: tuple[str, ...]
    no_skills: tuple[str, ...]
    index: tuple[IndexRow, ...]
    on_unknown: str
    limits: tuple[tuple[str, float, str], ...]
    runs: tuple[tuple[str, int, str], ...]
    connection: str
    no_connection: bool
    max_tokens: int
    cost: AgentCost
    otherwise: int
    finding: Finding | None
    own: tuple[SentRow, ...]
    rows: tuple[SentRow, ...]
    shown: str
    switches: tuple[SwitchRow, ...]
    now: datetime

    @property
    def most(self) -> int:
        """The biggest figure of a row, for the bars."""
        return max((row.cost.tokens for row in (*self.rows, *self.own)), default=1)


def agents_page(tenant: UUID, wanted: AgentFilter = AgentFilter(), page: int = 1) -> AgentsPage:
    """The agents, those over their budget first; past the end it is the last page."""
    with db.read(tenant):
        kept = kept_agents()
        found = [_agent_row(one) for one in agents_now(kept=kept)]
        every = len(kept.readable) + len(kept.unreadable)
    rows = sorted((row for row in found if _fits(row, wanted)), key=lambda row: (not row.cost.over, row.name))
    plugins = {one.plugin for one in kept.readable} | {one.plugin for one in kept.unreadable}
    page = page_within(page, len(rows))
    shown = tuple(rows[(page - 1) * A_PAGE : page * A_PAGE])
    return AgentsPage(shown, len(rows), page, kept.unreadable, every, tuple(sorted(plugins)))


def agent_page(tenant: UUID, name: str, *, shown: str = "") -> AgentPage | None:
    """One agent by name; None when there is none. `shown` is the label of the definition to open."""
    with db.read(tenant) as now:
        one = next(iter(agents_now(name)), None)
        if one is None:
            return None
        functions = _functions(one)
        sent = {label: _definition(row) for label, row in functions.items()}
        own = carried(lazy=one.cost.lazy, index=one.index)
        cost = with_repeats(one.cost, list(sent.values()))
        dropped = {drop.label for drop in cost.drop}
        approved = approved_entries({row.tool for row in functions.values()})
        rows = [
            _row(part, functions[part.label], str(traits_by(functions[part.label], approved).kind), dropped)
            for part in cost.granted
            if part.label in functions
        ]
        spec = one.spec
        opened = (sent | {label_of(each.name): each for each in own}).get(shown)
        return AgentPage(
            name=spec.name,
            plugin=one.plugin,
            model=_model(one),
            instructions=spec.instructions,
            grants=spec.functions,
            idle=one.idle,
            no_skills=one.no_skills,
            index=tuple(IndexRow(line, line.taints(one.plugin)) for line in one.index),
            on_unknown=spec.on_unknown or "",
            limits=_limits(spec),
            runs=_runs(spec),
            connection=(over := connection_of(spec.model, spec.connection)),
            no_connection=bool(over) and named(over) is None,
            max_tokens=spec.max_tokens,
            cost=cost,
            otherwise=_otherwise(one),
            finding=agent_finding(cost),
            own=tuple(_own(part, each) for part, each in zip(cost.own, own, strict=True)),
            rows=tuple(sorted(rows, key=lambda row: (-row.cost.tokens, row.cost.label))),
            shown=as_sent(opened) if opened is not None else "",
            switches=on_over((Scope.AGENT, name)),
            now=now,
        )


def request_of(tenant: UUID, name: str) -> str | None:
    """What every model request of an agent carries, as JSON; None when there is no such agent."""
    with db.read(tenant):
        one = next(iter(agents_now(name)), None)
        if one is None:
            return None
        functions = _functions(one)
        granted = [_definition(functions[label]) for label in sorted(functions)]
        return as_text(one.spec, definitions(one.spec, granted, one.index))


def _agent_row(one: Granted) -> AgentRow:
    idle = len(one.idle) + len(one.no_skills)
    return AgentRow(one.spec.name, one.plugin, _model(one), len(one.names), len(one.index), idle, one.cost)


def _fits(row: AgentRow, wanted: AgentFilter) -> bool:
    text = f"{row.name} {row.plugin} {row.model}".casefold()
    return (
        all(word in text for word in wanted.words.casefold().split())
        and wanted.plugin in ("", row.plugin)
        and wanted.loading in ("", "lazy" if row.cost.lazy else "eager")
        and (not wanted.over or row.cost.over)
        and (not wanted.idle or row.idle > 0)
    )


def _functions(one: Granted) -> dict[str, Function]:
    """The granted entries by their label."""
    rows = Function.objects.filter(
        listing__current=True,
        tool__plugin_version__stage=Stage.CURRENT,
        tool__slug__in={name.tool for name in one.names},
    ).select_related("tool")
    wanted = {str(name) for name in one.names}
    return {label: row for row in rows if (label := f"{row.tool.slug}.{row.name}") in wanted}


def _definition(row: Function) -> Definition:
    return Definition(row.model_name, row.description, row.input_schema)


def _otherwise(one: Granted) -> int:
    other = replace(one.spec, tool_loading="eager" if one.cost.lazy else "lazy")
    return agent_cost(other, {part.label: part.tokens for part in one.cost.granted}, index=one.index).tokens


def _limits(spec: AgentSpec) -> tuple[tuple[str, float, str], ...]:
    limits = spec.limits
    found = [
        ("turns", limits.turns, "questions to the model"),
        ("calls", limits.calls, "of functions, the platform's own among them"),
        ("minutes", limits.minutes, "from its start, while only people are waited for not counted"),
        ("tokens", limits.tokens, "of its requests and their answers together"),
        ("dollars", limits.usd, "as far as its provider's prices are known"),
    ]
    return tuple((name, most, what) for name, most, what in found if most)


def _runs(spec: AgentSpec) -> tuple[tuple[str, int, str], ...]:
    """When its jobs continue as new; a rehearsal says so itself, and a program asks for it."""
    if spec.model in ("", REHEARSAL):
        return ()
    found = [
        ("tokens", spec.runs.tokens, "that one request would send of its conversation"),
        ("turns", spec.runs.turns, "of one run"),
    ]
    return tuple((name, most, what) for name, most, what in found if most)


def _row(part: Cost, row: Function, kind: str, dropped: set[str]) -> SentRow:
    return SentRow(
        part, row.tool.slug, row.name, row.model_name, row.description or row.title, kind, part.label in dropped
    )


def _own(part: Cost, sent: Definition) -> SentRow:
    does = sent.description.partition("\n")[0]
    return SentRow(part, "oz", part.label.partition(".")[2], sent.name, does, "", drop=False)


def _model(one: Granted) -> str:
    return one.spec.model or ("outside" if one.spec.outside else "harness")
