"""The `oz0` command. Each other module of this folder is one subcommand, read only when it is used.

`sign_in_link.py` holds the click command `sign_in_link`, which people call `oz0 sign-in-link`; `import_.py` holds
`import_`, since `import` is a word of Python's own; a folder such as `plugin/` holds a group of them. A name that
begins with `_` is no command. A module imports Django, Celery or the MCP library inside its functions, never at its
top: `oz0 --help` stays quick.
"""

import importlib
import keyword
import os
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from studio.cli._told import Ending


class Named(Ending, click.Group):
    """A group that tells of a mistyped command which one it may be meant for."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.exits, self.examples = {}, tuple(examples)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word. Raises `NoSuchCommand`, with those that are called alike."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            name, names = error.command_name, self.list_commands(ctx)
            message = f"No such command '{name}'."
            if inside := self._group_with(ctx, name):
                names, message = [], f"{message} Did you mean '{inside} {name}'?"
            raise click.exceptions.NoSuchCommand(name, message, names, ctx) from None

    def _group_with(self, ctx: click.Context, name: str) -> str | None:
        """The group among its commands that has a command of this name."""
        groups = ((group, self.get_command(ctx, group)) for group in self.list_commands(ctx))
        return next(
            (group for group, one in groups if isinstance(one, click.Group) and one.get_command(ctx, name)), None
        )


class Commands(Named):
    """Finds a command's module by name, in the folder of its own."""

    def __init__(self, *args: Any, package: str = __name__, path: Iterable[str] = __path__, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package, self._path = package, path

    @classmethod
    def of(
        cls, package: str, path: Iterable[str], examples: Sequence[str]
    ) -> Callable[[Callable[..., Any]], click.Group]:
        """A decorator: the function becomes the group whose commands are the modules of this package."""
        return click.group(cls=cls, package=package, path=path, examples=examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        modules = (found.name for found in pkgutil.iter_modules(self._path))
        return sorted(name.rstrip("_").replace("_", "-") for name in modules if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None when there is no such name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"{self._package}.{module}"), module)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=["oz0 up --demo", "oz0 plugin new shelf", "oz0 dev shelf", "oz0 import ~/.cursor/mcp.json --dry-run"],
)
@click.version_option(package_name="oz0-studio", prog_name="oz0")
def main() -> None:
    """A self-hosted studio between AI agents and the MCP servers they use."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
