"""Whether what an agent or a plugin sends fits its token budget, and the finding when it does not (RULES T2–T4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from catalog.rules.agents import AgentSpec
from catalog.rules.estimates import ONE_IS_LONG, Cost, Definition, Shared, biggest, drop_to_fit, estimate, shared
from catalog.rules.findings import Finding, Severity
from catalog.rules.platform import carried, label_of
from catalog.rules.skills import IndexLine

BUDGET: Final = "tools.budget"
TOKENS: Final = "tools.tokens"


@dataclass(frozen=True, slots=True)
class AgentCost:
    """What an agent's definitions come to in every model request.

    `granted` costs only when the agent loads eagerly; `own` are the platform's functions that it carries. `unmeasured`
    names granted tools without a listing: with one of those the figure is a lower bound.
    """

    agent: str
    file: str
    lazy: bool
    budget: int
    granted: tuple[Cost, ...]
    own: tuple[Cost, ...]
    unmeasured: tuple[str, ...] = ()
    repeats: Shared | None = None

    @property
    def tokens(self) -> int:
        """What every request carries."""
        return sum(cost.tokens for cost in self.carried)

    @property
    def carried(self) -> tuple[Cost, ...]:
        """What the figure is the sum of."""
        return self.own if self.lazy else (*self.granted, *self.own)

    @property
    def over(self) -> bool:
        """Whether the budget is passed. A figure equal to it fits."""
        return self.tokens > self.budget

    @property
    def biggest(self) -> tuple[Cost, ...]:
        """The three that cost most."""
        return biggest(self.carried)

    @property
    def drop(self) -> tuple[Cost, ...]:
        """Granted functions to leave out so that the rest fits; empty when it fits already."""
        if not self.over or self.lazy:
            return ()
        return drop_to_fit(self.granted, self.budget - sum(cost.tokens for cost in self.own))


def told(cost: AgentCost) -> dict[str, Any]:
    """An agent's figures for a program; the command and the API tell them alike.

    `functions` are the granted ones and `tools` what they come to by tool; a lazy agent carries only `own`.
    """
    tools: dict[str, int] = {}
    for one in cost.granted:
        tool = one.label.partition(".")[0]
        tools[tool] = tools.get(tool, 0) + one.tokens
    return {
        "tokens": cost.tokens,
        "budget": cost.budget,
        "over": cost.over,
        "tool_loading": "lazy" if cost.lazy else "eager",
        "tools": tools,
        "functions": {one.label: one.tokens for one in cost.granted},
        "own": {one.label: one.tokens for one in cost.own},
        "drop": [one.label for one in cost.drop],
        "unmeasured": list(cost.unmeasured),
    }


def agent_cost(
    agent: AgentSpec,
    granted: Mapping[str, int],
    *,
    index: Sequence[IndexLine] = (),
    unmeasured: Sequence[str] = (),
) -> AgentCost:
    """The cost of an agent that is granted these functions: their tokens by label `tool.function`.

    `index` is its index of skills, which the definition of `oz.skill` carries (RULES M2, M4).
    """
    lazy = agent.tool_loading == "lazy"
    return AgentCost(
        agent=agent.name,
        file=agent.file or f"agents/{agent.name}.yaml",
        lazy=lazy,
        budget=agent.limits.tool_tokens,
        granted=tuple(Cost(label, granted[label]) for label in sorted(granted)),
        own=own_costs(lazy=lazy, index=tuple(index)),
        unmeasured=tuple(unmeasured),
    )


def with_repeats(cost: AgentCost, granted: Sequence[Definition]) -> AgentCost:
    """The same, telling which part of the schemas is repeated when that is what an agent over its budget pays for."""
    return replace(cost, repeats=shared(granted)) if cost.over and not cost.lazy else cost


@lru_cache(1024)
def own_costs(*, lazy: bool, index: tuple[IndexLine, ...]) -> tuple[Cost, ...]:
    """What the platform's own functions that an agent carries cost, by their labels."""
    sent = carried(lazy=lazy, index=index)
    return tuple(Cost(label_of(one.name), count) for one, count in zip(sent, estimate(sent), strict=True))


def agent_finding(cost: AgentCost) -> Finding | None:
    """The error of an agent over its budget (RULES T3); None when it fits."""
    if not cost.over:
        return None
    message = (
        f"agent {cost.agent}: every model request would carry about {cost.tokens:,} tokens of definitions "
        f"and may carry {cost.budget:,}; {_most(cost.biggest)}{_repeats(cost.repeats)}"
    )
    ways = (
        "set tool_loading: lazy, which sends oz.find and oz.call and leaves the rest to be looked for; "
        if not cost.lazy
        else ""
    )
    fix = (
        f"{ways}grant it fewer functions; say less in their descriptions and schemas; "
        "or allow more in limits.tool_tokens"
    )
    return Finding(Severity.ERROR, BUDGET, cost.file, 0, "limits.tool_tokens", message, fix)


def plugin_finding(file: str, plugin: str, costs: Sequence[Cost], budget: int) -> Finding | None:
    """The error of a plugin whose own functions together pass its `tool_tokens` (RULES T3); None when they fit."""
    total = sum(cost.tokens for cost in costs)
    if total <= budget:
        return None
    message = (
        f"plugin {plugin}: the definitions of its {len(costs)} functions come to about {total:,} tokens "
        f"and may come to {budget:,}; {_most(biggest(costs))}"
    )
    fix = (
        "split it into plugins that are granted apart; drop functions; say less in descriptions and schemas "
        "(agents can set tool_loading: lazy); or allow more in tool_tokens"
    )
    return Finding(Severity.ERROR, BUDGET, file, 0, "tool_tokens", message, fix)


def long_findings(file: str, costs: Sequence[Cost]) -> list[Finding]:
    """A warning for each definition past 1,500 tokens, the biggest first (RULES T2)."""
    return [
        Finding(
            Severity.WARNING,
            TOKENS,
            file,
            0,
            cost.label,
            f"its definition alone comes to about {cost.tokens:,} tokens, more than {ONE_IS_LONG:,}",
            "keep what the model needs to choose and call it, and move the rest into a skill (manual:)",
        )
        for cost in biggest(costs, most=1_000_000)
        if cost.tokens > ONE_IS_LONG
    ]


def _most(costs: Sequence[Cost]) -> str:
    return "most of it: " + ", ".join(f"{cost.label} ({cost.tokens:,})" for cost in costs)


def _repeats(repeats: Shared | None) -> str:
    if repeats is None:
        return ""
    return (
        f"; {repeats.definitions} definitions repeat the part at {repeats.place}, about {repeats.tokens:,} tokens of it"
    )
