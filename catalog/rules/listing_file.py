"""`oz0-listing.json`: what a plugin's servers listed when they were measured, beside its manifest (RULES T5)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from base import json_files
from base.portable import looks_secret
from catalog.rules.listing import entry, listing_digest
from catalog.rules.plugins import digest_of
from catalog.rules.servers import ListedFunction, MeasuredListing

LISTING_FILE: Final = "oz0-listing.json"
FORMAT: Final = 1


class BadListingFile(ValueError):
    """The file cannot be read; the message says why, and `line` where, from 1, when that is one line."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class PluginListing:
    """The functions of each measured tool, and the digest of the plugin's files they were measured from."""

    sources: str
    tools: Mapping[str, tuple[ListedFunction, ...]]

    def is_older_than(self, files: Mapping[str, bytes]) -> bool:
        """Whether the plugin's files are others by now."""
        return self.sources != sources_digest(files)


def sources_digest(files: Mapping[str, bytes]) -> str:
    """The digest of a plugin's files without the listing itself, and without what no pack holds."""
    others = {path: content for path, content in files.items() if path != LISTING_FILE}
    return digest_of({path: content for path, content in others.items() if not looks_secret(path, content)})


def write(files: Mapping[str, bytes], measured: Mapping[str, MeasuredListing]) -> str:
    """The file's text: equal listings of equal sources give equal bytes."""
    tools = {tool: _tool(listing) for tool, listing in sorted(measured.items())}
    whole = {"format": FORMAT, "sources": sources_digest(files), "tools": tools}
    return json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def read(content: bytes) -> PluginListing:
    """The listing in these bytes. Digests are made anew, not believed. Raises `BadListingFile`."""
    try:
        whole = json_files.load(content)
    except json_files.BadJson as error:
        raise BadListingFile(f"it is damaged: {error.message}", error.line) from error
    if not isinstance(whole, dict) or whole.get("format") != FORMAT or isinstance(whole.get("format"), bool):
        raise BadListingFile(f"it is not of format {FORMAT}", 1)
    if unknown := sorted(whole.keys() - {"format", "sources", "tools"}):
        raise BadListingFile(f"it is damaged: {unknown[0][:80]} is not a known key", _line_of(content, unknown[0]))
    for key, kind, what in (("sources", str, "a text"), ("tools", dict, "an object")):
        if not isinstance(whole.get(key), kind):
            raise BadListingFile(f"it is damaged: {key} is not {what}", _line_of(content, key))
    tools = {}
    for tool, found in whole["tools"].items():
        try:
            tools[tool] = tuple(_entries(found))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            said = f"it is damaged: what it says of the tool {tool[:80]} cannot be read ({error})"
            raise BadListingFile(said, _line_of(content, tool)) from error
    return PluginListing(whole["sources"], tools)


def _line_of(content: bytes, key: str) -> int:
    at = content.find(json.dumps(key, ensure_ascii=False).encode())
    return content.count(b"\n", 0, at) + 1 if at >= 0 else 1


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
