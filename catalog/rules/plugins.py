"""A plugin's files read as one whole: the manifest, its agents and skills, and whether they fit together."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from base import canonical
from catalog.rules.agents import AgentSpec, read_agent
from catalog.rules.fields import Notes, twice
from catalog.rules.manifest import MANIFEST, Manifest, ToolSpec, read_manifest
from catalog.rules.problems import BadPlugin, Problem
from catalog.rules.skills import SkillSpec, is_skill_file, read_skill


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A plugin as its files say, and the digest of those files."""

    name: str
    version: str
    digest: str
    tool_tokens: int
    tools: tuple[ToolSpec, ...]
    agents: tuple[AgentSpec, ...]
    skills: tuple[SkillSpec, ...]

    def manifest(self) -> dict[str, Any]:
        """The plugin's own figures and its tools as JSON, to keep with the version."""
        return {
            "name": self.name,
            "version": self.version,
            "tool_tokens": self.tool_tokens,
            "tools": [asdict(t) for t in self.tools],
        }


def read_plugin(files: Mapping[str, bytes]) -> PluginSpec:
    """A plugin from its files by path. Raises `BadPlugin` with every problem found."""
    if MANIFEST not in files:
        fix = "name the folder that holds it, or write one"
        raise BadPlugin([Problem(MANIFEST, 0, "", "the plugin has no manifest", fix)])
    notes = Notes(MANIFEST)
    manifest = read_manifest(notes, files[MANIFEST])
    if manifest is None:
        raise BadPlugin(notes.problems)
    parts: dict[str, Notes] = {MANIFEST: notes}
    agents = _each(files, manifest.agents, (".yaml", ".yml"), "agents", parts, read_agent)
    texts = {path: content for path, content in files.items() if is_skill_file(path, files)}
    skills = _each(texts, manifest.skills, (".md",), "skills", parts, read_skill)
    _refuse_misfits(manifest, agents, skills, parts)
    problems = [problem for part in parts.values() for problem in part.problems]
    if problems:
        raise BadPlugin(problems)
    return PluginSpec(
        name=manifest.name,
        version=manifest.version,
        digest=digest_of(files),
        tool_tokens=manifest.tool_tokens,
        tools=manifest.tools,
        agents=tuple(agents.values()),
        skills=tuple(skills.values()),
    )


def digest_of(files: Mapping[str, bytes]) -> str:
    """The digest of a folder's files: their paths and bytes, in no order of their own. 64 hex digits."""
    return canonical.digest({path: hashlib.sha256(content).hexdigest() for path, content in files.items()})


def _each[Spec](
    files: Mapping[str, bytes],
    folders: tuple[str, ...],
    ends: tuple[str, ...],
    key: str,
    parts: dict[str, Notes],
    read: Callable[[Notes, bytes], Spec | None],
) -> dict[str, Spec]:
    """What `read` makes of each file in the folders; its notes go into `parts` under the file's path."""
    found: dict[str, Spec] = {}
    for folder in folders:
        here = [path for path in sorted(files) if path.startswith(f"{folder}/") and path.endswith(ends)]
        if not here:
            manifest = parts[MANIFEST]
            fix = f"write one, or take {folder}/ out of `{key}`"
            manifest.add(manifest.lines.get(key, 0), key, f"{folder}/ holds no {ends[0]} file", fix)
        for path in here:
            if path not in parts:
                parts[path] = Notes(path)
                spec = read(parts[path], files[path])
                if spec is not None:
                    found[path] = spec
    return found


def _refuse_misfits(
    manifest: Manifest,
    agents: Mapping[str, AgentSpec],
    skills: Mapping[str, SkillSpec],
    parts: Mapping[str, Notes],
) -> None:
    """Note what is wrong between the files: names used twice, and names that name nothing."""

    def note(path: str, key: str, message: str, fix: str) -> None:
        parts[path].add(parts[path].lines.get(key, 0), key, message, fix)

    _refuse_twice(note, "agent", {path: agent.name for path, agent in agents.items()})
    _refuse_twice(note, "skill", {path: skill.name for path, skill in skills.items()})
    own = {skill.name for skill in skills.values()}
    for at, tool in enumerate(manifest.tools):
        for skill in tool.manual:
            if skill not in own:
                note(MANIFEST, f"tools[{at}].manual", f"{skill} is not a skill of this plugin", _one_of(own))
    for path, agent in agents.items():
        for skill in agent.skills:
            owner, _, name = skill.rpartition("/")
            if owner in ("", manifest.name) and name not in own:
                note(path, "skills", f"{skill} is not a skill of this plugin", _one_of(own))


def _refuse_twice(note: Callable[[str, str, str, str], None], kind: str, names: Mapping[str, str]) -> None:
    doubled = twice(name for name in names.values() if name)
    for path, name in names.items():
        if name in doubled:
            note(path, "name", f"another {kind} is called {name} too", "give each a name of its own")


def _one_of(names: set[str]) -> str:
    return f"name one of {', '.join(sorted(names))}" if names else "there is none yet: add it"
