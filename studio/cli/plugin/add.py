"""`oz0 plugin add`: the plugin of a folder into this studio's catalog."""

from pathlib import Path

import click

from studio.cli import _told
from studio.cli.plugin import _folder


@click.command(
    cls=_told.Told,
    short_help="Add a plugin to the studio here.",
    exits={
        _told.Exit.DONE: "it is in the catalog",
        _told.Exit.FAILED: "there is no studio here",
        _told.Exit.UNREADABLE: "its files cannot be read or taken",
    },
    examples=[
        "oz0 plugin add",
        "oz0 plugin add shelf --json",
    ],
)
@_folder.folder_argument
@_folder.json_option
def add(folder: Path, as_json: bool) -> None:
    """Add the plugin in FOLDER to the studio of this state folder, or make its changed files the current version.

    The files are copied, so the folder may change or go afterwards. The same files again change nothing.
    """
    from base import folders
    from catalog.rules.problems import BadPlugin
    from studio.cli import _this_studio

    _folder.read(folder, as_json)  # a mistake in the files is told also where no studio runs
    _this_studio.ready()
    from catalog.operations.plugins import register

    tenant, person = _this_studio.me()
    actor = _this_studio.actor(person, "oz0 plugin add")
    try:
        found = register(tenant=tenant, folder=folder, home=_this_studio.home(), actor=actor)
    except (folders.BadFolder, BadPlugin) as error:
        _folder.refuse(str(error), as_json)
    done = "added" if found.fresh else "kept"
    if as_json:
        _folder.show_json({"plugin": found.name, "digest": found.digest, "done": done})
    else:
        click.echo(f"{done} {found.name} {found.digest[:12]}")
