"""`oz0 up`: everything the studio needs, under one supervisor in one terminal."""

import click

from studio.cli import _told


@click.command(
    cls=_told.Told,
    short_help="Start the studio; Ctrl-C stops it.",
    exits={_told.Exit.DONE: "it was ended", _told.Exit.FAILED: "it cannot start, and why is said"},
    examples=["oz0 up", "oz0 up --demo --port 8001", "OZ0_HOME=/srv/oz0 oz0 up"],
)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Where pages are served.")
@click.option("--demo", is_flag=True, help="Load the example plugins and start their jobs.")
@_told.lines_option
def up(port: int, demo: bool, as_json: bool) -> None:
    """Start the studio: database, broker, web and node. Ctrl-C stops all of them."""
    from studio.embedded.failure import CannotStart
    from studio.state_folder import state_folder
    from studio.supervisor.studio import run

    try:
        run(state_folder(), port=port, demo=demo, as_json=as_json)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
