"""A plugin's folder as it was just saved: read whole and copied, so that what is tried is what is then taken."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from base import folders
from catalog.rules.fields import Notes
from catalog.rules.listing_file import LISTING_FILE
from catalog.rules.manifest import MANIFEST, ToolSpec, command, read_manifest
from catalog.rules.plugins import PluginSpec, digest_of, read_plugin
from catalog.rules.problems import BadPlugin, Problem
from catalog.rules.servers import ServerSpec
from studio.dev.warm import through

TRIAL = "trial"  # the folder in the state folder that a save is tried in


@dataclass(frozen=True, slots=True)
class Saved:
    """The plugin as one save left it. `sources` is a digest without the listing; `servers` one of what a server is
    made of; `variables` holds, by tool, what its program gets of this terminal."""

    spec: PluginSpec
    files: Mapping[str, bytes]
    sources: str
    servers: str
    variables: Mapping[str, Mapping[str, str]]


def read(folder: Path, environ: Mapping[str, str]) -> Saved:
    """The plugin in the folder. Raises `BadPlugin`, naming everything to mend."""
    try:
        files = dict(folders.files_of(folder))
    except folders.BadFolder as error:
        said, _, fix = str(error).partition(" fix: ")
        raise BadPlugin([Problem(str(folder), 0, "", said, fix)]) from error
    except OSError as error:  # a file that was there a moment ago
        fix = "save it again"
        raise BadPlugin([Problem(str(error.filename), 0, "", f"cannot be read: {error.strerror}", fix)]) from error
    files.pop(LISTING_FILE, None)
    spec = read_plugin(files)
    return Saved(spec, files, digest_of(files), _made_of(files), _variables(spec, environ))


def copied(saved: Saved, state: Path) -> Path:
    """A folder that holds exactly these files; the one of the save before is gone."""
    place = state / TRIAL / saved.sources[:16]
    for other in (state / TRIAL).glob("*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    folders.keep(saved.files, place, lasting=False)
    return place


def servers_of(saved: Saved, folder: Path, state: Path, ids: Mapping[str, UUID], warm: str) -> dict[str, ServerSpec]:
    """The servers to start, by their tool: those of the plugin's own, through the socket `warm` where they can be."""

    def argv(tool: ToolSpec) -> tuple[str, ...]:
        cold = command(tool.argv, python=sys.executable, home=str(state))
        return cold if tool.sandbox is not None else through(warm, cold)

    return {
        tool.id: ServerSpec(
            tenant=ids[tool.id],
            tool_id=ids[tool.id],
            tool=tool.id,
            version=saved.sources,
            credential_version="",
            argv=argv(tool),
            cwd=str(folder),
            startup=tool.startup,
            slots=1,
            sandbox=tool.sandbox,
            env=saved.variables.get(tool.id, {}),
        )
        for tool in saved.spec.tools
        if not tool.url
    }


def _made_of(files: Mapping[str, bytes]) -> str:
    """A digest of what a server can depend on: everything but the agents and skills, which only the studio reads."""
    manifest = read_manifest(Notes(MANIFEST), files[MANIFEST])
    apart = tuple(f"{folder}/" for folder in (*manifest.agents, *manifest.skills)) if manifest else ()
    return digest_of({path: content for path, content in files.items() if not path.startswith(apart or ("\0",))})


def _variables(spec: PluginSpec, environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    lacking = [(tool.id, name) for tool in spec.tools for name in tool.env if name not in environ]
    if lacking:
        raise BadPlugin(
            Problem(
                MANIFEST,
                0,
                f"{tool}.env",
                f"the variable {name} is not set in this terminal",
                f"end this, `export {name}=…`, and start it again",
            )
            for tool, name in lacking
        )
    return {tool.id: {name: environ[name] for name in tool.env} for tool in spec.tools if tool.env}
