"""The agents' pages: what each sends its model, and whether that fits its budget."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from catalog.models import Function, Stage
from catalog.queries.costs import Granted, agents_now
from catalog.queries.switch_rows import SwitchRow, on_over
from catalog.queries.trust import approved_entries, traits_by
from catalog.rules.budgets import AgentCost, agent_finding, with_repeats
from catalog.rules.estimates import Cost, Definition, as_sent
from catalog.rules.findings import Finding
from catalog.rules.platform import carried, label_of
from catalog.rules.switching import Scope


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in the list."""

    name: str
    plugin: str
    model: str
    functions: int
    idle: int
    cost: AgentCost


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
class AgentPage:
    """One agent. `shown` is the definition that is opened, exactly as it is sent."""

    name: str
    plugin: str
    model: str
    instructions: str
    grants: tuple[str, ...]
    idle: tuple[str, ...]
    skills: tuple[str, ...]
    on_unknown: str
    limits: tuple[tuple[str, int], ...]
    cost: AgentCost
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


def agents_page(tenant: UUID) -> tuple[AgentRow, ...]:
    """Every agent, those over their budget first."""
    with db.read(tenant):
        found = [
            AgentRow(one.spec.name, one.plugin, _model(one), len(one.names), len(one.idle), one.cost)
            for one in agents_now()
        ]
    return tuple(sorted(found, key=lambda row: (not row.cost.over, row.name)))


def agent_page(tenant: UUID, name: str, *, shown: str = "") -> AgentPage | None:
    """One agent by name; None when there is none. `shown` is the label of the definition to open."""
    with db.read(tenant) as now:
        one = next(iter(agents_now(name)), None)
        if one is None:
            return None
        functions = _functions(one)
        definitions = [Definition(f.model_name, f.description, f.input_schema) for f in functions.values()]
        cost = with_repeats(one.cost, definitions)
        dropped = {drop.label for drop in cost.drop}
        approved = approved_entries({row.tool for row in functions.values()})
        rows = [
            _row(part, functions[part.label], str(traits_by(functions[part.label], approved).kind), dropped)
            for part in cost.granted
            if part.label in functions
        ]
        spec, own = one.spec, carried(lazy=cost.lazy, index=one.index)
        sent = {label_of(each.name): each for each in own} | dict(zip(functions, definitions, strict=True))
        return AgentPage(
            name=spec.name,
            plugin=one.plugin,
            model=_model(one),
            instructions=spec.instructions,
            grants=spec.functions,
            idle=one.idle,
            skills=spec.skills,
            on_unknown=spec.on_unknown or "the starter decides",
            limits=(("turns", spec.limits.turns), ("calls", spec.limits.calls), ("minutes", spec.limits.minutes)),
            cost=cost,
            finding=agent_finding(cost),
            own=tuple(_own(part, each) for part, each in zip(cost.own, own, strict=True)),
            rows=tuple(sorted(rows, key=lambda row: (-row.cost.tokens, row.cost.label))),
            shown=as_sent(sent[shown]) if shown in sent else "",
            switches=on_over((Scope.AGENT, name)),
            now=now,
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


def _row(part: Cost, row: Function, kind: str, dropped: set[str]) -> SentRow:
    return SentRow(
        part, row.tool.slug, row.name, row.model_name, row.description or row.title, kind, part.label in dropped
    )


def _own(part: Cost, sent: Definition) -> SentRow:
    return SentRow(part, "oz", part.label.partition(".")[2], sent.name, sent.description, "", drop=False)


def _model(one: Granted) -> str:
    return one.spec.model or "harness"
