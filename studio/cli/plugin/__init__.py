"""`oz0 plugin`: everything an author does to a plugin's folder, on their own machine, and adding and removing it.

Each other module of this folder is one subcommand, read only when it is used. Only `add` and `remove` need
a studio.
"""

from studio.cli import Commands


@Commands.of(__name__, __path__, ["oz0 plugin new shelf", "oz0 plugin test shelf --drill", "oz0 plugin add shelf"])
def plugin() -> None:
    """Make, check, drill, pack, add and remove plugins."""
