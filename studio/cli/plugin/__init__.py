"""`oz0 plugin`: everything an author does to a plugin's folder, on a machine of their own; and adding it here.

Each other module of this folder is one subcommand, read only when it is used. None of them but `add` needs a studio.
"""

from studio.cli import Commands


@Commands.of(__name__, __path__, ["oz0 plugin new shelf", "oz0 plugin test shelf --drill", "oz0 plugin add shelf"])
def plugin() -> None:
    """Make, check, drill and add plugins."""
