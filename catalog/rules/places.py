"""The file and line that a finding is about, where the check itself knew only a key or a function."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from catalog.rules.agents import read_agent
from catalog.rules.fields import Notes
from catalog.rules.findings import Finding
from catalog.rules.manifest import MANIFEST, read_manifest
from catalog.rules.sources import SourceFunction
from catalog.rules.sources import functions as functions_of


def placed(found: Iterable[Finding], files: Mapping[str, bytes]) -> list[Finding]:
    """The same findings: of a function at its own source line where that is known, of a key at the key's line."""
    found = list(found)
    if all(one.line for one in found):
        return found
    sources = functions_of(files)
    tools, lines = _manifest(files)
    kept: dict[str, Mapping[str, int]] = {}

    def of_agent(file: str) -> Mapping[str, int]:
        if file not in kept:
            notes = Notes(file)
            read_agent(notes, files[file])
            kept[file] = notes.lines
        return kept[file]

    def place(one: Finding) -> Finding:
        if one.line or one.file not in files:
            return one
        if one.file == MANIFEST:
            return _in_manifest(one, tools, lines, sources)
        if not one.file.endswith((".yaml", ".yml")):
            return one
        keys = of_agent(one.file)
        return replace(one, line=keys.get(one.key) or keys.get(one.key.partition(".")[0], 0))

    return [place(one) for one in found]


def _in_manifest(
    one: Finding, tools: Mapping[str, str], lines: Mapping[str, int], sources: Mapping[str, SourceFunction]
) -> Finding:
    tool, _, rest = one.key.partition(".")
    if tool not in tools:
        return replace(one, line=lines.get(one.key, 0))
    if rest in sources:
        return replace(one, file=sources[rest].file, line=sources[rest].line)
    return replace(one, line=lines.get(f"{tools[tool]}.{rest}") or lines.get(f"{tools[tool]}.id", 0))


def _manifest(files: Mapping[str, bytes]) -> tuple[dict[str, str], Mapping[str, int]]:
    """Where each tool stands in the manifest, as `tools[0]`, and the line of each of its keys."""
    notes = Notes(MANIFEST)
    manifest = read_manifest(notes, files[MANIFEST]) if MANIFEST in files else None
    if manifest is None:
        return {}, {}
    return {tool.id: f"tools[{at}]" for at, tool in enumerate(manifest.tools) if tool.id}, notes.lines
