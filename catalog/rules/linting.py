"""Lint of what the studio itself has listed: the same findings as on an author's machine, with each one's function.

What only concerns the measured file beside the manifest is left out: here a node measures, and the tool's page says
when it could not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.rules.findings import Finding
from catalog.rules.lint import DAMAGED, NOT_MEASURED, OLD, lint, unreadable
from catalog.rules.listing_file import PluginListing, sources_digest
from catalog.rules.plugins import digest_of, read_plugin
from catalog.rules.problems import BadPlugin
from catalog.rules.servers import ListedFunction

EDITION: Final = 2  # grows when lint looks for something else, so that everything is linted anew
NOT_HERE: Final = frozenset({NOT_MEASURED, DAMAGED, OLD})


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding with the function or the tool that it is of; both are empty for one of the whole plugin."""

    finding: Finding
    tool: str = ""
    function: str = ""


def lint_listed(files: Mapping[str, bytes], listed: Mapping[str, tuple[ListedFunction, ...]]) -> tuple[Placed, ...]:
    """What lint finds of a plugin's files and of what a node listed of its tools, errors first."""
    try:
        spec = read_plugin(files)
    except BadPlugin as bad:
        return tuple(Placed(one) for one in unreadable(bad.problems))
    found = lint(spec, files, PluginListing(sources_digest(files), listed))
    tools = {tool.id for tool in spec.tools}
    return tuple(_placed(one, tools, listed) for one in found if one.code not in NOT_HERE)


def key_of(digest: str, listings: Mapping[str, str]) -> str:
    """What a report is of: files, the digest of each tool's listing, and the edition of lint."""
    told = "\n".join(f"{tool} {listing}" for tool, listing in sorted(listings.items()))
    return digest_of({"files": digest.encode(), "listings": told.encode(), "edition": str(EDITION).encode()})


def _placed(finding: Finding, tools: set[str], listed: Mapping[str, tuple[ListedFunction, ...]]) -> Placed:
    tool, _, function = finding.key.partition(".")
    if tool not in tools:
        return Placed(finding)
    names = {one.name for one in listed.get(tool, ())}
    return Placed(finding, tool, function if function in names else "")
