"""`oz0 web`: the pages and interfaces, for machines where something else than `oz0 up` looks after processes."""

import logging
import os
import signal

import click

from studio.cli import _told


@click.command(
    cls=_told.Told,
    short_help="Serve pages and interfaces in the foreground.",
    exits={_told.Exit.DONE: "it was ended", _told.Exit.FAILED: "it cannot run"},
    examples=["oz0 web", "oz0 web --bind 0.0.0.0 --port 80"],
)
@click.option("--bind", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="The port to listen on.")
def web(bind: str, port: int) -> None:
    """Serve pages and interfaces in the foreground."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the server takes it over there is nothing to end in order
    import importlib

    from django.core.exceptions import ImproperlyConfigured

    from studio.serving import Interface

    try:
        importlib.import_module("studio.asgi")
    except ImproperlyConfigured as error:
        raise click.ClickException(str(error)) from error

    words = ["--bind", bind, "--port", str(port), "--verbosity", "1", "--application-close-timeout", "1"]
    Interface().run([*words, "studio.asgi:application"])
    logging.shutdown()
    os._exit(0)  # taking the interpreter apart would cost a good part of the time a stop may take
