"""`oz0 node`: one node, for machines where something else than `oz0 up` looks after processes."""

import logging
import os
import signal

import click

from studio.cli import _told


@click.command(
    cls=_told.Told,
    short_help="Run a node in the foreground.",
    exits={_told.Exit.DONE: "it was ended", _told.Exit.FAILED: "it cannot run"},
    examples=["oz0 node", "oz0 node --threads 16"],
)
@click.option("--threads", default=8, show_default=True, type=click.IntRange(1, 200), help="Celery's own threads.")
def node(threads: int) -> None:
    """Run a node in the foreground. SIGTERM drains it (OZ0_DRAIN seconds, 60 by default), Ctrl-C gives it three."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until Celery takes it over there is nothing to end in order
    import warnings

    from celery.exceptions import CPendingDeprecationWarning
    from celery.platforms import SecurityWarning
    from django.core.exceptions import ImproperlyConfigured

    warnings.simplefilter("ignore", SecurityWarning)  # of pickle as root; our messages are JSON and carry ids only
    # of a default to come for tasks that acknowledge late; ours are over in a moment and may be lost
    warnings.simplefilter("ignore", CPendingDeprecationWarning)
    try:
        from studio.celery import QUEUES, app
    except ImproperlyConfigured as error:
        raise click.ClickException(str(error)) from error
    words = ["--quiet", "worker", "--pool", "threads", "--concurrency", str(threads), "--queues", ",".join(QUEUES)]
    # Nodes meet in the database; what they could tell each other through the broker only delays their start.
    words += ["--without-mingle", "--without-gossip", "--without-heartbeat", "--loglevel", "INFO"]
    code = 0
    try:
        app.worker_main(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    logging.shutdown()
    # Everything is settled and closed. Taking the interpreter apart would cost a good part of the time a stop may take.
    os._exit(code)
