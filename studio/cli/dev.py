"""`oz0 dev`: a plugin in a studio of its own, loaded anew whenever it is saved (RULES D4)."""

import json
from pathlib import Path

import click

from studio.cli import _told


@click.command(
    cls=_told.Told,
    short_help="Run a plugin in a studio of its own, anew at each save.",
    exits={
        _told.Exit.DONE: "it was ended",
        _told.Exit.FAILED: "its studio cannot start",
        _told.Exit.UNREADABLE: "there is no oz0-plugin.yaml in the folder",
    },
    examples=["oz0 dev", "oz0 dev shelf --port 8010", "oz0 dev shelf --json"],
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--port", type=click.IntRange(1, 65535), help="Where pages are served; the first free one from 8000.")
@click.option("--fresh", is_flag=True, help="Begin with an empty studio: forget the jobs and answers of before.")
@_told.lines_option
def dev(folder: Path, port: int | None, fresh: bool, as_json: bool) -> None:
    """Run the plugin in FOLDER in a studio of its own, and load it anew whenever a file of it is saved.

    It prints a link that signs you in, what each function costs, and which functions policy does not let run freely,
    each with the fix to paste. A save that cannot be loaded is told with file, line and fix, while the version before
    it goes on. oz0-listing.json is kept up to date. One Ctrl-C ends all of it.

    The studio's state is in .oz0-dev in FOLDER, or below dev/ in OZ0_HOME where that is set; services and studios that
    the environment names are left alone. Variables that the manifest names under `env` are taken from this terminal.
    """
    from studio.dev.run import run
    from studio.embedded.failure import CannotStart

    if not (folder / "oz0-plugin.yaml").is_file():
        why = f"{folder}: there is no oz0-plugin.yaml in it"
        if as_json:
            click.echo(json.dumps({"error": why}))
        click.echo(f"{why}\n  fix: name a plugin's folder, or write one with `oz0 plugin new NAME`", err=True)
        raise SystemExit(_told.Exit.UNREADABLE)
    try:
        run(folder, port=port, as_json=as_json, fresh=fresh)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
