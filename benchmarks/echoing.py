"""A studio of a benchmark's own: durable services in a folder that goes with it, and the echo plugin."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from catalog.operations import plugins
from tenants.rules.who import SYSTEM
from tests.faults.stand import Services, a_stand

ECHO: Final = Path(__file__).parent / "echo"
AGENT: Final = """
name: echoer
model: rehearsal
instructions: Say it again.
functions: [echo.*]
limits: {{turns: {turns}, calls: {calls}, minutes: 60}}
rehearsal:
{rehearsed}
"""
CALL: Final = "{function: echo.echo, arguments: {text: x}}"


@contextmanager
def services() -> Iterator[Services]:
    """PostgreSQL that waits for its disk, Valkey, a tenant with a person."""
    with tempfile.TemporaryDirectory() as folder, a_stand(Path(folder)) as stand:
        yield stand


def use_echo(stand: Services, *, turns: int = 1, parallel: int = 1, calls: int = 0) -> None:
    """The echo plugin, whose agent makes so many calls at once, so many times; with `calls`, it may make more."""
    folder = stand.home / "echo"
    shutil.copytree(ECHO, folder, dirs_exist_ok=True)
    (folder / "agents").mkdir(exist_ok=True)
    rehearsed = "\n".join([f"  - call: [{', '.join([CALL] * parallel)}]"] * turns + ["  - say: Done."])
    (folder / "agents" / "echoer.yaml").write_text(
        AGENT.format(turns=turns + 1, calls=calls or turns * parallel, rehearsed=rehearsed)
    )
    plugins.register(tenant=stand.tenant, folder=folder, home=stand.home, actor=SYSTEM)
