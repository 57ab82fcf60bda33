"""`oz0 plugin add`: the plugin of a folder or a pack into this studio's catalog."""

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
        "oz0 plugin add shelf-1.0.0.oz0.zip",
    ],
)
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="FOLDER_OR_PACK")
@_folder.json_option
def add(folder: Path, as_json: bool) -> None:
    """Add the plugin in a folder or a pack to the studio of this state folder, or make it the current version.

    The files are copied, so the folder may change or go afterwards. The same files again change nothing. A pack is a
    release: one whose version number is here with other files is refused. A plugin that was removed comes back.
    """
    from base import folders
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin
    from studio.cli import _this_studio

    try:  # a mistake in the files is told also where no studio runs
        files = _files(folder)
        read_plugin(files)
    except (folders.BadFolder, BadPlugin) as error:
        _folder.refuse(str(error), as_json)
    _this_studio.ready()
    from catalog.models import Came
    from catalog.operations.plugins import take

    tenant, person = _this_studio.me()
    try:
        found = take(
            tenant=tenant,
            files=files,
            home=_this_studio.home(),
            actor=_this_studio.actor(person, "oz0 plugin add"),
            came=Came.FOLDER if folder.is_dir() else Came.PACK,
            file_name="" if folder.is_dir() else folder.name,
        )
    except (folders.BadFolder, BadPlugin) as error:
        _folder.refuse(str(error), as_json)
    done = "added" if found.fresh else "kept"
    if as_json:
        told = {"plugin": found.name, "version": found.number, "digest": found.digest, "done": done}
        _folder.show_json({**told, "before": found.before, "renumbered": found.renumbered})
        return
    click.echo(f"{done} {found.name} {found.digest[:12]}")
    if found.renumbered:
        click.echo(f"another version is called {found.number} too: raise `version` before you share it", err=True)


def _files(place: Path) -> dict[str, bytes]:
    from base import folders
    from catalog.operations.unpacking import files_in_pack

    return dict(folders.files_of(place)) if place.is_dir() or not place.exists() else files_in_pack(place)
