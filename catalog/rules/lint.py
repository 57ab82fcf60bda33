"""What lint finds of a plugin's names and token budgets, by its files and its measured listing (RULES T2–T5, C1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.rules.budgets import AgentCost, agent_cost, agent_finding, long_findings, plugin_finding, with_repeats
from catalog.rules.estimates import Cost, Definition, estimate
from catalog.rules.findings import Finding, Severity
from catalog.rules.grants import Name, granted, listing_problems, model_name
from catalog.rules.listing_file import LISTING_FILE, PluginListing
from catalog.rules.manifest import MANIFEST
from catalog.rules.plugins import PluginSpec

NOT_MEASURED: Final = "listing.missing"
OLD: Final = "listing.old"
NAMES: Final = "tools.names"
INSPECT: Final = "run `oz0 plugin inspect` on this folder"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a plugin's own functions and its agents come to, by one estimate (RULES T1)."""

    functions: tuple[Cost, ...]
    agents: tuple[AgentCost, ...]

    @property
    def tokens(self) -> int:
        """All its own functions together."""
        return sum(cost.tokens for cost in self.functions)


def costs_of(spec: PluginSpec, listing: PluginListing) -> Costs:
    """The estimate of a measured plugin. Agents are counted by this plugin's own functions."""
    sent: dict[str, Definition] = {}
    for tool in spec.tools:
        for function in listing.tools.get(tool.id, ()):
            name = model_name(tool.id, function.name)
            sent[f"{tool.id}.{function.name}"] = Definition(name, function.description, function.input_schema)
    counted = dict(zip(sent, estimate(list(sent.values())), strict=True))
    return Costs(
        functions=tuple(Cost(label, tokens) for label, tokens in sorted(counted.items())),
        agents=tuple(_agent(spec, at, sent, counted, listing) for at in range(len(spec.agents))),
    )


def lint(spec: PluginSpec, files: Mapping[str, bytes], listing: PluginListing | None) -> list[Finding]:
    """Every finding, errors first. Without a listing it says so and checks nothing (RULES T5)."""
    if listing is None:
        what = "there is no measured listing, so names and token budgets were not checked"
        return [Finding(Severity.WARNING, NOT_MEASURED, LISTING_FILE, 0, "", what, INSPECT)]
    found: list[Finding] = []
    if listing.is_older_than(files):
        what = "the listing was measured from other files than these, so its figures may be old"
        found.append(Finding(Severity.WARNING, OLD, LISTING_FILE, 0, "", what, INSPECT))
    for tool in spec.tools:
        names = [function.name for function in listing.tools.get(tool.id, ())]
        found += [
            Finding(Severity.ERROR, NAMES, MANIFEST, 0, f"{tool.id}.{p.key}", p.message, p.fix)
            for p in listing_problems(tool.id, names)
        ]
    costs = costs_of(spec, listing)
    over = [agent_finding(cost) for cost in costs.agents]
    over.append(plugin_finding(MANIFEST, spec.name, costs.functions, spec.tool_tokens))
    found += [finding for finding in over if finding is not None]
    found += long_findings(MANIFEST, costs.functions)
    return sorted(found, key=lambda finding: finding.severity != Severity.ERROR)


def _agent(
    spec: PluginSpec, at: int, sent: Mapping[str, Definition], counted: Mapping[str, int], listing: PluginListing
) -> AgentCost:
    agent = spec.agents[at]
    own = [Name(*label.split(".", 1)) for label in sent]
    names = granted(agent.functions, own)
    manuals = {tool.id for tool in spec.tools if tool.manual}
    wanted = {grant.partition(".")[0] for grant in agent.functions}
    cost = agent_cost(
        agent,
        {str(name): counted[str(name)] for name in names},
        manual=any(name.tool in manuals for name in names),
        unmeasured=sorted(wanted - listing.tools.keys()),
    )
    return with_repeats(cost, [sent[str(name)] for name in names])
