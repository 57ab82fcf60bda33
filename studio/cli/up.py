"""`oz0 up`: everything the studio needs, under one supervisor in one terminal."""

import click


@click.command()
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Where pages are served.")
@click.option("--demo", is_flag=True, help="Load the example plugins and start their jobs.")
def up(port: int, demo: bool) -> None:
    """Start the studio: database, broker, web and node. Ctrl-C stops all of them."""
    from studio.embedded.failure import CannotStart
    from studio.state_folder import state_folder
    from studio.supervisor.studio import run

    try:
        run(state_folder(), port=port, demo=demo)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
