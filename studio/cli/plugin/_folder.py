"""What the commands of `oz0 plugin` share: the folder they are given, and how they end when it is no plugin."""

import json
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from studio.cli import _told

if TYPE_CHECKING:
    from catalog.rules.bearing import Bearing
    from catalog.rules.manifest import ToolSpec
    from catalog.rules.plugins import PluginSpec
    from catalog.rules.servers import MeasuredListing, ServerSpec

folder_argument = click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
json_option = _told.json_option


def read(folder: Path, as_json: bool) -> "tuple[dict[str, bytes], PluginSpec]":
    """The folder's files and the plugin they are. Ends the command with 3 when they cannot be read."""
    from base import folders
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    try:
        files = dict(folders.files_of(folder))
        return files, read_plugin(files)
    except (folders.BadFolder, BadPlugin) as error:
        refuse(str(error), as_json)


def refuse(why: str, as_json: bool) -> NoReturn:
    """End with the code of files that cannot be read."""
    if as_json:
        show_json({"error": why})
    from base.visible import visible

    click.echo("\n".join(visible(line, 4_000) for line in why.splitlines()), err=True)
    raise SystemExit(_told.Exit.UNREADABLE)


def show_json(value: dict[str, Any]) -> None:
    """One object on one line."""
    click.echo(json.dumps(value))


def version() -> str:
    """This program's, empty when it runs from its sources without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("oz0-studio")
    except PackageNotFoundError:
        return ""


def measured(spec: "PluginSpec", folder: Path) -> "tuple[dict[str, MeasuredListing], dict[str, str]]":
    """What the plugin's own servers list, by tool; and of those that could not be listed, a sentence each."""
    listed, failed = {}, {}
    for tool in spec.tools:
        if tool.url:
            continue
        found = _listed(spec, tool, folder)
        if isinstance(found, str):
            failed[tool.id] = found
        else:
            listed[tool.id] = found
    return listed, failed


def borne(spec: "PluginSpec", folder: Path, tools: Collection[str]) -> "list[Bearing]":
    """How the servers of these tools take what no client should send, each on a state folder of its own."""
    from catalog.rules.frames import FRAMES
    from catalog.sessions import bear

    found = []
    for tool in spec.tools:
        if tool.id in tools:
            with tempfile.TemporaryDirectory(prefix="oz0-test-") as home:
                found.append(bear(_server(spec, tool, folder, home), FRAMES))
    return found


def _listed(spec: "PluginSpec", tool: "ToolSpec", folder: Path) -> "MeasuredListing | str":
    """What the tool's server lists; a sentence when it cannot be listed. It runs on a state folder of its own."""
    from catalog.sessions import NotUp, list_once

    with tempfile.TemporaryDirectory(prefix="oz0-inspect-") as home:
        try:
            return list_once(_server(spec, tool, folder, home))
        except NotUp as error:
            return str(error)


def _server(spec: "PluginSpec", tool: "ToolSpec", folder: Path, home: str) -> "ServerSpec":
    """The tool's server, in the plugin's folder and on the state folder `home`."""
    from base import ids
    from catalog.rules.manifest import command
    from catalog.rules.servers import ServerSpec

    return ServerSpec(
        tenant=ids.new(),
        tool_id=ids.new(),
        tool=tool.id,
        version=spec.digest,
        credential_version="",
        argv=command(tool.argv, python=sys.executable, home=home),
        cwd=str(folder.resolve()),
        startup=tool.startup,
        slots=1,
        sandbox=tool.sandbox,
    )
