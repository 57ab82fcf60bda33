"""What would become of a call that nobody makes. It is judged in a read-only transaction: nothing runs, nothing is
written (RULES A2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import Function, Stage
from catalog.queries import policies, switches
from catalog.queries.policy_entries import agents_now
from catalog.queries.trust import approved_entries, traits_by
from catalog.rules.policy import Facts, Policy, counts_needed
from catalog.rules.policy_explained import Explained, explain
from catalog.rules.rates import Rate
from catalog.rules.switching import Mode
from jobs.queries import counts
from jobs.rules.arguments import misfit

CHOICES_MOST: Final = 1_000  # functions offered to choose from


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that nobody makes, as a person describes it."""

    tool: str
    function: str
    agent: str
    starter: str
    tainted: bool
    arguments: Mapping[str, Any]
    repeats: int = 1
    over_rates: bool = False  # as if every rate were full


@dataclass(frozen=True, slots=True)
class Simulated:
    """What would become of a call. `misfit` and `switch` say what would come before any rule."""

    explained: Explained
    kind: str
    open_world: bool
    misfit: str
    switch: str
    full: tuple[Rate, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person can choose a call from."""

    functions: tuple[str, ...]
    agents: tuple[str, ...]


def choices(tenant: UUID) -> Choices:
    """The functions and agents there are."""
    with db.read(tenant):
        listed = Function.objects.filter(listing__current=True, tool__plugin_version__stage=Stage.CURRENT)
        names = listed.order_by("tool__slug", "name").values_list("tool__slug", "name")[:CHOICES_MOST]
        return Choices(tuple(f"{tool}.{name}" for tool, name in names), tuple(agents_now()))


def simulate(tenant: UUID, asked: Asked, rules: Any = None) -> Simulated | None:
    """What would become of a call by the policy in force, or by the `rules` of a draft; None without the function."""
    with db.read(tenant) as now:
        policy = policies.in_force()[0] if rules is None else Policy.read(rules)
        function = _listed(asked.tool, asked.function)
        if function is None:
            return None
        traits = traits_by(function, approved_entries([function.tool]))
        facts = Facts(
            kind=traits.kind,
            tool=asked.tool,
            function=asked.function,
            agent=asked.agent,
            starter=asked.starter,
            open_world=traits.open_world,
            at=now,
            tainted=asked.tainted,
            arguments=asked.arguments,
            repeats=asked.repeats,
        )
        needed = counts_needed(policy, facts).rates
        full = (
            {rate: now + timedelta(seconds=rate.seconds) for rate in needed}
            if asked.over_rates
            else counts.full(needed, asked.tool, now)
        )
        switch = switches.over_call(agent=asked.agent, tool=asked.tool, function=asked.function)
        return Simulated(
            explained=explain(policy, replace(facts, full=full)),
            kind=traits.kind,
            open_world=traits.open_world,
            misfit=misfit(dict(asked.arguments), function.input_schema),
            switch="" if switch is None else f"{'stopped' if switch.mode == Mode.KILL else 'paused'}: {switch.scope}",
            full=tuple(sorted(full)),
            now=now,
        )


def _listed(tool: str, name: str) -> Function | None:
    found = Function.objects.filter(listing__current=True, tool__plugin_version__stage=Stage.CURRENT)
    return found.filter(tool__slug=tool, name=name).select_related("tool").first()
