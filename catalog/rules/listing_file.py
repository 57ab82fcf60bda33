"""`oz0-listing.json`: what a plugin's servers listed when they were measured, beside its manifest (RULES T5)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalog.rules.listing import entry, listing_digest
from catalog.rules.plugins import digest_of
from catalog.rules.servers import ListedFunction, MeasuredListing

LISTING_FILE: Final = "oz0-listing.json"
FORMAT: Final = 1


class BadListingFile(ValueError):
    """The file cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class PluginListing:
    """The functions of each measured tool, and the digest of the plugin's files they were measured from."""

    sources: str
    tools: Mapping[str, tuple[ListedFunction, ...]]

    def is_older_than(self, files: Mapping[str, bytes]) -> bool:
        """Whether the plugin's files are others by now."""
        return self.sources != sources_digest(files)


def sources_digest(files: Mapping[str, bytes]) -> str:
    """The digest of a plugin's files without the listing itself."""
    return digest_of({path: content for path, content in files.items() if path != LISTING_FILE})


def write(files: Mapping[str, bytes], measured: Mapping[str, MeasuredListing]) -> str:
    """The file's text: equal listings of equal sources give equal bytes."""
    tools = {tool: _tool(listing) for tool, listing in sorted(measured.items())}
    whole = {"format": FORMAT, "sources": sources_digest(files), "tools": tools}
    return json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def read(content: bytes) -> PluginListing:
    """The listing in these bytes. Digests are made anew, not believed. Raises `BadListingFile`."""
    try:
        whole = json.loads(content)
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise BadListingFile(f"it is not of format {FORMAT}")
        tools = {str(tool): tuple(_entries(found)) for tool, found in whole["tools"].items()}
        return PluginListing(str(whole["sources"]), tools)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadListingFile(f"{error}" if isinstance(error, BadListingFile) else f"it is damaged ({error})") from error


def _entries(found: Any) -> Iterable[ListedFunction]:
    for raw in found["functions"]:
        yield entry(raw)


def _tool(measured: MeasuredListing) -> dict[str, Any]:
    functions = sorted(measured.functions, key=lambda function: function.name)
    return {
        "server": f"{measured.server_name} {measured.server_version}".strip(),
        "protocol": measured.protocol,
        "digest": listing_digest(functions),
        "functions": [_function(function) for function in functions],
    }


def _function(function: ListedFunction) -> dict[str, Any]:
    every = {
        "title": function.title,
        "description": function.description,
        "outputSchema": function.output_schema,
        "annotations": function.annotations,
        "_meta": function.meta,
    }
    kept = {name: value for name, value in every.items() if value}
    return {"name": function.name, "inputSchema": function.input_schema, **kept}
