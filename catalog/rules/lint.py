"""What lint finds of a plugin by its files and its measured listing: names, budgets, kinds (RULES T2–T6, C1, C4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.rules.budgets import (
    BUDGET,
    TOKENS,
    AgentCost,
    agent_cost,
    agent_finding,
    long_findings,
    plugin_finding,
    with_repeats,
)
from catalog.rules.estimates import Cost, Definition, estimate
from catalog.rules.findings import Finding, Severity
from catalog.rules.grants import Name, granted, listing_problems, model_name
from catalog.rules.kinds import undeclared
from catalog.rules.listing_file import LISTING_FILE, PluginListing
from catalog.rules.manifest import MANIFEST
from catalog.rules.plugins import PluginSpec
from catalog.rules.problems import Problem

NOT_MEASURED: Final = "listing.missing"
OLD: Final = "listing.old"
DAMAGED: Final = "listing.damaged"
FILES: Final = "plugin.files"
NAMES: Final = "tools.names"
UNDECLARED: Final = "tools.undeclared"
INSPECT: Final = "run `oz0 plugin inspect` on this folder"
UNMEASURED: Final = frozenset({NOT_MEASURED, DAMAGED})  # with one of these not everything was checked

# every check by its code, which never changes its meaning: what it finds at most, and what it asks
CHECKS: Final = {
    FILES: (Severity.ERROR, "The plugin's files can be read."),
    NOT_MEASURED: (Severity.WARNING, "There is a measured listing beside the manifest."),
    DAMAGED: (Severity.ERROR, "The measured listing can be read."),
    OLD: (Severity.WARNING, "The measured listing is of these files."),
    NAMES: (Severity.ERROR, "Every function has a name that can be sent to a model."),
    BUDGET: (Severity.ERROR, "What agents and the plugin send fits their token budgets."),
    TOKENS: (Severity.WARNING, "No single definition is very long."),
    UNDECLARED: (Severity.WARNING, "Every function says what it does to the world."),
}


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
        if not tool.url and tool.id not in listing.tools:
            what = "its server could not be listed when the plugin was measured, so it was not checked"
            found.append(Finding(Severity.WARNING, NOT_MEASURED, LISTING_FILE, 0, tool.id, what, INSPECT))
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
    found += _undeclared(spec, listing)
    return sorted(found, key=lambda finding: finding.severity != Severity.ERROR)


def unreadable(problems: Iterable[Problem]) -> list[Finding]:
    """What is wrong with a plugin's files, as findings."""
    return [Finding(Severity.ERROR, FILES, one.file, one.line, one.key, one.message, one.fix) for one in problems]


def damaged(why: str) -> Finding:
    """That the measured listing beside the manifest cannot be read."""
    return Finding(Severity.ERROR, DAMAGED, LISTING_FILE, 0, "", why, INSPECT)


def _undeclared(spec: PluginSpec, listing: PluginListing) -> Iterable[Finding]:
    """Functions whose calls would wait for a person, because nobody knows what they do (RULES C4, A1)."""
    for tool in spec.tools:
        for function in listing.tools.get(tool.id, ()):
            found = undeclared(function.name, function.annotations)
            if found is not None:
                what = f"calls of it wait for a person: {found.reason}"
                key = f"{tool.id}.{function.name}"
                yield Finding(Severity.WARNING, UNDECLARED, MANIFEST, 0, key, what, found.fix)


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
