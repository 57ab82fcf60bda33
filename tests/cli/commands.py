"""Every command of `oz0`, found as the command itself finds them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from studio.cli import main
from tests.repo.tree import ROOT

OURS = ("OZ0_", "DATABASE_", "REDIS_", "BROKER_")


def every_command(under: click.Command = main, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each with its words, `plugin lint`; groups too, the program itself as an empty text."""
    yield " ".join(words), under
    if isinstance(under, click.Group):
        ctx = click.Context(under)
        for name in under.list_commands(ctx):
            found = under.get_command(ctx, name)
            assert found is not None
            yield from every_command(found, (*words, name))


LEAVES = {words: command for words, command in every_command() if not isinstance(command, click.Group)}


def typed(*words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """`oz0` as a process of its own, where no studio is: any database is one that refuses at once."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    env |= {"PYTHONPATH": str(ROOT), "OZ0_HOME": str(cwd / "home")} | more
    command = [sys.executable, "-m", "studio.cli", *words]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
