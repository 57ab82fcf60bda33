"""A studio for one plugin: the parts of `oz0 up`, and beside them the program that follows the plugin's folder."""

import os
import sys
from pathlib import Path

from catalog.rules.servers import HANDED_ON
from studio.dev import place, warm
from studio.dev.terminal import QuietTerminal
from studio.embedded.failure import cannot_keep
from studio.embedded.place import place_of
from studio.program import command
from studio.supervisor.one_at_a_time import holder
from studio.supervisor.parts import Haste, Program
from studio.supervisor.studio import Env, Wanted, keep_up
from studio.supervisor.supervisor import Supervisor
from studio.supervisor.terminal import Terminal

LOG = "dev.log"
SOCKET = "warm.sock"  # beside those of the services


def run(folder: Path, *, port: int | None, as_json: bool, fresh: bool) -> None:
    """Keep the studio of the plugin in `folder` up until a signal ends it. Raises `CannotStart`."""
    state = place.state_of(folder, os.environ)
    if fresh:
        place.forget(state)
    wanted = Wanted(state, port or place.free_port(), place.own(os.environ), command="oz0 dev", make=False)
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = (state / LOG).open("a" if holder(state) else "w", encoding="utf-8")  # the log of one that is up stays
    except OSError as error:
        raise cannot_keep("the log of the plugin's studio", error) from error
    with log:
        terminal = QuietTerminal(log, as_json=as_json)

        def then(supervisor: Supervisor, _: Terminal, env: Env) -> None:
            socket = str(place_of(state).sockets / SOCKET)
            handed_on = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
            argv = [sys.executable, warm.__file__, "serve", socket]
            patience = {Haste.DRAIN: 0.5, Haste.QUICK: 0.5}
            supervisor.add(Program("warm", argv, handed_on, terminal.sink("warm"), patience=patience))
            words = [
                "--url",
                wanted.url,
                "--warm",
                socket,
                *(["--json"] if as_json else []),
                *(["--colour"] if terminal.coloured else []),
            ]
            argv = command("studio.dev.follow", str(folder.resolve()), *words)
            patience = {Haste.DRAIN: 1.0, Haste.QUICK: 0.5}
            supervisor.add(Program("the plugin's reloader", argv, env, terminal.shown, patience=patience))

        terminal.begin(str(folder), str(state), LOG)
        keep_up(wanted, terminal, then)
