"""The `oz0` command. Each subcommand is a module of this folder and is read only when it is used.

A module imports Django, Celery or the MCP library inside its function, never at its top: `oz0 --help` stays quick.
"""

import importlib
import os
from typing import Final

import click

COMMANDS: Final = {
    "up": "up",
    "status": "status",
    "migrate": "migrate",
    "sign-in-link": "sign_in_link",
}
"""Each command's module; the click command in it has the module's name."""


class Commands(click.Group):
    """Finds a command's module by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None when there is no such name."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(importlib.import_module(f"studio.cli.{module}"), module)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oz0-studio", prog_name="oz0")
def main() -> None:
    """A self-hosted studio between AI agents and the MCP servers they use."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
