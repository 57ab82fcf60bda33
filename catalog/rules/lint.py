"""What lint finds of a plugin by its files and its measured listing: names, budgets, kinds (RULES T2–T6, C1, C4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.rules import listing_file
from catalog.rules.bearing import BORNE, META
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
from catalog.rules.drill_file import drill_problems
from catalog.rules.estimates import Cost, Definition, estimate
from catalog.rules.findings import Finding, Severity
from catalog.rules.grants import Name, granted, listing_problems, model_name
from catalog.rules.lint_functions import (
    ANNOTATIONS,
    ANSWER,
    CANCEL,
    MANUAL,
    PROMISE,
    SCHEMA,
    UNDECLARED,
    function_findings,
    manual_findings,
)
from catalog.rules.listing_file import LISTING_FILE, PluginListing
from catalog.rules.manifest import MANIFEST
from catalog.rules.places import placed
from catalog.rules.plugins import PluginSpec
from catalog.rules.problems import Problem
from catalog.rules.servers import MeasuredListing
from catalog.rules.skills import full_name, index_of
from catalog.rules.sources import functions as functions_of

NOT_MEASURED: Final = "listing.missing"
OLD: Final = "listing.old"
DAMAGED: Final = "listing.damaged"
FILES: Final = "plugin.files"
NAMES: Final = "tools.names"
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
    ANNOTATIONS: (Severity.ERROR, "What functions say of themselves can be true."),
    PROMISE: (Severity.WARNING, "What says it can be repeated honours the key."),
    CANCEL: (Severity.WARNING, "Functions can be stopped, and clean up within their time."),
    SCHEMA: (Severity.ERROR, "Arguments and answers can be checked by their schemas."),
    MANUAL: (Severity.WARNING, "No tool's manual is very long."),
    ANSWER: (Severity.WARNING, "No function answers with however much it reads."),
    BORNE: (Severity.WARNING, "The servers bear lines that no client should send."),
    META: (Severity.ERROR, "The servers take what a studio adds to a call's _meta."),
}
STARTED: Final = frozenset({BORNE, META})  # what only a started server shows, so that lint alone cannot tell


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
    misspelt = unreadable(drill_problems(spec, files))
    if listing is None:
        what = "there is no measured listing, so names and token budgets were not checked"
        return [*misspelt, Finding(Severity.WARNING, NOT_MEASURED, LISTING_FILE, 0, "", what, INSPECT)]
    found = [*misspelt, *(one for tool in spec.tools for one in manual_findings(tool, spec.skills))]
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
    sources = functions_of(files)
    for tool in spec.tools:
        found += function_findings(tool, listing.tools.get(tool.id, ()), sources)
    return sorted(placed(found, files), key=lambda finding: finding.severity != Severity.ERROR)


def lint_files(spec: PluginSpec, files: Mapping[str, bytes]) -> list[Finding]:
    """Every finding of a plugin by its files, the listing among them; one that cannot be read is a finding."""
    content = files.get(LISTING_FILE)
    try:
        listing = listing_file.read(content) if content is not None else None
    except listing_file.BadListingFile as error:
        return [damaged(str(error), error.line)]
    return lint(spec, files, listing)


def unreadable(problems: Iterable[Problem]) -> list[Finding]:
    """What is wrong with a plugin's files, as findings."""
    return [Finding(Severity.ERROR, FILES, one.file, one.line, one.key, one.message, one.fix) for one in problems]


def not_taken(
    found: Iterable[Finding], listed: Mapping[str, MeasuredListing], failed: Mapping[str, str]
) -> list[Finding]:
    """The same findings with what only the servers themselves could show: entries that were left out of the listing
    because nobody can call them, and of a server that was not listed the reason."""
    told = [one for one in found if not (one.code == NOT_MEASURED and one.key in failed)]
    for tool, why in failed.items():
        fix = "mend what its server says, then run this again"
        told.append(
            Finding(Severity.WARNING, NOT_MEASURED, MANIFEST, 0, tool, f"its server was not listed: {why}", fix)
        )
    for tool, listing in listed.items():
        for problem in listing.problems:
            fix = "give every entry of the listing a name of its own and an input schema"
            told.append(Finding(Severity.ERROR, SCHEMA, MANIFEST, 0, tool, f"left out of its listing: {problem}", fix))
    return sorted(told, key=lambda finding: finding.severity != Severity.ERROR)


def damaged(why: str, line: int = 0) -> Finding:
    """That the measured listing beside the manifest cannot be read."""
    return Finding(Severity.ERROR, DAMAGED, LISTING_FILE, line, "", why, INSPECT)


def _agent(
    spec: PluginSpec, at: int, sent: Mapping[str, Definition], counted: Mapping[str, int], listing: PluginListing
) -> AgentCost:
    agent = spec.agents[at]
    own = [Name(*label.split(".", 1)) for label in sent]
    names = granted(agent.functions, own)
    index = index_of(
        spec.name,
        agent.skills,
        {name.tool for name in names},
        manuals={tool.id: [full_name(spec.name, skill) for skill in tool.manual] for tool in spec.tools},
        there={full_name(spec.name, skill.name): skill.description for skill in spec.skills},
    )
    wanted = {grant.partition(".")[0] for grant in agent.functions}
    cost = agent_cost(
        agent,
        {str(name): counted[str(name)] for name in names},
        index=index,
        unmeasured=sorted(wanted - listing.tools.keys()),
    )
    return with_repeats(cost, [sent[str(name)] for name in names])
