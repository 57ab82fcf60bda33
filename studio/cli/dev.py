"""`oz0 dev`: a plugin in a studio of its own, loaded anew whenever it is saved (RULES D4)."""

from pathlib import Path
from typing import Final

import click

NO_PLUGIN: Final = 3  # exit code


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--port", type=click.IntRange(1, 65535), help="Where pages are served; the first free one from 8000.")
@click.option("--fresh", is_flag=True, help="Begin with an empty studio: forget the jobs and answers of before.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, an object a line.")
def dev(folder: Path, port: int | None, fresh: bool, as_json: bool) -> None:
    """Run the plugin in FOLDER in a studio of its own, and load it anew whenever a file of it is saved.

    It prints a link that signs you in, what each function costs, and which functions policy does not let run freely,
    each with the fix to paste. A save that cannot be loaded is told with file, line and fix, while the version before
    it goes on. oz0-listing.json is kept up to date. One Ctrl-C ends all of it.

    The studio's state is in .oz0-dev in FOLDER, or below dev/ in OZ0_HOME where that is set; services and studios that
    the environment names are left alone. Variables that the manifest names under `env` are taken from this terminal.

    \b
    Exit codes:
      0  it was ended
      1  the studio cannot start
      2  a wrong call of the command
      3  FOLDER holds no oz0-plugin.yaml

    \b
    Examples:
      oz0 dev
      oz0 dev shelf --port 8010
      oz0 dev shelf --json | grep broken
    """
    from studio.dev.run import run
    from studio.embedded.failure import CannotStart

    if not (folder / "oz0-plugin.yaml").is_file():
        click.echo(
            f"{folder}: there is no oz0-plugin.yaml in it\n  fix: name a plugin's folder, or write one with"
            " `oz0 plugin new NAME`",
            err=True,
        )
        raise SystemExit(NO_PLUGIN)
    try:
        run(folder, port=port, as_json=as_json, fresh=fresh)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
