"""`oz0 plugin`: everything an author does to a plugin's folder, on a machine of their own; and adding it here.

Each other module of this folder is one subcommand, read only when it is used. None of them but `add` needs a studio.
"""

from studio.cli import Commands


@Commands.of(__name__, __path__)
def plugin() -> None:
    """Make a plugin, look at what it costs, check it, put faults to it, and add it to this studio."""
